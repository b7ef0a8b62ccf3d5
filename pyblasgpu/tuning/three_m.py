"""Which kernels multiply complex matrices by three real products (3M): those that were tuned for four.

They hold half as many sums again, so a tile that leaves them too few registers is none of theirs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..errors import ConfigError
from ..gpu.device import Device
from .prune import check_device
from .score import comfortable

__all__ = ["three_m_twin"]

SMALLEST = 4  # MMA_K: the fewest registers for fragments


@lru_cache(maxsize=1 << 10)
def three_m_twin(config: Any, device: Device) -> Any:
    """`config` with three products, by smaller instructions if need be; None where there is no such."""
    if not hasattr(config, "three_m"):
        return None
    for depth in dict.fromkeys((config.MMA_K, SMALLEST)):
        try:
            twin = replace(config, three_m=True, MMA_K=depth)
            check_device(twin, device)
        except ConfigError:
            continue
        if comfortable(twin, device):
            return twin
    return None
