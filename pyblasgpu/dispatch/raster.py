"""Rows of tiles of a column in which C is rasterized: what a wave of blocks shares in L2.

ATLAS's CacheEdge: a block of the cache beyond the first, found by timing (`tuning/papers/cache_edge.py`).
"""

from __future__ import annotations

from ..gpu.device import Device
from ..types import Dtype
from . import tuned_files
from .overrides import get_override

__all__ = ["raster_of"]


def raster_of(dtype: Dtype, device: Device) -> int:
    """The value of products in `dtype`: an override's, else that of the files; 0: that of the kernels."""
    requested = get_override("raster")
    if requested is not None:
        return int(requested)
    filed = (document.rasters.get(dtype.letter) for _, document in tuned_files.documents(device))
    return next((raster for raster in filed if raster is not None), 0)
