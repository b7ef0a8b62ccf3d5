"""The cost model: waves, reuse, steps, sector-misaligned copies."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from pyblasgpu.gpu.device import known
from pyblasgpu.model import gemm as gemm_model
from pyblasgpu.model import occupancy, score
from pyblasgpu.tuning.prune import candidates

pytestmark = pytest.mark.usefixtures("home")

H200, FERMI = known("h200"), known("fermi")


def test_the_score_knows_waves_reuse_and_spills():
    left = candidates("gemm_simt", "s", "nn", H200).left
    big = next(c for c in left if (c.BLK_M, c.BLK_N, c.DIM_X, c.stages) == (128, 128, 16, 3))
    tiny = next(c for c in left if (c.BLK_M, c.BLK_N) == (32, 32))

    def at(config, n, device=H200):
        return score.score("gemm_simt", config, (n, n, n), device)

    assert at(big, 4096) > at(tiny, 4096) and at(tiny, 256) > at(big, 256)
    assert at(big, 128 * 132, H200) > at(big, 128 * 12)  # 144 tiles on 132 multiprocessors
    assert at(big, 4096, FERMI) < at(big, 4096)
    assert all(0 <= at(config, 2048) <= 1 for config in left)


def test_shared_memory_of_a_card_serves_parts_of_warps():
    """Before compute capability 3.0 vectors save no time, and lines take two cycles."""
    left = candidates("gemm_simt", "s", "nn", FERMI).left
    vectors = next(c for c in left if c.VEC_M == c.VEC_N == 4)
    kepler = replace(FERMI, cc=(3, 0))

    def lines(config, device):
        return gemm_model.fma_step(config, device).lines

    scalars = replace(vectors, VEC_M=1, VEC_N=1)
    assert lines(scalars, kepler) > lines(vectors, kepler)
    assert lines(scalars, FERMI) == lines(vectors, FERMI) == lines(scalars, kepler)
    rests = [gemm_model.k_tile_cycles(scalars, device).rest for device in (FERMI, kepler)]
    assert rests[0] == 2 * rests[1]


def test_registers_that_are_alive_at_once_do_not_spill():
    """The paper's winner, on a card whose threads have 63; elsewhere all of the estimate counts."""
    winner = next(
        c for c in candidates("gemm_simt", "s", "nn", FERMI, "normal").left if c.THR_M == c.THR_N == 6
    )
    assert occupancy.registers_needed(winner, FERMI) <= 63 < winner.registers + occupancy.OVERHEAD
    assert occupancy.registers_needed(winner, H200) == winner.registers + occupancy.OVERHEAD


def test_the_score_knows_what_a_step_costs():
    """Fragments that are not fetched ahead, vectors along k in one bank, small products on tensor cores, the
    way of persistent blocks.
    """

    def at(config, device=H200):
        return score.cycles(config.STEM, config, (4096, 4096, 4096), device)

    left = candidates("gemm_simt", "s", "tt", H200).left
    plain = next(c for c in left if c.prefetch and c.VEC_K == 1 and not c.persistent and c.threads == 256)
    assert at(replace(plain, prefetch=False)) > at(plain)
    walking = replace(plain, persistent=True, min_blocks=1)
    cycles = gemm_model.k_tile_cycles
    assert cycles(walking, H200).issue > cycles(replace(plain, min_blocks=1), H200).issue
    kept = next(c for c in left if c.VEC_K > 1)
    banked = gemm_model.fma_step(kept, H200).slots / (kept.THR_M * kept.THR_N)
    assert 1.15 < banked < 1.6
    mma = next(c for c in candidates("gemm_mma", "d", "nn", H200).left if c.MMA_M == 16)
    small = replace(mma, MMA_M=8, MMA_K=4)
    assert at(small) > at(mma)
    assert at(small, known("a100")) == at(mma, known("a100"))


def test_the_score_knows_misaligned_sectors():
    """Asynchronous ones, of columns that begin within sectors of memory, more in small tiles."""
    left = candidates("gemm_mma", "d", "tn", H200).left
    large = next(c for c in left if (c.BLK_M, c.BLK_N, c.MMA_M) == (128, 128, 16))
    small = next(c for c in left if (c.BLK_M, c.BLK_N, c.MMA_M) == (32, 32, 16))

    def longer(config, *sector_misaligned):
        there = partial(score.cycles, "gemm_mma", config, (4096, 4096, 4096), H200)
        return there(sector_misaligned=sector_misaligned) / there()

    assert 1 < longer(large, True, False) < longer(large, True, True) < longer(small, True, True) < 2
    assert longer(replace(large, stages=1, prefetch=False, persistent=False), True, True) == 1
    narrow = small.scalar_variant
    assert 1 < longer(narrow, True, True) < longer(small, True, True), "8 bytes a copy, not 16"
    by_cache = replace(small, through_l1=True)
    assert 1 < longer(by_cache, True, True) < longer(small, True, True), (
        "halves of sectors wait in the L1 cache"
    )


def test_single_words_stray_less_in_long_runs():
    left = candidates("gemm_simt", "s", "tn", H200).left
    short = next(c for c in left if c.BLK_K == 8 and c.VEC_A == c.VEC_B == 1)
    long = next(c for c in left if c.BLK_K == 32 and c.VEC_A == c.VEC_B == 1)

    def lines(config, aligned):
        strayed, straight = (gemm_model.k_tile_cycles(config, H200, (at, at)) for at in (aligned, 0))
        return strayed.rest / straight.rest

    assert lines(short, 4) == lines(short, 16) > 1
    assert 1 < lines(long, 4) < lines(long, 16)
