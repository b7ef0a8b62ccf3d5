"""Cholesky factors, inverses of triangles and solutions of NumPy arrays, by SciPy's LAPACK, in place.

The outputs' leading dimensions count matrices, the inputs' broadcast to them; `info` has shape (..., 1, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..types import Diag, Trans, Uplo
from .cpu import quietly, triangle_mask

__all__ = ["lapack", "lauum", "potrf", "potri", "potrs", "trtri", "trtrs"]


@cache
def lapack(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """SciPy's wrapper of a routine."""
    from scipy.linalg import lapack  # slow to import, and device arrays do without it

    return lapack.get_lapack_funcs(name, dtype=dtype)


@quietly
def potrf(info: np.ndarray, a: np.ndarray, uplo: Uplo, clean: bool) -> None:
    """The factor in the `uplo` triangle of `a`; the other one becomes zero if `clean`."""
    run = lapack("potrf", a.dtype)
    for index in np.ndindex(a.shape[:-2]):
        start = np.array(a[index], order="F")
        a[index], info[index] = run(start, uplo is Uplo.LOWER, clean, overwrite_a=1)


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
    for index in np.ndindex(a.shape[:-2]):
        result, info[index] = run(np.array(a[index], order="F"), **flags, overwrite_c=1)
        np.copyto(a[index], result, where=kept)


@quietly
def potrs(c: np.ndarray, b: np.ndarray, uplo: Uplo) -> None:
    """The solution of a system, from the Cholesky factor in the `uplo` triangle of `c`."""
    run = lapack("potrs", b.dtype)
    factors = np.broadcast_to(c, b.shape[:-2] + c.shape[-2:])
    for index in np.ndindex(b.shape[:-2]):
        b[index], _ = run(factors[index], b[index], lower=uplo is Uplo.LOWER)


@quietly
def trtrs(info: np.ndarray, a: np.ndarray, b: np.ndarray, uplo: Uplo, trans: Trans, diag: Diag) -> None:
    """The solution of a triangular system; of a singular one `b` is left as it is."""
    run = lapack("trtrs", b.dtype)
    triangles = np.broadcast_to(a, b.shape[:-2] + a.shape[-2:])
    flags = {"lower": uplo is Uplo.LOWER, "trans": "NTC".index(trans.value), "unitdiag": diag is Diag.UNIT}
    for index in np.ndindex(b.shape[:-2]):
        b[index], info[index] = run(np.asfortranarray(triangles[index]), b[index], **flags)
