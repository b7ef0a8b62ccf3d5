"""Estimate of a Config's speed, by arithmetic alone: its cycles on a multiprocessor.

Whole waves of blocks, then a last one that is not full. What a multiprocessor does for its blocks costs about
the larger of two, throughput and latency. Throughput, which all resident blocks share, is instructions
issued, shared memory, bytes from L2 and of C to DRAM. Latency, which one block suffers alone, is the k-tile
of one warp and a barrier, or the memory's answer. A block's start hides behind the others; the stores of C at
its end do not. DRAM bounds the whole. `model.gemm` and `leaf_cycles` estimate a block, `model.block_cost`
many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..gpu.device import Device
from ..kernels.common.tile_schedule import squares_of_tiles
from ..kernels.gemm.fused import tile_counts, tile_orders
from ..kernels.registry import family_of
from ..types import Region, Triangle
from .block_cost import overlapped, persistent_waves, stream_k_waves, waves
from .columns import Columns, larger, smaller, up
from .gemm import Misaligned, dram_cycles, gemm_block
from .leaf import leaf_cycles
from .occupancy import Fit, blocks_per_sm, register_limit, registers_needed

__all__ = ["cycles", "in_place_cycles", "partial_tile_bytes", "score", "scores", "fixup_cycles", "tiles_of"]

FIXUP = 8000  # cycles that sharing tiles takes, without what follows
LONGEST = 0.8  # of the tile with the most to do of a product in place: it hides others, or they hide it
SHARP_IN_PLACE = 6  # of these two the larger counts, more than where latency hides behind throughput
LEVEL = 200  # cycles that each row of tiles costs there: a flag, and what waits for it
FIXUP_LOAD = 700  # cycles in which a block adds what its threads load at a time


def score(stem: str, config: Any, extents: tuple[int, ...], device: Device) -> float:
    """The share of the FMA rate that `config` may reach at `extents`, for comparison within a family."""
    if blocks_per_sm(config, device) == 0:
        return 0.0
    return _score(stem, config, extents, device)


def scores(configs: Sequence[Any], problems: Sequence[tuple[int, ...]], device: Device) -> np.ndarray:
    """`score` of each of `configs` of one dtype, at each of `problems`: a row a Config."""
    table = np.zeros((len(configs), len(problems)))
    fit, groups = Fit(device), defaultdict[tuple, list[int]](list)
    for at, config in enumerate(configs):
        if not family_of(config.STEM).is_product:
            table[at] = [score(config.STEM, config, extents, device) for extents in problems]
        elif fit.blocks(config):
            groups[config.STEM, config.persistent].append(at)
    # extents of a batch have one number more
    rows = np.array([(*extents, *(1,) * (4 - len(extents))) for extents in problems], dtype=np.int64)
    for (stem, _), chosen in groups.items():
        alike = [configs[at] for at in chosen]
        resident = np.array([[fit.blocks(config)] for config in alike])
        table[chosen] = _score(stem, Columns(alike, resident), tuple(rows.T), device)
    return table


def _score(stem: str, config: Any, extents: tuple[Any, ...], device: Device) -> Any:
    """`score` of a Config that fits on `device`, or of `Columns` of such."""
    spill = smaller(1.0, (register_limit(config, device) / registers_needed(config, device)) ** 2)
    facts = config.dtype_facts
    products = extents[0] ** 2 / 2 * prod(extents[1:]) if family_of(stem).is_leaf else prod(extents)
    ideal = products * facts.reals_per_element**2 / (device.fma_lanes(facts) * device.sm_count)
    best = cycles(stem, config, extents, device)
    if getattr(config, "persistent", False):
        by_stream_k = cycles(stem, config, extents, device, True) + fixup_cycles(config, extents, device)
        best = smaller(best, by_stream_k)
    return spill * ideal / best


def cycles(
    stem: str,
    config: Any,
    extents: tuple[int, ...],
    device: Device,
    stream_k: bool = False,
    region: Region | Triangle = Region.ALL,
    sector_misaligned: Misaligned = (0, 0),
) -> float:
    """Estimated cycles of one launch, without what every launch takes.

    Parameters
    ----------
    stem : str
        The kernel family.
    config : object
        A Config that fits on `device`, or `Columns` of such.
    extents : tuple of int
        (m, n, k[, batch]) of a GEMM, (order, right-hand sides[, batch]) of a leaf.
    device : Device
    stream_k : bool
        Whether the blocks of a persistent kernel share the last tiles; `fixup_cycles` are extra.
    region : Region or Triangle
        Region of a GEMM's C, as `kernels.common.region` names it; or the triangle by which C is multiplied in
        place, as `kernels.gemm.trmm_fused` does.
    sector_misaligned : (int, int)
        Bytes at multiples of which columns of the A, B of a GEMM (rows, if transposed) begin, where that is
        within sectors of memory; else 0. For `Columns` also a tuple of such pairs, one for each Config.
    """
    resident: Any = config.resident if isinstance(config, Columns) else blocks_per_sm(config, device)
    if isinstance(region, Triangle):
        share, longest = in_place_cycles(config, extents, device, region, sector_misaligned)
        levels, _ = tile_counts(config, region, *extents[:2])
        return overlapped(share, LONGEST * longest, SHARP_IN_PLACE) + LEVEL * levels
    if cost := family_of(stem).cost:
        return cost(config, extents, device)
    if family_of(stem).is_leaf:
        return leaf_cycles(stem, config, extents, resident, device)
    m, n, k, *batch = extents
    count = prod(batch)  # no tile holds parts of two matrices
    block, tiles = gemm_block(config, k, device, sector_misaligned), tiles_of(config, extents, region)
    if not config.persistent:
        taken = waves(block, tiles, resident, device)
    else:
        taken = (stream_k_waves if stream_k else persistent_waves)(block, tiles, config.min_blocks, device)
    return larger(taken, count * dram_cycles(config, (m, n, k), resident, device))


def in_place_cycles(
    config: Any,
    extents: tuple[int, ...],
    device: Device,
    triangle: Triangle,
    sector_misaligned: Misaligned = (0, 0),
) -> tuple[float, float]:
    """Return the cycles of a product in place by a triangle of order k. They are of all tiles, spread over
    the multiprocessors, and of the tile with the most work.
    """
    m, n, k, *_ = extents
    resident, (block, _) = blocks_per_sm(config, device), tile_orders(config, triangle)
    tiles = config.grid(m, n)
    mean = gemm_block(config, (k + block) // 2, device, sector_misaligned)
    all_tiles = tiles * mean.together(resident) / (device.sm_count * resident)
    concurrent = min(resident, -(-tiles // device.sm_count))
    longest = gemm_block(config, k, device, sector_misaligned).together(concurrent, last=True)
    dram = dram_cycles(config, (m, n, k // 2), resident, device)
    return max(all_tiles, dram), longest


def tiles_of(config: Any, extents: tuple[int, ...], region: Region | Triangle = Region.ALL) -> int:
    """Tiles of all matrices of a product of (m, n, k[, batch]) that take their time."""
    m, n, _, *batch = extents
    if isinstance(region, Triangle) or region is Region.ALL or config.persistent:
        return prod(batch) * config.grid(m, n, region)
    return prod(batch) * _met_tiles(config, m, n, region)


def _met_tiles(config: Any, m: int, n: int, region: Region) -> int:
    """Tiles that a triangle meets, a mean where its last square of tiles is not whole: blocks of the other
    tiles of its squares compute nothing.
    """
    BLK_M, BLK_N = (config.BLK_N, config.BLK_M) if region.is_upper else (config.BLK_M, config.BLK_N)
    m, n = (n, m) if region.is_upper else (m, n)
    rows, columns, (_, across) = -(-m // BLK_M), -(-n // BLK_N), squares_of_tiles(BLK_M, BLK_N)
    above = (columns - 1) / 2 * BLK_N / BLK_M - (across - 1) / (2 * across)
    return round(columns * (rows - above))


def fixup_cycles(
    config: Any, extents: tuple[int, ...], device: Device, region: Region | Triangle = Region.ALL
) -> float:
    """Return the cycles of a stream-K product's fixup, which writes and adds up partial tiles."""
    partial_tiles = up(device.sm_count * config.min_blocks / tiles_of(config, extents, region))  # of a tile
    loads, together = config.fixup_loads
    loads_in_turn = up(partial_tiles / together) * (
        config.THR_M * config.THR_N * config.dtype_facts.reals_per_element // loads
    )
    return FIXUP + FIXUP_LOAD * loads_in_turn


def partial_tile_bytes(config: Any, device: Device) -> int:
    """Bytes of scratch for the partial tiles of all blocks that the device holds."""
    tile = config.BLK_M * config.BLK_N * config.dtype_facts.itemsize
    return device.sm_count * config.min_blocks * tile
