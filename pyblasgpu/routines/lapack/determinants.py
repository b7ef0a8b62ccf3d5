"""Determinants from P L U = A, or their signs and logarithms: one launch for a batch."""

from __future__ import annotations

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor.lu import determinant
from ...operands import Operand
from ..launch_list import LaunchList, cached_launch_list
from . import laswp

__all__ = ["determinants_launch_list", "emit", "signs_launch_list"]


def signs_launch_list(sign: Operand, logarithm: Operand, piv: Operand, lu: Operand) -> LaunchList:
    """Return the launch list for operands of these layouts, run with alpha 1.

    Parameters
    ----------
    sign, logarithm : Operand
        A number a matrix, one after the other; the logarithm is real.
    piv : Operand
        n by 1; row i was interchanged with row piv[i], an int32 in the first bytes of an element.
    lu : Operand
        n by n, the factors, of which the diagonal is read.
    """
    return cached_launch_list(_emit_signs, (sign, logarithm, piv, lu), ())


def determinants_launch_list(determinants: Operand, piv: Operand, lu: Operand) -> LaunchList:
    """Return the launch list of determinants, float64 or complex128; see `signs_launch_list`."""
    return cached_launch_list(_emit_determinants, (determinants, piv, lu), ())


def _emit_signs(launches: LaunchList, sign: Operand, logarithm: Operand, piv: Operand, lu: Operand) -> None:
    emit(launches, (piv, lu, sign, logarithm), products=False)


def _emit_determinants(launches: LaunchList, determinants: Operand, piv: Operand, lu: Operand) -> None:
    emit(launches, (piv, lu, determinants, determinants), products=True)


def emit(launches: LaunchList, operands: tuple[Operand, ...], products: bool) -> None:
    """Emit the launch; `operands` in the order of the kernel: piv, LU, and the results."""
    lu, device = operands[1], current(launches.device)
    config = select(determinant.STEM, launches.dtype, "", (lu.rows, lu.cols), device).config

    def integers(piv: Operand, lu: Operand, *_: Operand) -> tuple[int, ...]:
        step, stride_piv = laswp.words(piv)
        strides = lu.row_stride + lu.col_stride, step, lu.batch_stride, stride_piv
        return lu.rows, int(products), config.lanes(lu.rows), lu.batch, *strides

    launches.emit_batch(determinant.source(config), config.grid(lu.rows, lu.batch), operands, integers, ())
