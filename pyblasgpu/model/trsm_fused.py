"""Estimated cycles of TRSM in one launch (`kernels.gemm.trsm_fused`), of a GEMM Config.

Of all tiles along a strip each waits for the one before. So what counts is how soon a block has solved its
k-tiles and published it (the *chain*), unless the tiles keep the device busy all the time. The constants are
rounded from fits to 162 times, of 19 shapes, and to 210 of 8 shapes, on an H200.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..gpu.device import Device
from ..kernels.gemm.fused import group_of, shared_bytes, sharing, tile_counts, tile_orders
from ..kernels.registry import family_of
from ..types import Dtype, Triangle
from .block_cost import mma_rate, overlapped
from .gemm import gemm_block
from .occupancy import registers_of

__all__ = ["cycles", "resident"]

START = 6000  # cycles of the launch
RATE = 0.88  # of the time at the FMA rate, in which a block multiplies what its chain waits for
LEVEL = 1850  # cycles from the last k-tile of a tile to the first product with it elsewhere
K_TILE = 1400  # cycles of a k-tile on the diagonal, for barriers and what does not depend on its size
ELEMENT = 2.8  # cycles of a k-tile's unknown for each product of a thread with it
COLUMN = 1.3  # cycles of a multiply-add of substitution, one thread's after the other
SHARED = 1.4  # the same where threads share a right-hand side, by 4 bytes of a real
PASS = 110  # cycles in which a group of unknowns is passed on between such
SOLVED = 0.2  # of the time to solve a tile, which other blocks of the multiprocessor do not fill
LAST = 0.1  # of the time of a strip's last product, in which multiprocessors have no tile left
SHARP = 3  # how sharply the longer of chain and work decides


def resident(config: Any, triangle: Triangle, device: Device) -> int:
    """Blocks that a multiprocessor holds."""
    shared = shared_bytes(config, triangle)
    return device.occupancy(config.threads, registers_of(config, device), shared)


def cycles(config: Any, extents: tuple[int, int, int], triangle: Triangle, device: Device) -> float:
    """Estimated cycles of the launch."""
    work = _work(config, extents, triangle, device)
    chain = _chain(config, extents, triangle, device)
    return overlapped(work, chain, SHARP) + START


def _work(config: Any, extents: tuple[int, int, int], triangle: Triangle, device: Device) -> float:
    """Cycles of all tiles, spread over the multiprocessors."""
    (m, n, order), (block, _) = extents, tile_orders(config, triangle)
    held, tiles = resident(config, triangle, device), config.grid(m, n) / device.sm_count
    mean, last = (
        gemm_block(config, k, device, (False, False)).together(held) for k in ((order + block) // 2, order)
    )
    solved = SOLVED * block * _unknown(config, triangle, device)
    return tiles * (mean + solved) / held + LAST * last


def _chain(config: Any, extents: tuple[int, int, int], triangle: Triangle, device: Device) -> float:
    """Cycles until the last tile of a strip is solved, if none waits for a multiprocessor."""
    m, n, order = extents
    levels, _ = tile_counts(config, triangle, m, n)
    return levels * LEVEL + order * _unknown(config, triangle, device)


@lru_cache(maxsize=1 << 10)
def _unknown(config: Any, triangle: Triangle, device: Device) -> float:
    """Cycles of an unknown on the diagonal of a block that has its multiprocessor for itself."""
    (block, free), facts = tile_orders(config, triangle), config.dtype_facts
    products = facts.reals_per_element**2
    lanes = device.fma_lanes(facts) * (mma_rate(facts, device) if family_of(config.STEM).tensor_cores else 1)
    busy = min(config.threads / (device.warp_size * device.partitions), 1)
    multiplied = RATE * block * free / (lanes * busy) + ELEMENT * config.THR_M * config.THR_N
    substituted = _substituted(facts, config.BLK_K, sharing(facts, config.threads, free, config.BLK_K))
    return products * multiplied + substituted + K_TILE / config.BLK_K


def _substituted(facts: Dtype, count: int, shares: int) -> float:
    """Cycles of an unknown of `count` in substitution, by `shares` threads for each right-hand side."""
    products, group = facts.reals_per_element**2, group_of(facts)
    if shares == 1:
        return products * COLUMN * count
    met = group / 2 + count / (2 * shares)  # within the group, and of the thread's own rows
    return PASS / group + products * SHARED * facts.real_size / 4 * met
