"""Singular values and vectors of real matrices by eigenvectors of AᵀA, which two steps make accurate.

AᵀA = V S² Vᵀ loses what is below the root of the precision. So columns of B = A V are orthogonal to all
digits where singular values are large, and to few where they are small. B and V are rotated together then, by
I + Y with Yᵀ = -Y, after which no two columns have a product to first order.
Each step squares what is left. All of it is products (Ogita and Aishima, *Iterative refinement for singular
value decomposition based on matrix multiplication*, 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..lapack import names as lapack
from .arrays import Arrays, gemm_of
from .checks import host_values
from .square_triplets import Triplets, square_triplets

__all__ = ["gram_triplets"]

#: Elements of Y up to which I + Y, with terms of second and third order in the first step, is orthogonal to
#: rounding, for each step.
LIMITS = 1e-4, 1e-8
SMALL = 1e-7  # of the norm, up to which a singular value is too small
LEAST = 10  # multiple of the unit roundoff up to which columns are orthogonal, at least

#: ``solve(matrices)`` returns eigenvalues, ascending, and eigenvectors of symmetric matrices.
Solve = Callable[[Any], tuple[Any, Any]]


def gram_triplets(name: str, arrays: Arrays, a: Any, full: bool, solve: Solve) -> Triplets | None:
    """Left singular vectors, singular values, descending, and right vectors, as rows; None where two steps do
    not suffice for a matrix: singular values are small, or close to one another.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    arrays : Arrays
    a : array, shape (..., m, n)
        The matrices, of float64.
    full : bool
        Whether there are m left and n right vectors.
    solve : callable
        ``solve(matrices)`` returns eigenvalues and eigenvectors of symmetric matrices, with both triangles.
    """
    xp = arrays.xp

    def solve_square(a: Any) -> Triplets | None:
        products = gemm_of(name, a, a, arrays.dtype, trans_a="T")
        if _has_small(arrays, products):
            return None
        v = xp.flip(solve(products)[1], axis=-1)
        n, both, largest = a.shape[-1], xp.concat([gemm_of(name, a, v, arrays.dtype), v], axis=-2), []
        for limit in LIMITS:
            rotation, most = _rotation(name, arrays, both[..., :n, :], limit == LIMITS[-1])
            both = gemm_of(name, both, rotation, arrays.dtype)
            largest.append(most / limit)
        u, v = both[..., :n, :], both[..., n:, :]
        s = xp.sqrt(xp.sum(u * u, axis=-2))
        largest.append(xp.max(SMALL * xp.max(s, axis=-1) / xp.min(s, axis=-1)))
        if not (host_values(xp.stack(largest)) <= 1).all():  # nor where it is NaN
            return None
        return u / s[..., None, :], xp.flip(xp.sort(s, axis=-1), axis=-1), v  # only roundings change places

    return square_triplets(name, arrays, a, full, solve_square)


def _has_small(arrays: Arrays, products: Any) -> bool:
    """Whether pivots of Cholesky's factors show that a matrix of a stack has a singular value that is too
    small. The least pivot is no less than that value, and the largest one no more than the norm.
    """
    factor, info = lapack.potrf(products, lower=True)
    pivots = arrays.xp.linalg.diagonal(factor)
    is_large = arrays.xp.min(pivots, axis=-1) > SMALL * arrays.xp.max(pivots, axis=-1)  # not where it is NaN
    return not host_values(arrays.xp.all(is_large & (info == 0)))


def _rotation(name: str, arrays: Arrays, b: Any, is_small: bool) -> tuple[Any, Any]:
    """I + Y for columns that are nearly orthogonal, with terms of higher order if it is not `is_small`; and
    the largest element of Y.
    """
    xp, n = arrays.xp, b.shape[-1]
    g = gemm_of(name, b, b, arrays.dtype, trans_a="T")
    squares = xp.linalg.diagonal(g)
    norms = xp.sqrt(squares * (max(n**0.5, LEAST) * arrays.dtype.unit_roundoff))
    identity = arrays.identity(n)
    stays = (xp.abs(g) <= norms[..., :, None] * norms[..., None, :]) | (identity != 0)
    apart = squares[..., None, :] - squares[..., :, None]
    y = xp.where(stays, g * 0, g / xp.where(stays, apart * 0 + 1, apart))
    most = xp.max(xp.abs(y))
    if is_small:
        return identity + y, most
    half = gemm_of(name, y, y, arrays.dtype) / 2
    return identity + y + half + gemm_of(name, y, half, arrays.dtype), most
