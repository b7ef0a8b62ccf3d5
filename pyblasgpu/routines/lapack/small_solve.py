"""Systems of small matrices, solved by one launch from LU or Cholesky factors (`getrs_small`)."""

from __future__ import annotations

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor.lu import getrs_small, small_matrices
from ...operands import Operand
from ..launch_list import LaunchList
from . import laswp

__all__ = ["applies", "emit"]


def applies(launches: LaunchList, b: Operand) -> bool:
    """Whether the systems are small enough; with more columns, these have threads of their own by TRSM."""
    return b.rows <= small_matrices.ORDER and b.cols <= launches.policy.getrs_small_max_rhs


def emit(
    launches: LaunchList,
    piv: Operand,
    matrix: Operand,
    b: Operand,
    options: int,
    info: Operand | None = None,
) -> None:
    """Emit the launch, which may read another B; `options` as `getrs_small` has them. X is B where there is
    an `info`, and it is not 0.
    """
    device = current(launches.device)
    config = select(getrs_small.STEM, launches.dtype, "", (b.rows, b.cols), device).config
    lanes, blocks = config.lanes(b.rows), config.grid(b.rows, b.batch)
    # with more warps of a multiprocessor, right-hand sides of a matrix stay together
    resident = device.sm_count * int(launches.policy.getrs_small_warps) * 32 // config.threads
    groups = max(min(resident // blocks, -(-b.cols // getrs_small.COLUMNS)), 1)
    options |= getrs_small.UNLESS_FAILED * (info is not None)
    # without operands, whose owners a kept list would hold
    step, stride_piv = laswp.words(piv)
    watched = piv if info is None else info
    extents, of_matrix = (b.rows, b.cols, options, lanes), (matrix.row_stride, matrix.col_stride, step)
    steps, last = (stride_piv, laswp.words(watched)[1], matrix.batch_stride), b.batch_stride
    of_b = b.row_stride, b.col_stride

    def integers(source: Operand) -> tuple[int, ...]:
        strides = *of_matrix, source.row_stride, source.col_stride, *of_b
        return *extents, source.batch, groups, *strides, *steps, source.batch_stride, last

    operands = piv, watched, matrix, b, b
    launches.emit_batch(
        getrs_small.source(config), blocks * groups, operands, lambda *each: integers(each[-1]), ()
    )
    launches.source_pointer, launches.source_integers = 3, integers
