"""T X = alpha B, or that of triangles on T's diagonal, as one product that solves by the way
(`kernels.gemm.trsm_fused`): where, and its launches.

The recursion is a chain of launches: leaves, and between them products of few tiles. Here the tiles of a
strip wait for one another alone. Where B is large the recursion's products are faster, but for the last ones:
then it ends early, in triangles of which each is one launch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ..database import max_fused_order
from ..dispatch import trsm_fused as dispatch_trsm_fused
from ..dispatch.decisions import Algorithm
from ..errors import BackendUnavailable
from ..gpu.device import current
from ..kernels.registry import FAMILIES
from ..kernels.trsv import kernel as trsv
from ..operands import Operand
from ..types import Diag, Side, Uplo
from .gemm import match_alignment
from .launch_list import LaunchList
from .triangular import FusedLaunch, FusedOperands, Leaf, fused_operands, schedule

__all__ = ["fused_order", "job", "emit"]


def fused_order(launches: LaunchList, t: Operand, b: Operand, algorithm: Algorithm) -> int:
    """Up to how many rows triangles are solved in one launch, all, or those in which the recursion ends.

    T is lower triangular and stands on the left. 0 where another algorithm is chosen, and where the kernel
    does not solve these operands: `fused_operands` has none, `trsv` has them, or there are more strips than
    flags.
    """
    rows = max_fused_order(algorithm.name, b.rows)
    if not rows or _fused_operands(t, b) is None or b.cols <= trsv.MOST_COLS:
        return 0
    try:
        for height in {step.last - step.first for step in schedule(b.rows, rows) if isinstance(step, Leaf)}:
            job(launches, t.block(0, 0, height, height), b.block(0, 0, height, b.cols))
    except BackendUnavailable:
        return 0
    return rows


def _fused_operands(t: Operand, b: Operand) -> FusedOperands | None:
    """The operands as the kernel has them; T is lower triangular and stands on the left."""
    if b.row_stride < 0:  # an upper one, read backwards
        return fused_operands(t.flip(rows=True, cols=True), b.flip(rows=True), Side.LEFT, Uplo.UPPER)
    return fused_operands(t, b, Side.LEFT, Uplo.LOWER)


def job(launches: LaunchList, t: Operand, b: Operand) -> FusedLaunch:
    """One launch, of operands that lie as those of which `fused_order` was asked.

    Raises
    ------
    BackendUnavailable
        Where no kernel can run on the device, with as many flags as it has.
    """
    found = cast(FusedOperands, _fused_operands(t, b))
    choice = dispatch_trsm_fused.choose(
        launches.dtype, found.layout, found.extents, found.triangle, current(launches.device)
    )
    return FusedLaunch(
        found, replace(choice, config=match_alignment(cast(Any, choice.config), *found.factors))
    )


def emit(launches: LaunchList, diag: Diag, t: Operand, b: Operand, alpha) -> None:
    """Emit the launch for a triangle of at most `fused_order` rows."""
    one = job(launches, t, b)
    (t, c, triangle), config, lead = one.operands, cast(Any, one.choice.config), one.operands.lead
    launches.choices.append(one.choice)
    kernel = FAMILIES[config.STEM].source(config, *one.operands.conjs, triangle=triangle, solved=diag)
    operands, grid = (t._replace(conj=False), c, launches.flags()), config.grid(c.rows, c.cols)
    launches.emit(kernel, grid, operands, lambda *_: (c.rows, c.cols, lead, c.col_stride), (alpha,))
