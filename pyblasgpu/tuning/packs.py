"""Whether the operands of a product are packed before it, and the time that copies of them take.

A product of packed operands (`kernels.packing`) transposes, conjugates and masks nothing, however they lie:
it should run as one of layout 'nt' does, whose stripes come as they lie. Against that stands the packing,
which reads and writes both operands once. An operand with neither rows nor columns contiguous is copied
anyway.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from ..errors import ConfigError
from ..gpu.device import Device
from ..types import Dtype
from .block_cycles import dram_rate
from .prune import check_device
from .splits import CYCLE, LAUNCH

__all__ = ["GAIN", "LAYOUT", "MOST_PACKED", "copying", "fits", "packed_bytes", "packed_twin", "packing"]

LAYOUT = "nt"  # whose Configs, and times, serve packed operands
MOST_PACKED = 512 << 20  # bytes of workspace, beyond those of the copies that would be made anyway
GAIN = 0.95  # of the time as operands lie: packing must promise less, unless one is copied anyway
RATE = 0.8  # of DRAM's, at which operands are copied


@lru_cache(maxsize=1 << 10)
def packed_twin(config: Any, device: Device) -> Any:
    """`config` for packed operands; None where there is no such, or `device` cannot run it."""
    try:
        twin = config.of_packed()
        check_device(twin, device)
    except ConfigError:
        return None
    return twin


def packed_bytes(config: Any, extents: tuple[int, ...]) -> int:
    """Workspace of packed A and B, padding included, for a `config` that is packed."""
    m, n, k, *batch = extents
    of_a, of_b = config.packings
    return prod(batch) * (of_a.size(m, k) + of_b.size(n, k)) * config.dtype_facts.itemsize


def copied_bytes(extents: tuple[int, ...], copied: tuple[bool, bool], dtype: Dtype) -> int:
    """Workspace of the copies of A, B that are `copied`."""
    m, n, k, *batch = extents
    return prod(batch) * (m * copied[0] + n * copied[1]) * k * dtype.itemsize


def fits(config: Any, extents: tuple[int, ...], copied: tuple[bool, bool], room: int | None = None) -> bool:
    """Whether packed A and B are not too large for the workspace, of which there may be `room` bytes."""
    most = MOST_PACKED + copied_bytes(extents, copied, config.dtype_facts)
    return packed_bytes(config, extents) <= (most if room is None else min(room, most))


def copying(extents: tuple[int, ...], copied: tuple[bool, bool], dtype: Dtype, device: Device) -> float:
    """Seconds of the copies of A, B that are `copied`."""
    return sum(copied) * LAUNCH + _moving(copied_bytes(extents, copied, dtype), device)


def packing(config: Any, extents: tuple[int, ...], device: Device) -> float:
    """Seconds in which A and B are packed for a `config` that is packed."""
    return 2 * LAUNCH + _moving(packed_bytes(config, extents), device)


def _moving(size: int, device: Device) -> float:
    """Seconds in which so many bytes are read, and written elsewhere."""
    return 2 * size * CYCLE / (RATE * dram_rate(device))
