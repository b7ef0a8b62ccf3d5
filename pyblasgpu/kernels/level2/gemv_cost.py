"""Cost of a launch of `gemv`, and the best number of slices of its sums.

The constants were fitted to 1988 times on an H200, so that the choice loses little: 1 % on average. They meet
the times within 12 % (root mean square).
"""

from __future__ import annotations

from math import log2
from typing import NamedTuple

from ...gpu.device import Device
from ...gpu.workspace import FLAGS
from .gemv_config import Gemv
from .sums import UNROLL

__all__ = ["GemvProblem", "best_slices", "cheapest", "cycles"]

LAUNCH = 1340  # cycles that a launch takes, whatever it does
BLOCK = 2580  # those until a block runs, and in which its threads add up what they have
STEP = 1600  # those of a step along the sum
TICKET = 4900  # those in which a slice's sums are stored, and the last block finds itself the last
SLOTS = 780  # those in which a thread reads the sums of `UNROLL` slices
BORDER = 4000  # those of a step along the border of a triangle

SM_BYTES = 256.0  # that a multiprocessor loads in a cycle, besides its steps
DRAM_SHARE = 0.93  # of what memory could give
WHOLE, SPREAD = 4096, 0.006  # neighbouring bytes that memory gives best; what each halving of them costs
NARROW, NARROW_SHARE = 128, 0.75  # those with fewer than which it gives far less, and how much
UNKNOWN_DRAM = 16.0  # bytes in a cycle, for each multiprocessor, of a device that does not report it
MAX_SLICES = 256
WAVES = (1, 2, 3, 4)  # of blocks that are all resident, which slices may fill
MORE_WAVES = (6, 8, 12, 16)  # of a triangle, whose blocks have less and less to do


class GemvProblem(NamedTuple):
    """A product, or many of one batch; of a triangle half the terms are there."""

    outputs: int
    terms: int
    batch: int = 1
    triangle: bool = False


def cheapest(configs: tuple[Gemv, ...], problem: GemvProblem, device: Device) -> Gemv:
    """The Config that should serve the problem best."""
    return min(configs, key=lambda config: cycles(config, problem, device))


def cycles(config: Gemv, problem: GemvProblem, device: Device) -> float:
    """Estimated cycles of a launch, with the best number of slices."""
    return min(_cycles(config, problem, count, device) for count in _counts(config, problem, device))


def best_slices(config: Gemv, problem: GemvProblem, device: Device) -> int:
    """Slices of the sums, each with blocks of its own."""
    counts = _counts(config, problem, device)
    return min(counts, key=lambda count: _cycles(config, problem, count, device))


def _counts(config: Gemv, problem: GemvProblem, device: Device) -> list[int]:
    """Numbers of slices with which the blocks fill the device about once, twice, ..."""
    tiles = config.grid(problem.outputs) * problem.batch
    if tiles * config.dtype_facts.real_size > FLAGS:
        return [1]
    most = max(min(problem.terms // (config.STEP * config.MIN_STEPS), MAX_SLICES), 1)
    resident = device.sm_count * config.min_blocks
    all_waves = (*WAVES, *MORE_WAVES) if problem.triangle else WAVES
    filling = {waves * resident // tiles for waves in all_waves} | {device.sm_count // tiles}
    return sorted({1} | {min(max(count, 1), most) for count in filling})


def _share(width: int) -> float:
    """Return the share of peak bandwidth for blocks that read `width` neighbouring bytes at a time."""
    efficiency = 1 - SPREAD * log2(WHOLE / min(width, WHOLE))
    return efficiency if width >= NARROW else efficiency * NARROW_SHARE


def _cycles(config: Gemv, problem: GemvProblem, slices: int, device: Device) -> float:
    outputs, terms, batch, triangle = problem
    facts, part = config.dtype_facts, min(config.terms_per_slice(terms, slices), terms)
    blocks = config.grid(outputs) * slices * batch
    waves = -(-blocks // (device.sm_count * config.min_blocks))
    width = (config.DIM_R * config.VEC if config.transposed else config.BLK_O) * facts.itemsize
    share = 0.5 if triangle else 1.0
    steps = -(-part // config.STEP) * STEP
    of_block = min(config.BLK_O, outputs) * part * facts.itemsize / min(width, SM_BYTES)
    latency = waves * (share * steps + BLOCK) + -(-blocks // device.sm_count) * share * of_block
    bandwidth = (device.dram_bytes or UNKNOWN_DRAM * device.sm_count) * DRAM_SHARE * _share(width)
    dram = share * outputs * terms * batch * facts.itemsize / bandwidth
    total = LAUNCH + (latency**3 + dram**3) ** (1 / 3)
    if triangle:
        # blocks of the long rows end last, when others have left the device idle
        total += BORDER * -(-config.BLK_O // config.STEP) + (steps + of_block) / 2
    if slices > 1:
        lines = max(config.threads // config.BLK_O, 1)
        total += TICKET + SLOTS * -(-slices // (UNROLL * lines))
    return total
