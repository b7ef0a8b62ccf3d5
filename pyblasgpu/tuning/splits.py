"""Into how many chunks the k of a product is cut, and the time that it should take then.

A product with few tiles of C leaves multiprocessors idle, however long its k. Cut into chunks that are
computed at once it keeps them busy, but writes a partial of C for each chunk, and these must be added up.
What is cut and how is in `routines.gemm`, the sum in `kernels.sum_partials`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..gpu.device import Device
from ..kernels.sum_partials import LOAD, cut
from ..types import Dtype
from .score import blocks_per_sm, cycles, dram_rate

__all__ = ["CYCLE", "MOST_PARTIALS", "Timed", "attainable", "pace", "partial_bytes", "timed"]

COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
LEAST_CHUNK = 128  # of k: below it a product is mostly its beginning and its end
MOST_WAVES = 4  # of blocks: with so many, none is idle for long
MOST_PARTIALS = 32 << 20  # bytes of workspace
HOPELESS = 1.6  # times the best so far: more than what a last wave explains, so more chunks will not do
DOUBT = 1.05  # chunks must promise to be so much faster

LAUNCH = 2.5e-6  # seconds that a launch takes beside the work of its blocks
HOST = 14e-6  # seconds that the host takes to enqueue two launches and a workspace
CYCLE = 0.6e-9  # seconds of a cycle, about, where nothing was measured


class Timed(NamedTuple):
    """Seconds that a product should take in so many chunks."""

    seconds: float
    splits: int


def pace(config: Any, extents: tuple[int, ...], seconds: float, device: Device) -> float:
    """Seconds of a cycle of the model, by those that a product was measured to take, uncut."""
    # of a launch that is over sooner than most, half is called work
    return max(seconds - LAUNCH, seconds / 2) / cycles(config.STEM, config, extents, device)


def timed(
    config: Any, pace: float, extents: tuple[int, ...], device: Device, only: int | None = None
) -> Iterator[Timed]:
    """The product uncut, then in those numbers of chunks that may be worth their sum; or in `only` so many.

    Parameters
    ----------
    config : GemmConfig
    pace : float
        Seconds of a cycle of `score`.
    extents : tuple of int
        (m, n, k[, batch]); a batch goes with `only` 1.
    device : Device
    only : int, optional
    """
    m, n, k = extents[:3]
    uncut = pace * cycles(config.STEM, config, extents, device)
    if only and only > 1:
        yield Timed(_chunked(config, pace, uncut, (m, n, k), only, device), only)
        return
    best = uncut + LAUNCH
    yield Timed(best, 1)
    if only:
        return
    blocks, at_once = config.grid(m, n), blocks_per_sm(config, device) * device.sm_count
    room = partial_bytes(m, n, config.dtype_facts)
    for splits in COUNTS:
        # one partial more, of what the chunks leave over
        full = (splits + 1) * room > MOST_PARTIALS or blocks * splits > MOST_WAVES * at_once
        if full or k // splits < LEAST_CHUNK:
            return
        seconds = DOUBT * max(_chunked(config, pace, uncut, (m, n, k), splits, device), HOST)
        yield Timed(seconds, splits)
        if seconds > HOPELESS * best:
            return
        best = min(best, seconds)


def attainable(splits: int, k: int, dtype: Dtype) -> int:
    """`splits`, or as many chunks as `k` has, at least one."""
    return max(min(splits, k * dtype.itemsize // LOAD), 1)


def partial_bytes(m: int, n: int, dtype: Dtype) -> int:
    """Workspace of one partial: its columns are multiples of 16 bytes."""
    return -(-m * dtype.itemsize // LOAD) * LOAD * n


def _chunked(
    config: Any, pace: float, uncut: float, extents: tuple[int, int, int], splits: int, device: Device
) -> float:
    """Seconds of the batch of chunks, of what they leave over, and of their sum."""
    m, n, k = extents
    size = config.dtype_facts.itemsize
    depth, rest = cut(k, splits, config.dtype_facts)
    operands = ((m + n) * k + m * n * splits) * size
    batch = cycles(config.STEM, config, (m, n, depth, splits), device)
    products = max(batch, operands / dram_rate(device))
    left_over = uncut * rest / k + LAUNCH if rest else 0.0
    partials = (splits + (rest > 0)) * partial_bytes(m, n, config.dtype_facts)
    summing = CYCLE * (partials + 2 * m * n * size) / dram_rate(device)
    return pace * products + LAUNCH + left_over + summing + LAUNCH
