"""A triangle of a sum of products, C := alpha1 A1 B1 + alpha2 A2 B2 + beta C: SYRK, HERK and their kin.

Each product is one of GEMM's whose kernel walks over the tiles that the triangle meets
(`kernels.common.region`), all of a batch together. Usually that is one launch and no scratch. Where k is
split or streamed, there are scratch and a further launch that sums. Of a tile that the diagonal crosses what
is beyond it is computed, too, but not written. The workspace is limited (`most_workspace`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...operands import Operand
from ...types import Region, Uplo
from ..copies import emit_scale, emit_zeros, emit_zeros_beyond, most_workspace
from ..launch_list import BETA, LaunchList, cached_launch_list
from .gemm import emit_gemm

__all__ = ["ProductTerm", "TriangleUpdate", "emit_triangle", "launch_list_of_triangle"]

SHORT = 64  # rows of C from which on its triangle is filled in less time than all of it


class ProductTerm(NamedTuple):
    """alpha A B, A of n rows, B of n columns; alpha as `LaunchList.emit` takes it."""

    alpha: Any
    a: Operand
    b: Operand


class TriangleUpdate(NamedTuple):
    """The part of C that is computed, and how.

    Attributes
    ----------
    uplo : Uplo
        The triangle that is computed; the other one is neither read nor written.
    hermitian : bool
        The imaginary parts of the diagonal are not read, and become zero.
    is_new_output : bool
        C is new, and beta zero: the other triangle is filled with zeros.
    overwrite : bool
        beta is zero: C is not read.
    """

    uplo: Uplo
    hermitian: bool
    is_new_output: bool
    overwrite: bool

    @property
    def region(self) -> Region:
        """The triangle as kernels take it."""
        return Region.of(self.uplo, self.hermitian)

    def clear_beyond(self, launches: LaunchList, c: Operand) -> None:
        """Emit zeros beyond the triangle of a new C, of which nothing is computed yet.

        Of a stack of small matrices all is filled: memory takes them whole sooner than the short columns of
        triangles.
        """
        if not self.is_new_output:
            return
        if c.batch > 1 and c.rows < SHORT:
            emit_zeros(launches, c)
        else:
            emit_zeros_beyond(launches, c, self.uplo)


def launch_list_of_triangle(
    emit: Callable[..., None],
    alpha,
    operands: tuple[Operand, ...],
    k: int,
    beta,
    uplo: Uplo,
    hermitian: bool,
    is_new_output: bool,
) -> LaunchList | None:
    """Return the launch list of ``emit(launches, *operands, triangle)``, or of beta C where alpha or k is
    zero.

    None where there is nothing to do. The last operand is C.
    """
    if operands[-1].is_empty:
        return None
    nothing = alpha == 0 or k == 0
    if nothing and beta == 1:
        return None
    triangle = TriangleUpdate(uplo, hermitian, is_new_output, overwrite=beta == 0)
    return cached_launch_list(_emit_beta if nothing else emit, operands, (triangle,))


def _emit_beta(launches: LaunchList, *operands_and_triangle) -> None:
    *_, c, triangle = operands_and_triangle
    triangle.clear_beyond(launches, c)
    emit_scale(launches, BETA, c, zero=triangle.overwrite, region=triangle.region)


def emit_triangle(
    launches: LaunchList, products: tuple[ProductTerm, ...], c: Operand, triangle: TriangleUpdate
) -> None:
    """Emit C := (the sum of `products`) + beta C in one triangle."""
    launches.workspace_limit = most_workspace(c)
    triangle.clear_beyond(launches, c)
    beta = 0.0 if triangle.overwrite else BETA
    for alpha, a, b in products:
        emit_gemm(launches, alpha, a, b, beta, c, triangle.region)
        beta = 1.0
