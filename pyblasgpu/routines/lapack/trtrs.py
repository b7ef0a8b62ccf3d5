"""Solve T X = B, and record a zero on the diagonal of T in info: in place B stays then."""

from __future__ import annotations

from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..copies import emit_copy
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trsm
from .factor_steps import emit_unless_failed, with_alpha
from .trtri import emit_zero_diagonal

__all__ = ["apart_launch_list", "emit", "launch_list"]


def launch_list(info: Operand, t: Operand, b: Operand, *, uplo: Uplo, diag: Diag) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        One element a matrix of the batch; its first four bytes become an int32: 0, or the number (from 1) of
        the first zero on the diagonal.
    t : Operand
        n by n, op() applied as a view; only its `uplo` part is read, without its diagonal where `diag` is
        unit.
    b : Operand
        n by r, of the same dtype, batch and device, apart from T; without columns there is info alone.
    uplo, diag : Uplo, Diag
        `uplo` is meant after op().
    """
    return None if t.is_empty else cached_launch_list(emit, (info, t, b), (uplo, diag))


def apart_launch_list(
    info: Operand, t: Operand, b: Operand, x: Operand, *, uplo: Uplo, diag: Diag
) -> LaunchList:
    """Return the launch list of X in other memory than B, see `launch_list`; none of them is empty.

    Where info is not 0, X is not finite.
    """
    return cached_launch_list(_emit_apart, (info, t, b, x), (uplo, diag))


def _emit_apart(
    launches: LaunchList, info: Operand, t: Operand, b: Operand, x: Operand, uplo: Uplo, diag: Diag
) -> None:
    emit_zero_diagonal(launches, info, t, diag)

    def solve() -> None:
        if not trsm.emit_apart(launches, t, b, x, Side.LEFT, uplo, diag):
            emit_copy(launches, 1.0, b, x)
            trsm.emit(launches, t, x, Side.LEFT, uplo, diag)

    with_alpha(launches, 1.0, solve)


def emit(launches: LaunchList, info: Operand, t: Operand, b: Operand, uplo: Uplo, diag: Diag) -> None:
    """Emit the whole call."""
    emit_zero_diagonal(launches, info, t, diag)
    if b.is_empty:
        return

    def solve() -> None:
        with_alpha(launches, 1.0, lambda: trsm.emit(launches, t, b, Side.LEFT, uplo, diag))

    if diag is Diag.UNIT:
        solve()
    else:
        emit_unless_failed(launches, info, b, solve)
