"""The CPU backend beside references that use what an entry depends on, and nothing else."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyblasgpu
from pyblasgpu import blas
from pyblasgpu.cpu.numba import level3 as numba_cpu
from pyblasgpu.cpu.scipy import level3 as cpu
from pyblasgpu.linalg import solve_triangular
from pyblasgpu.testing import reference as oracle
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

NAN, INF = float("nan"), float("inf")
SPECIAL = NAN, INF, -INF


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


# ------------------------------------------------------------------------------------------ a reference


def reference(name: str, alpha, a, b, side, uplo, trans, diag) -> np.ndarray:
    """TRMM and TRSM by rows, without BLAS: only elements that are read are touched."""
    with np.errstate(all="ignore"):
        op, lower = oracle.apply(a, trans), (uplo is Uplo.LOWER) != (trans is not Trans.NO)
        if side is Side.LEFT:
            return _by_rows(name, alpha, op, b, lower, diag)
        return _by_rows(name, alpha, op.T, b.T, not lower, diag).T


def _by_rows(name: str, alpha, op, b, lower: bool, diag: Diag) -> np.ndarray:
    n, result = len(b), b if alpha == 1 else b.dtype.type(alpha) * b
    start, result = result, result.copy()
    for i in range(n) if lower else range(n - 1, -1, -1):
        others = range(i) if lower else range(i + 1, n)
        if name == "trsm":
            for j in others:
                result[i] -= op[i, j] * result[j]
            if diag is Diag.NON_UNIT:
                result[i] /= op[i, i]
        else:
            result[i] = start[i] if diag is Diag.UNIT else op[i, i] * start[i]
            for j in others:
                result[i] += op[i, j] * start[j]
    return result


def assert_same(actual, expected):
    """Equal where finite; real ones elsewhere too (which of Inf and NaN a complex product gives is open)."""
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    np.testing.assert_array_equal(actual[finite], expected[finite])
    if actual.dtype.kind == "f":
        np.testing.assert_array_equal(actual, expected)


# ----------------------------------------------------------------------------------------- dependence


def test_the_row_above_an_infinite_one():
    actual = pyblasgpu.trmm([[2, 0], [1, 2]], [[1], [INF]], lower=True)
    np.testing.assert_array_equal(actual, [[2], [INF]])


@given(st.data(), st.sampled_from(["trmm", "trsm"]))
def test_special_values_reach_what_depends_on_them_and_nothing_else(data, name):
    dtype = DTYPES[data.draw(st.sampled_from("sdcz"))]
    m, n = (data.draw(st.integers(1, 12)) for _ in range(2))
    case = TriangularCase(dtype, m, n, *(data.draw(st.sampled_from(x)) for x in (Side, Uplo, Trans, Diag)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = oracle.triangle(rng, case), oracle.integers(rng, (m, n), dtype)
    read = np.argwhere(np.isfinite(a) & ~np.eye(len(a), dtype=bool))
    for _ in range(data.draw(st.integers(0, 2))):
        b[data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))] = data.draw(
            st.sampled_from(SPECIAL)
        )
    if len(read) and data.draw(st.booleans()):
        a[tuple(read[data.draw(st.integers(0, len(read) - 1))])] = data.draw(st.sampled_from(SPECIAL))
    flags, alpha = (case.side, case.uplo, case.trans, case.diag), data.draw(st.sampled_from([1, -2]))
    actual, unharmed = oracle.fenced(b, data.draw(st.sampled_from("CF")))
    getattr(cpu, name)(alpha, a, actual, *flags)
    assert_same(actual, reference(name, alpha, a, b, *flags))
    assert unharmed()


@pytest.mark.parametrize("name", ["trmm", "trsm"])
@pytest.mark.parametrize("letter", "sdcz")
def test_special_values_in_blocked_sizes(name, letter, rng):
    """Larger than the blocks of any BLAS's kernel for triangles; what does not depend keeps its bits."""
    dtype = DTYPES[letter]
    for side, uplo, order in product(Side, Uplo, "CF"):
        case = TriangularCase(dtype, 150, 150, side, uplo)
        a, b = oracle.triangle(rng, case), oracle.integers(rng, (150, 150), dtype)
        with_nan = np.array(b, order=order)
        with_nan[(77, 3) if side is Side.LEFT else (3, 77)] = NAN
        clean = b.copy(order="K")
        for x in (clean, with_nan):
            getattr(cpu, name)(1, a, x, side, uplo, Trans.NO, Diag.NON_UNIT)
        downwards = (uplo is Uplo.LOWER) == (side is Side.LEFT)
        hit = np.zeros((150, 150), bool)
        hit[slice(77, None) if downwards else slice(78), 3] = True
        hit = hit if side is Side.LEFT else hit.T
        if name == "trmm":
            np.testing.assert_array_equal(np.isnan(with_nan), hit)
            np.testing.assert_array_equal(with_nan[~hit], clean[~hit])
        else:  # its rounded results may grow without bound, so only where the other one is finite
            kept = ~hit & np.isfinite(clean)
            assert np.isfinite(with_nan[kept]).all() and not np.isfinite(with_nan[hit]).any()


def test_overflow_stays_where_it_arises():
    """Finite in, infinite in between: alpha is not to meet b before the triangle."""
    a, b = np.array([[1e-300, 0], [1, 1e-300]]), np.array([[1e300], [1e300]])
    np.testing.assert_allclose(pyblasgpu.trmm(a, b, alpha=1e10, lower=True), [[1e10], [INF]], rtol=1e-15)
    x = pyblasgpu.trsm(np.array([[1e-300, 0], [0, 1]]), np.array([[1e300, 0], [5, 6]]), lower=True)
    np.testing.assert_array_equal(x, [[INF, 0], [NAN, 6]])


# ------------------------------------------------------------------------------------------- division


@pytest.mark.parametrize("letter", "sd")
def test_divisions_are_true_ones(letter):
    limits = np.finfo(DTYPES[letter].name)
    sizes = np.array(
        [limits.smallest_subnormal, limits.tiny / 3, limits.tiny, 0.7, 3, limits.max / 3, limits.max]
    )
    sizes = np.concatenate([sizes, -sizes, [0, INF, NAN]]).astype(limits.dtype)
    # by themselves too: with Inf or NaN in a result all of it is divided once more
    for diagonal, order, right in product(sizes, "CF", [sizes, *sizes[:, None]]):
        x = np.array(right[None, :], order=order)
        cpu.trsm(1, np.array([[diagonal]]), x, Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT)
        with np.errstate(all="ignore"):
            quotients = right / diagonal
        # by a reciprocal, which is right to two roundings, where that is a normal number
        np.testing.assert_allclose(x[0], quotients, rtol=2 * limits.eps, atol=2 * limits.smallest_subnormal)
        if not limits.tiny * 4 <= abs(diagonal) <= limits.max / 8:
            np.testing.assert_array_equal(x[0], quotients)


@pytest.mark.parametrize("host", [cpu, numba_cpu], ids=["scipy", "numba"])
@pytest.mark.parametrize("letter", "cz")
@pytest.mark.parametrize("trans", [Trans.NO, Trans.CONJ])
def test_complex_divisions_neither_overflow_nor_vanish(host, letter, trans):
    """(3+4j) x = 25 d, with everything multiplied by powers of two up to the ends of the range."""
    dtype = np.dtype(DTYPES[letter].name)
    limits = np.finfo(dtype)
    for exponent in (limits.minexp - limits.nmant, limits.minexp, 0, limits.maxexp - 5):
        scale = np.ldexp(limits.dtype.type(1), exponent)
        diagonal, right = np.array([[(3 + 4j) * scale]], dtype), np.array([[25 * scale]], dtype)
        host.trsm(1, diagonal, right, Side.LEFT, Uplo.LOWER, trans, Diag.NON_UNIT)
        assert right[0, 0] == (3 - 4j if trans is Trans.NO else 3 + 4j)


def test_a_subnormal_diagonal_is_none_of_zero():
    tiny = np.diag([5e-324, 1.0])
    np.testing.assert_array_equal(solve_triangular(tiny, [1e-323, 3.0]), [2, 3])
    np.testing.assert_array_equal(pyblasgpu.trsm(tiny, np.zeros((2, 1))), [[0], [0]])


# ----------------------------------------------------------------------------------- the other routines


def multiplied(left, right):
    return (left[:, :, None] * right[None]).sum(1)


@given(st.data(), st.sampled_from(["gemm", "symm", "syrk", "syr2k", "gemmtr"]))
def test_special_values_in_products(data, name):
    """Real ones: every entry is a sum of products of what is read, NaN and Inf as they come out of it."""
    dtype = DTYPES[data.draw(st.sampled_from("sd"))]
    n, k = (data.draw(st.integers(1, 9)) for _ in range(2))
    k = n if name == "symm" else k
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b, c = (oracle.integers(rng, shape, dtype) for shape in ((n, k), (k, n), (n, n)))
    for array in (a, b, c):
        for _ in range(data.draw(st.integers(0, 1))):
            array.flat[data.draw(st.integers(0, array.size - 1))] = data.draw(st.sampled_from(SPECIAL))
    alpha, beta = data.draw(st.sampled_from([0, 1, -2])), data.draw(st.sampled_from([0, 1, -2]))
    uplo = data.draw(st.sampled_from(Uplo))
    kept = np.tri(n, dtype=bool) if uplo is Uplo.LOWER else np.tri(n, dtype=bool).T
    out = np.array(c, order=data.draw(st.sampled_from("CF")))
    options = {"alpha": alpha, "beta": beta, "out": out} | ({} if name == "gemm" else {"lower": uplo})
    with np.errstate(all="ignore"):
        if name == "symm":
            product_ = multiplied(np.where(kept, a, a.T), b)
            a = np.where(kept, a, NAN)
        elif name == "syrk":
            product_ = multiplied(a, a.T)
        elif name == "syr2k":
            b = b.T
            product_ = multiplied(a, b.T) + multiplied(b, a.T)
        else:
            product_ = multiplied(a, b)
        expected = np.zeros_like(c) if alpha == 0 else dtype_scaled(alpha, product_)
        expected = expected if beta == 0 else expected + dtype_scaled(beta, c)
    inputs = (a,) if name == "syrk" else (a, b)
    getattr(pyblasgpu, name)(*inputs, **options)
    if name in ("syrk", "syr2k", "gemmtr"):
        expected = np.where(kept, expected, c)
    np.testing.assert_array_equal(out, expected)


def dtype_scaled(scalar, array):
    return array if scalar == 1 else array.dtype.type(scalar) * array


# -------------------------------------------------------------------------------------------- warnings


@pytest.mark.parametrize("letter", "sdcz")
def test_no_warning_and_no_error_of_numpys_escapes(letter):
    name = DTYPES[letter].name
    values = np.array([[1, INF, NAN], [1e30, 1e-40, -INF], [0, -1e30, 2]], name)
    routines = [
        getattr(pyblasgpu, each)
        for each in ("gemm", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "trsm")
    ]
    numbers = 0, 1, 2, INF, NAN, 1e300, 5e-324
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for routine, alpha, beta, order in product(routines, numbers, numbers, "CF"):
            inputs = [values] * (1 if routine.__name__ in ("syrk", "herk") else 2)
            options = {} if routine.__name__ in ("trmm", "trsm") else {"beta": beta}
            routine(*inputs, alpha=alpha, out=np.array(values, order=order), **options)
        solve_triangular(values, values, check_finite=False)


def test_alpha_0_and_beta_inf():
    out = np.zeros((2, 2))
    with np.errstate(all="raise"):
        pyblasgpu.gemm(np.eye(2), np.eye(2), alpha=0, beta=INF, out=out)
    assert np.isnan(out).all()


def test_casts_of_scalars_are_silent_too():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert blas.strsm(1e300, [[1.0]], [1.0])[0] == INF
