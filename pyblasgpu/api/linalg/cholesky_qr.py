"""Reduced QR factors of tall device matrices by Cholesky factors: products, and inverses of triangles.

R of A is the Cholesky factor of AᴴA, and Q = A R⁻¹. With the columns of A scaled to norm one, Q departs from
orthonormal columns by the roundoffs of AᴴA over its least eigenvalue. Where that is no small fraction of
one, one round is enough. Else a second round with Q makes that orthonormal to a few roundoffs (Yamamoto,
Nakatsukasa, Yanagisawa and Fukaya, 2015), unless A is too near to a matrix of less rank: the test is
made of Q too.

A product with R⁻¹ takes a fraction of a substitution's time. But A − Q R, which substitution keeps within
roundoffs of A, is up to |A| |R⁻¹| |R| roundoffs then, and no second round mends that. Where columns of
this exceed those of A too far, substitution takes its place. In a last round they do not: R is near a
diagonal matrix. Of few columns substitution takes no longer.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from ...frontend.calls.lazy_routines import policy_at
from ..keyword.level3 import gemm
from ..keyword.triangular import trmm, trsm
from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values

__all__ = ["SHARE", "SMALL", "cholesky_qr", "gram", "is_tall", "sensitivity"]

WIDTH = 128  # columns of blocks in which zeros of triangles are left out
SHARE = 16  # rows of a tall matrix for each column
NARROW = 32  # columns for which a substitution is bound by memory, as a product is
#: Columns of |A| |R⁻¹| |R| over those of A, by their norms: more is too inaccurate for a product.
MOST_GROWTH = 64
#: Sums of a row of |AᴴA − I|, with columns of norm one, that leave all eigenvalues within one half of one.
MOST_DEPARTURE = 0.5
#: Sums of a row of |(AᴴA)⁻¹|, with columns of norm one, of a first round that is enough: they bound by how
#: much errors of AᴴA grow in Q. Of numbers between zero and one they are about eight.
MOST_SENSITIVITY = 10
#: Smaller squares of a column's norm are of elements whose squares lose digits; by bytes of a real.
SMALL = {4: 2.0**-100, 8: 2.0**-960}


class _Round(NamedTuple):
    """Q, R, its inverse if Q is a product, and the info of the Cholesky factor. Last is the departure of A
    from orthogonality, a number on the device.
    """

    q: Any
    r: Any
    inverse: Any | None
    info: Any
    departure: Any

    @property
    def is_last(self) -> bool:
        """Whether Q is orthonormal; not where the departure is NaN. The host waits."""
        return bool(host_values(self.departure) < MOST_DEPARTURE)


def is_tall(arrays: Arrays, a: Any) -> bool:
    """Whether a device's Householder reflectors would take longer."""
    if arrays.library.host or len(a.shape) < 2 or 0 in a.shape:
        return False
    m, n = a.shape[-2:]
    return bool(m >= SHARE * n and m >= policy_at(arrays.device).cholesky_qr_min_rows)


def cholesky_qr(arrays: Arrays, a: Any, out: Any | None = None) -> tuple[Any, Any] | None:
    """Q and R with a positive diagonal; None where the condition of a matrix is too large for it. Q of one
    round is in `out`, if that is given.
    """
    first = _round(arrays, a, out)
    if first.is_last:
        return first.q, first.r
    if host_values(first.info).any():
        return None
    q, r, inverse, _, _ = first
    if inverse is None:
        inverse, _ = lapack.trtri(r)
    elif not host_values(_growth(arrays, r, inverse)).max() <= MOST_GROWTH:
        q = trsm(r, a, side="R", out=out)
    if host_values(sensitivity(arrays, r, inverse)).max() <= MOST_SENSITIVITY:
        return q, r
    second = _round(arrays, q)
    return (second.q, trmm(second.r, r)) if second.is_last else None


def _round(arrays: Arrays, a: Any, out: Any | None = None) -> _Round:
    """Enqueue a round of A; the test of it is enqueued last, while Q is computed."""
    products, inverse = gram(arrays, a), None
    r, info = lapack.potrf(products, False, True)
    if a.shape[-1] <= NARROW:
        q = trsm(r, a, side="R", out=out)
    else:
        inverse, _ = lapack.trtri(r)
        q = _product(arrays, a, inverse, out)
    return _Round(q, r, inverse, info, _departure(arrays, products))


def _blocks(n: int) -> list[tuple[int, int]]:
    return [(first, min(first + WIDTH, n)) for first in range(0, n, WIDTH)]


def gram(arrays: Arrays, a: Any) -> Any:
    """The upper triangle of AᴴA; below it may be zeros."""
    n = a.shape[-1]
    if n <= WIDTH:
        return gemm(a, a, trans_a="C")
    products = arrays.xp.zeros((*a.shape[:-2], n, n), dtype=a.dtype, **arrays.placement)
    for first, last in _blocks(n):
        gemm(a[..., :last], a[..., first:last], trans_a="C", out=products[..., :last, first:last])
    return products


def _product(arrays: Arrays, a: Any, r: Any, out: Any | None) -> Any:
    """A R, of an upper triangle R with zeros below its diagonal."""
    n = a.shape[-1]
    if n <= WIDTH:
        return gemm(a, r, out=out)
    q = arrays.xp.empty_like(a) if out is None else out
    for first, last in _blocks(n):
        gemm(a[..., :last], r[..., :last, first:last], out=q[..., first:last])
    return q


def _growth(arrays: Arrays, r: Any, inverse: Any) -> Any:
    """Bounds of the norms of columns of |A| |R⁻¹| |R| over those of A, on the device."""
    xp = arrays.xp
    sizes, inverse_sizes = xp.abs(r), xp.abs(inverse)
    norms = xp.sqrt(xp.sum(sizes * sizes, axis=-2))[..., None, :]
    return norms @ inverse_sizes @ sizes / norms


def sensitivity(arrays: Arrays, r: Any, inverse: Any) -> Any:
    """Sums of rows of |(AᴴA)⁻¹|, with the columns of A scaled to norm one, on the device; infinite where
    squares lose digits.
    """
    xp, sizes = arrays.xp, arrays.xp.abs(r)
    squares = xp.sum(sizes * sizes, axis=-2)
    scaled = inverse * xp.sqrt(squares)[..., None]
    lost = xp.where(squares >= SMALL[arrays.dtype.real_size], 0 * squares, inf)
    return xp.sum(xp.abs(gemm(scaled, scaled, trans_b="C")), axis=-1) + lost


def _departure(arrays: Arrays, gram: Any) -> Any:
    """The largest sum of a row of |AᴴA − I|, with the columns of A scaled to norm one, from the upper
    triangle; larger than one half where squares lose digits.
    """
    xp, sizes = arrays.xp, arrays.xp.abs(gram)
    squares = xp.linalg.diagonal(sizes)
    norms = xp.sqrt(squares)
    upper = xp.triu(sizes) / norms[..., None, :] / norms[..., None]
    lost = SMALL[arrays.dtype.real_size] / squares
    return xp.max(xp.sum(upper, axis=-1) + xp.sum(upper, axis=-2) + lost) - 2
