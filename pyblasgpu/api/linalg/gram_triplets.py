"""Singular values and vectors of matrices in single precision, by eigenvectors of AᴴA in double precision.

The squares of singular values have twice their digits, and double precision has more than that: so small ones
lose nothing that single precision would keep. All is batched: a product, eigenvalues, and QR factors of A V,
whose columns are orthogonal. These give orthonormal left vectors for singular values of zero, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...types import DTYPES, Dtype
from .arrays import Arrays, gemm_of
from .qr import qr
from .structures import conjugate_transpose

__all__ = ["gram_triplets", "wider"]

#: ``solve(stack)`` returns eigenvalues, ascending, and eigenvectors of Hermitian matrices.
Solve = Callable[[Any], tuple[Any, Any]]


def wider(dtype: Dtype) -> Dtype | None:
    """The dtype of double precision for one of single precision, else None."""
    return {"s": DTYPES["d"], "c": DTYPES["z"]}.get(dtype.letter)


def gram_triplets(
    name: str, arrays: Arrays, a: Any, full: bool, with_vectors: bool, solve: Solve
) -> tuple[Any, Any, Any]:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    arrays : Arrays
    a : array, shape (..., m, n)
        The matrices, in single precision. Results are NaN where one is not finite.
    full : bool
        Whether there are m left and n right vectors.
    with_vectors : bool
        Without it the vectors are None.
    solve : callable
        ``solve(stack)`` returns eigenvalues and eigenvectors of Hermitian matrices in double precision.
    """
    *_, m, n = a.shape
    if m < n:
        adjoint = conjugate_transpose(arrays, a)
        u, s, vh = gram_triplets(name, arrays, adjoint, full, with_vectors, solve)
        if not with_vectors:
            return None, s, None
        return conjugate_transpose(arrays, vh), s, conjugate_transpose(arrays, u)
    xp, wide, narrow = arrays.xp, wider(arrays.dtype), getattr(arrays.xp, arrays.dtype.name)
    assert wide is not None
    real, a = xp.real(a).dtype, xp.astype(a, getattr(xp, wide.name))
    w, v = solve(gemm_of(name, a, a, wide, trans_a="C"))
    s = xp.astype(xp.flip(xp.sqrt(xp.where(w < 0, w * 0, w)), axis=-1), real)
    if not with_vectors:
        return None, s, None
    v = xp.flip(v, axis=-1)
    columns = xp.astype(gemm_of(name, a, v, wide), narrow)
    basis, triangle = qr(columns, mode="full" if full else "economic", check_finite=False)
    diagonal = xp.linalg.diagonal(triangle)
    sizes = xp.abs(diagonal)
    signs = xp.where(sizes == 0, diagonal * 0 + 1, diagonal / xp.where(sizes == 0, sizes + 1, sizes))
    left = basis[..., :n] * signs[..., None, :]
    u = xp.concat([left, basis[..., n:]], axis=-1) if full and m > n else left
    return u, s, conjugate_transpose(arrays, xp.astype(v, narrow))
