"""Interchanges of rows by pivots, or by the moves that a panel leaves (`kernels.factor.lu.laswp`)."""

from __future__ import annotations

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor.lu import laswp, pivot_moves
from ...kernels.registry import FIXED
from ...operands import Operand
from ..launch_list import LaunchList, cached_launch_list

__all__ = ["WORD", "emit", "emit_moves", "interchange", "launch_list", "moves_scratch", "words"]

WORD = 4  # bytes of a pivot


def launch_list(piv: Operand, a: Operand, *, backwards: bool, first: int = 0) -> LaunchList | None:
    """Return the launch list that interchanges rows of A by pivots, in their order or in reverse; run with
    alpha 1.

    Parameters
    ----------
    piv : Operand
        k by 1, an int32 in the first bytes of each element, counted from 0. Row ``first + i`` and row
        ``piv[i]`` of A are interchanged.
    a : Operand
    backwards : bool
        From the last pivot to the first.
    first : int
    """
    return None if a.is_empty or piv.is_empty else cached_launch_list(emit, (piv, a), (backwards, first))


def emit(launches: LaunchList, piv: Operand, a: Operand, backwards: bool, first: int = 0) -> None:
    """Emit the whole call."""
    with launches.temporary():
        moves, group = emit_moves(launches, piv, first, a.cols)
        below = a.block(first, 0, a.rows - first, a.cols)
        interchange(launches, moves, below, group, piv.rows, backwards=backwards)


def words(piv: Operand) -> tuple[int, int]:
    """Int32 from one pivot to the next, and from those of one matrix to the next."""
    unit = piv.dtype.itemsize // WORD
    return piv.row_stride * unit, piv.batch_stride * unit


def moves_scratch(launches: LaunchList, count: int, batch: int) -> Operand:
    """Memory for as many moves of each matrix."""
    return launches.scratch(-(-count * WORD // launches.dtype.itemsize), 1, batch)


def emit_moves(launches: LaunchList, piv: Operand, first: int, columns: int) -> tuple[Operand, int]:
    """Emit the launch that makes moves of pivots, for `columns` columns; return the moves, and the pivots of
    a group.
    """
    config = FIXED[pivot_moves.STEM].fixed_config("s").specialize(columns)
    moves = moves_scratch(launches, 2 * config.GROUP * config.grid(piv.rows), piv.batch)

    def integers(piv: Operand, moves: Operand) -> tuple[int, ...]:
        return piv.rows, first, *words(piv), words(moves)[1]

    launches.emit(pivot_moves.source(config), config.grid(piv.rows), (piv, moves), integers, ())
    return moves, config.GROUP


def interchange(
    launches: LaunchList,
    moves: Operand,
    a: Operand,
    group: int,
    pivots: int,
    skip: tuple[int, int] = (0, 0),
    backwards: bool = False,
) -> None:
    """Emit the interchanges of `pivots` pivots, in groups of `group`; `skip`: the first column that is left
    out, and how many.
    """
    first, skipped = skip
    columns = a.cols - skipped
    if not columns:
        return
    config = select(laswp.STEM, launches.dtype, "", (pivots, columns), current(launches.device)).config
    groups = -(-pivots // group)

    def integers(a: Operand, moves: Operand) -> tuple[int, ...]:
        last = pivots - (groups - 1) * group
        flags = int(not a.by_rows), int(backwards)
        strides = a.row_stride, a.col_stride, a.batch_stride, words(moves)[1]
        return group, groups, last, columns, first, skipped, *flags, *strides

    launches.emit(laswp.source(config), config.grid(columns, group), (a, moves), integers, ())
