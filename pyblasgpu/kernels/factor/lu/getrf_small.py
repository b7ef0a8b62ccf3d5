"""``getrf_small``: P L U of matrices of up to 32 rows and columns, of a batch as a rule, several a warp.

A lane owns a row and keeps it in registers, as a thread of `getrf_panel` does. The pivot is chosen among the
lanes of a matrix by shuffles, and its row passes through shared memory. So no step waits for other warps. A
pivot moves no row: each has a label, its row in the result. A row of pivots keeps its part of U in registers
to the end; L goes to shared memory as it is computed.

A matrix whose columns are neighbours in memory is read straight into registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from .panel_rows import group_eliminator, row_putter, sizer
from .small_matrices import GROUPS, ORDER, SmallMatrices, first_max, matrix_loader, matrix_writer

if TYPE_CHECKING:
    from ....gpu.device import Device

__all__ = ["STEM", "GetrfSmall", "source"]

STEM = "getrf_small"
PARAMETERS = parameters(
    "pointer: source, a",
    "int32 pointer: piv, info",
    "int32: m, n, lanes, count",
    "int64: a_rs, a_cs, piv_step, stride_a, stride_piv, stride_info",
)
TURNS = 2  # slots for pivot rows, used in turn
TOGETHER = 8  # elements of the pivot's row that a lane has in registers
OTHER_REGISTERS = 64  # of a thread, besides those for its row


@dataclass(frozen=True)
class GetrfSmall(SmallMatrices):
    """Config of one `getrf_small` kernel.

    Attributes
    ----------
    dtype, DIM
        See `SmallMatrices`.
    COLS : int
        The most rows and columns of a matrix.
    BLOCKS : int
        Blocks that a multiprocessor is to hold, which bounds the registers.
    """

    COLS: int = ORDER
    BLOCKS: int = 1

    STEM: ClassVar[str] = STEM
    #: Columns of the kernels: with fewer registers a row, more warps are resident.
    WIDTHS: ClassVar[tuple[int, ...]] = (8, 32)
    #: Blocks that a multiprocessor is to hold, by the 32-bit words of a row: what registers allow without
    #: spills.
    MOST_BLOCKS: ClassVar[dict[int, int]] = {8: 16, 16: 14, 32: 10, 64: 6, 128: 4}

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.COLS in GROUPS, "columns", f"COLS in {GROUPS}", COLS=self.COLS)

    def on(self, device: Device) -> GetrfSmall:
        """The Config for a device: before Hopper the compiler needs more registers besides a row."""
        is_long = self.dtype_facts.itemsize > 8 and device.cc < (9, 0)
        return replace(self, COLS=min(self.COLS, 16)) if is_long else self

    def specialize(self, order: int, device: Device) -> GetrfSmall:
        """The Config for matrices of at most `order` rows and columns."""
        config = self.on(device)
        width = next((width for width in self.WIDTHS if order <= width), config.COLS)
        config = replace(config, COLS=min(width, config.COLS))
        return replace(config, BLOCKS=self.MOST_BLOCKS[config.row_words]) if device.cc >= (9, 0) else config

    @property
    def row_words(self) -> int:
        """32-bit registers of a row."""
        return self.row_reals * self.dtype_facts.real_size // 4

    @property
    def LD(self) -> int:  # type: ignore[override]
        """Elements from row to row in shared memory: odd, against bank conflicts."""
        return self.COLS + 1

    @property
    def min_blocks(self) -> int:
        return self.BLOCKS

    @property
    def row_reals(self) -> int:
        """Reals of a row."""
        return self.COLS * self.dtype_facts.reals_per_element

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.row_words + OTHER_REGISTERS

    @property
    def groups(self) -> int:
        """The most matrices of a block."""
        return self.DIM // GROUPS[0]

    @property
    def shared_reals(self) -> int:
        """Pivot rows of all groups, and rows of all threads."""
        row = self.LD * self.dtype_facts.reals_per_element
        return TURNS * self.groups * self.row_reals + self.DIM * row

    @property
    def shared_bytes(self) -> int:
        """Bytes of the shared reals, and an int32 a thread."""
        return -(-self.shared_reals * self.dtype_facts.real_size // 4) * 4 + self.DIM * 4


def source(config: GetrfSmall) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    source, a: pointer, A and its factors, which may replace it
    piv, info: int32 pointer, pivots and info
    m, n: int32, rows and columns of a matrix
    lanes: int32, lanes of a matrix, ``config.lanes(rows)``
    count: int32, matrices
    a_rs, a_cs: int64, row and column stride of A (elements)
    piv_step: int64, words from pivot to pivot
    stride_a: int64, batch stride of A (elements)
    stride_piv, stride_info: int64, batch strides (words)

    Grid: x ``config.grid(rows, matrices)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _by_groups(config: GetrfSmall, body: Callable) -> Callable:
    """``run(values, there, step, n, ok)``: ``body(k, values, there, step, n, ok)`` for k below n, rounded up
    to one of `GROUPS`.
    """

    def group(start: int, stop: int) -> Callable:
        run_all = unrolled(stop - start, body)

        @device_function
        def run(values, there, step, n, ok):
            if n > start:
                run_all(start, values, there, step, n, ok)

        return run

    ends = (width for width in GROUPS if width <= config.COLS)
    return in_order([group(*each) for each in pairwise((0, *ends))])


def _readers(config: GetrfSmall) -> tuple[Callable, Callable]:
    """``read(values, row, step, n, ok)``: a row of elements at distances `step`, zeros beyond `n`, into
    registers; from global and from shared memory.
    """
    facts, select, load = config.dtype_facts, ptx.select, ptx.load_global(1, False)
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]

    @device_function
    def read_global(k, values, row, step, n, ok):
        for part in range(REALS):
            load(values, k * REALS + part, row, k * step * REALS + part, ok & (k < n))

    @device_function
    def read_shared(k, values, row, step, n, ok):
        for part in range(REALS):
            values[k * REALS + part] = select(k < n, row[k * REALS + part], real(0))

    return _by_groups(config, read_global), _by_groups(config, read_shared)


def _upper_writer(config: GetrfSmall) -> Callable:
    """``write(values, row, done, n, ok)``: what a row of pivots holds of U, to the results from column `done`
    on.
    """
    REALS = config.dtype_facts.reals_per_element

    @device_function
    def write(k, values, row, done, n, ok):
        if ok & (done + k < n):
            for part in range(REALS):
                row[(done + k) * REALS + part] = values[k * REALS + part]

    return _by_groups(config, write)


def _row_loader(config: GetrfSmall) -> Callable:
    """``load(values, rows, row, a, ...)``: the row of this lane into registers."""
    REALS, offset, load = config.dtype_facts.reals_per_element, ptx.offset, matrix_loader(config)
    read_global, read_shared = _readers(config)

    @device_function
    def load_row(values, rows, row, a, a_rs, a_cs, m, n, lane, lanes, ok):
        if abs(a_rs) <= abs(a_cs):
            read_global(values, offset(a, lane * a_rs * REALS), a_cs, n, ok)
        else:
            load(rows, a, a_rs, a_cs, m, n, lane, lanes, False)
            read_shared(values, row, a_cs, n, ok)

    return load_row


def _finisher(config: GetrfSmall) -> Callable:
    """``finish(values, a, rows, row, lane_of_row, label, done, ...)``: the results, in the order of the
    labels, to A; the number, from 1, of the first pivot that is zero.
    """
    facts = config.dtype_facts
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    write, find, write_upper = matrix_writer(config), first_max(config), _upper_writer(config)
    sync_warp, NO_LABEL = ptx.sync_warp, ptx.NO_LABEL

    @device_function
    def finish(values, a, rows, row, lane_of_row, label, done, a_rs, a_cs, m, n, steps, lane, lanes, is_here):
        is_zero = (done < steps) & (values[0] == real(0)) & (values[REALS - 1] == real(0))
        failed = find(real(1), done, is_zero, lanes)
        write_upper(values, row, done, n, done < steps)
        if lane < m:
            lane_of_row[label] = lane
        sync_warp()
        if is_here:
            write(a, rows, lane_of_row, a_rs, a_cs, m, n, lane, lanes)
        return int32(0) if failed == NO_LABEL else int32(failed + 1)

    return finish


def _build(config: GetrfSmall):
    facts, LD, DIM = config.dtype_facts, config.LD, config.DIM
    REALS, ROW, HELD = facts.reals_per_element, config.row_reals, config.row_reals + facts.reals_per_element
    AREA, WORDS = TURNS * config.groups * ROW, config.shared_reals * facts.real_size // 4
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, shared_pointer, quotient, sync_warp = ptx.offset, ptx.shared_pointer, ptx.quotient, ptx.sync_warp
    find, load_row, finish = first_max(config), _row_loader(config), _finisher(config)
    widths = tuple(width for width in GROUPS if width <= config.COLS)
    put, eliminate = row_putter(config, widths), group_eliminator(config, TOGETHER)
    size_of, zero, grid_dependency_wait = sizer(config), ptx.fill(HELD), ptx.grid_dependency_wait

    def getrf_small(
        source, a, piv, info, m, n, lanes, count, a_rs, a_cs, piv_step, stride_a, stride_piv, stride_info
    ):
        # (1) the matrix of this group of lanes, and the row of this lane
        t = int32(cuda.threadIdx.x & 1023)
        group, lane = int32(quotient(t, lanes)), int32(t & (lanes - 1))
        matrix = int64(cuda.blockIdx.x) * quotient(int32(DIM), lanes) + group
        is_here = matrix < count
        pivot_rows = offset(shared_pointer(cuda.shared.array(0, real, alignment=16)), group * TURNS * ROW)
        rows = offset(pivot_rows, AREA + group * (lanes * LD * REALS - TURNS * ROW))
        words = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        lane_of_row, row = offset(words, WORDS + group * lanes), offset(rows, lane * LD * REALS)
        values, factor = cuda.local.array(HELD, real), cuda.local.array(REALS, real)
        zero(values, real(0))
        grid_dependency_wait()
        first, is_left = matrix * stride_a * REALS, is_here & (lane < m)
        source, a = offset(source, first), offset(a, first)
        load_row(values, rows, row, source, a_rs, a_cs, m if is_here else 0, n, lane, lanes, is_left)
        label, mine, done, j, left, steps = int32(lane), int32(0), n, int32(0), n, int32(min(m, n))

        # (2) a column after the other: the pivot, and its row
        while j < steps:
            pivot_row = offset(pivot_rows, int32((j & 1) * ROW))
            pivot = find(size_of(values), label, is_left, lanes)
            is_pivot = is_left & (label == pivot)
            if is_pivot:
                put(pivot_row, values, left)
            sync_warp()
            if lane == j:
                mine = pivot

            # (3) the row of the pivot is done and stays, all others are eliminated
            if is_pivot:
                label, is_left, done = j, False, j
            elif is_left:
                if label == j:
                    label = pivot
                eliminate(values, factor, pivot_row, row, int32(j * REALS), left)
            j, left = int32(j + 1), int32(left - 1)

        # (4) the results, in the order of the labels; the first pivot that is zero
        failed = finish(
            values, a, rows, row, lane_of_row, label, done, a_rs, a_cs, m, n, steps, lane, lanes, is_here
        )
        if is_here:
            if lane < steps:
                piv[matrix * stride_piv + lane * piv_step] = mine
            if lane == 0:
                info[matrix * stride_info] = failed

    return getrf_small
