"""C := alpha A A' + beta C (SYRK), or alpha A A^H + beta C (HERK), of which one triangle is computed."""

from __future__ import annotations

from ..operands import Operand
from ..types import Uplo
from .launch_list import ALPHA, Tape
from .triangle_update import Product, TriangleUpdate, record_triangle, tape_of_triangle

__all__ = ["record", "tape"]


def tape(
    alpha, a: Operand, beta, c: Operand, *, uplo: Uplo, hermitian: bool = False, is_new_output: bool = False
) -> Tape | None:
    """What the routine runs, for operands that lie like these and scalars that are zero, one like these.

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

    Returns
    -------
    Tape or None
        None where there is nothing to do.
    """
    return tape_of_triangle(record, alpha, (a, c), a.cols, beta, uplo, hermitian, is_new_output)


def record(tape: Tape, a: Operand, c: Operand, triangle: TriangleUpdate) -> None:
    """Record the whole call."""
    right = a.T.conjugate() if triangle.hermitian else a.T
    record_triangle(tape, (Product(ALPHA, a, right),), c, triangle)
