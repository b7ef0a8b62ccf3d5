"""Cycles of one block on its multiprocessor, and of many together.

All numbers may be arrays: of many Configs, of many extents (`columns`).

The constants of this model, here and in the modules of the families, are rounded from a fit to recorded
sweeps of an H200. `tests/nogpu/test_strategies.py` bounds how well the model ranks them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..gpu.device import Device
from ..types import Dtype
from .columns import larger, up

__all__ = [
    "ANSWER",
    "BARRIER",
    "L2_BYTES",
    "LINE",
    "START",
    "BlockCost",
    "dram_rate",
    "mma_rate",
    "mma_time",
    "overlapped",
    "stream_k_waves",
    "persistent_waves",
    "slots_per_fma",
    "waves",
]

LINE = 128  # bytes that shared memory serves in a cycle
L2_BYTES = 64  # bytes that a multiprocessor gets from L2 in a cycle
BARRIER = 50  # cycles of a barrier and of what begins a k-tile
ANSWER = 1600  # cycles until memory answers
START = 2500  # cycles until a block runs and its first k-tile is there
MMA_RATE = 2  # FMAs on tensor cores in the time of one elsewhere, in double precision; see `mma_rate`
SMALL_MMA = 2  # times the cycles of a product of 8 x 8 x 4 where tensor cores are made for larger ones
SHARP = 3  # the larger of throughput and latency, the more the other hides behind it: a norm of this order


class BlockCost(NamedTuple):
    """Cycles of one block on its multiprocessor: shared with others, on its own, before, after.

    Of its `work` each of its warps issues for `issue` cycles, on the one scheduler that it has; `schedulers`
    are the warps as parts of all schedulers. The `rest` is no scheduler's.
    """

    work: float
    latency: float
    start: float = 0.0
    end: float = 0.0
    issue: float = 0.0
    schedulers: float = 0.0
    rest: float = 0.0

    def together(self, count: int, last: bool = False) -> float:
        """Cycles of `count` blocks at once: the others hide a block's start, but not its stores."""
        lasting = self.lasting(count) if last else self._flowing(count)
        return lasting + self.start / count + self.end

    def lasting(self, count: int) -> float:
        """Cycles of `count` blocks at once between their start and their stores, if none takes an ended one's
        place.

        A scheduler has whole warps: five single ones on four take as long as eight.
        """
        busiest = up(count * self.schedulers) * self.issue + count * self.rest
        return overlapped(larger(busiest, count * self.work), self.latency)

    def _flowing(self, count: int) -> float:
        return overlapped(count * self.work, self.latency)


def overlapped(work: float, latency: float, sharp: int = SHARP) -> float:
    """Cycles of both: the larger where they differ much, more than it where they do not."""
    return (work**sharp + latency**sharp) ** (1 / sharp)


def waves(block: BlockCost, blocks: int, resident: int, device: Device) -> float:
    """Full waves, then what is left, spread over the multiprocessors."""
    full, rest = divmod(blocks, device.sm_count * resident)
    alone = larger(-(-rest // device.sm_count), 1)
    return full * block.together(resident) + (rest > 0) * block.together(alone, last=True)


def persistent_waves(block: BlockCost, blocks: int, resident: int, device: Device) -> float:
    """Return the cycles of persistent blocks: only the first tile of each has a start."""
    full, rest = divmod(blocks, device.sm_count * resident)
    alone = larger(-(-rest // device.sm_count), 1)
    last = (rest > 0) * (block.lasting(alone) + block.end)
    return block.start + full * (block.lasting(resident) + block.end) + last


def stream_k_waves(block: BlockCost, tiles: int, resident: int, device: Device) -> float:
    """Return the cycles of stream-K blocks, which all end at once."""
    share = tiles / (device.sm_count * resident)
    # of the last tiles a block has partial tiles more than its share
    return block.start + share * (block.lasting(resident) + block.end) + 2 * block.end


def dram_rate(device: Device) -> float:
    """Bytes of DRAM in a cycle; where that is unknown, a quarter of what L2 gives."""
    return device.dram_bytes or device.sm_count * L2_BYTES / 4


def slots_per_fma(config: Any, device: Device) -> float:
    return device.warp_size * device.partitions / device.fma_lanes(config.dtype_facts)


def mma_rate(facts: Dtype, device: Device) -> int:
    """FMAs on tensor cores in the time of one elsewhere, in double precision; cards for graphics run tensor
    code on their few units for it (NVIDIA's GA102 white paper).
    """
    return MMA_RATE if device.fma_lanes(facts) >= device.warp_size else 1


def mma_time(config: Any, device: Device) -> float:
    """An FMA's time by the instructions of a Config, as a part of that elsewhere; `SMALL_MMA`."""
    small = config.MMA_M == 8 and device.cc >= (9, 0)
    return (SMALL_MMA if small else 1) / mma_rate(config.dtype_facts, device)
