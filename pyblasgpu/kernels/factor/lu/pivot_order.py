"""``pivot_order``: what pivots say, as the order of all rows; also of the last pivots alone.

A thread has a row of the result, and goes through the interchanges from the last one to the first. So it
finds where the row was. At some of them it writes that: the order by the pivots from there on.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters

__all__ = ["STEM", "PivotOrder", "source"]

STEM = "pivot_order"
AT_ONCE = 16  # pivots that a thread has in registers
PARAMETERS = parameters(
    "int32 pointer: piv, order",
    "int32: count, base, rows, every, chunk",
    "int64: step",
)


@dataclass(frozen=True)
class PivotOrder(BlockConfig):
    """Config of the `pivot_order` kernel; its dtype has no effect.

    Attributes
    ----------
    DIM : int
        Threads.
    """

    DIM: int = 128

    STEM: ClassVar[str] = STEM

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 32

    @property
    def shared_bytes(self) -> int:
        return self.DIM * 4

    def grid(self, rows: int) -> int:
        """Blocks along x."""
        return -(-rows // self.DIM)

    def chunk(self, count: int, every: int) -> int:
        """Pivots that a block has in shared memory, where an order ends after `every` of `count` pivots."""
        return self.DIM if every >= count else gcd(self.DIM, every)


def source(config: PivotOrder) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    piv, order: int32 pointer, pivots, counted from 0, and orders
    count: int32, the number of pivots
    base: int32, the first row on top
    rows: int32, rows from there on
    every: int32, pivots from the first one of an order to that of the next
    chunk: int32, ``config.chunk(count, every)``
    step: int64, words from pivot to pivot

    Grid: x ``config.grid(rows)``.

    Notes
    -----
    Order ``j``, from word ``j * rows`` on, is that by the pivots from ``j * every`` on. It has a word for
    each row from that one on: the row that moves there. Both are counted from that row.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _follower():
    """``follow(0, pivots, origin, top)``: where a row was before pivots in registers, the last one first;
    ``read(0, pivots, shared, at)``: `AT_ONCE` of them.
    """
    int32 = ptx.types.int32

    @device_function
    def read(u, pivots, shared, at):
        pivots[u] = shared[at + u]

    @device_function
    def follow(u, pivots, origin, top):
        row, pivot = int32(top + (AT_ONCE - 1) - u), pivots[AT_ONCE - 1 - u]
        if origin[0] == row:
            origin[0] = pivot
        elif origin[0] == pivot:
            origin[0] = row

    return unrolled(AT_ONCE, read), unrolled(AT_ONCE, follow)


def _build(config: PivotOrder):
    DIM, int32, int64 = config.DIM, ptx.types.int32, ptx.types.int64
    shared_pointer, grid_dependency_wait = ptx.shared_pointer, ptx.grid_dependency_wait
    read, follow = _follower()

    def pivot_order(piv, order, count, base, rows, every, chunk, step):
        t = int32(cuda.threadIdx.x & 1023)
        shared = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        pivots, origin = cuda.local.array(AT_ONCE, int32), cuda.local.array(1, int32)
        row = int32(int32(cuda.blockIdx.x) * DIM + t)
        origin[0], chunks = row, int32((count + chunk - 1) // chunk)
        grid_dependency_wait()
        for number in range(chunks):
            # (1) the pivots of a chunk, the last chunk first; behind its end rows that stay
            first = int32((chunks - 1 - number) * chunk)
            here = int32(min(count - first, chunk))
            cuda.syncthreads()
            shared[t] = int32(piv[(first + t) * step] - base if t < here else first + t)
            cuda.syncthreads()

            # (2) where the row was before them
            parts = int32((here + AT_ONCE - 1) // AT_ONCE)
            for part in range(parts):
                at = int32((parts - 1 - part) * AT_ONCE)
                read(0, pivots, shared, at)
                follow(0, pivots, origin, int32(first + at))
            if first % every == 0 and row >= first and row < rows:
                order[int64(first // every) * rows + row - first] = int32(origin[0] - first)

    return pivot_order
