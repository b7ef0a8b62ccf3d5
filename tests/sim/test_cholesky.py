"""Cholesky factors, inverses and solutions end to end on the simulator: recursion, levels, layouts, info."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
import special_pivots

from pyblasgpu import lapack
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.kernels.factor.cholesky.potrf_leaf import PotrfLeaf
from pyblasgpu.kernels.factor.cholesky.potrf_panel import PotrfPanel
from pyblasgpu.kernels.factor.triangles.lauum_leaf import LauumLeaf
from pyblasgpu.kernels.factor.triangles.trtri_leaf import TrtriLeaf
from pyblasgpu.kernels.factor.triangles.zero_diagonal import ZeroDiagonal
from pyblasgpu.routines.lapack import trtri
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .test_potrf_leaf import factors, hermitian
from .test_routines import small_kernels

NAN = float("nan")
CASES = [("d", "C", 0), ("d", "F", 1), ("z", "C", 1), ("z", "F", 0), ("s", "C", 1), ("c", "F", 0)]


@pytest.fixture(autouse=True)
def backend(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "sim")


@contextmanager
def small_leaves(letter: str):
    """Leaves of 16 rows, panels of 8; products of small tiles."""
    leaves = {
        "potrf_leaf": PotrfLeaf(letter, 16, 32, 8),
        "potrf_panel": PotrfPanel(letter, 16, 32, 8, 8),
        "trtri_leaf": TrtriLeaf(letter, 16, 32),
        "lauum_leaf": LauumLeaf(letter, 16, 32),
        "zero_diagonal": ZeroDiagonal("s" if letter in "sc" else "d", 32),
    }
    with ExitStack() as stack:
        stack.enter_context(small_kernels(letter))
        for stem, config in leaves.items():
            stack.enter_context(override(stem, config))
        yield


def oriented(lower: np.ndarray, low: int) -> np.ndarray:
    """A lower triangle, or the upper one of the same numbers."""
    return lower if low else lower.T


def with_nan(triangle: np.ndarray, low: int, unit: bool = False) -> np.ndarray:
    """NaN beyond the triangle, and on a unit diagonal."""
    kept = np.tri(len(triangle), k=-int(unit), dtype=bool)
    return np.where(kept if low else kept.T, triangle, NAN).astype(triangle.dtype)


def close(actual, expected, dtype, condition=50) -> None:
    scale = max(abs(expected).max(), 1)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=condition * scale * dtype.unit_roundoff)


@pytest.mark.parametrize(
    "letter, order, low, algorithm",
    [
        *((*case, "panels") for case in CASES),
        ("d", "F", 0, "recursion"),
        ("z", "C", 1, "recursion"),
        ("d", "C", 1, "lookahead"),
        ("c", "F", 0, "lookahead"),
        ("s", "C", 1, "columns"),
        ("z", "F", 0, "columns"),
    ],
)
def test_potrf(letter, order, low, algorithm, decide_by):
    dtype = DTYPES[letter]
    if algorithm == "columns":
        decide_by(potrf_by_columns_min_order=dict.fromkeys(DTYPES, 1))
    for n in (17, 37) if algorithm == "panels" else (39, 20) if algorithm == "columns" else (39,):
        factor = factors(np.random.default_rng(n), 1, n, dtype)
        a, unharmed = fenced(oriented(hermitian(factor)[0], low), order)
        ahead = override("lookahead", 16 if algorithm == "lookahead" else 0)
        with (
            small_leaves(letter),
            ahead,
            override("potrf_algorithm", "recursion" if algorithm == "recursion" else "panels"),
        ):
            c, info = lapack.potrf(a, lower=low, clean=n % 2, overwrite_a=1)
        assert info == 0 and unharmed()
        # that of the transpose is the transpose
        close(c[with_nan(c, low) == c], oriented(factor[0], low)[np.isfinite(with_nan(c, low))], dtype, 400)
        beyond = np.tril(c.T if low else c, -1)[np.tri(n, k=-1, dtype=bool)]
        assert (beyond == 0).all() if n % 2 else np.isnan(beyond).all()


@pytest.mark.parametrize("algorithm", ["recursion", "panels"])
@pytest.mark.parametrize("at, low", [(3, 0), (20, 1), (33, 0)])
def test_a_bad_pivot_in_any_leaf(at, low, algorithm):
    a = np.eye(40) * 4
    a[at, at] = a[at + 2, at + 2] = -1
    with small_leaves("d"), override("potrf_algorithm", algorithm):
        c, info = lapack.potrf(a, lower=low)
    assert info == at + 1
    np.testing.assert_array_equal(np.diagonal(c)[:at], 2)


PLACES = ("next four", "last", "far below", "over itself", "nan below")


@pytest.mark.parametrize(
    "letter, algorithm, places",
    [
        ("d", "recursion", PLACES),
        ("z", "panels", PLACES),
        ("s", "lookahead", PLACES),
        ("c", "recursion", PLACES[1::2]),
    ],
    ids=str,
)
def test_special_values(letter, algorithm, places):
    """NaN and Inf in one leaf or across several."""
    ahead = override("lookahead", 16 if algorithm == "lookahead" else 0)
    routine = override("potrf_algorithm", algorithm.replace("lookahead", "panels"))
    with small_leaves(letter), ahead, routine:
        for place in places:
            a = special_pivots.matrix(place, letter, 39)
            factor, info = lapack.potrf(a, lower=1)
            special_pivots.check(factor, info, a)


@pytest.mark.parametrize("letter, order, low", CASES)
def test_trtri(letter, order, low):
    dtype = DTYPES[letter]
    for n, unit in ((21, True), (37, False)):
        factor = factors(np.random.default_rng(n), 1, n, dtype)[0]
        if unit:
            factor[range(n), range(n)] = 1
        a, unharmed = fenced(with_nan(oriented(factor, low), low, unit), order)
        with small_leaves(letter):
            actual, info = lapack.trtri(a, lower=low, unitdiag=unit, overwrite_c=1)
        assert info == 0 and unharmed()
        exact = oriented(np.linalg.inv(factor.astype(np.result_type(factor, np.float64))), low)
        expected = with_nan(exact, low, unit)
        assert (np.isnan(actual) == np.isnan(expected)).all()
        kept = np.isfinite(expected)
        close(actual[kept], expected[kept], dtype, 200)


@pytest.mark.parametrize("letter, order, low, unit", [("d", "F", 1, 0), ("c", "C", 0, 1)])
def test_merges_by_products(letter, order, low, unit, monkeypatch):
    """Two blocks of 16 rows grow together by products with copies."""
    monkeypatch.setattr(trtri, "LEAVES", 8)
    dtype, n = DTYPES[letter], 66
    factor = factors(np.random.default_rng(n), 1, n, dtype)[0]
    factor[np.tri(n, k=-20, dtype=bool)] /= 8
    if unit:
        factor[range(n), range(n)] = 1
    a, unharmed = fenced(with_nan(oriented(factor, low), low, bool(unit)), order)
    with small_leaves(letter):
        actual, info = lapack.trtri(a, lower=low, unitdiag=unit, overwrite_c=1)
    assert info == 0 and unharmed()
    exact = oriented(np.linalg.inv(factor.astype(np.result_type(factor, np.float64))), low)
    expected = with_nan(exact, low, bool(unit))
    assert (np.isnan(actual) == np.isnan(expected)).all()
    kept = np.isfinite(expected)
    close(actual[kept], expected[kept], dtype, 2000)


@pytest.mark.parametrize("letter, order, low", CASES[1:5])
def test_lauum_and_potri(letter, order, low, decide_by):
    """By products with a copy, and by the recursion."""
    dtype = DTYPES[letter]
    decide_by(lauum_product_max_order=512 if low else 0)
    for n in (21, 37) if letter == "d" else (21,):
        factor = factors(np.random.default_rng(n), 1, n, dtype)[0]
        wide = oriented(factor, low).astype(np.result_type(factor, np.float64))
        squared = wide.conj().T @ wide if low else wide @ wide.conj().T
        product_ = wide @ wide.conj().T if low else wide.conj().T @ wide
        for routine, exact in (lapack.lauum, squared), (lapack.potri, np.linalg.inv(product_)):
            a, unharmed = fenced(with_nan(oriented(factor, low), low), order)
            with small_leaves(letter):
                actual, info = routine(a, lower=low, overwrite_c=1)
            expected = with_nan(exact, low)
            assert info == 0 and unharmed()
            assert (np.isnan(actual) == np.isnan(expected)).all()
            kept = np.isfinite(expected)
            close(actual[kept], expected[kept], dtype, 400)


@pytest.mark.parametrize("letter, order, low", CASES[1:3])
def test_solutions(letter, order, low):
    dtype = DTYPES[letter]
    for n, columns in ((19, 3),):
        rng = np.random.default_rng(n)
        factor = factors(rng, 1, n, dtype)[0]
        x = rng.integers(-3, 4, (n, columns)).astype(dtype.name)
        wide = oriented(factor, low).astype(np.result_type(factor, np.float64))
        a = wide @ wide.conj().T if low else wide.conj().T @ wide
        c = with_nan(oriented(factor, low), low)
        b = np.array((a @ x).astype(dtype.name), order=order)
        with small_leaves(letter):
            actual, info = lapack.potrs(c, b, lower=low)
            assert info == 0
            close(actual, x, dtype, 4000)
            _, actual, info = lapack.posv(with_nan(a.astype(dtype.name), low), b, lower=low)
            assert info == 0
            close(actual, x, dtype, 4000)
            for trans, op in enumerate((wide, wide.T, wide.conj().T)):
                right = np.array((op @ x).astype(dtype.name), order=order)
                actual, info = lapack.trtrs(c, right, lower=low, trans=trans)
                assert info == 0
                close(actual, x, dtype, 1000)


@pytest.mark.parametrize("n, at, low", [(9, 5, 0), (9, 0, 1), (21, 18, 0)])
def test_zeros_on_the_diagonal(n, at, low):
    triangle = np.eye(n)
    triangle[at, at] = triangle[-1, -1] = 0
    with small_leaves("d"):
        assert lapack.trtri(triangle, lower=low)[1] == at + 1
        assert lapack.potri(triangle, lower=low)[1] == at + 1
        assert lapack.trtrs(triangle, np.ones(n), lower=low)[1] == at + 1
        assert lapack.trtri(triangle, lower=low, unitdiag=1)[1] == 0


@pytest.mark.parametrize("letter", DTYPES)
def test_stacks(letter):
    """One launch a step for all matrices; of the bad one alone info is not 0."""
    dtype, n = DTYPES[letter], 21
    factor = factors(np.random.default_rng(4), 3, n, dtype)
    a = hermitian(factor)
    a[1, 18, 18] = -1
    with small_leaves(letter):
        c, info = lapack.potrf(a, lower=1)
        inverse, singular = lapack.trtri(factor, lower=1)
    assert info.tolist() == [0, 19, 0] and not singular.any()
    for z in (0, 2):
        close(c[z], factor[z], dtype, 400)
        close(np.tril(inverse[z]) @ factor[z], np.eye(n), dtype, 400)


def test_complex_numbers_that_are_aligned_as_reals_are():
    """They are worked on in a copy."""
    factor, memory = factors(np.random.default_rng(5), 1, 9, DTYPES["z"])[0], np.zeros(2 * 81 + 1)
    a = memory[1:].view(complex).reshape(9, 9)
    a[...] = hermitian(factor[None])[0]
    with small_leaves("z"):
        c, info = lapack.potrf(a[None], lower=1, clean=0, overwrite_a=1)
    assert info.tolist() == [0] and np.shares_memory(c, a)
    close(np.tril(a), factor, DTYPES["z"], 400)
