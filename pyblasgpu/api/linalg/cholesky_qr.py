"""Reduced QR factors of tall device matrices by Cholesky factors: products and triangular solutions alone.

R of A is the Cholesky factor of AᴴA, and Q = A R⁻¹. A second round with Q makes that orthonormal to a few
roundoffs, unless A is too near to a matrix of less rank (Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, 2015).
That is seen after the first round: the eigenvalues of QᴴQ are within one half of one, or there is no result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...frontend.calls.lazy_routines import policy_at
from ..keyword.level3 import gemm
from ..keyword.triangular import trmm, trsm
from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values

__all__ = ["cholesky_qr", "is_tall"]

SHARE = 16  # rows of a tall matrix for each column


def is_tall(arrays: Arrays, a: Any) -> bool:
    """Whether a device's Householder reflectors would take longer."""
    if arrays.library.host or len(a.shape) < 2 or 0 in a.shape:
        return False
    m, n = a.shape[-2:]
    return bool(m >= SHARE * n and m >= policy_at(arrays.device).cholesky_qr_min_rows)


def cholesky_qr(arrays: Arrays, a: Any) -> tuple[Any, Any] | None:
    """Q and R with a positive diagonal; None where the condition of a matrix is too large for it."""
    first, info = lapack.potrf(gemm(a, a, trans_a="C"), False, True)
    q = trsm(first, a, side="R")
    gram = gemm(q, q, trans_a="C")
    second, other = lapack.potrf(gram, False, True)
    r = trmm(second, first)
    q = trsm(second, q, side="R", out=q)
    departure = np.abs(host_values(gram) - np.eye(a.shape[-1])).sum(axis=-1)
    is_near = departure.max() < 0.5  # not where it is NaN
    return (q, r) if is_near and not host_values(info).any() and not host_values(other).any() else None
