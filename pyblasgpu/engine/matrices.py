"""Matrices of a call as tiles: their home, and the layout of their tiles in a card's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ..gpu.locked_arrays import lock_again
from ..gpu.page_locked import is_page_locked
from ..gpu.transfers import Block
from ..operands import Operand
from ..tasks.task_list import Grid, Tile
from ..types import Dtype, Uplo
from .triangles import covering, diagonal_squares

__all__ = ["PITCH", "DeviceMatrix", "HostMatrix", "Matrix", "TileLayout", "Triangle"]

#: Lines of a tile on a card begin at multiples of this many bytes.
PITCH = 128


class TileLayout(NamedTuple):
    """Layout of a tile in a card's memory: `lines` lines, rows or columns of it, `pitch` bytes apart.

    Attributes
    ----------
    rows, cols : int
    row_major : bool
        Whether lines are rows.
    pitch : int
    dtype : Dtype
    """

    rows: int
    cols: int
    row_major: bool
    pitch: int
    dtype: Dtype

    @classmethod
    def of(cls, rows: int, cols: int, row_major: bool, dtype: Dtype) -> TileLayout:
        width = (cols if row_major else rows) * dtype.itemsize
        return cls(rows, cols, row_major, -(-width // PITCH) * PITCH, dtype)

    @property
    def lines(self) -> int:
        return self.rows if self.row_major else self.cols

    @property
    def width(self) -> int:
        """Bytes of a line."""
        return (self.cols if self.row_major else self.rows) * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.pitch * self.lines

    def block(self, address: int, device: int) -> Block:
        """The tile at an address, as copies take it."""
        return Block(address, self.width, self.lines, self.pitch, device)

    def operand(self, address: int, device: int) -> Operand:
        """The tile at an address, as routines take it."""
        leading_dimension = self.pitch // self.dtype.itemsize
        strides = (leading_dimension, 1) if self.row_major else (1, leading_dimension)
        return Operand(address, self.rows, self.cols, *strides, self.dtype, device=device)

    def pieces(self, nbytes: int) -> Iterator[tuple[int, TileLayout]]:
        """The tile as parts of at most `nbytes` bytes, but a line: the first line and the layout of each."""
        step = max(1, nbytes // self.pitch)
        for first in range(0, self.lines, step):
            count = min(step, self.lines - first)
            yield first, self._replace(rows=count) if self.row_major else self._replace(cols=count)

    def lines_of(self, view: np.ndarray, first: int, count: int) -> np.ndarray:
        """Some lines of a tile."""
        return view[first : first + count] if self.row_major else view[:, first : first + count]

    def array(self, buffer: np.ndarray) -> np.ndarray:
        """The tile at the beginning of a buffer of bytes, as NumPy has it."""
        size, pitch = self.dtype.itemsize, self.pitch
        strides = (pitch, size) if self.row_major else (size, pitch)
        return np.ndarray((self.rows, self.cols), self.dtype.name, buffer, 0, strides)


class Matrix:
    """A matrix of a call.

    Attributes
    ----------
    name : str
        Name in the list of tasks.
    grid : Grid
    dtype : Dtype
    row_major : bool
        Whether lines of its tiles are rows.
    device : int
        Device that it is on; -1 is the host.
    """

    device = -1

    def __init__(self, name: str, grid: Grid, dtype: Dtype, row_major: bool):
        self.name, self.grid, self.dtype, self.row_major = name, grid, dtype, row_major
        self._row_offsets, self._col_offsets = grid.row_offsets, grid.col_offsets
        self._layouts: dict[Tile, TileLayout] = {}

    def region(self, tile: Tile) -> tuple[slice, slice]:
        """The rows and columns of a tile."""
        rows, cols = self._row_offsets, self._col_offsets
        return slice(rows[tile.row], rows[tile.row + tile.rows]), slice(cols[tile.col], cols[tile.col + 1])

    def layout(self, tile: Tile) -> TileLayout:
        """Return a tile's layout on a card other than that of the matrix."""
        layout = self._layouts.get(tile)
        if layout is None:
            shape = self.grid.tile_shape(tile)
            layout = self._layouts[tile] = TileLayout.of(*shape, self.row_major, self.dtype)
        return layout


class Triangle(NamedTuple):
    """The triangle of a matrix that a call needs.

    Attributes
    ----------
    uplo : Uplo
    is_read : bool
        Whether the call reads it, or else overwrites it.
    """

    uplo: Uplo
    is_read: bool


class HostMatrix(Matrix):
    """A matrix in host memory, of any strides.

    Parameters
    ----------
    name, grid, dtype
        See `Matrix`.
    array : numpy.ndarray
        The array that is read, and that results are written to.
    source : numpy.ndarray, optional
        The array that is read for tiles that are not written yet, if not `array`.
    rest_is_zero : bool
        Whether what no task writes becomes zero; else it becomes what the source holds.
    triangle : Triangle, optional
        The triangle that the call needs, if not all; the other one stays in `array`.

    Attributes
    ----------
    is_written_directly, is_read_directly : bool
        Whether the device copies its tiles to `array`, and from the `source`, without staging.
    """

    def __init__(
        self,
        name: str,
        grid: Grid,
        dtype: Dtype,
        array: np.ndarray,
        source: np.ndarray | None = None,
        rest_is_zero: bool = False,
        triangle: Triangle | None = None,
    ):
        self.rest_is_zero, self.triangle = rest_is_zero, triangle
        self.array, self.source = array, array if source is None else source
        row_stride, col_stride = map(abs, array.strides)
        super().__init__(name, grid, dtype, row_major=col_stride <= row_stride)
        self.is_written_directly = self.is_read_directly = self._is_direct(array)
        if self.source is not array:
            self.is_read_directly = self._is_direct(self.source)
        self._addresses = [each.ctypes.data for each in self._arrays]

    @property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return self.array, self.source

    def _is_direct(self, array: np.ndarray) -> bool:
        outer, inner = array.strides if self.row_major else array.strides[::-1]
        extent = array.shape[1 if self.row_major else 0] * array.itemsize
        if inner != array.itemsize or outer < extent or not array.size:
            return False
        lines = array.shape[0 if self.row_major else 1]
        lock_again(array, self)
        return is_page_locked(array.ctypes.data, (lines - 1) * outer + extent)

    def is_direct(self, is_written: bool) -> bool:
        """Whether the device reads a tile without staging, as it is at first or as it was written."""
        return self.is_written_directly if is_written else self.is_read_directly

    def view(self, tile: Tile, is_written: bool) -> np.ndarray:
        """The elements of a tile, as they are at first or, if it `is_written`, as they were written."""
        return (self.array if is_written else self.source)[self.region(tile)]

    def host_block(self, tile: Tile, is_written: bool) -> Block:
        """A tile of what is direct, as copies take it."""
        array, address = self._arrays[not is_written], self._addresses[not is_written]
        layout, (row_stride, col_stride) = self.layout(tile), array.strides
        address += self._row_offsets[tile.row] * row_stride + self._col_offsets[tile.col] * col_stride
        pitch = row_stride if self.row_major else col_stride
        return Block(address, layout.width, layout.lines, pitch, -1)

    def parts(self, tile: Tile, is_brought: bool) -> Callable[[Block], list[Block]] | None:
        """Return the function that lists the parts of a tile to copy, to the card or home; None where all is
        copied.
        """
        if self.triangle is None or tile.row != tile.col:
            return None
        if is_brought and not self.triangle.is_read:
            return partial(diagonal_squares, itemsize=self.dtype.itemsize)
        has_tails = (self.triangle.uplo is Uplo.LOWER) is not self.row_major
        return partial(covering, itemsize=self.dtype.itemsize, has_tails=has_tails)


class DeviceMatrix(Matrix):
    """A matrix in the memory of a card: its tiles are used there in place, and copied to other cards.

    Parameters
    ----------
    name, grid
        See `Matrix`.
    operand : Operand
        All of it; one of its strides is 1.
    """

    def __init__(self, name: str, grid: Grid, operand: Operand):
        super().__init__(name, grid, operand.dtype, row_major=operand.col_stride == 1)
        self.operand, self.device = operand, operand.device

    def home_operand(self, tile: Tile) -> Operand:
        """A tile where it lives."""
        rows, cols = self.region(tile)
        return self.operand.block(rows.start, cols.start, rows.stop - rows.start, cols.stop - cols.start)

    def home_block(self, tile: Tile) -> Block:
        """Return the tile's block at home, as copies take it."""
        operand, layout = self.home_operand(tile), self.layout(tile)
        pitch = (operand.row_stride if self.row_major else operand.col_stride) * self.dtype.itemsize
        return Block(operand.pointer, layout.width, layout.lines, pitch, self.device)
