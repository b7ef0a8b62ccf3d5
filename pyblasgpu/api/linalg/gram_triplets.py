"""Singular values and vectors by eigenvectors of AᴴA, whose digits are doubled until they are accurate.

AᴴA = V S² Vᴴ loses what is below the root of the precision. So columns of A V are orthogonal to all digits
where singular values are large, and to few where they are small. `svd_refined` makes them so, and V with
them. Matrices for which that does not serve are computed again: columns of A V are rotated, which takes few
sweeps, or `graded_triplets` serves. What is left after that is for the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...frontend.calls.lazy_routines import routine_module
from ..lapack.eigen import eigen_on_device
from ..lapack.singular import refined_svd, svd_on_device
from .arrays import Arrays, gemm_of
from .checks import host_values
from .graded_triplets import graded_triplets
from .square_triplets import Triplets, of_adjoint, square_triplets
from .structures import conjugate_transpose

__all__ = ["gram_triplets"]

#: ``solve(stack)`` returns U, singular values and V, conjugated, as rows.
Solve = Callable[[Any], Triplets]
STEPS = 2  # of refinement: all digits, if no singular value is below some 10⁻⁵ of the norm


def gram_triplets(name: str, arrays: Arrays, a: Any, full: bool, solve: Solve) -> Triplets:
    """Left singular vectors, singular values, descending, and right vectors, conjugated, as rows.

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
        ``solve(stack)`` returns the same of a stack, with as many vectors as columns. Used where none of the
        ways here serves.
    """
    m, n = a.shape[-2:]
    if m < n:
        return of_adjoint(arrays, gram_triplets(name, arrays, conjugate_transpose(arrays, a), full, solve))
    if full and m > n:
        found = square_triplets(name, arrays, a, full, lambda square: _squares(name, arrays, square, solve))
        assert found is not None
        return found
    return _by_products(name, arrays, a, solve)


def _squares(name: str, arrays: Arrays, a: Any, solve: Solve) -> Triplets:
    """U, singular values and V of square matrices."""
    u, s, vh = _by_products(name, arrays, a, solve)
    return u, s, conjugate_transpose(arrays, vh)


def _by_products(name: str, arrays: Arrays, a: Any, solve: Solve) -> Triplets:
    """U, singular values and V, conjugated, as rows, of matrices with no fewer rows than columns."""
    products = gemm_of(name, a, a, arrays.dtype, trans_a="C")
    w, v, _ = eigen_on_device(name, arrays.dtype, products, True, True)
    u, s, vh, info = refined_svd(name, arrays.dtype, a, v, STEPS)
    failed = np.flatnonzero(host_values(info))
    if not failed.size:
        return u, s, vh
    xp, (*batch, m, n) = arrays.xp, a.shape
    stacks = (u, (m, n)), (s, (n,)), (vh, (n, n)), (a, (m, n)), (w, (n,)), (v, (n, n))
    u, s, vh, *given = (xp.reshape(x, (-1, *shape)) for x, shape in stacks)
    given = [_matrices(arrays, x, failed) for x in given]
    again, is_good = _again(name, arrays, *given)
    left = np.flatnonzero(~host_values(is_good))
    if left.size:
        again = _replaced(arrays, again, left, solve(_matrices(arrays, given[0], left)))
    found = _replaced(arrays, (u, s, vh), failed, again)
    u, s, vh = (xp.reshape(x, (*batch, *x.shape[1:])) for x in found)
    return u, s, vh


def _matrices(arrays: Arrays, stack: Any, indices: np.ndarray) -> Any:
    """The matrices of a stack that have these indices, which ascend."""
    if indices.size == stack.shape[0]:
        return stack
    return arrays.xp.take(stack, arrays.from_host(indices), axis=0)


def _replaced(arrays: Arrays, found: Triplets, indices: np.ndarray, others: Triplets) -> Triplets:
    """Results of a stack, those of the matrices with these indices replaced."""
    count = found[1].shape[0]
    if indices.size == count:
        return others
    xp, order = arrays.xp, np.arange(count)
    order[indices] = count + np.arange(indices.size)
    order = arrays.from_host(order)
    u, s, vh = (xp.take(xp.concat(both, axis=0), order, axis=0) for both in zip(found, others, strict=True))
    return u, s, vh


def _again(name: str, arrays: Arrays, a: Any, w: Any, v: Any) -> tuple[Triplets, Any]:
    """Results of matrices for which refined vectors do not serve, and whether they are good."""
    m, n = a.shape[-2:]
    if routine_module("lapack.gesdd").serves(m, n, arrays.dtype, arrays.device, vectors=True):
        return _by_rotations(name, arrays, a, v)
    found, info = graded_triplets(name, arrays, a, w, v)
    return found, info == 0


def _by_rotations(name: str, arrays: Arrays, a: Any, v: Any) -> tuple[Triplets, Any]:
    """U, singular values and V by rotations of A V, and whether they are finite: products may overflow."""
    xp = arrays.xp
    v = xp.flip(v, axis=-1)  # the longest columns first
    u, s, vh, _ = svd_on_device(
        name, arrays.dtype, gemm_of(name, a, v, arrays.dtype), False, True, keeps=False
    )
    vh = gemm_of(name, vh, v, arrays.dtype, trans_b="C")
    is_finite = xp.all(xp.isfinite(s), axis=-1)
    for each in (u, vh):
        is_finite = is_finite & xp.all(xp.isfinite(each), axis=(-2, -1))
    return (u, s, vh), is_finite
