"""Calls by tiles on devices: host matrices of every kind, and results against SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

import pyblasgpu
from pyblasgpu.testing.error_bounds import gemm_error, rank_k_error, symm_error, trmm_error, trsm_error
from pyblasgpu.types import DTYPES, Diag, Dtype, Side, Trans, Uplo

__all__ = ["CALLS", "TiledCall", "matrices", "pinned_like"]

NO = Trans.NO


class Matrices(NamedTuple):
    """a and b general, t a triangle of which nothing else may be read, c an output."""

    a: Any
    b: Any
    t: Any
    c: Any


def matrices(letter: str, m: int, n: int, order: Literal["C", "F"], seed: int = 0) -> Matrices:
    """Random matrices: a m by n, b n by m, t of order m, c m by m."""
    rng, dtype = np.random.default_rng(seed), DTYPES[letter]

    def draw(rows: int, cols: int) -> np.ndarray:
        x = rng.uniform(-1, 1, (rows, cols)).astype(dtype.real)
        if dtype.is_complex:
            x = x + 1j * rng.uniform(-1, 1, (rows, cols)).astype(dtype.real)
        return np.asarray(x.astype(dtype.name), order=order)

    t = draw(m, m) / dtype.itemsize / m
    np.fill_diagonal(t, 2)
    return Matrices(draw(m, n), draw(n, m), t, draw(m, m))


def pinned_like(cupy: Any, array: np.ndarray) -> np.ndarray:
    """A copy in page-locked memory, of the same order."""
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    memory = cupy.cuda.alloc_pinned_memory(array.nbytes)
    pinned = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape, order=order)
    pinned[...] = array
    return pinned


class TiledCall(NamedTuple):
    """A routine: ``run(x, **options)`` gives its result, ``error(x, result)`` how far that is off."""

    run: Callable[..., Any]
    error: Callable[[Matrices, np.ndarray], float]


def _gemm(x: Matrices, **options: Any) -> Any:
    return pyblasgpu.gemm(x.a, x.b, alpha=0.5, beta=-2, out=x.c, **options)


def _syrk(x: Matrices, **options: Any) -> Any:
    return pyblasgpu.syrk(x.a, lower=True, beta=3, out=x.c, **options)


def _symm(x: Matrices, **options: Any) -> Any:
    return pyblasgpu.symm(x.t, x.a, lower=True, **options)


def _trmm(x: Matrices, **options: Any) -> Any:
    return pyblasgpu.trmm(x.t, x.a, lower=True, trans="T", alpha=2, **options)


def _trsm(x: Matrices, **options: Any) -> Any:
    return pyblasgpu.trsm(x.t, x.a, lower=True, alpha=2, **options)


def _trsm_right(x: Matrices, **options: Any) -> Any:
    return pyblasgpu.trsm(x.t, x.b, side="R", trans="C", unit_diag=True, **options)


CALLS = {
    "gemm": TiledCall(_gemm, lambda x, r: gemm_error(0.5, x.a, x.b, -2, x.c, r)),
    "syrk": TiledCall(_syrk, lambda x, r: rank_k_error([(1, x.a, x.a.T)], 3, x.c, r, Uplo.LOWER, False)),
    "symm": TiledCall(_symm, lambda x, r: symm_error(1, x.t, x.a, 0, None, r, Side.LEFT, Uplo.LOWER, False)),
    "trmm": TiledCall(
        _trmm, lambda x, r: trmm_error(2, x.t, x.a, r, Side.LEFT, Uplo.LOWER, Trans.TRANS, Diag.NON_UNIT)
    ),
    "trsm": TiledCall(
        _trsm, lambda x, r: trsm_error(2, x.t, x.a, r, Side.LEFT, Uplo.LOWER, NO, Diag.NON_UNIT)
    ),
    "trsm_right": TiledCall(
        _trsm_right, lambda x, r: trsm_error(1, x.t, x.b, r, Side.RIGHT, Uplo.UPPER, Trans.CONJ, Diag.UNIT)
    ),
}


def fresh(x: Matrices) -> Matrices:
    """Return copies with an output of their own."""
    return x._replace(c=x.c.copy())


def every(letters: str) -> list[tuple[str, str]]:
    """Routines and dtypes."""
    return [(name, letter) for name in CALLS for letter in letters]


def factor_error(a: np.ndarray, factor: np.ndarray, dtype: Dtype) -> float:
    """The error of a Cholesky factor L, in n u |L| |L|^H."""
    lower = np.tril(factor).astype("complex128" if dtype.is_complex else "float64")
    bound = len(a) * dtype.unit_roundoff * (abs(lower) @ abs(lower).T)
    return float((abs(lower @ lower.conj().T - a) / bound).max())
