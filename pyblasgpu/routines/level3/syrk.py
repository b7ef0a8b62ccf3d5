"""C := alpha A A' + beta C (SYRK), or alpha A A^H + beta C (HERK), of which one triangle is computed."""

from __future__ import annotations

from ...operands import Operand
from ...types import Uplo
from ..launch_list import ALPHA, LaunchList
from .triangle_update import ProductTerm, TriangleUpdate, emit_triangle, launch_list_of_triangle

__all__ = ["emit", "launch_list"]


def launch_list(
    alpha, a: Operand, beta, c: Operand, *, uplo: Uplo, hermitian: bool = False, is_new_output: bool = False
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, and for scalars that are 0 or 1 where these are.

    None where there is nothing to do.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 does not read A, beta = 0 does not read C; with `hermitian` both are real.
    a : Operand
        n by k, op() applied as a view.
    c : Operand
        n by n, of the same dtype, batch and device, apart from A.
    uplo, hermitian, is_new_output
        See `TriangleUpdate`.
    """
    return launch_list_of_triangle(emit, alpha, (a, c), a.cols, beta, uplo, hermitian, is_new_output)


def emit(launches: LaunchList, a: Operand, c: Operand, triangle: TriangleUpdate) -> None:
    """Emit the whole call."""
    right = a.T.conjugate() if triangle.hermitian else a.T
    emit_triangle(launches, (ProductTerm(ALPHA, a, right),), c, triangle)
