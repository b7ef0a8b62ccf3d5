"""Arrays as SciPy's wrappers take them: vectors and numbers are matrices, and outputs may be overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...arguments import NUMBERS, Array, Flag, Number, array_of_numbers
from ...frontend.arrays.any_array import (
    common_dtype,
    dtype_name,
    indexable,
    library_of,
    may_share_memory,
    output_view,
    reshaped,
    stored_dtype,
)
from ...frontend.arrays.layouts import MisalignedError, is_column_major, is_fortran_contiguous
from ...frontend.calls.call_cache import repeat
from ...types import Dtype

__all__ = [
    "as_matrix",
    "common_dtype_of",
    "is_fortran",
    "leading_part",
    "is_on",
    "may_overwrite",
    "repeated",
    "array_shape",
    "shaped_like",
    "checked_array",
    "two_dimensional",
]


def as_matrix(name: str, argument: str, array: Array, dtype: Dtype | None) -> Array:
    """`array` with two dimensions; a vector as one column, a number as one element."""
    return two_dimensional(name, argument, checked_array(name, argument, array, dtype))


def checked_array(name: str, argument: str, array: Array, dtype: Dtype | None) -> Array:
    """`array`, or what NumPy makes of numbers; TypeError for a complex one of a real routine."""
    if isinstance(array, NUMBERS):
        array = array_of_numbers(array, name, argument)
    array = indexable(array, name, argument)
    stored = common_dtype(name, [dtype_name(array)], [argument])
    if stored.is_complex and dtype is not None and not dtype.is_complex:
        raise TypeError(f"{name}: {argument} is complex, and the routine computes in {dtype.name}")
    return array


def two_dimensional(name: str, argument: str, array: Array) -> Array:
    """Return the array that `checked_array` has left, with two dimensions."""
    dimensions = len(array.shape)
    if dimensions > 2:
        raise ValueError(f"{name}: {argument} has shape {tuple(array.shape)}; a matrix or a vector is needed")
    if dimensions == 2:
        return array
    return reshaped(array, (*array.shape, 1) if dimensions else (1, 1))


def common_dtype_of(name: str, arrays: tuple[Array, ...]) -> Dtype:
    """The dtype in which the routine `name` computes with `arrays`."""
    return common_dtype(name, [dtype_name(array) for array in arrays])


def leading_part(a: Array, order: int) -> Array:
    """The leading part of a triangle that is larger than needed, as SciPy's trmm takes it."""
    rows, cols = a.shape
    return a[:order, :order] if rows >= cols >= order else a


def may_overwrite(array: Array, dtype: Dtype, inputs: Iterable[Array]) -> bool:
    """Whether SciPy would write into `array`: column-major, without padding, of the routine's dtype; and
    whether that harms none of the other `inputs`.
    """
    view = output_view(array, dtype)
    if view is None or any(may_share_memory(other, array) for other in inputs):
        return False
    return is_fortran_contiguous(view)


def shaped_like(result: Array, replaced: Array) -> Array:
    """The result in the shape that SciPy gives it: that of the argument that it replaces, if there is one.

    A stack, which SciPy knows not, stays as it is.
    """
    if replaced is None or len(result.shape) > 2:
        return result
    shape = array_shape(replaced)
    return result if len(shape) == 2 else reshaped(result, shape)


def array_shape(array: Array) -> tuple[int, ...]:
    """The shape of an array, or of what NumPy makes of numbers."""
    return np.shape(array) if isinstance(array, NUMBERS) else tuple(indexable(array, "", "").shape)


def is_fortran(array: Array) -> bool:
    """Whether `array` is column-major, by NumPy's definition."""
    library = library_of(array)
    if library.host:
        return library.to_numpy(array).flags.f_contiguous
    if len(array.shape) < 2:
        return True
    stored = stored_dtype(dtype_name(array))
    try:
        return stored is not None and is_column_major(library.layout(array, stored, None))
    except MisalignedError:
        return False


def is_on(flag: Flag) -> bool:
    """Return whether a plain flag is on; any other kind of flag is left to the checks."""
    return type(flag) in (int, bool) and flag == 1


def repeated(
    key: tuple[Any, ...], inputs: tuple[Array, ...], alpha: Number, beta: Number, c: Array, overwrite_c: Flag
) -> Array:
    """Return the result of a call that is kept, with `c` overwritten or copied; None where none is kept."""
    if c is None:
        return repeat(key, inputs, None, alpha, 0) if type(beta) in (int, float) else None
    if is_on(overwrite_c):
        return repeat(key, inputs, c, alpha, beta)
    return repeat(key, (*inputs, c), None, alpha, beta)
