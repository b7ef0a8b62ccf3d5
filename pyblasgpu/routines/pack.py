"""Operands of a product in a packed layout, op() applied and zeros at their ends (kernel `pack`)."""

from __future__ import annotations

from typing import NamedTuple

from ..dispatch.choose import select
from ..gpu.device import current
from ..kernels.copy import pack
from ..kernels.copy.packing import Packing
from ..operands import Operand
from .launch_list import Tape

__all__ = ["Packed", "record_packed"]


class Packed(NamedTuple):
    """A packed operand.

    Attributes
    ----------
    memory : Operand
        All its elements as one column a matrix, at a multiple of 16 bytes; not conjugated.
    packing : Packing
        Where which element lies.
    extent, k : int
        Extents before the padding, along m or n and along k.
    """

    memory: Operand
    packing: Packing
    extent: int
    k: int


def record_packed(tape: Tape, operand: Operand, packing: Packing) -> Packed:
    """Record that `operand`, extent by k (A as it is, B transposed), is packed into the workspace.

    A batch whose matrices are one and the same is packed once.

    Raises
    ------
    ConfigError
        Where a tile of `packing` has rows that are no multiples of 16 bytes.
    """
    extent, k = operand.rows, operand.cols
    source = operand if operand.batch_stride else operand.matrices(0, 1)
    config = select(pack.STEM, tape.dtype, "", (extent, k), current(tape.device)).config.serving(packing)
    kernel = pack.source(config, source.conj, source.by_rows)
    memory = tape.scratch(packing.size(extent, k), 1, source.batch)
    steps = packing.steps(extent, k)

    def integers(source: Operand, memory: Operand) -> tuple:
        strides = source.row_stride, source.col_stride, *steps, source.batch_stride, memory.batch_stride
        return extent, k, *strides

    tape.launch(kernel, config.grid(extent, k), (source, memory), integers, ())
    if source.batch != operand.batch:
        memory = memory._replace(batch=operand.batch, batch_stride=0)
    return Packed(memory, packing, extent, k)
