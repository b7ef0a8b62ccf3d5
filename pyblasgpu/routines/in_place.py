"""The operands of TRMM or TRSM as the fused kernels have them: `trmm_fused`, `trsm_fused`."""

from __future__ import annotations

from typing import NamedTuple

from ..dispatch.decisions import KernelChoice
from ..operands import Operand
from ..types import Side, Triangle, Uplo
from .gemm import alignments, contiguous

__all__ = ["Job", "Pair", "pair"]


class Pair(NamedTuple):
    """A triangle T and C, by columns, such that the product is T C or C T.

    Attributes
    ----------
    t, c : Operand
    triangle : Triangle
    """

    t: Operand
    c: Operand
    triangle: Triangle

    @property
    def of_a(self) -> bool:
        """Whether T is the kernel's A."""
        return self.triangle.on_left

    @property
    def operands(self) -> tuple[Operand, Operand]:
        """A and B of the kernel."""
        return (self.t, self.c) if self.of_a else (self.c, self.t)

    @property
    def conjs(self) -> tuple[bool, bool]:
        """Which of A and B is meant conjugated."""
        return (self.t.conj, False) if self.of_a else (False, self.t.conj)

    @property
    def layout(self) -> str:
        """That of A and B, as a GEMM Config tells layouts apart."""
        a, b = self.operands
        return "nt"[not contiguous(a)] + "nt"[not contiguous(b)]

    @property
    def extents(self) -> tuple[int, int, int]:
        """m, n, k of the product."""
        a, b = self.operands
        return a.rows, b.cols, self.t.rows

    @property
    def aligned(self) -> tuple[int, int]:
        """Bytes at multiples of which the columns of A, B begin, as `alignments` tells."""
        return alignments(self.layout, *self.operands)

    @property
    def lead(self) -> int:
        """Elements from one column of T, or row, to the next."""
        return self.t.col_stride if contiguous(self.t) else self.t.row_stride


class Job(NamedTuple):
    """A routine as a kernel has it.

    Attributes
    ----------
    pair : Pair
        T and C.
    choice : KernelChoice
        The Config of a GEMM kernel.
    """

    pair: Pair
    choice: KernelChoice


def pair(t: Operand, b: Operand, side: Side, uplo: Uplo) -> Pair | None:
    """The operands as a kernel has them.

    None where T or B has no unit stride, of batches, which keep the device busy by themselves, and where
    there is nothing.
    """
    if not contiguous(b) and contiguous(b.T):
        t, b, side, uplo = t.T, b.T, side.flipped, uplo.flipped
    if b.batch != 1 or b.is_empty or not contiguous(b) or not (contiguous(t) or contiguous(t.T)):
        return None
    return Pair(t, b, Triangle.of(uplo, side))
