"""Arrays as SciPy's wrappers take them: vectors and numbers are matrices, and outputs may be overwritten."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..arguments import Array, array_of_numbers
from ..frontend.arrays import (
    common_dtype,
    dtype_name,
    indexable,
    library_of,
    may_share_memory,
    output_view,
    reshaped,
    stored_dtype,
)
from ..frontend.layouts import MisalignedError, is_column_major
from ..types import Dtype

__all__ = ["as_matrix", "common_dtype_of", "is_fortran", "leading_part", "may_overwrite", "shaped_like"]


def as_matrix(name: str, argument: str, array: Array, dtype: Dtype | None) -> Array:
    """`array` with two dimensions; a vector as one column, a number as one element."""
    if isinstance(array, _NUMBERS):
        array = array_of_numbers(array, name, argument)
    array = indexable(array, name, argument)
    stored = common_dtype(name, [dtype_name(array)], [argument])
    if stored.is_complex and dtype is not None and not dtype.is_complex:
        raise TypeError(f"{name}: {argument} is complex, and the routine computes in {dtype.name}")
    dimensions = len(array.shape)
    if dimensions > 2:
        raise ValueError(f"{name}: {argument} has shape {tuple(array.shape)}; a matrix or a vector is needed")
    if dimensions == 2:
        return array
    return reshaped(array, (*array.shape, 1) if dimensions else (1, 1))


#: What has no dtype of its own.
_NUMBERS = (list, tuple, int, float, complex)


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
    if isinstance(view, np.ndarray):
        return view.flags.f_contiguous
    (rows, cols), steps = view.shape, view.strides
    return (rows <= 1 or steps[0] == 1) and (cols <= 1 or steps[1] == rows)


def shaped_like(result: Array, replaced: Array) -> Array:
    """The result in the shape that SciPy gives it: that of the argument that it replaces, if there is one.

    A stack, which SciPy knows not, stays as it is.
    """
    if replaced is None or len(result.shape) > 2:
        return result
    shape = np.shape(replaced) if isinstance(replaced, _NUMBERS) else tuple(indexable(replaced, "", "").shape)
    return result if len(shape) == 2 else reshaped(result, shape)


def is_fortran(array: Array) -> bool:
    """Whether `array` is column-major, as NumPy tells it of its own."""
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
