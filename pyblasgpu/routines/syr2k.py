"""C := alpha A B' + alpha B A' + beta C (SYR2K), or alpha A B^H + conj(alpha) B A^H + beta C (HER2K).

One triangle of C is computed.
"""

from __future__ import annotations

from ..operands import Operand
from ..types import Uplo
from .rank_k import Product, Triangle, record_triangle, tape_of_triangle
from .tape import ALPHA, CONJ_ALPHA, Tape

__all__ = ["record", "tape"]


def tape(
    alpha, a: Operand, b: Operand, beta, c: Operand, *,
    uplo: Uplo, hermitian: bool = False, fresh: bool = False,
) -> Tape | None:  # fmt: skip
    """What the routine runs, for operands that lie like these and scalars that are zero, one like these.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 reads neither A nor B, beta = 0 does not read C; with `hermitian` beta is real.
    a, b : Operand
        n by k, op() applied as a view.
    c : Operand
        n by n, of the same dtype, batch and device, apart from A and B.
    uplo, hermitian, fresh
        See `rank_k.Triangle`.

    Returns
    -------
    Tape or None
        None where there is nothing to do.
    """
    return tape_of_triangle(record, alpha, (a, b, c), a.cols, beta, uplo, hermitian, fresh)


def record(tape: Tape, a: Operand, b: Operand, c: Operand, triangle: Triangle) -> None:
    """Record the whole call."""
    if triangle.hermitian:
        products = Product(ALPHA, a, b.T.conjugate()), Product(CONJ_ALPHA, b, a.T.conjugate())
    else:
        products = Product(ALPHA, a, b.T), Product(ALPHA, b, a.T)
    record_triangle(tape, products, c, triangle)
