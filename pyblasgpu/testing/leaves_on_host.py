"""Leaves of tasks on the memory of fake cards, computed by NumPy and SciPy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial

import numpy as np

from ..engine.leaves import EnqueueLeaf, LeafRun
from ..operands import Operand
from ..routine import INTEGERS
from ..tasks.task_list import TileLeaf
from ..types import Trans
from .fake_cards import FakeDriver
from .fake_memory import Access

__all__ = ["elements", "enqueue_on", "run_leaf"]


def elements(operand: Operand) -> np.ndarray:
    """An operand as a view of memory; a conjugated one as a copy."""
    low, high = operand.span()
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
    size = operand.dtype.itemsize
    strides = operand.row_stride * size, operand.col_stride * size
    view = np.ndarray(
        (operand.rows, operand.cols), operand.dtype.name, memory, operand.pointer - low, strides
    )
    return view.conj() if operand.conj else view


def _integers(elements: np.ndarray) -> np.ndarray:
    """The int32 in the first bytes of each element of a column, as a view of it or of a copy."""
    return np.ascontiguousarray(elements).view(np.int32)[:, :1]


def _set_integers(elements: np.ndarray, values: np.ndarray) -> None:
    """Put an int32 into the first bytes of each element of a column."""
    words = np.ascontiguousarray(elements).view(np.int32)
    words[:, :1] = values
    elements[...] = words.view(elements.dtype)


def run_leaf(run: LeafRun) -> None:
    """Compute a leaf in place."""
    row, arrays = run.routine, [elements(operand) for operand in run.operands]
    held = [each.name in INTEGERS for each in row.matrices]
    stacks = [
        (_integers(array) if is_held else array)[None] for array, is_held in zip(arrays, held, strict=True)
    ]
    scalars = dict(zip(("alpha", "beta"), run.scalars, strict=False))
    row.cpu_function(*row.arranged(scalars, stacks), **run.flags, **dict.fromkeys(row.ops, Trans.NO))
    for array, stack, is_held in zip(arrays, stacks, held, strict=True):
        if is_held:
            _set_integers(array, stack[0])


def _lines(operand: Operand, is_write: bool) -> list[Access]:
    """Return the accesses to an operand, a row or a column at a time: other tiles may be in between."""
    if operand.col_stride == 1:
        operand = operand.T
    columns = (operand.block(0, col, operand.rows, 1) for col in range(operand.cols))
    return [Access(*column.span(), is_write) for column in columns]


def enqueue_on(driver: FakeDriver) -> EnqueueLeaf:
    """Return the function with which the engine enqueues leaves."""

    def enqueue(leaf: TileLeaf, operands: Sequence[Operand], stream: int) -> None:
        run = LeafRun(leaf, operands)
        written = {"potrf": 2, "getrf": 3}.get(leaf.routine, 1)
        reads, writes = run.operands[:-written], run.operands[-written:]
        accesses = [line for operand in reads for line in _lines(operand, is_write=False)]
        accesses += [line for operand in writes for line in _lines(operand, is_write=True)]
        driver.launch(stream, leaf.routine, accesses, partial(run_leaf, run))

    return enqueue
