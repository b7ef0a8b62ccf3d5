"""Arenas: device memory of random operands, between guards; copies of matrices and triangles in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import PyblasgpuError
from ..gpu import memory
from ..operands import Operand
from ..testing.cases import TriangularCase
from ..testing.reference import reals, triangle
from ..types import Dtype

__all__ = ["MOST_CALLS", "Arena", "Arenas", "SpoiledMemory"]

MOST_CALLS = 20  # between two events, each on arrays of its own
ARENA = 256 << 20  # bytes of the copies of an operand, where one is not larger
CHUNK = 1 << 20  # random elements, repeated to fill an arena
GUARD = 4096  # bytes before and after an arena that must not change
ALIGN = 256


class SpoiledMemory(PyblasgpuError):
    """A kernel wrote outside the operands that it was timed on."""


class Arenas:
    """Random operands in device memory; what was made for one problem serves the next of the dtype.

    Attributes
    ----------
    arenas : dict of tuple to Arena
        Arenas by operand and dtype, ``("A", "d")``.
    """

    def __init__(self, device: int, stream: int):
        self.device, self.stream = device, stream
        self.arenas: dict[tuple, Arena] = {}

    def check(self) -> None:
        """Raise `SpoiledMemory` where memory around the operands has changed."""
        for (name, *_), arena in self.arenas.items():
            if not arena.intact():
                self.release()
                raise SpoiledMemory(f"memory around {name} was written")

    def release(self) -> None:
        """Give all memory back."""
        while self.arenas:
            self.arenas.popitem()[1].release()

    @staticmethod
    def copies(dtype: Dtype, *elements: int) -> int:
        return max(1, min(MOST_CALLS, ARENA // (max(elements) * dtype.itemsize)))

    def matrices(
        self,
        name: str,
        dtype: Dtype,
        rows: int,
        cols: int,
        count: int,
        transposed: bool = False,
        batch: int = 1,
        pad: int = 0,
        shift: int = 0,
    ) -> list[Operand]:
        """`count` batches of column-major matrices, or row-major if `transposed`, of random numbers."""
        leading_dimension, others = (cols + pad, rows) if transposed else (rows + pad, cols)
        step = -(-(leading_dimension * others * batch + shift) * dtype.itemsize // ALIGN) * ALIGN

        def chunk() -> np.ndarray:
            return reals(np.random.default_rng(2011), (min(step * count // dtype.itemsize, CHUNK),), dtype)

        arena = self.arena((name, dtype.letter), step * count, chunk)
        row, col = (leading_dimension, 1) if transposed else (1, leading_dimension)
        one = Operand(arena.address + shift * dtype.itemsize, rows, cols, row, col, dtype, device=self.device)
        return _in_a_row(one, count, step, batch, leading_dimension * others)

    def _triangles(self, dtype: Dtype, n: int, count: int, lower: bool, batch: int) -> list[Operand]:
        """`count` batches of copies of a well-conditioned triangle, by columns, NaN beyond it."""
        step = -(-n * n * dtype.itemsize // ALIGN) * ALIGN

        def chunk() -> np.ndarray:
            made = np.zeros(step // dtype.itemsize, dtype.name)
            values = triangle(np.random.default_rng(n), TriangularCase(dtype, n, n), reals)
            made[: n * n] = values.ravel(order="F" if lower else "C")
            return made

        arena = self.arena(("the triangle", dtype.letter, n, lower), step * batch * count, chunk)
        one = Operand(arena.address, n, n, 1, n, dtype, device=self.device)
        return _in_a_row(one, count, step * batch, batch, step // dtype.itemsize)

    def arena(self, key: tuple, size: int, chunk: Callable[[], np.ndarray]) -> Arena:
        """Return the arena of `key`, if it has `size` bytes; else allocate it anew, to repeat ``chunk()``."""
        arena = self.arenas.get(key)
        if arena is None or arena.size < size:
            if arena is not None:
                self.arenas.pop(key).release()
            arena = self.arenas[key] = Arena(size, chunk(), self.device, self.stream)
        return arena


def _in_a_row(first: Operand, count: int, step: int, batch: int, batch_stride: int) -> list[Operand]:
    """`count` operands like the `first`, batches if there are several of each, `step` bytes apart."""
    if batch > 1:
        first = first._replace(batch=batch, batch_stride=batch_stride)
    return [first._replace(pointer=first.pointer + i * step) for i in range(count)]


class Arena:
    """`size` bytes of device memory that repeat `chunk`, between two guards."""

    def __init__(self, size: int, chunk: np.ndarray, device: int, stream: int):
        self.size, self._device, self._stream = size, device, stream
        self._base = memory.allocate(size + 2 * GUARD, device, stream)
        self.address = self._base + GUARD
        self._guard = np.full(GUARD, 0xA5, np.uint8)
        with memory.current_context(device):
            self._fill(chunk)

    def _fill(self, chunk: np.ndarray) -> None:
        size, stream = self.size, self._stream
        for address in self._guards():
            memory.to_device(address, self._guard, stream)
        memory.to_device(self.address, chunk.view(np.uint8)[:size], stream)
        done = min(chunk.nbytes, size)
        while done < size:  # whole chunks, so that the period stays
            part = min(done, size - done)
            memory.copy(self.address + done, self.address, part, stream)
            done += part
        memory.synchronize(stream)

    def _guards(self) -> tuple[int, int]:
        return self._base, self.address + self.size

    def intact(self) -> bool:
        """Whether both guards are as they were."""
        guard = np.empty_like(self._guard)
        with memory.current_context(self._device):
            for address in self._guards():
                memory.to_host(guard, address, self._stream)
                if not np.array_equal(guard, self._guard):
                    return False
        return True

    def release(self) -> None:
        with memory.current_context(self._device):
            memory.release(self._base, self._stream)
