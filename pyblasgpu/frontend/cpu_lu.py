"""LU factors of NumPy arrays and what is done with them, by SciPy's LAPACK, in place.

The outputs' leading dimensions count matrices, the inputs' broadcast to them; pivots have shape (..., k, 1),
`info` has (..., 1, 1).
"""

from __future__ import annotations

import numpy as np

from .cpu import quietly
from .cpu_cholesky import lapack

__all__ = ["getrf"]


@quietly
def getrf(piv: np.ndarray, info: np.ndarray, a: np.ndarray) -> None:
    """L and U in `a`, and the pivots."""
    run = lapack("getrf", a.dtype)
    for index in np.ndindex(a.shape[:-2]):
        start = np.array(a[index], order="F")
        a[index], piv[index][:, 0], info[index] = run(start, overwrite_a=1)
