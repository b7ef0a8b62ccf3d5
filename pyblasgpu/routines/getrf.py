"""P L U = A in place, with partial pivoting.

The recursion halves the columns (Toledo, 1997; LAPACK's getrf2) and ends in panels of one launch:

    [A11 A12]      factor [A11; A21], A12 := L11^-1 A12 (TRSM), A22 -= A21 A12 (GEMM), factor A22
    [A21 A22]

A panel's interchanges are done in all other columns of the matrix at once, left and right of it, so that the
levels above have none to do. Small matrices are one launch.
"""

from __future__ import annotations

from functools import partial

from ..dispatch.choose import select
from ..dispatch.overrides import get_override
from ..gpu.device import current
from ..kernels.factor import getrf_column, getrf_panel, getrf_small
from ..kernels.factor.getrf_panel import GetrfPanel
from ..kernels.factor.getrf_small import GetrfSmall
from ..operands import Operand
from ..types import Diag, Side, Uplo
from . import laswp, trsm
from .gemm import emit_gemm
from .launch_list import LaunchList, cached_launch_list
from .triangular import split

__all__ = ["emit", "launch_list"]


def launch_list(piv: Operand, info: Operand, a: Operand) -> LaunchList | None:
    """What the routine runs, for operands that lie like these; it is run with alpha 1.

    Parameters
    ----------
    piv : Operand
        min(m, n) by 1; the first four bytes of each element become an int32: row i was interchanged with row
        piv[i], counted from 0.
    info : Operand
        One element a matrix, of which the first four bytes become an int32: 0, or the number, from 1, of the
        first pivot that is zero.
    a : Operand
        m by n; L, whose diagonal is one, and U replace it.

    Returns
    -------
    LaunchList or None
        None where there is nothing to do.
    """
    return None if a.is_empty else cached_launch_list(emit, (piv, info, a), ())


def emit(launches: LaunchList, piv: Operand, info: Operand, a: Operand) -> None:
    """Emit the whole call. Matrices of a batch come one after the other where panels take several blocks that
    are no cluster.
    """
    device = current(launches.device)
    small, order = (
        select(getrf_small.STEM, launches.dtype, "", (a.rows, a.cols), device).config,
        max(a.rows, a.cols),
    )
    if order <= small.on(device).COLS and get_override(getrf_panel.STEM) is None:
        _emit_small(launches, small.serving(order, device), piv, info, a)
        return
    config = select(getrf_panel.STEM, launches.dtype, "", (a.rows, a.cols), device).config
    if a.batch == 1 or config.serving(a.rows, device).takes_batches(a.rows):
        _emit_all(launches, config, piv, info, a)
        return
    for z in range(a.batch):
        with launches.temporary():
            _emit_all(launches, config, *(x.matrices(z, 1) for x in (piv, info, a)))


def _emit_small(launches: LaunchList, config: GetrfSmall, piv: Operand, info: Operand, a: Operand) -> None:
    """Emit the factors of small matrices."""
    lanes = config.lanes(a.rows)

    def integers(a: Operand, piv: Operand, info: Operand) -> tuple[int, ...]:
        step, stride_piv = laswp.words(piv)
        strides = a.row_stride, a.col_stride, step, a.batch_stride, stride_piv, laswp.words(info)[1]
        return a.rows, a.cols, lanes, a.batch, *strides

    blocks = config.grid(a.rows, a.batch)
    launches.emit_batch(getrf_small.source(config), blocks, (a, piv, info), integers, ())


def _emit_all(launches: LaunchList, config: GetrfPanel, piv: Operand, info: Operand, a: Operand) -> None:
    count, device = min(a.rows, a.cols), current(launches.device)
    serving = config.serving(a.rows, device)
    if serving.applies(a.rows, device):
        moves = laswp.moves_scratch(launches, 2 * serving.COLS, a.batch)
        panel = partial(_emit_panel, launches, config, serving.COLS, moves, piv, info, a)
    else:
        panel = partial(_emit_panel_by_columns, launches, piv, info, a)
    _emit_columns(launches, serving.COLS, panel, a, 0, count)
    if count < a.cols:
        _emit_right(launches, a, 0, count, a.cols)


def _emit_columns(launches: LaunchList, panel_cols: int, panel, a: Operand, first: int, last: int) -> None:
    """Emit the factors of the columns `first` to `last`, from row `first` on."""
    if last - first <= panel_cols:
        panel(first, last - first)
        return
    middle = first + split(-(-(last - first) // panel_cols)) * panel_cols
    _emit_columns(launches, panel_cols, panel, a, first, middle)
    _emit_right(launches, a, first, middle, last)
    _emit_columns(launches, panel_cols, panel, a, middle, last)


def _emit_right(launches: LaunchList, a: Operand, first: int, middle: int, last: int) -> None:
    """Emit what the columns `first` to `middle` do to those up to `last`."""
    k, columns, below = middle - first, last - middle, a.rows - middle
    right = a.block(first, middle, k, columns)
    with launches.temporary():
        trsm.emit(launches, a.block(first, first, k, k), right, Side.LEFT, Uplo.LOWER, Diag.UNIT)
    if below:
        left, rest = a.block(middle, first, below, k), a.block(middle, middle, below, columns)
        emit_gemm(launches, -1.0, left, right, 1.0, rest)


def _emit_panel(
    launches: LaunchList,
    best: GetrfPanel,
    width: int,
    moves: Operand,
    piv: Operand,
    info: Operand,
    a: Operand,
    first: int,
    cols: int,
) -> None:
    """Emit the factors of a panel, and its interchanges in the columns beside it; panels have `width` columns
    at most.
    """
    rows, device = a.rows - first, current(launches.device)
    config = best.serving(rows, device)
    if width != config.COLS:  # rows in memory are told by groups of all columns
        config = best.serving(a.rows, device)
    panel, pivots = a.block(first, first, rows, cols), piv.block(first, 0, cols, 1)
    blocks = config.grid(rows)

    def integers(panel: Operand, pivots: Operand, moves: Operand, info: Operand, _: Operand) -> tuple:
        step, stride_piv = laswp.words(pivots)
        strides = panel.row_stride, panel.col_stride, step, panel.batch_stride, stride_piv
        return rows, cols, first, blocks, *strides, laswp.words(moves)[1], laswp.words(info)[1]

    operands = panel, pivots, moves, info, launches.flags()
    launches.emit(getrf_panel.source(config), blocks, operands, integers, ())
    beside = a.block(first, 0, rows, a.cols)
    laswp.interchange(launches, moves, beside, config.COLS, cols, skip=(first, cols))


def _emit_panel_by_columns(
    launches: LaunchList, piv: Operand, info: Operand, a: Operand, first: int, cols: int
) -> None:
    """Emit the same for a panel of more rows than there are threads: a launch a column."""
    rows, device = a.rows - first, current(launches.device)
    config = select(getrf_column.STEM, launches.dtype, "", (rows, cols), device).config
    panel, pivots, blocks = a.block(first, first, rows, cols), piv.block(first, 0, cols, 1), config.grid(rows)
    size = config.state_reals(blocks, cols) * a.dtype.real_size
    with launches.temporary():
        state = launches.scratch(-(-size // a.dtype.itemsize), 1, 1)
        labels = laswp.moves_scratch(launches, 2 * blocks, 1)
        strides = panel.row_stride, panel.col_stride, laswp.words(pivots)[0]
        operands = panel, pivots, info, state, labels
        for j in range(-1, cols):
            integers = rows, cols, j, first, *strides
            launches.emit(getrf_column.source(config), blocks, operands, lambda *_, x=integers: x, ())
        beside = a.block(first, 0, rows, a.cols)
        if a.cols > cols:
            moves, group = laswp.emit_moves(launches, pivots, first, a.cols - cols)
            laswp.interchange(launches, moves, beside, group, cols, skip=(first, cols))
