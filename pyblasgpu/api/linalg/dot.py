"""NumPy's products of arrays of any number of dimensions: dot, vdot, inner, outer, tensordot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from ...arguments import Array
from ...frontend.arrays.any_array import can_be_output, common_library, host_array, may_share_memory
from ...frontend.calls.call import Call
from ...frontend.calls.call_cache import repeat
from ..keyword.level3 import multiply
from .arrays import Arrays, Passed, gemm_of, stored, taken
from .docs import documented
from .host_products import host_product, repeated_product
from .warnings import warn_of_product

__all__ = ["dot", "inner", "outer", "tensordot", "vdot"]


@documented
def dot(a: Array, b: Array, out: Array = None) -> Array:
    """Product of two arrays, as `numpy.dot`.

    Parameters
    ----------
    a : array, shape (..., k)
        An array of one or more dimensions, or a number.
    b : array, shape (k,) or (..., k, n)
        An array of one or more dimensions, or a number.
    out : array, optional
        The array for the result, of its shape and dtype; by default a new one.

    Returns
    -------
    array
        Sums over the last axis of `a` and the last but one (or the only one) of `b`. Their shape is
        ``a.shape[:-1] + b.shape[:-2] + b.shape[-1:]``. If one is a number, its product with the other. A
        scalar for two vectors.

    Raises
    ------
    ValueError
        When shapes do not fit, or `out` has another shape or dtype.

    See Also
    --------
    matmul : Leading dimensions count matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.dot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    if (done := repeated_product("dot", a, b, out)) is not None:
        return done
    arrays = taken("dot", {"a": a, "b": b})
    if out is not None:
        common_library("dot", ("a", "out"), (arrays.like, out))
    with arrays.current():
        x, y = arrays.each
        if not x.shape or not y.shape:
            return _delivered(arrays, _scaled(arrays), out)
        axis = max(len(y.shape) - 2, 0)
        _check_aligned("dot", x, len(x.shape) - 1, y, axis)
        left = arrays.xp.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
        right = _matrix_of_axis(arrays.xp, y, axis)
        shape = (*x.shape[:-1], *y.shape[:axis], *y.shape[axis + 1 :])
        if out is not None and len(shape) == 2 and _may_be_direct(arrays, out, shape):
            target = host_array(out, "dot", "out", written=True) if arrays.library.host else out
            call = Call("dot", {"a": left, "b": right}, target, None, None, arrays.dtype)
            call.views((a, b), out)
            multiply(call, 1, 0, target, "N", "N", key=("linalg", "dot"))
            _warn(arrays, left, right, target)
            return out
        passed = Passed(("linalg", "dot"), (a, b), shape)
        return _delivered(arrays, _product(arrays, left, right, passed), out)


@documented
def vdot(a: Array, b: Array, /) -> Array:
    """Scalar product of two arrays as vectors, the first conjugated, as `numpy.vdot`.

    Parameters
    ----------
    a, b : array
        Two arrays of one size; their elements are taken in C order.

    Returns
    -------
    scalar
        A NumPy scalar, or for other libraries an array of no dimensions, without synchronization.

    Raises
    ------
    ValueError
        When the sizes differ.

    See Also
    --------
    vecdot : Scalar products of stacks of vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> complex(linalg.vdot(np.array([1j, 2.0]), np.array([1j, 3.0])))
    (7+0j)
    """
    if (done := repeated_product("vdot", a, b, warns=False)) is not None:
        return done
    arrays = taken("vdot", {"a": a, "b": b})
    with arrays.current():
        x, y = arrays.each
        if prod(x.shape) != prod(y.shape):
            raise ValueError(f"vdot: a of shape {tuple(x.shape)} and b of {tuple(y.shape)} differ in size")
        left, right = (arrays.xp.reshape(each, (-1, 1)) for each in (x, y))
        passed = Passed(("linalg", "vdot"), (a, b), ())
        result = gemm_of("vdot", left, right, arrays.dtype, "C", passed=passed)
        return arrays.returned(arrays.xp.reshape(result, ()))


@documented
def inner(a: Array, b: Array, /) -> Array:
    """Product of two arrays summed over their last axes, as `numpy.inner`.

    Parameters
    ----------
    a, b : array, shape (..., k)
        Two arrays, or numbers, of which one multiplies the other.

    Returns
    -------
    array, shape ``a.shape[:-1] + b.shape[:-1]``
        The sums; a scalar for two vectors.

    Raises
    ------
    ValueError
        When the last axes differ in length.

    See Also
    --------
    vecdot : Scalar products of stacks of vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.inner(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    if (done := repeated_product("inner", a, b)) is not None:
        return done
    arrays = taken("inner", {"a": a, "b": b})
    with arrays.current():
        x, y = arrays.each
        if not x.shape or not y.shape:
            return arrays.returned(_scaled(arrays))
        _check_aligned("inner", x, len(x.shape) - 1, y, len(y.shape) - 1)
        left, right = (arrays.xp.reshape(each, (prod(each.shape[:-1]), each.shape[-1])) for each in (x, y))
        passed = Passed(("linalg", "inner"), (a, b), (*x.shape[:-1], *y.shape[:-1]))
        return arrays.returned(_product(arrays, left, right, passed, "T"))


@documented
def outer(a: Array, b: Array, out: Array = None) -> Array:
    """Product of each element of one array with each of another, as `numpy.outer`.

    Parameters
    ----------
    a, b : array
        Two arrays of m and n elements, which are taken in C order.
    out : array, shape (m, n), optional

    Returns
    -------
    array, shape (m, n)
        `out`, or a new array.

    Raises
    ------
    ValueError
        When `out` has another shape.
    TypeError
        When arrays are of different libraries, or dtypes are none that can be computed or stored in `out`.

    See Also
    --------
    pyblasgpu.ger : Outer product added to a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    if out is None and (done := repeat(("linalg", "outer"), (a, b))) is not None:
        return done
    arrays = taken("outer", {"a": a, "b": b})
    with arrays.current():
        left, right = (arrays.xp.reshape(each, (-1, 1)) for each in arrays.each)
        if arrays.library.host:  # as long as it takes to write the result
            product = _by_elements(arrays, np.multiply, left, right.T)
        else:
            passed = Passed(("linalg", "outer"), (a, b), (left.shape[0], right.shape[0]))
            product = gemm_of("outer", left, right, arrays.dtype, "N", "T", passed)
        result = arrays.returned(product)
        return result if out is None else stored("outer", result, out, "same_kind", core=0)


@documented
def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    """Product of two arrays summed over any axes, as `numpy.tensordot`.

    Parameters
    ----------
    a, b : array
        The factors.
    axes : int or (sequence of int, sequence of int), default 2
        The axes of `a` and those of `b` that are summed over; an int n means the last n of `a` and the first
        n of `b`.

    Returns
    -------
    array
        The sums; the axes are those of `a` that remain, then those of `b`.

    Raises
    ------
    ValueError
        When the axes differ in number or length, or one is named twice.
    IndexError
        When an array lacks an axis.

    See Also
    --------
    einsum : Axes by letters.
    dot : The last axis of one, the last but one of the other.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    is_plain = type(axes) is int and axes == 1 and type(a) is np.ndarray
    if is_plain and (done := host_product(a, b, "tensordot")) is not None:
        return done
    key = ("linalg", "tensordot", axes, type(axes))
    if (done := repeat(key, (a, b))) is not None:
        return done
    arrays = taken("tensordot", {"a": a, "b": b})
    with arrays.current():
        x, y = arrays.each
        summed_a, summed_b = _summed_axes(axes, tuple(x.shape), tuple(y.shape))
        kept_a = [axis for axis in range(len(x.shape)) if axis not in summed_a]
        kept_b = [axis for axis in range(len(y.shape)) if axis not in summed_b]
        shape = (*(x.shape[axis] for axis in kept_a), *(y.shape[axis] for axis in kept_b))
        left = _as_matrix(arrays.xp, x, kept_a, summed_a)
        right = _as_matrix(arrays.xp, y, summed_b, kept_b)
        result = _product(arrays, left, right, Passed(key, (a, b), shape))
        if arrays.library.host and not shape and isinstance(arrays.like, np.ndarray):
            return result  # where NumPy's other products return scalars
        return arrays.returned(result)


def _product(arrays: Arrays, left: Any, right: Any, passed: Passed, trans: str = "N") -> Any:
    """The new product of two matrices, of which the second may be meant transposed, in its shape."""
    result = gemm_of(passed.key[1], left, right, arrays.dtype, "N", trans, passed)
    _warn(arrays, left, right, result, trans)
    return arrays.xp.reshape(result, passed.shape)


def _scaled(arrays: Arrays) -> Any:
    """The product of two arrays of which one is a number."""
    x, y = arrays.each
    if arrays.library.host:
        return _by_elements(arrays, np.dot, x, y)
    return arrays.cast(x) * arrays.cast(y)


def _by_elements(arrays: Arrays, multiply: Callable[..., Any], x: Any, y: Any) -> Any:
    """A product of host arrays by NumPy, whose warnings are for NumPy's arrays alone."""
    with arrays.current() if isinstance(arrays.like, (np.ndarray, np.generic)) else arrays.silent():
        return multiply(arrays.cast(x), arrays.cast(y))


def _warn(arrays: Arrays, left: Any, right: Any, product: Any, trans: str = "N") -> None:
    """Warn as NumPy's dot, which its other products call, where NumPy's arrays were multiplied."""
    if isinstance(arrays.like, np.ndarray):
        warn_of_product("dot", left, right if trans == "N" else right.T, product)


def _delivered(arrays: Arrays, result: Any, out: Any) -> Any:
    """The `result` in `out`, which has to have its dtype and shape, or as a new array."""
    if out is None:
        return arrays.returned(result)
    if isinstance(out, np.ndarray) and (
        out.dtype != result.dtype or not out.flags.c_contiguous or out.ndim != result.ndim
    ):
        raise ValueError(
            "dot: output array is not acceptable (must have the right datatype, number of dimensions, "
            "and be a C-Array)"
        )
    stored("dot", arrays.returned(result), out, "equiv")
    return out[()] if isinstance(out, np.ndarray) and not out.shape else out


def _may_be_direct(arrays: Arrays, out: Any, shape: tuple[int, ...]) -> bool:
    if arrays.are_views:
        return False
    fits = tuple(getattr(out, "shape", ())) == shape and can_be_output(out, arrays.dtype)
    c_order = not isinstance(out, np.ndarray) or out.flags.c_contiguous
    return fits and c_order and not any(may_share_memory(each, out) for each in arrays.each)


def _check_aligned(name: str, x: Any, axis: int, y: Any, other: int) -> None:
    if x.shape[axis] != y.shape[other]:
        raise ValueError(
            f"{name}: shapes {_written(x.shape)} and {_written(y.shape)} not aligned: "
            f"{x.shape[axis]} (dim {axis}) != {y.shape[other]} (dim {other})"
        )


def _written(shape: Sequence[int]) -> str:
    """A shape as NumPy writes it in messages, without blanks."""
    return str(tuple(shape)).replace(" ", "")


def _matrix_of_axis(xp: Any, array: Any, axis: int) -> Any:
    """`array` as a matrix whose rows are counted by `axis`."""
    others = [each for each in range(len(array.shape)) if each != axis]
    return _as_matrix(xp, array, [axis], others)


def _as_matrix(xp: Any, array: Any, rows: list[int], cols: list[int]) -> Any:
    """`array` as a matrix, its rows counted by the axes `rows`; a view where the library makes one."""
    order = (*rows, *cols)
    if order != tuple(range(len(order))):
        array = xp.permute_dims(array, order)
    extents = tuple(array.shape)
    return xp.reshape(array, (prod(extents[: len(rows)]), prod(extents[len(rows) :])))


def _summed_axes(axes: Any, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The axes of arrays of shapes `a` and `b` to sum over, counted from 0."""
    try:
        one, other = axes
    except TypeError:
        count = index(axes)
        one, other = list(range(-count, 0)), list(range(count))
    pairs = [[index(axis) for axis in (each if np.iterable(each) else [each])] for each in (one, other)]
    fits = len(pairs[0]) == len(pairs[1])
    for axis, partner in zip(*pairs, strict=False):
        for each, shape, name in ((axis, a, "a"), (partner, b, "b")):
            if fits and not -len(shape) <= each < len(shape):
                raise IndexError(f"tensordot: {name} of shape {shape} has no axis {each}")
        fits = fits and a[axis] == b[partner]
    if not fits:
        raise ValueError(
            f"tensordot: shape-mismatch for sum over axes {pairs[0]} of a {a} and {pairs[1]} of b {b}"
        )
    for counted, shape in zip(pairs, (a, b), strict=True):
        counted[:] = [axis % len(shape) for axis in counted]
        if len(set(counted)) != len(counted):
            raise ValueError("tensordot: duplicate axes are not allowed in tensordot")
    return pairs[0], pairs[1]
