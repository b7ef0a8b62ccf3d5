"""Cycles of the leaves of TRMM and TRSM: panels of columns, and warps that own columns."""

from __future__ import annotations

from math import prod
from typing import Any

from ..gpu.device import Device
from ..kernels.registry import FAMILIES
from .block_cost import (
    ANSWER,
    BARRIER,
    L2_BYTES,
    LINE,
    START,
    BlockCost,
    mma_rate,
    mma_time,
    slots_per_fma,
    waves,
)

__all__ = ["leaf_cycles"]

COPY = 60  # instructions of a global load, element by element, which knows no contiguous dimension
ROW = 200  # cycles between two block rows of a leaf
DEPENDENT = 4  # cycles until an FMA of a substitution can use the one before


def leaf_cycles(stem: str, config: Any, extents: tuple[int, ...], resident: int, device: Device) -> float:
    """A leaf of all of the triangle; of a family that has a largest order, leaves and products between."""
    n, rhs, *batch = extents
    count = prod(batch)
    blocks = config.grid(rhs) * count
    if "ORDER" not in FAMILIES[stem].parameters:
        return waves(_leaf_block(config, n, device), blocks, resident, device)
    leaves = -(-n // config.ORDER)
    block = _warp_leaf_block(stem, config, min(n, config.ORDER), device)
    products = (
        max(n * n - leaves * config.ORDER**2, 0) / 2 * rhs * count * config.dtype_facts.reals_per_element**2
    )
    on_tensor_cores = device.has_double_mma and config.dtype_facts.real == "float64"
    faster = mma_rate(config.dtype_facts, device) if on_tensor_cores else 1
    rate = faster * device.fma_lanes(config.dtype_facts) * device.sm_count
    between = (leaves - 1) * START + products / rate
    return leaves * waves(block, blocks, resident, device) + between


def _warp_leaf_block(stem: str, config: Any, n: int, device: Device) -> BlockCost:
    """Warps that solve their columns, a lane a column, and update all rows below."""
    facts, BLK = config.dtype_facts, config.BLK
    tiles = -(-n // BLK)
    below = tiles * (tiles - 1) / 2
    per_fma = slots_per_fma(config, device)
    solve = BLK**2 / 2 * facts.reals_per_element**2 * per_fma
    update = BLK**2 * config.WARP_N / device.warp_size * facts.reals_per_element**2 * per_fma
    if FAMILIES[stem].tensor_cores:  # one lane reads an element of T, else the four of a row do, in vectors
        update, loads = update * mma_time(config, device), BLK**2 / device.warp_size
    else:
        loads = 4 * BLK**2 / (device.warp_size * config.vector)
    update += loads
    warps = config.WARPS / device.partitions
    fetched = (n * n / 2 + 2 * n * config.BLK_N) * facts.itemsize / L2_BYTES
    work = max(warps * (tiles * solve + below * update), fetched)
    # of two warps that take turns the other one updates meanwhile, except for the next tile
    chained = max(below / config.WARPS_PER_COLUMN_GROUP, tiles) * update
    return BlockCost(work, tiles * (solve + BLK * DEPENDENT + ROW + BARRIER) + chained, START)


def _leaf_block(config: Any, n: int, device: Device) -> BlockCost:
    """A panel of columns: the k-tiles up to the diagonal of each block row."""
    facts, warps = config.dtype_facts, config.threads // device.warp_size
    rows = -(-n // config.BLK_M)
    ends = (min((row + 1) * config.BLK_M, n) for row in range(rows))
    k_tiles = sum(-(-end // config.BLK_K) for end in ends)
    loads = (config.BLK_M + config.BLK_N) * config.BLK_K / config.threads
    slots = config.THR_M * config.THR_N * facts.reals_per_element**2 * slots_per_fma(config, device)
    slots += config.THR_M / config.VEC_M + config.THR_N / config.VEC_N
    issue = config.BLK_K / config.SLICED_K * slots + loads * COPY
    lines = config.BLK_K / config.SLICED_K * (config.THR_M + config.THR_N) * facts.itemsize * 8 / LINE
    fetched = (config.BLK_M + config.BLK_N) * config.BLK_K * facts.itemsize / L2_BYTES
    work = max(warps * (issue / device.partitions + lines), fetched)
    latency = max(issue + 2 * BARRIER, ANSWER / (config.stages - 1))
    sums = (config.SLICED_K - 1) * config.THR_M * config.THR_N * facts.itemsize
    return BlockCost(k_tiles * work, k_tiles * latency + rows * (ROW + sums))
