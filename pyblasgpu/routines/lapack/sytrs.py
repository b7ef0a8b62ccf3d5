"""Solutions of A X = B from factors of `sytrf`: X = P L^-H D^-1 L^-1 P^H B, in place of B.

L is copied as one triangle first, its rows where all interchanges have them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...dispatch.choose import select
from ...dispatch.operand_copies import ALIGNED
from ...gpu.device import Device, current
from ...kernels.factor.ldl import ldl_rows, ldl_triangle
from ...kernels.registry import FIXED
from ...operands import Operand
from ...types import Diag, Dtype, Side, Uplo
from ..copies import emit_resolved
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trsm
from .factor_steps import real_dtype
from .laswp import moves_scratch, words

__all__ = ["Factors", "check_order", "emit", "emit_factors", "emit_rows", "emit_solution", "launch_list"]


class Factors(NamedTuple):
    """Factors in scratch: L below its diagonal, D, and for each row that of A and its kind of block."""

    l: Operand
    d: Operand
    rows: Operand


def _config(dtype: Dtype, device: Device) -> ldl_triangle.LdlTriangle:
    config = select(ldl_triangle.STEM, real_dtype(dtype), "", (), device).config
    fitting: ldl_triangle.LdlTriangle = config.fitting(device.shared_per_block)
    return fitting


def check_order(ldu: Operand) -> None:
    """Raise NotImplementedError where factors are of a larger order than kernels have it."""
    if ldu.rows > (largest := _config(ldu.dtype, current(ldu.device)).ORDER):
        raise NotImplementedError(
            f"sytrs: a is of order {ldu.rows}; systems are solved by L D L^H factors to order {largest}"
        )


def launch_list(
    piv: Operand, ldu: Operand, b: Operand, *, uplo: Uplo, hermitian: bool = False, rook: bool = False
) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    piv : Operand
        n by 1, pivots of `sytrf` in the first bytes of each element.
    ldu : Operand
        n by n, factors of `sytrf` in one triangle.
    b : Operand
        n by r.
    uplo : Uplo
        The triangle.
    hermitian : bool
        Whether the factors are those of a Hermitian matrix.
    rook : bool
        Whether pivots are rook pivots.

    Raises
    ------
    NotImplementedError
        When the order is larger than kernels have it.
    """
    check_order(ldu)
    return None if b.is_empty else cached_launch_list(emit, (piv, ldu, b), (uplo, hermitian, rook))


def emit(
    launches: LaunchList,
    piv: Operand,
    ldu: Operand,
    b: Operand,
    uplo: Uplo,
    hermitian: bool,
    rook: bool = False,
) -> None:
    """Emit the whole call."""
    with launches.temporary():
        emit_solution(launches, emit_factors(launches, piv, ldu, uplo, rook=rook), b, hermitian)


def emit_solution(launches: LaunchList, factors: Factors, b: Operand, hermitian: bool) -> None:
    """Emit X in place of B."""
    x = launches.scratch(b.rows, b.cols, b.batch, ALIGNED)
    other = factors.l.T.conjugate() if hermitian else factors.l.T
    emit_rows(launches, factors, b, x, ldl_rows.GATHER, hermitian)
    with launches.temporary():
        trsm.emit(launches, factors.l, x, Side.LEFT, Uplo.LOWER, Diag.UNIT)
    emit_rows(launches, factors, b, x, ldl_rows.DIVIDE, hermitian)
    with launches.temporary():
        trsm.emit(launches, other, x, Side.LEFT, Uplo.UPPER, Diag.UNIT)
    emit_rows(launches, factors, b, x, ldl_rows.SCATTER, hermitian)


def emit_factors(
    launches: LaunchList,
    piv: Operand,
    ldu: Operand,
    uplo: Uplo,
    info: Operand | None = None,
    rows: Operand | None = None,
    rook: bool = False,
) -> Factors:
    """Emit a copy of the factors in scratch.

    Parameters
    ----------
    launches : LaunchList
    piv, ldu : Operand
        The factors of `sytrf`, of the triangle `uplo`.
    uplo : Uplo
    info : Operand, optional
        Becomes 0, or the number, from 1, of the first zero block of D.
    rows : Operand, optional
        2 n by 1 int32 side by side, for `Factors.rows`; then L has its ones and zeros.
    rook : bool
        Whether pivots are rook pivots.
    """
    ldu = emit_resolved(launches, ldu)
    n, batch, device = ldu.rows, ldu.batch, current(launches.device)
    task = ldl_triangle.FINDS_ZERO * (info is not None) + ldl_triangle.WHOLE * (rows is not None)
    factors = Factors(
        launches.scratch(n, n, batch, ALIGNED),
        launches.scratch(2 * n, 1, batch),
        moves_scratch(launches, 2 * n, batch) if rows is None else rows,
    )
    config = replace(_config(launches.dtype, device).specialize(n), ROOK=rook)
    blocks = config.grid(n, max(2 * device.sm_count // batch, 1))

    def integers(
        piv: Operand, rows: Operand, info: Operand, ldu: Operand, l: Operand, d: Operand
    ) -> tuple[int, ...]:
        step, stride_piv = words(piv)
        strides = step, ldu.row_stride, ldu.col_stride, l.col_stride
        batches = stride_piv, words(rows)[1], words(info)[1], *(each.batch_stride for each in (ldu, l, d))
        return n, int(uplo is Uplo.UPPER), l.dtype.reals_per_element, task, *strides, *batches

    operands = piv, factors.rows, info or piv, ldu, factors.l, factors.d
    launches.emit(ldl_triangle.source(config), blocks, operands, integers, ())
    return factors


def emit_rows(
    launches: LaunchList, factors: Factors, b: Operand, x: Operand, task: int, hermitian: bool
) -> None:
    """Emit a task of `ldl_rows`."""
    config = FIXED[ldl_rows.STEM].fixed_config(launches.dtype.letter)

    def integers(rows: Operand, d: Operand, b: Operand, x: Operand) -> tuple[int, ...]:
        strides = b.row_stride, b.col_stride, x.col_stride, words(rows)[1]
        return b.rows, b.cols, task, int(hermitian), *strides, *(each.batch_stride for each in (d, b, x))

    operands = factors.rows, factors.d, b, x
    launches.emit(ldl_rows.source(config), config.grid(b.rows, b.cols), operands, integers, ())
