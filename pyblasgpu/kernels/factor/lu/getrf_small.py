"""``getrf_small``: P L U of matrices of up to 32 rows and columns, of a batch as a rule, several a warp.

A lane owns a row, or two, and keeps them in registers. What a step takes besides the update, the search of
the pivot, a division and the pivot's row through shared memory, then serves twice as many rows. The pivot is
chosen among the lanes of a matrix by shuffles. So no step waits for other warps. A pivot moves no row: it
gets a label, its row in the result. All lanes copy the row of U from the pivot's place in shared memory to
its own. L goes there as it is computed. Rows that are done are eliminated like others, which nothing reads.

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
from .panel_rows import row_putter, sizer
from .row_pairs import PAIR, better, pair_eliminator
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
OTHER_REGISTERS = 64  # of a thread, besides those for its rows


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
    ROWS : int
        Rows that a lane has, one or two.
    """

    COLS: int = ORDER
    BLOCKS: int = 1
    ROWS: int = 1

    STEM: ClassVar[str] = STEM
    #: Columns of the kernels: with fewer registers a row, more warps are resident.
    WIDTHS: ClassVar[tuple[int, ...]] = (16, 32)
    #: Blocks that a multiprocessor is to hold, by dtype and columns: what registers allow without spills.
    MOST_BLOCKS: ClassVar[dict[tuple[str, int], int]] = {
        ("s", 16): 10, ("d", 16): 6, ("c", 16): 8, ("z", 16): 4,
        ("s", 32): 8, ("d", 32): 4, ("c", 32): 4, ("z", 32): 4,
    }  # fmt: skip
    #: The most words of a row of which a lane has two: from compute capability 9.0 on, and before.
    PAIRED: ClassVar[tuple[int, int]] = (64, 32)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.COLS in GROUPS, "columns", f"COLS in {GROUPS}", COLS=self.COLS)
        require(1 <= self.ROWS <= PAIR, "rows", f"1 <= ROWS <= {PAIR}", ROWS=self.ROWS)

    def on(self, device: Device) -> GetrfSmall:
        """The Config for a device: before Hopper the compiler needs more registers besides a row."""
        is_long = self.dtype_facts.itemsize > 8 and device.cc < (9, 0)
        return replace(self, COLS=min(self.COLS, 16)) if is_long else self

    def specialize(self, order: int, device: Device) -> GetrfSmall:
        """The Config for matrices of at most `order` rows and columns."""
        config = self.on(device)
        width = next((width for width in self.WIDTHS if order <= width), config.COLS)
        config, is_new = replace(config, COLS=min(width, config.COLS)), device.cc >= (9, 0)
        if config.row_words <= self.PAIRED[not is_new]:
            config = replace(config, ROWS=PAIR)
        return replace(config, BLOCKS=self.MOST_BLOCKS[config.dtype, config.COLS]) if is_new else config

    @property
    def rows_of_lane(self) -> int:
        return self.ROWS

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
        return self.ROWS * self.row_words + OTHER_REGISTERS

    @property
    def groups(self) -> int:
        """The most matrices of a block."""
        return self.DIM // GROUPS[0]

    @property
    def shared_reals(self) -> int:
        """Pivot rows of all groups, and rows of all threads."""
        rows = self.ROWS * self.DIM * self.LD * self.dtype_facts.reals_per_element
        return TURNS * self.groups * self.row_reals + rows

    @property
    def shared_bytes(self) -> int:
        """Bytes of the shared reals, and two int32 a row."""
        return -(-self.shared_reals * self.dtype_facts.real_size // 4) * 4 + self.ROWS * self.DIM * 8


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
    """``read(values, row, step, n, ok)``: a row of elements at distances `step` into registers, from global
    and from shared memory; beyond `n` anything.
    """
    facts, load = config.dtype_facts, ptx.load_global(1, False)
    REALS = facts.reals_per_element

    @device_function
    def read_global(k, values, row, step, n, ok):
        for part in range(REALS):
            load(values, k * REALS + part, row, k * step * REALS + part, ok & (k < n))

    @device_function
    def read_shared(k, values, row, step, n, ok):
        for part in range(REALS):
            values[k * REALS + part] = row[k * REALS + part]

    return _by_groups(config, read_global), _by_groups(config, read_shared)


def _upper_writer(config: GetrfSmall) -> Callable:
    """``write(row, pivot_row, j, left, lane, lanes)``: a row of U from the pivot's place, where its first
    element is behind the others, to the results.
    """
    REALS, COLS, int32 = config.dtype_facts.reals_per_element, config.COLS, ptx.types.int32

    @device_function
    def write(row, pivot_row, j, left, lane, lanes):
        k = int32(lane)
        while k < left:
            at = int32(k - 1 if k > 0 else COLS - 1)
            for part in range(REALS):
                row[(j + k) * REALS + part] = pivot_row[at * REALS + part]
            k = int32(k + lanes)

    return write


def _row_loader(config: GetrfSmall) -> Callable:
    """``load(values, others, rows, row, other_row, a, ...)``: the rows of this lane into registers."""
    REALS, TWO = config.dtype_facts.reals_per_element, config.ROWS == PAIR
    offset, load, (read_global, read_shared) = ptx.offset, matrix_loader(config), _readers(config)

    @device_function
    def load_rows(values, others, rows, row, other_row, a, a_rs, a_cs, m, n, lane, lanes):
        if abs(a_rs) <= abs(a_cs):
            read_global(values, offset(a, lane * a_rs * REALS), a_cs, n, lane < m)
            if TWO:
                read_global(others, offset(a, (lane + lanes) * a_rs * REALS), a_cs, n, lane + lanes < m)
        else:
            load(rows, a, a_rs, a_cs, m, n, lane, lanes, False)
            read_shared(values, row, a_cs, n, lane < m)
            if TWO:
                read_shared(others, other_row, a_cs, n, lane + lanes < m)

    return load_rows


def _searcher(config: GetrfSmall) -> Callable:
    """``search(values, others, label, other_label, is_left, other_is_left, lanes)``: the pivot's label."""
    TWO, size_of, is_better, find = config.ROWS == PAIR, sizer(config), better(config), first_max(config)

    @device_function
    def search(values, others, label, other_label, is_left, other_is_left, lanes):
        size = size_of(values)
        if TWO:
            other_size = size_of(others)
            if other_is_left and (not is_left or is_better(other_size, other_label, size, label)):
                size, label = other_size, other_label
        return find(size, label, is_left | other_is_left, lanes)

    return search


def _starter(config: GetrfSmall) -> Callable:
    """``start(values, others, place, lane, lanes)``: zeros in registers, and every row in its place."""
    TWO, real = config.ROWS == PAIR, ptx.REALS[config.dtype_facts.real]
    HELD, sync_warp = config.row_reals + config.dtype_facts.reals_per_element, ptx.sync_warp
    zero, zero_other = ptx.fill(HELD), ptx.fill(HELD if TWO else config.dtype_facts.reals_per_element)

    @device_function
    def start(values, others, place, lane, lanes):
        zero(values, real(0))
        zero_other(others, real(0))
        place[lane] = lane
        if TWO:
            place[lane + lanes] = lane + lanes
        sync_warp()

    return start


def _finisher(config: GetrfSmall) -> Callable:
    """``finish(a, piv, rows, place, pivots, ...)``: the results, in the order of the labels, and pivots."""
    sync_warp, write, int32 = ptx.sync_warp, matrix_writer(config), ptx.types.int32

    @device_function
    def finish(
        a, piv, rows, place, pivots, label, other_label, is_left, other_is_left, a_rs, a_cs, piv_step, m, n,
        steps, lane, lanes, is_here
    ):  # fmt: skip
        if is_left:
            place[label] = lane
        if other_is_left:
            place[other_label] = int32(lane + lanes)
        sync_warp()
        if is_here:
            write(a, rows, place, a_rs, a_cs, m, n, lane, lanes)
            j = int32(lane)
            while j < steps:
                piv[j * piv_step] = pivots[j]
                j = int32(j + lanes)

    return finish


def _build(config: GetrfSmall):
    facts, LD, DIM, TWO = config.dtype_facts, config.LD, config.DIM, config.ROWS == PAIR
    REALS, ROW, HELD = facts.reals_per_element, config.row_reals, config.row_reals + facts.reals_per_element
    OTHER, FACTORS, PIVOT = HELD if TWO else REALS, PAIR * REALS, config.row_reals - facts.reals_per_element
    AREA, WORDS = TURNS * config.groups * ROW, config.shared_reals * facts.real_size // 4
    real, int32, int64, HELD_ROWS = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64, config.ROWS * DIM
    offset, shared_pointer, quotient, sync_warp = ptx.offset, ptx.shared_pointer, ptx.quotient, ptx.sync_warp
    search, load_row, finish = _searcher(config), _row_loader(config), _finisher(config)
    put = row_putter(config, tuple(width for width in GROUPS if width <= config.COLS))
    eliminate, write_upper, VECTOR = pair_eliminator(config), _upper_writer(config), 16 // facts.real_size
    start, grid_dependency_wait = _starter(config), ptx.grid_dependency_wait

    def getrf_small(
        source, a, piv, info, m, n, lanes, count, a_rs, a_cs, piv_step, stride_a, stride_piv, stride_info
    ):
        # (1) the matrix of this group of lanes, and the rows of this lane
        t = int32(cuda.threadIdx.x & 1023)
        group, lane = int32(quotient(t, lanes)), int32(t & (lanes - 1))
        matrix, second = int64(cuda.blockIdx.x) * quotient(int32(DIM), lanes) + group, int32(lane + lanes)
        is_here, held = matrix < count, int32(lanes * PAIR if TWO else lanes)
        pivot_rows = offset(shared_pointer(cuda.shared.array(0, real, alignment=16)), group * TURNS * ROW)
        rows = offset(pivot_rows, AREA + group * (held * LD * REALS - TURNS * ROW))
        words = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        place, row = offset(words, WORDS + group * held), offset(rows, lane * LD * REALS)
        pivots = offset(place, HELD_ROWS)
        values, others = cuda.local.array(HELD, real), cuda.local.array(OTHER, real)
        factors, loaded = cuda.local.array(FACTORS, real), cuda.local.array(VECTOR, real)
        start(values, others, place, lane, lanes)
        grid_dependency_wait()
        first, is_left = matrix * stride_a * REALS, is_here & (lane < m)
        source, a, other_is_left = offset(source, first), offset(a, first), TWO & is_here & (second < m)
        other_row = offset(rows, second * LD * REALS) if TWO else row
        load_row(
            values, others, rows, row, other_row, source, a_rs, a_cs, m if is_here else 0, n, lane, lanes
        )
        label, other_label = int32(lane), int32(second)
        failed, j, left, steps = int32(0), int32(0), n, int32(min(m, n))

        # (2) a column after the other: the pivot, and its row
        while j < steps:
            pivot_row = offset(pivot_rows, int32((j & 1) * ROW))
            pivot = search(values, others, label, other_label, is_left, other_is_left, lanes)
            is_pivot, other_is_pivot = is_left & (label == pivot), other_is_left & (other_label == pivot)
            if is_pivot:
                put(pivot_row, values, left)
                place[j], pivots[j] = lane, pivot
            if TWO and other_is_pivot:
                put(pivot_row, others, left)
                place[j], pivots[j] = second, pivot
            sync_warp()
            write_upper(offset(rows, place[j] * (LD * REALS)), pivot_row, j, left, lane, lanes)
            if (pivot_row[PIVOT] == real(0)) & (pivot_row[PIVOT + REALS - 1] == real(0)) & (failed == 0):
                failed = int32(j + 1)

            # (3) the row of the pivot is done, all others are eliminated
            is_left, other_is_left = is_left & (not is_pivot), other_is_left & (not other_is_pivot)
            label = pivot if is_left & (label == j) else label
            other_label = pivot if other_is_left & (other_label == j) else other_label
            eliminate(
                values, others, factors, loaded, pivot_row, row, other_row, is_left, other_is_left,
                int32(j * REALS), left
            )  # fmt: skip
            j, left = int32(j + 1), int32(left - 1)

        # (4) the results, in the order of the labels, the pivots, and the first one that is zero
        finish(
            a, offset(piv, matrix * stride_piv), rows, place, pivots, label, other_label, is_left,
            other_is_left, a_rs, a_cs, piv_step, m, n, steps, lane, lanes, is_here
        )  # fmt: skip
        if is_here and lane == 0:
            info[matrix * stride_info] = failed

    return getrf_small
