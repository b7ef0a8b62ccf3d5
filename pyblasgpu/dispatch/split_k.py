"""Into how many chunks the k of a product is cut, and the time that it should take then.

A product with few tiles of C leaves multiprocessors idle, however long its k. Cut into chunks that are
computed at once it keeps them busy, but writes a partial of C for each chunk, and these must be added up.
A persistent kernel may be `STREAMED` instead: its blocks part the last tiles so that all end at once.
What is cut and how is in `routines.gemm`, the sum of chunks in `kernels.copy.split_k_reduce`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, prod
from typing import Any, NamedTuple

from ..gpu.device import Device
from ..gpu.workspace import FLAGS
from ..kernels.common.tile_scheduler import MOST_STRIPES, TileSchedule
from ..kernels.copy.split_k_reduce import LOAD, cut
from ..model.block import dram_rate
from ..model.occupancy import blocks_per_sm
from ..model.score import cycles, piece_bytes, summing_cycles, tiles_of
from ..types import Dtype, Region, Triangle

__all__ = [
    "CYCLE", "MOST_PARTIALS", "STREAMED", "Timed", "attainable", "pace", "partial_bytes", "streamed", "timed",
    "tile_schedule_of", "whole_or_streamed",
]  # fmt: skip

STREAMED = 0  # as a number of chunks: tiles are parted by the blocks of a persistent kernel

COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
LEAST_CHUNK = 128  # of k: below it a product is mostly its beginning and its end
MOST_WAVES = 4  # of blocks: with so many, none is idle for long
MOST_PARTIALS = 32 << 20  # bytes of workspace
HOPELESS = 1.6  # times the best so far: more than what a last wave explains, so more chunks will not do
DOUBT = 1.05  # chunks must promise to be so much faster

LAUNCH = 2.5e-6  # seconds that a launch takes beside the work of its blocks
SUM = 7e-6  # the same of a sum of partials, which waits for the last of them and then for memory
HOST = 15e-6  # seconds that the host takes to enqueue two launches
CYCLE = 0.6e-9  # seconds of a cycle, about, where nothing was measured


class Timed(NamedTuple):
    """Seconds that a product should take in so many chunks, or `STREAMED`."""

    seconds: float
    splits: int


def pace(config: Any, extents: tuple[int, ...], seconds: float, device: Device) -> float:
    """Seconds of a cycle of the model, by those that a product was measured to take, uncut or, if it is so by
    `whole_or_streamed`, streamed.
    """
    job = _Job(config, 1.0, extents, Region.ALL, device)
    streamed = whole_or_streamed(config, extents, device) == STREAMED
    # of a launch that is over sooner than most, half is called work
    return max(seconds - LAUNCH, seconds / 2) / (job.streamed() if streamed else job.seconds())


def timed(
    config: Any,
    pace: float,
    extents: tuple[int, ...],
    device: Device,
    only: int | None = None,
    region: Region | Triangle = Region.ALL,
    room: int | None = None,
) -> Iterator[Timed]:
    """The product uncut, or streamed, then in those numbers of chunks that may be worth their sum; or in
    `only` so many.

    Parameters
    ----------
    config : GemmConfig
    pace : float
        Seconds of a cycle of `score`.
    extents : tuple of int
        (m, n, k[, batch]); a batch is not cut into chunks.
    device : Device
    only : int, optional
    region : Region
        Of C, as `kernels.common.region` names it.
    room : int, optional
        Bytes of workspace that partials and pieces may take; no more than `MOST_PARTIALS` in any case.
    """
    m, n, k, *batch = extents
    job = _Job(config, pace, extents, region, device)
    uncut = job.seconds()
    if only and only > 1:
        yield Timed(job.chunked(uncut, only), only)
        return
    best = uncut + LAUNCH
    if only is None and whole_or_streamed(config, extents, device, pace, region, room) == STREAMED:
        best = job.streamed() + LAUNCH
        yield Timed(best, STREAMED)
    else:
        yield Timed(best, 1 if only is None else only)
    if only is not None or prod(batch) != 1:
        return
    blocks, at_once = config.grid(m, n, region), blocks_per_sm(config, device) * device.sm_count
    each = partial_bytes(m, n, config.dtype_facts)
    for splits in COUNTS:
        # one partial more, of what the chunks leave over
        full = (splits + 1) * each > _most(room) or blocks * splits > MOST_WAVES * at_once
        if full or k // splits < LEAST_CHUNK:
            return
        seconds = DOUBT * max(job.chunked(uncut, splits), HOST)
        yield Timed(seconds, splits)
        if seconds > HOPELESS * best:
            return
        best = min(best, seconds)


def streamed(
    config: Any,
    pace: float,
    extents: tuple[int, ...],
    device: Device,
    region: Region | Triangle,
    room: int | None,
) -> Iterator[Timed]:
    """The product `STREAMED` (for the parameters see `timed`), if the `config` can."""
    if _streams(config, extents, device, region, room):
        yield Timed(_Job(config, pace, extents, region, device).streamed() + LAUNCH, STREAMED)


class _Job(NamedTuple):
    """A product by `config`, at the `pace` of a cycle of `score`."""

    config: Any
    pace: float
    extents: tuple[int, ...]
    region: Region | Triangle
    device: Device

    def seconds(self, streamed: bool = False) -> float:
        """Of the product alone."""
        config, pace, extents, region, device = self
        return pace * cycles(config.STEM, config, extents, device, streamed, region)

    def streamed(self) -> float:
        """Seconds with parted tiles, and of the sum of their pieces."""
        config, pace, extents, region, device = self
        return self.seconds(streamed=True) + pace * summing_cycles(config, extents, device, region)

    def chunked(self, uncut: float, splits: int) -> float:
        """Seconds of the batch of chunks, of what they leave over, and of their sum; `uncut` are those of all
        of k at once.
        """
        config, device = self.config, self.device
        m, n, k = self.extents[:3]
        facts = config.dtype_facts
        depth, rest = cut(k, splits, facts)
        covered = 1.0 if self.region is Region.ALL else 0.5  # of C and of each partial
        operands = ((m + n) * k + covered * m * n * splits) * facts.itemsize
        batch = self._replace(extents=(m, n, depth, splits)).seconds()
        # neither hides behind the other as well as within an uncut product
        products = hypot(batch, self.pace * operands / dram_rate(device))
        left_over = uncut * rest / k + LAUNCH if rest else 0.0
        partials = (splits + (rest > 0)) * partial_bytes(m, n, facts)
        summing = CYCLE * covered * (partials + 2 * m * n * facts.itemsize) / dram_rate(device)
        return products + LAUNCH + left_over + summing + SUM


def attainable(splits: int, extents: tuple[int, ...], dtype: Dtype) -> int:
    """`splits`, or as many chunks as k has, at least one, and of a batch no more; `STREAMED` stays."""
    _, _, k, *batch = extents
    if splits == STREAMED:
        return STREAMED
    return 1 if prod(batch) != 1 else max(min(splits, k * dtype.itemsize // LOAD), 1)


def tile_schedule_of(config: Any, tiles: int, k: int, device: Device, streamed: bool) -> TileSchedule | None:
    """How the blocks of a persistent kernel share the tiles of a product, or of a batch of them.

    None of an ordinary kernel, and where there are more tiles than are numbered. Nothing is parted where it
    would bring nothing; how much scratch it takes is the caller's concern.
    """
    blocks = device.sm_count * config.min_blocks
    if not config.persistent or tiles + blocks > MOST_STRIPES:
        return None
    schedule = TileSchedule.of_whole_tiles(blocks, tiles)
    stripes = -(-k // config.BLK_K)
    flagged = blocks * config.dtype_facts.real_size <= FLAGS
    if streamed and flagged and 2 * blocks * stripes <= MOST_STRIPES:
        schedule = TileSchedule.stream_k(blocks, tiles, stripes)
    return schedule


def whole_or_streamed(
    config: Any,
    extents: tuple[int, ...],
    device: Device,
    pace: float = CYCLE,
    region: Region | Triangle = Region.ALL,
    room: int | None = None,
) -> int:
    """`STREAMED` of a persistent product whose last tiles had better be parted, else 1.

    `pace` are the seconds of a cycle of `score`, where they are known; for `room` see `timed`.
    """
    if not _streams(config, extents, device, region, room):
        return 1
    job = _Job(config, pace, extents, region, device)
    return STREAMED if job.streamed() < job.seconds() else 1


def _streams(
    config: Any, extents: tuple[int, ...], device: Device, region: Region | Triangle, room: int | None
) -> bool:
    """Whether the blocks of `config` can part the last tiles, and have any to part."""
    if not config.persistent or piece_bytes(config, device) > _most(room):
        return False
    schedule = tile_schedule_of(config, tiles_of(config, extents, region), extents[2], device, streamed=True)
    return schedule is not None and schedule.k_iters_per_block > 0


def _most(room: int | None) -> int:
    """Bytes that partials or pieces may take, of `room` if that is bounded."""
    return MOST_PARTIALS if room is None else min(room, MOST_PARTIALS)


def partial_bytes(m: int, n: int, dtype: Dtype) -> int:
    """Workspace of one partial: its columns are multiples of 16 bytes."""
    return -(-m * dtype.itemsize // LOAD) * LOAD * n
