"""A matrix, or a strided batch of matrices, in memory: what the routines and kernels work on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .types import Dtype

__all__ = ["SECTOR", "Operand", "span"]

#: Bytes that memory gives at once. Operands that begin elsewhere in them have other kernels.
SECTOR = 32


def span(
    pointer: int, shape: Sequence[int], strides: Sequence[int], itemsize: int, unit: int = 1
) -> tuple[int, int]:
    """First address and the one past the last byte of elements, their strides in `unit` bytes."""
    low = high = 0
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 0:
            return pointer, pointer
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return pointer + low * unit, pointer + high * unit + itemsize


class Operand(NamedTuple):
    """`batch` matrices of `rows` by `cols` elements, none of them copied.

    Element (z, i, j) is at ``pointer + (z*batch_stride + i*row_stride + j*col_stride) * itemsize``.

    Attributes
    ----------
    pointer : int
        Address of element (0, 0, 0), on the device or the host.
    rows, cols : int
        Extents.
    row_stride, col_stride : int
        Strides in elements; any sign, zero where an operand is only read.
    dtype : Dtype
        Element type.
    conj : bool
        Whether the elements are meant conjugated (only of operands that are read).
    batch, batch_stride : int
        Number of matrices, and their distance in elements.
    device : int
        Ordinal of the device; -1 is the host.
    owner : object
        Keeps the memory alive.
    """

    pointer: int
    rows: int
    cols: int
    row_stride: int
    col_stride: int
    dtype: Dtype
    conj: bool = False
    batch: int = 1
    batch_stride: int = 0
    device: int = 0
    owner: Any = None

    @property
    def layout(self) -> tuple[Any, ...]:
        """All but the address: what a plan for it depends on, with the alignment of its address."""
        return self[1:9], self.pointer % SECTOR

    @property
    def by_rows(self) -> bool:
        """Whether neighbours in memory are neighbouring rows, else columns."""
        return abs(self.row_stride) <= abs(self.col_stride)

    @property
    def T(self) -> Operand:
        """The transposed view."""
        return self._replace(
            rows=self.cols, cols=self.rows, row_stride=self.col_stride, col_stride=self.row_stride
        )

    def conjugate(self) -> Operand:
        """The conjugated view; of a real operand, itself."""
        return self._replace(conj=not self.conj) if self.dtype.is_complex else self

    def block(self, row: int, col: int, rows: int, cols: int) -> Operand:
        """The view of `rows` by `cols` elements whose first is (`row`, `col`)."""
        step = row * self.row_stride + col * self.col_stride
        return self._replace(pointer=self.pointer + step * self.dtype.itemsize, rows=rows, cols=cols)

    def flip(self, rows: bool = False, cols: bool = False) -> Operand:
        """The view whose rows, columns run backwards; it begins where the operand does if there are none."""
        last_row, last_col = max(self.rows - 1, 0), max(self.cols - 1, 0)
        step = last_row * self.row_stride * rows + last_col * self.col_stride * cols
        return self._replace(
            pointer=self.pointer + step * self.dtype.itemsize,
            row_stride=-self.row_stride if rows else self.row_stride,
            col_stride=-self.col_stride if cols else self.col_stride,
        )

    def matrices(self, first: int, count: int) -> Operand:
        """The view of `count` matrices of the batch from `first` on."""
        step = first * self.batch_stride * self.dtype.itemsize
        return self._replace(pointer=self.pointer + step, batch=count)

    def leading_dimension(self, is_transposed: bool) -> int:
        """Elements from one contiguous column to the next, or of a transposed operand from row to row."""
        return self.row_stride if is_transposed else self.col_stride

    @property
    def is_empty(self) -> bool:
        return self.rows == 0 or self.cols == 0 or self.batch == 0

    def span(self) -> tuple[int, int]:
        """First address and the one past the last byte that the operand touches."""
        size, extents = self.dtype.itemsize, (self.rows, self.cols, self.batch)
        strides = self.row_stride, self.col_stride, self.batch_stride
        return span(self.pointer, extents, strides, size, size)
