"""Factorizations of stacks of matrices, on which the solvers of linalg stand: `lapack`'s, with LAPACK's info.

Arrays are those of `linalg_arrays.Arrays`, in the dtype of the computation. `info` and pivots may be integers
on the device, which nobody has waited for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import lapack
from .level3 import trsm
from .linalg_arrays import Arrays
from .linalg_checks import host_integers, row_order, rows_of

__all__ = ["getrf", "getrs", "potrf", "potri", "potrs"]


def potrf(a: Any, lower: bool, clean: bool, overwrite: bool) -> tuple[Any, Any]:
    """Cholesky factors of the matrices of `a`, and info of each; `clean` zeroes the other triangles."""
    factor, info = lapack.potrf(a, lower, clean, overwrite)
    return factor, info


def potrs(c: Any, b: Any, lower: bool, overwrite: bool) -> Any:
    """Solutions of systems whose Cholesky factors are `c`."""
    return lapack.potrs(c, b, lower, overwrite)[0]


def potri(c: Any, lower: bool) -> Any:
    """A triangle of the inverses of the matrices whose Cholesky factors are `c`, which may be overwritten."""
    return lapack.potri(c, lower, True)[0]


def getrf(a: Any, overwrite: bool) -> tuple[Any, Any, Any]:
    """LU factors of the matrices of `a`, their pivots and info."""
    factors, pivots, info = lapack.getrf(a, overwrite)
    return factors, pivots, info


def getrs(arrays: Arrays, lu: Any, pivots: Any, b: Any, trans: int, overwrite: bool) -> Any:
    """Solutions of systems whose LU factors are `lu`."""
    ours = getattr(lapack, "getrs", None)
    if ours is not None:
        return ours(lu, pivots, b, trans, overwrite)[0]
    order = np.argsort(row_order(host_integers(arrays, pivots), lu.shape[-1]), axis=-1)
    if trans == 0:
        first = trsm(lu, rows_of(arrays, b, order), lower=True, unit_diag=True)
        return trsm(lu, first, out=first)
    first = trsm(lu, b, trans=trans)
    second = trsm(lu, first, lower=True, unit_diag=True, trans=trans, out=first)
    return rows_of(arrays, second, np.argsort(order, axis=-1))
