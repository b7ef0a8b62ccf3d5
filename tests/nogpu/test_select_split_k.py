"""Split-K: which products are split, into how many slices."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from select_cases import (
    H200,
    UNKNOWN,
    S,
    config,
    measured,
    tiles,
)

from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import gemm as dispatch_gemm
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.dispatch.split_k import (
    COUNTS,
    MOST_PARTIALS,
    cuts_k,
    partial_bytes,
    split_times,
    tile_schedule_of,
)
from pyblasgpu.gpu.device import known
from pyblasgpu.kernels.common.tile_schedule import MAX_K_TILES, TileSchedule
from pyblasgpu.tuning.tuned_file_writer import save
from pyblasgpu.types import DTYPES

pytestmark = pytest.mark.usefixtures("levels")

LONG = (64, 64, 65536)


@pytest.mark.parametrize("device", [*map(known, ("h200", "a100", "v100")), UNKNOWN], ids=lambda it: it.name)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_a_long_k_is_cut_and_a_large_c_is_not(device, dtype):
    assert select("gemm", dtype, "nn", LONG, device).splits >= 8
    for n in (1, 100, 2048, 4096):
        assert select("gemm", dtype, "tn", (n, n, n), device).splits == 1
    assert select("gemm", dtype, "nn", (8192, 8192, 64), device).splits == 1


def test_large_tiles_of_a_panel_are_cut(levels):
    """With few blocks for the multiprocessors; with small tiles there may be enough of them."""
    big, _ = tiles("gemm_simt", "s")
    save(measured("NVIDIA H200", ("large", big, 50)), levels / "nvidia_h200.json")
    selecting.reload()
    for extents in (
        (8192, 16, 8192),
        (16, 8192, 8192),
        (6144, 64, 6080),
        (1024, 64, 960),
        (3000, 500, 20000),
    ):
        choice = select("gemm", S, "nn", extents, H200)
        m, n, k = extents
        assert choice.config == big and choice.splits > 1, extents
        assert choice.splits * partial_bytes(m, n, S) <= MOST_PARTIALS
        assert k // choice.splits >= 128


@pytest.fixture
def persistent():
    """A Config of a persistent kernel."""
    served = selecting.select("gemm", DTYPES["d"], "nn", (8192,) * 3, known("h200")).config
    return replace(served, persistent=True)


@pytest.mark.parametrize("tiles_per_block", [1, 2])
def test_blocks_that_give_way_share_few_tiles(persistent, tiles_per_block):
    """A block of a share of them is over sooner than one of a whole tile; of more tiles none is shared."""
    blocks, k_tiles = H200.sm_count * persistent.min_blocks, 100
    how = k_tiles * persistent.BLK_K, H200, True, tiles_per_block
    few = blocks * tiles_per_block // 3
    assert tile_schedule_of(persistent, few, *how) == TileSchedule.stream_k(blocks, few, k_tiles)
    many = blocks * tiles_per_block + 1
    schedule = tile_schedule_of(persistent, many, *how)
    assert schedule.k_iters_per_block == 0 and schedule.full_waves <= tiles_per_block


@pytest.mark.parametrize("beyond", [0, 1])
def test_only_so_many_k_tiles_are_numbered(persistent, beyond):
    """Kernels count the k-tiles of the two last waves in 32 bits."""
    blocks = H200.sm_count * persistent.min_blocks
    k_tiles = MAX_K_TILES // (2 * blocks) + beyond
    for k in (k_tiles * persistent.BLK_K, (k_tiles - 1) * persistent.BLK_K + 1):
        tiles = 2 * blocks - 1  # in stream-K all of these are shared
        schedule = tile_schedule_of(persistent, tiles, k, H200, stream_k=True)
        whole = TileSchedule.of_whole_tiles(blocks, tiles)
        assert schedule == (whole if beyond else TileSchedule.stream_k(blocks, tiles, k_tiles))
        assert schedule.begin(blocks) <= MAX_K_TILES


@pytest.mark.parametrize("beyond", [0, 1])
def test_only_so_many_tiles_are_numbered(persistent, beyond):
    blocks = H200.sm_count * persistent.min_blocks
    tiles = MAX_K_TILES - blocks + beyond
    for stream_k in (False, True):
        assert (tile_schedule_of(persistent, tiles, 64, H200, stream_k) is None) == bool(beyond)


def test_the_workspace_has_a_limit():
    for extents in (
        (2000, 2000, 100_000),
        (2900, 1400, 50_000),
        (64, 64, 65536),
        (1, 1, 10**6),
        (3, 70_000, 4096),
    ):
        for dtype in DTYPES.values():
            config = select("gemm_simt", dtype, "nn", extents, H200).config
            for split in split_times(config, 1e-9, extents, H200):
                assert split.splits <= 1 or split.splits * partial_bytes(*extents[:2], dtype) <= 32 << 20


def test_a_last_slice_that_is_short_costs_no_launch(levels):
    config = select("gemm_simt", S, "nn", LONG, H200).config
    even, odd = (next(split_times(config, 6e-10, (64, 64, k), H200, 32)).seconds for k in (65536, 65535))
    assert odd == pytest.approx(even, rel=1e-3)


def test_slices_are_no_tiles_of_persistent_blocks(persistent):
    """These share the last tiles of all of k instead."""
    assert [time.splits for time in split_times(persistent, 6e-10, LONG, H200)] == [0]
    assert not list(split_times(persistent, 6e-10, LONG, H200, 32))
    with override(persistent.STEM, persistent), override("splits", 5):
        assert select("gemm", DTYPES["d"], "nn", LONG, H200).splits == 1


def test_a_batch_is_not_cut():
    assert select("gemm", S, "nn", (*LONG, 2), H200).splits == 1
    with override("splits", 4):
        assert select("gemm", S, "nn", (*LONG, 2), H200).splits == 1
        assert select("gemm", S, "nn", (*LONG, 1), H200).splits == 4


def test_splits_can_be_forced_as_far_as_k_goes():
    with override("splits", 7):
        assert [select("gemm", S, "nn", (64, 64, k), H200).splits for k in (1, 4, 8, 27, 28, 9999)] == [
            1,
            1,
            1,
            3,
            3,
            7,
        ]
        assert select("gemm", DTYPES["z"], "nn", (64, 64, 7), H200).splits == 3
    with override("splits", 1):
        assert select("gemm", S, "nn", LONG, H200).splits == 1
    assert select("gemm", S, "nn", LONG, H200).splits > 1


def test_what_no_config_cuts_is_computed_at_once():
    """Of a transposed product with one conjugated factor the package has persistent kernels alone."""
    extents, conjs = (65, 33, 336, 1), (False, True)
    with override("splits", 7):
        for dtype in DTYPES.values():
            for layout in ("nn", "nt", "tn", "tt"):
                choice = select("gemm", dtype, layout, extents, H200, conjs=conjs)
                assert choice.splits == 7 or not cuts_k(choice.config)


def test_a_forced_config_is_not_cut_unless_that_is_forced_too():
    forced = config()
    with override("gemm_simt", forced):
        assert select("gemm", S, "nn", LONG, H200) == selecting.KernelChoice(forced, "override", 1)
        with override("splits", 5):
            assert select("gemm", S, "nn", LONG, H200) == selecting.KernelChoice(forced, "override", 5)
        assert select("gemm", S, "nn", LONG, H200).splits == 1


def test_splits_are_chosen_once(monkeypatch):
    first = select("gemm", S, "nn", LONG, H200)
    monkeypatch.setattr(dispatch_gemm, "split_times", None)
    assert select("gemm", S, "nn", LONG, H200) is first


def test_counts_of_slices_grow_by_a_third_or_a_half():
    """From 2 on: powers of two, and three times those."""
    assert sorted(COUNTS) == list(COUNTS) and COUNTS[0] == 2
    assert {after / before for before, after in pairwise(COUNTS[1:])} == {4 / 3, 3 / 2}
