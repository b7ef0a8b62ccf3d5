"""L D L^H factors of symmetric and Hermitian NumPy arrays and what is done with them, by SciPy's LAPACK, in
place; those with rook pivots by `rook`.

The outputs' leading dimensions count matrices, the inputs' broadcast to them; pivots have shape (..., n, 1),
`info` has (..., 1, 1).
"""

from __future__ import annotations

import numpy as np

from ...types import Uplo
from . import rook as by_rook
from .cholesky import lapack
from .level3 import broadcast_matrices, indices, quietly

__all__ = ["sytrf", "sytri", "sytrs"]


@quietly
def sytrf(
    piv: np.ndarray, info: np.ndarray, a: np.ndarray, uplo: Uplo, hermitian: bool, rook: bool = False
) -> None:
    """The factors in the `uplo` triangle of `a`, and the pivots."""
    stem, lower = "hetrf" if hermitian else "sytrf", uplo is Uplo.LOWER
    if rook:
        for index in indices(a.shape[:-2]):
            a[index], piv[index][:, 0], info[index] = by_rook.factor(a[index], lower, hermitian)
        return
    run, length = lapack(stem, a.dtype), lapack(f"{stem}_lwork", a.dtype)(a.shape[-1], lower)[0]
    for index in indices(a.shape[:-2]):
        start = np.asfortranarray(a[index])  # `a` itself where LAPACK can work on it
        a[index], piv[index][:, 0], info[index] = run(start, lower, int(length.real), overwrite_a=1)


@quietly
def sytrs(
    piv: np.ndarray, a: np.ndarray, b: np.ndarray, uplo: Uplo, hermitian: bool, rook: bool = False
) -> None:
    """The solution of a system, from the factors in the `uplo` triangle of `a`, in `b`."""
    run, batch = lapack("hetrs" if hermitian else "sytrs", b.dtype), b.shape[:-2]
    a, piv = broadcast_matrices(batch, a, piv)
    for index in indices(batch):
        if rook:
            b[index] = by_rook.solve(a[index], piv[index][:, 0], b[index], uplo is Uplo.LOWER, hermitian)
            continue
        b[index], _ = run(a[index], piv[index][:, 0], b[index], lower=uplo is Uplo.LOWER)


@quietly
def sytri(
    info: np.ndarray, piv: np.ndarray, a: np.ndarray, uplo: Uplo, hermitian: bool, rook: bool = False
) -> None:
    """The `uplo` triangle of the inverse of a matrix from its factors; where D is singular they stay."""
    run = lapack("hetri" if hermitian else "sytri", a.dtype)
    (piv,) = broadcast_matrices(a.shape[:-2], piv)
    for index in indices(a.shape[:-2]):
        if rook:
            found = by_rook.invert(a[index], piv[index][:, 0], uplo is Uplo.LOWER, hermitian)
            a[index], info[index] = found
            continue
        start = np.array(a[index], order="F")
        a[index], info[index] = run(start, piv[index][:, 0], lower=uplo is Uplo.LOWER, overwrite_a=1)
