"""Eigenvalues of Hermitian NumPy arrays, by SciPy's LAPACK, in place.

Leading dimensions count matrices; `w` has shape (..., n, 1), and is real.
"""

from __future__ import annotations

import numpy as np

from ...types import Uplo
from .cholesky import lapack
from .level3 import indices, quietly

__all__ = ["syevd"]


@quietly
def syevd(info: np.ndarray, w: np.ndarray, a: np.ndarray, uplo: Uplo, vectors: bool) -> None:
    """Eigenvalues in ascending order, and with `vectors` eigenvectors in the columns of `a`."""
    stem = "heevd" if a.dtype.kind == "c" else "syevd"
    run, low = lapack(stem, a.dtype), uplo is Uplo.LOWER
    for index in indices(a.shape[:-2]):
        w[index][:, 0], columns, info[index][:, 0] = run(a[index], compute_v=vectors, lower=low)
        if vectors:
            a[index] = columns
