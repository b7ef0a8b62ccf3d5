"""The twins of a GEMM Config that compute a triangle of C (`kernels.part`), which the tuner does not time."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..gpu.device import Device
from .score import comfortable

__all__ = ["LONGER", "triangle_twins"]

#: How many times longer persistent blocks take for a tile than blocks of one tile each, by dtype: with
#: registers to spare, and without. The next tile of a triangle is found in the loop, and what FMAs of complex
#: singles gain by the order of their registers is lost.
LONGER = {"c": (1.01, 1.12)}


@lru_cache(maxsize=1 << 12)
def triangle_twins(config: Any, part: str, device: Device) -> tuple[tuple[Any, float], ...]:
    """The kernels of the same tile and pipeline for `part` of C, and how many times longer than for all of C
    each takes for a tile.
    """
    if part == "all" or config.dtype not in LONGER or not config.persistent:
        return ((config, 1.0),)
    spare, none = LONGER[config.dtype]
    longer = spare if comfortable(config, device) else none
    return (replace(config, persistent=False), 1.0), (config, longer)
