"""Singular values and vectors by eigenvectors of AᴴA, whose digits are doubled until they are accurate.

AᴴA = V S² Vᴴ loses what is below the root of the precision. So columns of A V are orthogonal to all digits
where singular values are large, and to few where they are small. `svd_refined` makes them so, and V with
them. In double precision eigenvectors of single precision serve first: a third step has all digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...types import DTYPES, Dtype
from ..lapack.singular import refined_svd
from .arrays import Arrays, gemm_of
from .checks import host_values
from .square_triplets import Triplets, of_adjoint, square_triplets
from .structures import conjugate_transpose

__all__ = ["gram_triplets"]

#: Dtypes of eigenvectors by that of the matrices, and steps of refinement.
WAYS = {"s": (("s", 2),), "d": (("s", 3), ("d", 2)), "c": (("c", 2),), "z": (("c", 3), ("z", 2))}

#: ``solve(dtype, matrices)`` returns eigenvectors of Hermitian matrices.
Solve = Callable[[Dtype, Any], Any]


def gram_triplets(name: str, arrays: Arrays, a: Any, full: bool, solve: Solve) -> Triplets | None:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows; None where
    steps do not suffice for a matrix: singular values are small, or close to one another.

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
        ``solve(dtype, matrices)`` returns eigenvectors of Hermitian matrices, with both triangles.
    """
    m, n = a.shape[-2:]
    if m < n:
        found = gram_triplets(name, arrays, conjugate_transpose(arrays, a), full, solve)
        return None if found is None else of_adjoint(arrays, found)
    if full and m > n:
        return square_triplets(name, arrays, a, full, lambda square: _squares(name, arrays, square, solve))
    return _by_products(name, arrays, a, solve)


def _squares(name: str, arrays: Arrays, a: Any, solve: Solve) -> Triplets | None:
    """U, singular values and V of square matrices."""
    found = _by_products(name, arrays, a, solve)
    return None if found is None else (*found[:2], conjugate_transpose(arrays, found[2]))


def _by_products(name: str, arrays: Arrays, a: Any, solve: Solve) -> Triplets | None:
    """U, singular values and V, conjugated, as rows, of matrices with no fewer rows than columns."""
    xp, own = arrays.xp, getattr(arrays.xp, arrays.dtype.name)
    for letter, steps in WAYS[arrays.dtype.letter]:
        dtype = DTYPES[letter]
        narrow = xp.astype(a, getattr(xp, dtype.name), copy=False)
        v = solve(dtype, gemm_of(name, narrow, narrow, dtype, trans_a="C"))
        u, s, vh, info = refined_svd(name, arrays.dtype, a, xp.astype(v, own, copy=False), steps)
        if not host_values(info).any():
            return u, s, vh
    return None
