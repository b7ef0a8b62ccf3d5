"""A := A + alpha x y^T, and what the updates of a triangle are made of: kernel `ger`.

Conjugation is a view of x or y. Of a row-major A the transposed matrix is updated, by y and x.
"""

from __future__ import annotations

from typing import Any

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.common.options import CONJUGATE, CONJUGATE_SECOND, HERMITIAN, OVERWRITE, TRIANGLE, UPPER
from ...kernels.level2 import ger as kernel
from ...operands import Operand
from ...types import Uplo
from ..copies import emit_scale
from ..launch_list import ALPHA, LaunchList, cached_launch_list
from .gemv import alignment, lies_by_columns

__all__ = ["emit_triangle", "launch_list"]


def launch_list(
    alpha: Any, x: Operand, y: Operand, a: Operand, is_new_output: bool = False
) -> LaunchList | None:
    """Return the launch list for operands of these layouts; None for no work.

    Parameters
    ----------
    alpha : number
        With 0 nothing is done.
    x, y, a : Operand
        m x 1, n x 1 and m x n, of one dtype, on one device. They have one batch, of which x or y may repeat
        one by a batch stride of 0. A overlaps neither x nor y.
    is_new_output : bool
        A is taken to be 0.
    """
    if a.is_empty:
        return None
    if alpha == 0:
        return cached_launch_list(_emit_zero, (x, y, a), ()) if is_new_output else None
    return cached_launch_list(_emit, (x, y, a), (is_new_output,))


def _emit_zero(launches: LaunchList, x: Operand, y: Operand, a: Operand) -> None:
    emit_scale(launches, 0.0, a, zero=True)


def _emit(launches: LaunchList, x: Operand, y: Operand, a: Operand, is_new_output: bool) -> None:
    bits = OVERWRITE if is_new_output else 0
    _emit_update(launches, x, y, a, bits, (ALPHA, 0.0))


def emit_triangle(
    launches: LaunchList,
    x: Operand,
    y: Operand,
    a: Operand,
    nothing: bool,
    uplo: Uplo,
    hermitian: bool,
    is_new: bool,
    bits: int,
    factors: tuple[Any, Any],
) -> None:
    """Emit A + alpha x y^T of a triangle, + beta y x^T if `bits` is `RANK_2`, with alpha and beta of
    `factors`, or `nothing` of it. Of a new A the other triangle becomes 0.
    """
    if is_new:
        emit_scale(launches, 0.0, a, zero=True)
    if nothing:
        return
    bits |= TRIANGLE | UPPER * (uplo is Uplo.UPPER) | HERMITIAN * hermitian | OVERWRITE * is_new
    _emit_update(launches, x, y, a, bits, factors)


def _emit_update(
    launches: LaunchList, x: Operand, y: Operand, a: Operand, bits: int, factors: tuple[Any, Any]
) -> None:
    """The launch. Which operand is conjugated depends on its place, along rows or columns."""
    if not lies_by_columns(a):
        a, x, y = a.T, y, x
        bits ^= UPPER if bits & TRIANGLE else 0
    device = current(launches.device)
    choice = select("ger", launches.dtype, "", (a.rows, a.cols, a.batch), device)
    launches.choices.append(choice)
    config = choice.config.with_alignment(alignment(a))
    bits |= CONJUGATE * x.conj + CONJUGATE_SECOND * y.conj

    def integers(x: Operand, y: Operand, a: Operand) -> tuple[int, ...]:
        strides = x.row_stride, y.row_stride, a.row_stride, a.col_stride
        return a.rows, a.cols, bits, *strides, x.batch_stride, y.batch_stride, a.batch_stride

    launches.emit(kernel.source(config), config.grid(a.rows, a.cols), (x, y, a), integers, factors)
