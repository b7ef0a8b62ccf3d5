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
from .triangle_twins import longer_in

__all__ = ["UNTIMED", "least_share", "persistent_twins"]

UNTIMED = 1.03  # times what a twin should take by its Config's time: it was not timed itself


@lru_cache(maxsize=1 << 12)
def persistent_twins(config: Any, part: str, device: Device) -> tuple[tuple[Any, float], ...]:
    """The persistent kernels of the same tile and pipeline, by blocks of a multiprocessor, and by what factor
    their time for `part` of C is in doubt; of those that have registers to spare, as none was compiled.
    """
    if config.persistent:
        return ()
    twins = (twin for twin in persistent(replace(config, min_blocks=1), device) if comfortable(twin, device))
    return tuple((twin, UNTIMED * longer_in(config.dtype, part)) for twin in twins)


def least_share(config: Any, extents: tuple[int, ...], device: Device, part: str = "all") -> float:
    """Of the time of an ordinary kernel, what its twins take at least: the share of its waves of blocks that
    it has tiles for; infinite where there are fewer tiles than multiprocessors, of which too little is sure.
    """
    tiles = tiles_of(config, extents, part)
    waves = tiles / (blocks_per_sm(config, device) * device.sm_count)
    return UNTIMED * waves / ceil(waves) if tiles >= device.sm_count else inf
