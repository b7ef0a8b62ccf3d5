"""T X = alpha B with few right-hand sides as one launch (kernel `trsv`): where that serves, and its record.

The recursion reads T as often, but as a chain of launches: a leaf and a narrow product for each of its steps.
"""

from __future__ import annotations

from dataclasses import replace

from ..dispatch.choose import select
from ..dispatch.leaf import runs
from ..dispatch.overrides import given
from ..gpu.device import current
from ..kernels.common.triangle_panel import Variant
from ..kernels.trsv import kernel as trsv
from ..operands import Operand
from ..types import Diag
from .launch_list import ALPHA, Tape

__all__ = ["SMALL", "record", "serves"]

SMALL = 256  # rows that one leaf solves in one launch, as the recursion does without measurements


def serves(b: Operand) -> bool:
    """Whether a B like this one is solved in one launch.

    It is not where there is but a leaf, not of batches, which keep the device busy by themselves, not where a
    stop size is asked for, and so the recursion, and not where the device cannot run the kernel.
    """
    if b.batch != 1 or not 0 < b.cols <= trsv.MOST_COLS:
        return False
    asked = given("one_launch")
    if asked is not None:
        return asked
    return b.rows > SMALL and given("trsm") is None and runs(trsv.STEM, current(b.device))


def record(tape: Tape, t: Operand, b: Operand, diag: Diag) -> None:
    """Record the launch; T is lower triangular and stands on the left."""
    device = current(tape.device)
    choice = select(trsv.STEM, tape.dtype, "", (b.rows, b.cols), device)
    config = choice.config.serving(b.cols, device.shared_per_block)
    tape.choices.append(replace(choice, config=config))
    # how a few columns of B lie makes no other kernel
    variant = Variant(unit=diag is Diag.UNIT, conj=t.conj, t_by_rows=t.by_rows, b_by_rows=True)
    operands = t, tape.flags(), b
    tape.launch(trsv.source(config, variant), config.grid(b.rows), operands, _integers, (ALPHA,))


def _integers(t: Operand, flags: Operand, b: Operand) -> tuple:
    return b.rows, b.cols, t.row_stride, t.col_stride, b.row_stride, b.col_stride
