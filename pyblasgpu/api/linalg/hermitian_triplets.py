"""Singular values and vectors of batches by those of Hermitian matrices, products and QR factors.

In single precision these are AᴴA in double precision. The squares of singular values have twice their digits,
and double precision has more than that. So small ones lose nothing that single precision would keep. In
double precision it is the matrix [[0, A], [Aᴴ, 0]] of twice the order. Its largest eigenvalues are the
singular values, with [u, v] as vectors (Jordan and Wielandt).

Columns of A V, or of U and V, are orthogonal but where singular values are small. There QR factors make them
so, the largest ones first: what that changes is a rounding of A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...types import DTYPES, Dtype
from .arrays import Arrays, gemm_of
from .qr import qr
from .square_triplets import Triplets, of_adjoint, square_triplets
from .structures import conjugate_transpose

__all__ = ["hermitian_triplets", "problem_of"]

#: ``solve(stack, first)`` returns eigenvalues, ascending, and eigenvectors of Hermitian matrices; vectors
#: before the `first` one may be anything.
Solve = Callable[[Any, int], tuple[Any, Any]]


def problem_of(dtype: Dtype, n: int) -> tuple[Dtype, int]:
    """The dtype and the order of the Hermitian matrices for matrices of n columns, and no fewer rows."""
    wide = {"s": DTYPES["d"], "c": DTYPES["z"]}.get(dtype.letter)
    return (dtype, 2 * n) if wide is None else (wide, n)


def hermitian_triplets(
    name: str, arrays: Arrays, a: Any, full: bool, with_vectors: bool, solve: Solve
) -> tuple[Any, Any, Any]:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows.

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
        ``solve(stack, first)`` returns eigenvalues of Hermitian matrices as `problem_of` says, and their
        eigenvectors from the `first` one on.
    """
    *_, m, n = a.shape
    if m < n:
        adjoint = conjugate_transpose(arrays, a)
        return of_adjoint(arrays, hermitian_triplets(name, arrays, adjoint, full, with_vectors, solve))
    wide, order = problem_of(arrays.dtype, n)
    if order > n:
        return _by_both(name, arrays, a, full, with_vectors, solve)
    return _by_gram(name, arrays, a, wide, full, with_vectors, solve)


def _by_gram(
    name: str, arrays: Arrays, a: Any, wide: Dtype, full: bool, with_vectors: bool, solve: Solve
) -> tuple[Any, Any, Any]:
    """Singular values and vectors by those of AᴴA in a wider dtype."""
    xp, narrow = arrays.xp, getattr(arrays.xp, arrays.dtype.name)
    real, a = xp.real(a).dtype, xp.astype(a, getattr(xp, wide.name))
    w, v = solve(gemm_of(name, a, a, wide, trans_a="C"), 0)
    s = xp.astype(xp.flip(xp.sqrt(xp.where(w < 0, w * 0, w)), axis=-1), real)
    if not with_vectors:
        return None, s, None
    v = xp.flip(v, axis=-1)
    u = _orthonormal(arrays, xp.astype(gemm_of(name, a, v, wide), narrow), full)
    return u, s, conjugate_transpose(arrays, xp.astype(v, narrow))


def _by_both(
    name: str, arrays: Arrays, a: Any, full: bool, with_vectors: bool, solve: Solve
) -> tuple[Any, Any, Any]:
    """Singular values and vectors by those of [[0, A], [Aᴴ, 0]], of tall matrices in place of A by R."""
    xp, n = arrays.xp, a.shape[-1]

    def solve_square(a: Any) -> Triplets:
        zeros, adjoint = a * 0, conjugate_transpose(arrays, a)
        both = xp.concat([xp.concat([zeros, a], axis=-1), xp.concat([adjoint, zeros], axis=-1)], axis=-2)
        w, pairs = solve(both, n)
        s = xp.flip(w, axis=-1)[..., :n]
        s = xp.where(s < 0, s * 0, s)
        if not with_vectors:
            return None, s, None
        pairs = xp.flip(pairs, axis=-1)[..., :n]
        u, v = (_orthonormal(arrays, each) for each in (pairs[..., :n, :], pairs[..., n:, :]))
        return u, s, v

    found = square_triplets(name, arrays, a, full, solve_square)
    assert found is not None
    return found


def _orthonormal(arrays: Arrays, columns: Any, full: bool = False) -> Any:
    """Orthonormal columns of the same spans; with `full` others behind them, a square matrix."""
    xp, (*_, m, n) = arrays.xp, columns.shape
    basis, triangle = qr(columns, mode="full" if full else "economic", check_finite=False)
    diagonal = xp.linalg.diagonal(triangle)
    sizes = xp.abs(diagonal)
    signs = xp.where(sizes == 0, diagonal * 0 + 1, diagonal / xp.where(sizes == 0, sizes + 1, sizes))
    left = basis[..., :n] * signs[..., None, :]
    return xp.concat([left, basis[..., n:]], axis=-1) if full and m > n else left
