"""Singular values and vectors of one large matrix: a unitary polar factor, and eigenvectors of the other one.

A = U H with U unitary and H Hermitian. H = V S Vᴴ gives A = (U V) S Vᴴ (Nakatsukasa and Higham, 2013). U is
found for singular values that are not small; what is left of A between the spaces of the small ones is
divided again. More rows than columns are reduced by QR factors first.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np

from ..keyword.level3 import gemm
from .arrays import Arrays
from .checks import host_values
from .halley import LEAST, hermitian_part, norm_bound, scaled, unitary_factor
from .qr import qr
from .structures import conjugate_transpose

__all__ = ["divided_triplets"]

#: Singular values, of the norm, up to which the unitary factor may not be one yet; multiple of the precision
#: up to which they are not known.
SMALL, HIDDEN = 10 * LEAST, 100
ZERO = 10  # multiple of the precision times the norm up to which a block is zero

#: ``solve(matrix)`` returns eigenvalues, ascending, and eigenvectors of a Hermitian matrix.
Solve = Callable[[Any], tuple[Any, Any]]


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
        u, s, vh = divided_triplets(arrays, conjugate_transpose(arrays, a), full, solve)
        return conjugate_transpose(arrays, vh), s, conjugate_transpose(arrays, u)
    xp = arrays.xp
    found = scaled(arrays, a)
    if found is None:
        return arrays.identity(m, m if full else n) * nan, xp.real(a[0]) * nan, arrays.identity(n) * nan
    (a, scale_back), basis = found, None
    if m > n:
        basis, a = qr(a, mode="full" if full else "economic", check_finite=False)
        a = a[:n, :]
    u, s, v = _triplets(arrays, a, solve)
    order = xp.flip(xp.argsort(s), axis=0)
    s, u, v = xp.take(s, order, axis=0), xp.take(u, order, axis=1), xp.take(v, order, axis=1)
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
    rank = int(np.count_nonzero(host_values(values) > max(SMALL, HIDDEN * arrays.precision) * bound))
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
    return left, xp.concat([values[:rank], s], axis=0), right
