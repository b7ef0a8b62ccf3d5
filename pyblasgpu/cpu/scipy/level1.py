"""Level 1 of NumPy arrays on SciPy's BLAS: vectors are columns, of shape (..., n, 1); outputs' leading
dimensions count them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...routine_table import ROUTINES
from .level3 import scipys_blas

__all__ = ["axpy", "reduce", "rot", "rotm", "scal", "swap"]


def scal(alpha: Any, x: np.ndarray, v: np.ndarray) -> None:
    """``v := alpha x``; v may be x. A real alpha multiplies parts of complex numbers."""
    if v is not x:
        v[...] = x
    if alpha == 1:
        return
    by_real = v.dtype.kind == "c" and not getattr(alpha, "imag", 0)
    alpha, run = alpha.real if by_real else alpha, _blas("scal", v.dtype, by_real)
    for (target,) in _vectors(v):
        dense = np.ascontiguousarray(target)
        _put(target, run(alpha, dense))


def axpy(alpha: Any, x: np.ndarray, y: np.ndarray) -> None:
    """``y := alpha x + y``."""
    run = _blas("axpy", y.dtype)
    for source, target in _vectors(x, y):
        _put(target, run(source, np.ascontiguousarray(target), a=alpha))


def swap(x: np.ndarray, y: np.ndarray) -> None:
    """``x, y := y, x``."""
    run = _blas("swap", x.dtype)
    for one, other in _vectors(x, y):
        for target, result in zip((one, other), run(one, other), strict=True):
            _put(target, result)


def rot(c: float, s: float, x: np.ndarray, y: np.ndarray) -> None:
    """``x, y := c x + s y, c y - s x``."""
    run = _blas("rot", x.dtype)
    for one, other in _vectors(x, y):
        results = run(one, other, c, s, overwrite_x=1, overwrite_y=1)
        for target, result in zip((one, other), results, strict=True):
            _put(target, result)


def rotm(param: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Compute ``x, y := H (x, y)`` for the H of `param`."""
    run = _blas("rotm", x.dtype)
    for one, other in _vectors(x, y):
        one[...], other[...] = run(one, other, param)


def reduce(operation: str, conj: bool, *arrays: np.ndarray) -> None:
    """DOT, NRM2, ASUM or I?AMAX of vectors, into the last of `arrays`."""
    *vectors, out = arrays
    run = _blas(operation, np.result_type(vectors[0]), conj)
    if vectors[0].shape[-2] == 0:
        out[...] = -1 if operation == "iamax" else 0
        return
    for *each, target in _vectors(*vectors, out):
        target[...] = run(*each)


_LETTERS = str.maketrans("fdFD", "sdcz")


def _blas(stem: str, dtype: np.dtype, other: bool = False) -> Callable[..., Any]:
    """SciPy's function of a routine; the `other` one where there are two for the dtype."""
    names = ROUTINES[stem].scipys(dtype.char.translate(_LETTERS))
    return scipys_blas(names[-1] if other else names[0])


def _vectors(*arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """The vectors of each step through the stacks, which broadcast to the last; none if they are empty."""
    if 0 in arrays[-1].shape:
        return
    batch_shape = arrays[-1].shape[:-2]
    shapes = [batch_shape + array.shape[-2:] for array in arrays]
    # what has the shape already is not to become read-only
    stacks = [a if a.shape == s else np.broadcast_to(a, s) for a, s in zip(arrays, shapes, strict=True)]
    for index in np.ndindex(batch_shape):
        yield tuple([stack[index][:, 0] for stack in stacks])


def _put(target: np.ndarray, result: np.ndarray) -> None:
    """``target := result``, unless that was computed in it."""
    if not np.shares_memory(target, result):
        target[...] = result
