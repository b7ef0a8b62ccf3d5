"""``laswp``: rows interchanged as pivots say, in place, a group of pivots after the other.

The interchanges of a group are one permutation of few rows (`pivot_moves`): the rows that move to its top,
and the targets of the rows that were there. All of them are read at once and then written. Blocks of threads
have columns of their own, of which some in the middle may be left out, as a panel's are.

Backwards, the groups in reverse and each the other way round, undoes it. Both strides are free; neighbours in
memory have neighbouring threads. Elements are accessed real by real, and so may have reals' addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import BlockConfig
from ...common.parameters import parameters

__all__ = ["STEM", "Laswp", "source"]

STEM = "laswp"
PARAMETERS = parameters(
    "pointer: a",
    "int32 pointer: moves",
    "int32: group, groups, last, n, skip, skipped, by_columns, backwards",
    "int64: a_rs, a_cs, stride_a, stride_moves",
)


@dataclass(frozen=True)
class Laswp(BlockConfig):
    """Config of one `laswp` kernel.

    Attributes
    ----------
    DIM : int
        Threads.
    PER_THREAD : int
        Elements on top that a thread has.
    """

    PER_THREAD: int = 2

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        require(self.DIM in (32, 64, 128, 256, 512), "threads", "DIM in (32, 64, ... 512)", DIM=self.DIM)
        require(self.PER_THREAD > 0, "elements", "PER_THREAD > 0", PER_THREAD=self.PER_THREAD)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 2 * self.PER_THREAD * self.dtype_facts.itemsize // 4 + 32

    def columns(self, group: int) -> int:
        """Columns of a block, for groups of `group` pivots, a power of two."""
        return max(self.DIM * self.PER_THREAD // group, 1)

    def grid(self, columns: int, group: int) -> int:
        """Blocks along x."""
        return -(-columns // self.columns(group))


def source(config: Laswp) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a: pointer, A
    moves: int32 pointer, see the notes
    group: int32, pivots of a group, a power of two, at most DIM
    groups: int32, groups
    last: int32, pivots of the last group
    n: int32, columns
    skip, skipped: int32, the first column that is left out, and the number of such columns
    by_columns: int32, whether columns are neighbours in memory
    backwards: int32, whether the order is reversed
    a_rs, a_cs: int64, row and column stride of A (elements)
    stride_a, stride_moves: int64, batch strides of A (elements), of moves (words)

    Grid: x ``config.grid(columns, group)``, z the batch.

    Notes
    -----
    For each row on top of a group, the moves hold the row that moves there, and then the target of the row
    that was there: twice as many int32 as a group has pivots, counted from the first row on top.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _interchange(config: Laswp):
    """``read(0, coming, going, there, a, to_top, from_top, ...)``: the elements that move to the top, and
    those that were there; ``write(0, coming, going, there, a, ...)``: both to where they go.

    Further arguments select the elements: the first row and column, the steps to the next, how many rows
    there are, where columns end, where some are left out, how many, the strides.
    """
    REALS, int32, int64 = config.dtype_facts.reals_per_element, ptx.types.int32, ptx.types.int64
    load, store = ptx.load_global(1, False), ptx.store_global

    @device_function
    def column(col, skip, skipped, a_cs):
        return int64(col + skipped if col >= skip else col) * a_cs

    @device_function
    def read_element(
        e, coming, going, there, a, to_top, from_top,
        i, i_step, c, c_step, rows, cols, skip, skipped, a_rs, a_cs
    ):  # fmt: skip
        row, col = int32(i + e * i_step), int32(c + e * c_step)
        ok, column_offset = (row < rows) & (col < cols), column(col, skip, skipped, a_cs)
        known = min(row, int32(rows - 1))
        there[e] = from_top[known]
        origin = int64(to_top[known]) * a_rs
        for part in range(REALS):
            load(coming, e * REALS + part, a, (origin + column_offset) * REALS + part, ok)
            load(going, e * REALS + part, a, (row * a_rs + column_offset) * REALS + part, ok)

    @device_function
    def write_element(
        e, coming, going, there, a, i, i_step, c, c_step, rows, cols, skip, skipped, a_rs, a_cs
    ):
        row, col, target = int32(i + e * i_step), int32(c + e * c_step), int64(there[e])
        ok, column_offset = (row < rows) & (col < cols), column(col, skip, skipped, a_cs)
        leaves = ok & ((target < 0) | (target >= rows))
        for part in range(REALS):
            store(a, (row * a_rs + column_offset) * REALS + part, coming[e * REALS + part], ok)
            store(a, (target * a_rs + column_offset) * REALS + part, going[e * REALS + part], leaves)

    return unrolled(config.PER_THREAD, read_element), unrolled(config.PER_THREAD, write_element)


def _build(config: Laswp):
    facts, DIM, PER_THREAD = config.dtype_facts, config.DIM, config.PER_THREAD
    REALS, HELD = facts.reals_per_element, config.PER_THREAD * facts.reals_per_element
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, grid_dependency_wait = ptx.offset, ptx.grid_dependency_wait
    read, write = _interchange(config)

    def laswp(
        a,
        moves,
        group,
        groups,
        last,
        n,
        skip,
        skipped,
        by_columns,
        backwards,
        a_rs,
        a_cs,
        stride_a,
        stride_moves,
    ):
        # (1) the elements on top that this thread has: neighbours in memory to neighbouring threads
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        cols = int32(max(DIM * PER_THREAD // group, 1))
        first = int32(cuda.blockIdx.x * cols)
        i, c, i_step, c_step = int32(t % group), int32(first + t // group), int32(0), int32(DIM // group)
        if by_columns:
            i, c, i_step, c_step = int32(t // cols), int32(first + t % cols), int32(DIM // cols), int32(0)
        grid_dependency_wait()
        a, moves = offset(a, batch * stride_a * REALS), offset(moves, batch * stride_moves)
        coming, going = cuda.local.array(HELD, real), cuda.local.array(HELD, real)
        there = cuda.local.array(PER_THREAD, int32)

        # (2) a group after the other
        for number in range(groups):
            which = int32(groups - 1 - number if backwards else number)
            rows = int32(last if which == groups - 1 else group)
            to_top, from_top = offset(moves, which * 2 * group), offset(moves, (which * 2 + 1) * group)
            if backwards:
                to_top, from_top = from_top, to_top
            top = offset(a, int64(which) * group * a_rs * REALS)
            read(0, coming, going, there, top, to_top, from_top,
                 i, i_step, c, c_step, rows, n, skip, skipped, a_rs, a_cs)  # fmt: skip
            cuda.syncthreads()
            write(0, coming, going, there, top, i, i_step, c, c_step, rows, n, skip, skipped, a_rs, a_cs)
            cuda.syncthreads()

    return laswp
