"""The array API's functions of elements of matrices and vectors: cross, diagonal, matrix_transpose, trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments import Array, shown
from ..docstrings import Shared, documenting
from .arrays import Arrays, taken
from .docs import LINALG
from .standard import matrix_or_stack

__all__ = ["cross", "diagonal", "matrix_transpose", "trace"]

_documented = documenting(
    Shared("""
    The array's own library computes it, in the array's own dtype.

    Parameters
    ----------
    x : array, shape (..., m, n)
        The matrices; leading dimensions count them.
    offset : int, default 0
        The diagonal: 0 is the main one, k > 0 that above it by k columns, k < 0 that below it.

    Raises
    ------
    ValueError
        When `x` is no matrix.
    """),
    LINALG,
)


@_documented
def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Cross products of vectors of three elements, as `numpy.linalg.cross` and the array API's.

    Parameters
    ----------
    x1, x2 : array
        The vectors; other dimensions broadcast.
    axis : int, default -1
        The axis of the vectors, of three elements.

    Returns
    -------
    array
        The products.

    Raises
    ------
    ValueError
        When the axis has no three elements, or shapes do not broadcast.

    See Also
    --------
    vecdot : Scalar products.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    array([0., 0., 1.])
    """
    arrays = taken("cross", {"x1": x1, "x2": x2})
    one, other = arrays.each
    for each in arrays.each:
        if not each.shape or not -len(each.shape) <= axis < len(each.shape) or each.shape[axis] != 3:
            shapes = f"x1 has shape {tuple(one.shape)} and x2 {tuple(other.shape)}"
            raise ValueError(f"cross: {shapes}; axis={shown(axis)} needs three elements")
    with arrays.silent():
        xp = arrays.xp
        one, other = (xp.moveaxis(each, axis, -1) for each in (one, other))
        turned = [
            one[..., i] * other[..., j] - one[..., j] * other[..., i] for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        return arrays.returned(xp.stack(turned, axis=axis))


@_documented
def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Diagonals of matrices, as `numpy.linalg.diagonal` and the array API's.

    Returns
    -------
    array, shape (..., k)
        The elements of the diagonals.

    See Also
    --------
    trace : Their sums.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.diagonal([[1.0, 2.0], [3.0, 4.0]])
    array([1., 4.])
    """
    arrays = taken("diagonal", {"x": x})
    with arrays.silent():
        elements = _diagonal("diagonal", arrays, offset)
        is_view = arrays.library.host and not isinstance(arrays.like, np.ndarray)  # NumPy's is read-only
        return arrays.returned(elements.copy() if is_view else elements)


@_documented
def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of the diagonals of matrices, as `numpy.linalg.trace` and the array API's.

    Parameters
    ----------
    dtype : dtype, optional
        The dtype of the sums, of the arrays' library; by default as of its sums.

    Returns
    -------
    number or array, shape (...)
        The sums.

    See Also
    --------
    diagonal : The elements.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> float(linalg.trace([[1.0, 2.0], [3.0, 4.0]]))
    5.0
    """
    arrays = taken("trace", {"x": x})
    with arrays.silent():
        elements = _diagonal("trace", arrays, offset)
        return arrays.returned(arrays.xp.sum(elements, axis=-1, dtype=dtype))


@_documented
def matrix_transpose(x: Array, /) -> Array:
    """Transposed matrices, as `numpy.linalg.matrix_transpose` and the array API's.

    Returns
    -------
    array, shape (..., n, m)
        The transposed matrices, a view where the library has views.

    See Also
    --------
    diagonal : Diagonals.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.matrix_transpose([[1.0, 2.0]])
    array([[1.],
           [2.]])
    """
    arrays = taken("matrix_transpose", {"x": x})
    matrix_or_stack("matrix_transpose", "x", arrays.each[0])
    with arrays.silent():
        return arrays.returned(arrays.xp.matrix_transpose(arrays.each[0]))


def _diagonal(name: str, arrays: Arrays, offset: int) -> Any:
    (matrix,) = arrays.each
    matrix_or_stack(name, "x", matrix)
    return arrays.xp.linalg.diagonal(matrix, offset=offset)
