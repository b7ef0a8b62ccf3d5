"""A triangle of a sum of products, C := alpha1 A1 B1 + alpha2 A2 B2 + beta C: SYRK, HERK and their kin.

An upper triangle is the lower one of the transposed sum. What is below the diagonal blocks of the lower one
are products like any other, written in place, those of a level as one batch (`levels`):

    [P11            ]      P11, P22, P33, P44 into scratch, their triangles into C
    [C21 P22        ]      C21, C43                                  one launch a product
    [C31 C32 P33    ]      [C31 C32; C41 C42]                        one launch a product
    [C41 C42 C43 P44]

The diagonal blocks are computed whole: with them there are n (n + stop) k multiplications instead of n^2 k.
They take at most `levels.MOST_COPIED` bytes of scratch at a time. A C without unit stride is packed as by
GEMM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..operands import Operand
from ..types import Uplo
from .copy import record_copy, record_scale
from .gemm import record_gemm
from .levels import below, diagonal, order_of_blocks, portions, repeated
from .tape import BETA, Tape, recorded

__all__ = ["Product", "Triangle", "record_triangle", "tape_of_triangle"]

TOGETHER = 1 << 21  # elements of all diagonal blocks: enough tiles for a device, and 32 MiB at most
SMALLEST = 256  # order of a diagonal block


class Product(NamedTuple):
    """alpha A B, A of n rows, B of n columns; alpha as `Tape.launch` takes it."""

    alpha: Any
    a: Operand
    b: Operand


class Triangle(NamedTuple):
    """How C is meant.

    Attributes
    ----------
    uplo : Uplo
        The triangle that is computed; the other one is neither read nor written.
    hermitian : bool
        The imaginary parts of the diagonal are not read, and become zero.
    fresh : bool
        C is new, and beta zero: the other triangle is filled with zeros.
    overwrite : bool
        beta is zero: C is not read.
    """

    uplo: Uplo
    hermitian: bool
    fresh: bool
    overwrite: bool

    @property
    def part(self) -> str:
        """As `copy_scaled` names it, of the lower triangle."""
        return "hermitian" if self.hermitian else "lower"


def tape_of_triangle(
    record: Callable[..., None], alpha, operands: tuple[Operand, ...], k: int, beta, uplo: Uplo,
    hermitian: bool, fresh: bool,
) -> Tape | None:  # fmt: skip
    """The tape of ``record(tape, *operands, triangle)``, or of what remains of it where alpha or k is zero.

    None where there is nothing to do. The last operand is C.
    """
    if operands[-1].is_empty:
        return None
    nothing = alpha == 0 or k == 0
    if nothing and beta == 1:
        return None
    triangle = Triangle(uplo, hermitian, fresh, overwrite=beta == 0)
    return recorded(_record_beta if nothing else record, operands, (triangle,))


def _record_beta(tape: Tape, *operands_and_triangle) -> None:
    *_, c, triangle = operands_and_triangle
    c = _begin(tape, c, triangle)
    record_scale(tape, BETA, c, zero=triangle.overwrite, part=triangle.part)


def _begin(tape: Tape, c: Operand, triangle: Triangle) -> Operand:
    """C with the triangle below the diagonal; what is above is filled with zeros if C is new."""
    c = c if triangle.uplo is Uplo.LOWER else c.T
    if triangle.fresh:
        record_scale(tape, 0.0, c.T, zero=True, part="strict")
    return c


def record_triangle(tape: Tape, products: tuple[Product, ...], c: Operand, triangle: Triangle) -> None:
    """Record C := (the sum of `products`) + beta C in one triangle."""
    if triangle.uplo is Uplo.UPPER:
        products = tuple([Product(alpha, b.T, a.T) for alpha, a, b in products])
    c, beta = _begin(tape, c, triangle), 0.0 if triangle.overwrite else BETA
    stop, k = _stop(tape, c), products[0].a.cols
    for first, rows, count in diagonal(c.rows, stop, c.batch):
        terms = [
            Product(alpha, repeated(a.block(first, 0, rows, k), stop, 0, count),
                    repeated(b.block(0, first, k, rows), 0, stop, count))
            for alpha, a, b in products
        ]  # fmt: skip
        c11 = repeated(c.block(first, first, rows, rows), stop, stop, count)
        _record_diagonal(tape, terms, beta, c11, triangle.part)
    for height, first, rows, count in below(c.rows, stop, c.batch):
        period, above = 2 * height, first - height
        terms = [
            Product(alpha, repeated(a.block(first, 0, rows, k), period, 0, count),
                    repeated(b.block(0, above, k, height), 0, period, count))
            for alpha, a, b in products
        ]  # fmt: skip
        c21 = repeated(c.block(first, above, rows, height), period, period, count)
        _record_sum(tape, terms, beta, c21)


def _record_diagonal(tape: Tape, terms: list[Product], beta, c: Operand, part: str) -> None:
    """Triangles of a batch of diagonal blocks, by way of scratch."""
    for first, count in portions(c.batch, c.rows * c.cols * tape.dtype.itemsize):
        some = [Product(alpha, a.matrices(first, count), b.matrices(first, count)) for alpha, a, b in terms]
        block = c.matrices(first, count)
        with tape.temporary():
            whole = tape.scratch(c.rows, c.cols, count)
            if beta != 0:
                record_copy(tape, 1.0, block, whole, part)
            _record_sum(tape, some, beta, whole)
            record_copy(tape, 1.0, whole, block, part)


def _record_sum(tape: Tape, terms: list[Product], beta, c: Operand) -> None:
    for alpha, a, b in terms:
        record_gemm(tape, alpha, a, b, beta, c)
        beta = 1.0


def _stop(tape: Tape, c: Operand) -> int:
    """The order of the diagonal blocks, by default by how many elements they have.

    Blocks that are larger cost more multiplications, smaller ones more launches that do not fill a device.
    """
    return order_of_blocks(tape, "syrk", c.rows, max(TOGETHER // (c.rows * c.batch), SMALLEST))
