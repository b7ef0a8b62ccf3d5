"""P L U = A in place, with partial pivoting.

The recursion halves the columns (Toledo, 1997; LAPACK's getrf2) and ends in panels of one launch:

    [A11 A12]      factor [A11; A21], A12 := L11^-1 A12 (TRSM), A22 -= A21 A12 (GEMM), factor A22
    [A21 A22]

A panel's interchanges are done in all other columns of the matrix at once, left and right of it. So the
levels above have none to do. Large matrices go by blocks of columns, each by the recursion: the next block is
factored while the columns right of it are updated (`lookahead`). Small matrices are one launch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ...dispatch.algorithms import lookahead_width, tiles_per_block
from ...dispatch.choose import select
from ...dispatch.overrides import get_override, mode_from
from ...gpu.device import current
from ...kernels.factor.lu import getrf_column, getrf_panel, getrf_small
from ...kernels.factor.lu.getrf_panel import GetrfPanel
from ...kernels.factor.lu.getrf_small import GetrfSmall
from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trsm
from ..level3.gemm import emit_gemm
from ..level3.triangular import split
from . import laswp
from .block_interchanges import BlockInterchanges
from .lookahead import emit_lookahead

__all__ = ["emit", "launch_list"]


def launch_list(piv: Operand, info: Operand, a: Operand) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    piv : Operand
        min(m, n) by 1; the first four bytes of each element become an int32: row i was interchanged with row
        piv[i], counted from 0.
    info : Operand
        One element a matrix, of which the first four bytes become an int32. It is 0, or the number, from 1,
        of the first pivot that is zero.
    a : Operand
        m by n; L, whose diagonal is one, and U replace it.
    """
    return None if a.is_empty else cached_launch_list(emit, (piv, info, a), ())


def emit(launches: LaunchList, piv: Operand, info: Operand, a: Operand) -> None:
    """Emit the whole call. Matrices of a batch follow one another where panels take several blocks that are
    no cluster.
    """
    device = current(launches.device)
    small, order = (
        select(getrf_small.STEM, launches.dtype, "", (a.rows, a.cols), device).config,
        max(a.rows, a.cols),
    )
    if order <= small.on(device).COLS and get_override(getrf_panel.STEM) is None:
        _emit_small(launches, small.specialize(order, device), piv, info, a)
        return
    config = select(getrf_panel.STEM, launches.dtype, "", (a.rows, a.cols), device).config
    if a.batch > 1 and config.specialize(a.rows, device).takes_batches(a.rows):
        _emit_all(launches, config, piv, info, a)
        return
    for z in range(a.batch):
        with launches.temporary(), launches.chain():
            _emit_all(launches, config, *(x.matrices(z, 1) for x in (piv, info, a)))


def _emit_small(launches: LaunchList, config: GetrfSmall, piv: Operand, info: Operand, a: Operand) -> None:
    """Emit the factors of small matrices, which may be read elsewhere."""
    lanes, launches.source_pointer = config.lanes(a.rows), 0

    def integers(_: Operand, a: Operand, piv: Operand, info: Operand) -> tuple[int, ...]:
        step, stride_piv = laswp.words(piv)
        strides = a.row_stride, a.col_stride, step, a.batch_stride, stride_piv, laswp.words(info)[1]
        return a.rows, a.cols, lanes, a.batch, *strides

    blocks = config.grid(a.rows, a.batch)
    launches.emit_batch(getrf_small.source(config), blocks, (a, a, piv, info), integers, ())


FEWEST_INNER = 4  # inner blocks of a block, which is factored panel by panel with fewer


class _Factors(NamedTuple):
    """State shared by the steps: the Config of the best panels, that of the panels of a block, the operands.

    `moves` holds the interchanges of all panels, one after the other, of `columns` columns.
    """

    config: GetrfPanel
    of_block: GetrfPanel
    columns: int
    moves: Operand
    piv: Operand
    info: Operand
    a: Operand

    @property
    def width(self) -> int:
        """Columns of a panel of the block."""
        return self.of_block.COLS

    def moves_from(self, first: int) -> Operand:
        """Return the moves of the panels from a column on."""
        rows = self.moves.rows * first // self.columns
        return self.moves.block(rows, 0, self.moves.rows - rows, 1)

    def from_row(self, first: int) -> _Factors:
        """Return the state of a block that begins at a row: panels of many rows may have fewer columns."""
        found = self.config.specialize(self.a.rows - first, current(self.a.device))
        return self._replace(of_block=found) if found.COLS <= self.config.COLS else self


#: ``emit(first, cols)`` emits the factors of a panel, and its interchanges in columns outside it.
_EmitPanel = Callable[[int, int], object]


def _emit_all(launches: LaunchList, config: GetrfPanel, piv: Operand, info: Operand, a: Operand) -> None:
    with mode_from(lambda: launches.policy.tensor_getrf_min_order[a.dtype.letter], min(a.rows, a.cols)):
        _emit_factors(launches, config, piv, info, a)


def _emit_factors(launches: LaunchList, config: GetrfPanel, piv: Operand, info: Operand, a: Operand) -> None:
    count, device = min(a.rows, a.cols), current(launches.device)
    panel_config = config.specialize(a.rows, device)
    width, window = panel_config.COLS, (0, a.cols)
    if not panel_config.applies(a.rows, device):
        _emit_columns(launches, width, partial(_emit_panel_by_columns, launches, piv, info, a), a, 0, count)
        _emit_right(launches, a, (0, count), (count, a.cols))
        return
    widest = max(width, config.COLS)
    columns = widest * -(-count // widest)
    moves = laswp.moves_scratch(launches, 2 * columns, a.batch)
    factors = _Factors(config, panel_config, columns, moves, piv, info, a)
    block = lookahead_width("getrf", a.dtype, count, launches.policy, a.batch)
    if widest <= block < count:
        _emit_blocks(launches, factors, block // widest * widest)
        return
    _emit_columns(launches, width, partial(_emit_panel, launches, factors, window), a, 0, count)
    _emit_right(launches, a, (0, count), (count, a.cols))


def _emit_blocks(launches: LaunchList, factors: _Factors, block: int) -> None:
    """Emit the factors with lookahead, by blocks of `block` columns, wide ones in two parts."""
    a, width = factors.a, max(factors.width, factors.config.COLS)
    count = min(a.rows, a.cols)
    first_part = max(int(launches.policy.getrf_first_columns) // width, 1) * width
    parts = 2 if 2 * first_part <= block else 1
    begins = range(0, count, block)
    bounds = [at for x in begins for at in (x, min(x + first_part, count))[:parts]] + [count, a.cols]

    def factors_at(first: int) -> _Factors:
        return factors.from_row(first // block * block)

    def moves_at(first: int) -> tuple[Operand, int]:
        return factors.moves_from(first), factors_at(first).width

    interchanges = BlockInterchanges(launches, factors.piv, a, block, moves_at)

    def factor(j: int) -> None:
        first, last = bounds[j * parts], bounds[j * parts + 1]
        _emit_wide_block(launches, factors_at(first), (first, last), first)

    def factor_rest(j: int) -> None:
        first, middle, last = bounds[2 * j : 2 * j + 3]
        if middle < last:
            interchanges.on_the_right(first, middle, (middle, last))
            _emit_right(launches, a, (first, middle), (middle, last))
            _emit_wide_block(launches, factors_at(first), (middle, last), first)

    def update(j: int, first: int, end: int) -> None:
        factored, columns = (bounds[j * parts], bounds[(j + 1) * parts]), (bounds[first], bounds[end])
        interchanges.on_the_right(*factored, columns)
        _emit_right(launches, a, factored, columns)

    def finish(j: int) -> None:
        interchanges.on_the_left(bounds[j * parts], bounds[(j + 1) * parts])

    rest, tiles = factor_rest if parts > 1 else None, tiles_per_block(launches.policy)
    emit_lookahead(launches, len(begins), factor, update, finish, tiles, rest)
    interchanges.finish()


def _emit_columns(
    launches: LaunchList, width: int, panel: _EmitPanel, a: Operand, first: int, last: int
) -> None:
    """Emit the factors of the columns `first` to `last`, from row `first` on, by panels of `width`."""
    if last - first <= width:
        panel(first, last - first)
        return
    middle = first + split(-(-(last - first) // width)) * width
    _emit_columns(launches, width, panel, a, first, middle)
    _emit_right(launches, a, (first, middle), (middle, last))
    _emit_columns(launches, width, panel, a, middle, last)


def _emit_right(launches: LaunchList, a: Operand, factored: tuple[int, int], right: tuple[int, int]) -> None:
    """Emit what the columns `factored` do to others on their right, whose rows are interchanged."""
    (first, middle), (begin, end) = factored, right
    if begin < end:
        k = middle - first
        with launches.temporary():
            triangle, beside = a.block(first, first, k, k), a.block(first, begin, k, end - begin)
            trsm.emit(launches, triangle, beside, Side.LEFT, Uplo.LOWER, Diag.UNIT)
        _emit_product(launches, a, factored, right)


def _emit_product(
    launches: LaunchList, a: Operand, factored: tuple[int, int], right: tuple[int, int]
) -> None:
    """Emit the same where the rows of U are there."""
    (first, middle), (begin, end) = factored, right
    k, columns, below = middle - first, end - begin, a.rows - middle
    if columns and below:
        left, upper = a.block(middle, first, below, k), a.block(first, begin, k, columns)
        emit_gemm(launches, -1.0, left, upper, 1.0, a.block(middle, begin, below, columns))


def _emit_wide_block(launches: LaunchList, factors: _Factors, block: tuple[int, int], left: int) -> None:
    """Emit the factors of a block of columns, of a wide one by the recursion, which ends in blocks of fewer;
    rows are interchanged from the column `left` on.
    """
    a, width, (first, last) = factors.a, factors.width, block
    columns = max(int(launches.policy.getrf_inner_columns) // width, 1) * width
    if last - first < FEWEST_INNER * columns:
        columns = last - first

    def emit_inner(at: int, count: int) -> None:
        _emit_block(launches, factors, at, at + count)
        beside = a.block(at, left, a.rows - at, last - left)
        laswp.interchange(launches, factors.moves_from(at), beside, width, count, skip=(at - left, count))

    _emit_columns(launches, columns, emit_inner, a, first, last)


def _emit_block(launches: LaunchList, factors: _Factors, first: int, last: int) -> None:
    """Emit the factors of a block of columns, a panel after the other; other columns stay as they are."""
    a, window = factors.a, (first, last)
    for at in range(first, last, factors.width):
        end = min(at + factors.width, last)
        has_upper = _emit_panel(launches, factors, window, at, end - at, in_block=True)
        (_emit_product if has_upper else _emit_right)(launches, a, (at, end), (end, last))


def _emit_panel(
    launches: LaunchList,
    factors: _Factors,
    window: tuple[int, int],
    first: int,
    cols: int,
    in_block: bool = False,
) -> bool:
    """Emit the factors of a panel, and its interchanges in the other columns of `window`; whether the rows of
    U right of it are there, as in a block of few columns they may be.
    """
    piv, info, a = factors.piv, factors.info, factors.a
    rows, config = a.rows - first, factors.config.specialize(a.rows - first, current(launches.device))
    if factors.width != config.COLS:  # moves in memory are groups of all columns of a panel
        config = factors.of_block
    takes_outside_columns = in_block and config.takes_outside_columns(rows)
    panel, pivots = a.block(first, first, rows, cols), piv.block(first, 0, cols, 1)
    moves, blocks, (left, right) = factors.moves_from(first), config.grid(rows), window
    beside = (first - left, right - first - cols) if takes_outside_columns else (0, 0)

    def integers(panel: Operand, pivots: Operand, moves: Operand, info: Operand, _: Operand) -> tuple:
        step, stride_piv = laswp.words(pivots)
        strides = panel.row_stride, panel.col_stride, step, panel.batch_stride, stride_piv
        return rows, cols, first, blocks, *beside, *strides, laswp.words(moves)[1], laswp.words(info)[1]

    operands = panel, pivots, moves, info, launches.flags()
    launches.emit(getrf_panel.source(config), blocks, operands, integers, ())
    if not takes_outside_columns:
        others = a.block(first, left, rows, right - left)
        laswp.interchange(launches, moves, others, config.COLS, cols, skip=(first - left, cols))
    return takes_outside_columns


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
