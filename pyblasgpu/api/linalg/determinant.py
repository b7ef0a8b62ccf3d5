"""Determinants from LU factors: det as SciPy's, slogdet as NumPy's."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from ...arguments import Array, Flag, enabled
from ...cpu.scipy.values import is_finite
from ..lapack import names as lapack
from ..lapack.call import AfterOverwriting
from .arrays import Arrays, taken
from .checks import check_values
from .docs import documented
from .warnings import warn_of_values

__all__ = ["SlogdetResult", "det", "determinant_of", "signs_and_logarithms", "slogdet"]

#: Sums of logarithms of moduli below it leave a product in the range of normal numbers of double precision.
_RANGE = 700.0
#: Moduli are divided by themselves, but by no more than this and no less than its reciprocal: either dtype of
#: parts then holds the quotient as a normal number.
_SCALE = 2.0**64


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its modulus.

    Parameters
    ----------
    sign : array
        The sign, of modulus 1 or 0.
    logabsdet : array
        The logarithm of the modulus.

    See Also
    --------
    slogdet : Returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> float(linalg.slogdet(-np.eye(1)).sign)
    -1.0
    """

    sign: Any
    logabsdet: Any


@documented
def det(a: Array, overwrite_a: Flag = False, check_finite: Flag = None) -> Array:
    """Determinant of a matrix, as `scipy.linalg.det`.

    Returns
    -------
    float64 or complex128, or an array of them of shape (...)
        The determinants. For device arrays an array, without synchronization.

    Raises
    ------
    ValueError
        When `a` is not square, or Inf or NaN was found.

    See Also
    --------
    slogdet : Logarithm, which neither overflows nor underflows.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> float(linalg.det(np.array([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    name = "det"
    arrays = taken(name, {"a": a})
    (matrix,) = arrays.each
    overwrite = enabled(overwrite_a, name, "overwrite_a")
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        if len(matrix.shape) < 2:
            raise ValueError(f"{name}: The input array must be at least two-dimensional.")
        if matrix.shape[-1] != matrix.shape[-2]:
            raise ValueError(
                f"{name}: Last 2 dimensions of the array must be square but received shape "
                f"{tuple(matrix.shape)}."
            )
        return arrays.returned(determinant_of(arrays, *_as_scipy(arrays, matrix, overwrite)))


def determinant_of(arrays: Arrays, matrix: Any, overwrite: bool = False) -> Any:
    """The determinants of the matrices in double precision."""
    xp = arrays.xp
    double = xp.complex128 if arrays.dtype.is_complex else xp.float64
    if 0 in matrix.shape:
        return xp.ones(matrix.shape[:-2], dtype=double, **arrays.placement)
    matrix = arrays.cast(matrix)
    factors, moved = _factored(arrays, matrix, overwrite)
    with AfterOverwriting(factors is matrix):
        return _determinants(arrays, xp.astype(xp.linalg.diagonal(factors), double), moved)


@documented
def slogdet(a: Array) -> SlogdetResult:
    """Sign and logarithm of a determinant, as `numpy.linalg.slogdet`.

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
    with arrays.silent():
        if 0 in matrix.shape:
            ones = xp.ones(matrix.shape[:-2], dtype=getattr(xp, arrays.dtype.name), **arrays.placement)
            return SlogdetResult(
                arrays.returned(ones),
                arrays.returned(xp.zeros_like(xp.real(ones) if arrays.dtype.is_complex else ones)),
            )
        # the transposed matrix meets the same pivots as in NumPy
        factors, moved = _factored(arrays, xp.matrix_transpose(arrays.cast(matrix)), False)
        sign, logarithm, _ = signs_and_logarithms(xp, xp.linalg.diagonal(factors), moved)
        result = SlogdetResult(arrays.returned(sign), arrays.returned(logarithm))
    if isinstance(arrays.like, np.ndarray) and not is_finite(factors):
        is_nan = np.isnan(factors).any(axis=(-2, -1)) | np.isnan(sign)
        overflows = ~(logarithm < np.inf) & np.isfinite(matrix).all(axis=(-2, -1))
        warn_of_values("slogdet", overflows, is_nan)
    return result


def _as_scipy(arrays: Arrays, matrix: Any, overwrite: bool) -> tuple[Any, bool]:
    """Return the transposes, whose pivots are SciPy's, and whether they may be overwritten.

    Host matrices are overwritten where these are by columns, stacks too.
    """
    transposed = arrays.xp.matrix_transpose(matrix)
    return transposed, overwrite and (not arrays.library.host or matrix.flags.c_contiguous)


def _factored(arrays: Arrays, matrix: Any, overwrite: bool) -> tuple[Any, Any]:
    """The LU factors of each matrix, and which of its rows were interchanged."""
    xp = arrays.xp
    factors, pivots, _ = lapack.getrf(matrix, overwrite)
    with AfterOverwriting(factors is matrix):
        pivots = arrays.integers(pivots)
        rows = xp.arange(pivots.shape[-1], dtype=pivots.dtype, **arrays.placement)
        return factors, pivots != rows


def _determinants(arrays: Arrays, diagonal: Any, moved: Any) -> Any:
    """The products of diagonals in double precision, negated where an odd number of rows were `moved`.

    Where a part of a product may leave the range, it is the exponential of the sum of logarithms.
    """
    xp = arrays.xp
    factors = xp.where(moved, -diagonal, diagonal)
    if arrays.library.host:  # which sees whether a product has left the range
        with suppress(FloatingPointError), np.errstate(all="raise"):
            product = np.prod(factors, axis=-1)
            if not np.isnan(product).any():
                return product
    sign, logarithm, logarithms = signs_and_logarithms(xp, diagonal, moved)
    is_safe = xp.sum(xp.abs(logarithms), axis=-1) < _RANGE
    return xp.where(is_safe, xp.prod(factors, axis=-1), sign * xp.exp(logarithm))


def signs_and_logarithms(xp: Any, diagonal: Any, moved: Any) -> tuple[Any, Any, Any]:
    """The sign of each determinant, the logarithm of its modulus, and those of the moduli of the diagonal.

    A zero on a diagonal makes the sign 0 and the logarithm -inf, whatever else is there, as NumPy has it.
    """
    if xp.isdtype(diagonal.dtype, "complex floating"):
        # near the ends of the range a modulus overflows or loses bits
        scale = xp.clip(xp.abs(diagonal), 1 / _SCALE, _SCALE)
        scaled = diagonal / scale
        size = xp.abs(scaled)
        signs, logarithms = scaled / size, xp.log(scale) + xp.log(size)
        signs = xp.where(moved, -signs, signs)
    else:
        ones, logarithms = xp.ones_like(diagonal), xp.log(xp.abs(diagonal))
        signs = xp.where((diagonal < 0) != moved, -ones, ones)
    singular = xp.any(diagonal == 0, axis=-1)
    sign, logarithm = xp.prod(signs, axis=-1), xp.sum(logarithms, axis=-1)
    sign = xp.where(singular, xp.zeros_like(sign), sign)
    logarithm = xp.where(singular, xp.full_like(logarithm, -np.inf), logarithm)
    return sign, logarithm, logarithms
