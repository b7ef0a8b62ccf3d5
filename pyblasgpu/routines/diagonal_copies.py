"""Copies of the triangles on the diagonal of a matrix, completed by zeros, so that GEMM may read them."""

from __future__ import annotations

from ..dispatch.choose import select
from ..gpu.device import current
from ..kernels.common.options import options_of
from ..kernels.trmm import diagonal_blocks
from ..operands import Operand
from ..types import Diag, Region
from .launch_list import LaunchList
from .level3.gemm import contiguous

__all__ = ["emit_diagonal_blocks"]


def emit_diagonal_blocks(launches: LaunchList, a: Operand, height: int, diag: Diag) -> Operand:
    """A copy of the lower triangles of `height` rows on the diagonal of A, one after the other.

    A is column-major or row-major, and so is the copy, with zeros beyond the triangles and ones on a unit
    diagonal. `height` is a multiple of 16, or the order of A.
    """
    config = select(diagonal_blocks.STEM, launches.dtype, "", (a.rows,), current(launches.device)).config
    by_columns = contiguous(a)
    side = -(-height // 16) * 16  # so that columns begin at multiples of 16 bytes
    copy = launches.scratch(side, side, -(-a.rows // side))
    ld = a.col_stride if by_columns else a.row_stride
    options = options_of(Region.LOWER, unit=diag is Diag.UNIT, by_rows=by_columns)
    integers = a.rows, side, 0, options, ld
    kernel, blocks = diagonal_blocks.source(config), config.grid(a.rows, side)
    one = copy._replace(batch=1)
    launches.emit(kernel, blocks, (a, one, one), lambda *_: integers, ())
    return (copy if by_columns else copy.T)._replace(rows=height, cols=height)
