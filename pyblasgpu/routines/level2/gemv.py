"""y := alpha A x + beta y, A a matrix or a triangle. Transposition and conjugation are views of A.

A column-major A is multiplied row by row, a row-major one column by column of what it is transposed. The
kernel `gemv` does it in one launch either way.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

from ...dispatch.choose import select
from ...dispatch.leaf import candidates
from ...dispatch.overrides import COMPUTED, OVERRIDE, KernelChoice
from ...gpu.device import Device, current
from ...kernels.common.options import CONJUGATE, CONJUGATE_SECOND, UNIT, VECTORS
from ...kernels.level2 import gemv as kernel
from ...kernels.level2.config import LOAD
from ...kernels.level2.gemv_cost import GemvProblem, best_slices, cheapest
from ...operands import Operand
from ...types import Diag, Dtype, Uplo
from ..copies import launch_list_of_product
from ..launch_list import ALPHA, BETA, LaunchList

__all__ = ["alignment", "emit_gemv", "launch_list", "lies_by_columns"]


def launch_list(alpha: Any, a: Operand, x: Operand, beta: Any, y: Operand) -> LaunchList | None:
    """Return the launch list for operands of these layouts, and for scalars that are 0 or 1 where these are.

    None where there is nothing to do.

    Parameters
    ----------
    alpha, beta : number
        alpha = 0 reads neither A nor x, beta = 0 does not read y.
    a, x, y : Operand
        m x n, n x 1 and m x 1, of one dtype, on one device. They have one batch, of which A or x may repeat
        one by a batch stride of 0. y overlaps neither A nor x.
    """
    return launch_list_of_product(_emit, alpha, (a, x, y), a.cols, beta)


def _emit(launches: LaunchList, a: Operand, x: Operand, y: Operand, overwrite: bool) -> None:
    emit_gemv(launches, ALPHA, a, x, 0.0 if overwrite else BETA, y)


def emit_gemv(
    launches: LaunchList,
    alpha: Any,
    a: Operand,
    x: Operand,
    beta: Any,
    y: Operand,
    uplo: Uplo | None = None,
    diag: Diag = Diag.NON_UNIT,
) -> None:
    """Emit y := alpha A x + beta y, of all of A or of a triangle; the scalars are ALPHA, BETA or numbers."""
    by_columns, device = lies_by_columns(a), current(launches.device)
    is_triangle, layout = uplo is not None, "n" if by_columns else "t"
    problem = GemvProblem(a.rows, a.cols, a.batch, is_triangle)
    choice = _choice(launches.dtype, layout, problem, a if by_columns else a.T, device)
    launches.choices.append(choice)
    config = choice.config
    which = {None: kernel.ALL, Uplo.LOWER: kernel.BEFORE, Uplo.UPPER: kernel.AFTER}[uplo]
    bits = CONJUGATE * a.conj + CONJUGATE_SECOND * x.conj + UNIT * (diag is Diag.UNIT)
    bits |= VECTORS * _has_vectors(x)
    slices = best_slices(config, problem, device)
    per_slice = config.terms_per_slice(a.cols, slices)

    def integers(a: Operand, x: Operand, w: Operand, flags: Operand, y: Operand) -> tuple[int, ...]:
        strides = a.row_stride, a.col_stride, x.row_stride, w.col_stride, y.row_stride
        batches = a.batch_stride, x.batch_stride, y.batch_stride
        return a.rows, a.cols, slices, per_slice, config.LOG_R, which, bits, *strides, *batches

    with launches.temporary():
        sums = flags = y  # no slices: nobody reads them
        if slices > 1:
            sums, flags = launches.scratch(a.rows, slices, a.batch), launches.flags()._replace(batch_stride=0)
        operands = a, x, sums, flags, y
        blocks = config.grid(a.rows) * slices
        launches.emit(kernel.source(config), blocks, operands, integers, (alpha, beta))


def lies_by_columns(a: Operand) -> bool:
    """Whether neighbours in memory are neighbours of a column of A, else of a row."""
    if a.col_stride == 1 and a.rows == 1:
        return False
    return a.by_rows


def alignment(a: Operand) -> int:
    """Bytes, up to `LOAD`, of which the columns of A are multiples, and at multiples of which they begin; 1
    where columns are not contiguous.
    """
    if a.row_stride != 1:
        return 1
    size = a.dtype.itemsize
    return gcd(LOAD, a.pointer, a.rows * size, a.col_stride * size, a.batch_stride * size)


def _choice(dtype: Dtype, layout: str, problem: GemvProblem, stored: Operand, device: Device) -> KernelChoice:
    """The Config, of which vectors fit `stored`, the matrix in the order of its columns.

    Of many matrices each has blocks of its own. Then smaller ones may be better, of which more are resident.
    """
    choice = select("gemv", dtype, layout, (problem.outputs, problem.terms, problem.batch), device)
    fallbacks = kernel.Gemv.fallbacks(dtype.letter, layout == "t")
    if choice.config.BYTES == LOAD and alignment(stored) < LOAD:
        return replace(choice, config=cheapest(fallbacks, problem, device))
    configs: tuple[kernel.Gemv, ...] = (choice.config,)
    if problem.triangle and choice.origin != OVERRIDE:
        configs = candidates("gemv", dtype.letter, layout, device)
        choice = replace(choice, origin=COMPUTED)
    if problem.batch > 1 and choice.origin == COMPUTED:
        configs += fallbacks
    return replace(choice, config=cheapest(configs, problem, device))


def _has_vectors(x: Operand) -> bool:
    """Whether elements of x are neighbours, and vectors of them begin at multiples of their size."""
    sizes = x.pointer, x.batch_stride * x.dtype.itemsize
    return x.row_stride == 1 and gcd(LOAD, *sizes) == LOAD
