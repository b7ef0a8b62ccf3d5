"""Products of several matrices: multi_dot and matrix_power."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import index
from typing import Any

from numpy.linalg import LinAlgError

from ...arguments import Array, shown
from .arrays import as_array, plain, stored, taken
from .condition import Conditions
from .docs import documented
from .dot import dot
from .inverse import inverse_of
from .products import matmul

__all__ = ["matrix_power", "multi_dot"]


@documented
def multi_dot(arrays: Sequence[Array], *, out: Array = None) -> Array:
    """Product of two or more matrices in the order of least work, as `numpy.linalg.multi_dot`.

    Parameters
    ----------
    arrays : sequence of arrays
        Matrices whose extents follow from each other. The first and the last may be vectors, a row and a
        column.

    Returns
    -------
    array
        A matrix; a vector or a scalar where the first or the last array is a vector.

    Raises
    ------
    ValueError
        For fewer than two arrays, and when shapes do not fit.
    numpy.linalg.LinAlgError
        When an array has not two dimensions.

    See Also
    --------
    matmul : Product of two matrices.

    Notes
    -----
    The order is that of Cormen, Leiserson, Rivest and Stein, *Introduction to Algorithms*, chapter 15.2.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.multi_dot([np.ones((10, 100)), np.ones((100, 5)), np.ones((5, 50))]).shape
    (10, 50)
    """
    if len(arrays) < 2:
        raise ValueError("multi_dot: Expecting at least two arrays.")
    if len(arrays) == 2:
        return dot(arrays[0], arrays[1], out)
    factors = list(arrays)
    if plain(tuple(factors)) is None:
        named = {f"arrays[{number}]": array for number, array in enumerate(arrays)}
        factors = [as_array(array, "multi_dot", name) for name, array in named.items()]
        taken("multi_dot", dict(zip(named, factors, strict=True)))
    extents = _extents(factors)
    result = _product(factors, _splits(extents), 0, len(factors) - 1)
    return result if out is None else stored("multi_dot", result, out, "equiv")


def _extents(factors: list[Any]) -> list[int]:
    """Return the rows of the first factor, and the columns of each; errors are those of `multi_dot`."""
    last, extents = len(factors) - 1, [1]
    for number, factor in enumerate(factors):
        shape = factor.shape
        if len(shape) == 2:
            rows, columns = shape
        elif len(shape) == 1 and number in (0, last):
            rows, columns = (1, shape[0]) if number == 0 else (shape[0], 1)
        else:
            raise LinAlgError(
                f"multi_dot: {len(shape)}-dimensional array given. Array must be two-dimensional"
            )
        if number == 0:
            extents = [rows]
        elif rows != extents[-1]:
            shapes = f"{tuple(factors[number - 1].shape)} and {tuple(shape)}"
            raise ValueError(f"multi_dot: shapes {shapes} not aligned: {extents[-1]} != {rows}")
        extents.append(columns)
    return extents


def _product(factors: list[Any], split: list[list[int]], first: int, last: int) -> Any:
    """Return the product of some factors in a row."""
    if first == last:
        return factors[first]
    middle = split[first][last]
    return dot(_product(factors, split, first, middle), _product(factors, split, middle + 1, last))


def _splits(extents: list[int]) -> list[list[int]]:
    """After which factor to split the product of factors first ... last, for the fewest operations."""
    count = len(extents) - 1
    if count == 3:  # the common case, by one comparison
        rows, one, other, columns = extents
        is_later = rows * other * (one + columns) < one * columns * (rows + other)
        return [[0, 0, int(is_later)], [0, 0, 1], []]
    cost: list[list[float]] = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            outer, best = extents[first] * extents[last + 1], inf
            for middle in range(first, last):
                work = cost[first][middle] + cost[middle + 1][last] + outer * extents[middle + 1]
                if work < best:
                    best, split[first][last] = work, middle
            cost[first][last] = best
    return split


@documented
def matrix_power(a: Array, n: int) -> Array:
    """Square matrix to an integer power, as `numpy.linalg.matrix_power`.

    Parameters
    ----------
    a : array, shape (..., m, m)
        A square matrix, or a stack of them.
    n : int
        The exponent; a negative one is that of the inverse.

    Returns
    -------
    array, shape (..., m, m)
        The power; the identity for ``n=0``.

    Raises
    ------
    numpy.linalg.LinAlgError
        When `a` is not square, or `n` is negative and `a` singular.
    TypeError
        When `n` is no integer, or the dtype is none that can be computed.

    See Also
    --------
    matmul : Product of two matrices.

    Notes
    -----
    By squaring: about ``log2(n)`` to ``2 log2(n)`` products.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 10)
    array([[ 1., 10.],
           [ 0.,  1.]])
    """
    arrays = taken("matrix_power", {"a": a})
    (x,) = arrays.each
    if len(x.shape) < 2:
        raise LinAlgError(
            f"matrix_power: {len(x.shape)}-dimensional array given. Array must be at least two-dimensional"
        )
    if x.shape[-1] != x.shape[-2]:
        shape = tuple(x.shape)
        raise LinAlgError(f"matrix_power: Last 2 dimensions of the array must be square, not {shape}")
    try:
        exponent = index(n)
    except TypeError:
        raise TypeError(f"matrix_power: exponent must be an integer, not {shown(n)}") from None
    with arrays.current():
        x = arrays.cast(x)
        if exponent == 0:
            return arrays.returned(arrays.xp.zeros_like(x) + arrays.identity(x.shape[-1]))
        if exponent < 0:
            x = inverse_of(Conditions(arrays, False), "general")
        return arrays.returned(_power(x, abs(exponent)))


def _power(x: Any, exponent: int) -> Any:
    result = None
    while True:
        if exponent & 1:
            result = x if result is None else matmul(result, x)
        exponent >>= 1
        if not exponent:
            return result
        x = matmul(x, x)
