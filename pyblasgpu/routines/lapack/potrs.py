"""Solve A X = B in place from the Cholesky factor of A: two TRSMs; of small matrices one launch."""

from __future__ import annotations

from ...kernels.common.options import options_of
from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..copies import emit_copy
from ..joined_lists import emit_from
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trsm
from ..level3.triangular import emit_into
from . import small_solve
from .factor_steps import emit_unless_failed, with_alpha

__all__ = ["emit", "emit_apart", "launch_list"]


def launch_list(c: Operand, b: Operand, *, uplo: Uplo) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    c : Operand
        n by n; its `uplo` triangle is the factor L of A = L L^H, or U of A = U^H U.
    b : Operand
        n by r, of the same dtype, batch and device, apart from C.
    uplo : Uplo
    """
    return None if b.is_empty else cached_launch_list(emit, (c, b), (uplo,))


def emit(launches: LaunchList, c: Operand, b: Operand, uplo: Uplo, info: Operand | None = None) -> None:
    """Emit the whole call; B stays where there is an `info` of the factor, and it is not 0."""
    lower, upper = _triangles(c, uplo)
    if small_solve.applies(launches, b, mirrored=True):
        small_solve.emit(launches, lower, lower, b, options_of(conj=lower.conj, mirrored=True), info)
        return
    if info is not None:
        emit_unless_failed(launches, info, b, lambda: emit(launches, c, b, uplo))
        return
    _emit_solution(launches, lower, b, Uplo.LOWER)
    _emit_solution(launches, upper, b, Uplo.UPPER)


def emit_apart(launches: LaunchList, c: Operand, b: Operand, x: Operand, uplo: Uplo) -> None:
    """Emit the call into X, apart from B."""
    if small_solve.applies(launches, x, mirrored=True):
        emit_from(launches, b, x, lambda: emit_copy(launches, 1.0, b, x), lambda: emit(launches, c, x, uplo))
        return
    lower, upper = _triangles(c, uplo)
    flags = trsm.emit, trsm.emit_apart, Side.LEFT, Uplo.LOWER, Diag.NON_UNIT
    with_alpha(launches, 1.0, lambda: emit_into(launches, lower, b, x, *flags))
    _emit_solution(launches, upper, x, Uplo.UPPER)


def _triangles(c: Operand, uplo: Uplo) -> tuple[Operand, Operand]:
    """Return L and L^H."""
    other = c.T.conjugate()
    return (c, other) if uplo is Uplo.LOWER else (other, c)


def _emit_solution(launches: LaunchList, t: Operand, b: Operand, uplo: Uplo) -> None:
    with_alpha(launches, 1.0, lambda: trsm.emit(launches, t, b, Side.LEFT, uplo, Diag.NON_UNIT))
