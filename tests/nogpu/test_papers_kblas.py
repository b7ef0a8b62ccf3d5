"""KBLAS's Figure 9: the blocked algorithms with parts of SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from pyblasgpu.types import Side, Trans
from tuning.papers import kblas_figure9
from tuning.papers.kblas_figure9 import Parts


def triangle_of(t, trans):
    lower = np.tril(t)
    return {"N": lower, "T": lower.T, "C": lower.conj().T}[trans.value]


def trmm(alpha, t, b, side, trans) -> None:
    op = triangle_of(t, trans)
    b[...] = alpha * (op @ b if side is Side.LEFT else b @ op)


def trsm(alpha, t, b, side, trans) -> None:
    inverse = np.linalg.inv(triangle_of(t, trans))
    b[...] = alpha * (inverse @ b if side is Side.LEFT else b @ inverse)


def set_lower(a, values) -> None:
    a[np.tri(len(a), dtype=bool)] = values[np.tri(len(a), dtype=bool)]


def update(alpha, x, y, c, triangle) -> None:
    if triangle:
        set_lower(c, c + alpha * x @ x.conj().T)
    else:
        c += alpha * x @ y


PARTS = Parts(
    trmm,
    trsm,
    lambda a: set_lower(a, np.linalg.cholesky(np.tril(a) + np.tril(a, -1).conj().T)),
    lambda a: set_lower(a, np.linalg.inv(np.tril(a))),
    lambda a: set_lower(a, np.tril(a).conj().T @ np.tril(a)),
    update,
)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [3, 8, 21])
def test_the_algorithms(n, dtype, monkeypatch):
    monkeypatch.setattr(kblas_figure9, "BLK", 8)
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if dtype is complex else 0)
    a = x @ x.conj().T + n * np.eye(n)
    factor, b = scipy.linalg.cholesky(a, lower=True), np.ones((n, 2), dtype)

    inverse = factor.copy()
    kblas_figure9.potri(PARTS, inverse)
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(a)), atol=1e-12)

    solution = b.copy()
    kblas_figure9.potrs(PARTS, factor, solution)
    np.testing.assert_allclose(a @ solution, b, atol=1e-10)

    matrix, solution = np.tril(a), b.copy()
    kblas_figure9.posv(PARTS, matrix, solution)
    np.testing.assert_allclose(np.tril(matrix), factor, atol=1e-10)
    np.testing.assert_allclose(a @ solution, b, atol=1e-10)


@pytest.mark.parametrize("side, trans", [("L", "N"), ("L", "C"), ("R", "N"), ("R", "C")])
@pytest.mark.parametrize("name, own", [("trmm", trmm), ("trsm", trsm)])
def test_routines_of_the_library(monkeypatch, name, own, side, trans):
    """On host arrays, in place."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    rng = np.random.default_rng(2)
    t, b = rng.normal(size=(9, 9)) + 9 * np.eye(9), np.asfortranarray(rng.normal(size=(9, 9)))
    expected = b.copy()
    own(2.0, t, expected, Side(side), Trans(trans))
    kblas_figure9.ours(name)(2.0, t, b, Side(side), Trans(trans))
    np.testing.assert_allclose(b, expected, atol=1e-12)
