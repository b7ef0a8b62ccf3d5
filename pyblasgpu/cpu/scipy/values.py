"""Looks at what SciPy's BLAS and LAPACK have computed: a sum of moduli takes a fraction of NumPy's time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import Any

import numpy as np

__all__ = ["FEW", "LONGEST", "has_finite_diagonal", "has_normal_reciprocals", "is_finite"]

_Array = np.ndarray[Any, Any]
LONGEST = 2**31 - 1  # vector of SciPy's BLAS
_ASUM = {"f": "sasum", "d": "dasum", "F": "scasum", "D": "dzasum"}
FEW = 32  # numbers of which Python finds the least before NumPy begins
#: Ends of the moduli of numbers whose reciprocals are normal, with a margin for those of complex ones.
_ENDS = {char: (4 * float(np.finfo(char).tiny), float(np.finfo(char).max) / 8) for char in _ASUM}


@cache
def _asum(char: str) -> Callable[..., float]:
    from scipy.linalg import blas  # slow to import

    function: Callable[..., float] = getattr(blas, _ASUM[char])
    return function


def is_finite(array: _Array) -> bool:
    """Whether no element is Inf or NaN; perhaps False where the sum of moduli would overflow."""
    if not 0 < array.size <= LONGEST:
        return bool(np.isfinite(array).all())
    return isfinite(_asum(array.dtype.char)(array.ravel("K")))


def has_finite_diagonal(a: _Array) -> bool:
    """Whether no element of a square matrix's diagonal is Inf or NaN; perhaps False where they are large."""
    return isfinite(_size_of_diagonal(a))


def has_normal_reciprocals(a: _Array) -> bool:
    """Whether the reciprocals of the diagonal of a square matrix are normal numbers."""
    least, most = _ENDS[a.dtype.char]
    if len(a) <= FEW:
        for value in a.diagonal().tolist():  # noqa: SIM110  # a generator would take longer
            if not least <= abs(value) <= most:
                return False
        return True
    return _size_of_diagonal(a) <= most and bool(np.abs(a.diagonal()).min() >= least)


def _size_of_diagonal(a: _Array) -> float:
    """Return the sum of moduli on the diagonal of a square matrix."""
    n = a.shape[0]
    return _asum(a.dtype.char)(a.ravel("K"), n, 0, n + 1)
