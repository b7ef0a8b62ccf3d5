"""Factorizations of stacks of matrices, on which the solvers of linalg stand.

`info` and pivots are counted as SciPy's LAPACK functions count them: the first bad pivot from 1, rows from 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import lapack
from .linalg_arrays import Arrays

__all__ = ["getrf", "getrs", "potrf", "potri", "potrs"]


def potrf(arrays: Arrays, a: Any, lower: bool, clean: bool, overwrite: bool) -> tuple[Any, Any]:
    """Cholesky factors of the matrices of `a`, and info of each; `clean` zeroes the other triangles."""
    factor, info = _each(
        arrays,
        "potrf",
        (a,),
        (2, 0),
        {"lower": lower, "clean": clean},
        {"overwrite_a": overwrite},
    )
    return factor, info


def potrs(arrays: Arrays, c: Any, b: Any, lower: bool, overwrite: bool) -> Any:
    """Solutions of systems whose Cholesky factors are `c`."""
    return _each(arrays, "potrs", (c, b), (2, 0), {"lower": lower}, {"overwrite_b": overwrite})[0]


def potri(arrays: Arrays, c: Any, lower: bool) -> Any:
    """A triangle of the inverses of the matrices whose Cholesky factors are `c`, which may be overwritten."""
    return _each(arrays, "potri", (c,), (2, 0), {"lower": lower}, {"overwrite_c": True})[0]


def getrf(arrays: Arrays, a: Any, overwrite: bool) -> tuple[Any, Any, Any]:
    """LU factors of the matrices of `a`, their pivots and info."""
    lu, pivots, info = _each(arrays, "getrf", (a,), (2, 1, 0), {}, {"overwrite_a": overwrite})
    return lu, pivots, info


def getrs(arrays: Arrays, lu: Any, pivots: Any, b: Any, trans: int, overwrite: bool) -> Any:
    """Solutions of systems whose LU factors are `lu`."""
    return _each(arrays, "getrs", (lu, pivots, b), (2, 0), {"trans": trans}, {"overwrite_b": overwrite})[0]


def _each(
    arrays: Arrays,
    routine: str,
    inputs: tuple[Any, ...],
    outputs: tuple[int, ...],
    flags: dict[str, Any],
    overwrite: dict[str, bool],
) -> tuple[Any, ...]:
    """LAPACK's routine for each matrix of a stack; `outputs` are the results' dimensions."""
    ours = getattr(lapack, routine, None)
    if ours is not None:
        return tuple(ours(*inputs, **flags, **overwrite))
    if not arrays.library.host:
        raise NotImplementedError(f"{routine}: arrays on a device are not taken yet")
    from scipy.linalg.lapack import get_lapack_funcs  # slow to import

    function = get_lapack_funcs(routine, dtype=np.dtype(arrays.dtype.name))
    batch = inputs[0].shape[:-2]
    if not batch:
        return tuple(function(*inputs, **flags, **overwrite))
    if 0 in batch:
        found = function(*(np.zeros(x.shape[len(batch) :], x.dtype) for x in inputs), **flags)
        return tuple(np.empty((*batch, *np.shape(each)), np.asarray(each).dtype) for each in found)
    results: list[Any] = []
    for index in np.ndindex(batch):
        found = function(*(x[index] for x in inputs), **flags)
        if not results:
            results = [np.empty((*batch, *np.shape(each)), np.asarray(each).dtype) for each in found]
        for result, each in zip(results, found, strict=True):
            result[index] = each
    return tuple(results)
