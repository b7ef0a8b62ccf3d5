"""Whether operands of a product are copied before it, and the time that copies and packing take.

A copy of one operand, transposed or to columns that begin with a sector of memory, may be worth a faster
kernel. The cost is the copy, which reads and writes an operand once. One with neither rows nor columns
contiguous is copied anyway. Packed operands (`kernels.copy.packing`) are requested by name: their product
runs as one of layout 'nt' does, whose k-tiles are copied as stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import Any, NamedTuple

from ..gpu.device import Device
from ..model.block_cost import dram_rate
from ..model.gemm import Misaligned
from ..model.score import cycles
from ..operands import SECTOR
from ..types import Dtype, Region, Triangle
from .tuned_files import rates_of

__all__ = [
    "ALIGNED",
    "MIN_SPEEDUP",
    "MOST_COPIED",
    "OperandLayouts",
    "copied_bytes",
    "copying",
    "match_alignment",
    "misalignment_cost",
    "other_layouts",
    "packed_bytes",
    "packing",
    "sector_misaligned",
    "with_layout",
    "within",
]

ALIGNED = SECTOR  # bytes: no load is wider, and none is faster for more

MOST_COPIED = 512 << 20  # bytes of workspace, beyond those of the copies that would be made anyway
MIN_SPEEDUP = 1 / 0.95  # that copies must promise, unless one is made anyway
TILE = 32  # what a block copies at a time: as long for less


class OperandLayouts(NamedTuple):
    """The layout of a product's operands: 'nn', 'tn', ..., which of A, B are copied for it, and the bytes, up
    to `ALIGNED`, at multiples of which their columns begin (rows, if transposed).
    """

    layout: str
    copied: tuple[bool, bool]
    aligned: tuple[int, int]


def other_layouts(layouts: OperandLayouts) -> Iterator[OperandLayouts]:
    """Return the problem with operands copied that need not be, or to another layout; but none for nothing.

    A copy has either layout, and its columns begin with a sector.
    """
    operands = list(zip(*layouts, strict=True))

    def choices(letter: str, copied: bool, aligned: int) -> Iterator[tuple[str, bool, int]]:
        yield letter, copied, aligned
        for other in "nt":
            if other != letter or (aligned < ALIGNED and not copied):
                yield other, True, ALIGNED

    for a, b in product(*(choices(*operand) for operand in operands)):
        if [a, b] != operands:
            yield OperandLayouts(a[0] + b[0], (a[1], b[1]), (a[2], b[2]))


def with_layout(layouts: OperandLayouts, layout: str) -> OperandLayouts:
    """The operands in that `layout`, copied where their layout differs."""
    candidates = (each for each in (layouts, *other_layouts(layouts)) if each.layout == layout)
    return min(candidates, key=lambda each: sum(each.copied))


def packed_bytes(config: Any, extents: tuple[int, ...]) -> int:
    """Workspace of packed A and B, padding included, for a `config` that is packed."""
    m, n, k, *batch = extents
    of_a, of_b = config.packings
    elements = prod(batch) * (of_a.size(m, k) + of_b.size(n, k))
    return int(elements * config.dtype_facts.itemsize)


def copied_bytes(extents: tuple[int, ...], copied: tuple[bool, bool], dtype: Dtype) -> int:
    """Workspace of the copies of A, B that are `copied`."""
    m, n, k, *batch = extents
    return prod(batch) * (m * copied[0] + n * copied[1]) * k * dtype.itemsize


def within(size: int, workspace_limit: int | None) -> bool:
    """Whether optional copies may take `size` bytes, within their `workspace_limit`."""
    return size <= (MOST_COPIED if workspace_limit is None else min(workspace_limit, MOST_COPIED))


def copying(extents: tuple[int, ...], copied: tuple[bool, bool], dtype: Dtype, device: Device) -> float:
    """Seconds of the copies of A, B that are `copied`, by whole tiles."""
    rows_cols_k, batch = extents[:3], extents[3:]
    tiled = (*(-(-extent // TILE) * TILE for extent in rows_cols_k), *batch)
    policy = rates_of(device)
    share = policy.copied_share[dtype.letter]
    return sum(copied) * policy.copy_seconds + _moving(copied_bytes(tiled, copied, dtype), share, device)


def packing(config: Any, extents: tuple[int, ...], device: Device) -> float:
    """Seconds in which A and B are packed for a `config` that is packed."""
    policy = rates_of(device)
    return 2 * policy.copy_seconds + _moving(packed_bytes(config, extents), policy.packed_share, device)


def _moving(size: int, share: float, device: Device) -> float:
    """Return the seconds in which `size` bytes are read and written elsewhere, at a share of DRAM's rate."""
    return 2 * size * rates_of(device).cycle_seconds / (share * dram_rate(device))


@lru_cache(maxsize=1 << 12)
def match_alignment(config: Any, aligned: tuple[int, int]) -> Any:
    """`config` as it runs on operands that begin at multiples of `aligned` bytes: its kernel copies single
    elements where these bound its vectors.
    """
    a, b = (max(distance // config.dtype_facts.itemsize, 1) for distance in aligned)
    return config if a >= config.VEC_A and b >= config.VEC_B else _scalar_variant(config)


@lru_cache(maxsize=1 << 12)
def _scalar_variant(config: Any) -> Any:
    return config.scalar_variant


def misalignment_cost(
    config: Any,
    extents: tuple[int, ...],
    strays: Misaligned,
    device: Device,
    region: Region | Triangle = Region.ALL,
) -> Any:
    """Return the factor by which sector-misaligned columns slow the product down."""
    if not any(strays):
        return 1.0
    cycles_here = partial(cycles, config.STEM, config, extents, device, region=region)
    return cycles_here(sector_misaligned=strays) / cycles_here()


def sector_misaligned(aligned: tuple[int, int]) -> tuple[int, int]:
    """Bytes at multiples of which columns of operands begin, where that is within sectors; else 0."""
    first, second = aligned
    return first if first < ALIGNED else 0, second if second < ALIGNED else 0
