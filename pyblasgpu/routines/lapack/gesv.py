"""X of A X = B, or the inverse of A, out of place: A and B stay. Of small matrices all is one launch."""

from __future__ import annotations

from ...dispatch.choose import select
from ...dispatch.overrides import get_override
from ...gpu.device import current
from ...kernels.factor.lu import gesv_small, getrf_panel
from ...operands import Operand
from ...types import Trans
from ..copies import emit_copy, emit_copy_to_workspace
from ..launch_list import LaunchList, cached_launch_list
from . import getrf, getri, getrs, laswp

__all__ = ["inverse_launch_list", "solution_launch_list"]


def solution_launch_list(info: Operand, a: Operand, b: Operand, x: Operand) -> LaunchList:
    """Return the launch list for operands of these layouts, run with alpha 1.

    Parameters
    ----------
    info : Operand
        One element a matrix, of which the first four bytes become an int32. It is 0, or the number, from 1,
        of the first pivot that is zero; X is not finite then.
    a, b : Operand
        n by n and n by r.
    x : Operand
        n by r; no memory of it is that of A or B.
    """
    return cached_launch_list(_emit_solution, (info, a, b, x), ())


def inverse_launch_list(info: Operand, a: Operand, x: Operand) -> LaunchList:
    """Return the launch list of the inverse X of A; see `solution_launch_list`."""
    return cached_launch_list(_emit_inverse, (info, a, x), ())


def _emit_solution(launches: LaunchList, info: Operand, a: Operand, b: Operand, x: Operand) -> None:
    if _emit_at_once(launches, info, a, b, x):
        return
    factors, piv = emit_copy_to_workspace(launches, a), launches.scratch(a.rows, 1, a.batch)
    getrf.emit(launches, piv, info, factors)
    emit_copy(launches, 1.0, b, x)
    getrs.emit(launches, piv, factors, x, Trans.NO)


def _emit_inverse(launches: LaunchList, info: Operand, a: Operand, x: Operand) -> None:
    if _emit_at_once(launches, info, a, None, x):
        return
    piv = launches.scratch(a.rows, 1, a.batch)
    emit_copy(launches, 1.0, a, x)
    getrf.emit(launches, piv, info, x)
    getri.emit(launches, info, piv, x)


def _emit_at_once(launches: LaunchList, info: Operand, a: Operand, b: Operand | None, x: Operand) -> bool:
    """Emit one launch, the inverse where `b` is None; False, and nothing emitted, where that cannot be."""
    device = current(launches.device)
    config = select(gesv_small.STEM, launches.dtype, "", (x.rows, x.cols), device).config
    is_conj = a.conj or (b is not None and b.conj)
    if a.rows > config.on(device).COLS or is_conj or get_override(getrf_panel.STEM) is not None:
        return False
    config = config.specialize(max(a.rows, x.cols), device)
    lanes, blocks = config.lanes(a.rows), config.grid(x.rows, x.batch) * config.shares(x.cols)

    def integers(info: Operand, a: Operand, b: Operand, x: Operand) -> tuple[int, ...]:
        strides = a.row_stride, a.col_stride, b.row_stride, b.col_stride, x.row_stride, x.col_stride
        batch = laswp.words(info)[1], a.batch_stride, b.batch_stride, x.batch_stride
        return x.rows, x.cols, int(inverts), lanes, x.batch, *strides, *batch

    inverts = b is None
    operands = info, a, a if b is None else b, x
    launches.emit_batch(gesv_small.source(config), blocks, operands, integers, ())
    return True
