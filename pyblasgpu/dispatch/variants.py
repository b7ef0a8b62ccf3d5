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
from ..model.occupancy import blocks_per_sm, check_device, has_register_slack
from ..model.score import tiles_of
from ..types import Region, Triangle

__all__ = [
    "FEWER_BLOCKS",
    "SLOWDOWN",
    "fused_variant",
    "min_share",
    "persistent",
    "persistent_variants",
    "three_m_variant",
    "triangle_variants",
]


@lru_cache(maxsize=1 << 12)
def fused_variant(config: Any, triangle: Triangle) -> Any:
    """The same tile and pipeline for blocks that take one tile each; None where there is no such kernel."""
    variant = replace(config, persistent=False)
    try:
        check(variant, triangle)
    except ConfigError:
        return None
    return variant


SMALLEST = 4  # MMA_K: the fewest registers for fragments


@lru_cache(maxsize=1 << 10)
def three_m_variant(config: Any, device: Device) -> Any:
    """`config` with three products, by smaller instructions if need be; None where there is no such."""
    if not hasattr(config, "three_m"):
        return None
    for depth in dict.fromkeys((config.MMA_K, SMALLEST)):
        try:
            variant = replace(config, three_m=True, MMA_K=depth)
            check_device(variant, device)
        except ConfigError:
            continue
        if has_register_slack(variant, device):
            return variant
    return None


#: How many times longer persistent blocks take for a tile than blocks of one tile each, by dtype: with
#: registers to spare, and without. The next tile of a triangle is found in the loop, and what FMAs of complex
#: singles gain by the order of their registers is lost.
SLOWDOWN = {"c": (1.01, 1.12)}


@lru_cache(maxsize=1 << 12)
def triangle_variants(
    config: Any, region: Region | Triangle, device: Device
) -> tuple[tuple[Any, float], ...]:
    """The kernels of the same tile and pipeline for `region` of C, and how many times longer than for all of
    C each takes for a tile.
    """
    if region is Region.ALL or config.dtype not in SLOWDOWN or not config.persistent:
        return ((config, 1.0),)
    spare, none = SLOWDOWN[config.dtype]
    slowdown = spare if has_register_slack(config, device) else none
    return (replace(config, persistent=False), 1.0), (config, slowdown)


@lru_cache(maxsize=1 << 12)
def persistent_variants(config: Any, device: Device) -> tuple[Any, ...]:
    """The persistent kernels of the same tile and pipeline, by blocks of a multiprocessor; of those that have
    registers to spare, as none was compiled.
    """
    if config.persistent:
        return ()
    variants = persistent(replace(config, min_blocks=1), device)
    return tuple(variant for variant in variants if has_register_slack(variant, device))


def min_share(
    config: Any, extents: tuple[int, ...], device: Device, region: Region | Triangle = Region.ALL
) -> float:
    """Of the time of an ordinary kernel, what its variants take at least: the share of its waves of blocks
    that it has tiles for; infinite where there are fewer tiles than multiprocessors, where too little is
    sure.
    """
    tiles = tiles_of(config, extents, region)
    waves = tiles / (blocks_per_sm(config, device) * device.sm_count)
    return waves / ceil(waves) if tiles >= device.sm_count else inf


FEWER_BLOCKS = (1, 2, 4)  # persistent blocks a multiprocessor, where it holds more


def persistent(config: Any, device: Device) -> list[Any]:
    """`config` with persistent blocks: as many as a multiprocessor holds, and fewer, of which each has more
    of a product that is soon over; none where there is no such.
    """
    most = blocks_per_sm(config, device) if config.stages > 1 else 0
    counts = sorted({count for count in (*FEWER_BLOCKS, most) if 0 < count <= most}, reverse=True)
    return [replace(config, persistent=True, min_blocks=count) for count in counts]
