"""Singular values and vectors of large matrices: a unitary polar factor, and eigenvectors of the other one.

A = U H with U unitary and H Hermitian. H = V S Vᴴ gives A = (U V) S Vᴴ (Nakatsukasa and Higham, 2013). U is
found for singular values that are not small; what is left of one matrix between the spaces of the small ones
is divided again. More rows than columns are reduced by QR factors first.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np

from ..keyword.level3 import gemm
from .arrays import Arrays, gemm_of
from .checks import host_values
from .halley import LEAST, hermitian_part, norm_bound, norm_bounds, scaled, unitary_factor
from .qr import qr
from .square_triplets import Triplets, not_zero, of_adjoint, square_triplets
from .structures import conjugate_transpose

__all__ = ["divided_triplets", "polar_triplets"]

#: Singular values, of the norm, up to which the unitary factor may not be one yet; multiple of the precision
#: up to which they are not known.
SMALL, HIDDEN = 10 * LEAST, 100
ZERO = 10  # multiple of the precision times the norm up to which a block is zero

#: ``solve(matrices)`` returns eigenvalues, ascending, and eigenvectors of Hermitian matrices.
Solve = Callable[[Any], tuple[Any, Any]]


def polar_triplets(
    name: str, arrays: Arrays, a: Any, full: bool, with_vectors: bool, solve: Solve
) -> tuple[Any, Any, Any] | None:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows; None where
    a singular value of a matrix is so small that its polar factor is not known.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    arrays : Arrays
    a : array, shape (..., m, n)
        The matrices in the dtype of the computation. Results are NaN where one is not finite.
    full : bool
        Whether there are m left and n right vectors.
    with_vectors : bool
        Without it the vectors are None.
    solve : callable
        ``solve(matrices)`` returns eigenvalues and eigenvectors of Hermitian matrices, with both triangles.
    """
    xp = arrays.xp

    def solve_square(a: Any) -> Triplets | None:
        bound = not_zero(arrays, norm_bounds(arrays, a))
        a = a / bound[..., None, None]
        factor = unitary_factor(arrays, a)
        w, v = solve(hermitian_part(arrays, gemm_of(name, factor, a, arrays.dtype, trans_a="C")))
        if host_values(xp.any(w <= _small(arrays))):  # not where it is NaN
            return None
        s = xp.flip(w, axis=-1) * bound[..., None]
        if not with_vectors:
            return None, s, None
        v = xp.flip(v, axis=-1)
        return gemm_of(name, factor, v, arrays.dtype), s, v

    return square_triplets(name, arrays, a, full, solve_square)


def _small(arrays: Arrays) -> float:
    """The singular value, of the norm, up to which the polar factor is not known."""
    return max(SMALL, HIDDEN * arrays.precision)


def divided_triplets(arrays: Arrays, a: Any, full: bool, solve: Solve) -> tuple[Any, Any, Any]:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows.

    Parameters
    ----------
    arrays : Arrays
    a : array, shape (m, n)
        The matrix in the dtype of the computation. If it is not finite, results are NaN.
    full : bool
        Whether there are m left and n right vectors.
    solve : callable
        ``solve(matrix)`` returns eigenvalues and eigenvectors of a Hermitian matrix, with both triangles.
    """
    m, n = a.shape
    if m < n:
        return of_adjoint(arrays, divided_triplets(arrays, conjugate_transpose(arrays, a), full, solve))
    xp = arrays.xp
    found = scaled(arrays, a)
    if found is None:
        return arrays.identity(m, m if full else n) * nan, xp.real(a[0]) * nan, arrays.identity(n) * nan
    (a, scale_back), basis = found, None
    if m > n:
        basis, a = qr(a, mode="full" if full else "economic", check_finite=False)
        a = a[:n, :]
    u, s, v = _triplets(arrays, a, solve)
    if basis is not None:
        columns = [gemm(basis[:, :n], u), basis[:, n:]]
        u = xp.concat(columns, axis=1) if full else columns[0]
    return u, scale_back(s), conjugate_transpose(arrays, v)


def _triplets(arrays: Arrays, a: Any, solve: Solve, tolerance: float | None = None) -> tuple[Any, Any, Any]:
    """Left vectors, singular values, descending, and right vectors of a square matrix; a norm up to the
    `tolerance`, by default that of a whole matrix, is zero.
    """
    xp, n, bound = arrays.xp, a.shape[-1], norm_bound(arrays, a)
    tolerance = ZERO * arrays.precision * bound if tolerance is None else tolerance
    if bound <= tolerance:
        return (
            arrays.identity(n),
            xp.zeros((n,), dtype=xp.real(a).dtype, **arrays.placement),
            arrays.identity(n),
        )
    factor = unitary_factor(arrays, a / bound)
    values, vectors = solve(hermitian_part(arrays, gemm(factor, a, trans_a="C")))
    values, vectors = xp.flip(xp.abs(values), axis=0), xp.flip(vectors, axis=1)
    rank = int(np.count_nonzero(host_values(values) > _small(arrays) * bound))
    left = gemm(factor, vectors[:, :rank])
    if rank == n:
        return left, values, vectors
    # small ones have spoiled the vectors next to them
    columns, triangle = qr(left, mode="full", check_finite=False)
    diagonal = xp.linalg.diagonal(triangle)
    left, left_rest = columns[:, :rank] * (diagonal / xp.abs(diagonal)), columns[:, rank:]
    right_rest = vectors[:, rank:]
    rest = gemm(left_rest, gemm(a, right_rest), trans_a="C")
    u, s, v = _triplets(arrays, rest, solve, tolerance)
    left, right = (
        xp.concat([most, gemm(basis, others)], axis=1)
        for most, basis, others in ((left, left_rest, u), (vectors[:, :rank], right_rest, v))
    )
    s = xp.concat([values[:rank], s], axis=0)
    order = xp.flip(xp.argsort(s), axis=0)
    return xp.take(left, order, axis=1), xp.take(s, order, axis=0), xp.take(right, order, axis=1)
