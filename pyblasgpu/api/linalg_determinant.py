"""Determinants from LU factors: det as SciPy's, slogdet as NumPy's."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from ..arguments import Array, Flag
from . import lapack
from .linalg_arrays import Arrays, taken
from .linalg_checks import check_values

__all__ = ["SlogdetResult", "det", "slogdet"]


class SlogdetResult(NamedTuple):
    """The sign of a determinant, of modulus 1 or 0, and the logarithm of its modulus."""

    sign: Any
    logabsdet: Any


def det(a: Array, overwrite_a: Flag = False, check_finite: Flag = None) -> Array:
    """Determinant of a matrix, as `scipy.linalg.det`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        Leading dimensions count matrices.
    overwrite_a : bool, default False
        Whether `a` may be overwritten.
    check_finite : bool, optional
        Whether to look for Inf and NaN; by default that is done for host arrays alone.

    Returns
    -------
    float64 or complex128, or an array of them of shape (...)
        Of device arrays an array, which is not waited for.

    Raises
    ------
    ValueError
        When `a` is not square, or Inf or NaN was found.
    TypeError
        When the dtype is none that can be computed.

    See Also
    --------
    slogdet : Neither overflows nor underflows.
    """
    name = "det"
    arrays = taken(name, {"a": a})
    (matrix,) = arrays.each
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    xp = arrays.xp
    with arrays.current():
        check_values(arrays, check_finite, name, matrix)
        if len(matrix.shape) < 2:
            raise ValueError(f"{name}: The input array must be at least two-dimensional.")
        if matrix.shape[-1] != matrix.shape[-2]:
            raise ValueError(
                f"{name}: Last 2 dimensions of the array must be square but received shape "
                f"{tuple(matrix.shape)}."
            )
        double = xp.complex128 if arrays.dtype.is_complex else xp.float64
        if 0 in matrix.shape:
            return arrays.returned(xp.ones(matrix.shape[:-2], dtype=double, **arrays.placement))
        diagonal, odd = _diagonal(arrays, matrix, overwrite)
        product = xp.prod(xp.astype(diagonal, double), axis=-1)
        return arrays.returned(xp.where(odd, -product, product))


def slogdet(a: Array) -> SlogdetResult:
    """Sign and logarithm of a determinant, as `numpy.linalg.slogdet`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        Leading dimensions count matrices.

    Returns
    -------
    sign : array, shape (...)
        1, -1 or 0; for complex matrices of modulus 1, or 0.
    logabsdet : array, shape (...)
        The logarithm of the modulus, -inf of singular matrices. ``det = sign * exp(logabsdet)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        When `a` is not square.
    TypeError
        When the dtype is none that can be computed.

    See Also
    --------
    det : The determinant itself.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> sign, logarithm = linalg.slogdet(1e200 * np.eye(2))
    >>> float(sign), round(float(logarithm))
    (1.0, 921)
    """
    arrays = taken("slogdet", {"a": a})
    (matrix,) = arrays.each
    xp = arrays.xp
    if len(matrix.shape) < 2:
        raise LinAlgError(
            f"slogdet: {len(matrix.shape)}-dimensional array given. Array must be at least two-dimensional"
        )
    if matrix.shape[-1] != matrix.shape[-2]:
        shape = tuple(matrix.shape)
        raise LinAlgError(f"slogdet: Last 2 dimensions of the array must be square, not {shape}")
    with arrays.current(), np.errstate(all="ignore"):
        if 0 in matrix.shape:
            ones = xp.ones(matrix.shape[:-2], dtype=getattr(xp, arrays.dtype.name), **arrays.placement)
            return SlogdetResult(
                arrays.returned(ones),
                arrays.returned(xp.zeros_like(xp.real(ones) if arrays.dtype.is_complex else ones)),
            )
        diagonal, odd = _diagonal(arrays, matrix, False)
        size = xp.abs(diagonal)
        logarithm = xp.sum(xp.log(size), axis=-1)
        zero = xp.any(size == 0, axis=-1)
        signs = diagonal / xp.where(size == 0, xp.ones_like(size), size)
        sign = xp.prod(signs, axis=-1)
        sign = xp.where(odd, -sign, sign)
        sign = xp.where(zero, xp.zeros_like(sign), sign)
        return SlogdetResult(arrays.returned(sign), arrays.returned(logarithm))


def _diagonal(arrays: Arrays, matrix: Any, overwrite: bool) -> tuple[Any, Any]:
    """The diagonal of U of each matrix, and whether its rows were interchanged an odd number of times."""
    xp = arrays.xp
    factors, pivots, _ = lapack.getrf(arrays.cast(matrix), overwrite)
    pivots = arrays.integers(pivots)
    rows = xp.arange(pivots.shape[-1], dtype=pivots.dtype, **arrays.placement)
    swaps = xp.sum(xp.astype(pivots != rows, xp.int32), axis=-1)
    return xp.linalg.diagonal(factors), swaps % 2 == 1
