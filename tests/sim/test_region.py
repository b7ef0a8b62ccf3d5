"""Triangles of C by the kernels of products and sums: no more is written, Hermitian diagonals are real."""

from __future__ import annotations

from itertools import product
from math import lcm

import pytest
from covering import pairs

from pyblasgpu.kernels.common.options import options_of
from pyblasgpu.kernels.common.tile_schedule import tile_count
from pyblasgpu.kernels.common.tile_scheduler import tile_origins
from pyblasgpu.kernels.gemm import mma as gemm_mma
from pyblasgpu.types import Region

from . import test_gemm_mma, test_gemm_simt, test_persistent, test_split_k_reduce

REAL, HERMITIAN = (Region.LOWER, Region.UPPER), (Region.HERMITIAN_LOWER, Region.HERMITIAN_UPPER)
REGIONS = [*product("sdcz", REAL), *product("cz", HERMITIAN)]
#: Tiles of 16 x 8: crossed by the diagonal, covered, not met, and cut off by the matrix.
ORDERS = (1, 8, 16, 17, 40)


BETAS = (0.0, -1.0)


@pytest.mark.parametrize(
    "letter, region, beta", [*pairs("sd", REAL, BETAS), *pairs("cz", (*REAL, *HERMITIAN), BETAS)]
)
def test_triangles_of_small_tiles(letter, region, beta):
    for order in ORDERS:
        test_gemm_simt.check(
            test_gemm_simt.config(letter, stages=2), order, order, 5, beta=beta, batch=2, region=region
        )


@pytest.mark.parametrize("letter, region", [(letter, region) for letter, region in REGIONS if letter in "dz"])
def test_triangles_of_warp_tiles(letter, region):
    """Tiles of 32 x 16."""
    for order, prefetch in ((33, False), (100, True)):
        config = test_gemm_mma.config(letter, prefetch=prefetch)
        test_gemm_simt.check(config, order, order, 9, kernels=gemm_mma, region=region)


@pytest.mark.parametrize("vec", [1, 2])
def test_covered_tiles_are_written_by_vectors(vec):
    config = test_gemm_simt.config("s", VEC_M=vec)
    for region in REAL:
        test_gemm_simt.check(config, 64, 64, 4, region=region)


@pytest.mark.parametrize("region", HERMITIAN)
def test_a_residue_of_the_diagonal_is_dropped(region):
    """alpha need not be real: of her2k's terms only the sum is."""
    test_gemm_simt.check(test_gemm_simt.config("z"), 20, 20, 7, conj_b=True, alpha=1 - 2j, region=region)


@pytest.mark.parametrize("letter, region", REGIONS)
def test_triangles_of_sums(letter, region):
    for beta in (0.0, -1.0):
        test_split_k_reduce.check(letter, 21, 21, 3, beta=beta, region=region)


@pytest.mark.parametrize(
    "of, schedule, shape",
    pairs(
        [*zip("sd", REAL), *zip("cz", REAL), *zip("cz", HERMITIAN)],
        test_persistent.SCHEDULES,
        [(40, 4, 1, -1.0), (17, 7, 3, 0.0), (49, 5, 1, 0.0)],
    ),
)
def test_persistent_blocks_walk_over_a_triangle(of, schedule, shape):
    (letter, region), (order, blocks, batch, beta) = of, shape
    config = test_persistent.tile(letter, stages=3)
    test_persistent.check(config, order, order, 14, schedule, blocks, batch, beta=beta, region=region)


@pytest.mark.parametrize("region", [*REAL, *HERMITIAN])
@pytest.mark.parametrize("tile", [(1, 1), (1, 2), (3, 1), (2, 3), (4, 6)], ids=str)
@pytest.mark.parametrize("longer", [0, 1, 7, 30])
def test_the_tiles_of_a_triangle(region, tile, longer):
    """Each that it meets is walked over once, and, but for some at the diagonal and the edges, no other.

    Rows below a lower triangle, columns beside an upper one, make it `longer`.
    """
    place, across = tile_origins(*tile, True), region.is_upper
    for order in (1, 2, 3, 5, 12, 13, 30, 61):
        m, n = (order, order + longer) if across else (order + longer, order)
        tiles_m, tiles_n = -(-m // tile[0]), -(-n // tile[1])
        count = tile_count(*tile, m, n, region)
        origins = [tuple(map(int, place(i, tiles_m, tiles_n, options_of(region)))) for i in range(count)]
        assert len(set(origins)) == count
        met = {
            (row, col)
            for row, col in product(range(0, m, tile[0]), range(0, n, tile[1]))
            if (row <= min(col + tile[1], n) - 1 if across else min(row + tile[0], m) - 1 >= col)
        }
        assert met <= set(origins)
        beyond = [(row, col) for row, col in origins if (row, col) not in met]
        square = lcm(*tile)
        assert len(beyond) <= 2 * square**2 * ((order + longer) // square + 1) / (tile[0] * tile[1])
        if square in tile and order % square == 0 and longer % square == 0:
            assert not beyond


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("m, n", [(50, 21), (33, 32)])
def test_a_triangle_with_rows_below(letter, m, n):
    """A lower one, and an upper one with columns beside it; by persistent blocks too."""
    for region, extents in ((Region.LOWER, (m, n)), (Region.UPPER, (n, m))):
        test_gemm_simt.check(test_gemm_simt.config(letter, stages=2), *extents, 5, beta=-1.0, region=region)
        for schedule in test_persistent.SCHEDULES:
            config = test_persistent.tile(letter, stages=3)
            test_persistent.check(config, *extents, 14, schedule, 3, 2, beta=-1.0, region=region)


@pytest.mark.parametrize("region", [Region.ALL, *REAL, *HERMITIAN])
def test_transposition(region):
    assert region.transposed.transposed == region
    assert (region.transposed == region) == (region is Region.ALL)
