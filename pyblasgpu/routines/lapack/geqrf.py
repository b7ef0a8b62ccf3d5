"""Q R = A in place, by Householder reflectors: R, and below it their vectors, as LAPACK's geqrf leaves them.

Blocks of columns go one after the other, and each takes its part off all columns right of it (a block
reflector: products). In a block the recursion halves the columns (Elmroth and Gustavson, 2000) and ends in
panels of one launch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor.qr import geqrf_panel, geqrf_tall
from ...operands import Operand
from ..launch_list import LaunchList, cached_launch_list
from ..level3.triangular import split
from .block_reflector import blocks_of, emit_block_reflector, emit_product
from .factor_steps import leaf_config

__all__ = ["emit", "launch_list"]


def launch_list(tau: Operand, a: Operand) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    tau : Operand
        min(m, n) by 1; becomes the factors of the reflectors H = I - tau v v^H.
    a : Operand
        m by n; R replaces its upper triangle or trapezoid, the vectors what is below.
    """
    return None if a.is_empty else cached_launch_list(emit, (tau, a), ())


def emit(launches: LaunchList, tau: Operand, a: Operand) -> None:
    """Emit the whole call."""
    for first, last in blocks_of(launches, min(a.rows, a.cols)):
        panels = _panels(launches, a.rows - first)
        _emit_columns(launches, panels, tau, a, first, last)
        _emit_right(launches, tau, a, (first, last), (last, a.cols))


class _Panels(NamedTuple):
    """The Config of the panels of a matrix, and their columns."""

    config: Any
    width: int


def _panels(launches: LaunchList, rows: int) -> _Panels:
    """Choose panels of a block of threads, or where the rows are too many for that, of several."""
    panel = leaf_config(launches, geqrf_panel.STEM, rows)
    if panel.width(rows):
        return _Panels(panel, panel.width(rows))
    column = select(geqrf_tall.STEM, launches.dtype, "", (rows,), current(launches.device)).config
    return _Panels(column, column.COLS)


def _emit_columns(
    launches: LaunchList, panels: _Panels, tau: Operand, a: Operand, first: int, last: int
) -> None:
    """Emit the factors of the columns `first` to `last`, from row `first` on."""
    if last - first <= panels.width:
        block = a.block(first, first, a.rows - first, last - first)
        _emit_panel(launches, panels.config, tau.block(first, 0, last - first, 1), block)
        return
    middle = first + split(-(-(last - first) // panels.width)) * panels.width
    _emit_columns(launches, panels, tau, a, first, middle)
    _emit_right(launches, tau, a, (first, middle), (middle, last))
    _emit_columns(launches, panels, tau, a, middle, last)


def _emit_right(
    launches: LaunchList, tau: Operand, a: Operand, factored: tuple[int, int], right: tuple[int, int]
) -> None:
    """Emit what the reflectors of the columns `factored` take off others on their right."""
    (first, middle), (begin, end) = factored, right
    if begin < end:
        rows, count = a.rows - first, middle - first
        with launches.temporary():
            block = emit_block_reflector(
                launches, tau.block(first, 0, count, 1), a.block(first, first, rows, count)
            )
            emit_product(launches, block, a.block(first, begin, rows, end - begin), adjoint=True)


def _emit_panel(launches: LaunchList, config: Any, tau: Operand, a: Operand) -> None:
    """Emit the factors of a panel."""
    if config.STEM == geqrf_tall.STEM:
        for z in range(a.batch):
            with launches.temporary():
                _emit_tall(launches, config, tau.matrices(z, 1), a.matrices(z, 1))
        return

    def integers(tau: Operand, a: Operand) -> tuple[int, ...]:
        strides = tau.row_stride, a.row_stride, a.col_stride
        return a.rows, a.cols, *strides, tau.batch_stride, a.batch_stride

    launches.emit(geqrf_panel.source(config.specialize(a.rows, a.cols)), 1, (tau, a), integers, ())


def _emit_tall(launches: LaunchList, config: Any, tau: Operand, a: Operand) -> None:
    """Emit the same for a panel of too many rows, of one matrix."""
    blocks = config.grid(a.rows, current(launches.device).sm_count)
    state = launches.scratch(config.state(blocks), 1, 1)
    numbers = a.rows, a.cols, tau.row_stride, a.row_stride, a.col_stride
    operands = tau, state, a, launches.flags()
    launches.emit(geqrf_tall.source(config), blocks, operands, lambda *_: numbers, ())
