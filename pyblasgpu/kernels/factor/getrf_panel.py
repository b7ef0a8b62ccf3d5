"""``getrf_panel``: P L U of a panel of few columns, with partial pivoting, in a single launch.

A thread owns a row and keeps it in registers. A pivot moves no row: each has a label, its row in the result,
and the pivot row and the uppermost row left swap labels. A step chooses the largest element of a column and
tells all the row that it stands in. Each row is shifted by one element while it is eliminated, so that the
column at hand is always the first one. What is done lies in shared memory, and is written where labels say.

Blocks of threads tell each other their candidates (`pivot_exchange`); all of them are resident.
Ties go to the uppermost row, as LAPACK's do; NaN is taken where there is no number. Where all of a column is
zero, it stays, `info` is told, and the elimination goes on.

Both strides are free. Small matrices are panels whole, of a batch too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.compile import KernelSource
from ...types import DTYPES, Dtype
from ..common.substitution import divider
from .pivot_exchange import MOST_BLOCKS, WARP, among_blocks, flag_clearer, in_block

if TYPE_CHECKING:
    from ...gpu.device import Device

__all__ = ["STEM", "GetrfPanel", "plain_sources", "source"]

STEM = "getrf_panel"
PARAMETERS = "pp wwwww iiii qqq qqqq".replace(" ", "")
OTHER_REGISTERS = 64  # of a thread, beside those for its row
SMALL = 64  # rows of a matrix that is a panel whole
ROW_BYTES = 256  # of a row: half of a thread's registers
VECTORS = 4  # the fewest columns, whole vectors of all dtypes


@dataclass(frozen=True)
class GetrfPanel:
    """Config of one `getrf_panel` kernel.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    ROWS : int
        Rows of a block, each a thread's.
    COLS : int
        The most columns of a panel.
    """

    dtype: str
    ROWS: int = 512
    COLS: int = 16

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(self.ROWS % WARP == 0 and 32 <= self.ROWS <= 1024, "threads",
                "ROWS % 32 == 0 and 32 <= ROWS <= 1024", ROWS=self.ROWS)  # fmt: skip
        require(
            self.COLS % VECTORS == 0 and self.COLS > 0, "vectors", f"COLS % {VECTORS} == 0", COLS=self.COLS
        )

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        return self.ROWS

    @property
    def min_blocks(self) -> int:
        return 1

    @property
    def row_reals(self) -> int:
        """Reals of a row."""
        return self.COLS * self.dtype_facts.reals_per_element

    @property
    def slot(self) -> int:
        """Reals of a candidate: its row, whole vectors, and its size."""
        return self.row_reals + 16 // self.dtype_facts.real_size

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.row_words + OTHER_REGISTERS

    @property
    def shared_reals(self) -> int:
        """The pivot row, the results, sizes of the warps' candidates and of the block's."""
        parts = self.dtype_facts.reals_per_element
        return self.row_reals + self.COLS * self.ROWS * parts + WARP + 4

    @property
    def shared_bytes(self) -> int:
        """The same, labels of the warps' candidates, and what is chosen."""
        return self.shared_reals * self.dtype_facts.real_size + (WARP + 4) * 4

    def serving(self, rows: int, device: Device) -> GetrfPanel:
        """The Config for panels of so many rows: one block where that can be, no more than are resident.

        A row of a small matrix may have twice the registers. Before Hopper the compiler needs more of them.
        """
        older = device.cc < (9, 0)
        if rows <= SMALL < self.ROWS:
            return replace(self, ROWS=SMALL, COLS=self.COLS if older else min(2 * self.COLS, SMALL))
        config = replace(self, ROWS=min(self.ROWS, 256)) if older else self
        if rows <= config.ROWS // 2 and config.ROWS > SMALL:
            config = replace(config, ROWS=config.ROWS // 2)
        while config.shared_bytes > device.shared_per_block:
            config = replace(config, ROWS=config.ROWS // 2)
        if config.grid(rows) > config.resident(device):
            most = config.resident(device) * config.ROWS
            raise NotImplementedError(f"getrf: {rows} rows; on {device.name} at most {most} are factored")
        return config

    def resident(self, device: Device) -> int:
        """Blocks that a device runs at the same time, whatever registers the compiler takes."""
        registers = min(device.registers_per_block // self.threads // 8 * 8, device.max_registers_per_thread)
        return min(
            device.occupancy(self.threads, registers, self.shared_bytes) * device.sm_count, MOST_BLOCKS
        )

    @property
    def row_words(self) -> int:
        """32-bit registers of a row."""
        return self.row_reals * self.dtype_facts.real_size // 4

    def grid(self, rows: int) -> int:
        """Blocks for a panel of so many rows."""
        return -(-rows // self.ROWS)


def source(config: GetrfPanel) -> KernelSource:
    """The kernel of `config`.

    Parameters
    ----------
    config : GetrfPanel

    Returns
    -------
    KernelSource
        Its parameters are pointers to A, to `slot` reals for each block twice, to pivots, to moves (see
        `laswp`), to a word for each block twice, to info, to flags, which are 0 before and after; int32 rows
        and columns of A, the row of the whole matrix that is its first, blocks; int64 row and column stride
        of A (elements), words from pivot to pivot, batch strides of A (elements), of pivots, moves and info
        (words). Grid: x ``config.grid(rows)``, z the batch, which is 1 for several blocks.
    """
    return KernelSource(
        name=STEM,
        config=config,
        flags=(),
        real=config.dtype_facts.real,
        parameters=PARAMETERS,
        threads=config.threads,
        min_blocks=config.min_blocks,
        shared_bytes=config.shared_bytes,
        build=lambda: _build(config),
        cooperative=True,
    )


def plain_sources(config: GetrfPanel) -> Iterator[KernelSource]:
    """The kernels of small panels, of those of a small block, and of all others."""
    whole = replace(config, COLS=ROW_BYTES // config.dtype_facts.itemsize)
    small = replace(whole, ROWS=SMALL, COLS=min(2 * whole.COLS, SMALL))
    return (source(each) for each in (small, replace(whole, ROWS=whole.ROWS // 2), whole))


def _row_mover(config: GetrfPanel):
    """``read(0, values, a, a_cs, n, ok)``: a row into registers, zeros beyond; ``put(pivot_row, values)``: a
    candidate, its first element behind the others; ``keep(0, out, values, j, t)``: what is left of a row to
    the results, from column `j` on; ``write(a, out, a_cs, n, t)``: all of it to A.
    """
    PARTS, ROWS, COLS = config.dtype_facts.reals_per_element, config.ROWS, config.COLS
    REALS, WIDTH = config.row_reals, 16 // config.dtype_facts.real_size
    load, store, store_shared = ptx.load_global(1, False), ptx.store_global, ptx.store_shared(WIDTH)

    @device_function
    def read_element(k, values, a, a_cs, n, ok):
        for part in range(PARTS):
            load(values, k * PARTS + part, a, k * a_cs * PARTS + part, ok & (k < n))

    @device_function
    def put_vector(v, pivot_row, values):
        store_shared(pivot_row, v * WIDTH, values, v * WIDTH + PARTS)

    put_vectors = unrolled(REALS // WIDTH, put_vector)

    @device_function
    def put(pivot_row, values):
        for part in range(PARTS):
            values[REALS + part] = values[part]
        put_vectors(0, pivot_row, values)

    @device_function
    def keep_element(k, out, values, j, t):
        if k < COLS - j:
            for part in range(PARTS):
                out[((j + k) * ROWS + t) * PARTS + part] = values[k * PARTS + part]

    @device_function
    def write(a, out, a_cs, n, t):
        for k in range(n):
            for part in range(PARTS):
                store(a, k * a_cs * PARTS + part, out[(k * ROWS + t) * PARTS + part], True)

    return unrolled(COLS, read_element), put, unrolled(COLS, keep_element), write


def _eliminator(config: GetrfPanel):
    """``eliminate(values, factor, pivot_row, out, at)``: a row's first element divided by the pivot, which is
    `factor` and goes to the results; the others updated, each in the place of the one before it.

    The pivot itself is the last element of its row in shared memory, so that vectors are aligned.
    """
    facts, COLS = config.dtype_facts, config.COLS
    PARTS, PIVOT = facts.reals_per_element, (COLS - 1) * facts.reals_per_element
    real, divide = ptx.REALS[facts.real], divider(facts)
    update = ptx.eliminate_row(COLS, PARTS, 16 // facts.real_size)

    @device_function
    def eliminate(values, factor, pivot_row, out, at):
        pivot, pivot_i = pivot_row[PIVOT], pivot_row[PIVOT + PARTS - 1]
        for part in range(PARTS):
            factor[part] = values[part]
        if pivot != real(0) or pivot_i != real(0):
            divide(factor, 0, pivot, pivot_i)
        for part in range(PARTS):
            out[at + part] = factor[part]
        update(values, factor, pivot_row)

    return eliminate


def _sizer(config: GetrfPanel):
    """``size(values)``: |re| + |im| of the first element, by which LAPACK chooses."""
    PARTS = config.dtype_facts.reals_per_element

    @device_function
    def size(values):
        return abs(values[0]) + abs(values[1]) if PARTS == 2 else abs(values[0])

    return size


def _teller(config: GetrfPanel):
    """``tell(moves, row, label, n)``: where a row is now, if it is among the uppermost, or was."""
    COLS, int32 = config.COLS, ptx.types.int32

    @device_function
    def tell(moves, row, label, n):
        if label < n:
            moves[label] = int32(row)
        if row < n:
            moves[COLS + row] = label

    return tell


def _build(config: GetrfPanel):
    facts, ROWS, COLS = config.dtype_facts, config.ROWS, config.COLS
    PARTS, OUT = facts.reals_per_element, config.row_reals
    HELD, NO_LABEL = OUT + PARTS, ptx.NO_LABEL
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    PIVOT = (COLS - 1) * PARTS
    SIZES = OUT + COLS * ROWS * PARTS
    LABELS = config.shared_reals * facts.real_size // 4
    CHOSEN = LABELS + WARP
    offset, shared_pointer, zero = ptx.offset, ptx.shared_pointer, ptx.fill(HELD)
    grid_dependency_wait = ptx.grid_dependency_wait
    (read, put, keep, write), eliminate, size_of = _row_mover(config), _eliminator(config), _sizer(config)
    find_in_block, choose_among_blocks, clear = in_block(config), among_blocks(config), flag_clearer()
    tell = _teller(config)

    def getrf_panel(
        a, exchange, piv, moves, candidates, info, flags,
        m, n, first, blocks, a_rs, a_cs, piv_step, stride_a, stride_piv, stride_moves, stride_info
    ):  # fmt: skip
        # (1) the row of this thread
        t, block, batch = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int64(cuda.blockIdx.z)
        pivot_row = shared_pointer(cuda.shared.array(0, real, alignment=16))
        words = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        out, sizes = offset(pivot_row, OUT), offset(pivot_row, SIZES)
        labels, chosen, largest = offset(words, LABELS), offset(words, CHOSEN), offset(sizes, WARP)
        values, factor = cuda.local.array(HELD, real), cuda.local.array(PARTS, real)
        row = int64(block) * ROWS + t
        is_row = row < m
        grid_dependency_wait()
        a, piv = offset(a, batch * stride_a * PARTS), offset(piv, batch * stride_piv)
        zero(values, real(0))
        read(0, values, offset(a, row * a_rs * PARTS), a_cs, n, is_row)
        label, is_left, failed, j = int32(row), is_row, int32(0), int32(0)

        # (2) a column after the other: the pivot, and the row that it stands in
        while j < n:
            size = size_of(values)
            pivot = find_in_block(size, label, is_left, sizes, labels, t)
            if is_left and label == pivot:
                put(pivot_row, values)
                largest[0], chosen[0] = size, pivot
            elif t == 0 and pivot == NO_LABEL:
                chosen[0] = pivot
            cuda.syncthreads()
            if blocks > 1:
                if t < WARP:
                    choose_among_blocks(
                        pivot_row, chosen, largest, exchange, candidates, flags, t, block, blocks, j
                    )
                cuda.syncthreads()
            pivot = int32(chosen[0])
            if pivot_row[PIVOT] == real(0) and pivot_row[PIVOT + PARTS - 1] == real(0) and failed == 0:
                failed = int32(first + j + 1)
            if block == 0 and t == 0:
                piv[j * piv_step] = int32(first + pivot)

            # (3) the row of the pivot is done, all others are eliminated
            if is_left:
                if label == pivot:
                    keep(0, out, values, j, t)
                    label, is_left = j, False
                else:
                    if label == j:
                        label = pivot
                    eliminate(values, factor, pivot_row, out, (j * ROWS + t) * PARTS)
            j = int32(j + 1)

        # (4) the results; which rows have moved; the first pivot that is zero
        if is_row:
            write(offset(a, int64(label) * a_rs * PARTS), out, a_cs, n, t)
            tell(offset(moves, batch * stride_moves), row, label, n)
        if row == 0 and (first == 0 or (failed > 0 and info[batch * stride_info] == 0)):
            info[batch * stride_info] = failed
        if blocks > 1 and t == 0:
            clear(flags, blocks)

    return getrf_panel
