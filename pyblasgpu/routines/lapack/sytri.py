"""The inverse of A from factors of `sytrf` in place: a triangle of the solution with the identity.

Where D is singular, the factors stay.
"""

from __future__ import annotations

from ...operands import Operand
from ...types import Region, Uplo
from ..copies import emit_copy
from ..launch_list import LaunchList, cached_launch_list
from . import sytrs
from .block_reflector import emit_identity
from .factor_steps import emit_restore

__all__ = ["emit", "launch_list"]


def launch_list(
    info: Operand, piv: Operand, a: Operand, *, uplo: Uplo, hermitian: bool = False, rook: bool = False
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        One element a matrix; its first four bytes become an int32: 0, or the number, from 1, of the first
        zero block of D.
    piv : Operand
        n by 1, pivots of `sytrf` in the first bytes of each element.
    a : Operand
        n by n, factors of `sytrf` in one triangle, which the inverse replaces.
    uplo : Uplo
        The triangle.
    hermitian : bool
        Whether the factors are those of a Hermitian matrix.
    rook : bool
        Whether pivots are rook pivots.

    Raises
    ------
    NotImplementedError
        When the order is larger than kernels have it.
    """
    sytrs.check_order(a)
    return None if a.is_empty else cached_launch_list(emit, (info, piv, a), (uplo, hermitian, rook))


def emit(
    launches: LaunchList,
    info: Operand,
    piv: Operand,
    a: Operand,
    uplo: Uplo,
    hermitian: bool,
    rook: bool = False,
) -> None:
    """Emit the whole call."""
    with launches.temporary():
        x = launches.scratch(a.rows, a.rows, a.batch)
        emit_identity(launches, x, 0)
        factors = sytrs.emit_factors(launches, piv, a, uplo, info, rook=rook)
        sytrs.emit_solution(launches, factors, x, hermitian)
        emit_restore(launches, info, a, x)
        emit_copy(launches, 1.0, x, a, Region.of(uplo, hermitian))
