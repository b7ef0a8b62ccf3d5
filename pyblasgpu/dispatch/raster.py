"""Rows of tiles of a column in which C is rasterized: what a wave of blocks shares in L2, by device.

ATLAS's CacheEdge: a block of the cache beyond the first, found by timing (`tuning/papers/cache_edge.py`).
"""

from __future__ import annotations

from ..gpu.device import Device
from .overrides import get_override

__all__ = ["raster_of"]

#: By architecture, where timing found another value than the kernels' own to be faster.
RASTERS: dict[str, int] = {}


def raster_of(device: Device) -> int:
    """The value for a device; 0: that of the kernels."""
    asked = get_override("raster")
    return RASTERS.get(device.arch, 0) if asked is None else int(asked)
