"""Persistent products: blocks that walk over tiles and batches, whole or parted, exactly."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from covering import pairs

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.common.tile_schedule import TileSchedule
from pyblasgpu.kernels.gemm import mma as gemm_mma
from pyblasgpu.kernels.gemm import simt as gemm_simt
from pyblasgpu.kernels.gemm.form import Form
from pyblasgpu.testing.reference import fenced, integers
from pyblasgpu.types import DTYPES, Region

from . import test_gemm_mma, test_gemm_simt
from .launching import in_region, run, strides

SCHEDULES = {
    "whole": lambda blocks, tiles, k_tiles: TileSchedule.of_whole_tiles(blocks, tiles),
    "streamed": TileSchedule.stream_k,
}
PIPELINES = [{"stages": 2}, {"stages": 3, "prefetch": True}, {"stages": 4}]


def check(
    tile, m, n, k, schedule, blocks, batch=1, alpha=2.0, beta=-1.0, kernels=None, region=Region.ALL, **options
):
    """Integers between fences, ``==``; no flag stays set."""
    kernels = kernels or (gemm_mma if tile.STEM == "gemm_mma" else gemm_simt)
    rng, dtype = np.random.default_rng(m + 10 * n + 100 * k), DTYPES[tile.dtype]
    a, b, c = (integers(rng, (batch, *shape), dtype) for shape in ((m, k), (k, n), (m, n)))
    expected = alpha * (a @ b) + (beta * c if beta else 0)
    if not beta:
        c[...] = np.nan
    expected, c = in_region(region, expected, c)
    a, b = (
        fenced(a, "C" if tile.trans_a else "F", gap=4)[0],
        fenced(b, "C" if tile.trans_b else "F", gap=4)[0],
    )
    c, unharmed = fenced(c, "F")
    lead_a, lead_b = strides(a)[1 if tile.trans_a else 2], strides(b)[1 if tile.trans_b else 2]
    steps = (lead_a, lead_b, strides(c)[2], *(strides(x)[0] for x in (a, b, c)))
    k_tiles = -(-k // tile.BLK_K)
    scheduled = SCHEDULES[schedule](blocks, batch * tile.grid(m, n, region), k_tiles)
    scratch = np.full(scheduled.blocks * tile.BLK_M * tile.BLK_N, np.nan, a.dtype)
    flags = np.zeros(scheduled.blocks, dtype.real)
    arguments = (
        (a, b, c, scratch, flags),
        (m, n, k, options_of(region, **options), *scheduled[1:], *steps),
        (alpha, beta),
    )
    run(kernels.source(tile, Form.of(region)), scheduled.blocks, *arguments)
    assert not flags.any()
    np.testing.assert_array_equal(c, expected)
    assert unharmed()


def tile(letter="s", **changes):
    return test_gemm_simt.config(letter, persistent=True, **{"stages": 2, **changes})


@pytest.mark.parametrize("letter, schedule, pipeline", pairs(DTYPES, SCHEDULES, PIPELINES))
def test_every_dtype_and_pipeline(letter, schedule, pipeline):
    check(tile(letter, **pipeline), 35, 19, 26, schedule, blocks=4)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_c_is_read_group_by_group(letter, schedule):
    check(tile(letter, BLK_M=32, BLK_N=32, min_blocks=2), 70, 41, 11, schedule, blocks=3)


@pytest.mark.parametrize("letter, schedule, trans", pairs("sc", SCHEDULES, test_gemm_simt.KEPT), ids=str)
def test_smem_tiles_as_they_lie(letter, schedule, trans):
    kept = test_gemm_simt.kept(letter, *trans, persistent=True, prefetch=True, stages=3)
    check(kept, 70, 35, 44, schedule, blocks=4)


@pytest.mark.parametrize("letter, schedule, trans", pairs("dz", SCHEDULES, test_gemm_simt.LAYOUTS), ids=str)
def test_on_tensor_cores(letter, schedule, trans):
    warps = test_gemm_mma.config(letter, *trans, persistent=True, prefetch=True, stages=3)
    check(warps, 70, 35, 43, schedule, blocks=4)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("trans", [False, True])
def test_large_complex_tiles_have_a_kernel_for_each_alignment(schedule, trans):
    """One operand comes by vectors, the other by single elements."""
    wide = {"DIM_XB": 16, "DIM_YB": 2, "VEC_B": 2} if trans else {"DIM_XA": 16, "DIM_YA": 2, "VEC_A": 2}
    large = tile("c", trans_a=trans, trans_b=trans, BLK_M=64, BLK_N=32, **wide)
    assert large.needs_alignment and not large.scalar_variant.needs_alignment
    for config in (large, large.scalar_variant):
        check(config, 70, 36, 12, schedule, blocks=3)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_three_products(schedule):
    """What a block leaves for another are elements, not sums."""
    tile = test_gemm_mma.config("z", persistent=True, prefetch=True, stages=3, three_m=True)
    check(tile, 70, 35, 43, schedule, blocks=4)


@pytest.mark.parametrize("letter, schedule, trans", pairs("dz", SCHEDULES, test_gemm_simt.LAYOUTS), ids=str)
def test_slices_of_k_on_tensor_cores(letter, schedule, trans):
    warps = test_gemm_mma.sliced(letter, *trans, persistent=True, prefetch=True, stages=3)
    check(warps, 70, 35, 43, schedule, blocks=4)


@pytest.mark.parametrize("letter, schedule, trans", pairs("sz", SCHEDULES, test_gemm_simt.LAYOUTS), ids=str)
def test_slices_of_k(letter, schedule, trans):
    check(test_gemm_simt.sliced(letter, *trans, persistent=True), 35, 37, 43, schedule, blocks=5)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("blocks", [1, 2, 3, 5, 7, 16, 100])
@pytest.mark.parametrize("m, n, k", [(33, 17, 3), (16, 8, 40), (48, 9, 11)])
def test_any_number_of_blocks(schedule, blocks, m, n, k):
    """Fewer blocks than tiles, as many, more; pieces of one k-tile, and tiles of many pieces."""
    check(tile(stages=3), m, n, k, schedule, blocks)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("batch", [2, 5])
def test_batches(schedule, batch):
    check(tile("d"), 17, 9, 13, schedule, 3, batch)
    check(tile("c", prefetch=True), 16, 8, 21, schedule, 4, batch, alpha=1 - 2j, beta=0.0)


@pytest.mark.parametrize("beta", [0.0, -1.0])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tiles_of_c_are_asked_for_within_c(schedule, beta):
    check(tile("d"), 37, 19, 26, schedule, 4, 2, beta=beta, prefetch_c=True)
    check(tile("s"), 48, 48, 11, schedule, 3, beta=beta, region=Region.LOWER, prefetch_c=True)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_more_rows_of_tiles_than_a_raster_column(schedule):
    check(tile(), 16 * 9 + 1, 17, 5, schedule, 5)


def test_vectors_of_a_tile_that_is_aligned_and_of_one_that_is_not():
    wide = tile(VEC_M=2, VEC_N=2, PAD_A=2)
    for m in (32, 34, 35):
        check(wide, m, 16, 8, "streamed", 3, beta=0.0)
        check(wide, m, 16, 8, "whole", 3)


def test_the_schedule_takes_every_k_tile_once():
    for blocks, tiles, k_tiles in (
        (2, 1, 2),
        (3, 10, 4),
        (7, 5, 3),
        (132, 265, 2),
        (132, 300, 17),
        (8, 1, 5),
    ):
        schedule = TileSchedule.stream_k(blocks, tiles, k_tiles)
        left = tiles * k_tiles - schedule.full_waves * schedule.blocks * k_tiles
        ends = [schedule.begin(block) for block in range(schedule.blocks + 1)]
        assert ends[0] == 0 and ends[-1] == left and schedule.blocks <= blocks
        runs = {after - before for before, after in pairwise(ends)}
        assert (
            runs <= {schedule.k_iters_per_block, schedule.k_iters_per_block + 1}
            and schedule.k_iters_per_block > 0
        )


def test_what_need_not_be_parted_is_not():
    for blocks, tiles, k_tiles in ((1, 7, 3), (4, 8, 3), (4, 7, 1)):
        assert TileSchedule.stream_k(blocks, tiles, k_tiles) == TileSchedule.of_whole_tiles(blocks, tiles)
    assert TileSchedule.of_whole_tiles(4, 3) == TileSchedule(3, 3, 1) and TileSchedule.of_whole_tiles(
        4, 9
    ) == TileSchedule(4, 9, 3)


def test_rules():
    with pytest.raises(ConfigError, match="persistent only with stages > 1"):
        test_gemm_simt.config("s", persistent=True, stages=1)
    assert replace(tile(), persistent=False) == test_gemm_simt.config("s", stages=2)
