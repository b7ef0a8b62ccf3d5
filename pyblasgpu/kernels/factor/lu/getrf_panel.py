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

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import WHOLE_ROWS, KernelSource
from ...common.parameters import parameters
from .cluster_exchange import cluster_starter, search_in_cluster
from .outside_columns import AT_ONCE, outside_updater
from .panel_config import STEM, GetrfPanel
from .panel_rows import eliminator
from .pivot_exchange import WARP, exchange_clearer, search_by_labels
from .row_exchange import search_by_rows

__all__ = ["STEM", "GetrfPanel", "source"]

PARAMETERS = parameters(
    "pointer: a",
    "int32 pointer: piv, moves, info, flags",
    "int32: m, n, first, blocks, on_left, on_right",
    "int64: a_rs, a_cs, piv_step, stride_a, stride_piv, stride_moves, stride_info",
)


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


def _row_owner(config: GetrfPanel):
    """Steps of a thread with a row. ``take(values, a, row, m, n, ...)`` reads it, and returns whether there
    is one. ``settle(values, factor, pivot_row, ...)`` eliminates in it unless it is done, and returns its
    label. ``keep(a, moves, out, row, label, ...)`` writes its results to where the label says.
    """
    REALS, ROWS, HELD = (
        config.dtype_facts.reals_per_element,
        config.ROWS,
        config.row_reals + config.dtype_facts.reals_per_element,
    )
    real, int32, int64 = ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.types.int64
    offset, zero, (read, write) = ptx.offset, ptx.fill(HELD), _row_mover(config)
    record_moves, eliminate = _move_recorder(config), eliminator(config, (config.COLS // 2, config.COLS))

    @device_function
    def take(values, a, row, m, n, a_rs, a_cs):
        zero(values, real(0))
        read(0, values, offset(a, row * a_rs * REALS), a_cs, n, row < m)
        return row < m

    @device_function
    def settle(values, factor, pivot_row, out, t, left, label, is_left, done, pivot, j):
        if is_left and label == pivot:
            label, is_left, done = j, False, j
        if is_left:
            if label == j:
                label = pivot
            eliminate(values, factor, pivot_row, out, int32((j * ROWS + t) * REALS), left)
        return label, is_left, done

    @device_function
    def keep(a, moves, out, row, label, done, n, t, a_rs, a_cs):
        write(offset(a, int64(label) * a_rs * REALS), out, a_cs, done, t)
        record_moves(moves, row, label, n)

    return take, settle, keep


def _build(config: GetrfPanel):
    facts, ROWS, COLS = config.dtype_facts, config.ROWS, config.COLS
    REALS, HELD = facts.reals_per_element, config.row_reals + facts.reals_per_element
    TWO, THREADS = config.PER_THREAD == 2, config.threads
    CLUSTER, OUT = config.CLUSTER, 0 if config.DIRECT or config.CLUSTER else config.row_reals
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    PIVOT, TOLD = (COLS - 1) * REALS, config.shared_bytes // 4 - 2
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait
    search, write_upper, start = _searcher(config), _upper_writer(config), cluster_starter(config)
    (take, settle, keep), finish = _row_owner(config), exchange_clearer(config)
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
        row, t_2 = int64(block) * ROWS + t, int32(t + THREADS)
        start(words, t, blocks)
        grid_dependency_wait()
        a, piv = offset(a, batch * stride_a * REALS), offset(piv, batch * stride_piv)
        moves = offset(moves, batch * stride_moves)
        is_row, is_other = take(values, a, row, m, n, a_rs, a_cs), False
        if TWO:
            is_other = take(others, a, row + THREADS, m, n, a_rs, a_cs)
        label, is_left, done, failed, j, left = int32(row), is_row, n, int32(0), int32(0), n
        other, other_left, other_done = int32(row + THREADS), is_other, n

        # (2) a column after the other: the pivot, and its row
        while j < n:
            at, pivot = search(values, label, is_left, others, other, other_left,
                               shared, words, got, flags, t, block, blocks, j)  # fmt: skip
            pivot_row = offset(shared, at)

            # (3) the row of the pivot is done, all others are eliminated
            label, is_left, done = settle(values, factor, pivot_row, out, t, left,
                                          label, is_left, done, pivot, j)  # fmt: skip
            if TWO:
                other, other_left, other_done = settle(others, factor, pivot_row, out, t_2, left,
                                                       other, other_left, other_done, pivot, j)  # fmt: skip
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
            keep(a, moves, out, row, label, done, n, t, a_rs, a_cs)
        if TWO and is_other:
            keep(a, moves, out, row + THREADS, other, other_done, n, t_2, a_rs, a_cs)
        if row == 0 and (first == 0 or (failed > 0 and info[batch * stride_info] == 0)):
            info[batch * stride_info] = failed
        if CLUSTER == 0 and blocks > 1:
            finish(flags, offset(words, TOLD), t, blocks)

        # (5) columns outside the panel
        if BESIDE:
            update_beside(a, moves, values, x, going, n, on_left, on_right, a_rs, a_cs, t, block, blocks)

    return getrf_panel
