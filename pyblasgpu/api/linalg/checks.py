"""Checks of the arguments of linalg's solvers, and errors for what a factorization found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from ...arguments import enabled
from ...cpu.scipy.values import is_finite
from ...frontend.arrays.any_array import host_values
from .arrays import Arrays

__all__ = [
    "broadcast_batches",
    "check_values",
    "host_values",
    "is_checked",
    "raise_indefinite",
    "raise_singular",
    "solved",
]


def is_checked(arrays: Arrays, check_finite: Any, name: str) -> bool:
    """Whether values are to be looked at: by default those of host arrays, for which nothing waits."""
    return arrays.library.host if check_finite is None else enabled(check_finite, name, "check_finite")


def check_values(arrays: Arrays, check_finite: Any, name: str, *each: Any) -> bool:
    """Whether values are looked at; ValueError, as SciPy words it, if an array holds Inf or NaN."""
    checked = is_checked(arrays, check_finite, name)
    for array in each if checked else ():
        if not _are_finite(arrays, array):
            raise ValueError(f"{name}: array must not contain infs or NaNs")
    return checked


def _are_finite(arrays: Arrays, array: Any) -> bool:
    if arrays.library.host and array.dtype.char in "fdFD" and is_finite(array):
        return True
    return bool(arrays.xp.all(arrays.xp.isfinite(array)))


def raise_indefinite(arrays: Arrays, info: Any) -> None:
    """LinAlgError for the first matrix of a stack that is not positive definite."""
    _raise_for(arrays, info, _raise_indefinite)


def _raise_indefinite(info: Any) -> None:
    infos = host_values(info).ravel()
    bad = infos[infos > 0]
    if bad.size:
        raise LinAlgError(f"{bad[0]}-th leading minor of the array is not positive definite")


def raise_singular(arrays: Arrays, singular: Any) -> None:
    """LinAlgError that names the matrices of a stack for which `singular` is not 0."""
    _raise_for(arrays, singular, _raise_singular)


def _raise_singular(singular: Any) -> None:
    bad = np.flatnonzero(host_values(singular)).tolist()
    if bad:
        raise LinAlgError(f"A singular matrix detected: slice(s) {bad} are singular.")


def _raise_for(arrays: Arrays, values: Any, raises: Callable[[Any], None]) -> None:
    """Call ``raises(values)``, which raises for values that are not 0, in repeated calls too."""
    if type(values) is int and values == 0:
        return
    if arrays.recording is not None:
        arrays.recording.check(values, raises)
    raises(values)


def solved(arrays: Arrays, factors: Any, right: Any, solve: Callable[[Any, Any], Any]) -> Any:
    """Return ``solve(factors, right)`` for stacks of factors and of right-hand sides, or a vector."""
    vector = len(right.shape) == 1
    right = right[..., None] if vector else right
    factors, right = broadcast_batches(arrays, arrays.cast(factors), arrays.cast(right))
    solution = arrays.xp.zeros_like(right) if 0 in right.shape else solve(factors, right)
    result = arrays.returned(solution[..., 0] if vector else solution)
    arrays.kept(result)
    return result


def broadcast_batches(arrays: Arrays, a: Any, b: Any) -> tuple[Any, Any]:
    """Two stacks of matrices with the leading dimensions of both; views where the library makes them."""
    if tuple(a.shape[:-2]) == tuple(b.shape[:-2]):
        return a, b
    batch = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    return tuple(
        each if tuple(each.shape[:-2]) == batch else arrays.xp.broadcast_to(each, (*batch, *each.shape[-2:]))
        for each in (a, b)
    )
