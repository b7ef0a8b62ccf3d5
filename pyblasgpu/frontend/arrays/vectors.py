"""Vectors as the BLAS describes them, by offset and increment, seen as matrices of one column."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from .layouts import Layout

__all__ = ["NUMBER", "Vector", "column", "shape_of"]

_Described = TypeVar("_Described", Layout, np.ndarray)


class Vector(NamedTuple):
    """Which elements of the last dimension of an array make the vector.

    Attributes
    ----------
    n : int
        How many.
    offset : int
        The first one in memory.
    increment : int
        From one to the next; a negative one runs backwards, and ends at `offset`, as in the BLAS.
    """

    n: int
    offset: int = 0
    increment: int = 1


#: The extents of an output of one number for each vector: its dimensions are the leading ones alone.
NUMBER = Vector(1, 0, 0)


def shape_of(vector: Vector | None, n: int) -> tuple[int, ...]:
    """The last dimensions of a new output: a vector of `n` elements, or a number."""
    return () if vector is NUMBER else (n,)


def column(array: _Described, vector: Vector | None) -> _Described:
    """`array`, of shape (..., length), as (..., n, 1), without a copy; None: all of its elements."""
    if vector is NUMBER:
        if isinstance(array, np.ndarray):
            return array[..., None, None]
        return array._replace(shape=(*array.shape, 1, 1), strides=(*array.strides, 1, 1))
    if isinstance(array, np.ndarray):
        return array[..., None] if vector is None else array[..., _slice(vector), None]
    *batch, extent = array.shape
    *steps, step = array.strides
    pointer = array.pointer
    if vector is not None:
        extent, offset, increment = vector
        if increment < 0 and extent:
            offset -= (extent - 1) * increment
        pointer += offset * step * array.dtype.itemsize
        step *= increment
    return array._replace(pointer=pointer, shape=(*batch, extent, 1), strides=(*steps, step, 1))


def _slice(vector: Vector) -> slice:
    n, offset, increment = vector
    if n == 0:
        return slice(0, 0)
    span = (n - 1) * abs(increment)
    if increment > 0:
        return slice(offset, offset + span + 1, increment)
    return slice(offset + span, offset - 1 if offset else None, increment)
