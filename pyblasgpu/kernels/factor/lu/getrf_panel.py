"""``getrf_panel``: P L U of a panel of few columns, with partial pivoting, in a single launch.

A thread owns a row, or two, and keeps it in registers. A pivot moves no row: each has a label, its row in
the result, and the pivot row and the uppermost row left swap labels. A step chooses the largest element of a
column and publishes its row number. Each row is shifted by one element while it is eliminated, so that the
column at hand is always the first one. Finished rows are in shared memory, and are written where labels say.

Blocks of threads exchange their candidates (`pivot_exchange`); all of them are resident. Ties go to the
uppermost row, as LAPACK's do; NaN is larger than any number. Where all of a column is zero, it stays, `info`
records it, and the elimination goes on.

Columns outside the panel may be interchanged, and rows of U solved, in the same launch (`outside_columns`).
Both strides are free. Matrices of few rows are panels whole, of a batch too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import WHOLE_ROWS, KernelSource
from ....gpu.workspace import FLAGS
from ...common.kernel_config import KernelConfig
from ...common.parameters import parameters
from .cluster_exchange import cluster_starter, reals_of_cluster, search_in_cluster, words_of_cluster
from .outside_columns import AT_ONCE, outside_updater
from .panel_rows import eliminator
from .pivot_exchange import WARP, exchange_clearer, search_by_labels, words_of_exchange
from .row_exchange import reals_of_search, search_by_rows, words_of_search

if TYPE_CHECKING:
    from ....gpu.device import Device

__all__ = ["STEM", "GetrfPanel", "source"]

STEM = "getrf_panel"
PARAMETERS = parameters(
    "pointer: a",
    "int32 pointer: piv, moves, info, flags",
    "int32: m, n, first, blocks, on_left, on_right",
    "int64: a_rs, a_cs, piv_step, stride_a, stride_piv, stride_moves, stride_info",
)
OTHER_REGISTERS = 64  # of a thread, besides those for its row
SMALL = 64  # rows of a matrix that is a panel whole
ROWS, TALL = 256, 512  # of a block, and where there would be too many of them
MOST_OF_CLUSTER = 16  # blocks
MANY = 132  # multiprocessors of a Hopper device that was seen to run clusters of 16
VECTORS = 4  # the fewest columns, whole vectors of all dtypes


@dataclass(frozen=True)
class GetrfPanel(KernelConfig):
    """Config of one `getrf_panel` kernel.

    Attributes
    ----------
    ROWS : int
        Rows of a block.
    COLS : int
        The most columns of a panel.
    DIRECT : int
        Blocks up to which each receives the rows of all candidates (`row_exchange`); 0: pivots are searched
        by labels (`pivot_exchange`).
    CLUSTER : int
        Blocks up to which those of a panel are a cluster (`cluster_exchange`), from compute capability 9.0
        on; 0: none.
    PER_THREAD : int
        Rows of a thread; two in clusters alone.
    """

    ROWS: int = ROWS
    COLS: int = 16
    DIRECT: int = 0
    CLUSTER: int = 0
    PER_THREAD: int = 1

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(
            self.ROWS % WARP == 0 and 32 <= self.ROWS <= 1024,
            "threads",
            "ROWS % 32 == 0 and 32 <= ROWS <= 1024",
            ROWS=self.ROWS,
        )
        require(
            self.PER_THREAD == 1 or (self.PER_THREAD == 2 and self.CLUSTER > 0 and self.ROWS % 64 == 0),
            "rows",
            "PER_THREAD == 1, or 2 where CLUSTER > 0 and ROWS % 64 == 0",
            PER_THREAD=self.PER_THREAD,
        )
        require(
            self.COLS % VECTORS == 0 and self.COLS > 0, "vectors", f"COLS % {VECTORS} == 0", COLS=self.COLS
        )
        # the threads of the first block have all rows of U
        require(
            self.threads >= self.COLS, "square", "COLS <= ROWS / PER_THREAD", COLS=self.COLS, ROWS=self.ROWS
        )
        require(0 <= self.DIRECT <= WARP, "candidates", "0 <= DIRECT <= 32", DIRECT=self.DIRECT)
        require(
            0 <= self.CLUSTER <= MOST_OF_CLUSTER,
            "cluster",
            f"0 <= CLUSTER <= {MOST_OF_CLUSTER}",
            CLUSTER=self.CLUSTER,
        )

    @property
    def threads(self) -> int:
        return self.ROWS // self.PER_THREAD

    @property
    def row_reals(self) -> int:
        """Reals of a row."""
        return self.COLS * self.dtype_facts.reals_per_element

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.PER_THREAD * self.row_words + OTHER_REGISTERS

    @property
    def results(self) -> int:
        """Reals of the results in shared memory, behind a row if pivots are searched by labels."""
        return self.COLS * self.ROWS * self.dtype_facts.reals_per_element

    @property
    def shared_reals(self) -> int:
        """The results; rows and sizes of candidates."""
        if self.CLUSTER:
            return self.results + reals_of_cluster(self)
        return self.results + (reals_of_search(self) if self.DIRECT else self.row_reals + WARP + 4)

    @property
    def words(self) -> int:
        """Int32 of shared memory before those that are no reals."""
        return self.shared_reals * self.dtype_facts.real_size // 4

    @property
    def shared_bytes(self) -> int:
        """Bytes of the shared reals, the candidates' labels, and the choice."""
        words = words_of_search(self) if self.DIRECT else WARP + 2
        if self.CLUSTER:
            words = words_of_cluster(self)
        return self.shared_reals * self.dtype_facts.real_size + (words + 2) * 4

    def specialize(self, rows: int, device: Device) -> Self:
        """The Config for matrices of `rows` rows: one block where that can be, or a cluster; where there
        would be more blocks than are resident, larger ones. Still more rows are not for this kernel: see
        `applies`.

        A row of a small matrix may have twice the registers. Before Hopper the compiler needs more of them.
        """
        config = self._on(device)
        if rows <= SMALL < self.ROWS:
            if device.cc < (9, 0):
                return replace(config, ROWS=2 * SMALL)
            columns, cluster = min(2 * self.COLS, SMALL), min(self.CLUSTER, 1)
            return replace(config, ROWS=SMALL, COLS=columns, CLUSTER=cluster, PER_THREAD=1)
        while SMALL < rows <= config.ROWS // 2:
            config = replace(config, ROWS=config.ROWS // 2, CLUSTER=min(config.CLUSTER, 1))
        return config if config.grid(rows) == 1 else config._of_several_blocks(rows, device)

    def _on(self, device: Device) -> Self:
        """Return the largest variant of the Config that the device can run."""
        if device.cc < (9, 0):
            height = ROWS if self.CLUSTER else min(self.ROWS, ROWS)
            return replace(self, ROWS=height, CLUSTER=0, PER_THREAD=1)
        most = (
            MOST_OF_CLUSTER if device.cc == (9, 0) and device.sm_count >= MANY else 8
        )  # which all devices have
        return replace(self, CLUSTER=min(self.CLUSTER, most))

    def _of_several_blocks(self, rows: int, device: Device) -> Self:
        config = self
        while config.CLUSTER and config.ROWS <= TALL:
            needed = config.of_kernel.shared_bytes
            if config.grid(rows) <= config.CLUSTER and needed <= device.shared_per_block:
                return config
            config = replace(config, ROWS=2 * config.ROWS)
        if self.CLUSTER > 1 and (self.row_words <= WARP or (self.dtype == "d" and self.COLS == WARP)):
            columns = self.COLS if self.row_words <= WARP else self.COLS // 2  # what registers have room for
            two = replace(self, ROWS=2 * TALL, COLS=columns, PER_THREAD=2)
            if two.grid(rows) <= two.CLUSTER and two.of_kernel.shared_bytes <= device.shared_per_block:
                return two
        if self.CLUSTER:
            free = [replace(self, ROWS=height, CLUSTER=0, PER_THREAD=1) for height in (TALL, ROWS)]
            return next((one for one in free if one.grid(rows) <= one.resident(device)), free[0])
        if self.grid(rows) > self.resident(device) and self.ROWS < TALL:
            columns = self.COLS if device.cc >= (9, 0) else max(self.COLS // 2, VECTORS)
            return replace(self, ROWS=TALL, COLS=columns)
        return self

    def applies(self, rows: int, device: Device) -> bool:
        """Whether all blocks of a panel of `rows` rows run at the same time, as they must."""
        return self.takes_batches(rows) or self.grid(rows) <= self.resident(device)

    def takes_batches(self, rows: int) -> bool:
        """Whether a launch may have several matrices of `rows` rows: no block waits but for its cluster."""
        return self.grid(rows) <= max(self.CLUSTER, 1)

    def resident(self, device: Device) -> int:
        """Blocks that a device runs at the same time, whatever registers the compiler takes, and that can
        send one another what they find.
        """
        registers = min(device.registers_per_block // self.threads // 8 * 8, device.max_registers_per_thread)
        blocks = device.occupancy(self.threads, registers, self.shared_bytes) * device.sm_count
        most, each = (
            FLAGS // 4 - words_of_exchange(self, 0),
            words_of_exchange(self, 1) - words_of_exchange(self, 0),
        )
        return min(blocks, most // each)

    @property
    def of_kernel(self) -> Self:
        """The Config of the kernel: it has room for the largest cluster, so that one serves clusters of all
        sizes.
        """
        return replace(self, CLUSTER=MOST_OF_CLUSTER) if self.CLUSTER > 1 else self

    def takes_outside_columns(self, rows: int) -> bool:
        """Whether a launch may apply its pivots to columns outside the panel: the blocks of a cluster wait
        for one another, and a lane has a row on top.
        """
        return bool(self.CLUSTER) and self.takes_batches(rows) and self.COLS <= WARP

    @property
    def row_words(self) -> int:
        """32-bit registers of a row."""
        return self.row_reals * self.dtype_facts.real_size // 4

    def grid(self, rows: int) -> int:
        """Blocks for a panel of `rows` rows."""
        return -(-rows // self.ROWS)


def source(config: GetrfPanel) -> KernelSource:
    """The kernel of `config`.

    Parameters
    ----------
    config : GetrfPanel

    Kernel parameters
    -----------------
    a: pointer, A
    piv, moves, info: int32 pointer, pivots, moves (see `laswp`), info
    flags: int32 pointer, 0 before and after
    m, n: int32, rows and columns of A
    first: int32, the row of the whole matrix that is A's first
    blocks: int32, blocks of a matrix
    on_left, on_right: int32, columns left and right of A to interchange, if `takes_outside_columns`
    a_rs, a_cs: int64, row and column stride of A (elements)
    piv_step: int64, words from pivot to pivot
    stride_a: int64, batch stride of A (elements)
    stride_piv, stride_moves, stride_info: int64, batch strides (words)

    Grid: x ``config.grid(rows)``, z the batch, which is 1 for several blocks that are no cluster. The columns
    on the right become rows of U on top.
    """
    config = config.of_kernel
    cluster = WHOLE_ROWS if config.CLUSTER > 1 else 1
    return KernelSource.of(
        config, PARAMETERS, lambda: _build(config), cooperative=not config.CLUSTER, cluster=cluster
    )


def _searcher(config: GetrfPanel):
    """Return the search of a panel's pivots."""
    if config.CLUSTER:
        return search_in_cluster(config)
    return search_by_rows(config) if config.DIRECT else search_by_labels(config)


def _row_mover(config: GetrfPanel):
    """``read(0, values, a, a_cs, n, ok)``: a row into registers, zeros beyond; ``write(a, out, a_cs, n, t)``:
    `n` results of a row to A.
    """
    REALS, ROWS, COLS = config.dtype_facts.reals_per_element, config.ROWS, config.COLS
    load, store = ptx.load_global(1, False), ptx.store_global

    @device_function
    def read_element(k, values, a, a_cs, n, ok):
        for part in range(REALS):
            load(values, k * REALS + part, a, k * a_cs * REALS + part, ok & (k < n))

    @device_function
    def write(a, out, a_cs, n, t):
        for k in range(n):
            for part in range(REALS):
                store(a, k * a_cs * REALS + part, out[(k * ROWS + t) * REALS + part], True)

    return unrolled(COLS, read_element), write


def _upper_writer(config: GetrfPanel):
    """``write(a, pivot_row, a_cs, t, count)``: `count` elements of U, by as many threads.

    The first one, which is the pivot, is behind the others.
    """
    REALS, COLS, store = config.dtype_facts.reals_per_element, config.COLS, ptx.store_global

    @device_function
    def write(a, pivot_row, a_cs, t, count):
        if t < count:
            k = t - 1 if t > 0 else COLS - 1
            for part in range(REALS):
                store(a, t * a_cs * REALS + part, pivot_row[k * REALS + part], True)

    return write


def _move_recorder(config: GetrfPanel):
    """``record_moves(moves, row, label, n)``: where a row is now, if it is among the uppermost, or was."""
    COLS, int32 = config.COLS, ptx.types.int32

    @device_function
    def record_moves(moves, row, label, n):
        if label < n:
            moves[label] = int32(row)
        if row < n:
            moves[COLS + row] = label

    return record_moves


def _build(config: GetrfPanel):
    facts, ROWS, COLS = config.dtype_facts, config.ROWS, config.COLS
    REALS, HELD = facts.reals_per_element, config.row_reals + facts.reals_per_element
    TWO, THREADS = config.PER_THREAD == 2, config.threads
    CLUSTER, OUT = config.CLUSTER, 0 if config.DIRECT or config.CLUSTER else config.row_reals
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    PIVOT, TOLD = (COLS - 1) * REALS, config.shared_bytes // 4 - 2
    offset, shared_pointer, zero = ptx.offset, ptx.shared_pointer, ptx.fill(HELD)
    grid_dependency_wait, (read, write), record_moves = (
        ptx.grid_dependency_wait,
        _row_mover(config),
        _move_recorder(config),
    )
    search, write_upper, start = _searcher(config), _upper_writer(config), cluster_starter(config)
    eliminate, finish = eliminator(config, (COLS // 2, COLS)), exchange_clearer(config)
    BESIDE, BOTH = bool(CLUSTER) and COLS <= WARP, AT_ONCE * REALS
    update_beside = outside_updater(config)

    def getrf_panel(
        a, piv, moves, info, flags, m, n, first, blocks, on_left, on_right,
        a_rs, a_cs, piv_step, stride_a, stride_piv, stride_moves, stride_info
    ):  # fmt: skip
        # (1) the row of this thread, or its two
        t, block, batch = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int64(cuda.blockIdx.z)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        words, out = shared_pointer(cuda.shared.array(0, int32, alignment=16)), offset(shared, OUT)
        values, factor = cuda.local.array(HELD, real), cuda.local.array(REALS, real)
        others = cuda.local.array(HELD if TWO else 1, real)
        got, x, going = cuda.local.array(2, real), cuda.local.array(BOTH, real), cuda.local.array(BOTH, real)
        row = int64(block) * ROWS + t
        start(words, t, blocks)
        grid_dependency_wait()
        a, piv = offset(a, batch * stride_a * REALS), offset(piv, batch * stride_piv)
        moves = offset(moves, batch * stride_moves)
        zero(values, real(0))
        is_row = row < m
        read(0, values, offset(a, row * a_rs * REALS), a_cs, n, is_row)
        label, is_left, done, failed, j, left = int32(row), is_row, n, int32(0), int32(0), n
        other, is_other, other_done = int32(row + THREADS), False, n
        if TWO:
            is_other = row + THREADS < m
            zero(others, real(0))
            read(0, others, offset(a, (row + THREADS) * a_rs * REALS), a_cs, n, is_other)
        other_left = is_other

        # (2) a column after the other: the pivot, and its row
        while j < n:
            at, pivot = search(
                values,
                label,
                is_left,
                others,
                other,
                other_left,
                shared,
                words,
                got,
                flags,
                t,
                block,
                blocks,
                j,
            )
            pivot_row = offset(shared, at)

            # (3) the row of the pivot is done, all others are eliminated
            if is_left and label == pivot:
                label, is_left, done = j, False, j
            if is_left:
                if label == j:
                    label = pivot
                eliminate(values, factor, pivot_row, out, int32((j * ROWS + t) * REALS), left)
            if TWO:
                if other_left and other == pivot:
                    other, other_left, other_done = j, False, j
                if other_left:  # whose label is no row on top: those have the first threads
                    eliminate(others, factor, pivot_row, out, int32((j * ROWS + THREADS + t) * REALS), left)
            if block == 0:
                write_upper(offset(a, j * (a_rs + a_cs) * REALS), pivot_row, a_cs, t, left)
                if t == 0:
                    piv[j * piv_step] = int32(first + pivot)
                    is_zero = pivot_row[PIVOT] == real(0) and pivot_row[PIVOT + REALS - 1] == real(0)
                    if is_zero and failed == 0:
                        failed = int32(first + j + 1)
            j, left = int32(j + 1), int32(left - 1)

        # (4) the results; which rows have moved; the first pivot that is zero
        if is_row:
            write(offset(a, int64(label) * a_rs * REALS), out, a_cs, done, t)
            record_moves(moves, row, label, n)
        if TWO and is_other:
            write(offset(a, int64(other) * a_rs * REALS), out, a_cs, other_done, int32(t + THREADS))
            record_moves(moves, row + THREADS, other, n)
        if row == 0 and (first == 0 or (failed > 0 and info[batch * stride_info] == 0)):
            info[batch * stride_info] = failed
        if CLUSTER == 0 and blocks > 1:
            finish(flags, offset(words, TOLD), t, blocks)

        # (5) columns outside the panel
        if BESIDE:
            update_beside(a, moves, values, x, going, n, on_left, on_right, a_rs, a_cs, t, block, blocks)

    return getrf_panel
