"""Cost of a launch of `ger`: A is read and written once."""

from __future__ import annotations

from ...gpu.device import Device
from .ger import Ger

__all__ = ["cycles"]

LAUNCH = 1000  # cycles that a launch takes, whatever it does
BLOCK = 3000  # those until a block runs, has its elements and has stored them
SM_BYTES = 39.0  # that a multiprocessor takes, or gives, in a cycle
DRAM_SHARE = 0.85  # of what memory could give to a kernel that reads and writes
UNKNOWN_DRAM = 16.0  # bytes in a cycle, for each multiprocessor, of a device that does not report it


def cycles(config: Ger, rows: int, cols: int, batch: int, device: Device) -> float:
    """Estimated cycles of an update of `batch` matrices."""
    blocks, size = config.grid(rows, cols) * batch, config.dtype_facts.itemsize
    waves = -(-blocks // (device.sm_count * config.min_blocks))
    of_block = 2 * config.BLK_M * config.BLK_N * size
    latency = waves * BLOCK + -(-blocks // device.sm_count) * of_block / SM_BYTES
    bandwidth = (device.dram_bytes or UNKNOWN_DRAM * device.sm_count) * DRAM_SHARE
    dram = 2 * rows * cols * batch * size / bandwidth
    return LAUNCH + (latency**3 + dram**3) ** (1 / 3)
