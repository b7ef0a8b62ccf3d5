"""Residuals of solve stay within the documented bounds, of matrices near to singular ones too."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from pyblasgpu import linalg

ROOTS = {"f": 1.0, "d": 1.0, "F": 8**0.5, "D": 8**0.5}  # what a complex product errs more


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


def matrices(n, dtype):
    """A random matrix, and one whose columns nearly depend on each other."""
    rng = np.random.default_rng(n)
    for scale in (np.ones(n), 10.0 ** -np.linspace(0, 5, n)):
        a = rng.standard_normal((n, n)) @ (scale[:, None] * rng.standard_normal((n, n)))
        if np.dtype(dtype).kind == "c":
            a = a + 1j * rng.standard_normal((n, n)) @ (scale[:, None] * rng.standard_normal((n, n)))
        yield a.astype(dtype)


def check(residual, bound, count, dtype):
    u = np.finfo(dtype).eps / 2
    # what computing the residual in twice the precision errs is nothing beside that
    assert (abs(residual) <= ROOTS[dtype] * count * u / (1 - count * u) * bound).all()


@pytest.mark.parametrize("dtype", "fF")
@pytest.mark.parametrize("n", [1, 7, 60])
def test_residuals_of_solve(n, dtype):
    wide = "d" if dtype == "f" else "D"
    for a in matrices(n, dtype):
        b = np.random.default_rng(1).standard_normal((n, 3)).astype(dtype)
        x = linalg.solve(a, b, assume_a="gen").astype(wide)
        p, lower, upper = (each.astype(wide) for each in scipy.linalg.lu(a))
        check(a.astype(wide) @ x - b, p @ abs(lower) @ abs(upper) @ abs(x), 3 * n, dtype)
        spd = (a @ a.conj().T + n * np.finfo(dtype).eps * 1e2 * abs(a).max() ** 2 * np.eye(n)).astype(dtype)
        factor = linalg.cholesky(spd, lower=True).astype(wide)
        x = linalg.solve(spd, b, assume_a="pos").astype(wide)
        hermitian = np.triu(spd) + np.triu(spd, 1).conj().T
        check(hermitian.astype(wide) @ x - b, abs(factor) @ abs(factor).T @ abs(x), 3 * n + 4, dtype)
