"""TRMM as one launch in place: exact on integers, within its bound, the same bits always."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.error_bounds import trmm_error
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .precompile import asked_for
from .running import NAN, check_plan, check_same_bits, cupy, flags, reals, whole_runs

compiled, in_force = asked_for("trmm_algorithm", partial(whole_runs, "trmm"), "trmm_fused")


@pytest.mark.parametrize("letter", DTYPES)
def test_exact(letter):
    for run in whole_runs("trmm", letter):
        run.check()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("side, uplo", list(product(Side, Uplo)))
def test_error_bound(letter, side, uplo):
    dtype, n = DTYPES[letter], 1000
    t, b = reals(dtype, n, n), reals(dtype, n, n, seed=8)
    case = TriangularCase(dtype, n, n, side, uplo)
    result = pyblasgpu.trmm(cupy.asarray(t), cupy.asarray(b), **flags(case)).get()
    assert trmm_error(1, t, b, result, side, uplo, Trans.NO, Diag.NON_UNIT) < 1


@pytest.mark.parametrize("letter", DTYPES)
def test_the_same_bits_every_time(letter):
    """A tile that were written before all others have read it would differ sooner or later."""
    dtype, n = DTYPES[letter], 2500
    t, b = (cupy.asarray(reals(dtype, n, n, seed=seed), order="F") for seed in (1, 2))
    check_same_bits("trmm", t, b)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("spoil", [NAN, np.inf])
def test_what_is_not_finite_spoils_only_what_depends_on_it(letter, spoil):
    n, row, dtype = 700, 333, DTYPES[letter]
    t, b = np.ones((n, n), dtype.name), np.ones((n, 200), dtype.name)
    b[row, 77] = spoil
    for lower in (True, False):
        result = pyblasgpu.trmm(cupy.asarray(t, order="F"), cupy.asarray(b), lower=lower).get()
        spoilt = ~np.isfinite(result)
        rows = slice(row, n) if lower else slice(row + 1)
        assert spoilt[rows, 77].all() and spoilt.sum() == (n - row if lower else row + 1)
        np.testing.assert_array_equal(result[:, 0], np.arange(1, n + 1)[:: 1 if lower else -1])


def test_views_without_a_unit_stride_take_the_recursion():
    t, b = (reals(DTYPES["d"], 300, 300, seed=seed) for seed in (1, 2))
    wide = cupy.asarray(np.repeat(b, 2, axis=0), order="F")[::2]
    expected = np.tril(t) @ b
    np.testing.assert_allclose(pyblasgpu.trmm(cupy.asarray(t), wide, lower=True).get(), expected, rtol=1e-10)


def test_a_plan():
    check_plan(pyblasgpu.plan_trmm, 700, 2)
