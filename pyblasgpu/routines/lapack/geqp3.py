"""Q R = A P in place, with column pivoting, as LAPACK's geqp3 leaves it: one launch on a copy of A."""

from __future__ import annotations

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor.qr import geqp3
from ...operands import Operand
from ..copies import emit_copy_to_workspace
from ..launch_list import LaunchList, cached_launch_list
from .laswp import moves_scratch, words

__all__ = ["emit", "emit_where_failed", "launch_list"]


def launch_list(jpvt: Operand, tau: Operand, a: Operand) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    jpvt : Operand
        n by 1; the first four bytes of each element become an int32: column j of A P is column jpvt[j] of A,
        counted from 1.
    tau : Operand
        min(m, n) by 1; becomes the factors of the reflectors H = I - tau v v^H.
    a : Operand
        m by n; R replaces its upper triangle or trapezoid, the vectors what is below.
    """
    return None if a.is_empty else cached_launch_list(emit, (jpvt, tau, a), ())


def emit(launches: LaunchList, jpvt: Operand, tau: Operand, a: Operand) -> None:
    """Emit the whole call."""
    with launches.temporary():
        w = emit_copy_to_workspace(launches, a)
        _emit(launches, jpvt, jpvt, tau, a, w, pivots=True)


def emit_where_failed(launches: LaunchList, info: Operand, tau: Operand, a: Operand, w: Operand) -> None:
    """Emit the factors without pivots of matrices whose info (an int32 in the bytes of an element) is not 0.
    They are made from a copy `w` by columns, which is spoilt. Others, and their tau, stay as they are.
    """
    with launches.temporary():
        _emit(launches, info, info, tau, a, w, pivots=False)


def _emit(
    launches: LaunchList, info: Operand, jpvt: Operand, tau: Operand, a: Operand, w: Operand, pivots: bool
) -> None:
    """Emit the launch; the blocks of all matrices of one that has several are resident."""
    (m, n), device = (a.rows, a.cols), current(launches.device)
    best = select(geqp3.STEM, launches.dtype, "", (m, n), device).config
    config, blocks = best.specialize(m, n, a.batch, device.sm_count)

    def integers(
        tau: Operand, a: Operand, w: Operand, state: Operand, jpvt: Operand, order: Operand, info: Operand, _
    ) -> tuple[int, ...]:
        step, stride_jpvt = words(jpvt)
        steps = tau.row_stride, step, a.row_stride, a.col_stride, w.col_stride
        strides = tau.batch_stride, stride_jpvt, a.batch_stride, w.batch_stride, state.batch_stride
        return m, n, int(pivots), *steps, *strides, words(order)[1], words(info)[1]

    state = launches.scratch(geqp3.STATE * n, 1, a.batch)
    order = moves_scratch(launches, 2 * n * blocks, a.batch)
    operands = tau, a, w, state, jpvt, order, info, launches.flags()
    launches.emit(geqp3.source(config), blocks, operands, integers, ())
