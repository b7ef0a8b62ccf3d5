"""The Cholesky factor of a matrix, or of each of few, by panels of columns, with all rows below: no TRSM.

The columns are halved until a panel is left. It is factored and the rows below it are solved by one launch
(`kernels.factor.cholesky.potrf_panel`). Then what is right of it is updated, a triangle and the rows below:

    [A11    ]      factor [A11; A21; A31] = [L11; L21; L31] L11^H
    [A21 A22]      [A22; A32] -= [L21; L31] L21^H (GEMM; of A22 the triangle)
    [A31 A32]      factor [A22; A32]

It is for matrices whose rows fill the device once: of more rows, or matrices, blocks would factor the panel
again and again.
"""

from __future__ import annotations

from ...gpu.device import current
from ...kernels.factor.cholesky import potrf_leaf, potrf_panel
from ...operands import Operand
from ...types import Region, Uplo
from ..launch_list import LaunchList
from ..level3.gemm import emit_gemm
from ..level3.triangular import split
from .factor_steps import emit_potrf_leaf, leaf_config
from .laswp import words

__all__ = ["applies", "emit_columns", "emit_update"]


def applies(launches: LaunchList, rows: int, batch: int = 1) -> bool:
    """Whether the rows of a panel, of each of a batch, have a block each at the same time."""
    config = _config(launches, rows)
    return batch * config.grid(rows) <= current(launches.device).sm_count


def _config(launches: LaunchList, rows: int) -> potrf_panel.PotrfPanel:
    """The Config of panels with `rows` below. Where there would be too many blocks, each has more rows."""
    config: potrf_panel.PotrfPanel = leaf_config(launches, potrf_panel.STEM, rows)
    return config if config.grid(rows) <= current(launches.device).sm_count else config.wide


def emit_columns(launches: LaunchList, info: Operand, a: Operand, before: int) -> None:
    """Emit the factor of the first columns of a lower triangle: A has as many columns, and rows below them;
    `before` rows of the whole matrix precede it.
    """
    rows, cols = a.rows, a.cols
    config = _config(launches, rows)
    if cols <= config.ORDER:
        _emit_panel(launches, config, info, a, before)
        return
    first = max(split(cols), config.ORDER)
    emit_columns(launches, info, a.block(0, 0, rows, first), before)
    emit_update(launches, a, (0, first), (first, cols))
    emit_columns(launches, info, a.block(first, first, rows - first, cols - first), before + first)


def emit_update(launches: LaunchList, a: Operand, factored: tuple[int, int], right: tuple[int, int]) -> None:
    """Emit what the columns `factored` do to others on their right: a triangle, and the rows below it."""
    (first, middle), (begin, end) = factored, right
    k, columns, rows = middle - first, end - begin, a.rows - begin
    if not columns:
        return
    left, other = a.block(begin, first, rows, k), a.block(begin, begin, rows, columns)
    upper = a.block(begin, first, columns, k).T.conjugate()
    emit_gemm(launches, -1.0, left, upper, 1.0, other, Region.of(Uplo.LOWER, hermitian=a.dtype.is_complex))


def _emit_panel(
    launches: LaunchList, config: potrf_panel.PotrfPanel, info: Operand, a: Operand, before: int
) -> None:
    """Emit a panel, or the last one, which has no rows below."""
    n, below = a.cols, a.rows - a.cols
    if not below:
        leaf = leaf_config(launches, potrf_leaf.STEM, n)
        emit_potrf_leaf(launches, leaf.specialize(n), info, a, before)
        return
    integers = n, below, before, a.row_stride, a.col_stride, words(info)[1], a.batch_stride
    operands = info, a, launches.flags()
    launches.emit(potrf_panel.source(config), config.grid(below), operands, lambda *_: integers, ())
