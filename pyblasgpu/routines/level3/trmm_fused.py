"""C := alpha T B, or alpha B T, as one product (`kernels.gemm.trmm_fused`): where, and its launches.

The recursion does as much by products of half the order, a quarter, ..., and by leaves, in a chain; its
levels, which are no chain, go through a copy of B. Here nothing is copied but the blocks on T's diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

from ...dispatch.choose import select
from ...dispatch.overrides import KernelChoice
from ...errors import BackendUnavailable
from ...gpu.device import current
from ...kernels.common.options import OVERWRITE, options_of
from ...kernels.gemm.fused import tile_counts, tile_orders
from ...kernels.registry import FAMILIES
from ...operands import Operand
from ...types import Diag, Region, Side, Uplo
from ..copies import most_workspace
from ..launch_list import ALPHA, LaunchList
from .diagonal_copies import emit_blocks
from .triangular import FusedOperands, fused_operands

__all__ = ["FusedTrmm", "emit", "plan"]


class FusedTrmm(NamedTuple):
    """A TRMM as the kernel has it, C := alpha T B or C := alpha B T.

    Attributes
    ----------
    operands : FusedOperands
    choice : KernelChoice
        The Config of a GEMM kernel.
    """

    operands: FusedOperands
    choice: KernelChoice

    @property
    def block(self) -> int:
        """Order of a diagonal block."""
        return tile_orders(self.choice.config, self.operands.triangle)[0]

    @property
    def scratch(self) -> tuple[int, int]:
        """Elements of the copy of the diagonal blocks, and flags, an element each."""
        _, _, c, triangle = self.operands
        levels, strips = tile_counts(self.choice.config, triangle, c.rows, c.cols)
        return levels * self.block**2, levels * strips


def plan(
    launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo, out: Operand | None = None
) -> FusedTrmm | None:
    """Return the kernel's plan for these operands; None where it does not serve, or not well.

    It does not where `fused_operands` has none, nor where its scratch is more than the workspace may be.
    """
    operands = fused_operands(t, b, side, uplo, out)
    if operands is None:
        return None
    try:
        choice = _choose(launches, operands)
    except BackendUnavailable:
        return None
    fused = FusedTrmm(operands, choice)
    return fused if launches.dtype.itemsize * sum(fused.scratch) <= most_workspace(b) else None


def _choose(launches: LaunchList, operands: FusedOperands) -> KernelChoice:
    device, triangle, aligned = current(launches.device), operands.triangle, operands.aligned
    problem = "gemm", launches.dtype, operands.layout, operands.extents, device
    return select(*problem, region=triangle, aligned=aligned, conjs=(operands.t.conj, False))


def emit(launches: LaunchList, fused: FusedTrmm, diag: Diag) -> None:
    """Emit the two launches."""
    launches.choices.append(fused.choice)
    (t, b, c, triangle), config = fused.operands, fused.choice.config
    with launches.temporary():
        blocks, flags = (launches.scratch(count, 1, 1) for count in fused.scratch)
        emit_blocks(launches, t, triangle.uplo, diag, fused.block, blocks, flags)
        options = options_of(Region.of(triangle.uplo)) | OVERWRITE * (c is not b)
        integers = c.rows, c.cols, options, fused.operands.ldt, b.col_stride, c.col_stride
        kernel = FAMILIES[config.STEM].source(config, conj=t.conj, triangle=triangle)
        operands, grid = (t._replace(conj=False), blocks, flags, b, c), config.grid(c.rows, c.cols)
        launches.emit(kernel, grid, operands, lambda *_: integers, (ALPHA,))
