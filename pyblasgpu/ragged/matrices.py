"""Matrices of unequal sizes, a row of numbers each, and the tables that launches read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..operands import Operand
from ..types import Dtype

__all__ = ["Matrices", "Table"]

_ALIGN = 16  # bytes of a vector that a kernel loads


class Matrices(NamedTuple):
    """Matrices of one dtype on one device, none of them copied: a row of numbers for each.

    Attributes
    ----------
    pointers : numpy.ndarray of int64, shape (n,)
        Addresses of their first elements.
    shapes, strides : numpy.ndarray of int64, shape (n, 2)
        Rows and columns; row and column strides in elements.
    conj : numpy.ndarray of bool, shape (n,)
        Whether a matrix is meant conjugated.
    numbers : numpy.ndarray of int64, shape (n,)
        Their places among the arrays of a call.
    """

    pointers: np.ndarray
    shapes: np.ndarray
    strides: np.ndarray
    conj: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(
        cls, pointers: np.ndarray, shapes: np.ndarray, strides: np.ndarray, conj: np.ndarray | None = None
    ) -> Matrices:
        """Return matrices that are all arrays of a call, by default as they are stored."""
        count = len(pointers)
        conj = np.zeros(count, bool) if conj is None else conj
        return cls(pointers, shapes, strides, conj, np.arange(count, dtype=np.int64))

    @property
    def rows(self) -> np.ndarray:
        """Rows of each."""
        rows: np.ndarray = self.shapes[:, 0]
        return rows

    @property
    def cols(self) -> np.ndarray:
        """Columns of each."""
        cols: np.ndarray = self.shapes[:, 1]
        return cols

    def numbered(self, first: int) -> Matrices:
        """Return the matrices as arrays of a call from the `first` on."""
        return self._replace(numbers=first + np.arange(len(self.numbers), dtype=np.int64))

    def take(self, which: Any) -> Matrices:
        """Return the matrices that an index or a mask selects."""
        return Matrices(*(column[which] for column in self))

    def equals(self, others: Matrices) -> np.ndarray:
        """Whether each is the other one: in one place, with the same extents and strides."""
        same = [(x == y).reshape(len(x), -1).all(axis=1) for x, y in zip(self[:3], others[:3], strict=True)]
        return np.asarray(np.logical_and.reduce(same))

    @classmethod
    def joined(cls, parts: Sequence[Matrices]) -> Matrices:
        """Return the matrices of all parts."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def transposed(self, where: np.ndarray) -> Matrices:
        """Return the matrices, transposed where the mask says so."""
        if not where.any():
            return self
        shapes, strides = (np.where(where[:, None], x[:, ::-1], x) for x in (self.shapes, self.strides))
        return self._replace(shapes=shapes, strides=strides)

    def replaced(self, where: np.ndarray, others: Matrices) -> Matrices:
        """Return the matrices, `others` where the mask says so."""
        if not where.any():
            return self
        columns = zip(self, others, strict=True)
        return Matrices(*(np.where(where[:, None] if x.ndim > 1 else where, y, x) for x, y in columns))

    def by_columns(self, itemsize: int) -> np.ndarray:
        """Whether the rows of each are neighbours, and its elements at multiples of their size."""
        adjacent = (self.strides[:, 0] == 1) | (self.rows == 1)
        forwards = (self.strides[:, 1] >= 0) & (self.pointers % itemsize == 0)
        return np.asarray(adjacent & forwards)

    def flipped(self, rows: np.ndarray, cols: np.ndarray, itemsize: int) -> Matrices:
        """Return the matrices, their rows or columns backwards where the masks say so."""
        backwards = np.stack((rows, cols), 1)
        steps = np.where(backwards, self.strides * np.maximum(self.shapes - 1, 0), 0).sum(axis=1)
        strides = np.where(backwards, -self.strides, self.strides)
        return self._replace(pointers=self.pointers + steps * itemsize, strides=strides)

    def operand(self, i: int, dtype: Dtype, device: int) -> Operand:
        """Return the i-th matrix as an `Operand`."""
        conj = bool(self.conj[i]) and dtype.is_complex
        (rows, cols), (row_stride, col_stride) = self.shapes[i].tolist(), self.strides[i].tolist()
        return Operand(int(self.pointers[i]), rows, cols, row_stride, col_stride, dtype, conj, device=device)


class Table:
    """Arrays of the host that launches read, one behind the other in one piece of device memory."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, np.ndarray]] = []
        self.nbytes = 0

    def add(self, array: np.ndarray) -> int:
        """Add a contiguous array, and return the distance of its first byte from the table's."""
        at = self.nbytes
        self._parts.append((at, array))
        self.nbytes = -(-(at + array.nbytes) // _ALIGN) * _ALIGN
        return at

    def bytes(self) -> np.ndarray:
        """Return all arrays as they are in device memory."""
        memory = np.zeros(self.nbytes, np.uint8)
        for at, array in self._parts:
            memory[at : at + array.nbytes] = array.reshape(-1).view(np.uint8)
        return memory
