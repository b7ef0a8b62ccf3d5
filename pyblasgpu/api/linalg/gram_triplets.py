"""Singular values and vectors by eigenvectors of AᴴA, whose digits are doubled until they are accurate.

AᴴA = V S² Vᴴ loses what is below the root of the precision. So columns of A V are orthogonal to all digits
where singular values are large, and to few where they are small. `svd_refined` makes them so, and V with
them. In double precision eigenvectors of single precision serve first: a third step has all digits.
Where they do not serve, those of double precision do, if no singular value is small.
"""

from __future__ import annotations

from typing import Any

from ...types import DTYPES
from ..lapack import names as lapack
from ..lapack.eigen import eigen_on_device
from ..lapack.singular import refined_svd
from .arrays import Arrays, gemm_of
from .checks import host_values
from .square_triplets import Triplets, of_adjoint, square_triplets
from .structures import conjugate_transpose

__all__ = ["gram_triplets"]

#: Dtypes of eigenvectors by that of the matrices, and steps of refinement.
WAYS = {"s": (("s", 2),), "d": (("s", 3), ("d", 2)), "c": (("c", 2),), "z": (("c", 3), ("z", 2))}

SMALL = 1e-7  # of the norm, up to which a singular value is too small


def gram_triplets(name: str, arrays: Arrays, a: Any, full: bool) -> Triplets | None:
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
    """
    m, n = a.shape[-2:]
    if m < n:
        found = gram_triplets(name, arrays, conjugate_transpose(arrays, a), full)
        return None if found is None else of_adjoint(arrays, found)
    if full and m > n:
        return square_triplets(name, arrays, a, full, lambda square: _squares(name, arrays, square))
    return _by_products(name, arrays, a)


def _squares(name: str, arrays: Arrays, a: Any) -> Triplets | None:
    """U, singular values and V of square matrices."""
    found = _by_products(name, arrays, a)
    return None if found is None else (*found[:2], conjugate_transpose(arrays, found[2]))


def _by_products(name: str, arrays: Arrays, a: Any) -> Triplets | None:
    """U, singular values and V, conjugated, as rows, of matrices with no fewer rows than columns."""
    xp, own = arrays.xp, getattr(arrays.xp, arrays.dtype.name)
    for letter, steps in WAYS[arrays.dtype.letter]:
        dtype, is_first = DTYPES[letter], (letter, steps) == WAYS[arrays.dtype.letter][0]
        narrow = xp.astype(a, getattr(xp, dtype.name), copy=False)
        products = gemm_of(name, narrow, narrow, dtype, trans_a="C")
        if not is_first and _has_small(arrays, products):
            return None
        v = eigen_on_device(name, dtype, products, True, True)[1]
        u, s, vh, info = refined_svd(name, arrays.dtype, a, xp.astype(v, own, copy=False), steps)
        if not host_values(info).any():
            return u, s, vh
    return None


def _has_small(arrays: Arrays, products: Any) -> bool:
    """Whether pivots of Cholesky's factors show that a matrix of a stack has a singular value that is too
    small. The least pivot is no less than that value, and the largest one no more than the norm.
    """
    factor, info = lapack.potrf(products, lower=True)
    pivots = arrays.xp.real(arrays.xp.linalg.diagonal(factor))
    is_large = arrays.xp.min(pivots, axis=-1) > SMALL * arrays.xp.max(pivots, axis=-1)  # not where it is NaN
    return not host_values(arrays.xp.all(is_large & (info == 0)))
