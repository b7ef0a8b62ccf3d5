"""C := alpha A B + beta C of which one triangle is computed."""

from __future__ import annotations

from ..operands import Operand
from ..types import Uplo
from .launch_list import ALPHA, Tape
from .triangle_update import Product, TriangleUpdate, record_triangle, tape_of_triangle

__all__ = ["record", "tape"]


def tape(
    alpha, a: Operand, b: Operand, beta, c: Operand, *, uplo: Uplo, is_new_output: bool = False
) -> Tape | None:
    """What the routine runs, for operands that lie like these and scalars that are zero, one like these.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 reads neither A nor B, beta = 0 does not read C.
    a, b, c : Operand
        n by k, k by n and n by n, of one dtype, batch and device; C apart from A and B.
    uplo, is_new_output
        See `TriangleUpdate`.

    Returns
    -------
    Tape or None
        None where there is nothing to do.
    """
    return tape_of_triangle(record, alpha, (a, b, c), a.cols, beta, uplo, False, is_new_output)


def record(tape: Tape, a: Operand, b: Operand, c: Operand, triangle: TriangleUpdate) -> None:
    """Record the whole call."""
    record_triangle(tape, (Product(ALPHA, a, b),), c, triangle)
