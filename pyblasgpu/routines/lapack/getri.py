"""The inverse of A from P L U = A in place: U is inverted, X L = U^-1 solved, columns are interchanged back.

The factors are copied to the workspace first, since X takes the place of L. Where U has a zero on its
diagonal, they are restored.
"""

from __future__ import annotations

from ...operands import Operand
from ...types import Diag, Region, Side, Uplo
from ..copies import emit_copy, emit_copy_to_workspace, emit_scale
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trsm
from . import laswp, trtri
from .factor_steps import emit_restore

__all__ = ["emit", "emit_apart", "launch_list"]


def launch_list(info: Operand, piv: Operand, a: Operand) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        One element a matrix; its first four bytes become an int32: 0, or the number, from 1, of the first
        zero on U's diagonal.
    piv : Operand
        n by 1; row i was interchanged with row piv[i], an int32 in the first bytes of an element.
    a : Operand
        n by n, the factors; the inverse replaces them.
    """
    return None if a.is_empty else cached_launch_list(emit, (info, piv, a), ())


def emit(launches: LaunchList, info: Operand, piv: Operand, a: Operand) -> None:
    """Emit the whole call."""
    if a.rows == 1:
        trtri.emit(launches, info, a, Uplo.UPPER, Diag.NON_UNIT)
        return
    factors = emit_copy_to_workspace(launches, a)
    emit_scale(launches, 0.0, a, zero=True, region=Region.STRICT_LOWER)
    with launches.temporary():
        trtri.emit_inverse(launches, info, a, Uplo.UPPER, Diag.NON_UNIT)
    with launches.temporary():
        trsm.emit(launches, factors, a, Side.RIGHT, Uplo.LOWER, Diag.UNIT)
    laswp.emit(launches, piv, a.T, backwards=True)
    emit_restore(launches, info, factors, a)


def emit_apart(launches: LaunchList, info: Operand, piv: Operand, factors: Operand, inverse: Operand) -> None:
    """Emit the inverse from factors that stay; where U has a zero on its diagonal, it is worth nothing."""
    if not trtri.emit_apart(launches, info, factors.T, inverse.T):
        emit_scale(launches, 0.0, inverse, zero=True, region=Region.STRICT_LOWER)
        emit_copy(launches, 1.0, factors, inverse, Region.UPPER)
        with launches.temporary():
            trtri.emit_inverse(launches, info, inverse, Uplo.UPPER, Diag.NON_UNIT)
    if inverse.rows > 1:
        with launches.temporary():
            trsm.emit(launches, factors, inverse, Side.RIGHT, Uplo.LOWER, Diag.UNIT)
        laswp.emit(launches, piv, inverse.T, backwards=True)
