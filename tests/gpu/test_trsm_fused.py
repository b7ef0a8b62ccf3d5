"""TRSM as one launch: exact on integers, within its bound, the same bits always."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.error_bounds import trsm_error
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .precompile import asked_for
from .running import NAN, check_plan, check_same_bits, cupy, flags, reals, whole_runs

ROWS = 100  # of triangles in which the recursion ends
compiled, in_force = asked_for(
    "trsm_algorithm", partial(whole_runs, "trsm"), "trsm_fused", f"trsm_fused_{ROWS}"
)


def solvable(dtype, n):
    """A triangle of moderate condition, whichever half is read."""
    t = reals(dtype, n, n) / n
    np.fill_diagonal(t, 2)
    return t


@pytest.mark.parametrize("letter", DTYPES)
def test_exact(letter):
    for run in whole_runs("trsm", letter):
        run.check()


@pytest.mark.parametrize("letter", DTYPES)
def test_exact_where_the_recursion_ends_in_launches(letter):
    with override("trsm_algorithm", f"trsm_fused_{ROWS}"):
        for run in whole_runs("trsm", letter):
            run.check()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("side, uplo", list(product(Side, Uplo)))
def test_error_bound(letter, side, uplo):
    dtype, n = DTYPES[letter], 1000
    t, b = solvable(dtype, n), reals(dtype, n, n, seed=8)
    case = TriangularCase(dtype, n, n, side, uplo)
    result = pyblasgpu.trsm(cupy.asarray(t), cupy.asarray(b), **flags(case)).get()
    assert trsm_error(1, t, b, result, side, uplo, Trans.NO, Diag.NON_UNIT) < 1


@pytest.mark.parametrize("letter", DTYPES)
def test_the_same_bits_every_time(letter):
    """A tile that were read before it is solved would differ sooner or later."""
    dtype, n = DTYPES[letter], 2500
    t, b = (cupy.asarray(x, order="F") for x in (solvable(dtype, n), reals(dtype, n, n, seed=2)))
    check_same_bits("trsm", t, b)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("spoil", [NAN, np.inf])
def test_what_is_not_finite_spoils_only_what_depends_on_it(letter, spoil):
    n, row, dtype = 700, 333, DTYPES[letter]
    t, b = solvable(dtype, n).astype(dtype.name), np.ones((n, 200), dtype.name)
    clean = pyblasgpu.trsm(cupy.asarray(t, order="F"), cupy.asarray(b), lower=True).get()
    b[row, 77] = spoil
    result = pyblasgpu.trsm(cupy.asarray(t, order="F"), cupy.asarray(b), lower=True).get()
    spoilt = ~np.isfinite(result)
    assert spoilt[row:, 77].all() and spoilt.sum() == n - row
    np.testing.assert_array_equal(result[~spoilt], clean[~spoilt])


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("diagonal", [0.0, 1e-30])
def test_a_diagonal_without_a_safe_reciprocal(letter, diagonal):
    n, row, dtype = 700, 333, DTYPES[letter]
    t, b = np.eye(n, dtype=dtype.name, order="F"), np.ones((n, 200), dtype.name)
    t[row, row] = diagonal  # zero times infinity is not a number, in what comes after
    result = pyblasgpu.trsm(cupy.asarray(t, order="F"), cupy.asarray(b), lower=True).get()
    if diagonal:
        np.testing.assert_allclose(result[row], 1 / diagonal, rtol=1e-6)
    else:
        assert not np.isfinite(result[row]).any() and (dtype.is_complex or np.isposinf(result[row]).all())
    np.testing.assert_array_equal(result[:row], 1)
    np.testing.assert_array_equal(result[row + 1 :], 1 if diagonal else NAN)


def test_a_plan():
    check_plan(pyblasgpu.plan_trsm, 700, 0.5)
