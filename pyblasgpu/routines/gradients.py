"""Gradients of products and solutions with respect to both matrices: one launch list for each.

Operands that are read are first and stay as they are; the gradients of A and B follow.
"""

from __future__ import annotations

from ..operands import Operand
from ..types import Diag, Region, Side, Trans, Uplo
from .copies import emit_copy, emit_copy_to_workspace, emit_scale, emit_zeros_beyond
from .lapack import getrs, potrs
from .lapack.factor_steps import with_alpha
from .launch_list import LaunchList, cached_launch_list
from .level3 import gemm, gemmtr, symm, syr2k, trmm, trsm
from .level3.gemm import emit_gemm
from .level3.triangle_update import TriangleUpdate
from .level3.triangular import emit_into

__all__ = [
    "of_definite_solution",
    "of_inverse",
    "of_product",
    "of_solution",
    "of_symmetric_product",
    "of_triangular_product",
    "of_triangular_solution",
]


def of_product(
    a: Operand, b: Operand, g: Operand, ga: Operand, gb: Operand, method: str | None
) -> LaunchList:
    """Return the list of alpha G B^H and alpha A^H G, the gradients of A B for that of the result, G."""
    return cached_launch_list(_emit_of_product, (a, b, g, ga, gb), (method,), 3)


def _emit_of_product(
    launches: LaunchList,
    a: Operand,
    b: Operand,
    g: Operand,
    ga: Operand,
    gb: Operand,
    method: str | None,
) -> None:
    gemm.emit(launches, g, b.T.conjugate(), ga, True, method)
    gemm.emit(launches, a.T.conjugate(), g, gb, True, method)


def of_symmetric_product(
    a: Operand, b: Operand, g: Operand, ga: Operand, gb: Operand, side: Side, uplo: Uplo
) -> LaunchList:
    """Return the list of alpha A^H G, the gradient of B in A B for that of the result, G. It also has a
    triangle of W + W^T for W = alpha G B^H, its diagonal that of W; of B A from the right.
    """
    return cached_launch_list(_emit_of_symmetric, (a, b, g, ga, gb), (side, uplo), 3)


def _emit_of_symmetric(
    launches: LaunchList, a: Operand, b: Operand, g: Operand, ga: Operand, gb: Operand, side: Side, uplo: Uplo
) -> None:
    one, other = (g, b.conjugate()) if side is Side.LEFT else (b.T.conjugate(), g.T)
    syr2k.emit(launches, one, other, ga, TriangleUpdate(uplo, False, True, True))
    emit_scale(launches, 0.5, _diagonal(ga), zero=False)
    symm.emit(launches, a.conjugate(), g, gb, True, side, uplo, False)


def _diagonal(a: Operand) -> Operand:
    """Return the diagonal as a column."""
    return a._replace(cols=1, row_stride=a.row_stride + a.col_stride)


def of_triangular_product(
    a: Operand, b: Operand, g: Operand, ga: Operand, gb: Operand, side: Side, uplo: Uplo
) -> LaunchList:
    """Return the list of alpha A^H G, the gradient of B in A B for that of the result, G. It also has the
    triangle of alpha G B^H; of B A from the right.
    """
    return cached_launch_list(_emit_of_triangular_product, (a, b, g, ga, gb), (side, uplo), 3)


def _emit_of_triangular_product(
    launches: LaunchList, a: Operand, b: Operand, g: Operand, ga: Operand, gb: Operand, side: Side, uplo: Uplo
) -> None:
    up = b.T.conjugate()
    gemmtr.emit(
        launches, *((g, up) if side is Side.LEFT else (up, g)), ga, TriangleUpdate(uplo, False, True, True)
    )
    flags = side, uplo.flipped, Diag.NON_UNIT
    emit_into(launches, a.T.conjugate(), g, gb, trmm.emit, trmm.emit_apart, *flags)


def of_inverse(x: Operand, g: Operand, ga: Operand) -> LaunchList:
    """Return the list of -X^H G X^H, the gradient of A for that of its inverse X, G."""
    return cached_launch_list(_emit_of_inverse, (x, g, ga), (), 2)


def _emit_of_inverse(launches: LaunchList, x: Operand, g: Operand, ga: Operand) -> None:
    up = x.T.conjugate()
    with launches.temporary():
        product = launches.scratch(x.rows, x.cols, x.batch)
        emit_gemm(launches, -1.0, up, g, 0.0, product)
        emit_gemm(launches, 1.0, product, up, 0.0, ga)


def of_triangular_solution(
    a: Operand, x: Operand, g: Operand, ga: Operand, gb: Operand, side: Side, uplo: Uplo
) -> LaunchList:
    """Return the list of U = A^-H G, the gradient of B in A X = B, and the triangle of -U X^H; of X A = B
    from the right.
    """
    return cached_launch_list(_emit_of_triangular, (a, x, g, ga, gb), (side, uplo), 3)


def _emit_of_triangular(
    launches: LaunchList, a: Operand, x: Operand, g: Operand, ga: Operand, gb: Operand, side: Side, uplo: Uplo
) -> None:
    flags = trsm.emit, trsm.emit_apart, side, uplo.flipped, Diag.NON_UNIT
    with_alpha(launches, 1.0, lambda: emit_into(launches, a.T.conjugate(), g, gb, *flags))
    emit_zeros_beyond(launches, ga, uplo)
    _emit_outer(launches, gb, x, ga, side, Region.of(uplo))


def of_definite_solution(
    c: Operand, x: Operand, g: Operand, gc: Operand, gb: Operand, uplo: Uplo
) -> LaunchList:
    """Return the list of U = A^-1 G, the gradient of B in A X = B, from the Cholesky factor C. It also has
    that of C: the lower triangle of -(U X^H + X U^H) L, or its conjugate transpose.
    """
    return cached_launch_list(_emit_of_definite, (c, x, g, gc, gb), (uplo,), 3)


def _emit_of_definite(
    launches: LaunchList, c: Operand, x: Operand, g: Operand, gc: Operand, gb: Operand, uplo: Uplo
) -> None:
    up = c if uplo is Uplo.UPPER else c.T.conjugate()
    with launches.temporary():
        potrs.emit_apart(launches, c, g, gb, uplo)
    emit_zeros_beyond(launches, gc, uplo)
    beta, region = 0.0, Region.of(uplo)
    for one, other in ((gb, x), (x, gb)):
        with launches.temporary():
            moved = emit_copy_to_workspace(launches, other)
            _emit_product(launches, up, moved)
            left, right = (one, moved) if uplo is Uplo.LOWER else (moved, one)
            emit_gemm(launches, -1.0, left, right.T.conjugate(), beta, gc, region)
        beta = 1.0


def _emit_product(launches: LaunchList, up: Operand, b: Operand) -> None:
    with_alpha(launches, 1.0, lambda: trmm.emit(launches, up, b, Side.LEFT, Uplo.UPPER, Diag.NON_UNIT))


def of_solution(lu: Operand, piv: Operand, x: Operand, g: Operand, ga: Operand, gb: Operand) -> LaunchList:
    """Return the list of U = A^-H G, the gradient of B in A X = B, from the LU factors of A, and -U X^H."""
    return cached_launch_list(_emit_of_solution, (lu, piv, x, g, ga, gb), (), 4)


def _emit_of_solution(
    launches: LaunchList, lu: Operand, piv: Operand, x: Operand, g: Operand, ga: Operand, gb: Operand
) -> None:
    emit_copy(launches, 1.0, g, gb)
    getrs.emit(launches, piv, lu, gb, Trans.CONJ)
    _emit_outer(launches, gb, x, ga, Side.LEFT, Region.ALL)


def _emit_outer(
    launches: LaunchList, u: Operand, x: Operand, ga: Operand, side: Side, region: Region
) -> None:
    """Emit -U X^H, or -X^H U where A is on the right."""
    one, other = (u, x.T.conjugate()) if side is Side.LEFT else (x.T.conjugate(), u)
    emit_gemm(launches, -1.0, one, other, 0.0, ga, region)
