"""``getrf_small``: P L U of matrices of up to 32 rows and columns, of a batch as a rule, several a warp.

A lane owns a row and keeps it in registers, as a thread of `getrf_panel` does. The pivot is chosen among the
lanes of a matrix by shuffles, and its row passes through shared memory. So no step waits for other warps.
A pivot moves no row: each has a label, its row in the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.compile import KernelSource
from .panel_rows import eliminator, row_putter, sizer
from .small_matrices import GROUPS, ORDER, SmallMatrices, first_max, matrix_loader, matrix_writer

if TYPE_CHECKING:
    from ...gpu.device import Device

__all__ = ["STEM", "GetrfSmall", "source"]

STEM = "getrf_small"
PARAMETERS = "pww iiii qqqqqq".replace(" ", "")
OTHER_REGISTERS = 64  # of a thread, beside those for its row


@dataclass(frozen=True)
class GetrfSmall(SmallMatrices):
    """Config of one `getrf_small` kernel.

    Attributes
    ----------
    dtype, DIM
        See `SmallMatrices`.
    COLS : int
        The most rows and columns of a matrix.
    """

    COLS: int = ORDER

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.COLS in GROUPS, "columns", f"COLS in {GROUPS}", COLS=self.COLS)

    def on(self, device: Device) -> GetrfSmall:
        """The Config for a device: before Hopper the compiler needs more registers beside a row."""
        is_long = self.dtype_facts.itemsize > 8 and device.cc < (9, 0)
        return replace(self, COLS=min(self.COLS, 16)) if is_long else self

    @property
    def row_reals(self) -> int:
        """Reals of a row."""
        return self.COLS * self.dtype_facts.reals_per_element

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.row_reals * self.dtype_facts.real_size // 4 + OTHER_REGISTERS

    @property
    def groups(self) -> int:
        """The most matrices of a block."""
        return self.DIM // GROUPS[0]

    @property
    def shared_reals(self) -> int:
        """Pivot rows of all groups, and rows of all threads."""
        row = self.LEAD * self.dtype_facts.reals_per_element
        return self.groups * self.row_reals + self.DIM * row

    @property
    def shared_bytes(self) -> int:
        """The same, and an int32 a thread."""
        return -(-self.shared_reals * self.dtype_facts.real_size // 4) * 4 + self.DIM * 4


def source(config: GetrfSmall) -> KernelSource:
    """The kernel of `config`.

    Returns
    -------
    KernelSource
        Its parameters are pointers to A, to pivots, to info; int32 rows and columns of a matrix, lanes of a
        matrix (``config.lanes(rows)``), matrices; int64 row and column stride of A (elements), words from
        pivot to pivot, batch strides of A (elements), of pivots and info (words). Grid: x
        ``config.grid(rows, matrices)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _row_reader(config: GetrfSmall):
    """``read(0, values, row, n)``: a row from shared memory into registers, zeros beyond."""
    facts, select = config.dtype_facts, ptx.select
    PARTS, real = facts.reals_per_element, ptx.REALS[facts.real]

    @device_function
    def read_element(k, values, row, n):
        for part in range(PARTS):
            values[k * PARTS + part] = select(k < n, row[k * PARTS + part], real(0))

    return unrolled(config.COLS, read_element)


def _upper_writer(config: GetrfSmall):
    """``write(row, pivot_row, j, n, lane, lanes)``: the pivot's row into the results, by its group."""
    PARTS, COLS = config.dtype_facts.reals_per_element, config.COLS

    @device_function
    def write(row, pivot_row, j, n, lane, lanes):
        for k in range(lane, n - j, lanes):
            at = k - 1 if k > 0 else COLS - 1
            for part in range(PARTS):
                row[(j + k) * PARTS + part] = pivot_row[at * PARTS + part]

    return write


def _build(config: GetrfSmall):
    facts, LEAD, DIM = config.dtype_facts, config.LEAD, config.DIM
    PARTS, ROW, HELD = facts.reals_per_element, config.row_reals, config.row_reals + facts.reals_per_element
    AREA, WORDS, PIVOT = config.groups * ROW, config.shared_reals * facts.real_size // 4, ROW - PARTS
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, shared_pointer, quotient, sync_warp = ptx.offset, ptx.shared_pointer, ptx.quotient, ptx.sync_warp
    load, write, find, read = (
        matrix_loader(config),
        matrix_writer(config),
        first_max(config),
        _row_reader(config),
    )
    widths = tuple(width for width in GROUPS if width <= config.COLS)
    put, eliminate = row_putter(config, widths), eliminator(config, widths)
    size_of, write_upper, grid_dependency_wait = (
        sizer(config),
        _upper_writer(config),
        ptx.grid_dependency_wait,
    )

    def getrf_small(
        a, piv, info, m, n, lanes, count, a_rs, a_cs, piv_step, stride_a, stride_piv, stride_info
    ):
        # (1) the matrix of this group of lanes, and the row of this lane
        t = int32(cuda.threadIdx.x & 1023)
        group, lane = int32(quotient(t, lanes)), int32(t % lanes)
        matrix = int64(cuda.blockIdx.x) * quotient(int32(DIM), lanes) + group
        is_here = matrix < count
        pivot_row = offset(shared_pointer(cuda.shared.array(0, real, alignment=16)), group * ROW)
        rows = offset(pivot_row, AREA + group * (lanes * LEAD * PARTS - ROW))
        words = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        places, row = offset(words, WORDS + group * lanes), offset(rows, lane * LEAD * PARTS)
        values, factor = cuda.local.array(HELD, real), cuda.local.array(PARTS, real)
        grid_dependency_wait()
        a = offset(a, matrix * stride_a * PARTS)
        load(rows, a, a_rs, a_cs, m if is_here else 0, n, lane, lanes, False)
        read(0, values, row, n)
        label, is_left, mine, failed, j = int32(lane), is_here & (lane < m), int32(0), int32(0), int32(0)

        # (2) a column after the other: the pivot, and the row that it stands in
        while j < min(m, n):
            pivot = find(size_of(values), label, is_left, t, lanes)
            is_pivot = is_left & (label == pivot)
            if is_pivot:
                put(pivot_row, values, n - j)
                places[0] = lane
            sync_warp()
            if pivot_row[PIVOT] == real(0) and pivot_row[PIVOT + PARTS - 1] == real(0) and failed == 0:
                failed = int32(j + 1)
            if is_here:
                write_upper(offset(rows, places[0] * LEAD * PARTS), pivot_row, j, n, lane, lanes)
            if lane == j:
                mine = pivot

            # (3) the row of the pivot is done, all others are eliminated
            if is_pivot:
                label, is_left = j, False
            elif is_left:
                if label == j:
                    label = pivot
                eliminate(values, factor, pivot_row, row, j * PARTS, n - j)
            sync_warp()
            j = int32(j + 1)

        # (4) the results, in the order of the labels; the first pivot that is zero
        if lane < m:
            places[label] = lane
        sync_warp()
        if is_here:
            write(a, rows, places, a_rs, a_cs, m, n, lane, lanes)
            if lane < min(m, n):
                piv[matrix * stride_piv + lane * piv_step] = mine
            if lane == 0:
                info[matrix * stride_info] = failed

    return getrf_small
