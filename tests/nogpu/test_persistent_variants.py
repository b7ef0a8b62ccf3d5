"""Persistent variants of Configs that are not: which there are, where they are chosen."""

from __future__ import annotations

from dataclasses import replace
from math import log
from statistics import mean

import pytest
from recorded import GEMM_WINNERS, seconds_of

from benchmarks.kernels import choice_of
from pyblasgpu.database import Document, sizes_of, tuned_at
from pyblasgpu.dispatch import choose, split_k, tuned_files, tuned_products, variants
from pyblasgpu.dispatch import gemm as dispatch_gemm
from pyblasgpu.dispatch.choose import tuned_configs
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.split_k import STREAM_K
from pyblasgpu.gpu.device import known
from pyblasgpu.model.occupancy import has_register_slack
from pyblasgpu.tuning.results import winners
from pyblasgpu.tuning.sweep_file import read_sweep
from pyblasgpu.types import DTYPES, Region, Triangle

H200 = known("h200")
LAYOUTS = "nn", "nt", "tn", "tt"
TILES = 1085, 1085, 1085  # SGEMM TT has 153 tiles of 64 x 128 there, 21 more than multiprocessors


def variants_of(config):
    return variants.persistent_variants(config, H200)


@pytest.fixture
def uncertainty(monkeypatch):
    """``set(factor)``: how uncertain variants are."""

    def set_to(factor: float):
        monkeypatch.setattr(dispatch_gemm, "UNTIMED_MARGIN", factor)
        choose.reload()

    yield set_to
    monkeypatch.undo()
    choose.reload()


@pytest.mark.parametrize("letter", DTYPES)
def test_variants_walk_and_have_registers_to_spare(letter):
    configs = list(tuned_configs("gemm", DTYPES[letter], "nn", H200))
    found = {config: variants_of(config) for config in configs}
    assert all(not found[config] for config in configs if config.persistent or config.stages == 1)
    assert any(found.values())
    for config, made in found.items():
        for variant in made:
            assert variant.persistent and has_register_slack(variant, H200)
            assert replace(variant, persistent=False, min_blocks=config.min_blocks) == config


def test_a_tile_that_needs_all_registers_has_fewer_variants_or_none():
    """Two blocks of 64 x 128 on a multiprocessor have registers to spare, four have not."""
    config = next(
        c
        for c in tuned_configs("gemm", DTYPES["s"], "tt", H200)
        if (c.BLK_M, c.BLK_N, c.BLK_K, c.persistent) == (64, 128, 16, False)
    )
    assert [variant.min_blocks for variant in variants_of(config)] == [2, 1]
    assert variants_of(replace(config, DIM_X=4, WARP_X=4, DIM_XA=8, DIM_XB=16)) == ()


def test_what_has_tiles_for_all_its_waves_promises_nothing():
    config = next(iter(tuned_configs("gemm", DTYPES["d"], "nn", H200)))
    config = replace(config, persistent=False)
    at_once = variants.blocks_per_sm(config, H200) * H200.sm_count

    def share(tiles):
        extents = config.BLK_M, config.BLK_N * tiles, 512
        return variants.min_share(config, extents, H200)

    assert share(at_once) == share(3 * at_once) == 1
    assert share(at_once + 1) == pytest.approx((at_once + 1) / (2 * at_once))


def test_a_last_wave_that_is_nearly_empty_is_shared(uncertainty):
    choice = choice_of(DTYPES["s"], "tt", TILES, H200)
    config = choice.config
    assert (config.BLK_M, config.BLK_N, config.persistent, choice.splits) == (64, 128, True, STREAM_K)
    assert config not in tuned_configs("gemm", DTYPES["s"], "tt", H200)
    uncertainty(2.0)
    assert choice_of(DTYPES["s"], "tt", TILES, H200).config in tuned_configs("gemm", DTYPES["s"], "tt", H200)


@pytest.mark.parametrize(
    "given", [{"splits": 1}, {"splits": 2}, {"region": Triangle.LOWER_LEFT}, {"room": 0}]
)
def test_where_no_tile_may_be_shared_no_variant_is_asked(uncertainty, given):
    uncertainty(0.01)
    extents, region, room = (*TILES, 1), given.get("region", Region.ALL), given.get("room")

    def chosen():
        return choose.select("gemm", DTYPES["s"], "tt", extents, H200, region=region, room=room)

    if "splits" in given:
        with override("splits", given["splits"]):
            choice = chosen()
    else:
        choice = chosen()
    kept = tuned_configs("gemm", DTYPES["s"], "tt", H200)
    assert choice.splits != STREAM_K and (choice.config in kept or not choice.config.persistent)


# ------------------------------------------------------------------------------- as if none had been kept


@pytest.fixture
def ordinary_alone(monkeypatch):
    """What a sweep says of ordinary kernels as the file of tuned values, and the seconds of all it timed."""
    records = read_sweep(GEMM_WINNERS)
    kept = winners([record for record in records if not record.parameters.get("persistent")], H200.name)
    seen = Document(H200.name, kept.entries)
    monkeypatch.setattr(tuned_files, "documents", lambda device: (("the sweep", seen),))
    monkeypatch.setattr(split_k, "COUNTS", ())
    yield seconds_of(records)
    monkeypatch.undo()
    choose.reload()


def choices(times) -> dict:
    choose.choice_cache.clear()
    tuned_products.forget()
    with override("packed", False):
        return {
            (letter, layout, size): choose.select(
                "gemm", DTYPES[letter], layout, tuned_at("gemm_simt", size)[-1], H200
            ).config
            for letter, layout, size in times
            if size in sizes_of("gemm_simt")
        }


def test_a_variant_that_is_chosen_is_faster(ordinary_alone, monkeypatch):
    """Where its time, and that of what is chosen without it, are known; but for slices of k."""
    times = ordinary_alone
    with_twins = choices(times)
    monkeypatch.setattr(dispatch_gemm, "persistent_variants", lambda *_: ())
    without = choices(times)
    gains = [
        log(times[place][without[place]] / times[place][config])
        for place, config in with_twins.items()
        if config != without[place] and config in times[place] and without[place] in times[place]
    ]
    assert len(gains) >= 10 and mean(gains) > 0.05
    assert min(gains) > -0.05 and sum(gain < -0.03 for gain in gains) <= 1
