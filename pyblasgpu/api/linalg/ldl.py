"""L D L^H factors: SciPy's ldl, and the inertia that D has."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled
from ...cpu.scipy.stacks import over_stacks, scipys_linalg
from ...types import Uplo
from ..lapack import names as lapack
from ..lapack.ldl import matrices_on_device
from .arrays import Arrays, taken
from .checks import check_values
from .docs import documented
from .structures import square

__all__ = ["inertia", "ldl"]


@documented
def ldl(
    A: Array,
    lower: Flag = True,
    hermitian: Flag = True,
    overwrite_a: Flag = False,
    check_finite: Flag = None,
) -> tuple[Array, Array, Array]:
    """L D L^H factors of a symmetric or Hermitian matrix as matrices, as `scipy.linalg.ldl`.

    Parameters
    ----------
    A : array, shape (..., n, n)
        The matrices, of which one triangle is read; leading dimensions count them.
    lower : bool, default True
        Whether the lower triangle is read and ``a = L D L^H``, else the upper one and ``a = U D U^H``.
    hermitian : bool, default True
        Whether complex matrices are Hermitian, else symmetric.
    overwrite_a : bool, default False
        Whether `A` may be overwritten.

    Returns
    -------
    lu : array, shape (..., n, n)
        The outer factor: ``lu[perm]`` is a triangle with a diagonal of ones.
    d : array, shape (..., n, n)
        Blocks of order one and two on the diagonal.
    perm : array of int64, shape (..., n)
        The rows of `lu` in the order that makes it a triangle.

    Raises
    ------
    ValueError
        When `A` is not square, or Inf or NaN was found.
    NotImplementedError
        When matrices on a device are of a larger order than there are kernels for.

    Warns
    -----
    numpy.exceptions.ComplexWarning
        When the diagonal of Hermitian host matrices is not real; it is read as if it were.

    See Also
    --------
    pyblasgpu.lapack.sytrf : The factors as LAPACK has them.
    inertia : The signs of the eigenvalues.
    cholesky : Factors of definite matrices.

    Notes
    -----
    The signs of the eigenvalues of `d` are those of the matrix (Sylvester's law of inertia). Device arrays
    are waited for with `check_finite` alone.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> lu, d, perm = linalg.ldl(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> d
    array([[0., 2.],
           [2., 0.]])
    """
    name = "ldl"
    low = Uplo.parse(lower, name, "lower") is Uplo.LOWER
    adjoint = enabled(hermitian, name, "hermitian")
    arrays = taken(name, {"A": A})
    (matrix,) = arrays.each
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    if arrays.library.host:
        check_values(arrays, check_finite, name, matrix)
        found = _of_host(np.atleast_2d(matrix), (low, adjoint, overwrite, False))
        return arrays.returned(found[0]), arrays.returned(found[1]), arrays.returned(found[2])
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        matrix = square(arrays, matrix, name)
        found = _of_device(arrays, matrix, low, adjoint and arrays.dtype.is_complex, overwrite)
        return arrays.returned(found[0]), arrays.returned(found[1]), arrays.returned(found[2])


@documented
def inertia(
    A: Array, lower: Flag = True, overwrite_a: Flag = False, check_finite: Flag = None
) -> tuple[Any, Any, Any]:
    """Numbers of positive, negative and zero eigenvalues of Hermitian matrices, by L D L^H factors.

    Parameters
    ----------
    A : array, shape (..., n, n)
        The matrices, of which one triangle is read; leading dimensions count them.
    lower : bool, default True
        Whether the lower triangle is read, else the upper one.
    overwrite_a : bool, default False
        Whether `A` may be overwritten.

    Returns
    -------
    positive, negative, zero : int, or array of int64, shape (...)
        How many eigenvalues are positive, are negative, and are zero; of device arrays on their device.

    Raises
    ------
    ValueError
        When `A` is not square, or Inf or NaN was found.

    See Also
    --------
    ldl : The factors.
    eigvalsh : The eigenvalues.

    Notes
    -----
    The numbers are those of a matrix that differs from `A` by the backward error of the factors. So an
    eigenvalue of the size of that error may count with either sign, and as zero only if a pivot is exactly 0.
    The work is a fraction of that of `eigvalsh`. Imaginary parts of the diagonal are not read. Where a NaN is
    met, the numbers do not add up to n.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> [int(count) for count in linalg.inertia(np.array([[0.0, 2.0], [2.0, 0.0]]))]
    [1, 1, 0]
    """
    name = "inertia"
    low = Uplo.parse(lower, name, "lower") is Uplo.LOWER
    arrays = taken(name, {"A": A})
    (matrix,) = arrays.each
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        matrix = square(arrays, matrix, name)
        factor = lapack.hetrf if arrays.dtype.is_complex else lapack.sytrf
        factors, ipiv, _ = factor(matrix, low, overwrite_a=overwrite)
        positive, negative, zero = _signs(arrays, factors, ipiv)
        return arrays.returned(positive), arrays.returned(negative), arrays.returned(zero)


def _signs(arrays: Arrays, factors: Any, ipiv: Any) -> list[Any]:
    """Numbers of positive, negative and zero eigenvalues of D; a block of order two has one of both signs."""
    xp = arrays.xp
    diagonal = xp.linalg.diagonal(factors)
    diagonal = xp.real(diagonal) if arrays.dtype.is_complex else diagonal
    singles = ipiv > 0
    pairs = xp.sum(xp.astype(~singles, xp.int64), axis=-1) // 2
    counts = [
        xp.sum(xp.astype(sign & singles, xp.int64), axis=-1)
        for sign in (diagonal > 0, diagonal < 0, diagonal == 0)
    ]
    return [counts[0] + pairs, counts[1] + pairs, counts[2]]


def _of_host(matrix: Any, options: tuple[bool, ...]) -> tuple[Any, ...]:
    """SciPy's factors."""
    if matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"ldl: Expected square matrix, got A of shape {matrix.shape}")
    if not matrix.size:
        return np.zeros_like(matrix), np.zeros_like(matrix), np.zeros(matrix.shape[:-1], np.int64)
    return over_stacks(lambda each: tuple(scipys_linalg("ldl")(each, *options)), matrix)


def _of_device(arrays: Arrays, matrix: Any, low: bool, adjoint: bool, overwrite: bool) -> tuple[Any, ...]:
    """Factors of device matrices."""
    xp, (*batch, n, _) = arrays.xp, matrix.shape
    if 0 in matrix.shape:
        empty = xp.zeros_like(matrix)
        return empty, xp.zeros_like(matrix), xp.zeros((*batch, n), dtype=xp.int64, **arrays.placement)
    factor, d, rows = matrices_on_device("ldl", matrix, low, adjoint, overwrite, arrays.dtype)
    perm = xp.astype(xp.reshape(rows, (*batch, n, 2))[..., 0], xp.int64)
    return factor, xp.reshape(d, (*batch, n, n)), perm if low else xp.flip(perm, axis=-1)
