"""The operands of TRMM or TRSM as the kernels have them that work in place: `trmm_fused`, `trsm_fused`;
and what says that these serve.
"""

from __future__ import annotations

from typing import NamedTuple

from ..database import METHODS, RECURSION, nearest_places, way_of
from ..dispatch.leaf import Choice, choose_method
from ..dispatch.overrides import given
from ..gpu.device import Device
from ..operands import Operand
from ..types import Side, Triangle, Uplo
from .gemm import alignments, contiguous
from .launch_list import Tape
from .recursion import leaves_asked

__all__ = ["LEAF", "Job", "Pair", "pair", "said"]

LEAF = 64  # rows up to which a triangle is a leaf, one launch as well: of such no place tells


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
    choice : Choice
        The Config of a GEMM kernel.
    """

    pair: Pair
    choice: Choice


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


def said(tape: Tape, routine: str, t: Operand, b: Operand, device: Device) -> Choice | None:
    """The way of 'trmm' or 'trsm' that is asked for, or else was the fastest at the nearest place of which a
    file tells, one of `ways_of`; None: to be decided.

    The recursion is put among the tape's choices.
    """
    found = _asked(routine)
    if found is None and t.rows > LEAF:
        others = b.rows * b.cols // t.rows
        found = choose_method(routine, t.dtype.letter, nearest_places(t.rows, others), device)
    if found and found.config == RECURSION:
        tape.choices.append(found)
    return found


def _asked(routine: str) -> Choice | None:
    """What overrides say: of leaves, or of a stop size, that it is the recursion."""
    asked = given(METHODS[routine])
    if asked is None:
        return Choice(RECURSION, "override") if leaves_asked(routine) else None
    return Choice(way_of(routine, asked), "override")
