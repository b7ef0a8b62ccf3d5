"""Singular values and vectors of any matrices by those of square ones whose elements are about one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .arrays import Arrays, gemm_of
from .qr import qr
from .structures import conjugate_transpose

__all__ = ["Triplets", "not_zero", "of_adjoint", "square_triplets"]

#: Left singular vectors, singular values, and right vectors; None for vectors that are not wanted.
Triplets = tuple[Any, Any, Any]


def of_adjoint(arrays: Arrays, triplets: Triplets) -> Triplets:
    """Left vectors, singular values and right vectors, as rows, of matrices from those of their adjoints."""
    u, s, vh = triplets
    if u is None:
        return triplets
    return conjugate_transpose(arrays, vh), s, conjugate_transpose(arrays, u)


def not_zero(arrays: Arrays, x: Any) -> Any:
    """Numbers, and 1 in place of 0."""
    return arrays.xp.where(x == 0, x + 1, x)


def square_triplets(
    name: str, arrays: Arrays, a: Any, full: bool, solve: Callable[[Any], Triplets | None]
) -> Triplets | None:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows.

    Wide matrices are transposed. Tall ones are factored before: A = Q R, and U is Q times the left vectors of
    R.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    arrays : Arrays
    a : array, shape (..., m, n)
        The matrices in the dtype of the computation.
    full : bool
        Whether there are m left and n right vectors.
    solve : callable
        ``solve(squares)`` returns U, singular values, descending, and V of square matrices, whose largest
        element is one where they have not become triangles; or None, which is the result then.
    """
    xp, (*_, m, n), basis = arrays.xp, a.shape, None
    if m < n:
        found = square_triplets(name, arrays, conjugate_transpose(arrays, a), full, solve)
        return None if found is None else of_adjoint(arrays, found)
    scale = not_zero(arrays, xp.max(xp.abs(a), axis=(-2, -1)))
    a = a / scale[..., None, None]
    if m > n:
        basis, a = qr(a, mode="full" if full else "economic", check_finite=False)
        a = a[..., :n, :]
    found = solve(a)
    if found is None:
        return None
    u, s, v = found
    s = s * scale[..., None]
    if u is None:
        return None, s, None
    if basis is not None:
        columns = gemm_of(name, basis[..., :n], u, arrays.dtype)
        u = xp.concat([columns, basis[..., n:]], axis=-1) if full else columns
    return u, s, conjugate_transpose(arrays, v)
