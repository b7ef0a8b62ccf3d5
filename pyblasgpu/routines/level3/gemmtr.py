"""C := alpha A B + beta C of which one triangle is computed."""

from __future__ import annotations

from ...operands import Operand
from ...types import Uplo
from ..launch_list import ALPHA, LaunchList
from .triangle_update import ProductTerm, TriangleUpdate, emit_triangle, launch_list_of_triangle

__all__ = ["emit", "launch_list"]


def launch_list(
    alpha, a: Operand, b: Operand, beta, c: Operand, *, uplo: Uplo, is_new_output: bool = False
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, and for scalars that are 0 or 1 where these are.

    None where there is nothing to do.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 reads neither A nor B, beta = 0 does not read C.
    a, b, c : Operand
        n by k, k by n and n by n, of one dtype, batch and device; C apart from A and B.
    uplo, is_new_output
        See `TriangleUpdate`.
    """
    return launch_list_of_triangle(emit, alpha, (a, b, c), a.cols, beta, uplo, False, is_new_output)


def emit(launches: LaunchList, a: Operand, b: Operand, c: Operand, triangle: TriangleUpdate) -> None:
    """Emit the whole call."""
    emit_triangle(launches, (ProductTerm(ALPHA, a, b),), c, triangle)
