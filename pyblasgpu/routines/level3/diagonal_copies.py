"""Copies of the triangles on the diagonal of a matrix, completed by zeros, so that GEMM may read them."""

from __future__ import annotations

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.common.options import options_of
from ...kernels.trmm import diagonal_blocks
from ...operands import Operand
from ...types import Diag, Region, Uplo
from ..launch_list import LaunchList
from .gemm import contiguous

__all__ = ["emit_blocks", "emit_diagonal_blocks"]


def emit_diagonal_blocks(launches: LaunchList, a: Operand, height: int, diag: Diag) -> Operand:
    """A copy of the lower triangles of `height` rows on the diagonal of A, one after the other.

    A is column-major or row-major, and so is the copy, with zeros beyond the triangles and ones on a unit
    diagonal. `height` is a multiple of 16, or the order of A.
    """
    by_columns = contiguous(a)
    side = -(-height // 16) * 16  # so that columns begin at multiples of 16 bytes
    copy = launches.scratch(side, side, -(-a.rows // side))
    one = copy._replace(batch=1)
    emit_blocks(launches, a, Uplo.LOWER, diag, side, one, one._replace(rows=0))
    return (copy if by_columns else copy.T)._replace(rows=height, cols=height)


def emit_blocks(
    launches: LaunchList, t: Operand, uplo: Uplo, diag: Diag, block: int, copy: Operand, flags: Operand
) -> None:
    """The blocks of T on its diagonal, zero beyond the triangle, and flags of zero, a row each.

    T, column-major or row-major, may be a batch, and `copy` is one then.
    """
    config = select(diagonal_blocks.STEM, launches.dtype, "", (t.rows,), current(launches.device)).config
    by_columns = contiguous(t)
    options = options_of(Region.of(uplo), unit=diag is Diag.UNIT, by_rows=by_columns)
    ld = t.col_stride if by_columns else t.row_stride
    integers = t.rows, block, flags.rows, options, ld, t.batch_stride, copy.batch_stride
    kernel, blocks = diagonal_blocks.source(config), config.grid(t.rows, block)
    launches.emit(kernel, blocks, (t, copy, flags), lambda *_: integers, ())
