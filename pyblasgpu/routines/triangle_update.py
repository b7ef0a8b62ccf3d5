"""A triangle of a sum of products, C := alpha1 A1 B1 + alpha2 A2 B2 + beta C: SYRK, HERK and their kin.

Each product is one of GEMM's whose kernel walks over the tiles that the triangle meets
(`kernels.common.region`), all of a batch together: usually one launch and no scratch, but where k is split or
streamed, scratch and a further launch that sums. Of a tile that the diagonal crosses what is beyond it is
computed, too, but not written. The workspace is limited (`trmm_by_levels.most_workspace`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..operands import Operand
from ..types import Region, Uplo
from .copy import record_scale
from .gemm import record_gemm
from .launch_list import BETA, Tape, recorded
from .trmm_by_levels import most_workspace

__all__ = ["Product", "TriangleUpdate", "record_beyond", "record_triangle", "tape_of_triangle"]


class Product(NamedTuple):
    """alpha A B, A of n rows, B of n columns; alpha as `Tape.launch` takes it."""

    alpha: Any
    a: Operand
    b: Operand


class TriangleUpdate(NamedTuple):
    """How C is meant.

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


def tape_of_triangle(
    record: Callable[..., None], alpha, operands: tuple[Operand, ...], k: int, beta, uplo: Uplo,
    hermitian: bool, is_new_output: bool,
) -> Tape | None:  # fmt: skip
    """The tape of ``record(tape, *operands, triangle)``, or of what remains of it where alpha or k is zero.

    None where there is nothing to do. The last operand is C.
    """
    if operands[-1].is_empty:
        return None
    nothing = alpha == 0 or k == 0
    if nothing and beta == 1:
        return None
    triangle = TriangleUpdate(uplo, hermitian, is_new_output, overwrite=beta == 0)
    return recorded(_record_beta if nothing else record, operands, (triangle,))


def _record_beta(tape: Tape, *operands_and_triangle) -> None:
    *_, c, triangle = operands_and_triangle
    record_beyond(tape, c, triangle)
    record_scale(tape, BETA, c, zero=triangle.overwrite, region=triangle.region)


def record_beyond(tape: Tape, c: Operand, triangle: TriangleUpdate) -> None:
    """Record that what is beyond the triangle of a new C is filled with zeros."""
    if triangle.is_new_output:
        beyond = c.T if triangle.uplo is Uplo.LOWER else c
        record_scale(tape, 0.0, beyond, zero=True, region=Region.STRICT_LOWER)


def record_triangle(tape: Tape, products: tuple[Product, ...], c: Operand, triangle: TriangleUpdate) -> None:
    """Record C := (the sum of `products`) + beta C in one triangle."""
    tape.limit = most_workspace(c)
    record_beyond(tape, c, triangle)
    beta = 0.0 if triangle.overwrite else BETA
    for alpha, a, b in products:
        record_gemm(tape, alpha, a, b, beta, c, triangle.region)
        beta = 1.0
