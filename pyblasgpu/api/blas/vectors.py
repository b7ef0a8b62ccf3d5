"""Vectors as SciPy's wrappers take them: offset, increment, and outputs in place or copied."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any, NamedTuple

import numpy as np

from ...arguments import NUMBERS, Array, item, shown
from ...frontend.arrays.any_array import (
    by_columns,
    is_of_numba,
    may_share_memory,
    output_view,
    reshaped,
    transposed,
)
from ...frontend.arrays.layouts import is_fortran_contiguous
from ...frontend.arrays.vectors import Vector
from ...types import Dtype
from ..keyword.vector_calls import map_vectors
from .arrays import array_shape, checked_array

__all__ = [
    "Target",
    "VectorArgument",
    "as_vector",
    "clear_of",
    "parts_of",
    "target_of",
    "unless_whole",
    "whole",
]


class VectorArgument(NamedTuple):
    """A vector of a call: an array without further dimensions, and the vector's place in it."""

    array: Array
    offset: Any = 0
    increment: Any = 1


def whole(value: Any, name: str, argument: str) -> int:
    """An integer argument.

    Raises
    ------
    ValueError
        For what is none.
    """
    try:
        return index(item(value))
    except TypeError:
        raise ValueError(f"{name}: {argument}={shown(value)} is no integer") from None


def as_vector(name: str, argument: str, array: Array, dtype: Dtype) -> Array:
    """Return `array` with one dimension, its elements in the order of columns; a view where memory has it.

    Raises
    ------
    TypeError
        For objects that are no arrays, and for complex arrays of a real routine.
    """
    array = checked_array(name, argument, array, dtype)
    if isinstance(array, np.ndarray):
        array = np.asarray(array)  # a np.matrix has two dimensions whatever its shape
    if len(array.shape) == 1:
        return array
    shape = (prod(array.shape),)
    if sum(extent > 1 for extent in array.shape) <= 1:
        return reshaped(array, shape)
    if is_of_numba(array) and not array.is_f_contiguous():
        array = transposed(_copy(name, transposed(array), dtype))
    return by_columns(array, shape)


def parts_of(name: str, vectors: dict[str, VectorArgument], n: Any) -> dict[str, Vector]:
    """Return the elements that the call names, by argument.

    Parameters
    ----------
    name : str
    vectors : dict of str to VectorArgument
        By argument, 'x' or 'y'.
    n : int or None
        The number of elements; by default as many as the first array has behind its offset.

    Raises
    ------
    ValueError
        When they are outside the arrays.
    """
    ranges = {}
    for argument, (array, offset, increment) in vectors.items():
        offset = whole(offset, name, f"off{argument}")
        increment = whole(increment, name, f"inc{argument}")
        length = array.shape[0]
        if increment == 0:
            raise ValueError(f"{name}: inc{argument} is 0")
        if not 0 <= offset < max(length, 1):  # an array without elements holds the vector without any
            raise ValueError(f"{name}: off{argument}={offset} is outside of {argument}, of {length} elements")
        if n is None:
            n = (length - offset) // abs(increment)
        ranges[argument] = length, offset, increment
    count = whole(n, name, "n")
    for argument, (length, offset, increment) in ranges.items():
        last = offset + (count - 1) * abs(increment)
        if last >= length:
            raise ValueError(
                f"{name}: {argument} has {length} elements, and n={count}, off{argument}={offset}, "
                f"inc{argument}={increment} reach to number {last}"
            )
    return {argument: Vector(max(count, 0), *each[1:]) for argument, each in ranges.items()}


def unless_whole(part: Vector, vector: Array) -> Vector | None:
    """The elements of a vector that are meant; None where these are all of them, in order."""
    return None if part == Vector(vector.shape[0]) else part


class Target(NamedTuple):
    """The place of a result: `vector`, which has one dimension, of `array`, which the caller gets."""

    array: Array
    vector: Array


def target_of(name: str, array: Array, vector: Array, dtype: Dtype, overwrite: bool = True) -> Target:
    """The caller's `array`, of which `vector` has the elements, where SciPy would write into it, else a copy.

    SciPy writes into column-major arrays of the routine's dtype.
    """
    if overwrite and not isinstance(array, NUMBERS):
        view = output_view(array, dtype)
        if view is not None and is_fortran_contiguous(view):
            return Target(array, vector)
    made = _copy(name, vector, dtype)
    shape = array_shape(array)
    return Target(made if len(shape) == 1 else by_columns(made, shape), made)


def clear_of(name: str, vector: Array, target: Array, dtype: Dtype) -> Array:
    """`vector`, or a copy of it where it shares memory with what is written."""
    if not may_share_memory(vector, target):
        return vector
    return _copy(name, vector, dtype)


def _copy(name: str, array: Array, dtype: Dtype) -> Array:
    """A new array by rows, of the routine's dtype."""
    if type(array) is np.ndarray:  # whatever computes with it, the processor copies it
        return array.astype(dtype.name, "C")
    return map_vectors("copy", {"x": array}, 1, None, None, None, None, name, dtype)
