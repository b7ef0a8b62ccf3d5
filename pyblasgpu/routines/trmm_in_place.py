"""B := alpha T B, or alpha B T, as one product in place (`kernels.gemm.trmm_fused`): where, and its record.

The recursion does as much by products of half the order, a quarter, ..., and by leaves, in a chain; its
levels, which are no chain, go through a copy of B. Here nothing is copied but the blocks on T's diagonal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ..dispatch.choose import select
from ..dispatch.decisions import KernelChoice
from ..errors import BackendUnavailable
from ..gpu.device import current
from ..kernels.gemm import trmm_fused as trmm_fused
from ..kernels.registry import FAMILIES
from ..kernels.trmm import diagonal_blocks
from ..operands import Operand
from ..types import Diag, Side, Uplo
from .gemm import contiguous, match_alignment
from .in_place import Job, Pair, pair
from .launch_list import ALPHA, Tape
from .trmm_by_levels import most_workspace

__all__ = ["InPlace", "plan", "record"]


class InPlace(Job):
    """A TRMM as the kernel has it, C := alpha T C or C := alpha C T, C by columns."""

    @property
    def block(self) -> int:
        """Order of a diagonal block."""
        return trmm_fused.tile_orders(self.choice.config, self.pair.triangle)[0]

    @property
    def scratch(self) -> tuple[int, int]:
        """Elements of the copy of the diagonal blocks, and flags, an element each."""
        _, c, triangle = self.pair
        levels, strips = trmm_fused.tile_counts(self.choice.config, triangle, c.rows, c.cols)
        return levels * self.block**2, levels * strips


def plan(tape: Tape, t: Operand, b: Operand, side: Side, uplo: Uplo) -> InPlace | None:
    """How the kernel multiplies these operands; None where it does not, or not well.

    It does not where `pair` has none, nor where its scratch is more than the workspace may be.
    """
    found = pair(t, b, side, uplo)
    if found is None:
        return None
    try:
        choice = _choose(tape, found)
    except BackendUnavailable:
        return None
    job = InPlace(found, choice)
    return job if tape.dtype.itemsize * sum(job.scratch) <= most_workspace(b) else None


def _choose(tape: Tape, pair: Pair) -> KernelChoice:
    device, triangle, aligned = current(tape.device), pair.triangle, pair.aligned
    found = select("gemm", tape.dtype, pair.layout, pair.extents, device, region=triangle, aligned=aligned)
    return replace(found, config=match_alignment(found.config, *pair.operands))


def record(tape: Tape, job: InPlace, diag: Diag) -> None:
    """Record the two launches."""
    tape.choices.append(job.choice)
    (t, c, triangle), config = job.pair, cast(Any, job.choice.config)
    lead = job.pair.lead
    with tape.temporary():
        blocks, flags = (tape.scratch(count, 1, 1) for count in job.scratch)
        _record_blocks(tape, job, diag, (blocks, flags), (t.rows, job.block, flags.rows, lead))
        kernel = FAMILIES[config.STEM].source(config, *job.pair.conjs, triangle=triangle)
        operands, grid = (t._replace(conj=False), blocks, flags, c), config.grid(c.rows, c.cols)
        tape.launch(kernel, grid, operands, lambda *_: (c.rows, c.cols, lead, c.col_stride), (ALPHA,))


def _record_blocks(tape: Tape, job: InPlace, diag: Diag, scratch: tuple, integers: tuple) -> None:
    """The diagonal blocks of T into scratch, and flags."""
    t, _, triangle = job.pair
    choice = select(diagonal_blocks.STEM, tape.dtype, "", (t.rows,), current(tape.device))
    kernel = diagonal_blocks.source(choice.config, triangle.uplo, diag is Diag.UNIT, contiguous(t))
    operands, blocks = (t, *scratch), choice.config.grid(*integers[:2])
    tape.launch(kernel, blocks, operands, lambda *_: integers, ())
