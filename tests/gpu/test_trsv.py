"""TRSM with few right-hand sides as one launch: exact on integers, backward stable, the same bits always."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.error_bounds import trsm_error
from pyblasgpu.testing.reference import read_part
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .precompile import asked_for
from .running import NAN, Run, check_plan, cupy, reals
from .triangular_checks import denormal, graded, unit_lower


def runs(letter: str) -> Iterator[Run]:
    dtype = DTYPES[letter]
    for number, flags in enumerate(product(Side, Uplo, Trans, Diag)):
        extents = 257 + 97 * (number % 7), 1 + number % 4
        m, n = extents if flags[0] is Side.LEFT else extents[::-1]
        yield Run("trsm", TriangularCase(dtype, m, n, *flags, alpha=2), "CF"[number % 2], number % 3 > 0)
    for n, columns in ((384, 1), (2048, 1), (5001, 1), (5001, 4)):
        yield Run("trsm", TriangularCase(dtype, n, columns))
        yield Run("trsm", TriangularCase(dtype, n, columns, trans=Trans.TRANS), aligned=False)


compiled, in_force = asked_for("trsm_algorithm", runs, "trsv")


@pytest.mark.parametrize("letter", DTYPES)
def test_exact(letter):
    for run in runs(letter):
        run.check()


@pytest.mark.parametrize("letter", DTYPES)
def test_small_triangles_too(letter):
    for n, columns in product((1, 8, 63, 64, 65, 128, 129, 256), (1, 3)):
        Run("trsm", TriangularCase(DTYPES[letter], n, columns, uplo=Uplo.UPPER)).check()


@pytest.mark.parametrize("letter", DTYPES)
def test_the_same_bits_every_time(letter):
    """Blocks that do not wait for each other would differ sooner or later; flags that stay would hang."""
    n, dtype = 3000, DTYPES[letter]
    t = cupy.asarray(np.tril(reals(dtype, n, n)) / n + 2 * np.eye(n, dtype=dtype.name), order="F")
    b = cupy.asarray(reals(dtype, n, 2), order="F")
    results = [pyblasgpu.trsm(t, b, lower=True) for _ in range(100)]
    assert all((result == results[0]).all() for result in results)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]
    for stream in streams:
        with stream:
            results += [pyblasgpu.trsm(t, b, lower=True) for _ in range(10)]
    cupy.cuda.Device().synchronize()
    assert all((result == results[0]).all() for result in results)


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", [unit_lower, graded, denormal])
def test_backward_error_on_hard_triangles(kind, letter, columns):
    n, dtype, rng = 1000, DTYPES[letter], np.random.default_rng(5)
    diag = Diag.UNIT if kind is unit_lower else Diag.NON_UNIT
    a = kind(rng, n, dtype) * (np.exp(0.3j) if dtype.is_complex else 1)
    a[np.triu_indices(n, 1)] = NAN
    wide = np.result_type(dtype.name, np.float64)
    for lay_out in (np.asfortranarray, np.ascontiguousarray):
        t = lay_out(a.astype(dtype.name))
        b = read_part(t, Uplo.LOWER, diag).astype(wide) @ reals(dtype, n, columns)
        b = np.asfortranarray(b.astype(dtype.name))
        result = pyblasgpu.trsm(cupy.asarray(t), cupy.asarray(b), lower=True, unit_diag=diag).get()
        assert np.isfinite(result).all()
        assert trsm_error(1, t, b, result, Side.LEFT, Uplo.LOWER, Trans.NO, diag) < 1


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("spoil", [NAN, np.inf])
def test_what_is_not_finite_spoils_only_what_depends_on_it(letter, spoil):
    n, row = 1000, 500
    t, b = np.eye(n, dtype=DTYPES[letter].name), np.ones((n, 3), DTYPES[letter].name)
    t[row:, row - 200] = 1
    b[row, 1] = spoil
    t[row + 1 :, row] = 1
    result = pyblasgpu.trsm(cupy.asarray(t, order="F"), cupy.asarray(b, order="F"), lower=True).get()
    spoilt = ~np.isfinite(result)
    assert spoilt[row:, 1].all() and spoilt.sum() == n - row


def test_a_plan():
    check_plan(pyblasgpu.plan_trsm, 1, 0.5)
