"""Triangles of C by the GEMM kernels and `sum_partials`: nothing else is written, Hermitian diagonals are real."""

from __future__ import annotations

from itertools import product

import pytest

from pyblasgpu.errors import ConfigError
from pyblasgpu.kernels import gemm_mma, gemm_tile
from pyblasgpu.kernels.part import turned

from . import test_gemm_mma, test_gemm_tile, test_sum_partials

REAL, HERMITIAN = ("lower", "upper"), ("hermitian", "hermitian_upper")
PARTS = [*product("sdcz", REAL), *product("cz", HERMITIAN)]
#: Tiles of 16 x 8: crossed by the diagonal, covered, not met, and cut off by the matrix.
ORDERS = (1, 8, 16, 17, 40)


@pytest.mark.parametrize("letter, part", PARTS)
@pytest.mark.parametrize("beta", [0.0, -1.0])
def test_triangles_of_small_tiles(letter, part, beta):
    for order in ORDERS:
        test_gemm_tile.check(
            test_gemm_tile.config(letter, stages=2), order, order, 5, beta=beta, batch=2, part=part
        )


@pytest.mark.parametrize("letter, part", [(letter, part) for letter, part in PARTS if letter in "dz"])
def test_triangles_of_warp_tiles(letter, part):
    """Tiles of 32 x 16."""
    for order, prefetch in ((33, False), (100, True)):
        config = test_gemm_mma.config(letter, prefetch=prefetch)
        test_gemm_tile.check(config, order, order, 9, kernels=gemm_mma, part=part)


@pytest.mark.parametrize("vec", [1, 2])
def test_covered_tiles_are_written_by_vectors(vec):
    config = test_gemm_tile.config("s", VEC_M=vec)
    for part in REAL:
        test_gemm_tile.check(config, 64, 64, 4, part=part)


@pytest.mark.parametrize("part", HERMITIAN)
def test_a_residue_of_the_diagonal_is_dropped(part):
    """alpha need not be real: of her2k's terms only the sum is."""
    test_gemm_tile.check(test_gemm_tile.config("z"), 20, 20, 7, conj_b=True, alpha=1 - 2j, part=part)


@pytest.mark.parametrize("letter, part", PARTS)
def test_triangles_of_sums(letter, part):
    for beta in (0.0, -1.0):
        test_sum_partials.check(letter, 21, 21, 3, beta=beta, part=part)


def test_what_there_is_not():
    with pytest.raises(ConfigError, match="part in"):
        gemm_tile.source(test_gemm_tile.config(), part="strict")
    with pytest.raises(ConfigError, match="part in"):
        gemm_tile.source(test_gemm_tile.config(stages=2, persistent=True), part="lower")


@pytest.mark.parametrize("part", ["all", *REAL, *HERMITIAN])
def test_transposition(part):
    assert turned(turned(part)) == part
    assert (turned(part) == part) == (part == "all")
