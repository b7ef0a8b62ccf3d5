"""Matrices of unequal sizes as stacks of few sizes: copied there in one launch, computed, and copied back.

Each order is rounded up, and so is the number of matrices of each: what kernels run on has few layouts, whose
launch lists are kept. Triangles are completed by a unit matrix, so that what is added changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ..dispatch import leaf
from ..gpu import launch, tables, workspace
from ..gpu.build.compile import KernelSource
from ..gpu.device import current
from ..kernels import compile_ahead
from ..kernels.common.problem_table import ROW_WORDS
from ..kernels.copy.ragged_copy import STEM, RaggedCopy, source
from ..operands import Operand
from ..types import Dtype
from .matrices import Matrices, Table

__all__ = ["LARGE", "MOST_BYTES", "Copies", "Stack", "Stage", "are_staged", "filled", "rounds"]

LARGE = 512  # orders beyond are calls of their own: a copy of one would not fill them up with others
MOST_BYTES = 256 << 20  # of stacks at a time
_LEAST = np.array([8, 4])  # rows and columns
_ALIGN = 256


def rounded(numbers: np.ndarray, least: np.ndarray | int = 1) -> np.ndarray:
    """Return numbers that are as large or up to a quarter larger, of which there are few."""
    powers = 1 << np.log2(np.maximum(numbers - 1, 1)).astype(np.int64)
    steps = np.maximum(powers // 4, least)
    return np.asarray(-(-numbers // steps) * steps)


class Stack(NamedTuple):
    """A place for matrices of one size among the stacks.

    Attributes
    ----------
    which : numpy.ndarray
        The numbers of its matrices; those behind them are empty.
    rows, cols, room : int
        Extents of a matrix, and number of matrices, rounded up.
    """

    which: np.ndarray
    rows: int
    cols: int
    room: int


def are_staged(shapes: np.ndarray, itemsize: int) -> np.ndarray:
    """Whether matrices of these shapes are copied into stacks; others are calls of their own."""
    nbytes = shapes[:, 0] * shapes.max(axis=1) * itemsize
    return np.asarray((shapes[:, 0] <= LARGE) & (nbytes <= MOST_BYTES // 8))


def rounds(shapes: np.ndarray, itemsize: int) -> Iterator[list[Stack]]:
    """Yield stacks for matrices of these shapes, those that memory has room for at a time."""
    sizes, stacks, nbytes = rounded(shapes, _LEAST), [], 0
    for rows, cols in np.unique(sizes, axis=0).tolist():
        members = np.flatnonzero((sizes == (rows, cols)).all(axis=1))
        if (shapes[members] == shapes[members[0]]).all():
            rows, cols = shapes[members[0]].tolist()
        most = max(MOST_BYTES // (2 * rows * max(rows, cols) * itemsize), 1)
        for start in range(0, len(members), most):
            which = members[start : start + most]
            stacks.append(Stack(which, rows, cols, int(rounded(np.array([len(which)]))[0])))
            nbytes += 2 * rows * max(rows, cols) * itemsize * len(which)
            if nbytes >= MOST_BYTES:
                yield stacks
                stacks, nbytes = [], 0
    if stacks:
        yield stacks


def filled(matrices: Matrices, stack: Stack) -> Matrices:
    """Return the matrices of a stack, and empty ones behind them."""
    taken = matrices.take(np.resize(stack.which, stack.room))
    taken.shapes[len(stack.which) :] = 0
    return taken


class Copies(NamedTuple):
    """Copies of `ragged_copy`: sources, targets, and options and alpha of each.

    Attributes
    ----------
    source, target : Matrices
        Pointers of those in a stage are distances from its beginning.
    options : numpy.ndarray of int32
    alpha : numpy.ndarray
    """

    source: Matrices
    target: Matrices
    options: np.ndarray
    alpha: np.ndarray


class _Launch(NamedTuple):
    source: KernelSource
    blocks: int
    sources: int | None  # None is the stage
    targets: int | None
    places: tuple[int, int, int]  # of scalars, problems and owners in the table


class Stage:
    """Memory of stacks on a device, and the copies there and back.

    Parameters
    ----------
    dtype : Dtype
    device : int
    """

    def __init__(self, dtype: Dtype, device: int):
        self.dtype, self.device, self.nbytes, self.address = dtype, device, 0, 0
        config: RaggedCopy = leaf.fixed(STEM, dtype.letter, current(device))
        self._config, self._table = config, Table()
        self._launches: list[list[_Launch]] = [[], []]

    def reserve(self, count: int, rows: int, cols: int) -> Matrices:
        """Return a place for a stack: dense matrices by columns."""
        size = rows * cols * self.dtype.itemsize
        start, self.nbytes = self.nbytes, -(-(self.nbytes + count * size) // _ALIGN) * _ALIGN
        pointers = start + size * np.arange(count, dtype=np.int64)
        shapes, strides = (
            np.tile(np.array(each, np.int64), (count, 1)) for each in ((rows, cols), (1, rows))
        )
        return Matrices(pointers, shapes, strides, np.zeros(count, bool))

    def operand(self, stack: Matrices) -> Operand:
        """Return a stack as an operand; the stage has its memory."""
        one = stack.operand(0, self.dtype, self.device)
        size = one.rows * one.cols
        return one._replace(pointer=self.address + one.pointer, batch=len(stack.rows), batch_stride=size)

    def add(self, copies: Copies, is_back: bool, origin: int) -> None:
        """Add copies into the stage, or back; pointers outside it are near `origin`."""
        source_of, target_of, options, alpha = copies
        sources, targets = (None, origin) if is_back else (origin, None)
        blocks = self._config.blocks(target_of.rows, target_of.cols)
        rows = np.zeros((len(options), ROW_WORDS // 2), np.int64)
        for place, (x, start) in enumerate(((source_of, sources), (target_of, targets))):
            rows[:, place] = (x.pointers - (start or 0)) // self.dtype.real_size
            rows[:, 2 + 2 * place : 4 + 2 * place] = x.strides
        words = rows.view(np.int32)
        words[:, 12:14], words[:, 14:16] = source_of.shapes, target_of.shapes
        words[:, 16], words[:, 17] = np.cumsum(blocks) - blocks, options
        scalars = np.stack((alpha.real, alpha.imag), 1).astype(self.dtype.real)
        owners = np.repeat(np.arange(len(options), dtype=np.int32), blocks)
        places = self._table.add(scalars), self._table.add(rows), self._table.add(owners)
        self._launches[is_back].append(_Launch(source(self._config), len(owners), sources, targets, places))

    def run(self, compute: Callable[[], None], stream: int) -> None:
        """Enqueue the copies into the stage, what ``compute()`` enqueues, and the copies back."""
        start = -(-self._table.nbytes // _ALIGN) * _ALIGN
        compile_ahead.ensure_compiled([source(self._config)], self.device)
        room = workspace.take(start + self.nbytes, self.device, stream)
        try:
            tables.send(self._table.bytes(), room.address, stream)
            self.address = room.address + start
            self._copy(self._launches[False], room.address, stream)
            compute()
            self._copy(self._launches[True], room.address, stream)
        finally:
            workspace.give(room)

    def _copy(self, launches: list[_Launch], table: int, stream: int) -> None:
        for each in launches:
            matrices = (self.address if start is None else start for start in (each.sources, each.targets))
            places = (table + at for at in each.places)
            kernel = launch.kernel(each.source, self.device)
            kernel.launch((each.blocks, 1, 1), stream, (*matrices, *places), (), ())
