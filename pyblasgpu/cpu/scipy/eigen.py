"""Eigenvalues of Hermitian NumPy arrays, and singular values, by SciPy's LAPACK, in place.

LAPACK may iterate for ever on matrices that are not finite. Their results are NaN and `info` is n, the lesser
extent, as on a device.

Leading dimensions count matrices; `w` and `s` have shape (..., n, 1), and are real.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...types import Uplo
from .cholesky import lapack
from .level3 import indices, quietly

__all__ = ["gesdd", "is_finite", "read_elements", "small_pairs", "small_triplets", "syevd"]

#: Elements up to which calling LAPACK takes a good part of the time, and workspaces of that which are kept.
SMALL, MOST_KEPT = 1024, 1024
#: Workspaces of LAPACK's eigenvalue routines in the order in which their queries return them.
_WORKSPACES = {"syevr": ("lwork", "liwork"), "heevr": ("lwork", "lrwork", "liwork")}


def read_elements(matrix: np.ndarray, low: bool | None) -> np.ndarray:
    """The elements of matrices that are read, and zeros: a triangle, or all where `low` is None.

    Imaginary parts of a Hermitian diagonal are not read.
    """
    if low is None:
        return matrix
    read, diagonal = (np.tril if low else np.triu)(matrix), np.arange(matrix.shape[-1])
    read[..., diagonal, diagonal] = read[..., diagonal, diagonal].real
    return read


def is_finite(matrix: np.ndarray, low: bool | None) -> bool:
    """Whether what is read of a matrix is finite."""
    return bool(np.isfinite(read_elements(matrix, low)).all())


@quietly
def syevd(info: np.ndarray, w: np.ndarray, a: np.ndarray, uplo: Uplo, vectors: bool) -> None:
    """Eigenvalues in ascending order, and with `vectors` eigenvectors in the columns of `a`."""
    stem = "heevd" if a.dtype.kind == "c" else "syevd"
    run, low = lapack(stem, a.dtype), uplo is Uplo.LOWER
    for index in indices(a.shape[:-2]):
        if not is_finite(a[index], low):
            w[index], info[index] = np.nan, a.shape[-1]
            a[index] = np.nan if vectors else a[index]
            continue
        w[index][:, 0], columns, info[index][:, 0] = run(a[index], compute_v=bool(vectors), lower=low)
        if vectors:
            a[index] = columns


@quietly
def gesdd(
    info: np.ndarray, s: np.ndarray, u: np.ndarray, vh: np.ndarray, a: np.ndarray, vectors: bool
) -> None:
    """Singular values in descending order; with `vectors` U by columns and the adjoint of V by rows, each as
    one column: all of them, or as many as there are values.
    """
    run, (m, n) = lapack("gesdd", a.dtype), a.shape[-2:]
    full = vectors and u.shape[-2] == m * m and vh.shape[-2] == n * n
    for index in indices(a.shape[:-2]):
        if not is_finite(a[index], None):
            s[index], u[index], vh[index], info[index] = np.nan, np.nan, np.nan, min(m, n)
            continue
        left, s[index][:, 0], right, info[index][:, 0] = run(a[index], vectors, full)
        if vectors:
            u[index][:, 0], vh[index][:, 0] = left.T.ravel(), right.ravel()


def small_triplets(
    a: np.ndarray, full: bool, vectors: bool, driver: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Singular vectors and values of one small matrix by LAPACK's routine, as `scipy.linalg.svd` has them.

    None of others, and where the routine fails: the error is that function's.
    """
    if a.ndim != 2 or not 0 < a.size <= SMALL:
        return None
    lwork = _workspace_of_triplets(driver, a.dtype, *a.shape, vectors, full)
    u, s, vh, info = lapack(driver, a.dtype)(a, vectors, full, lwork)
    return None if info else (u, s, vh)


@lru_cache(maxsize=MOST_KEPT)
def _workspace_of_triplets(
    driver: str, dtype: np.dtype[Any], m: int, n: int, vectors: bool, full: bool
) -> int:
    return int(lapack(f"{driver}_lwork", dtype)(m, n, vectors, full)[0].real)


def small_pairs(
    a: np.ndarray, low: bool, vectors: bool, driver: str | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenvalues and eigenvectors of one small Hermitian matrix, as `scipy.linalg.eigh` has them by its
    default and by the driver 'ev'. None of others, as of `small_triplets`.
    """
    if driver not in (None, "ev") or a.ndim != 2 or not 0 < a.size <= SMALL:
        return None
    stem = f"{'he' if a.dtype.kind == 'c' else 'sy'}{driver or 'evr'}"
    workspaces = _workspaces_of_pairs(stem, a.dtype, len(a), low)
    w, v, *_, info = lapack(stem, a.dtype)(a, compute_v=vectors, lower=low, **workspaces)
    return None if info else (w, v)


@lru_cache(maxsize=MOST_KEPT)
def _workspaces_of_pairs(stem: str, dtype: np.dtype[Any], n: int, low: bool) -> dict[str, int]:
    *sizes, _ = lapack(f"{stem}_lwork", dtype)(n, low)
    names = _WORKSPACES.get(stem, ("lwork",))
    return {name: int(size.real) for name, size in zip(names, sizes, strict=True)}
