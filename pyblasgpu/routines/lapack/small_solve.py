"""Solutions by factors of small matrices, and inverses from them, in one launch (`getrs_small`)."""

from __future__ import annotations

from typing import Any

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.common.kernel_config import WARP
from ...kernels.common.options import options_of
from ...kernels.factor.lu import getrs_small
from ...operands import Operand
from ..copies import is_readable
from ..launch_list import LaunchList
from . import laswp

__all__ = ["applies", "emit", "emit_inverse", "inverts"]

INVERSE_ORDER = 16  # rows of an inverse at most: with more, a solution by columns takes longer than products


def applies(launches: LaunchList, b: Operand, mirrored: bool = False) -> bool:
    """Whether the systems are small enough; with more columns, these have threads of their own by TRSM.

    Those of more rows than lanes of a warp take their time: there must be many, of few right-hand sides. Both
    triangles of a Cholesky factor (`mirrored`) divide a row after the other: then those of the widest
    elements, whose divisions are the longest, take less by the inverses of TRSM.
    """
    if b.rows > getrs_small.ORDERS[-1] or b.cols > launches.policy.getrs_small_max_rhs:
        return False
    if b.rows <= WARP:
        return True
    if mirrored and launches.dtype.itemsize == getrs_small.WIDEST:
        return False
    config = _config(launches, b)
    enough = _blocks(launches, config, launches.policy.getrs_small_many_warps)
    return config.grid(b.rows, b.batch) >= enough and b.cols <= getrs_small.COLUMNS


def inverts(launches: LaunchList, a: Operand) -> bool:
    """Whether inverses from Cholesky factors are small enough, and many enough: then lanes share none."""
    if a.rows > INVERSE_ORDER or not is_readable(a):
        return False
    return _groups(launches, _config(launches, a), a) == 1


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
    config, watched = _config(launches, b), piv if info is None else info
    options |= getrs_small.UNLESS_FAILED * (info is not None)
    launches.source_integers = _emit(
        launches, config, _groups(launches, config, b), piv, watched, matrix, b, options
    )
    launches.source_pointer = 3


def emit_inverse(launches: LaunchList, info: Operand, lower: Operand) -> None:
    """Emit the lower triangle of the inverse in place of the factor, which stays where it has a zero on its
    diagonal.
    """
    config = _config(launches, lower, inverts=True)
    _emit(launches, config, 1, info, info, lower, lower, options_of(mirrored=True))


def _config(launches: LaunchList, b: Operand, inverts: bool = False) -> Any:
    chosen = select(getrs_small.STEM, launches.dtype, "", (b.rows, b.cols), current(launches.device))
    return chosen.config.specialize(b.rows, inverts)


def _blocks(launches: LaunchList, config: Any, warps: float) -> int:
    """Return how many blocks give each multiprocessor these `warps`."""
    return current(launches.device).sm_count * int(warps) * WARP // config.threads


def _groups(launches: LaunchList, config: Any, b: Operand) -> int:
    """Return how many groups of lanes share the right-hand sides of a matrix: those of more matrices than are
    resident stay together.
    """
    resident = _blocks(launches, config, launches.policy.getrs_small_warps)
    return max(min(resident // config.grid(b.rows, b.batch), -(-b.cols // getrs_small.COLUMNS)), 1)


def _emit(
    launches: LaunchList,
    config: Any,
    groups: int,
    piv: Operand,
    info: Operand,
    matrix: Operand,
    b: Operand,
    options: int,
) -> Any:
    """Emit the launch; return what gives its integers where another B is read."""
    lanes, blocks = config.lanes(b.rows), config.grid(b.rows, b.batch)
    # without operands, whose owners a kept list would hold
    step, stride_piv = laswp.words(piv)
    extents, of_matrix = (b.rows, b.cols, options, lanes), (matrix.row_stride, matrix.col_stride, step)
    steps, last = (stride_piv, laswp.words(info)[1], matrix.batch_stride), b.batch_stride
    of_b = b.row_stride, b.col_stride

    def integers(source: Operand) -> tuple[int, ...]:
        strides = *of_matrix, source.row_stride, source.col_stride, *of_b
        return *extents, source.batch, groups, *strides, *steps, source.batch_stride, last

    operands = piv, info, matrix, b, b
    launches.emit_batch(
        getrs_small.source(config), blocks * groups, operands, lambda *each: integers(each[-1]), ()
    )
    return integers
