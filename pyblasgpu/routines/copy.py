"""D := alpha * op(S): copy, pack, unpack, scale in place, fill with zeros (kernel `copy_scaled`).

All of a square matrix or a triangle of it, a `Region`.
"""

from __future__ import annotations

from ..dispatch.choose import select
from ..dispatch.operand_copies import ALIGNED
from ..gpu.device import current
from ..kernels.copy import copy_scaled
from ..operands import Operand
from ..types import Region, Uplo
from .launch_list import ALPHA, Tape, recorded

__all__ = ["copy", "record_copy", "record_mirrored", "record_pack", "record_scale", "tape"]


def copy(alpha, source: Operand, target: Operand, stream: int) -> None:
    """Enqueue target := alpha source on `stream`; equal shapes, dtypes and batches, no memory shared."""
    found = tape(alpha, source, target)
    if found is not None:
        found.run((source.pointer, target.pointer), alpha, stream=stream)


def tape(alpha, source: Operand, target: Operand) -> Tape | None:
    """What `copy` runs, for operands that lie like these and any `alpha`; None for no work."""
    return None if target.is_empty else recorded(_record_whole, (source, target), ())


def _record_whole(tape: Tape, source: Operand, target: Operand) -> None:
    record_copy(tape, ALPHA, source, target)


def record_copy(tape: Tape, factor, source: Operand, target: Operand, region: Region = Region.ALL) -> None:
    """target := factor * source (with its conjugation)."""
    _record(tape, factor, source, target, zero=False, region=region)


def record_mirrored(tape: Tape, source: Operand, target: Operand, hermitian: bool) -> None:
    """target := all of the symmetric or Hermitian matrix of which `source` has the lower triangle."""
    region = Region.of(Uplo.LOWER, hermitian)
    _record(tape, 1.0, source, target, zero=False, region=region, mirrored=True)


def record_scale(tape: Tape, factor, target: Operand, zero: bool, region: Region = Region.ALL) -> None:
    """target := factor * target; with `zero` it is filled with zeros and not read."""
    _record(tape, factor, target, target, zero, region)


def record_pack(tape: Tape, source: Operand) -> Operand:
    """A column-major copy of `source` in the workspace, each column with sectors of its own; its conjugation
    is done.
    """
    copy = tape.scratch(source.rows, source.cols, source.batch, ALIGNED)
    record_copy(tape, 1.0, source, copy)
    return copy


def _record(
    tape: Tape, factor, source: Operand, target: Operand, zero: bool, region: Region, mirrored: bool = False
) -> None:
    device = current(tape.device)
    config = select(copy_scaled.STEM, tape.dtype, "", (target.rows, target.cols), device).config
    kernel = copy_scaled.source(config, source.conj, zero, source.by_rows, target.by_rows, region, mirrored)
    tape.launch(kernel, config.grid(target.rows, target.cols), (source, target), _integers, (factor,))


def _integers(source: Operand, target: Operand) -> tuple:
    return (
        target.rows, target.cols, source.row_stride, source.col_stride, target.row_stride, target.col_stride,
        source.batch_stride, target.batch_stride,
    )  # fmt: skip
