"""`trsm_mma` on small tiles: every variant, instruction and shape, exactly; and how it divides."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu import launch as launching
from pyblasgpu.kernels import trsm_mma
from pyblasgpu.kernels.gemm_mma import SHAPES
from pyblasgpu.kernels.triangle import Variant
from pyblasgpu.kernels.trsm_mma import TrsmMma
from pyblasgpu.types import DTYPES

from . import test_leaves
from .test_leaves import VARIANT, launch

SMALL = TrsmMma("d", ORDER=32, BLK=8, WARPS=2, MMA_M=8, MMA_K=4)
VARIANTS = list(product((False, True), repeat=3))


def check(letter="d", n=21, r=11, kernels=trsm_mma, config=SMALL, **options) -> None:
    """`test_leaves.check` of a `trsm_mma`, by default of tiles of 8 and blocks of 16 columns."""
    test_leaves.check("trsm", letter, n, r, kernels=kernels, config=replace(config, dtype=letter), **options)


def solve(t, b, variant=VARIANT, kernels=trsm_mma) -> np.ndarray:
    """What becomes of `b`."""
    x = np.array(b, order="F")
    launch(
        kernels, replace(SMALL, dtype="z" if np.iscomplexobj(t) else "d"), np.asfortranarray(t), x, variant, 1
    )
    return x


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("unit, t_by_rows, b_by_rows", VARIANTS)
def test_every_variant(letter, unit, t_by_rows, b_by_rows):
    conj = letter == "z" and unit != b_by_rows
    check(letter, unit=unit, conj=conj, t_by_rows=t_by_rows, b_by_rows=b_by_rows)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_instruction(letter, shape):
    config = replace(SMALL, ORDER=64, BLK=16, MMA_M=shape[0], MMA_K=shape[1])
    check(letter, 61, 17, config=config, conj=letter == "z")


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 25, 31, 32])
@pytest.mark.parametrize("r", [1, 16, 23])
def test_edges(n, r):
    check(n=n, r=r, stages=3)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize(
    "changes",
    [
        {"ORDER": 8},
        {"WARPS": 1},
        {"WARPS": 3},
        {"WARP_N": 16},
        {"WARP_N": 32, "WARPS": 1},
        {"stages": 3},
        {"stages": 4},
        {"BLK": 16},
        {"ORDER": 64, "BLK": 32, "MMA_M": 16, "MMA_K": 8},
    ],
)
def test_every_shape(letter, changes):
    config = replace(SMALL, **changes)
    check(letter, config.ORDER - 3, 21, config=config)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("n", [5, 8, 21])
def test_nothing_is_solved_twice_without_need(monkeypatch, letter, n):
    """Not at the edges of T and B either."""

    def unneeded(*_):
        pytest.fail("solved with divisions")

    monkeypatch.setattr(launching, "_kernels", {})  # equal sources share a kernel
    monkeypatch.setattr(trsm_mma, "careful_solver", lambda *_: unneeded)
    check(letter, n)


@pytest.mark.parametrize("letter", "dz")
def test_batch(letter):
    check(letter, n=11, r=5, batch=3)


@pytest.mark.parametrize("letter", "dz")
def test_views_read_backwards(letter):
    """Negative strides: how an upper triangle becomes a lower one."""
    rng, n, r = np.random.default_rng(5), 13, 6
    upper = np.triu(rng.integers(-3, 4, (n, n))).astype(DTYPES[letter].name)
    np.fill_diagonal(upper, 2)
    x = rng.integers(-3, 4, (n, r)).astype(upper.dtype)
    b, t = np.asfortranarray(upper @ x), np.asfortranarray(upper)
    launch(trsm_mma, replace(SMALL, dtype=letter), t[::-1, ::-1], b[::-1], VARIANT, 1.0)
    assert np.array_equal(b, x)


def test_complex_alpha_and_diagonal():
    t, x = np.tril(np.full((9, 9), 1 - 2j)), np.arange(18).reshape(9, 2) + 1j
    b = np.asfortranarray(t.conj() @ x)
    variant = Variant(unit=False, conj=True, t_by_rows=True, b_by_rows=True)
    launch(trsm_mma, replace(SMALL, dtype="z"), np.asfortranarray(t), b, variant, 3 - 1j)
    np.testing.assert_allclose(b, (3 - 1j) * x, rtol=1e-14)


@pytest.mark.parametrize("spoil", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 5, 12, 20])
@pytest.mark.parametrize("unit", [False, True])
def test_what_is_not_finite_spoils_only_what_depends_on_it(spoil, row, unit):
    t, b = np.tril(np.ones((21, 21))), np.ones((21, 11))
    b[row, 2] = spoil
    x = solve(t, b, Variant(unit, False, True, True))
    expected = np.vstack([np.ones((1, 11)), np.zeros((20, 11))])
    expected[row, 2] = spoil
    expected[row + 1 :, 2] = np.nan if np.isnan(spoil) else x[row + 1 :, 2]
    np.testing.assert_array_equal(x, expected)
    assert not np.isfinite(x[row:, 2]).any()


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("spoil", [np.nan, np.inf])
def test_an_element_of_t_spoils_its_row_and_those_below(letter, spoil):
    t = np.tril(np.ones((21, 21))).astype(DTYPES[letter].name)
    t[13, 9] = spoil
    x = solve(t, np.ones((21, 3)).astype(t.dtype))
    assert np.isfinite(x[:13]).all() and not np.isfinite(x[13:]).any()


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 3e300, np.inf])
def test_divides_where_a_reciprocal_would_fail(letter, scale):
    """Denormal, tiny, huge and infinite diagonals, in one row of many."""
    t = np.eye(11).astype(DTYPES[letter].name)
    t[9, 9] = scale
    right = np.arange(1.0, 6) * (scale if np.isfinite(scale) else 1)
    b = np.ones((11, 5)).astype(t.dtype)
    b[9] = right
    x = solve(t, b)
    np.testing.assert_array_max_ulp(x[9].real, right / scale, 1)
    assert np.array_equal(np.delete(x, 9, 0), np.ones((10, 5)))


def test_an_entry_too_large_for_its_diagonal():
    """Divided by the diagonal it overflows; the outcome does not."""
    t, x = np.eye(9), np.ones((9, 2))
    t[4, 4], t[4, 2] = 1e-20, 1e300
    x[4], x[2] = 1e20, 1e-300
    np.testing.assert_allclose(solve(t, t @ x), x, rtol=1e-14)


@pytest.mark.parametrize("letter", "dz")
def test_a_zero_on_the_diagonal_is_not_finite(letter):
    t = np.eye(11).astype(DTYPES[letter].name)
    t[9, 9] = 0
    x = solve(t, np.ones((11, 3)).astype(t.dtype))
    assert not np.isfinite(x[9]).any() and np.array_equal(x[:9], np.ones((9, 3)))


@pytest.mark.parametrize("letter", "dz")
def test_a_diagonal_matrix_divides(letter):
    """As good as divisions: an ulp."""
    rng = np.random.default_rng(2)
    d, b = rng.uniform(1, 10, 17), rng.uniform(-1, 1, (17, 4))
    x = solve(np.diag(d).astype(DTYPES[letter].name), b.astype(DTYPES[letter].name))
    np.testing.assert_array_max_ulp(x.real, b / d[:, None], 1)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("diagonal", [1.0, 1e-3, 1e3])
def test_backward_error_on_hard_triangles(letter, diagonal):
    """Lower with entries U(-4, 4): substitution stays within n u |T| |X|."""
    dtype, rng, n = DTYPES[letter], np.random.default_rng(3), 32
    wide = np.clongdouble if dtype.is_complex else np.longdouble
    t = np.tril(rng.uniform(-4, 4, (n, n)), -1).astype(dtype.name)
    if dtype.is_complex:
        t += 1j * np.tril(rng.uniform(-4, 4, (n, n)), -1)
    np.fill_diagonal(t, diagonal * rng.uniform(1, 2, n))
    b = rng.uniform(-1, 1, (n, 3)).astype(dtype.name)
    x = solve(t, b)
    residual = abs(t.astype(wide) @ x.astype(wide) - b)
    bound = n * dtype.unit_roundoff * (abs(t).astype(np.longdouble) @ abs(x))
    assert (residual <= bound * (np.sqrt(8) if dtype.is_complex else 1)).all()


@pytest.mark.parametrize(
    "changes, rule",
    [
        ({"dtype": "s"}, "double"),
        ({"MMA_M": 8, "MMA_K": 8}, "shape"),
        ({"BLK": 12}, "tile"),
        ({"MMA_M": 16, "BLK": 24, "ORDER": 48}, "tile"),
        ({"ORDER": 36}, "order"),
        ({"ORDER": 0}, "order"),
        ({"WARP_N": 12}, "lane_columns"),
        ({"stages": 1}, "ring"),
        ({"WARPS": 33}, "max_threads"),
        ({"WARPS": 0}, "max_threads"),
    ],
)
def test_rules(changes, rule):
    with pytest.raises(ConfigError) as broken:
        replace(SMALL, **changes)
    assert broken.value.rule == rule
