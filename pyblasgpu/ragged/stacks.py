"""Matrices of unequal sizes as stacks of few sizes: copied there in one launch, computed, and copied back.

Each order is rounded up, and so is the number of matrices of each. So what kernels run on has few layouts,
whose launch lists are kept. Triangles are completed by a unit matrix, so that what is added changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ..dispatch import leaf
from ..gpu import launch, tables, workspace
from ..gpu.device import current
from ..kernels import compile_ahead
from ..kernels.common.problem_table import ROW_WORDS
from ..kernels.copy.ragged_copy import STEM, RaggedCopy, source
from ..operands import Operand
from ..types import Dtype
from .matrices import Matrices, Table

__all__ = ["Compute", "LARGE", "MOST_BYTES", "Copies", "Stack", "Stage", "are_staged", "filled", "rounds"]

LARGE = 512  # orders beyond are calls of their own: a copy of one would not fill them up with others
MOST_BYTES = 256 << 20  # of stacks at a time
_LEAST = np.array([8, 4])  # rows and columns
_ALIGN = 256


def rounded(numbers: np.ndarray, least: np.ndarray | int = 1) -> np.ndarray:
    """Return numbers rounded up by at most a quarter, or to multiples of `least`, so that they are few."""
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


#: ``compute(address, stream)`` of a stage.
Compute = Callable[[int, int], None]


class _Launch(NamedTuple):
    """A launch of copies but for addresses.

    Attributes
    ----------
    is_back : bool
        Whether its targets are outside the stage, else its sources.
    dtype : Dtype
    numbers, distances : numpy.ndarray
        Array of the call that each matrix outside is a part of, and its distance from that array's address.
    scalars, rows, owners : int
        Distances of its parts in the table.
    """

    is_back: bool
    dtype: Dtype
    blocks: int
    numbers: np.ndarray
    distances: np.ndarray
    scalars: int
    rows: int
    owners: int


class Stage:
    """Memory of stacks on a device, and the copies there and back.

    Parameters
    ----------
    dtype : Dtype
    device : int
    pointers : numpy.ndarray
        Addresses of the arrays of a call, to which its matrices refer.
    """

    def __init__(self, dtype: Dtype, device: int, pointers: np.ndarray):
        self.dtype, self.device, self.nbytes = dtype, device, 0
        self._table, self._pointers = Table(), pointers
        self._launches: list[_Launch] = []
        self._bytes: np.ndarray | None = None

    def reserve(self, count: int, rows: int, cols: int, dtype: Dtype | None = None) -> Matrices:
        """Return a place for a stack: dense matrices by columns, by default of the dtype of the stage."""
        size = rows * cols * (dtype or self.dtype).itemsize
        start, self.nbytes = self.nbytes, -(-(self.nbytes + count * size) // _ALIGN) * _ALIGN
        pointers = start + size * np.arange(count, dtype=np.int64)
        extents, steps = (np.tile(np.array(x, np.int64), (count, 1)) for x in ((rows, cols), (1, rows)))
        return Matrices.of(pointers, extents, steps)

    def _config_of(self, dtype: Dtype) -> RaggedCopy:
        config: RaggedCopy = leaf.fixed(STEM, dtype.letter, current(self.device))
        return config

    def operand(self, stack: Matrices, address: int, dtype: Dtype | None = None) -> Operand:
        """Return a stack as an operand, in a stage that begins at an address."""
        one = stack.operand(0, dtype or self.dtype, self.device)
        size = one.rows * one.cols
        return one._replace(pointer=address + one.pointer, batch=len(stack.rows), batch_stride=size)

    def add(self, copies: Copies, is_back: bool, dtype: Dtype | None = None) -> None:
        """Add copies into the stage, or back."""
        dtype = dtype or self.dtype
        config = self._config_of(dtype)
        pair, options, alpha = copies[:2], copies.options, copies.alpha
        inside, outside = pair[1 - is_back], pair[is_back]
        blocks = config.blocks(copies.target.rows, copies.target.cols)
        rows = np.zeros((len(options), ROW_WORDS // 2), np.int64)
        rows[:, 1 - is_back] = inside.pointers // dtype.real_size
        rows[:, 2:4], rows[:, 4:6] = copies.source.strides, copies.target.strides
        words = rows.view(np.int32)
        words[:, 12:14], words[:, 14:16] = copies.source.shapes, copies.target.shapes
        words[:, 16], words[:, 17] = np.cumsum(blocks) - blocks, options
        scalars = np.stack((alpha.real, alpha.imag), 1).astype(dtype.real)
        owners = np.repeat(np.arange(len(options), dtype=np.int32), blocks)
        parts = self._table.add(scalars), self._table.add(rows), self._table.add(owners)
        distances = outside.pointers - self._pointers[outside.numbers]
        self._launches.append(_Launch(is_back, dtype, len(owners), outside.numbers, distances, *parts))

    def run(self, compute: Compute, pointers: np.ndarray, stream: int) -> None:
        """Enqueue the copies into the stage, what ``compute(address, stream)`` enqueues in a stage that
        begins at an address, and the copies back; the arrays of the call are at `pointers`.
        """
        sources = {each.dtype: source(self._config_of(each.dtype)) for each in self._launches}
        if self._bytes is None:
            compile_ahead.ensure_compiled([*sources.values()], self.device)
            self._bytes = self._table.bytes()
        kernels = {dtype: launch.kernel(each, self.device) for dtype, each in sources.items()}
        table = self._bytes.copy()
        origins = [self._place(table, each, pointers) for each in self._launches]
        start = -(-table.nbytes // _ALIGN) * _ALIGN
        room = workspace.take(start + self.nbytes, self.device, stream)
        try:
            tables.send(table, room.address, stream)
            address, is_computed = room.address + start, False
            for each, origin in zip(self._launches, origins, strict=True):
                if each.is_back and not is_computed:
                    compute(address, stream)
                    is_computed = True
                matrices = (address, origin) if each.is_back else (origin, address)
                parts = (room.address + at for at in (each.scalars, each.rows, each.owners))
                kernels[each.dtype].launch((each.blocks, 1, 1), stream, (*matrices, *parts), (), ())
        finally:
            workspace.give(room)

    def _place(self, table: np.ndarray, each: _Launch, pointers: np.ndarray) -> int:
        """Write distances of a launch's matrices outside into its table; return the address they begin at."""
        at = pointers[each.numbers] + each.distances
        rows = table[each.rows : each.rows + len(at) * ROW_WORDS * 4].view(np.int64).reshape(len(at), -1)
        rows[:, int(each.is_back)] = (at - at[0]) // each.dtype.real_size
        return int(at[0])
