"""Leaves of tasks on the memory of fake cards, computed by NumPy and SciPy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial

import numpy as np

from ..engine.leaves import EnqueueLeaf, LeafRun
from ..frontend import cpu, cpu_cholesky, cpu_lu
from ..operands import Operand
from ..tasks.task_list import TileLeaf
from ..types import Trans
from .fake_cards import FakeDriver
from .fake_memory import Access

__all__ = ["elements", "enqueue_on", "run_leaf"]

NO = Trans.NO


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


def _set_integers(elements: np.ndarray, values: np.ndarray) -> None:
    """Put an int32 into the first bytes of each element of a column."""
    words = np.ascontiguousarray(elements).view(np.int32)
    words[:, :1] = values
    elements[...] = words.view(elements.dtype)


def run_leaf(run: LeafRun) -> None:
    """Compute a leaf in place."""
    arrays = [elements(operand) for operand in run.operands]
    flags, scalars = run.flags, run.scalars
    if run.routine == "potrf":
        info, a = arrays
        leaf_info = np.zeros((1, 1, 1), np.int32)
        cpu_cholesky.potrf(leaf_info, a[None], **flags)
        _set_integers(info, leaf_info[0])
    elif run.routine == "getrf":
        piv, info, a = arrays
        pivots, leaf_info = np.zeros((1, min(a.shape), 1), np.int32), np.zeros((1, 1, 1), np.int32)
        cpu_lu.getrf(pivots, leaf_info, a[None])
        _set_integers(piv, pivots[0])
        _set_integers(info, leaf_info[0])
    elif run.routine == "laswp":
        piv, a = arrays
        for row, other in enumerate(np.ascontiguousarray(piv).view(np.int32)[:, 0]):
            a[[row, other]] = a[[other, row]]
    elif run.routine == "gemm":
        a, b, c = arrays
        cpu.gemm(scalars[0], a[None], b[None], scalars[1], c[None], NO, NO)
    elif run.routine == "syrk":
        a, c = arrays
        hermitian, is_new_output = flags["hermitian"], flags["is_new_output"]
        cpu.syrk(scalars[0], a[None], scalars[1], c[None], flags["uplo"], NO, hermitian, is_new_output)
    elif run.routine == "symm":
        a, b, c = arrays
        sides = flags["side"], flags["uplo"], flags["hermitian"]
        cpu.symm(scalars[0], a[None], b[None], scalars[1], c[None], *sides)
    else:
        a, b = arrays
        function = cpu.trsm if run.routine == "trsm" else cpu.trmm
        function(scalars[0], a[None], b[None], flags["side"], flags["uplo"], NO, flags["diag"])


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
        written = {"potrf": 2, "getrf": 3}.get(run.routine, 1)
        reads, writes = run.operands[:-written], run.operands[-written:]
        accesses = [line for operand in reads for line in _lines(operand, is_write=False)]
        accesses += [line for operand in writes for line in _lines(operand, is_write=True)]
        driver.launch(stream, leaf.routine, accesses, partial(run_leaf, run))

    return enqueue
