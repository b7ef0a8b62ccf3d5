"""The twins of a GEMM Config whose blocks walk over tiles (`kernels.walk`), and which no file has.

The tuner keeps what won at a few extents. Elsewhere a last wave of blocks may be nearly empty; persistent
blocks of the same tile part what it has, so that all end at once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import ceil, inf
from typing import Any

from ..gpu.device import Device
from .prune import persistent
from .score import blocks_per_sm, comfortable, tiles_of

__all__ = ["least_share", "persistent_twins"]


@lru_cache(maxsize=1 << 12)
def persistent_twins(config: Any, device: Device) -> tuple[Any, ...]:
    """The persistent kernels of the same tile and pipeline, by blocks of a multiprocessor; of those that have
    registers to spare, as none was compiled.
    """
    if config.persistent:
        return ()
    twins = persistent(replace(config, min_blocks=1), device)
    return tuple(twin for twin in twins if comfortable(twin, device))


def least_share(config: Any, extents: tuple[int, ...], device: Device, part: str = "all") -> float:
    """Of the time of an ordinary kernel, what its twins take at least: the share of its waves of blocks that
    it has tiles for; infinite where there are fewer tiles than multiprocessors, of which too little is sure.
    """
    tiles = tiles_of(config, extents, part)
    waves = tiles / (blocks_per_sm(config, device) * device.sm_count)
    return waves / ceil(waves) if tiles >= device.sm_count else inf
