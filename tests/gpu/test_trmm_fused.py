"""TRMM as one launch in place: exact on integers, within its bound, the same bits always."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.error_bounds import trmm_error
from pyblasgpu.testing.reference import integers
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


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("side, uplo", list(product(Side, Uplo)))
def test_stacks(letter, side, uplo):
    """Integers, exactly, in place and not; T by columns, by rows and conjugated, shared or not; in s with
    large tiles, too.
    """
    rng, dtype, lower = np.random.default_rng(3), DTYPES[letter], uplo is Uplo.LOWER
    sizes = [(5, 65, 3), (37, 130, 200), (300, 70, 64), *[(1100, 66, 70)] * (letter == "s")]
    for (count, n, r), order, trans in product(sizes, ("CC", "CF", "FF"), (Trans.NO, Trans.CONJ)):
        shape = (n, r) if side is Side.LEFT else (r, n)
        t, b = integers(rng, (1 if n == 130 else count, n, n), dtype), integers(rng, (count, *shape), dtype)
        seen = np.tril(t) if lower else np.triu(t)
        seen = seen.conj().swapaxes(1, 2) if trans is Trans.CONJ else seen
        t[:, ~(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T)] = np.nan
        expected = 2 * (seen @ b if side is Side.LEFT else b @ seen)
        t, b = (_stored(x, each) for x, each in zip((t, b), order, strict=True))
        options = {"alpha": 2, "side": side, "lower": lower, "trans": trans}
        for out in (_stored(np.full(b.shape, np.nan, dtype.name), order[1]), b):
            result = pyblasgpu.trmm(t, b, out=out, **options)
            np.testing.assert_array_equal(result.get(), expected, f"{count} {n} {r} {order} {trans}")


def _stored(x, order):
    """A stack on the device, of matrices by rows or by columns."""
    return cupy.array(x) if order == "C" else cupy.array(x.swapaxes(1, 2), order="C").swapaxes(1, 2)


@pytest.mark.parametrize("letter", DTYPES)
def test_what_is_not_finite_stays_apart_in_stacks(letter):
    dtype = DTYPES[letter]
    t, b = cupy.ones((40, 200, 200), dtype.name), cupy.ones((40, 200, 30), dtype.name)
    b[7, 100, 5] = NAN
    spoilt = ~np.isfinite(pyblasgpu.trmm(t, b, lower=True).get())
    assert spoilt[7, 100:, 5].all() and spoilt.sum() == 100


def test_views_without_a_unit_stride_take_the_recursion():
    t, b = (reals(DTYPES["d"], 300, 300, seed=seed) for seed in (1, 2))
    wide = cupy.asarray(np.repeat(b, 2, axis=0), order="F")[::2]
    expected = np.tril(t) @ b
    np.testing.assert_allclose(pyblasgpu.trmm(cupy.asarray(t), wide, lower=True).get(), expected, rtol=1e-10)


def test_a_plan():
    check_plan(pyblasgpu.plan_trmm, 700, 2)
