"""C := alpha T B, or alpha B T, of stacks by `kernels.gemm.trmm_stack`: where, and its launches.

The recursion would take a chain of leaves and products over the whole stack. T is read by columns: another T,
and a conjugated one, is copied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...dispatch.choose import select
from ...dispatch.operand_copies import ALIGNED
from ...dispatch.overrides import OVERRIDE, KernelChoice
from ...gpu.device import current
from ...kernels.common.options import OVERWRITE, options_of
from ...kernels.gemm.trmm_stack import STEM, source
from ...operands import Operand
from ...types import Diag, Region, Side, Uplo
from ..copies import emit_copy, is_beyond, is_readable
from ..launch_list import ALPHA, LaunchList
from .diagonal_copies import emit_blocks
from .gemm import contiguous
from .symm import batch_portions
from .triangular import FusedOperands, fused_operands

__all__ = ["StackedTrmm", "emit", "plan"]


class StackedTrmm(NamedTuple):
    """A TRMM of stacks as the kernel has it.

    Attributes
    ----------
    operands : FusedOperands
    choice : KernelChoice
    """

    operands: FusedOperands
    choice: KernelChoice

    @property
    def copies_t(self) -> bool:
        """Whether T is copied."""
        return self.operands.t.conj or not contiguous(self.operands.t)

    @property
    def scratch(self) -> int:
        """Elements of scratch for each matrix: the diagonal blocks, a flag a tile, and a copy of T."""
        _, _, c, _ = self.operands
        config, order = self.choice.config, self.operands.t.rows
        levels = -(-order // config.BLK)
        return levels * config.BLK**2 + config.grid(c.rows, c.cols) + self.copies_t * order * (order + 32)


def plan(
    launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo, out: Operand | None = None
) -> StackedTrmm | None:
    """Return the kernel's plan for these stacks; None where `fused_operands` has none, the device has too
    little shared memory, or an override allows too little workspace.
    """
    operands = fused_operands(t, b, side, uplo, out, stacked=True)
    if operands is None or not is_readable(t):
        return None
    device = current(launches.device)
    choice = select(STEM, launches.dtype, "", (t.rows,), device)
    config, c = choice.config, operands.c
    if choice.origin != OVERRIDE:
        config = config.on(device).at(c.rows, c.cols, c.batch, device)
    config = replace(config, on_left=operands.of_a)
    if source(config).shared_bytes > device.shared_per_block:
        return None
    stacked = StackedTrmm(operands, replace(choice, config=config))
    return None if is_beyond(stacked.scratch * launches.dtype.itemsize) else stacked


def emit(launches: LaunchList, stacked: StackedTrmm, diag: Diag) -> None:
    """Emit the launches, for as many matrices at a time as scratch allows."""
    launches.choices.append(stacked.choice)
    (t, b, c, triangle), each = stacked.operands, stacked.scratch * launches.dtype.itemsize
    for first, count in batch_portions(c.batch, each):
        t1, b1, c1 = (x.matrices(first, count) for x in (t, b, c))
        part = FusedOperands(t1, b1, c1, triangle)
        with launches.temporary():
            _emit_portion(launches, stacked._replace(operands=part), diag)


def _emit_portion(launches: LaunchList, stacked: StackedTrmm, diag: Diag) -> None:
    """The diagonal blocks and flags, and the products; of a T that is shared one copy."""
    (t, b, c, triangle), config = stacked.operands, stacked.choice.config
    count, tiles = c.batch, config.grid(c.rows, c.cols)
    one = t if t.batch_stride else t.matrices(0, 1)
    if stacked.copies_t:
        one = _copy_by_columns(launches, one, triangle.uplo)
    blocks = launches.scratch(-(-one.rows // config.BLK) * config.BLK**2, 1, one.batch)
    flags = launches.scratch(tiles * count, 1, 1)
    emit_blocks(launches, one, triangle.uplo, diag, config.BLK, blocks, flags)
    shared = [x if x.batch == count else x._replace(batch=count, batch_stride=0) for x in (one, blocks)]
    operands = (*shared, flags, b, c)
    options = options_of(Region.of(triangle.uplo)) | OVERWRITE * (c.pointer != b.pointer)

    def integers(t: Operand, blocks: Operand, _: Operand, b: Operand, c: Operand) -> tuple:
        leading_dimensions = (x.col_stride for x in (t, b, c))
        steps = t.batch_stride, blocks.batch_stride, tiles, b.batch_stride, c.batch_stride
        return c.rows, c.cols, options, *leading_dimensions, *steps

    launches.emit(source(config), tiles, operands, integers, (ALPHA,))


def _copy_by_columns(launches: LaunchList, t: Operand, uplo: Uplo) -> Operand:
    """A copy of the triangle by columns, its conjugation done; beyond the triangle nothing is written."""
    copy = launches.scratch(t.rows, t.cols, t.batch, ALIGNED)
    turned = uplo is Uplo.UPPER
    emit_copy(launches, 1.0, t.T if turned else t, copy.T if turned else copy, Region.LOWER)
    return copy
