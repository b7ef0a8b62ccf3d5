"""Reduced QR factors of tall device matrices by Cholesky factors: products, and inverses of triangles.

R of A is the Cholesky factor of AᴴA, and Q = A R⁻¹. A second round with Q makes that orthonormal to a few
roundoffs, unless A is too near to a matrix of less rank (Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, 2015).
That is seen after the first round: the eigenvalues of QᴴQ are within one half of one, or there is no result.

A product with R⁻¹ takes a fraction of a substitution's time. But A − Q R, which substitution keeps within
roundoffs of A, is up to |A| |R⁻¹| |R| roundoffs then, and no second round mends that. Where columns of this
are too large beside those of A, substitution takes its place. R of the second round is near the identity.
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
#: Columns of |A| |R⁻¹| |R| beside those of A, by their norms: more is too inaccurate for a product.
MOST_GROWTH = 64


def is_tall(arrays: Arrays, a: Any) -> bool:
    """Whether a device's Householder reflectors would take longer."""
    if arrays.library.host or len(a.shape) < 2 or 0 in a.shape:
        return False
    m, n = a.shape[-2:]
    return bool(m >= SHARE * n and m >= policy_at(arrays.device).cholesky_qr_min_rows)


def cholesky_qr(arrays: Arrays, a: Any) -> tuple[Any, Any] | None:
    """Q and R with a positive diagonal; None where the condition of a matrix is too large for it."""
    first, info = lapack.potrf(gemm(a, a, trans_a="C"), False, True)
    inverse, _ = lapack.trtri(first)
    growth = _growth(arrays, first, inverse)
    found = _second_round(gemm(a, inverse), first)
    if host_values(info).any():
        return None
    if not host_values(growth).max() <= MOST_GROWTH:
        found = _second_round(trsm(first, a, side="R"), first)
    q, r, gram, info = found
    departure = np.abs(host_values(gram) - np.eye(a.shape[-1])).sum(axis=-1)
    is_near = departure.max() < 0.5  # not where it is NaN
    return (q, r) if is_near and not host_values(info).any() else None


def _second_round(q: Any, first: Any) -> tuple[Any, Any, Any, Any]:
    """Q, R, QᴴQ of the first round, and the info of its Cholesky factor."""
    gram = gemm(q, q, trans_a="C")
    second, info = lapack.potrf(gram, False, True)
    inverse, _ = lapack.trtri(second)
    return gemm(q, inverse), trmm(second, first), gram, info


def _growth(arrays: Arrays, r: Any, inverse: Any) -> Any:
    """Bounds of the norms of columns of |A| |R⁻¹| |R| beside those of A, on the device."""
    xp = arrays.xp
    sizes, inverse_sizes = xp.abs(r), xp.abs(inverse)
    norms = xp.sqrt(xp.sum(sizes * sizes, axis=-2))[..., None, :]
    return norms @ inverse_sizes @ sizes / norms
