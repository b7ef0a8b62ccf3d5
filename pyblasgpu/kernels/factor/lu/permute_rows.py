"""``permute_rows``: rows of a column-major matrix in another order, in place.

A block of threads reads whole columns into shared memory, as many as there is room for, and writes them in
the other order. So each element is read once and written once, and neighbours in memory by neighbouring
threads, however many rows move. Elements are moved real by real.

Blocks of columns may have an order each, for the rows below as many: what the pivots of later blocks do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters

__all__ = ["STEM", "PermuteRows", "source"]

STEM = "permute_rows"
AT_ONCE = 8  # reals of a thread that are under way
HALF = 112  # kilobytes of a block, of which a multiprocessor has two
PARAMETERS = parameters(
    "pointer: a",
    "int32 pointer: order",
    "int32: m, n, columns, block, shift",
    "int64: a_cs",
)


@dataclass(frozen=True)
class PermuteRows(BlockConfig):
    """Config of one `permute_rows` kernel, for reals.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    KILOBYTES : int
        Shared memory of a block.
    """

    DIM: int = 1024
    KILOBYTES: int = 2 * HALF

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.KILOBYTES > 0, "columns", "KILOBYTES > 0", KILOBYTES=self.KILOBYTES)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return AT_ONCE * (self.dtype_facts.real_size // 4 + 1) + 24

    @property
    def shared_bytes(self) -> int:
        return self.KILOBYTES * 1024

    @property
    def variants(self) -> tuple[Self, ...]:
        if self.KILOBYTES <= HALF:
            return (self,)
        return replace(self, DIM=self.DIM // 2, KILOBYTES=HALF), self

    def fitting(self, shared_per_block: int) -> Self:
        """The Config for a device whose blocks have `shared_per_block` bytes of shared memory."""
        return replace(self, KILOBYTES=min(self.KILOBYTES, shared_per_block // 1024))

    def specialize(self, column_bytes: int) -> Self | None:
        """The variant for columns of as many bytes; None: there is none."""
        return next((each for each in self.variants if column_bytes <= each.shared_bytes), None)

    def columns(self, column_bytes: int, columns: int, multiprocessors: int) -> int:
        """Columns of a block at once."""
        return max(min(self.shared_bytes // column_bytes, columns // multiprocessors), 1)


def source(config: PermuteRows) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a: pointer, A
    order: int32 pointer, for each row the one that moves there
    m, n: int32, rows and columns
    columns: int32, columns of a block of threads
    block: int32, columns of a block of columns that has an order of its own; 0: none
    shift: int32, 1 where elements have two reals, else 0
    a_cs: int64, column stride of A (reals)

    Grid: x a block for as many columns.

    Notes
    -----
    The order of block ``j`` of columns begins ``(j + 1) * m`` words on. It is that of the rows from
    ``(j + 1) * block`` on, counted from there, as `pivot_order` leaves it.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _mover(config: PermuteRows):
    """``read(0, held, column, at, reals)``: reals of a column; ``keep(0, held, shared, at, reals)``: into
    shared memory; ``know(0, rows, order, at, reals, shift)``: the rows that move to theirs;
    ``write(0, rows, column, shared, at, reals, shift)``: what moves there.
    """
    DIM, load = config.DIM, ptx.load_global(1, False)
    store, int32 = ptx.store_global, ptx.types.int32

    @device_function
    def read(u, held, column, at, reals):
        load(held, u, column, at + u * DIM, at + u * DIM < reals)

    @device_function
    def keep(u, held, shared, at, reals):
        if at + u * DIM < reals:
            shared[at + u * DIM] = held[u]

    @device_function
    def know(u, rows, order, at, reals, shift):
        load(rows, u, order, (at + u * DIM) >> shift, at + u * DIM < reals)

    @device_function
    def write(u, rows, column, shared, at, reals, shift):
        i = int32(at + u * DIM)
        origin = int32((rows[u] << shift) + (i & shift))
        store(column, i, shared[origin], i < reals)

    return tuple(unrolled(AT_ONCE, each) for each in (read, keep, know, write))


def _build(config: PermuteRows):
    facts, STEP = config.dtype_facts, config.DIM * AT_ONCE
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait
    read, keep, know, write = _mover(config)

    @device_function
    def top_of(c, block):
        return int32(0) if block == 0 else int32((c // block + 1) * block)

    def permute_rows(a, order, m, n, columns, block, shift, a_cs):
        t, first = int32(cuda.threadIdx.x & 1023), int32(int32(cuda.blockIdx.x) * columns)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        held, rows = cuda.local.array(AT_ONCE, real), cuda.local.array(AT_ONCE, int32)
        count, longest = int32(min(n - first, columns)), int32((m - top_of(first, block)) << shift)
        grid_dependency_wait()

        # (1) the columns of this block, below the rows that stay
        for c in range(count):
            top = top_of(int32(first + c), block)
            column, here = offset(a, int64(first + c) * a_cs + (top << shift)), offset(shared, c * longest)
            at, reals = t, int32((m - top) << shift)
            while at < reals:
                read(0, held, column, at, reals)
                keep(0, held, here, at, reals)
                at = int32(at + STEP)
        cuda.syncthreads()

        # (2) the same in their order
        for c in range(count):
            top = top_of(int32(first + c), block)
            column, here = offset(a, int64(first + c) * a_cs + (top << shift)), offset(shared, c * longest)
            at, reals = t, int32((m - top) << shift)
            known = order if block == 0 else offset(order, int64(top // block) * m)
            while at < reals:
                know(0, rows, known, at, reals, shift)
                write(0, rows, column, here, at, reals, shift)
                at = int32(at + STEP)

    return permute_rows
