"""Packed layouts against the figure they come from, and the rules of the kernel that writes them."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.pack import Pack
from pyblasgpu.kernels.packing import LAYOUTS, Packing
from pyblasgpu.tuning.oracle import packed
from pyblasgpu.types import DTYPES

EXTENTS = [(1, 1), (4, 3), (12, 9), (5, 3), (4, 7), (11, 10), (40, 1), (1, 40)]


def drawn(layout: str, blk: int, depth: int, pad: int, values: np.ndarray) -> np.ndarray:
    """Figure 3 of Matsumoto et al. (2012), cut out piece by piece, of `values` with shape (extent, k)."""
    extent, k = values.shape
    whole = np.zeros((-(-k // depth) * depth, -(-extent // blk) * blk))
    whole[:k, :extent] = values.T
    if layout == "row":
        return whole.ravel()
    columns = [whole[:, first : first + blk] for first in range(0, whole.shape[1], blk)]
    columns = [np.pad(column, ((0, 0), (0, pad))) for column in columns]
    if layout == "cbl":
        return np.concatenate([column.ravel() for column in columns])
    rows = range(0, len(whole), depth)
    return np.concatenate([column[row : row + depth].ravel() for row in rows for column in columns])


@pytest.mark.parametrize("extent, k", EXTENTS)
@pytest.mark.parametrize("layout, pad", [("row", 0), ("cbl", 0), ("cbl", 2), ("rbl", 0), ("rbl", 1)])
def test_places_are_those_of_the_figure(layout, pad, extent, k):
    packing = Packing(layout, 4, 3, pad)
    values = np.arange(1.0, extent * k + 1).reshape(extent, k)
    found = packed(packing, values)
    assert found.shape == (packing.size(extent, k),)
    assert np.array_equal(found, drawn(layout, 4, 3, pad, values))


@pytest.mark.parametrize("layout", ["cbl", "rbl"])
def test_a_stripe_is_one_run(layout):
    """What a GEMM kernel copies: `stripe_size` elements from where a tile and a stripe begin."""
    packing, extent, k = Packing(layout, 4, 3, 2), 11, 10
    values = np.arange(1.0, extent * k + 1).reshape(extent, k)
    whole = np.zeros((12, 12))
    whole[:extent, :k] = values
    elements, steps = packed(packing, values), packing.steps(extent, k)
    for tile in range(packing.tiles(extent)):
        for stripe in range(packing.stripes(k)):
            first = tile * steps.tile + stripe * steps.stripe
            run = elements[first : first + packing.stripe_size].reshape(3, packing.lead)
            assert np.array_equal(run[:, :4], whole[4 * tile :, 3 * stripe :][:4, :3].T)
            assert not run[:, 4:].any()


def test_stripes_of_a_tile_follow_one_another_in_column_blocks_alone():
    steps = {layout: Packing(layout, 4, 3).steps(11, 10) for layout in LAYOUTS}
    assert steps == {"row": (4, 36, 12), "cbl": (48, 12, 4), "rbl": (12, 36, 4)}


@pytest.mark.parametrize(
    "arguments, rule",
    [
        (("nzl", 4, 3), "layout: layout in (row, cbl, rbl) does not hold for layout='nzl'"),
        (("row", 0, 3), "stripe: blk >= 1 and depth >= 1 does not hold for blk=0, depth=3"),
        (("cbl", 4, 0), "stripe: blk >= 1 and depth >= 1 does not hold for blk=4, depth=0"),
        (("rbl", 4, 3, -1), "pad: pad >= 0 does not hold for pad=-1"),
        (("row", 4, 3, 2), "row_unpadded: pad == 0 where layout is row does not hold for pad=2"),
    ],
)
def test_rules_of_a_layout(arguments, rule):
    with pytest.raises(ConfigError) as caught:
        Packing(*arguments)
    assert str(caught.value) == rule


@pytest.mark.parametrize(
    "changes, rule",
    [
        ({"BLK_K": 0}, "stripe"),
        ({"PAD": -4}, "stripe"),
        ({"BLK": 66}, "vectors"),
        ({"PAD": 2}, "vectors"),
        ({"DIM": 2048}, "max_threads"),
        ({"DIM": 48}, "whole_warps"),
        ({"TILE": 48}, "lines"),
        ({"TILE": 0}, "lines"),
        ({"TILE_K": 12}, "threads_tile"),
        ({"TILE_K": 0}, "threads_tile"),
        ({"TILE": 128, "TILE_K": 9, "DIM": 32}, "odd_rows"),
    ],
)
def test_rules_of_the_kernel(changes, rule):
    with pytest.raises(ConfigError) as caught:
        Pack("s", **changes)
    assert caught.value.rule == rule


@pytest.mark.parametrize("letter", DTYPES)
def test_the_defaults_serve_whatever_vectors_fit(letter):
    config, size = Pack(letter), DTYPES[letter].itemsize
    for blk, depth, pad in ((16, 1, 0), (128, 16, 4), (96, 12, 8)):
        served = config.serving(Packing("cbl", blk, depth, pad))
        assert served == Pack(letter, blk, depth, pad)
        assert served.shared_bytes == 64 * 33 * size
        tiles = -(-1000 // blk) * (blk + pad) / 64, -(-500 // depth) * depth / 32
        assert served.grid(1000, 500) == np.prod(np.ceil(tiles))


@pytest.mark.parametrize("letter", DTYPES)
def test_a_warp_meets_no_bank_twice(letter):
    """Shared memory has 32 banks of 4 bytes; 8 bytes a thread go in two turns, 16 in four."""
    config, dtype = Pack(letter), DTYPES[letter]
    row, vec = config.TILE_K + 1, config.VEC
    turns = {4: 32, 8: 16, 16: 8}
    lanes = np.arange(32)
    stored = lanes % 8 * vec * row + lanes // 8  # a column of a vector, as the threads that store read it
    reads = [stored * dtype.itemsize + v * row * dtype.itemsize for v in range(vec)]
    part, element = lanes % dtype.parts, lanes // dtype.parts
    fills = [(place * dtype.parts + part) * dtype.real_size for place in (element, element * row)]
    for places, width in ((reads, dtype.itemsize), (fills, dtype.real_size)):
        for place in places:
            for turn in place.reshape(-1, turns[width]):
                words = (turn[:, None] + np.arange(0, width, 4)) // 4
                assert len(set((words % 32).ravel())) == words.size
