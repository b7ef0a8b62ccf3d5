"""Norms and conditions: SciPy's and NumPy's norm and cond, the array API's matrix_norm and vector_norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from ...arguments import Array, Flag, enabled, shown
from ...cpu.scipy.level3 import blas_function
from ...cpu.scipy.values import LONGEST
from ..docstrings import Shared, documenting
from ..lapack import names as lapack
from .arrays import Arrays, taken
from .checks import check_values
from .docs import LINALG
from .standard import matrix_or_stack, of_scipy, singular_triplets, square_order

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

#: Norms of matrices by sums of moduli: the axis of the sums, and what is taken of them.
_SUMS = {1: (-2, "max"), -1: (-2, "min"), inf: (-1, "max"), -inf: (-1, "min")}
#: Norms by singular values.
_VALUES = {2: "max", -2: "min", "nuc": "sum"}
#: Norms from which on squares have not underflowed, by the characters of dtypes.
_LOW = {"f": 1e-12, "F": 1e-12, "d": 1e-140, "D": 1e-140}
_ORDERS = "fro, nuc, 1, -1, 2, -2, inf, -inf"

_documented = documenting(
    Shared("""
    Parameters
    ----------
    keepdims : bool, default False
        Whether the dimensions of vectors or matrices stay, with one element each.
    check_finite : bool, optional
        Whether to look for Inf and NaN; by default that is done for host arrays alone.

    Raises
    ------
    numpy.linalg.LinAlgError
        When singular values do not converge.
    TypeError
        When the dtype is none that can be computed.
    """),
    LINALG,
)


@_documented
def norm(
    a: Array,
    ord: str | float | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: Flag = False,
    check_finite: Flag = None,
) -> Any:
    """Norms of vectors and matrices, as `scipy.linalg.norm`.

    Parameters
    ----------
    a : array
        The vectors or matrices.
    ord : {None, 'fro', 'nuc', inf, -inf} or number, optional
        The order: of matrices as of `matrix_norm`, of vectors as of `vector_norm`. None is the 2-norm of
        vectors, and of all elements.
    axis : int or pair of int, optional
        The axis of the vectors, or the axes of the matrices. By default `a` is one of either; without `ord`
        it may have any dimensions.

    Returns
    -------
    float or array
        The norms.

    Raises
    ------
    ValueError
        When the order is none, axes do not fit, or Inf or NaN was found.

    See Also
    --------
    matrix_norm : Norms of a stack of matrices.
    vector_norm : Norms of a stack of vectors.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> float(linalg.norm([3.0, 4.0])), float(linalg.norm([[1.0, -2.0], [3.0, 4.0]], 1))
    (5.0, 6.0)
    """
    name = "norm"
    if axis is None and keepdims is False and check_finite is None:
        found = of_scipy(name, a, ord)
        if found is not None and _LOW[a.dtype.char] < found < 1 / _LOW[a.dtype.char]:
            return found
    keeps = enabled(keepdims, name, "keepdims")
    arrays = taken(name, {"a": a})
    with arrays.silent():
        check_values(arrays, check_finite, name, *arrays.each)
        array, xp = arrays.cast(arrays.each[0]), arrays.xp
        count = len(array.shape)
        axes = _axes(name, axis, count)
        if axis is None and (ord is None or count == 1):
            return arrays.returned(_vector_norm(name, arrays, array, 2 if ord is None else ord, None, keeps))
        if axis is None and count != 2:
            raise ValueError(f"{name}: a has shape {tuple(array.shape)}; with ord, axis is needed")
        if len(axes) == 1:
            order = 2 if ord is None else ord
            return arrays.returned(_vector_norm(name, arrays, array, order, axes[0], keeps))
        moved = xp.moveaxis(array, axes, (-2, -1))
        norms = _matrix_norm(name, arrays, moved, "fro" if ord is None else ord, keeps)
        return arrays.returned(xp.moveaxis(norms, (-2, -1), axes) if keeps else norms)


@_documented
def matrix_norm(x: Array, /, *, keepdims: Flag = False, ord: str | float = "fro") -> Any:
    """Norms of matrices, as `numpy.linalg.matrix_norm` and the array API's.

    Parameters
    ----------
    x : array, shape (..., m, n)
        The matrices; leading dimensions count them.
    ord : {'fro', 'nuc', 1, -1, 2, -2, inf, -inf}, default 'fro'
        The order: the 2-norm of all elements ('fro'); the sum ('nuc'), the largest (2) or the least (-2) of
        the singular values; the largest or the least sum of moduli in a column (1, -1) or in a row (inf,
        -inf).

    Returns
    -------
    float or array, shape (...)
        The norms.

    Raises
    ------
    ValueError
        When `x` is no matrix, or the order is none.

    See Also
    --------
    norm : SciPy's signature.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.matrix_norm([[[3.0, 4.0]], [[0.0, 1.0]]])
    array([5., 1.])
    """
    name = "matrix_norm"
    keeps = enabled(keepdims, name, "keepdims")
    arrays = taken(name, {"x": x})
    with arrays.silent():
        matrix = arrays.cast(arrays.each[0])
        matrix_or_stack(name, "x", matrix)
        return arrays.returned(_matrix_norm(name, arrays, matrix, ord, keeps))


@_documented
def vector_norm(
    x: Array, /, *, axis: int | Sequence[int] | None = None, keepdims: Flag = False, ord: float = 2
) -> Any:
    """Norms of vectors, as `numpy.linalg.vector_norm` and the array API's.

    Parameters
    ----------
    x : array
        The vectors.
    axis : int or tuple of int, optional
        The axes over which a vector extends; by default all.
    ord : {inf, -inf} or number, default 2
        The order p of ``sum(abs(x)**p)**(1 / p)``; the largest (inf) or the least modulus (-inf); the number
        of elements that are not zero (0).

    Returns
    -------
    float or array
        The norms. The 2-norm neither overflows nor underflows on the way.

    Raises
    ------
    ValueError
        When the order is none, or there are no such axes.

    See Also
    --------
    norm : SciPy's signature.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.vector_norm([[3.0, 4.0], [0.0, 1.0]], axis=-1)
    array([5., 1.])
    """
    name = "vector_norm"
    keeps = enabled(keepdims, name, "keepdims")
    arrays = taken(name, {"x": x})
    with arrays.silent():
        array = arrays.cast(arrays.each[0])
        axes = None if axis is None else _axes(name, axis, len(array.shape), most=len(array.shape))
        return arrays.returned(_vector_norm(name, arrays, array, ord, axes, keeps))


@_documented
def cond(x: Array, p: str | float | None = None) -> Any:
    """Condition numbers of matrices, as `numpy.linalg.cond`.

    Parameters
    ----------
    x : array, shape (..., m, n)
        The matrices; leading dimensions count them.
    p : {None, 'fro', 'nuc', 1, -1, 2, -2, inf, -inf}, optional
        The order of the norm, see `matrix_norm`; by default 2. Orders other than 2 and -2 are of square
        matrices, which are inverted.

    Returns
    -------
    float or array, shape (...)
        The norm of the matrix times that of its inverse, infinite where it is singular; of singular values
        the ratio.

    Raises
    ------
    numpy.linalg.LinAlgError
        When `x` is no matrix, is empty, or is not square where it has to be.
    ValueError
        When the order is none.

    See Also
    --------
    solve : Warns of ill-conditioned matrices.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> float(linalg.cond([[1.0, 0.0], [0.0, 0.25]]))
    4.0
    """
    name = "cond"
    arrays = taken(name, {"x": x})
    xp = arrays.xp
    with arrays.silent():
        matrix = arrays.cast(arrays.each[0])
        if len(matrix.shape) < 2 or 0 in matrix.shape[-2:]:
            raise LinAlgError(f"{name}: x has shape {tuple(matrix.shape)}; a matrix with elements is needed")
        if p is None or p in (2, -2):
            s = singular_triplets(name, arrays, matrix, with_vectors=False)[1]
            ends = s[..., 0], s[..., -1]
            found = ends[1] / ends[0] if p == -2 else ends[0] / ends[1]
        else:
            square_order(name, "x", matrix)
            factors, pivots, info = lapack.getrf(matrix)
            inverse, _ = lapack.getri(factors, pivots)
            found = _matrix_norm(name, arrays, matrix, p, False) * _matrix_norm(
                name, arrays, inverse, p, False
            )
            found = xp.where(xp.asarray(info) != 0, inf, found)
        had_nan = xp.any(xp.isnan(matrix), axis=(-2, -1))
        return arrays.returned(xp.where(xp.isnan(found) & ~had_nan, inf, found))


def _axes(name: str, axis: Any, count: int, most: float = 2) -> tuple[int, ...]:
    """Axes as numbers from 0; ValueError where an array of `count` dimensions has none such."""
    if axis is None:
        return tuple(range(count))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    try:
        found = tuple(range(count)[each] for each in axes)
    except (IndexError, TypeError):
        raise ValueError(f"{name}: axis={shown(axis)} does not fit an array of {count} dimensions") from None
    if not 1 <= len(found) <= most or len(set(found)) < len(found):
        raise ValueError(f"{name}: axis={shown(axis)} is not one axis, or several different ones")
    return found


def _vector_norm(name: str, arrays: Arrays, array: Any, order: Any, axis: Any, keeps: bool) -> Any:
    """The norm of order p over an axis, over some, or over all."""
    if isinstance(order, (str, bytes)) or order is None:
        raise ValueError(f"{name}: ord={shown(order)} is no order of a norm of vectors")
    xp = arrays.xp
    sizes, options = xp.abs(array), {"axis": axis, "keepdims": keeps}
    if order == 0:
        return xp.sum(xp.astype(sizes != 0, sizes.dtype), **options)
    if order == 1:
        return xp.sum(sizes, **options)
    if order in (inf, -inf):
        if 0 in array.shape:
            if order == -inf and 0 in np.take(array.shape, _axes(name, axis, len(array.shape), inf)):
                raise ValueError(f"{name}: an array of shape {tuple(array.shape)} has no least modulus")
            return xp.sum(sizes, **options)  # zeros, or none
        return (xp.max if order == inf else xp.min)(sizes, **options)
    if order == 2:
        return _two_norm(arrays, sizes, axis, keeps)
    return xp.sum(sizes**order, **options) ** (1 / order)


def _two_norm(arrays: Arrays, sizes: Any, axis: Any, keeps: bool) -> Any:
    """The 2-norm of moduli, scaled by the largest one."""
    xp, options = arrays.xp, {"axis": axis, "keepdims": keeps}
    if 0 in sizes.shape:
        return xp.sum(sizes, **options)
    over_all = axis is None or len(sizes.shape) == (len(axis) if isinstance(axis, tuple) else 1)
    if over_all and not keeps and arrays.library.host and (norm := _norm_of_all(sizes)) is not None:
        return norm
    largest = xp.max(sizes, axis=axis, keepdims=True)
    usable = (largest > 0) & xp.isfinite(largest)
    scale = xp.where(usable, largest, 1)
    scaled = sizes / scale
    factor = scale if keeps else xp.reshape(scale, xp.sum(sizes, axis=axis).shape)
    return xp.sqrt(xp.sum(scaled * scaled, **options)) * factor


def _norm_of_all(sizes: np.ndarray[Any, Any]) -> Any:
    """The 2-norm of real host numbers by SciPy's BLAS; None where squares may have left the range."""
    if sizes.dtype.char not in "fd" or sizes.size > LONGEST:
        return None
    norm = blas_function("nrm2", sizes.dtype)(sizes.ravel("K"))
    return sizes.dtype.type(norm) if _LOW[sizes.dtype.char] < norm < inf else None


def _matrix_norm(name: str, arrays: Arrays, matrix: Any, order: Any, keeps: bool) -> Any:
    """The norm of the matrices of the last two axes."""
    xp = arrays.xp
    if order == "fro":
        return _two_norm(arrays, xp.abs(matrix), (-2, -1), keeps)
    if order not in (*_SUMS, *_VALUES):
        raise ValueError(f"{name}: ord={shown(order)} is none of {_ORDERS}")
    if order in _SUMS:
        axis, end = _SUMS[order]
        sums = xp.sum(xp.abs(matrix), axis=axis, keepdims=True)
        found = _end(name, xp, end, sums, matrix, (-2, -1))
    else:
        s = singular_triplets(name, arrays, matrix, with_vectors=False)[1][..., None]
        found = _end(name, xp, _VALUES[order], s, matrix, (-2, -1))
    return found if keeps else found[..., 0, 0]


def _end(name: str, xp: Any, end: str, values: Any, matrix: Any, axes: tuple[int, int]) -> Any:
    """The largest or the least of values, or their sum; of none the largest is 0."""
    function: Callable[..., Any] = getattr(xp, end)
    if 0 not in (values.shape[-2], values.shape[-1]):
        return function(values, axis=axes, keepdims=True)
    if end == "min":
        raise ValueError(f"{name}: a matrix of shape {tuple(matrix.shape)} has no such norm")
    return xp.sum(values, axis=axes, keepdims=True)
