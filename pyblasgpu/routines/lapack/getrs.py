"""Solutions of op(A) X = B from P L U = A: interchanges and two triangles; X overwrites B.

Of small matrices and few right-hand sides all is one launch.
"""

from __future__ import annotations

from ...kernels.common.options import options_of
from ...operands import Operand
from ...types import Diag, Side, Trans, Uplo
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trsm
from . import laswp, small_solve
from .factor_steps import emit_unless_failed

__all__ = ["emit", "launch_list"]


def launch_list(piv: Operand, lu: Operand, b: Operand, *, trans: Trans) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    piv : Operand
        n by 1; row i was interchanged with row piv[i], an int32 in the first bytes of an element.
    lu : Operand
        n by n, U and below it L without its diagonal of ones.
    b : Operand
        n by r.
    trans : Trans
        The op of A.
    """
    return None if b.is_empty else cached_launch_list(emit, (piv, lu, b), (trans,))


def emit(
    launches: LaunchList, piv: Operand, lu: Operand, b: Operand, trans: Trans, info: Operand | None = None
) -> None:
    """Emit the whole call; B stays where there is an `info` of the factors, and it is not 0."""
    transposed = lu.T.conjugate() if trans is Trans.CONJ else lu.T
    if small_solve.applies(launches, b):
        op = lu if trans is Trans.NO else transposed
        small_solve.emit(launches, piv, op, b, options_of(conj=op.conj, unit=trans is Trans.NO), info)
        return
    if info is not None:
        emit_unless_failed(launches, info, b, lambda: emit(launches, piv, lu, b, trans))
        return
    if trans is Trans.NO:
        laswp.emit(launches, piv, b, backwards=False)
        _solve(launches, lu, b, Uplo.LOWER, Diag.UNIT)
        _solve(launches, lu, b, Uplo.UPPER, Diag.NON_UNIT)
        return
    _solve(launches, transposed, b, Uplo.LOWER, Diag.NON_UNIT)
    _solve(launches, transposed, b, Uplo.UPPER, Diag.UNIT)
    laswp.emit(launches, piv, b, backwards=True)


def _solve(launches: LaunchList, t: Operand, b: Operand, uplo: Uplo, diag: Diag) -> None:
    with launches.temporary():
        trsm.emit(launches, t, b, Side.LEFT, uplo, diag)
