"""Singular values and vectors of matrices with small singular values, for which eigenvectors of AᴴA have no
digits.

Rows of R are graded for such eigenvectors V and A V = Q R. Columns of M = Rᴴ that belong to small singular
values have nothing of the others. So each decade of singular values has eigenvectors of its own part of MᴴM,
in its own scale; what is below the root of the precision is one group. The parts are blocks of one Hermitian
matrix. QR factors of M times its eigenvectors are nearly diagonal, and `refined_svd` makes them so. Columns
that are zero to rounding become diagonal before, so that they have vectors too.
"""

from __future__ import annotations

from math import log10
from typing import Any

from ..lapack.eigen import eigen_on_device
from ..lapack.singular import refined_svd
from .arrays import Arrays, gemm_of
from .qr import qr
from .square_triplets import Triplets, not_zero
from .structures import conjugate_transpose

__all__ = ["graded_triplets"]

STEPS = 4  # of refinement
#: Shifts of decades of singular values, of which one is taken.
BORDERS = 0.8, 0.925, 1.05, 1.175
KEPT = 2  # groups of large singular values, of which eigenvectors stay as they are
#: The norm of a group's part, that of the last one being 1, which most needs the precision; and how far apart
#: eigenvalues of two groups begin, of that norm.
SHARE, APART = 0.125, 1.25
#: Multiple of n times the unit roundoff times Frobenius' norm up to which a column counts as zero, and of the
#: unit roundoff up to which an element does.
ZERO_COLUMN, ZERO = 8, 3
#: Powers of two that are the least elements of the diagonal, in place of 0, by the size of a real number.
LEAST = {4: -40, 8: -400}


def graded_triplets(name: str, arrays: Arrays, a: Any, values: Any, vectors: Any) -> tuple[Triplets, Any]:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows; and info of
    each matrix, not 0 where they are not accurate.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    arrays : Arrays
    a : array, shape (count, m, n)
        The matrices in the dtype of the computation, with no fewer rows than columns.
    values, vectors : array, shape (count, n) and (count, n, n)
        Eigenvalues, ascending, and eigenvectors of AᴴA.
    """
    xp, dtype, identity = arrays.xp, arrays.dtype, arrays.identity(a.shape[-1])
    scale = not_zero(arrays, xp.max(xp.abs(a), axis=(-2, -1)))
    a, vectors = a / scale[:, None, None], xp.flip(vectors, axis=-1)
    groups = _groups(arrays, xp.flip(values, axis=-1))
    left, r = qr(gemm_of(name, a, vectors, dtype), mode="economic", check_finite=False)
    own = _own_vectors(name, arrays, r, groups)
    right, r = qr(gemm_of(name, r, own, dtype, trans_a="C"), mode="economic", check_finite=False)
    r = _regular(arrays, r)
    u, s, vh, info = refined_svd(name, dtype, r, identity + r * 0, STEPS)
    s = xp.where(s <= 2 * _least(arrays), s * 0, s) * scale[:, None]
    # R = (W V) S (Q U)ᴴ
    u, v = gemm_of(name, own, vh, dtype, trans_b="C"), gemm_of(name, right, u, dtype)
    u, v = gemm_of(name, left, u, dtype), gemm_of(name, vectors, v, dtype)
    return (u, s, conjugate_transpose(arrays, v)), info


def _groups(arrays: Arrays, values: Any) -> Any:
    """The number of the group of each singular value, its decade, from descending squares. Of the `BORDERS`
    those are taken where values on both sides couple least.
    """
    xp, unit, last = arrays.xp, arrays.dtype.unit_roundoff, _last(arrays)
    one = xp.ones_like(values)
    squares = values / values[:, :1]
    squares = xp.where(squares > unit**2, squares, one * unit**2)  # where it is NaN, too
    squares = xp.where(squares < 1, squares, one)
    decades = xp.log10(squares) * -0.5
    groups = xp.stack([xp.floor(decades + border) for border in BORDERS])
    groups = xp.where(groups < last, groups, xp.ones_like(groups) * last)
    high, low = squares[:, :-1], squares[:, 1:]
    coupling = xp.sqrt(low / high) / (high - low + unit**2)
    apart = xp.astype(groups[..., 1:] > groups[..., :-1], coupling.dtype)
    best = xp.argmin(xp.max(coupling * apart, axis=-1), axis=0)
    return xp.take_along_axis(groups, best[None, :, None], axis=0)[0, ...]


def _last(arrays: Arrays) -> float:
    """The number of the last group, of singular values whose squares have no digits."""
    return float(int(-log10(arrays.dtype.unit_roundoff) / 2) + 1)


def _least(arrays: Arrays) -> float:
    """The least element of the diagonal, in place of 0."""
    return float(2.0 ** LEAST[arrays.dtype.real_size])


def _own_vectors(name: str, arrays: Arrays, r: Any, groups: Any) -> Any:
    """Eigenvectors of the groups' parts of R Rᴴ, columns in the order of the groups, as one matrix."""
    xp, dtype, identity = arrays.xp, arrays.dtype, arrays.identity(r.shape[-1])
    parts = gemm_of(name, r, r, dtype, trans_b="C")
    is_same = groups[:, :, None] == groups[:, None, :]
    parts = xp.where(is_same, parts, parts * 0)
    bounds = xp.sum(xp.abs(parts), axis=-1)[:, None, :]
    bounds = not_zero(arrays, xp.max(xp.where(is_same, bounds, bounds * 0), axis=-1))
    is_last = xp.astype(groups == _last(arrays), groups.dtype)
    share = SHARE + (1 - SHARE) * is_last
    places = groups * (SHARE * APART) + is_last
    # eigenvalues ascend: large singular values are first
    parts = identity * places[:, :, None] - parts * (share / bounds)[:, :, None]
    _, own, _ = eigen_on_device(name, dtype, parts, True, True)
    own = xp.where(is_same, own, own * 0)
    return xp.where(groups[:, :, None] < KEPT, identity, own)


def _regular(arrays: Arrays, r: Any) -> Any:
    """R without what is zero to rounding, and with a diagonal that is not."""
    xp, n, unit = arrays.xp, r.shape[-1], arrays.dtype.unit_roundoff
    sizes = xp.abs(r)
    squares = xp.sum(sizes * sizes, axis=-2)
    norm = xp.sqrt(xp.sum(squares, axis=-1))[:, None]
    is_column = xp.sqrt(squares) > ZERO_COLUMN * n * unit * norm
    counts = (sizes > ZERO * unit * norm[:, :, None]) & is_column[:, None, :]
    diagonal = xp.linalg.diagonal(r)
    least = _least(arrays)
    diagonal = xp.where(xp.abs(diagonal) <= least, diagonal * 0 + least, diagonal)
    r = r * xp.astype(counts, squares.dtype)  # what is NaN stays
    return xp.where(arrays.identity(n) != 0, diagonal[:, :, None], r)
