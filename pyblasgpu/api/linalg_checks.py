"""What the solvers of linalg check of their arguments, and how they tell what a factorization found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from ..arguments import enabled
from ..frontend.device_integers import DeviceIntegers
from .linalg_arrays import Arrays

__all__ = [
    "broadcast_batches",
    "check_finite_values",
    "host_values",
    "is_checked",
    "raise_indefinite",
    "raise_singular",
]


def is_checked(arrays: Arrays, check_finite: Any, name: str) -> bool:
    """Whether values are to be looked at: by default those of host arrays, for which nothing waits."""
    return arrays.library.host if check_finite is None else enabled(check_finite, name, "check_finite")


def check_finite_values(arrays: Arrays, *each: Any) -> None:
    """Raise ValueError, as SciPy words it, if an array holds Inf or NaN."""
    xp = arrays.xp
    for array in each:
        if not bool(xp.all(xp.isfinite(array))):
            raise ValueError("array must not contain infs or NaNs")


def host_values(arrays: Arrays, values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Values, as integers that a factorization left, as a NumPy array; device arrays are waited for."""
    if arrays.library.host or isinstance(values, (int, np.ndarray, DeviceIntegers)):
        return np.asarray(values)
    get = getattr(values, "get", None)  # CuPy's
    return np.asarray(get() if callable(get) else values.cpu() if hasattr(values, "cpu") else values)


def raise_indefinite(arrays: Arrays, info: Any) -> None:
    """LinAlgError for the first matrix of a stack that is not positive definite."""
    found = host_values(arrays, info).ravel()
    bad = found[found > 0]
    if bad.size:
        raise LinAlgError(f"{bad[0]}-th leading minor of the array is not positive definite")


def raise_singular(arrays: Arrays, singular: Any) -> None:
    """LinAlgError that names the matrices of a stack for which `singular` is not 0."""
    bad = np.flatnonzero(host_values(arrays, singular)).tolist()
    if bad:
        raise LinAlgError(f"A singular matrix detected: slice(s) {bad} are singular.")


def broadcast_batches(arrays: Arrays, a: Any, b: Any) -> tuple[Any, Any]:
    """Two stacks of matrices with the leading dimensions of both; views where the library makes them."""
    batch = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    return tuple(
        each if tuple(each.shape[:-2]) == batch else arrays.xp.broadcast_to(each, (*batch, *each.shape[-2:]))
        for each in (a, b)
    )
