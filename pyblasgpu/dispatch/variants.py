"""Variants of a tuned GEMM Config that the tuner does not time.

Fused with a triangle, of three real products, for a triangle of C, or with persistent blocks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import ceil, inf
from typing import Any

from ..errors import ConfigError
from ..gpu.device import Device
from ..kernels.gemm.trmm_fused import check
from ..model.occupancy import blocks_per_sm, check_device, comfortable
from ..model.score import tiles_of
from ..types import Region, Triangle

__all__ = [
    "FEWER",
    "LONGER",
    "in_place_twin",
    "least_share",
    "persistent",
    "persistent_twins",
    "three_m_twin",
    "triangle_twins",
]


@lru_cache(maxsize=1 << 12)
def in_place_twin(config: Any, triangle: Triangle) -> Any:
    """The same tile and pipeline for blocks that take one tile each; None where there is no such kernel."""
    twin = replace(config, persistent=False)
    try:
        check(twin, triangle)
    except ConfigError:
        return None
    return twin


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


#: How many times longer persistent blocks take for a tile than blocks of one tile each, by dtype: with
#: registers to spare, and without. The next tile of a triangle is found in the loop, and what FMAs of complex
#: singles gain by the order of their registers is lost.
LONGER = {"c": (1.01, 1.12)}


@lru_cache(maxsize=1 << 12)
def triangle_twins(config: Any, region: Region | Triangle, device: Device) -> tuple[tuple[Any, float], ...]:
    """The kernels of the same tile and pipeline for `region`, and how many times longer than for all of C
    each takes for a tile.
    """
    if region is Region.ALL or config.dtype not in LONGER or not config.persistent:
        return ((config, 1.0),)
    spare, none = LONGER[config.dtype]
    longer = spare if comfortable(config, device) else none
    return (replace(config, persistent=False), 1.0), (config, longer)


@lru_cache(maxsize=1 << 12)
def persistent_twins(config: Any, device: Device) -> tuple[Any, ...]:
    """The persistent kernels of the same tile and pipeline, by blocks of a multiprocessor; of those that have
    registers to spare, as none was compiled.
    """
    if config.persistent:
        return ()
    twins = persistent(replace(config, min_blocks=1), device)
    return tuple(twin for twin in twins if comfortable(twin, device))


def least_share(
    config: Any, extents: tuple[int, ...], device: Device, region: Region | Triangle = Region.ALL
) -> float:
    """Of the time of an ordinary kernel, what its twins take at least: the share of its waves of blocks that
    it has tiles for; infinite where there are fewer tiles than multiprocessors, of which too little is sure.
    """
    tiles = tiles_of(config, extents, region)
    waves = tiles / (blocks_per_sm(config, device) * device.sm_count)
    return waves / ceil(waves) if tiles >= device.sm_count else inf


FEWER = (1, 2, 4)  # persistent blocks a multiprocessor, where it holds more


def persistent(config: Any, device: Device) -> list[Any]:
    """`config` with persistent blocks: as many as a multiprocessor holds, and fewer, of which each has more
    of a product that is soon over; none where there is no such.
    """
    most = blocks_per_sm(config, device) if config.stages > 1 else 0
    counts = sorted({count for count in (*FEWER, most) if 0 < count <= most}, reverse=True)
    return [replace(config, persistent=True, min_blocks=count) for count in counts]
