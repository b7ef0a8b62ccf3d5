"""y := A x, A triangular: by GEMV's kernels, with options of the triangle. In place x is copied first."""

from __future__ import annotations

from ...operands import Operand
from ...types import Diag, Uplo
from ..copies import emit_copy
from ..launch_list import LaunchList, cached_launch_list
from .gemv import emit_gemv

__all__ = ["launch_list"]


def launch_list(
    a: Operand, x: Operand, y: Operand | None = None, *, uplo: Uplo, diag: Diag
) -> LaunchList | None:
    """Return the launch list of y := A x, for operands of these layouts, or of x := A x without a y.

    None where there is nothing to do. y shares no memory with x or A.
    """
    if x.is_empty:
        return None
    if y is None:
        return cached_launch_list(_emit_in_place, (a, x), (uplo, diag))
    return cached_launch_list(_emit, (a, x, y), (uplo, diag))


def _emit(launches: LaunchList, a: Operand, x: Operand, y: Operand, uplo: Uplo, diag: Diag) -> None:
    emit_gemv(launches, 1.0, a, x, 0.0, y, uplo, diag)


def _emit_in_place(launches: LaunchList, a: Operand, x: Operand, uplo: Uplo, diag: Diag) -> None:
    with launches.temporary():
        copied = launches.scratch(x.rows, 1, x.batch)
        emit_copy(launches, 1.0, x, copied)
        emit_gemv(launches, 1.0, a, copied, 0.0, x, uplo, diag)
