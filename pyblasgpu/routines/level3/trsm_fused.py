"""T X = alpha B, or that of triangles on T's diagonal, as one product that solves by the way
(`kernels.gemm.trsm_fused`): where, and its launches.

The recursion is a chain of launches: leaves, and between them products of few tiles. Here the tiles of a
strip wait for one another alone. Where B is large the recursion's products are faster, but for the last ones.
Then it ends early, in triangles of which each is one launch.
"""

from __future__ import annotations

from ...database import max_fused_order
from ...dispatch import trsm_fused as dispatch_trsm_fused
from ...dispatch.overrides import Algorithm, KernelChoice
from ...errors import BackendUnavailable
from ...gpu.device import current
from ...kernels.common.options import OVERWRITE, READS_Y, options_of
from ...kernels.registry import FAMILIES
from ...kernels.trsv.limits import MAX_COLS
from ...types import Diag, Region, Side
from ..launch_list import ALPHA, LaunchList
from .triangular import FusedOperands, TriangularSystem, fused_operands, leaf_orders

__all__ = ["emit", "emit_apart", "plan"]


def plan(launches: LaunchList, system: TriangularSystem, algorithm: Algorithm) -> dict[int, KernelChoice]:
    """Rows -> the kernel of each triangle that is solved in one launch: all, or what the recursion ends in.

    Empty where another algorithm is chosen, and where the kernel does not solve these operands. Then
    `fused_operands` has none, `trsv` has them, or there are more strips than flags.
    """
    b = system.b
    stop = max_fused_order(algorithm.name, b.rows)
    if not stop or b.cols <= MAX_COLS:
        return {}
    blocks = {rows: _fused_operands(system.block(0, rows)) for rows in leaf_orders(b.rows, stop)}
    if None in blocks.values():
        return {}
    try:
        return {rows: _choose(launches, operands) for rows, operands in blocks.items() if operands}
    except BackendUnavailable:
        return {}


def _fused_operands(system: TriangularSystem) -> FusedOperands | None:
    t, x, uplo, apart = system.forwards
    return fused_operands(t, x if apart is None else apart, Side.LEFT, uplo, apart and x)


def _choose(launches: LaunchList, operands: FusedOperands) -> KernelChoice:
    layout, extents, triangle = operands.layout, operands.extents, operands.triangle
    device, conj = current(launches.device), operands.t.conj
    return dispatch_trsm_fused.choose(launches.dtype, layout, extents, triangle, device, conj)


def emit(
    launches: LaunchList, choices: dict[int, KernelChoice], diag: Diag, block: TriangularSystem, alpha
) -> None:
    """Emit the launch that solves a triangle; `choices` are those of `plan`."""
    _emit(launches, choices, diag, block, (alpha, 1.0), 0)


def emit_apart(
    launches: LaunchList, choices: dict[int, KernelChoice], diag: Diag, block: TriangularSystem, adds: bool
) -> None:
    """Emit the launch that solves a triangle into another matrix, which alpha B is added to if it `adds`."""
    scalars = (1.0, ALPHA) if adds else (ALPHA, 1.0)
    _emit(launches, choices, diag, block, scalars, OVERWRITE | READS_Y * adds)


def _emit(
    launches: LaunchList,
    choices: dict[int, KernelChoice],
    diag: Diag,
    block: TriangularSystem,
    scalars: tuple,
    options: int,
) -> None:
    operands = _fused_operands(block)
    assert operands is not None  # a block has the layout of the whole
    t, b, c, triangle = operands
    choice = choices[block.b.rows]
    config, ldt = choice.config, operands.ldt
    launches.choices.append(choice)
    kernel = FAMILIES[config.STEM].source(config, conj=t.conj, triangle=triangle, solved=True)
    options |= options_of(Region.of(triangle.uplo), unit=diag is Diag.UNIT)
    arguments, grid = (t._replace(conj=False), b, c, launches.flags()), config.grid(c.rows, c.cols)
    integers = c.rows, c.cols, options, ldt, b.col_stride, c.col_stride
    launches.emit(kernel, grid, arguments, lambda *_: integers, scalars)
