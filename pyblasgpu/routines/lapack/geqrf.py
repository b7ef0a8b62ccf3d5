"""Q R = A in place, by Householder reflectors: R, and below it their vectors, as LAPACK's geqrf leaves them.

Blocks of columns go one after the other, and each takes its part off all columns right of it (a block
reflector: products). So do the panels of a block, each of one launch. Small matrices are one launch. Where
the rows are too many for that, the recursion halves the columns of a block (Elmroth and Gustavson, 2000).
Where panels leave half of the device idle, a block is factored while the one before it still updates
(`lookahead`).
"""

from __future__ import annotations

from typing import Any

from ...dispatch.algorithms import tiles_per_block
from ...dispatch.leaf import runs
from ...dispatch.operand_copies import ALIGNED
from ...dispatch.overrides import get_override, splits_singles
from ...gpu.device import Device, current
from ...kernels.factor.qr import geqrf_panel, geqrf_small
from ...operands import Operand
from ..launch_list import LaunchList, cached_launch_list
from ..level3.triangular import split
from . import cholesky_panel, tall_panel
from .block_reflector import (
    BlockReflector,
    blocks_of,
    emit_block_reflector,
    emit_joined_triangle,
    emit_product,
    emit_triangle,
    emit_zeros,
    new_block_reflector,
)
from .factor_steps import leaf_config
from .lookahead import emit_lookahead

__all__ = ["emit", "emit_whole_panel", "launch_list"]

FP16 = "gemm_wgmma"
JOINED = 4  # panels of a block, at most, whose T are joined; of more it is made anew
#: Blocks of columns with lookahead, at least, of one matrix by FMAs and of others; with fewer, waits take
#: what is gained.
SINGLE, AHEAD = 16, 8
SHARE = 2  # multiprocessors of each matrix, at least, with lookahead


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
    blocks = blocks_of(launches, min(a.rows, a.cols))
    is_ahead = _looks_ahead(launches, a, len(blocks))
    launches.has_graphs &= not is_ahead
    with launches.temporary(), launches.chain():
        count = (1 + is_ahead) * (blocks[0][1] < a.cols)
        memory = [new_block_reflector(launches, a.rows, blocks[0][1], a.batch) for _ in range(count)]
        _emit_blocks(launches, tau, a, blocks, memory, is_ahead)


def _emit_blocks(
    launches: LaunchList,
    tau: Operand,
    a: Operand,
    blocks: list[tuple[int, int]],
    memory: list[BlockReflector],
    is_ahead: bool,
) -> None:
    """Emit the factors of all blocks of columns; their reflectors are kept in `memory` by turns."""
    bounds = [*(first for first, _ in blocks), blocks[-1][1], a.cols]
    reflectors: dict[int, BlockReflector] = {}

    def factor(j: int) -> None:
        (first, last), rows = blocks[j], a.rows - blocks[j][0]
        factors, columns = tau.block(first, 0, last - first, 1), a.block(first, first, rows, last - first)
        out = memory[j % len(memory)].part(rows, last - first) if last < a.cols else None
        with launches.temporary():
            made = _emit_block(launches, factors, columns, out)
        if made is not None:
            reflectors[j] = made

    def update(j: int, begin: int, end: int) -> None:
        first, left, width = bounds[j], bounds[begin], bounds[end] - bounds[begin]
        if width:
            right = a.block(first, left, a.rows - first, width)
            emit_product(launches, reflectors[j], right, adjoint=True)

    if is_ahead:
        emit_lookahead(
            launches, len(blocks), factor, update, lambda j: None, tiles_per_block(launches.policy)
        )
        return
    for j in range(len(blocks)):
        factor(j)
        update(j, j + 1, len(blocks) + 1)


def _looks_ahead(launches: LaunchList, a: Operand, blocks: int) -> bool:
    """Whether panels leave half of the device idle, and there are enough blocks."""
    requested = get_override("lookahead")
    if requested is not None:
        return requested > 0 and blocks > 2
    is_on_tensor_cores = splits_singles(a.dtype) and runs(FP16, current(launches.device))
    least = SINGLE if a.batch == 1 and not is_on_tensor_cores else AHEAD
    return blocks >= least and SHARE * a.batch <= current(launches.device).sm_count


def _emit_block(
    launches: LaunchList, tau: Operand, a: Operand, out: BlockReflector | None
) -> BlockReflector | None:
    """Emit the factors of a block of columns, and V and T in `out` if it is not None; return these."""
    device = current(launches.device)
    config = leaf_config(launches, geqrf_panel.STEM, a.rows)
    small = leaf_config(launches, geqrf_small.STEM, a.rows)
    whole = small.whole(a.rows)
    if whole is not None:
        _emit_small(launches, whole, tau, a)
    elif cholesky_panel.applies(launches, a):
        cholesky_panel.emit(launches, tau, a)
    elif config.panel(a.rows, device).grid(a.rows) > device.sm_count:
        _emit_tall_columns(launches, tau, a)
    else:
        v = launches.scratch(a.rows, a.cols, a.batch, ALIGNED) if out is None else out.v
        wide = small if get_override(geqrf_panel.STEM) is None else None
        _emit_panels(launches, (wide, config), tau, a, v, None if out is None else out.t)
        return out
    return None if out is None else emit_block_reflector(launches, tau, a, out)


def _emit_small(
    launches: LaunchList,
    config: Any,
    tau: Operand,
    a: Operand,
    v: Operand | None = None,
    t: Operand | None = None,
    above: int = 0,
) -> None:
    """Emit the factors of small matrices, or of panels with V and perhaps T, a block each."""

    def integers(tau: Operand, a: Operand, v: Operand, other: Operand) -> tuple[int, ...]:
        steps = tau.row_stride, a.row_stride, a.col_stride, v.col_stride, 0 if t is None else other.col_stride
        return a.rows, a.cols, above, *steps, *(each.batch_stride for each in (tau, a, v, other))

    if v is None:
        launches.source_pointer = 2
    target = a if v is None else v
    operands = tau, a, target, target if t is None else t
    launches.emit(geqrf_small.source(config), 1, operands, integers, ())


def _emit_right(launches: LaunchList, tau: Operand, a: Operand, right: Operand) -> None:
    """Emit what the reflectors in the columns of A take off others on their right."""
    if not right.is_empty:
        with launches.temporary():
            emit_product(launches, emit_block_reflector(launches, tau, a), right, adjoint=True)


def _emit_panels(
    launches: LaunchList,
    configs: tuple[Any, Any],
    tau: Operand,
    a: Operand,
    v: Operand,
    whole: Operand | None,
) -> None:
    """Emit the factors of a block of columns by panels, each applied to those right of it; V; and T if there
    is memory for the `whole` of it.
    """
    panels = _panels_of(configs, a, current(launches.device))
    joins = whole is not None and len(panels) <= JOINED
    if whole is not None and joins and len(panels) > 1:
        emit_zeros(launches, whole)
    for first, count, config in panels:
        rows, last = a.rows - first, first + count
        part, right = v.block(first, first, rows, count), a.block(first, last, rows, a.cols - last)
        with launches.temporary():
            if whole is not None and joins:
                t = whole.block(first, first, count, count)
            else:
                t = launches.scratch(count, count, a.batch, ALIGNED)
            factors, columns = tau.block(first, 0, count, 1), a.block(first, first, rows, count)
            if isinstance(config, geqrf_small.GeqrfSmall):
                needs_t = joins or last < a.cols
                _emit_small(launches, config, factors, columns, part, t if needs_t else None, first)
            else:
                _emit_panel(launches, config, factors, columns, part, t, first)
            emit_product(launches, BlockReflector(part, t), right, adjoint=True)
            if whole is not None and joins and first:
                emit_joined_triangle(launches, BlockReflector(v, whole).leading(last), first)
    if whole is not None and not joins:
        emit_triangle(launches, tau, v, whole)


def _panels_of(configs: tuple[Any, Any], a: Operand, device: Device) -> list[tuple[int, int, Any]]:
    """The first column of each panel, their number, and the Config."""
    (wide, narrow), panels, first = configs, [], 0
    while first < a.cols:
        rows = a.rows - first
        config = None if wide is None else wide.panel(rows)
        config = narrow.panel(rows, device) if config is None else config
        panels.append((first, min(config.COLS, a.cols - first), config))
        first += config.COLS
    return panels


def emit_whole_panel(launches: LaunchList, tau: Operand, a: Operand, v: Operand, t: Operand) -> bool:
    """Emit the factors of columns that one launch takes, V and T; return whether there is one."""
    device = current(launches.device)
    wide = leaf_config(launches, geqrf_small.STEM, a.rows).panel(a.rows)
    if wide is not None and a.cols <= min(wide.COLS, a.rows) and get_override(geqrf_panel.STEM) is None:
        _emit_small(launches, wide, tau, a, v, t)
        return True
    config = leaf_config(launches, geqrf_panel.STEM, a.rows).panel(a.rows, device)
    if config.grid(a.rows) > device.sm_count or a.cols > min(config.COLS, a.rows):
        return False
    _emit_panel(launches, config, tau, a, v, t, 0)
    return True


def _emit_panel(
    launches: LaunchList, config: Any, tau: Operand, a: Operand, v: Operand, t: Operand, above: int
) -> None:
    """Emit the factors of a panel; all blocks of one that has several are resident, or a cluster."""
    if config.KIND != geqrf_panel.SPREAD:
        _emit_launch(launches, config, (tau, a, v, t, a, a), 1, above)
        return
    blocks = config.grid(a.rows)
    at_once = a.batch if config.HAS_CLUSTERS else current(launches.device).sm_count // blocks
    for z in range(0, a.batch, at_once):
        part = [each.matrices(z, min(at_once, a.batch - z)) for each in (tau, a, v, t)]
        with launches.temporary():
            state = launches.scratch(config.state(blocks), 1, part[0].batch)
            flags = state if config.HAS_CLUSTERS else launches.flags()
            _emit_launch(launches, config, (*part, state, flags), blocks, above)


def _emit_launch(
    launches: LaunchList, config: Any, operands: tuple[Operand, ...], blocks: int, above: int
) -> None:
    """Emit a launch of `geqrf_panel`."""

    def integers(
        tau: Operand, a: Operand, v: Operand, t: Operand, state: Operand, flags: Operand
    ) -> tuple[int, ...]:
        strides = tau.row_stride, a.row_stride, a.col_stride, v.col_stride, t.col_stride
        return a.rows, a.cols, above, *strides, *(each.batch_stride for each in (tau, a, v, t, state))

    launches.emit(geqrf_panel.source(config), blocks, operands, integers, ())


def _emit_tall_columns(launches: LaunchList, tau: Operand, a: Operand) -> None:
    """Emit the factors of columns of too many rows for `geqrf_panel`: the recursion halves them."""
    config = tall_panel.config_of(launches, a.rows)
    if a.cols <= config.COLS:
        tall_panel.emit(launches, tau, a)
        return
    middle = split(-(-a.cols // config.COLS)) * config.COLS
    left, rest = tau.block(0, 0, middle, 1), tau.block(middle, 0, a.cols - middle, 1)
    columns = a.block(0, 0, a.rows, middle)
    _emit_tall_columns(launches, left, columns)
    _emit_right(launches, left, columns, a.block(0, middle, a.rows, a.cols - middle))
    _emit_tall_columns(launches, rest, a.block(middle, middle, a.rows - middle, a.cols - middle))
