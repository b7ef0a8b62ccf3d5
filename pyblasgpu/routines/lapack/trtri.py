"""The inverse of a triangle in place.

An upper triangle is the lower one of its transpose, and so is its inverse. All blocks on the diagonal are
inverted by one launch. Then pairs of inverses grow together, all of a level as one batch:

    [T11    ]^-1   [      X11            ]
    [T21 T22]    = [-X22 T21 X11      X22]    two TRMMs in place, or products with copies

A zero on the diagonal is looked for first, and recorded in info. Then the triangle stays as it is.
"""

from __future__ import annotations

from typing import Any

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor.triangles import trtri_leaf, zero_diagonal
from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..copies import is_readable
from ..launch_list import LaunchList, cached_launch_list
from ..level3 import trmm
from ..level3.diagonal_copies import emit_diagonal_blocks
from ..level3.gemm import contiguous, emit_gemm
from ..level3.trmm_by_levels import off_diagonal_blocks, strided_batch
from .factor_steps import emit_readable, emit_unless_failed, leaf_config, real_dtype, with_alpha
from .laswp import words

__all__ = ["emit", "emit_apart", "emit_inverse", "emit_lower", "emit_zero_diagonal", "launch_list"]

LEAVES = 64  # rows of an inverse by which TRMM multiplies a batch in one launch


def launch_list(info: Operand, a: Operand, *, uplo: Uplo, diag: Diag) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    info : Operand
        One element a matrix of the batch; its first four bytes become an int32: 0, or the number (from 1) of
        the first zero on the diagonal.
    a : Operand
        n by n, of which the `uplo` triangle is read and becomes the inverse. A unit diagonal is neither read
        nor written.
    uplo, diag : Uplo, Diag
    """
    return None if a.is_empty else cached_launch_list(emit, (info, a), (uplo, diag))


def emit(launches: LaunchList, info: Operand, a: Operand, uplo: Uplo, diag: Diag) -> None:
    """Emit the whole call."""
    if diag is Diag.UNIT or a.rows <= leaf_config(launches, trtri_leaf.STEM, a.rows).specialize(a.rows).ORDER:
        emit_inverse(launches, info, a, uplo, diag)  # leaves look before they write
    else:
        emit_unless_failed(launches, info, a, lambda: emit_inverse(launches, info, a, uplo, diag))


def emit_inverse(launches: LaunchList, info: Operand, a: Operand, uplo: Uplo, diag: Diag) -> None:
    """Emit the same; where info is not 0, the triangle is worth nothing."""
    lower = a if uplo is Uplo.LOWER else a.T
    emit_readable(launches, lower, lambda readable: emit_lower(launches, info, readable, diag), diag)


def emit_lower(launches: LaunchList, info: Operand, a: Operand, diag: Diag) -> None:
    """Emit the inverse of a lower triangle."""
    n = a.rows
    config = leaf_config(launches, trtri_leaf.STEM, n).specialize(n)
    stop, reports = config.ORDER, int(n <= config.ORDER)
    if not reports:
        emit_zero_diagonal(launches, info, a, diag)

    _emit_leaf(launches, config, info, a, a, (int(diag is Diag.UNIT), reports, 0))
    for height, first, rows, count in off_diagonal_blocks(n, stop, a.batch):
        _emit_merge(launches, a, (height, first, rows, count), diag)


def emit_apart(launches: LaunchList, info: Operand, source: Operand, out: Operand) -> bool:
    """Emit the inverse of a lower triangle into another matrix, zeros above it, by one launch; False, nothing
    emitted, where it takes several.
    """
    config = leaf_config(launches, trtri_leaf.STEM, out.rows).specialize(out.rows)
    if out.rows > config.ORDER or source.conj or not (is_readable(source) and is_readable(out)):
        return False
    _emit_leaf(launches, config, info, source, out, (0, 1, 1))
    return True


def _emit_leaf(
    launches: LaunchList, config: Any, info: Operand, source: Operand, a: Operand, flags: tuple[int, ...]
) -> None:
    """Emit the inverses of blocks on the diagonal; the flags are `unit`, `writes_info` and `clean`."""

    def integers(info: Operand, source: Operand, a: Operand) -> tuple[int, ...]:
        steps = source.row_stride, source.col_stride, a.row_stride, a.col_stride
        return a.rows, *flags, *steps, words(info)[1], source.batch_stride, a.batch_stride

    launches.emit(trtri_leaf.source(config), config.grid(a.rows), (info, source, a), integers, ())


def _emit_merge(launches: LaunchList, a: Operand, block: tuple[int, int, int, int], diag: Diag) -> None:
    """X21 := -X22 T21 X11 for blocks of `off_diagonal_blocks`, one of them or a batch."""
    height, first, rows, count = block
    above, period = first - height, 2 * height
    x11, x21, x22 = (
        strided_batch(part, period, period, count)
        for part in (
            a.block(above, above, height, height),
            a.block(first, above, rows, height),
            a.block(first, first, rows, rows),
        )
    )
    if count == 1 or height <= LEAVES:
        _emit_by_trmm(launches, x11, x21, x22, diag)
    elif height < launches.policy.trtri_fused_min_order and (contiguous(a) or contiguous(a.T)):
        _emit_by_gemm(launches, a, x21, diag)
    else:  # of one matrix a TRMM is one launch
        step = x21.batch_stride * a.dtype.itemsize
        for number in range(count):
            one, below, other = (
                x._replace(pointer=x.pointer + number * step, batch=1) for x in (x11, x21, x22)
            )
            _emit_by_trmm(launches, one, below, other, diag)


def _emit_by_trmm(launches: LaunchList, x11: Operand, x21: Operand, x22: Operand, diag: Diag) -> None:
    with_alpha(launches, -1.0, lambda: trmm.emit(launches, x22, x21, Side.LEFT, Uplo.LOWER, diag))
    with_alpha(launches, 1.0, lambda: trmm.emit(launches, x11, x21, Side.RIGHT, Uplo.LOWER, diag))


def _emit_by_gemm(launches: LaunchList, a: Operand, x21: Operand, diag: Diag) -> None:
    """Record the products with a zero-padded copy of the inverses: three launches, and twice the FMAs."""
    height = x21.rows
    with launches.temporary():
        inverses = emit_diagonal_blocks(launches, a, height, diag)
        step, twice = inverses.batch_stride, 2 * inverses.batch_stride
        x11 = inverses._replace(batch=x21.batch, batch_stride=twice)
        x22 = x11._replace(pointer=x11.pointer + step * a.dtype.itemsize)
        product = launches.scratch(height, height, x21.batch)
        emit_gemm(launches, -1.0, x21, x11, 0.0, product)
        emit_gemm(launches, 1.0, x22, product, 0.0, x21)


def emit_zero_diagonal(launches: LaunchList, info: Operand, a: Operand, diag: Diag) -> None:
    """Emit that info becomes the number, from 1, of the first zero on the diagonal, or 0."""
    real = real_dtype(launches.dtype)
    config = select(zero_diagonal.STEM, real, "", (a.rows,), current(launches.device)).config
    rows, parts = 0 if diag is Diag.UNIT else a.rows, a.dtype.reals_per_element

    def integers(info: Operand, a: Operand) -> tuple[int, ...]:
        return rows, parts, a.row_stride + a.col_stride, words(info)[1], a.batch_stride

    launches.emit(zero_diagonal.source(config), 1, (info, a), integers, ())
