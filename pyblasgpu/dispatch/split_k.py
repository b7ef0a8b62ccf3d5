"""Into how many slices the k of a product is split, and the time that it should take then.

A product with few tiles of C leaves multiprocessors idle, however long its k. Split into slices that are
computed at once it keeps them busy. But it writes a partial of C for each slice, and these must be added up.
A persistent kernel may be `STREAM_K` instead: its blocks share the last tiles so that all end at once. What
is split and how is in `routines.level3.gemm`, the sum of slices in `kernels.copy.split_k_reduce`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..gpu.device import Device
from ..gpu.workspace import FLAGS
from ..kernels.common.tile_schedule import MAX_K_TILES, TileSchedule
from ..kernels.copy.slices import LOAD, slices_of
from ..model.block_cost import dram_rate
from ..model.columns import Columns, both
from ..model.occupancy import blocks_per_sm
from ..model.score import cycles, fixup_cycles, partial_tile_bytes, tiles_of
from ..operands import SECTOR
from ..types import Dtype, Region, Triangle
from .tuned_files import rates_of

__all__ = [
    "MOST_PARTIALS",
    "SPLIT_COSTS",
    "STREAM_K",
    "SplitTime",
    "attainable",
    "cuts_k",
    "measured_seconds_per_cycle",
    "partial_bytes",
    "slice_counts",
    "split_times",
    "tile_schedule_of",
    "whole_or_stream_k",
]

STREAM_K = 0  # as a number of slices: stream-K, by the blocks of a persistent kernel

#: Values of the policy that decide between slices.
SPLIT_COSTS = "launch_seconds", "sum_seconds", "host_seconds"

COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
MIN_SLICE = 128  # of k: below it a product is mostly its beginning and its end
MOST_WAVES = 4  # of blocks: then none is idle for long
MOST_PARTIALS = 32 << 20  # bytes of workspace
HOPELESS = 1.6  # times the best so far: more than what a last wave explains, so more slices will not do
UNCERTAINTY = 1.05  # slices must promise to be so much faster


class SplitTime(NamedTuple):
    """Estimated seconds of a product in a number of slices, or `STREAM_K`."""

    seconds: float
    splits: int


def measured_seconds_per_cycle(
    columns: Columns, extents: Sequence[tuple[int, ...]], seconds: Any, device: Device, splits: Any = None
) -> Any:
    """Seconds of a cycle of the model, by those that products were measured to take: of (m, n, k, batch) in
    `splits` slices of k, each more than one; by default unsplit, or, where that is faster by the model, by
    stream-K.

    `columns` have a row for each of `extents`; `seconds`, `splits` and the result are columns.
    """
    launch = _Launch(columns, 1.0, tuple(np.array(extents).T[:, :, None]), Region.ALL, device)
    if splits is not None:
        others = launch._replace(seconds_per_cycle=0.0).sliced(splits)
        return np.maximum(seconds - others, seconds / 2) / (launch.sliced(splits) - others)
    cycles_taken: Any = launch.seconds()
    if columns.persistent:
        products = zip(columns.rows(np.array(columns.configs, object)), extents, strict=True)
        shares = [[_can_stream_k(each, at, device, Region.ALL, None)] for each, at in products]
        cycles_taken = np.where(shares, np.minimum(cycles_taken, launch.stream_k()), cycles_taken)
    # of a launch that is over sooner than most, half is called work
    return np.maximum(seconds - rates_of(device).launch_seconds, seconds / 2) / cycles_taken


def split_times(
    config: Any,
    seconds_per_cycle: float,
    extents: tuple[int, ...],
    device: Device,
    only: int | None = None,
    region: Region | Triangle = Region.ALL,
    workspace_limit: int | None = None,
) -> Iterator[SplitTime]:
    """The product unsplit, or by stream-K, then in those numbers of slices that may be worth their sum; or in
    `only` that number.

    Parameters
    ----------
    config : GemmConfig
    seconds_per_cycle : float
        Seconds of a cycle of `score`.
    extents : tuple of int
        (m, n, k[, batch]); the k of a batch is not split.
    device : Device
    only : int, optional
    region : Region
        Region of C, as `kernels.common.region` names it.
    workspace_limit : int, optional
        Bytes of workspace that partials and partial tiles may take; no more than `MOST_PARTIALS` in any case.
    """
    m, n, k, *batch = extents
    launch = _Launch(config, seconds_per_cycle, extents, region, device)
    unsplit = launch.seconds()
    if only and only > 1:
        if cuts_k(config):
            yield SplitTime(launch.sliced(only), only)
        return
    best, splits = unsplit, 1 if only is None else only
    if only is None and _can_stream_k(config, extents, device, region, workspace_limit):
        shared = launch.stream_k()
        if shared < unsplit:
            best, splits = shared, STREAM_K
    policy = rates_of(device)
    best += policy.launch_seconds
    yield SplitTime(best, splits)
    if only is not None or prod(batch) != 1 or not cuts_k(config):
        return
    blocks, at_once = config.grid(m, n, region), blocks_per_sm(config, device) * device.sm_count
    each = partial_bytes(m, n, config.dtype_facts)
    for splits in slice_counts(blocks, at_once):
        # with C they should stay in L2
        full = (splits + 1) * each > _most(workspace_limit) or blocks * splits > MOST_WAVES * at_once
        if full or k // splits < MIN_SLICE:
            return
        seconds = UNCERTAINTY * max(launch.sliced(splits), policy.host_seconds)
        yield SplitTime(seconds, splits)
        if seconds > HOPELESS * best:
            return
        best = min(best, seconds)


def cuts_k(config: Any) -> bool:
    """Whether slices of k may be a batch: persistent blocks share tiles, packed operands have none."""
    return not (config.persistent or config.packed)


def slice_counts(blocks: int, at_once: int) -> list[int]:
    """Return the numbers of slices that are considered: `COUNTS`, and those that fill whole waves.

    A wave is what the device computes `at_once`.
    """
    full = (waves * at_once // blocks for waves in range(1, MOST_WAVES + 1))
    return sorted({*COUNTS, *(splits for splits in full if splits > 1)})


class _Launch(NamedTuple):
    """A product by `config`, at `seconds_per_cycle` of `score`."""

    config: Any
    seconds_per_cycle: float
    extents: tuple[int, ...]
    region: Region | Triangle
    device: Device

    def seconds(self, stream_k: bool = False) -> float:
        """Return the estimated seconds of the product alone."""
        config, seconds_per_cycle, extents, region, device = self
        return seconds_per_cycle * cycles(config.STEM, config, extents, device, stream_k, region)

    def stream_k(self) -> float:
        """Seconds by stream-K, and of the sum of partial tiles."""
        config, seconds_per_cycle, extents, region, device = self
        return self.seconds(stream_k=True) + seconds_per_cycle * fixup_cycles(config, extents, device, region)

    def sliced(self, splits: int) -> float:
        """Seconds of the batch of slices, and of their sum."""
        config, device = self.config, self.device
        m, n, k = self.extents[:3]
        facts = config.dtype_facts
        depth, count = slices_of(k, splits, facts)
        covered = 1.0 if self.region is Region.ALL else 0.5  # of C and of each partial
        operands = ((m + n) * k + covered * m * n * count) * facts.itemsize
        batch = self._replace(extents=(m, n, depth, count)).seconds()
        # neither hides behind the other as well as within an unsplit product
        products = both(batch, self.seconds_per_cycle * operands / dram_rate(device))
        policy = rates_of(device)
        moved = covered * (count * partial_bytes(m, n, facts) + 2 * m * n * facts.itemsize)
        summing = policy.sum_seconds + policy.cycle_seconds * moved / dram_rate(device)
        seconds: float = products + policy.launch_seconds + summing
        return seconds


def attainable(splits: int, extents: tuple[int, ...], dtype: Dtype) -> int:
    """`splits`, or as many slices as k has, at least one, and of a batch no more; `STREAM_K` stays."""
    _, _, k, *batch = extents
    if splits == STREAM_K:
        return STREAM_K
    return 1 if prod(batch) != 1 else max(min(splits, k * dtype.itemsize // SECTOR), 1)


def tile_schedule_of(
    config: Any, tiles: int, k: int, device: Device, stream_k: bool, tiles_per_block: int | None = None
) -> TileSchedule | None:
    """Return the schedule by which the blocks of a persistent kernel share the tiles of a product or a batch.

    None of an ordinary kernel, and where there are more tiles than are numbered. No tile is shared where it
    would not pay; how much scratch it takes is the caller's concern. Blocks end after the work of
    `tiles_per_block` tiles, if that is given, so that others can run in between.
    """
    blocks = device.sm_count * config.min_blocks
    if not config.persistent or tiles + blocks > MAX_K_TILES:
        return None
    shares = stream_k and (not tiles_per_block or tiles <= tiles_per_block * blocks)
    if tiles_per_block and not shares:
        return TileSchedule.of_whole_tiles(max(-(-tiles // tiles_per_block), min(blocks, tiles)), tiles)
    schedule = TileSchedule.of_whole_tiles(blocks, tiles)
    k_tiles = -(-k // config.BLK_K)
    flagged = blocks * config.dtype_facts.real_size <= FLAGS
    if shares and flagged and 2 * blocks * k_tiles <= MAX_K_TILES:
        schedule = TileSchedule.stream_k(blocks, tiles, k_tiles)
    return schedule


def whole_or_stream_k(
    config: Any,
    extents: tuple[int, ...],
    device: Device,
    region: Region | Triangle = Region.ALL,
    workspace_limit: int | None = None,
) -> int:
    """`STREAM_K` of a persistent product whose last tiles had better be shared, else 1.

    For `workspace_limit` see `split_times`.
    """
    if not _can_stream_k(config, extents, device, region, workspace_limit):
        return 1
    launch = _Launch(config, rates_of(device).cycle_seconds, extents, region, device)
    return STREAM_K if launch.stream_k() < launch.seconds() else 1


def _can_stream_k(
    config: Any,
    extents: tuple[int, ...],
    device: Device,
    region: Region | Triangle,
    workspace_limit: int | None,
) -> bool:
    """Whether the blocks of `config` can share the last tiles, and have any to share."""
    if not config.persistent or partial_tile_bytes(config, device) > _most(workspace_limit):
        return False
    schedule = tile_schedule_of(config, tiles_of(config, extents, region), extents[2], device, stream_k=True)
    return schedule is not None and schedule.k_iters_per_block > 0


def _most(workspace_limit: int | None) -> int:
    """Bytes that partials or partial tiles may take, of `workspace_limit` if that is bounded."""
    return MOST_PARTIALS if workspace_limit is None else min(workspace_limit, MOST_PARTIALS)


def partial_bytes(m: int, n: int, dtype: Dtype) -> int:
    """Workspace of one partial: its columns are multiples of 16 bytes."""
    return -(-m * dtype.itemsize // LOAD) * LOAD * n
