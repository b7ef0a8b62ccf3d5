"""Occupancy of a Config on a multiprocessor, and whether a device can run it at all."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import ConfigError
from ..gpu.device import Device
from ..kernels.common.axes import Parameters
from ..kernels.registry import family_of
from .columns import Columns, smaller

__all__ = [
    "REGISTER_SLACK",
    "OVERHEAD",
    "SHORTEST_PIPELINE",
    "K_TILES",
    "Demand",
    "Fit",
    "alike",
    "blocks_per_sm",
    "check_device",
    "has_register_slack",
    "demand",
    "register_limit",
    "registers_needed",
    "registers_of",
    "with_values",
]


OVERHEAD = 24  # registers of addresses and counters that a kernel needs beyond its Config's own estimate
#: Registers of a thread so few that the compiler must reuse them (compute capability 2.x); their overhead
#: there.
FEW_REGISTERS, FEW_OVERHEAD = 63, 12
REGISTER_SLACK = 88  # what it takes beyond it if it may; with less, some kernels spill


@lru_cache(maxsize=1 << 16)
def blocks_per_sm(config: Any, device: Device) -> int:
    """Blocks that a multiprocessor holds, by the estimated registers, as the launch bounds leave them."""
    return Fit(device).blocks(config)


class Fit:
    """Occupancy of Configs on `device`; equal needs are computed once."""

    def __init__(self, device: Device):
        self.device, self.occupancy = device, cache(device.occupancy)

    def blocks(self, config: Any) -> int:
        """`blocks_per_sm`."""
        needed = demand(config)
        return self.occupancy(needed.threads, registers_of(config, self.device), needed.shared_bytes)


def has_register_slack(config: Any, device: Device) -> bool:
    """Whether `config` leaves the compiler enough registers that a trial compilation is unnecessary."""
    # a column that is solved takes as many again as a step of it has real products
    columns = family_of(config.STEM).solved_columns
    solved = columns * config.BLK_M * config.dtype_facts.reals_per_element**2 if columns else 0
    return demand(config).registers + solved + REGISTER_SLACK <= register_limit(config, device)


def register_limit(config: Any, device: Device) -> Any:
    """Registers a thread may have under the Config's launch bounds."""
    if isinstance(config, Columns):
        bound: Any = device.registers_per_sm // (config.threads * config.min_blocks)
        return np.minimum(device.max_registers_per_thread, bound)
    bound = device.registers_per_sm // (demand(config).threads * config.min_blocks)
    return min(device.max_registers_per_thread, bound)


def registers_of(config: Any, device: Device) -> int:
    """Registers of a thread, by the estimate and as far as its launch bounds let it have them."""
    return min(demand(config).registers + OVERHEAD, register_limit(config, device) // 8 * 8)


def registers_needed(config: Any, device: Device) -> Any:
    """Registers without which a kernel spills; where a thread has few, a product's are those alive at once:
    fragments are dead while the next k-tile is staged.
    """
    estimated = config.registers if isinstance(config, Columns) else demand(config).registers
    needed = estimated + OVERHEAD
    if device.max_registers_per_thread > FEW_REGISTERS or not family_of(config.STEM).is_product:
        return needed
    size = config.dtype_facts.itemsize // 4
    staged = config.staged_elements * size
    fragments = estimated - staged - config.THR_M * config.THR_N * size
    return smaller(needed, estimated - smaller(staged, fragments) + FEW_OVERHEAD)


#: Stages of the shortest pipeline of a product: rules distinguish whether there is one, not how long.
SHORTEST_PIPELINE = 2


class Demand(NamedTuple):
    """Resources of a block of a Config; `registers` of a thread, by the Config's own estimate."""

    threads: int
    registers: int
    shared_bytes: int


def demand(config: Any) -> Demand:
    """Return the resources of a block of `config`, computed once."""
    known = vars(config).get(_DEMAND)
    if known is None:
        known = vars(config)[_DEMAND] = Demand(config.threads, config.registers, config.shared_bytes)
    return known


# next to the values that a Config itself caches
_DEMAND = "_demand"
K_TILES = "_k_tiles"  # cycles of a k-tile, by alignment


def alike(config: Any) -> Any:
    """One for all Configs of a product that differ from `config` in `min_blocks` and the length of the
    pipeline alone.
    """
    return with_values(config, {"min_blocks": 1, "stages": min(config.stages, SHORTEST_PIPELINE)})


def with_values(config: Any, values: Parameters) -> Any:
    """A copy with other `values` that break no rule: none is checked again."""
    copy = object.__new__(type(config))
    known = vars(copy)
    known.update(vars(config), **values)
    known.pop(K_TILES, None)
    if "stages" in values:
        known.pop(_DEMAND, None)
    return copy


def check_device(config: Any, device: Device) -> None:
    """Raise `ConfigError` where `device` cannot run `config` at all."""
    threads, _, shared = demand(config)
    if threads > device.max_threads_per_block:
        most = device.max_threads_per_block
        raise ConfigError("device_threads", f"threads <= {most}", threads=threads)
    if shared > device.shared_per_block:
        most = device.shared_per_block
        raise ConfigError("device_shared", f"shared_bytes <= {most}", shared_bytes=shared)
    if config.stages > 1 and not device.has_async_copy:
        raise ConfigError("device_async", "stages == 1 before sm_80", stages=config.stages, arch=device.arch)
    needs = getattr(config, "needs", (0, 0))
    if device.cc < needs:
        least = f"compute capability >= {needs[0]}.{needs[1]}"
        raise ConfigError("device_instruction", least, arch=device.arch)
