"""The reverse mode of the Cholesky factor: from the gradient G of L that of A = L L^H, Hermitian.

    A' = (S + S^H) / 2, S = L^-H P L^-1, P the lower triangle of L^H G with half of its diagonal

Small matrices take whole products, of which all but the first two thirds are of a Hermitian matrix. Larger
ones go by halves, in place, as the blocked factorization does backwards (Murray, arXiv:1602.07527):

    [A11    ]      A22' by the reverse mode of L22, A21' = (G21 - 2 A22' L21) L11^-1
    [A21 A22]      G11 -= L21^H A21' (a triangle), A11' by the reverse mode of L11
"""

from __future__ import annotations

from ...dispatch.operand_copies import ALIGNED
from ...operands import Operand
from ...types import Diag, Region, Side, Uplo
from ..copies import emit_copy, emit_mirrored, emit_zeros_beyond
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import symm, trmm, trsm
from ..level3.gemm import emit_gemm
from . import trtri
from .factor_steps import with_alpha

__all__ = ["LEAF", "launch_list"]

#: Order up to which whole products take less time than the launches of halves.
LEAF = 1024
LEAST = 256  # of many matrices
#: Orders of one real matrix at which products with inverses of leaves take less time than solutions.
INVERSE = range(512, 2049)


def launch_list(l: Operand, g: Operand, out: Operand, *, uplo: Uplo) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    l, g : Operand
        n by n, the factor and its gradient, of which the `uplo` triangle is read.
    out : Operand
        n by n, the gradient of the matrix; apart from the others.
    uplo : Uplo
        The triangle of the factor.
    """
    return None if out.is_empty else cached_launch_list(_emit, (l, g, out), (uplo, LEAF, INVERSE))


def _emit(
    launches: LaunchList, l: Operand, g: Operand, out: Operand, uplo: Uplo, leaf: int, inverse: range
) -> None:
    if uplo is Uplo.UPPER:
        l, g = l.T.conjugate(), g.T.conjugate()
    emit_copy(launches, 0.5, g, out, Region.LOWER)
    by_inverse = out.batch == 1 and out.rows in inverse and not out.dtype.is_complex
    _emit_lower(launches, l, out, max(LEAST, int(leaf / out.batch ** (1 / 3))), by_inverse)
    emit_mirrored(launches, out, out, out.dtype.is_complex)


def _emit_lower(launches: LaunchList, l: Operand, g: Operand, leaf: int, by_inverse: bool) -> None:
    """Emit that the gradient of L in the lower triangle of `g` becomes twice that of the matrix."""
    n = g.rows
    if n <= leaf:
        _emit_whole(launches, l, g, by_inverse)
        return
    first = n // 2
    rest = n - first
    (l1, g1), (l21, g21), (l2, g2) = (
        (l.block(*block), g.block(*block))
        for block in ((0, 0, first, first), (first, 0, rest, first), (first, first, rest, rest))
    )
    _emit_lower(launches, l2, g2, leaf, by_inverse)
    symmetric = g2, l21, g21, False, Side.LEFT, Uplo.LOWER, g.dtype.is_complex
    with_alpha(launches, -1.0, lambda: symm.emit(launches, *symmetric), beta=1.0)
    with_alpha(launches, 1.0, lambda: trsm.emit(launches, l1, g21, Side.RIGHT, Uplo.LOWER, Diag.NON_UNIT))
    emit_gemm(launches, -1.0, g21.T.conjugate(), l21, 1.0, g1, Region.LOWER)
    _emit_lower(launches, l1, g1, leaf, by_inverse)


def _emit_whole(launches: LaunchList, l: Operand, g: Operand, by_inverse: bool) -> None:
    """Emit the same by whole products: of P one triangle counts, the others are of Hermitian matrices.

    They are solutions, or products with the inverse of L, which the side stream computes meanwhile.
    """
    up, solve, triangle, inverted = l.T.conjugate(), trsm.emit, l, None
    if by_inverse:
        solve = trmm.emit
        triangle, inverted = _emit_inverse(launches, l)
    emit_zeros_beyond(launches, g, Uplo.LOWER)
    with_alpha(launches, 1.0, lambda: trmm.emit(launches, up, g, Side.LEFT, Uplo.UPPER, Diag.NON_UNIT))
    emit_mirrored(launches, g, g, g.dtype.is_complex)
    launches.wait_for(inverted)
    across = triangle.T.conjugate()
    with_alpha(launches, 1.0, lambda: solve(launches, across, g, Side.LEFT, Uplo.UPPER, Diag.NON_UNIT))
    with_alpha(launches, 1.0, lambda: solve(launches, triangle, g, Side.RIGHT, Uplo.LOWER, Diag.NON_UNIT))


def _emit_inverse(launches: LaunchList, l: Operand) -> tuple[Operand, int | None]:
    """Emit the inverse of L on the side stream; return it, in the workspace, and the last launch of it."""
    with launches.on_side_stream():
        inverse, info = launches.scratch(l.rows, l.rows, 1, ALIGNED), launches.scratch(1, 1, 1)
        emit_copy(launches, 1.0, l, inverse, Region.LOWER)
        trtri.emit_lower(launches, info, inverse, Diag.NON_UNIT)
        return inverse, launches.mark()
