"""LU factors of NumPy arrays and what is done with them, by SciPy's LAPACK, in place.

The outputs' leading dimensions count matrices, the inputs' broadcast to them; pivots have shape (..., k, 1),
`info` has (..., 1, 1).
"""

from __future__ import annotations

import numpy as np

from ...types import Trans
from .cholesky import lapack
from .level3 import broadcast_matrices, indices, quietly

__all__ = ["getrf", "getri", "getrs", "laswp"]


@quietly
def getrf(piv: np.ndarray, info: np.ndarray, a: np.ndarray) -> None:
    """L and U in `a`, and the pivots."""
    run = lapack("getrf", a.dtype)
    for index in indices(a.shape[:-2]):
        start = np.asfortranarray(a[index])  # `a` itself where LAPACK can work on it
        a[index], piv[index][:, 0], info[index] = run(start, overwrite_a=1)


@quietly
def getrs(piv: np.ndarray, lu: np.ndarray, b: np.ndarray, trans: Trans) -> None:
    """The solution of op(A) X = b, from the factors of A, in `b`."""
    run, batch = lapack("getrs", b.dtype), b.shape[:-2]
    lu, piv = broadcast_matrices(batch, lu, piv)
    code = "NTC".index(trans.value)
    for index in indices(batch):
        b[index], _ = run(lu[index], piv[index][:, 0], b[index], trans=code)


@quietly
def getri(info: np.ndarray, piv: np.ndarray, a: np.ndarray) -> None:
    """The inverse of a matrix from its factors, in `a`; where U is singular they stay."""
    run = lapack("getri", a.dtype)
    (piv,) = broadcast_matrices(a.shape[:-2], piv)
    for index in indices(a.shape[:-2]):
        a[index], info[index] = run(np.asfortranarray(a[index]), piv[index][:, 0], overwrite_lu=1)


@quietly
def laswp(piv: np.ndarray, a: np.ndarray, backwards: bool, first: int = 0) -> None:
    """Row ``first + i`` of `a` interchanged with row ``piv[i]``, from the first pivot to the last or back."""
    batch, count = a.shape[:-2], piv.shape[-2]
    (piv,) = broadcast_matrices(batch, piv)
    for index in indices(batch):
        for i in reversed(range(count)) if backwards else range(count):
            rows = [first + i, piv[index][i, 0]]
            a[index][rows] = a[index][rows[::-1]]
