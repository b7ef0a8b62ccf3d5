"""How fast a Config ought to be, by arithmetic alone: the share of the device's FMA rate that it may reach.

Wave quantisation times issue efficiency times what hides latency. Good enough to choose a default where
nothing was measured, and to say which candidates are worth compiling.
"""

from __future__ import annotations

from typing import Any

from ..gpu.device import Device

__all__ = ["OVERHEAD", "blocks_per_sm", "comfortable", "score"]

OVERHEAD = 24  # registers of addresses and counters that a kernel needs beside its Config's own estimate
COMFORT = 88  # what it takes beside it if it may; with less, some kernels spill
LATENCY_WARPS = 8  # resident warps that hide most latency
LOAD_COST = 0.6  # a shared-memory load against an FMA, for each element
STEP = 40  # cycles of one dependent step of a substitution
LANES = 128  # FMA lanes of a multiprocessor
L2_BYTES = 64  # that a multiprocessor gets from L2 in a cycle


def blocks_per_sm(config: Any, device: Device) -> int:
    """Blocks that a multiprocessor holds, by the estimated registers, as the launch bounds leave them."""
    return device.occupancy(config.threads, _registers(config, device), config.shared_bytes)


def score(stem: str, config: Any, extents: tuple[int, ...], device: Device) -> float:
    """The share of the FMA rate that `config` may reach at `extents`, for comparison within a family."""
    resident = blocks_per_sm(config, device)
    if resident == 0:
        return 0.0
    spill = min(1.0, (_limit(config, device) / (config.registers + OVERHEAD)) ** 2)
    issue = config.reuse / (config.reuse + LOAD_COST)
    common = issue * spill
    if stem == "gemm_tile":
        return common * _gemm_waves(config, extents, resident, device)
    return common * _leaf_waves(config, extents, device)


def comfortable(config: Any, device: Device) -> bool:
    """Whether `config` leaves the compiler so many registers that it need not be seen to compile."""
    return config.registers + COMFORT <= _limit(config, device)


def _limit(config: Any, device: Device) -> int:
    """Registers a thread may have under the Config's launch bounds."""
    bound = device.registers_per_sm // (config.threads * config.min_blocks)
    return min(device.max_registers_per_thread, bound)


def _registers(config: Any, device: Device) -> int:
    return min(config.registers + OVERHEAD, _limit(config, device) // 8 * 8)


def _gemm_waves(config: Any, extents: tuple[int, ...], resident: int, device: Device) -> float:
    """Useful part of the waves, of the cycles (the rest fetches tiles), of the warps that hide latency."""
    m, n, *_ = extents
    area, edges = config.BLK_M * config.BLK_N, config.BLK_M + config.BLK_N
    rounds = -(-config.grid(m, n) // device.sm_count)
    useful = m * n / (rounds * device.sm_count * area)
    facts = config.dtype_facts
    multiply, fetch = area * facts.parts**2 / LANES, edges * facts.itemsize / L2_BYTES
    warps = min(resident, rounds) * config.threads / device.warp_size
    hidden = min(1.0, warps / LATENCY_WARPS) * config.BLK_K / (config.BLK_K + 1)
    return useful * hidden * multiply / (multiply + fetch)


def _leaf_waves(config: Any, extents: tuple[int, ...], device: Device) -> float:
    """Useful cycles over cycles of the slowest multiprocessor: products, then the serial diagonal blocks."""
    n, rhs = extents
    rounds = -(-config.grid(rhs) // device.sm_count)
    products = n * n / 2 * config.BLK_N / min(config.threads, LANES)
    diagonal = n * (config.BLK_M / 2 + STEP)
    return n * n / 2 * rhs / (device.sm_count * LANES) / (rounds * (products + diagonal))
