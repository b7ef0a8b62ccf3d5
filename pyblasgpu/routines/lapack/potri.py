"""The inverse of a Hermitian matrix from its Cholesky factor, in place: TRTRI and LAUUM.

Of many small matrices it is one launch, which solves for the columns of the inverse.
"""

from __future__ import annotations

from ...operands import Operand
from ...types import Diag, Uplo
from ..launch_list import LaunchList, cached_launch_list
from . import lauum, small_solve, trtri
from .factor_steps import emit_readable, emit_unless_failed

__all__ = ["emit", "emit_inverse", "launch_list"]


def launch_list(info: Operand, a: Operand, *, uplo: Uplo) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        Info as in `trtri`: a zero on the diagonal of the factor.
    a : Operand
        n by n; its `uplo` triangle is the factor, and becomes that triangle of the inverse.
    uplo : Uplo
    """
    return None if a.is_empty else cached_launch_list(emit, (info, a), (uplo,))


def emit(launches: LaunchList, info: Operand, a: Operand, uplo: Uplo) -> None:
    """Emit the whole call; where info is not 0, the factor stays."""
    lower = a if uplo is Uplo.LOWER else a.T
    if small_solve.inverts(launches, lower):
        small_solve.emit_inverse(launches, info, lower)
    else:
        emit_unless_failed(launches, info, a, lambda: emit_inverse(launches, info, lower))


def emit_inverse(launches: LaunchList, info: Operand, lower: Operand) -> None:
    """Emit the inverse from a lower factor; where info is not 0, the triangle is worth nothing."""

    def invert(readable: Operand) -> None:
        trtri.emit_lower(launches, info, readable, Diag.NON_UNIT)
        lauum.emit_lower(launches, readable)

    emit_readable(launches, lower, invert)
