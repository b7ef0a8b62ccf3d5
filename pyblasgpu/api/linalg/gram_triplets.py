"""Singular values and vectors by eigenvectors of AᴴA, whose digits are doubled until they are accurate.

AᴴA = V S² Vᴴ loses what is below the root of the precision. So columns of A V are orthogonal to all digits
where singular values are large, and to few where they are small. `svd_refined` makes them so, and V with
them. Where that does not serve, columns of A V are rotated: they take few sweeps.
"""

from __future__ import annotations

from typing import Any

from ..lapack.eigen import eigen_on_device
from ..lapack.singular import refined_svd, svd_on_device
from .arrays import Arrays, gemm_of
from .checks import host_values
from .square_triplets import Triplets, of_adjoint, square_triplets
from .structures import conjugate_transpose

__all__ = ["gram_triplets"]

STEPS = 2  # of refinement: all digits, if no singular value is below some 10⁻⁵ of the norm


def gram_triplets(name: str, arrays: Arrays, a: Any, full: bool) -> Triplets | None:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows; None where
    singular values of a matrix are too small, and kernels do not rotate matrices of the shape.

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
    products = gemm_of(name, a, a, arrays.dtype, trans_a="C")
    _, v, _ = eigen_on_device(name, arrays.dtype, products, True, True)
    u, s, vh, info = refined_svd(name, arrays.dtype, a, v, STEPS)
    return _by_rotations(name, arrays, a, v) if host_values(info).any() else (u, s, vh)


def _by_rotations(name: str, arrays: Arrays, a: Any, v: Any) -> Triplets | None:
    """U, singular values and V by rotations of A V; None where there is no kernel, or a result is not finite:
    products may overflow.
    """
    xp = arrays.xp
    v = xp.flip(v, axis=-1)  # the longest columns first
    try:
        u, s, vh, _ = svd_on_device(
            name, arrays.dtype, gemm_of(name, a, v, arrays.dtype), False, True, keeps=False
        )
    except NotImplementedError:
        return None
    found = u, s, gemm_of(name, vh, v, arrays.dtype, trans_b="C")
    are_finite = [xp.all(xp.isfinite(each)) for each in found]
    return found if host_values(xp.all(xp.stack(are_finite))) else None
