"""Reduced QR factors of tall device matrices by Cholesky factors: products, and inverses of triangles.

R of A is the Cholesky factor of AᴴA, and Q = A R⁻¹. A second round with Q makes that orthonormal to a few
roundoffs, unless A is too near to a matrix of less rank (Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, 2015).
That is seen after the first round: the eigenvalues of QᴴQ are within one half of one, or there is no result.

A product with R⁻¹ takes a fraction of a substitution's time. But A − Q R, which substitution keeps within
roundoffs of A, is up to |A| |R⁻¹| |R| roundoffs then, and no second round mends that. Where columns of
this exceed those of A too far, substitution takes its place. R of the second round is near the identity.
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

WIDTH = 128  # columns of blocks in which zeros of triangles are left out
SHARE = 16  # rows of a tall matrix for each column
#: Columns of |A| |R⁻¹| |R| over those of A, by their norms: more is too inaccurate for a product.
MOST_GROWTH = 64


def is_tall(arrays: Arrays, a: Any) -> bool:
    """Whether a device's Householder reflectors would take longer."""
    if arrays.library.host or len(a.shape) < 2 or 0 in a.shape:
        return False
    m, n = a.shape[-2:]
    return bool(m >= SHARE * n and m >= policy_at(arrays.device).cholesky_qr_min_rows)


def cholesky_qr(arrays: Arrays, a: Any) -> tuple[Any, Any] | None:
    """Q and R with a positive diagonal; None where the condition of a matrix is too large for it."""
    first, info = lapack.potrf(_gram(arrays, a), False, True)
    inverse, _ = lapack.trtri(first)
    growth = _growth(arrays, first, inverse)
    found = _second_round(arrays, _product(arrays, a, inverse), first)
    if host_values(info).any():
        return None
    if not host_values(growth).max() <= MOST_GROWTH:
        found = _second_round(arrays, trsm(first, a, side="R"), first)
    q, r, gram, info = found
    upper = np.abs(np.triu(host_values(gram)) - np.eye(a.shape[-1]))
    departure = upper.sum(axis=-1) + np.triu(upper, 1).sum(axis=-2)
    is_near = departure.max() < 0.5  # not where it is NaN
    return (q, r) if is_near and not host_values(info).any() else None


def _second_round(arrays: Arrays, q: Any, first: Any) -> tuple[Any, Any, Any, Any]:
    """Q, R, the upper triangle of QᴴQ of the first round, and the info of its Cholesky factor."""
    gram = _gram(arrays, q)
    second, info = lapack.potrf(gram, False, True)
    inverse, _ = lapack.trtri(second)
    return _product(arrays, q, inverse), trmm(second, first), gram, info


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(first, min(first + WIDTH, n)) for first in range(0, n, WIDTH)]


def _gram(arrays: Arrays, a: Any) -> Any:
    """The upper triangle of AᴴA; below it may be zeros."""
    n = a.shape[-1]
    if n <= WIDTH:
        return gemm(a, a, trans_a="C")
    gram = arrays.xp.zeros((*a.shape[:-2], n, n), dtype=a.dtype, **arrays.placement)
    for first, last in _blocks(n):
        gemm(a[..., :last], a[..., first:last], trans_a="C", out=gram[..., :last, first:last])
    return gram


def _product(arrays: Arrays, a: Any, r: Any) -> Any:
    """A R, of an upper triangle R with zeros below its diagonal."""
    n = a.shape[-1]
    if n <= WIDTH:
        return gemm(a, r)
    q = arrays.xp.empty_like(a)
    for first, last in _blocks(n):
        gemm(a[..., :last], r[..., :last, first:last], out=q[..., first:last])
    return q


def _growth(arrays: Arrays, r: Any, inverse: Any) -> Any:
    """Bounds of the norms of columns of |A| |R⁻¹| |R| over those of A, on the device."""
    xp = arrays.xp
    sizes, inverse_sizes = xp.abs(r), xp.abs(inverse)
    norms = xp.sqrt(xp.sum(sizes * sizes, axis=-2))[..., None, :]
    return norms @ inverse_sizes @ sizes / norms
