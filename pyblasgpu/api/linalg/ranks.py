"""Functions of matrices whose singular values or eigenvalues below a tolerance count as zero.

pinv, pinvh, matrix_rank, null_space, orth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled, shown
from ...frontend.arrays.any_array import host_array
from ...types import Uplo
from ..docstrings import Shared, documenting
from .arrays import Arrays, gemm_of, taken
from .checks import check_values, host_values
from .docs import LINALG
from .full_rank import FullRank
from .standard import eigenpairs, matrix_or_stack, singular_triplets, square_order
from .structures import conjugate_transpose

__all__ = ["matrix_rank", "null_space", "orth", "pinv", "pinvh"]

_documented = documenting(
    Shared("""
    Parameters
    ----------
    a : array, shape (..., m, n)
        The matrices; leading dimensions count them.
    A : array, shape (..., m, n)
        The matrices; leading dimensions count them. All of a stack need the same rank.
    atol : float, optional
        Singular values up to ``atol + rtol s`` count as zero, s the largest one; by default 0.
    rtol : float, optional
        See `atol`; by default ``max(m, n)`` times the precision of the dtype.
    rcond : float, optional
        Singular values up to `rcond` times the largest one count as zero; by default ``max(m, n)`` times the
        precision of the dtype.
    return_rank : bool, default False
        Whether the number of singular values that count is returned too.

    Raises
    ------
    numpy.linalg.LinAlgError
        When the iteration does not converge.
    """),
    LINALG,
)


@_documented
def pinv(
    a: Array,
    *,
    atol: float | Array | None = None,
    rtol: float | Array | None = None,
    return_rank: Flag = False,
    check_finite: Flag = None,
    hermitian: Flag = False,
) -> Any:
    """Moore-Penrose inverse by singular values, as `scipy.linalg.pinv`.

    Parameters
    ----------
    hermitian : bool, default False
        Whether matrices are Hermitian: eigenvalues of the lower triangles serve then, as by NumPy.

    Returns
    -------
    B : array, shape (..., n, m)
        The pseudo-inverse.
    rank : int, or array of int64
        The rank. Left out without `return_rank`.

    Raises
    ------
    ValueError
        When `a` is no matrix, a tolerance is negative, or Inf or NaN was found.

    See Also
    --------
    pinvh : Pseudo-inverse of Hermitian matrices.
    lstsq : Least squares, which need no pseudo-inverse.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.pinv([[2.0, 0.0], [0.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    is_hermitian = enabled(hermitian, "pinv", "hermitian")
    return _inverted("pinv", a, (atol, rtol), return_rank, check_finite, True if is_hermitian else None)


@_documented
def pinvh(
    a: Array,
    atol: float | Array | None = None,
    rtol: float | Array | None = None,
    lower: Flag = True,
    return_rank: Flag = False,
    check_finite: Flag = None,
) -> Any:
    """Moore-Penrose inverse of Hermitian matrices by eigenvalues, as `scipy.linalg.pinvh`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        The Hermitian matrices, of which one triangle is read; leading dimensions count them.
    atol : float, optional
        Eigenvalues of a modulus up to ``atol + rtol s`` count as zero, s the largest modulus; by default 0.
    rtol : float, optional
        See `atol`; by default n times the precision of the dtype.
    lower : bool, default True
        Whether the lower triangles are read, else the upper ones.

    Returns
    -------
    B : array, shape (..., n, n)
        The pseudo-inverse.
    rank : int, or array of int64
        The rank. Left out without `return_rank`.

    Raises
    ------
    ValueError
        When `a` is not square, a tolerance is negative, or Inf or NaN was found.

    See Also
    --------
    pinv : Pseudo-inverse of any matrices.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.pinvh([[2.0, 0.0], [0.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    low = Uplo.parse(lower, "pinvh", "lower") is Uplo.LOWER
    return _inverted("pinvh", a, (atol, rtol), return_rank, check_finite, low)


@_documented
def matrix_rank(
    A: Array,
    tol: float | Array | None = None,
    hermitian: Flag = False,
    *,
    rtol: float | Array | None = None,
    check_finite: Flag = None,
) -> Any:
    """Ranks of matrices by singular values, as `numpy.linalg.matrix_rank`.

    Parameters
    ----------
    A : array, shape (..., m, n)
        The matrices; leading dimensions count them. A vector has rank 1, or 0 where it is zero.
    tol : float or array, optional
        Singular values up to `tol` count as zero.
    hermitian : bool, default False
        Whether matrices are Hermitian: eigenvalues of the lower triangles serve then.
    rtol : float or array, optional
        In place of `tol`, relative to the largest singular value of each matrix; by default ``max(m, n)``
        times the precision of the dtype.
    check_finite : bool, default False
        Whether to look for Inf and NaN.

    Returns
    -------
    int, or array of int64, shape (...)
        The ranks, of device arrays on their device.

    Raises
    ------
    ValueError
        When both tolerances are given, or Inf or NaN was found.

    See Also
    --------
    svdvals : The singular values.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> int(linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
    1
    """
    name = "matrix_rank"
    if tol is not None and rtol is not None:
        raise ValueError(f"{name}: tol and rtol exclude each other")
    is_hermitian = enabled(hermitian, name, "hermitian")
    arrays = taken(name, {"A": A})
    (matrix,), xp = arrays.each, arrays.xp
    with arrays.silent():
        check_values(arrays, enabled(check_finite or False, name, "check_finite"), name, matrix)
        if len(matrix.shape) < 2:
            return arrays.returned(xp.astype(xp.any(matrix != 0), xp.int64))
        m, n = matrix.shape[-2:]
        relative = max(m, n) * arrays.precision if rtol is None else rtol
        atol = _along(name, "tol", arrays, 0.0 if tol is None else tol)
        rtol = _along(name, "rtol", arrays, relative if tol is None else 0.0)
        try:
            sizes = _sizes(name, arrays, matrix, is_hermitian, divides=False)
        except NotImplementedError:
            if not is_hermitian and FullRank.of(arrays, arrays.cast(matrix), atol, rtol):
                return arrays.returned(_ranks(arrays, matrix))
            sizes = _sizes(name, arrays, matrix, is_hermitian)
        largest = xp.max(sizes, axis=-1, keepdims=True) if min(m, n) else 0
        return arrays.returned(xp.sum(xp.astype(sizes > largest * rtol + atol, xp.int64), axis=-1))


@_documented
def orth(A: Array, rcond: float | None = None) -> Array:
    """Orthonormal basis of the range of a matrix by singular values, as `scipy.linalg.orth`.

    Returns
    -------
    array, shape (..., m, k)
        Orthonormal columns, k the rank.

    Raises
    ------
    ValueError
        When `A` is no matrix, matrices of a stack differ in rank, or Inf or NaN was found.

    See Also
    --------
    null_space : Basis of the null space.
    qr : Orthonormal columns that span the columns one after the other.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> abs(linalg.orth([[3.0, 6.0], [4.0, 8.0]])).round(3)
    array([[0.6],
           [0.8]])
    """
    arrays, found, rank = _basis("orth", A, rcond, False, None)
    with arrays.silent():
        return arrays.returned(found.range if isinstance(found, FullRank) else found[0][..., :rank])


@_documented
def null_space(
    A: Array,
    rcond: float | None = None,
    *,
    overwrite_a: Flag = False,
    check_finite: Flag = None,
    lapack_driver: str = "gesdd",
) -> Array:
    """Orthonormal basis of the null space of a matrix by singular values, as `scipy.linalg.null_space`.

    Parameters
    ----------
    overwrite_a : bool, default False
        Whether `A` may be overwritten.
    lapack_driver : {'gesdd', 'gesvd'}, default 'gesdd'
        LAPACK's routine, by divide and conquer or by QR iteration.

    Returns
    -------
    array, shape (..., n, k)
        Orthonormal columns, n - k the rank.

    Raises
    ------
    ValueError
        When `A` is no matrix, matrices of a stack differ in rank, the driver is none, or Inf or NaN was
        found.

    See Also
    --------
    orth : Basis of the range.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> abs(linalg.null_space([[3.0, 4.0]])).round(3)
    array([[0.8],
           [0.6]])
    """
    name = "null_space"
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ValueError(f"{name}: lapack_driver={shown(lapack_driver)} is none of gesdd, gesvd")
    arrays, found, rank = _basis(name, A, rcond, True, check_finite, overwrite_a, lapack_driver)
    with arrays.silent():
        if isinstance(found, FullRank):
            return arrays.returned(found.null_space)
        return arrays.returned(conjugate_transpose(arrays, found[2][..., rank:, :]))


def _triplets_or_factors(
    name: str,
    arrays: Arrays,
    matrix: Any,
    atol: Any,
    rtol: Any,
    full: bool = False,
    driver: str = "gesdd",
    overwrite: bool = False,
) -> Any:
    """Singular vectors and values; of device matrices that kernels do not have and that have full rank, QR
    factors.
    """
    how = name, arrays, matrix, full, True, driver, overwrite
    try:
        return singular_triplets(*how, divides=False)
    except NotImplementedError:
        return FullRank.of(arrays, matrix, atol, rtol) or singular_triplets(*how)


def _basis(
    name: str,
    a: Array,
    rcond: float | None,
    full: bool,
    check_finite: Flag,
    overwrite_a: Flag = False,
    driver: str = "gesdd",
) -> tuple[Arrays, Any, int]:
    """The arrays of a call, singular vectors or QR factors, and the rank that all matrices have."""
    arrays = taken(name, {"A": a})
    (matrix,) = arrays.each
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        m, n = matrix_or_stack(name, "A", matrix)
        in_place = arrays.output(matrix, overwrite) is not None
        relative = max(m, n) * arrays.precision if rcond is None else float(rcond)
        found = _triplets_or_factors(name, arrays, arrays.cast(matrix), 0.0, relative, full, driver, in_place)
        if isinstance(found, FullRank):
            return arrays, found, min(m, n)
        return arrays, found, _rank_of_all(name, found[1], min(m, n), relative)


def _rank_of_all(name: str, s: Any, most: int, relative: float) -> int:
    """The rank that all matrices have, from their singular values; device arrays are waited for."""
    values = host_values(s)
    ranks = (values > values.max(axis=-1, initial=0, keepdims=True) * relative).sum(axis=-1)
    if ranks.size and (ranks != ranks.flat[0]).any():
        listed = ", ".join(map(str, sorted(set(ranks.ravel().tolist()))))
        raise ValueError(f"{name}: the matrices of the stack have the ranks {listed}: pass one at a time")
    return int(ranks.flat[0]) if ranks.size else most


def _ranks(arrays: Arrays, matrix: Any) -> Any:
    """The ranks of device matrices of full rank."""
    return arrays.from_host(np.full(tuple(matrix.shape[:-2]), min(matrix.shape[-2:]), np.int64))


def _sizes(name: str, arrays: Arrays, matrix: Any, is_hermitian: bool, divides: bool = True) -> Any:
    """The singular values of matrices, see `singular_triplets`."""
    matrix = arrays.cast(matrix)
    if not is_hermitian:
        return singular_triplets(name, arrays, matrix, with_vectors=False, divides=divides)[1]
    square_order(name, "A", matrix)
    return arrays.xp.abs(eigenpairs(name, arrays, matrix, True, with_vectors=False)[0])


def _along(name: str, argument: str, arrays: Arrays, tolerance: Any) -> Any:
    """A tolerance, or one a matrix, against the values of each matrix; ValueError for a negative number."""
    if isinstance(tolerance, (list, tuple)):
        tolerance = np.asarray(tolerance)
    if arrays.library.host and hasattr(tolerance, "shape"):
        tolerance = host_array(tolerance, name, argument)
    elif isinstance(tolerance, np.ndarray):
        tolerance = arrays.from_host(tolerance)
    if hasattr(tolerance, "shape") and tolerance.shape:
        return tolerance[..., None]
    if float(tolerance) < 0:
        raise ValueError(f"{name}: {argument}={shown(tolerance)} is negative")
    return float(tolerance)


def _inverted(
    name: str,
    a: Array,
    tolerances: tuple[Any, Any],
    return_rank: Flag,
    check_finite: Flag,
    low: bool | None,
) -> Any:
    """The pseudo-inverse, by eigenvalues of the triangle with `low`, or by singular values where it is None;
    and the rank, if it is wanted.
    """
    with_rank = enabled(return_rank, name, "return_rank")
    arrays = taken(name, {"a": a})
    (matrix,), xp = arrays.each, arrays.xp
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        m, n = matrix_or_stack(name, "a", matrix)
        matrix = arrays.cast(matrix)
        defaults = 0.0, max(m, n) * arrays.precision
        atol, rtol = (
            _along(name, argument, arrays, default if value is None else value)
            for argument, value, default in zip(("atol", "rtol"), tolerances, defaults, strict=True)
        )
        if low is None:
            found = _triplets_or_factors(name, arrays, matrix, atol, rtol)
            if isinstance(found, FullRank):
                inverted = arrays.returned(found.pseudo_inverse)
                return (inverted, arrays.returned(_ranks(arrays, matrix))) if with_rank else inverted
            u, values, vh = found
            left, right = conjugate_transpose(arrays, vh), conjugate_transpose(arrays, u)
        else:
            square_order(name, "a", matrix)
            # by QR iteration, which finds zero within the tolerance, as SciPy's
            values, left = eigenpairs(name, arrays, matrix, low, driver="ev")
            right = conjugate_transpose(arrays, left)
        sizes = xp.abs(values)
        largest = xp.max(sizes, axis=-1, keepdims=True) if min(m, n) else 0
        counts = sizes > largest * rtol + atol
        inverse = xp.where(counts, 1 / xp.where(counts, values, 1), 0)
        result = arrays.returned(gemm_of(name, left * inverse[..., None, :], right, arrays.dtype))
        if not with_rank:
            return result
        return result, arrays.returned(xp.sum(xp.astype(counts, xp.int64), axis=-1))
