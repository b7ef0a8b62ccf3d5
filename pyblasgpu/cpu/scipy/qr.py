"""QR factors of NumPy arrays and products with their Q, by SciPy's LAPACK, in place.

The outputs' leading dimensions count matrices, the inputs' broadcast to them; `tau` has shape (..., k, 1).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...types import Side, Trans
from .cholesky import lapack
from .level3 import broadcast_matrices, indices, quietly

__all__ = [
    "geqp3",
    "geqrf",
    "orgqr",
    "ormqr",
    "workspace_of_geqp3",
    "workspace_of_geqrf",
    "workspace_of_orgqr",
    "workspace_of_ormqr",
]


MOST_KEPT = 1024  # answers of LAPACK on workspaces, each of which takes as long as a small factor


@quietly
def geqrf(tau: np.ndarray, a: np.ndarray) -> None:
    """R and the vectors of the reflectors in `a`, and their factors."""
    run, lwork = lapack("geqrf", a.dtype), workspace_of_geqrf(a.dtype, *a.shape[-2:])
    for index in indices(a.shape[:-2]):
        start = np.asfortranarray(a[index])  # `a` itself where LAPACK can work on it
        a[index], tau[index][:, 0], _, _ = run(start, lwork=lwork, overwrite_a=1)


@quietly
def geqp3(jpvt: np.ndarray, tau: np.ndarray, a: np.ndarray) -> None:
    """R and the reflectors of `a` with its columns interchanged, and which they were, from 1."""
    run, lwork = lapack("geqp3", a.dtype), workspace_of_geqp3(a.dtype, *a.shape[-2:])
    for index in indices(a.shape[:-2]):
        start = np.asfortranarray(a[index])
        a[index], jpvt[index][:, 0], tau[index][:, 0], _, _ = run(start, lwork=lwork, overwrite_a=1)


@quietly
def orgqr(tau: np.ndarray, a: np.ndarray) -> None:
    """The first columns of Q in `a`, which holds the vectors of its reflectors."""
    run, (m, n) = lapack("orgqr", a.dtype), a.shape[-2:]
    lwork = workspace_of_orgqr(a.dtype, m, n, tau.shape[-2])
    (tau,) = broadcast_matrices(a.shape[:-2], tau)
    for index in indices(a.shape[:-2]):
        start = np.asfortranarray(a[index])
        a[index], _, _ = run(start, tau[index][:, 0], lwork=lwork, overwrite_a=1)


@quietly
def ormqr(tau: np.ndarray, a: np.ndarray, c: np.ndarray, side: Side, trans: Trans) -> None:
    """The product of Q, or of its conjugate transpose, and `c`, from one side, in `c`."""
    if not tau.shape[-2]:  # the identity, which SciPy's wrapper refuses
        return
    run, (m, n) = lapack("ormqr", c.dtype), c.shape[-2:]
    lwork = workspace_of_ormqr(c.dtype, side, m, n, tau.shape[-2])
    a, tau = broadcast_matrices(c.shape[:-2], a, tau)
    op = _op(c.dtype, trans)
    for index in indices(c.shape[:-2]):
        reflectors, start = np.asfortranarray(a[index]), np.asfortranarray(c[index])
        c[index], _, _ = run(side.value, op, reflectors, tau[index][:, 0], start, lwork, overwrite_c=1)


@lru_cache(maxsize=MOST_KEPT)
def workspace_of_geqrf(dtype: np.dtype[Any], m: int, n: int) -> int:
    """Return the elements of the workspace with which LAPACK's routine is fastest."""
    return _elements(lapack("geqrf_lwork", dtype)(m, n)) if m and n else max(n, 1)


@lru_cache(maxsize=MOST_KEPT)
def workspace_of_geqp3(dtype: np.dtype[Any], m: int, n: int) -> int:
    """See `workspace_of_geqrf`."""
    return _elements(lapack("geqp3", dtype)(_memory(dtype, m, n), lwork=-1, overwrite_a=1)) if m and n else 1


@lru_cache(maxsize=MOST_KEPT)
def workspace_of_orgqr(dtype: np.dtype[Any], m: int, n: int, k: int) -> int:
    """See `workspace_of_geqrf`; k reflectors."""
    if not n:
        return 1
    return _elements(lapack("orgqr", dtype)(_memory(dtype, m, n), _memory(dtype, k), lwork=-1, overwrite_a=1))


@lru_cache(maxsize=MOST_KEPT)
def workspace_of_ormqr(dtype: np.dtype[Any], side: Side, m: int, n: int, k: int) -> int:
    """See `workspace_of_geqrf`; the product has the shape (m, n), and Q has k reflectors."""
    if 0 in (m, n, k):
        return 1
    reflectors = _memory(dtype, m if side is Side.LEFT else n, k), _memory(dtype, k)
    run, op = lapack("ormqr", dtype), _op(dtype, Trans.CONJ)
    return _elements(run(side.value, op, *reflectors, _memory(dtype, m, n), -1, overwrite_c=1))


def _op(dtype: np.dtype[Any], trans: Trans) -> str:
    """LAPACK's letter of Q or its conjugate transpose."""
    return "N" if trans is Trans.NO else "C" if dtype.kind == "c" else "T"


def _memory(dtype: np.dtype[Any], *extents: int) -> np.ndarray:
    """An array that nothing is read from."""
    return np.empty(extents, dtype, order="F")


def _elements(results: Any) -> int:
    """The workspace that a query of it returned, before `info`."""
    return int(np.ravel(results[-2])[0].real)
