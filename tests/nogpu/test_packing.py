"""Packed layouts against the figure they come from, and the rules of the kernel that writes them."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels.copy.pack import Pack, ThreadTile
from pyblasgpu.kernels.copy.packing import LAYOUTS, Packing
from pyblasgpu.testing.reference import packed
from pyblasgpu.types import DTYPES

EXTENTS = [(1, 1), (4, 3), (12, 9), (5, 3), (4, 7), (11, 10), (40, 1), (1, 40)]


def drawn(layout: str, blk: int, depth: int, pad: int, values: np.ndarray) -> np.ndarray:
    """Figure 3 of Matsumoto et al. (2012), cut out tile by tile, of `values` with shape (extent, k)."""
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
def test_addresses_are_those_of_the_figure(layout, pad, extent, k):
    packing = Packing(layout, 4, 3, pad)
    values = np.arange(1.0, extent * k + 1).reshape(extent, k)
    actual = packed(packing, values)
    assert actual.shape == (packing.size(extent, k),)
    assert np.array_equal(actual, drawn(layout, 4, 3, pad, values))


@pytest.mark.parametrize("layout", ["cbl", "rbl"])
def test_a_k_tile_is_one_run(layout):
    """What a GEMM kernel copies: `k_tile_size` elements from where a tile and a k-tile begin."""
    packing, extent, k = Packing(layout, 4, 3, 2), 11, 10
    values = np.arange(1.0, extent * k + 1).reshape(extent, k)
    whole = np.zeros((12, 12))
    whole[:extent, :k] = values
    elements, steps = packed(packing, values), packing.steps(extent, k)
    for tile in range(packing.tiles(extent)):
        for k_tile in range(packing.k_tiles(k)):
            first = tile * steps.tile + k_tile * steps.k_tile
            run = elements[first : first + packing.k_tile_size].reshape(3, packing.ld)
            assert np.array_equal(run[:, :4], whole[4 * tile :, 3 * k_tile :][:4, :3].T)
            assert not run[:, 4:].any()


def test_k_tiles_of_a_tile_follow_one_another_in_column_blocks_alone():
    steps = {layout: Packing(layout, 4, 3).steps(11, 10) for layout in LAYOUTS}
    assert steps == {"row": (4, 36, 12), "cbl": (48, 12, 4), "rbl": (12, 36, 4)}


@pytest.mark.parametrize(
    "arguments, rule",
    [
        (("nzl", 4, 3), "layout: layout in (row, cbl, rbl) does not hold for layout='nzl'"),
        (("row", 0, 3), "k_tile: blk >= 1 and depth >= 1 does not hold for blk=0, depth=3"),
        (("cbl", 4, 0), "k_tile: blk >= 1 and depth >= 1 does not hold for blk=4, depth=0"),
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
        ({"BLK_K": 0}, "k_tile"),
        ({"PAD": -4}, "k_tile"),
        ({"BLK": 66}, "vectors"),
        ({"PAD": 2}, "vectors"),
        ({"DIM_X": 256}, "max_threads"),
        ({"DIM_Y": 0}, "max_threads"),
        ({"DIM_X": 3}, "whole_warps"),
        ({"DIM_Y": 6}, "side"),
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
        served = config.specialize(Packing("cbl", blk, depth, pad))
        assert served == Pack(letter, blk, depth, pad) and served.shared_bytes == 0
        across, deep = -(-1000 // blk) * (blk + pad), -(-500 // depth) * depth
        vectors, pieces = across * size / 16, deep / (1 if depth == 1 else 4)
        assert served.grid(1000, 500) == np.ceil(vectors / 32) * np.ceil(pieces / 8)


@pytest.mark.parametrize("depth", [8, 16, 32, 12, 6, 1])
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("letter", DTYPES)
def test_pieces_are_parts_of_k_tiles(letter, by_rows, depth):
    """Pieces of a k-tile are all of its k, once."""
    tile = ThreadTile(Pack(letter, BLK_K=depth), by_rows)
    tiles = np.arange(depth // tile.config.depth)
    assert sorted(ks(tile, tiles).ravel()) == list(range(depth))


@pytest.mark.parametrize("depth", [8, 16, 32])
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("letter", DTYPES)
def test_a_warp_moves_whole_sectors(letter, by_rows, depth):
    """Memory gives and takes 32 bytes at once: each access of 16 bytes a thread meets them in pairs.

    Along the extent the lanes of a warp read and write one run; along k, four lanes a run in S, eight in D.
    """
    tile = ThreadTile(Pack(letter, BLK_K=depth), by_rows)
    size, lanes = DTYPES[letter].itemsize, np.arange(32)
    x, y = lanes // tile.SIDE, lanes % tile.SIDE
    k_tile, within = np.divmod(y, depth // tile.config.depth)
    k = k_tile[:, None] * depth + ks(tile, within)
    for kk in k.T:  # what is written, and what is read along the extent
        assert whole_sectors(kk, x)
    for kk in () if by_rows else k[:, :: tile.RUN].T:
        assert whole_sectors(x, kk * size // 16)


def ks(tile: ThreadTile, number: np.ndarray) -> np.ndarray:
    """The k of tiles within a k-tile, as `pack` takes them: a row a tile."""
    begin = number // tile.NEXT * tile.NEXT * tile.config.depth + number % tile.NEXT * tile.RUN
    steps = np.arange(tile.LOADS)[:, None] * tile.STEP + np.arange(tile.RUN)
    return begin[:, None] + steps.ravel()


def whole_sectors(line: np.ndarray, vector: np.ndarray) -> bool:
    """Whether these vectors of 16 bytes, each in a line of memory, make whole sectors of it."""
    places = set(zip(line, vector, strict=True))
    return len(places) == len(line) and all((line, vector ^ 1) in places for line, vector in places)
