"""Determinants from LU factors: det as SciPy's, slogdet as NumPy's."""

from __future__ import annotations

from contextlib import suppress
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from ...arguments import Array, Flag, enabled
from ...cpu.scipy.values import FEW, is_finite
from ...frontend.calls.factor_chain import repeat_chain
from ..lapack import determinants as device
from ..lapack import names as lapack
from ..lapack.call import AfterOverwriting
from .arrays import Arrays, taken
from .checks import check_values
from .docs import documented
from .warnings import warn_of_values

__all__ = ["SlogdetResult", "det", "determinant_of", "signs_and_logarithms", "slogdet"]

#: Sums of logarithms of moduli below it leave a product in the range of normal numbers of double precision.
_RANGE = 700.0
_LEAST = 2.0**-1022  # normal number of double precision
#: Moduli are divided by themselves, but by no more than this and no less than its reciprocal: either dtype of
#: parts then holds the quotient as a normal number.
_SCALE = 2.0**64
_DOUBLES = {"s": "float64", "d": "float64", "c": "complex128", "z": "complex128"}


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
    key = (name, overwrite_a, check_finite)
    if type(a) is not np.ndarray and (done := repeat_chain(key, (a,))) is not None:
        return done.results[0]
    arrays = taken(name, {"a": a}).recorded(key, (a,), check_finite)
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
    if 0 in matrix.shape:
        double = getattr(arrays.xp, _DOUBLES[arrays.dtype.letter])
        return arrays.xp.ones(matrix.shape[:-2], dtype=double, **arrays.placement)
    matrix = arrays.cast(matrix)
    factors, pivots, _ = lapack.getrf(matrix, overwrite)
    with AfterOverwriting(factors is matrix):
        result = _determinants(arrays, factors, pivots)
    arrays.kept(result)
    return result


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
    key = ("slogdet",)
    if type(a) is not np.ndarray and (done := repeat_chain(key, (a,))) is not None:
        return SlogdetResult(*done.results)
    arrays = taken("slogdet", {"a": a}).recorded(key, (a,))
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
        # scales of rows do not change the pivots of the transposed matrix
        factors, pivots, _ = lapack.getrf(_transposed(arrays, arrays.cast(matrix)), False)
        sign, logarithm = _signs_and_logarithms(arrays, factors, pivots)
        arrays.kept(sign, logarithm)
        result = SlogdetResult(arrays.returned(sign), arrays.returned(logarithm))
    if isinstance(arrays.like, np.ndarray) and not (_is_finite(logarithm) or is_finite(factors)):
        is_nan = np.isnan(factors).any(axis=(-2, -1)) | np.isnan(sign)
        overflows = ~(logarithm < np.inf) & np.isfinite(matrix).all(axis=(-2, -1))
        warn_of_values("slogdet", overflows, is_nan)
    return result


def _as_scipy(arrays: Arrays, matrix: Any, overwrite: bool) -> tuple[Any, bool]:
    """Return the transposes, whose pivots are SciPy's, and whether they may be overwritten.

    Host matrices are overwritten where these are by columns, stacks too.
    """
    return _transposed(arrays, matrix), overwrite and (not arrays.library.host or matrix.flags.c_contiguous)


def _transposed(arrays: Arrays, matrix: Any) -> Any:
    return matrix.swapaxes(-1, -2) if arrays.library.host else arrays.xp.matrix_transpose(matrix)


def _signs_and_logarithms(arrays: Arrays, factors: Any, pivots: Any) -> tuple[Any, Any]:
    """The results of `slogdet` from LU factors."""
    if not arrays.library.host:
        return device.signs_and_logarithms("slogdet", factors, pivots, arrays.dtype)
    diagonal = factors.diagonal(axis1=-2, axis2=-1)
    if arrays.dtype.is_complex:
        return signs_and_logarithms(diagonal, _moved(pivots))[:2]
    return _of_host(diagonal, pivots)


def _of_host(diagonal: np.ndarray[Any, Any], pivots: Any) -> tuple[Any, Any]:
    """Signs and logarithms of real host matrices, by few functions of NumPy's."""
    if diagonal.ndim == 1 and isfinite(logarithm := np.add.reduce(np.log(np.abs(diagonal)))):
        if len(diagonal) <= FEW:  # in less time than by NumPy
            signs = zip(diagonal.tolist(), pivots.tolist(), strict=True)
            is_odd = sum([(value < 0) != (pivot != row) for row, (value, pivot) in enumerate(signs)]) & 1
        else:
            is_odd = np.count_nonzero((diagonal < 0) != _moved(pivots)) & 1
        return diagonal.dtype.type(-1 if is_odd else 1), logarithm
    odd = np.count_nonzero((diagonal < 0) != _moved(pivots), axis=-1) % 2
    sign, logarithm = 1 - 2 * odd, np.sum(np.log(np.abs(diagonal)), axis=-1)
    if not diagonal.all():
        singular = (diagonal == 0).any(axis=-1)
        sign, logarithm = (
            np.where(singular, 0, sign),
            np.where(singular, logarithm.dtype.type(-np.inf), logarithm),
        )
    return np.asarray(sign, logarithm.dtype), np.asarray(logarithm)


def _is_finite(logarithm: Any) -> bool:
    """Whether nothing on a diagonal was zero, NaN or infinite."""
    return isfinite(logarithm) if logarithm.ndim == 0 else bool(np.isfinite(logarithm).all())


def _moved(pivots: Any) -> Any:
    """Which rows of each matrix were interchanged."""
    return pivots != np.arange(pivots.shape[-1])


def _determinants(arrays: Arrays, factors: Any, pivots: Any) -> Any:
    """The products of diagonals in double precision, negated where an odd number of rows were interchanged.

    Where a part of a product may leave the range, it is the exponential of the sum of logarithms.
    """
    if not arrays.library.host:
        return device.determinants("det", factors, pivots, arrays.dtype)
    diagonal = factors.diagonal(axis1=-2, axis2=-1).astype(_DOUBLES[arrays.dtype.letter])
    if diagonal.ndim == 1 and len(diagonal) <= FEW and not arrays.dtype.is_complex:
        product = _product_of_few(diagonal.tolist(), pivots.tolist())
        if product is not None:
            return np.float64(product)
    moved = _moved(pivots)
    factors = np.where(moved, -diagonal, diagonal)
    with suppress(FloatingPointError), np.errstate(all="raise"):
        product = np.prod(factors, axis=-1)
        if not np.isnan(product).any():
            return product
    sign, logarithm, logarithms = signs_and_logarithms(diagonal, moved)
    is_safe = np.sum(np.abs(logarithms), axis=-1) < _RANGE
    return np.where(is_safe, np.prod(factors, axis=-1), sign * np.exp(logarithm))


def _product_of_few(diagonal: list[float], pivots: list[int]) -> float | None:
    """The determinant of a real matrix, in less time than by NumPy; None where a part of the product leaves
    the range.
    """
    product = 1.0
    for row, (value, pivot) in enumerate(zip(diagonal, pivots, strict=True)):
        product *= value if pivot == row else -value
        if not _LEAST < abs(product) < inf:
            return None
    return product


def signs_and_logarithms(diagonal: np.ndarray[Any, Any], moved: Any) -> tuple[Any, Any, Any]:
    """The sign of each determinant, the logarithm of its modulus, and those of the moduli of the diagonal.

    A zero on a diagonal makes the sign 0 and the logarithm -inf, whatever else is there, as NumPy has it.
    """
    if np.iscomplexobj(diagonal):
        # near the ends of the range a modulus overflows or loses bits
        scale = np.clip(np.abs(diagonal), 1 / _SCALE, _SCALE)
        scaled = diagonal / scale
        size = np.abs(scaled)
        signs, logarithms = scaled / size, np.log(scale) + np.log(size)
        signs = np.where(moved, -signs, signs)
    else:
        logarithms = np.log(np.abs(diagonal))
        signs = np.where((diagonal < 0) != moved, diagonal.dtype.type(-1), diagonal.dtype.type(1))
    singular = np.any(diagonal == 0, axis=-1)
    sign, logarithm = np.prod(signs, axis=-1), np.sum(logarithms, axis=-1)
    sign = np.where(singular, np.zeros_like(sign), sign)
    logarithm = np.where(singular, np.full_like(logarithm, -np.inf), logarithm)
    return sign, logarithm, logarithms
