"""C := alpha T B, or alpha B T, of stacks by `kernels.trmm.small`: where, and its launches.

Larger triangles are multiplied by levels (`trmm_by_levels`), out of place, all their diagonal blocks in one
launch.
"""

from __future__ import annotations

from typing import NamedTuple

from ...dispatch.choose import select
from ...dispatch.overrides import KernelChoice
from ...gpu.device import current
from ...kernels.common.options import options_of
from ...kernels.trmm.small import STEM, source
from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..copies import is_readable, most_workspace
from ..launch_list import ALPHA, LaunchList
from . import trmm_by_levels
from .triangular import on_left

__all__ = ["SmallTrmm", "emit", "plan"]


class SmallTrmm(NamedTuple):
    """A TRMM of small triangles as the kernel has it, T lower triangular and on the left.

    Attributes
    ----------
    t, b, c : Operand
        C is B in place.
    choice : KernelChoice
    """

    t: Operand
    b: Operand
    c: Operand
    choice: KernelChoice


def plan(
    launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo, out: Operand | None = None
) -> SmallTrmm | None:
    """Return the kernel's plan for these stacks; None where an operand is not readable, or T too large for
    its product to replace B.
    """
    choice = select(STEM, launches.dtype, "", (t.rows,), current(launches.device))
    if t.rows > choice.config.ORDER and out is None:
        return None
    if not all(map(is_readable, (t, b) if out is None else (t, b, out))):
        return None
    system = on_left(t, b, side, uplo, out).lower
    return SmallTrmm(system.t, system.source, system.b, choice)


def emit(launches: LaunchList, small: SmallTrmm, diag: Diag) -> None:
    """Emit the launch, and the products of larger triangles."""
    t, b, c, choice = small
    launches.choices.append(choice)
    arrangement = choice.config.arrangement(b.rows, b.cols)
    options = options_of(conj=t.conj, unit=diag is Diag.UNIT)

    def integers(*operands: Operand) -> tuple[int, ...]:
        strides = (step for each in operands for step in (each.row_stride, each.col_stride))
        steps = (each.batch_stride for each in operands)
        return b.rows, b.cols, options, *arrangement, b.batch, *strides, *steps

    blocks = arrangement.grid(b.cols, b.batch)
    launches.emit_batch(source(choice.config), blocks, (t, b, c), integers, (ALPHA,))
    if arrangement.blocks > 1:
        launches.workspace_limit = launches.workspace_bytes + most_workspace(b)
        trmm_by_levels.emit_updates(launches, t, b, c, ALPHA, arrangement.order)
