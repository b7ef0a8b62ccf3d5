"""B := alpha T B, or alpha B T, as one product in place (`kernels.gemm_in_place`): where, and its record.

The recursion does as much by products of half the order, a quarter, ..., and by leaves, in a chain; its
levels, which are no chain, go through a copy of B. Here nothing is copied but the blocks on T's diagonal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import BackendUnavailable
from ..gpu.device import Device, current
from ..kernels import diagonal_blocks, gemm_in_place
from ..operands import Operand
from ..tuning.overrides import given
from ..tuning.score import in_place_cycles
from ..tuning.select import Choice, select
from ..types import Diag, Side, Uplo
from .gemm import SOURCES, alignments, contiguous, fitted
from .recursion import most_workspace
from .tape import ALPHA, Tape

__all__ = ["InPlace", "plan", "record"]

LEAF = 64  # rows up to which a triangle is a leaf, one launch as well
#: Rows up to which it is ahead of the recursion, where that is not always so: the tiles with which complex
#: FMAs are fastest are too large, and have no registers left.
MOST = {"c": 2048}
SHORT = 1024  # rows of a triangle that is multiplied before a chain of launches is over
UNEVEN = 2.25  # times its share that the longest tile may take


class InPlace(NamedTuple):
    """A TRMM as the kernel has it, C := alpha T C or C := alpha C T, C by columns.

    Attributes
    ----------
    t, c : Operand
    triangle : str
        As `gemm_in_place` names it.
    choice : Choice
        The Config of a GEMM kernel.
    """

    t: Operand
    c: Operand
    triangle: str
    choice: Choice

    @property
    def of_a(self) -> bool:
        """Whether T is the kernel's A."""
        return self.triangle.endswith("a")

    @property
    def block(self) -> int:
        """Order of a diagonal block."""
        return gemm_in_place.tile_orders(self.choice.config, self.triangle)[0]

    @property
    def scratch(self) -> tuple[int, int]:
        """Elements of the copy of the diagonal blocks, and flags, an element each."""
        c = self.c
        levels, strips = gemm_in_place.tile_counts(self.choice.config, self.triangle, c.rows, c.cols)
        return levels * self.block**2, levels * strips


def plan(tape: Tape, t: Operand, b: Operand, side: Side, uplo: Uplo) -> InPlace | None:
    """How the kernel multiplies these operands; None where it does not, or not well.

    It does not where T or B has no unit stride, nor batches, which keep the device busy by themselves; nor
    where the longest tile takes much longer than an even share of all, but for triangles so small that a
    chain of launches takes longer still; nor where a stop size is asked for, and so the recursion.
    """
    if not contiguous(b) and contiguous(b.T):
        t, b, side, uplo = t.T, b.T, side.flipped, uplo.flipped
    can = b.batch == 1 and not b.is_empty and contiguous(b) and (contiguous(t) or contiguous(t.T))
    asked = given("in_place")
    if not can or not (_is_likely(t) if asked is None else asked):
        return None
    triangle = f"{uplo.name.lower()}_{'a' if side is Side.LEFT else 'b'}"
    try:
        choice = _choose(tape, t, b, triangle)
    except BackendUnavailable:
        return None
    job = InPlace(t, b, triangle, choice)
    if tape.dtype.itemsize * sum(job.scratch) > most_workspace(b):
        return None
    return job if asked or t.rows <= SHORT or _is_even(job, current(tape.device)) else None


def _is_likely(t: Operand) -> bool:
    """Whether a triangle like this one may be served, before a Config is looked for."""
    return LEAF < t.rows <= MOST.get(t.dtype.letter, t.rows) and given("trmm") is None


def _choose(tape: Tape, t: Operand, b: Operand, triangle: str) -> Choice:
    a, b = (t, b) if triangle.endswith("a") else (b, t)
    layout = "nt"[not contiguous(a)] + "nt"[not contiguous(b)]
    extents, aligned = (a.rows, b.cols, t.rows), alignments(layout, a, b)
    found = select("gemm", tape.dtype, layout, extents, current(tape.device), part=triangle, aligned=aligned)
    return replace(found, config=fitted(found.config, a, b))


def _is_even(job: InPlace, device: Device) -> bool:
    """Whether the longest tile is not what the others wait for."""
    extents = job.c.rows, job.c.cols, job.t.rows
    share, longest = in_place_cycles(job.choice.config, extents, device, job.triangle)
    return longest <= UNEVEN * share


def record(tape: Tape, job: InPlace, diag: Diag) -> None:
    """Record the two launches."""
    t, c, triangle, choice = job
    tape.choices.append(choice)
    config: Any = choice.config
    lead = t.col_stride if contiguous(t) else t.row_stride
    with tape.temporary():
        blocks, flags = (tape.scratch(count, 1, 1) for count in job.scratch)
        _record_blocks(tape, job, diag, (blocks, flags), (t.rows, job.block, flags.rows, lead))
        conjs = (t.conj, False) if job.of_a else (False, t.conj)
        kernel = SOURCES[config.STEM](config, *conjs, triangle=triangle)
        operands, grid = (t._replace(conj=False), blocks, flags, c), config.grid(c.rows, c.cols)
        tape.launch(kernel, grid, operands, lambda *_: (c.rows, c.cols, lead, c.col_stride), (ALPHA,))


def _record_blocks(tape: Tape, job: InPlace, diag: Diag, scratch: tuple, integers: tuple) -> None:
    """The diagonal blocks of T into scratch, and flags."""
    choice = select(diagonal_blocks.STEM, tape.dtype, "", (job.t.rows,), current(tape.device))
    uplo, _, _ = job.triangle.partition("_")
    kernel = diagonal_blocks.source(choice.config, uplo, diag is Diag.UNIT, contiguous(job.t))
    operands, blocks = (job.t, *scratch), choice.config.grid(*integers[:2])
    tape.launch(kernel, blocks, operands, lambda *_: integers, ())
