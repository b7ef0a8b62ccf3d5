"""Stacks of matrices on a device as operands, and how a routine's launch list is run on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyblasgpu.operands import Operand
from pyblasgpu.types import DTYPES, Dtype

__all__ = ["first_words", "operand", "run"]


def _dtype_of(array: Any) -> Dtype:
    return next(dtype for dtype in DTYPES.values() if dtype.name == array.dtype.name)


def operand(array: Any) -> Operand:
    """A batch of matrices, in place."""
    step, row_step, col_step = (stride // array.itemsize for stride in array.strides)
    batch, rows, cols = array.shape
    pointer = array.data.ptr
    return Operand(pointer, rows, cols, row_step, col_step, _dtype_of(array), False, batch, step, owner=array)


def run(routine: Any, *arrays: Any, **flags: Any) -> None:
    """Run a routine on CuPy's current stream."""
    import cupy

    operands = [operand(array) for array in arrays]
    launches = routine.launch_list(*operands, **flags)
    if launches is not None:
        stream = cupy.cuda.get_current_stream().ptr
        launches.run([each.pointer for each in operands], 1.0, stream=stream)


def first_words(info: Any) -> np.ndarray:
    """The int32 at the beginning of each matrix."""
    words: np.ndarray = info.get().view(np.int32)[:, 0, 0]
    return words
