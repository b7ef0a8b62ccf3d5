"""Solutions of op(A) X = B from P L U = A: interchanges and two triangles; X overwrites B.

Of small matrices and few right-hand sides all is one launch.
"""

from __future__ import annotations

from ..dispatch.choose import select
from ..gpu.device import current
from ..kernels.common.options import options_of
from ..kernels.factor import getrs_small, small_matrices
from ..operands import Operand
from ..types import Diag, Side, Trans, Uplo
from . import laswp, trsm
from .launch_list import LaunchList, cached_launch_list

__all__ = ["MOST_COLUMNS", "emit", "launch_list"]

#: Right-hand sides of small matrices that one launch solves; more of them have threads of their own by TRSM.
MOST_COLUMNS = 16
WARPS = 16  # of a multiprocessor, beyond which right-hand sides of a matrix stay together


def launch_list(piv: Operand, lu: Operand, b: Operand, *, trans: Trans) -> LaunchList | None:
    """What the routine runs, for operands that lie like these; it is run with alpha 1.

    Parameters
    ----------
    piv : Operand
        n by 1; row i was interchanged with row piv[i], an int32 in the first bytes of an element.
    lu : Operand
        n by n, U and below it L without its diagonal of ones.
    b : Operand
        n by r.
    trans : Trans
        Which op(A) is meant.
    """
    return None if b.is_empty else cached_launch_list(emit, (piv, lu, b), (trans,))


def emit(launches: LaunchList, piv: Operand, lu: Operand, b: Operand, trans: Trans) -> None:
    """Emit the whole call."""
    transposed = lu.T.conjugate() if trans is Trans.CONJ else lu.T
    if b.rows <= small_matrices.ORDER and b.cols <= MOST_COLUMNS:
        _emit_small(launches, piv, lu if trans is Trans.NO else transposed, b, trans)
        return
    if trans is Trans.NO:
        laswp.emit(launches, piv, b, backwards=False)
        _solve(launches, lu, b, Uplo.LOWER, Diag.UNIT)
        _solve(launches, lu, b, Uplo.UPPER, Diag.NON_UNIT)
        return
    _solve(launches, transposed, b, Uplo.LOWER, Diag.NON_UNIT)
    _solve(launches, transposed, b, Uplo.UPPER, Diag.UNIT)
    laswp.emit(launches, piv, b, backwards=True)


def _emit_small(launches: LaunchList, piv: Operand, lu: Operand, b: Operand, trans: Trans) -> None:
    """Emit all for small matrices; `lu` is op(LU)."""
    device = current(launches.device)
    config = select(getrs_small.STEM, launches.dtype, "", (b.rows, b.cols), device).config
    lanes, blocks = config.lanes(b.rows), config.grid(b.rows, b.batch)
    resident = device.sm_count * WARPS * 32 // config.threads
    groups = max(min(resident // blocks, -(-b.cols // getrs_small.COLUMNS)), 1)
    options = options_of(conj=lu.conj, unit=trans is Trans.NO)

    def integers(piv: Operand, lu: Operand, b: Operand) -> tuple[int, ...]:
        step, stride_piv = laswp.words(piv)
        strides = lu.row_stride, lu.col_stride, step, b.row_stride, b.col_stride
        batch = stride_piv, lu.batch_stride, b.batch_stride
        return b.rows, b.cols, options, lanes, b.batch, groups, *strides, *batch

    source = getrs_small.source(config)
    launches.emit_batch(source, blocks * groups, (piv, lu, b), integers, ())


def _solve(launches: LaunchList, t: Operand, b: Operand, uplo: Uplo, diag: Diag) -> None:
    with launches.temporary():
        trsm.emit(launches, t, b, Side.LEFT, uplo, diag)
