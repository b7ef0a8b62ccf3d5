"""Q R = A P in place, with column pivoting, as LAPACK's geqp3 leaves it.

Small matrices are one launch on a copy of A, which reads and writes all columns in each step. Others go by
panels: a step reads columns once, and a product applies a panel to those that are left.
"""

from __future__ import annotations

from ...dispatch.choose import select
from ...dispatch.operand_copies import ALIGNED
from ...dispatch.overrides import get_override
from ...gpu.device import current
from ...kernels.factor.qr import geqp3, geqp3_panel
from ...kernels.registry import FIXED
from ...operands import Operand
from ..copies import emit_copy, emit_copy_to_workspace
from ..launch_list import LaunchList, cached_launch_list
from ..level3.gemm import emit_gemm
from .laswp import moves_scratch, words

__all__ = ["emit", "emit_where_failed", "launch_list"]

#: Panels of a matrix alone, and of those of a stack, from which on they are factored so.
ALONE, OF_A_STACK = 26, 8
#: The part of L2 beyond which a matrix alone goes by panels that has as many as those of a stack.
L2_PART = 1 / 4


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
        if not _goes_by_panels(launches, a):
            _emit(launches, jpvt, jpvt, tau, a, emit_copy_to_workspace(launches, a), pivots=True)
            return
        by_columns = a if a.row_stride == 1 and not a.conj else emit_copy_to_workspace(launches, a)
        at_once = current(launches.device).sm_count
        for z in range(0, a.batch, at_once):
            parts = (each.matrices(z, min(at_once, a.batch - z)) for each in (jpvt, tau, by_columns))
            with launches.temporary():
                _emit_panels(launches, *parts)
        if by_columns is not a:
            emit_copy(launches, 1.0, by_columns, a)


def _goes_by_panels(launches: LaunchList, a: Operand) -> bool:
    """Whether panels take less time. They read matrices once, where `geqp3` reads them twice and writes them.
    Blocks of several matrices that have some each wait for one another longer, too.
    """
    if get_override(geqp3_panel.STEM) is not None:
        return True
    device, config = current(launches.device), FIXED[geqp3_panel.STEM].fixed_config(a.dtype.letter)
    least = min(a.rows, a.cols)
    if get_override(geqp3.STEM) is not None or least <= config.STEPS:
        return False
    panels = least / config.STEPS
    if panels >= (OF_A_STACK if a.batch > 1 else ALONE):
        return True
    size = min(a.batch, device.sm_count) * a.rows * a.cols * a.dtype.itemsize
    return size > (L2_PART if panels >= OF_A_STACK else 1) * device.l2_bytes


def _emit_panels(launches: LaunchList, jpvt: Operand, tau: Operand, a: Operand) -> None:
    """Emit the factors of matrices by columns whose blocks are resident at a time, panel after panel."""
    (m, n), least, device = (a.rows, a.cols), tau.rows, current(launches.device)
    config = select(geqp3_panel.STEM, launches.dtype, "", (m, n), device).config
    blocks, steps, reals = config.blocks(n, a.batch, device.sm_count), config.STEPS, a.dtype.reals_per_element
    g = launches.scratch(2 * steps, n, a.batch, ALIGNED)
    operands = tau, a, g, launches.scratch(-(-config.state(n, blocks) // reals), 1, a.batch), jpvt

    def emit_steps(first: int, count: int) -> None:
        def integers(
            tau: Operand, a: Operand, g: Operand, state: Operand, jpvt: Operand, _
        ) -> tuple[int, ...]:
            (step, stride), of_state = words(jpvt), state.batch_stride * reals
            strides = tau.batch_stride, stride, a.batch_stride, g.batch_stride, of_state
            return m, n, first, count, tau.row_stride, step, a.col_stride, *strides

        launches.emit(geqp3_panel.source(config), blocks, (*operands, launches.flags()), integers, ())

    emit_steps(0, 0)
    for first in range(0, least, steps):
        last = min(first + steps, least)
        count, right = last - first, n - last
        emit_steps(first, count)
        if right:
            emit_copy(launches, 1.0, g.block(steps, last, count, right), a.block(first, last, count, right))
        if right and last < m:
            vectors, others = a.block(last, first, m - last, count), a.block(last, last, m - last, right)
            emit_gemm(launches, -1.0, vectors, g.block(0, last, count, right), 1.0, others)
    emit_steps(least, 0)


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
