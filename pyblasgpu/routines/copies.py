"""Copies: D := alpha * op(S) of all of a matrix or of a triangle, and operands in a packed layout.

`copy_scaled` copies, scales in place and fills with zeros; of a square matrix a `Region` may be meant. `pack`
writes tiles, op() applied and zeros at their ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..dispatch.choose import select
from ..dispatch.operand_copies import ALIGNED
from ..dispatch.overrides import OVERRIDE, get_override
from ..gpu.device import current
from ..kernels.common.options import options_of
from ..kernels.copy.packing import Packing
from ..kernels.registry import family_of
from ..operands import Operand
from ..types import Region, Uplo
from .launch_list import ALPHA, BETA, LaunchList, cached_launch_list

__all__ = [
    "MOST_COPIED",
    "Packed",
    "emit_copy",
    "emit_copy_to_workspace",
    "emit_kept",
    "emit_mirrored",
    "emit_packed",
    "emit_resolved",
    "emit_scale",
    "emit_zeros",
    "emit_zeros_beyond",
    "is_beyond",
    "is_readable",
    "launch_list",
    "launch_list_of_product",
    "most_workspace",
    "upper_launch_list",
]

MOST_COPIED = 32 << 20  # bytes of B, or of diagonal blocks, that are copied at a time
PART = 20  # of a result that the workspace may be, if that is more than what may be copied
MAX_DENSE, MAX_COLUMNS = 1 << 16, 1 << 30  # elements of a matrix, and matrices, that are copied as one matrix


def launch_list(alpha, source: Operand, target: Operand, region: Region = Region.ALL) -> LaunchList | None:
    """Return the launch list of target := alpha source, for operands of these layouts and any `alpha`, or of
    that in a `region`.

    Shapes, dtypes and batches are equal, and no memory is shared. None for no work.
    """
    return None if target.is_empty else cached_launch_list(_emit_alone, (source, target), (region,))


def upper_launch_list(source: Operand, target: Operand) -> LaunchList:
    """Return the launch list of a target that gets the upper triangle of the source, and zeros below it."""
    return cached_launch_list(_emit_upper, (source, target), ())


def _emit_upper(launches: LaunchList, source: Operand, target: Operand) -> None:
    m, n = target.rows, target.cols
    k = min(m, n)
    square = target.block(0, 0, k, k)
    emit_copy(launches, 1.0, source.block(0, 0, k, k).T, square.T, Region.LOWER)
    emit_zeros_beyond(launches, square, Uplo.UPPER)
    if n > k:
        emit_copy(launches, 1.0, source.block(0, k, k, n - k), target.block(0, k, k, n - k))
    if m > k:
        emit_scale(launches, 0.0, target.block(k, 0, m - k, n), zero=True)


def most_workspace(c: Operand) -> int:
    """Bytes of workspace that a routine with a triangle takes at most for a result like `c`, but for operands
    that must be copied.
    """
    requested: int | None = get_override("workspace")
    if requested is not None:
        return requested
    return max(MOST_COPIED, c.batch * c.rows * c.cols * c.dtype.itemsize // PART)


def is_beyond(nbytes: int) -> bool:
    """Whether an override allows less workspace than `nbytes`."""
    requested = get_override("workspace")
    return requested is not None and nbytes > requested


def _emit_alone(launches: LaunchList, source: Operand, target: Operand, region: Region) -> None:
    emit_copy(launches, ALPHA, source, target, region)


def emit_copy(
    launches: LaunchList, factor, source: Operand, target: Operand, region: Region = Region.ALL
) -> None:
    """target := factor * source (with its conjugation)."""
    _emit(launches, factor, source, target, zero=False, region=region)


def emit_mirrored(launches: LaunchList, source: Operand, target: Operand, hermitian: bool) -> None:
    """target := all of the symmetric or Hermitian matrix of which `source` has the lower triangle."""
    region = Region.of(Uplo.LOWER, hermitian)
    _emit(launches, 1.0, source, target, zero=False, region=region, mirrored=True)


def emit_scale(
    launches: LaunchList, factor, target: Operand, zero: bool, region: Region = Region.ALL
) -> None:
    """target := factor * target; with `zero` it is filled with zeros and not read."""
    _emit(launches, factor, target, target, zero, region)


def emit_zeros(launches: LaunchList, a: Operand) -> None:
    """Zeros in all of `a`; in a stack without gaps by long columns, one a matrix."""
    size = a.rows * a.cols
    if (a.row_stride, a.col_stride) in ((1, a.rows), (a.cols, 1)) and a.batch_stride >= size:
        a = a._replace(rows=size, cols=a.batch, row_stride=1, col_stride=a.batch_stride)
        a = a._replace(batch=1, batch_stride=0)
    emit_scale(launches, 0.0, a, zero=True)


def emit_zeros_beyond(launches: LaunchList, a: Operand, uplo: Uplo) -> None:
    """Zeros in the strict other triangle."""
    if a.rows > 1:
        beyond = a.T if uplo is Uplo.LOWER else a
        emit_scale(launches, 0.0, beyond, zero=True, region=Region.STRICT_LOWER)


def is_readable(operand: Operand) -> bool:
    """Whether kernels can read it in place: its elements are at multiples of their size."""
    return operand.pointer % operand.dtype.itemsize == 0


def launch_list_of_product(
    emit: Callable[..., None], alpha: Any, operands: tuple[Operand, ...], k: int, beta: Any, *options: Any
) -> LaunchList | None:
    """Return the launch list of ``emit(launches, *operands, beta == 0, *options)``, or of beta C where alpha
    or k is zero.

    It serves operands of these layouts, and scalars that are 0 or 1 where these are. None where there is
    nothing to do. The last operand is C.
    """
    if operands[-1].is_empty:
        return None
    if alpha == 0 or k == 0:
        return None if beta == 1 else cached_launch_list(_emit_beta, operands, (beta == 0,))
    return cached_launch_list(emit, operands, (beta == 0, *options))


def _emit_beta(launches: LaunchList, *operands_and_overwrite: Any) -> None:
    *_, c, overwrite = operands_and_overwrite
    emit_scale(launches, BETA, c, zero=overwrite)


def emit_copy_to_workspace(launches: LaunchList, source: Operand) -> Operand:
    """A column-major copy of `source` in the workspace, each column with sectors of its own; its conjugation
    is done.
    """
    copy = launches.scratch(source.rows, source.cols, source.batch, ALIGNED)
    emit_copy(launches, 1.0, source, copy)
    return copy


def emit_resolved(launches: LaunchList, operand: Operand) -> Operand:
    """`operand`, or where it is meant conjugated a copy whose conjugation is done."""
    return emit_copy_to_workspace(launches, operand) if operand.conj else operand


def emit_kept(launches: LaunchList, source: Operand) -> Operand:
    """A copy of `source` in the workspace: of a dense batch of small matrices one of the same layout, else
    column-major.
    """
    if not _are_dense(source, source):
        return emit_copy_to_workspace(launches, source)
    memory = launches.scratch(source.rows * source.cols, 1, source.batch)
    kept = source._replace(pointer=memory.pointer, batch_stride=memory.batch_stride, conj=False)
    emit_copy(launches, 1.0, source, kept)
    return kept


def _emit(
    launches: LaunchList,
    factor,
    source: Operand,
    target: Operand,
    zero: bool,
    region: Region,
    mirrored: bool = False,
) -> None:
    if region is Region.ALL and _are_dense(source, target):
        source, target = _as_columns(source), _as_columns(target)
    device, rows, cols = current(launches.device), target.rows, target.cols
    choice = select("copy_scaled", launches.dtype, "", (rows, cols), device)
    config = (
        choice.config if choice.origin == OVERRIDE else choice.config.specialize(rows, cols, target.batch)
    )
    options = options_of(region, conj=source.conj, zero=zero, mirrored=mirrored)

    def integers(source: Operand, target: Operand) -> tuple:
        return rows, cols, options, *_strides(source, target)

    launches.emit(
        family_of("copy_scaled").source(config),
        config.grid(rows, cols),
        (source, target),
        integers,
        (factor,),
    )


def _are_dense(source: Operand, target: Operand) -> bool:
    """Whether these are batches of small matrices of one layout, their elements neighbours."""
    rows, cols = target.rows, target.cols
    strides = target.row_stride, target.col_stride
    return (
        1 < target.batch < MAX_COLUMNS
        and rows * cols <= MAX_DENSE
        and (source.row_stride, source.col_stride) == strides
        and strides in ((1, rows), (cols, 1))
    )


def _as_columns(batch: Operand) -> Operand:
    """A dense batch as one matrix: each of its matrices is a column."""
    size = batch.rows * batch.cols
    return batch._replace(
        rows=size, cols=batch.batch, row_stride=1, col_stride=batch.batch_stride, batch=1, batch_stride=0
    )


def _strides(source: Operand, target: Operand) -> tuple:
    return (
        source.row_stride,
        source.col_stride,
        target.row_stride,
        target.col_stride,
        source.batch_stride,
        target.batch_stride,
    )


class Packed(NamedTuple):
    """A packed operand.

    Attributes
    ----------
    memory : Operand
        All its elements as one column a matrix, at a multiple of 16 bytes; not conjugated.
    packing : Packing
        The layout of the elements.
    extent, k : int
        Extents before the padding, along m or n and along k.
    """

    memory: Operand
    packing: Packing
    extent: int
    k: int


def emit_packed(launches: LaunchList, operand: Operand, packing: Packing) -> Packed:
    """Emit a packed copy of `operand`, extent by k (A as it is, B transposed), in the workspace.

    A batch whose matrices are one and the same is packed once.

    Raises
    ------
    ConfigError
        Where a tile of `packing` has rows that are no multiples of 16 bytes.
    """
    extent, k = operand.rows, operand.cols
    source = operand if operand.batch_stride else operand.matrices(0, 1)
    config = select("pack", launches.dtype, "", (extent, k), current(launches.device)).config.specialize(
        packing
    )
    kernel, options = family_of("pack").source(config), options_of(conj=source.conj)
    memory = launches.scratch(packing.size(extent, k), 1, source.batch)
    steps = packing.steps(extent, k)

    def integers(source: Operand, memory: Operand) -> tuple:
        strides = source.row_stride, source.col_stride, *steps, source.batch_stride, memory.batch_stride
        return extent, k, options, *strides

    launches.emit(kernel, config.grid(extent, k), (source, memory), integers, ())
    if source.batch != operand.batch:
        memory = memory._replace(batch=operand.batch, batch_stride=0)
    return Packed(memory, packing, extent, k)
