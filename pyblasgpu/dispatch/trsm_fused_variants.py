"""The Configs of products as the fused TRSM runs them: with registers enough, for some occupancy."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from ..errors import ConfigError
from ..gpu.device import Device
from ..kernels.gemm.fused import shared_bytes, tile_orders
from ..model.occupancy import check_device, register_limit
from ..model.trsm_fused import resident
from ..types import Dtype, Triangle
from .variants import fused_variant

__all__ = ["higher_occupancy", "stems", "tile", "trsm_variant", "with_requested_occupancy"]

SPARE = {1: 40, 2: 110}  # registers that a kernel needs beside its estimate, by parts of an element
#: The same where it is compiled for several blocks a multiprocessor: it takes more than it needs otherwise.
#: In d and z it needs all that there are; with fewer than `LEAST` it spills, whatever the estimate.
TIGHT, LEAST = {"s": 40, "c": 56}, 120


def stems(dtype: Dtype, device: Device) -> tuple[str, ...]:
    """The families that are fast in `dtype`."""
    return ("gemm_mma",) if dtype.real_size == 8 and device.has_double_mma else ("gemm_simt",)


def with_requested_occupancy(config: Any, triangle: Triangle, device: Device) -> Any:
    """The Config as it solves, for as many blocks a multiprocessor as it says, where they leave it registers
    enough; None where it cannot.
    """
    if config is None:
        return None
    return trsm_variant(config, triangle, device, config.min_blocks) or trsm_variant(config, triangle, device)


def higher_occupancy(config: Any, triangle: Triangle, device: Device) -> list[Any]:
    """What solves as `config` does, compiled for the most blocks a multiprocessor, and for one less."""
    fit = device.occupancy(config.threads, 1, shared_bytes(config, triangle))
    variants = (trsm_variant(config, triangle, device, blocks) for blocks in range(fit, 1, -1))
    return list(islice(filter(None, variants), 2))


def trsm_variant(config: Any, triangle: Triangle, device: Device, blocks: int = 1) -> Any:
    """The Config as it solves, with all registers that so many `blocks` a multiprocessor leave it; None where
    it cannot, or has too few, or is none.
    """
    fused = config and fused_variant(config, triangle)
    if not fused or (blocks > 1 and config.dtype not in TIGHT):
        return None
    fused = replace(fused, min_blocks=blocks)
    try:
        check_device(fused, device)
    except ConfigError:
        return None
    if blocks == 1:
        needed = fused.registers + SPARE[fused.dtype_facts.reals_per_element]
    else:
        needed = max(fused.registers + TIGHT[fused.dtype], LEAST)
    has_registers = needed <= register_limit(fused, device)
    return fused if has_registers and resident(fused, triangle, device) >= blocks else None


def tile(config: Any, triangle: Triangle) -> tuple[Any, ...]:
    """What makes two Configs alike for triangles on either side: extents along the triangle and across."""
    return (*tile_orders(config, triangle), config.BLK_K, config.threads)
