"""The search space of `cpu_gemm`, and the Config of a processor on which nothing is tuned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...types import DTYPES
from .config import CpuGemm
from .device import Processor

__all__ = ["blocks", "default", "tiles"]

_DEPTHS = (128, 192, 256, 320, 384, 512)
_SHARES = (0.25, 0.4, 0.6, 0.8)  # of the second-level cache, for packed A
_WIDTHS = (1024, 2048, 4096)
_UNROLLS = (2, 4, 8)


def default(letter: str, processor: Processor) -> CpuGemm:
    """A register tile of three vectors by as many columns as there are registers for; caches half full."""
    facts = DTYPES[letter]
    lanes = processor.lanes(facts.real_size)
    columns = max(((processor.vector_registers - 1) // 3 - 1) // facts.reals_per_element, 1)
    columns = columns // 2 * 2 or 1
    tile = CpuGemm(
        dtype=letter,
        BLK_M=3 * lanes // facts.reals_per_element,
        BLK_N=columns,
        BLK_K=256,
        THR_M=3 * lanes // facts.reals_per_element,
        THR_N=columns,
        VEC=lanes,
    )
    return _with_blocks(tile, 256, 0.5, 2048, processor)


def tiles(letter: str, processor: Processor) -> Iterator[CpuGemm]:
    """The default with every register tile that fits, and every unrolling."""
    start, facts = default(letter, processor), DTYPES[letter]
    reals, registers = facts.reals_per_element, processor.vector_registers
    for vectors in (1, 2, 3, 4):
        most = ((registers - 1) // vectors - 1) // reals
        for columns in sorted({most, most // 2 * 2, most // 4 * 4} - {0}):
            for unroll in _UNROLLS:
                rows = vectors * start.VEC // reals
                tile = replace(start, BLK_M=rows, BLK_N=columns, THR_M=rows, THR_N=columns, UNROLL=unroll)
                yield _with_blocks(tile, start.BLK_K, 0.5, 2048, processor)


def blocks(tile: CpuGemm, processor: Processor) -> Iterator[CpuGemm]:
    """Yield the register tile with blocks for the caches."""
    for depth in _DEPTHS:
        for share in _SHARES:
            for width in _WIDTHS:
                yield _with_blocks(tile, depth, share, width, processor)


def _with_blocks(tile: CpuGemm, depth: int, share: float, width: int, processor: Processor) -> CpuGemm:
    rows = int(share * processor.l2_bytes / (depth * tile.dtype_facts.itemsize))
    return replace(
        tile,
        BLK_M=max(rows // tile.THR_M, 1) * tile.THR_M,
        BLK_N=max(width // tile.THR_N, 1) * tile.THR_N,
        BLK_K=depth,
    )
