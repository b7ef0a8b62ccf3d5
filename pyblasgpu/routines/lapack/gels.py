"""Least squares and solutions of the least norm from QR factors, or of wide matrices from LQ factors.

With the triangle T and the orthogonal factor Q of A, op(A) is Q T, and B has more equations than unknowns;
or it is T Q, and the solution of T Y = B is continued by zeros and multiplied by the adjoint of Q.
"""

from __future__ import annotations

from ...operands import Operand
from ...types import Diag, Side, Trans, Uplo
from ..copies import emit_scale
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trsm
from . import ormqr
from .factor_steps import emit_unless_failed, with_alpha
from .trtri import emit_zero_diagonal

__all__ = ["solution_launch_list"]


def solution_launch_list(
    info: Operand, tau: Operand, a: Operand, b: Operand, *, trans: Trans
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        One element a matrix; its first four bytes become an int32: 0, or the number, from 1, of the first
        zero on the diagonal of the triangle.
    tau : Operand
        min(m, n) by 1, the factors of the reflectors.
    a : Operand
        m by n; what `geqrf` leaves, or `gelqf` where m < n.
    b : Operand
        max(m, n) by r, the right-hand sides in its first rows; the solutions replace them.
    trans : Trans
        The op of A; that of real matrices may be either transpose.
    """
    return None if b.is_empty else cached_launch_list(_emit, (info, tau, a, b), (trans,))


def _emit(launches: LaunchList, info: Operand, tau: Operand, a: Operand, b: Operand, trans: Trans) -> None:
    k, is_wide, is_adjoint = tau.rows, a.rows < a.cols, trans is not Trans.NO
    triangle, top = a.block(0, 0, k, k), b.block(0, 0, k, b.cols)
    rest = b.block(k, 0, b.rows - k, b.cols)
    uplo = Uplo.LOWER if is_wide else Uplo.UPPER
    if is_adjoint:
        triangle, uplo = triangle.T.conjugate(), uplo.flipped
    emit_zero_diagonal(launches, info, triangle, Diag.NON_UNIT)
    if a.is_empty:
        emit_scale(launches, 0.0, b, zero=True)
        return

    def turn(op: Trans) -> None:
        reflectors = a.block(0, 0, k, a.cols) if is_wide else a.block(0, 0, a.rows, k)
        ormqr.emit(launches, tau, reflectors, b, Side.LEFT, op, is_wide)

    def solve() -> None:
        with_alpha(launches, 1.0, lambda: trsm.emit(launches, triangle, top, Side.LEFT, uplo, Diag.NON_UNIT))

    def solve_and_continue() -> None:
        solve()
        if not rest.is_empty:
            emit_scale(launches, 0.0, rest, zero=True)
        turn(Trans.CONJ if is_wide else Trans.NO)

    if is_wide == is_adjoint:  # more equations than unknowns
        turn(Trans.NO if is_wide else Trans.CONJ)
        emit_unless_failed(launches, info, top, solve)
    else:
        emit_unless_failed(launches, info, b, solve_and_continue)
