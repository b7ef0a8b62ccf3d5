"""Variants of a GEMM Config: fused with a triangle, of three real products, for a triangle of C, with narrow
loads, and with persistent blocks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..errors import ConfigError
from ..gpu.device import Device
from ..kernels.gemm.fused import check
from ..model.occupancy import blocks_per_sm, check_device, has_register_slack
from ..types import Triangle

__all__ = [
    "FEWER_BLOCKS",
    "ONE_TILE_EACH",
    "fused_variant",
    "match_alignment",
    "persistent",
    "three_m_variant",
    "triangle_variant",
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


#: Dtypes in which a triangle of C has no persistent blocks. The next tile of a triangle is found in the loop,
#: and what FMAs of complex singles gain by the order of their registers is lost: up to 12 % of the time.
ONE_TILE_EACH = ("c",)


def triangle_variant(config: Any) -> Any:
    """The kernel of the same tile and pipeline for a triangle of C."""
    return replace(config, persistent=False) if config.dtype in ONE_TILE_EACH else config


@lru_cache(maxsize=1 << 12)
def match_alignment(config: Any, aligned: tuple[int, int]) -> Any:
    """`config` as it runs on operands that begin at multiples of so many bytes: its kernel copies single
    elements where these bound its vectors.
    """
    a, b = (max(distance // config.dtype_facts.itemsize, 1) for distance in aligned)
    return config.for_alignment(a, b)


FEWER_BLOCKS = (1, 2, 4)  # persistent blocks a multiprocessor, where it holds more


def persistent(config: Any, device: Device) -> list[Any]:
    """`config` with persistent blocks: as many as a multiprocessor holds, and fewer, of which each has more
    of a product that is soon over; none where there is no such.
    """
    most = blocks_per_sm(config, device) if config.stages > 1 else 0
    counts = sorted({count for count in (*FEWER_BLOCKS, most) if 0 < count <= most}, reverse=True)
    return [replace(config, persistent=True, min_blocks=count) for count in counts]
