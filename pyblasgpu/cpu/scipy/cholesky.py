"""Cholesky factors, inverses of triangles and solutions of NumPy arrays, by SciPy's LAPACK, in place.

The outputs' leading dimensions count matrices, the inputs' broadcast to them; `info` has shape (..., 1, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...types import Diag, Trans, Uplo
from .level3 import broadcast_matrices, indices, quietly, triangle_mask
from .values import has_finite_diagonal

__all__ = ["lapack", "lauum", "potrf", "potri", "potrs", "trtri", "trtrs"]


@cache
def lapack(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """SciPy's wrapper of a routine."""
    from scipy.linalg import lapack  # slow to import, and device arrays do without it

    return lapack.get_lapack_funcs(name, dtype=dtype)


@quietly
def potrf(info: np.ndarray, a: np.ndarray, uplo: Uplo, clean: bool) -> None:
    """The factor in the `uplo` triangle of `a`; the other one becomes zero if `clean`."""
    run, lower = lapack("potrf", a.dtype), uplo is Uplo.LOWER
    for index in indices(a.shape[:-2]):
        start = np.array(a[index], order="F")
        factor, number = run(start, lower, clean, overwrite_a=1)
        if not has_finite_diagonal(factor):
            number = _first_bad_pivot(a[index], factor, number, lower)
        a[index], info[index] = factor, number


def _first_bad_pivot(a: np.ndarray, factor: np.ndarray, number: int, lower: bool) -> int:
    """The number of the first pivot that is not positive, NaN among them; 0 where all are.

    `number` is LAPACK's info. OpenBLAS goes on after a pivot of NaN. Below an infinite one it multiplies by
    0, which may turn NaN and Inf to 0.
    """
    n = number - 1 if number else len(a)
    start, triangle = (x[:n, :n] if lower else x.T[:n, :n] for x in (a, factor))
    pivots = triangle.diagonal().real
    bad = np.isnan(pivots)
    for j in np.flatnonzero(np.isinf(pivots)):
        below = start[j + 1 :, j] - triangle[j + 1 :, :j] @ triangle[j, :j].conj()
        bad[j + 1 :] |= ~np.isfinite(below)
    return int(bad.argmax()) + 1 if bad.any() else number


@quietly
def potri(info: np.ndarray, a: np.ndarray, uplo: Uplo) -> None:
    """The `uplo` triangle of the inverse, from that of the factor."""
    _in_triangle("potri", info, a, uplo, {"lower": uplo is Uplo.LOWER})


@quietly
def trtri(info: np.ndarray, a: np.ndarray, uplo: Uplo, diag: Diag) -> None:
    """The inverse of the `uplo` triangle."""
    flags = {"lower": uplo is Uplo.LOWER, "unitdiag": diag is Diag.UNIT}
    _in_triangle("trtri", info, a, uplo, flags, first=int(diag is Diag.UNIT))


@quietly
def lauum(a: np.ndarray, uplo: Uplo) -> None:
    """The `uplo` triangle of the product with the conjugate transpose."""
    info = np.zeros((*a.shape[:-2], 1, 1), np.int32)
    _in_triangle("lauum", info, a, uplo, {"lower": uplo is Uplo.LOWER})


def _in_triangle(
    name: str, info: np.ndarray, a: np.ndarray, uplo: Uplo, flags: dict[str, bool], first: int = 0
) -> None:
    """A routine on a triangle, of which the first `first` diagonals are not meant; no other is written."""
    run, n = lapack(name, a.dtype), a.shape[-1]
    kept = triangle_mask(n, uplo is Uplo.LOWER, first)
    for index in indices(a.shape[:-2]):
        result, info[index] = run(np.array(a[index], order="F"), **flags, overwrite_c=1)
        np.copyto(a[index], result, where=kept)


@quietly
def potrs(c: np.ndarray, b: np.ndarray, uplo: Uplo) -> None:
    """The solution of a system, from the Cholesky factor in the `uplo` triangle of `c`."""
    run = lapack("potrs", b.dtype)
    (factors,) = broadcast_matrices(b.shape[:-2], c)
    for index in indices(b.shape[:-2]):
        b[index], _ = run(factors[index], b[index], lower=uplo is Uplo.LOWER)


@quietly
def trtrs(info: np.ndarray, a: np.ndarray, b: np.ndarray, uplo: Uplo, trans: Trans, diag: Diag) -> None:
    """The solution of a triangular system; of a singular one `b` is left as it is."""
    run = lapack("trtrs", b.dtype)
    (triangles,) = broadcast_matrices(b.shape[:-2], a)
    flags = {"lower": uplo is Uplo.LOWER, "trans": "NTC".index(trans.value), "unitdiag": diag is Diag.UNIT}
    if 0 in b.shape:  # SciPy's looks at no diagonal then
        zeros = np.diagonal(triangles, axis1=-2, axis2=-1) == 0
        first = np.where(zeros.any(axis=-1), zeros.argmax(axis=-1) + 1, 0)
        info[..., 0, 0] = 0 if diag is Diag.UNIT else first
        return
    for index in indices(b.shape[:-2]):
        b[index], info[index] = run(np.asfortranarray(triangles[index]), b[index], **flags)
