"""T X = alpha B with few right-hand sides as one launch (kernel `trsv`): where it applies, and its launch.

The recursion reads T as often, but as a chain of launches: a leaf and a narrow product for each of its steps.
"""

from __future__ import annotations

from dataclasses import replace

from ...dispatch.choose import select
from ...dispatch.leaf import runs
from ...gpu.device import current
from ...kernels.common.options import options_of
from ...kernels.registry import family_of
from ...kernels.trsv.config import STEM
from ...kernels.trsv.limits import MAX_COLS
from ...operands import Operand
from ...types import Diag
from ..launch_list import ALPHA, LaunchList

__all__ = ["applies", "emit"]


def applies(b: Operand) -> bool:
    """Whether the kernel can solve for a B like this one: a few columns of one matrix."""
    return b.batch == 1 and 0 < b.cols <= MAX_COLS and runs(STEM, current(b.device))


def emit(launches: LaunchList, t: Operand, b: Operand, diag: Diag, x: Operand | None = None) -> None:
    """Emit the launch; T is lower triangular and on the left. X is B by default."""
    device = current(launches.device)
    choice = select(STEM, launches.dtype, "", (b.rows, b.cols), device)
    config = choice.config.specialize(b.cols, device.shared_per_block)
    launches.choices.append(replace(choice, config=config))
    options = options_of(conj=t.conj, unit=diag is Diag.UNIT)
    operands = t, launches.flags(), b, b if x is None else x

    def integers(t: Operand, flags: Operand, *right: Operand) -> tuple:
        strides = (step for each in (t, *right) for step in (each.row_stride, each.col_stride))
        return b.rows, b.cols, options, *strides

    launches.emit(family_of(STEM).source(config), config.grid(b.rows), operands, integers, (ALPHA,))
