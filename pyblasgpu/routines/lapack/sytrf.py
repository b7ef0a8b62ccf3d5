"""L D L^T = A or L D L^H = A in place, by pivots of Bunch and Kaufman or rook pivots: LAPACK's factors,
pivots and info.

Small matrices are one launch. Others go by panels of columns. A panel leaves V and W, its columns of L and of
L D. The triangle of what is right of it becomes that less V W^H (LAPACK's lasyf). A panel may take the first
column of the next one; then that column of V W^H is zero.
"""

from __future__ import annotations

from dataclasses import replace

from ...dispatch.operand_copies import ALIGNED
from ...gpu.device import current
from ...kernels.factor.ldl import sytrf_panel
from ...kernels.factor.ldl.sytrf_panel import SytrfPanel
from ...operands import Operand
from ...types import Region, Uplo
from ..launch_list import LaunchList, cached_launch_list
from ..level3.gemm import emit_gemm
from .factor_steps import leaf_config
from .laswp import moves_scratch, words

__all__ = ["emit", "launch_list"]

MOST_MEMORY = 1 << 28  # bytes of V and W, of as many matrices as multiprocessors or more


def launch_list(
    piv: Operand, info: Operand, a: Operand, *, uplo: Uplo, hermitian: bool = False, rook: bool = False
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    piv : Operand
        n by 1; the first four bytes of each element become an int32: p where row and column p, from 1, were
        interchanged with this one; of a block of D of order two -p in both rows, of rook pivots in each its
        own.
    info : Operand
        One element a matrix, of which the first four bytes become an int32. It is 0, or the number, from 1,
        of the first block of D that is zero.
    a : Operand
        n by n; the factors replace one triangle.
    uplo : Uplo
        The triangle.
    hermitian : bool
        Whether the other triangle is the conjugate.
    rook : bool
        Whether pivots are rook pivots.
    """
    return None if a.is_empty else cached_launch_list(emit, (piv, info, a), (uplo, hermitian, rook))


def emit(
    launches: LaunchList,
    piv: Operand,
    info: Operand,
    a: Operand,
    uplo: Uplo,
    hermitian: bool,
    rook: bool = False,
) -> None:
    """Emit the whole call; of many matrices by panels some at a time, for the sake of memory."""
    config, n, flags = leaf_config(launches, sytrf_panel.STEM, a.rows), a.rows, (uplo, hermitian)
    config = replace(config, ROOK=rook)
    if n <= config.ORDER:
        _emit_columns(launches, config.specialize(n), 1, (piv, info, a, a, a, a), (0, n), *flags)
        return
    memory = n * config.panel(n, 1).columns * a.dtype.itemsize
    at_once = max(MOST_MEMORY // memory, current(launches.device).sm_count)
    for z in range(0, a.batch, at_once):
        part = [each.matrices(z, min(at_once, a.batch - z)) for each in (piv, info, a)]
        with launches.temporary(), launches.chain():
            _emit_panels(launches, config, part, *flags)


def _emit_panels(
    launches: LaunchList, config: SytrfPanel, operands: list[Operand], uplo: Uplo, hermitian: bool
) -> None:
    """Emit the factors of pivots, info and A, panel by panel."""
    piv, info, a = operands
    n, at_most = a.rows, current(launches.device).sm_count // a.batch
    panel, blocks = config.panel(n, at_most), config.grid(n, at_most)
    memory = launches.scratch(n, panel.columns, a.batch, ALIGNED)
    rows = launches.scratch(panel.rows(blocks), 1, a.batch)
    state = moves_scratch(launches, panel.state(blocks), a.batch)
    for first in range(0, n, config.ORDER):
        left, columns = (n - first, at_most), (first, min(config.ORDER, n - first))
        panel, blocks = config.panel(*left), config.grid(*left)
        given = piv, info, a, memory, rows, state
        _emit_columns(launches, panel, blocks, given, columns, uplo, hermitian)
        _emit_update(launches, panel, a, memory, sum(columns), uplo, hermitian)


def _emit_columns(
    launches: LaunchList,
    config: SytrfPanel,
    blocks: int,
    operands: tuple[Operand, ...],
    columns: tuple[int, int],
    uplo: Uplo,
    hermitian: bool,
) -> None:
    """Emit the factors of some columns: the first and their number. The operands are pivots, info, A, and
    what panels need: memory, rows and state.
    """

    def integers(
        piv: Operand, info: Operand, a: Operand, v: Operand, rows: Operand, state: Operand, _: Operand
    ) -> tuple[int, ...]:
        step, stride_piv = words(piv)
        strides = step, a.row_stride, a.col_stride, v.col_stride
        elements = (each.batch_stride for each in (a, v, rows))
        batches = stride_piv, words(info)[1], *elements, words(state)[1]
        return a.rows, *columns, int(uplo is Uplo.UPPER), int(hermitian), *strides, *batches

    flags = launches.flags() if config.KIND == sytrf_panel.SPREAD else operands[0]
    launches.emit(sytrf_panel.source(config), blocks, (*operands, flags), integers, ())


def _emit_update(
    launches: LaunchList,
    config: SytrfPanel,
    a: Operand,
    memory: Operand,
    done: int,
    uplo: Uplo,
    hermitian: bool,
) -> None:
    """Emit what a panel takes off the rest, from row `done` on, or of an upper triangle before the last
    `done` rows.
    """
    rest, width = a.rows - done, config.width
    if not rest:
        return
    first, row = (0, 0) if uplo is Uplo.UPPER else (done, config.ORDER)
    v, w = (memory.block(row, col, rest, width) for col in (0, width))
    other = w.T.conjugate() if hermitian else w.T
    region = Region.of(uplo, hermitian=hermitian)
    emit_gemm(launches, -1.0, v, other, 1.0, a.block(first, first, rest, rest), region)
