"""Cholesky factors, inverses of triangles and solutions of NumPy arrays, by SciPy's LAPACK, in place.

The outputs' leading dimensions count matrices, the inputs' broadcast to them; `info` has shape (..., 1, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..types import Uplo
from .cpu import quietly

__all__ = ["lapack", "potrf"]


@cache
def lapack(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    """SciPy's wrapper of a routine."""
    from scipy.linalg.lapack import get_lapack_funcs  # slow to import, and device arrays do without it

    return get_lapack_funcs(name, dtype=dtype)


@quietly
def potrf(info: np.ndarray, a: np.ndarray, uplo: Uplo, clean: bool) -> None:
    """The factor in the `uplo` triangle of `a`; the other one becomes zero if `clean`."""
    run = lapack("potrf", a.dtype)
    for index in np.ndindex(a.shape[:-2]):
        start = np.array(a[index], order="F")
        a[index], info[index] = run(start, uplo is Uplo.LOWER, clean, overwrite_a=1)
