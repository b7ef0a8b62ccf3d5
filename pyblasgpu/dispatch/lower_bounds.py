"""The least seconds that tuned Configs can take for a product, of all of them at once.

The choice estimates a candidate's time in full only where its lower bound is below the best so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gpu.device import Device
from ..model.block_cost import dram_rate
from ..model.columns import Columns
from ..model.gemm import dram_cycles, gemm_block
from ..model.occupancy import blocks_per_sm
from ..types import Region, Triangle
from .split_k import CYCLE, HOST, LAUNCH, MIN_SLICE, MOST_WAVES, SUM

__all__ = ["LowerBounds"]

ROUNDING = 1 - 1e-9  # bounds and estimates are not summed in the same order


class LowerBounds:
    """Bounds for products by `configs` on `device`.

    Parameters
    ----------
    configs : sequence of GemmConfig
        Of one dtype, at least one.
    device : Device
    """

    def __init__(self, configs: Sequence[Any], device: Device):
        resident = [[each.min_blocks if each.persistent else blocks_per_sm(each, device)] for each in configs]
        self._columns, self._device = Columns(configs, np.array(resident)), device
        self._fit = np.array([[blocks_per_sm(each, device)] for each in configs])
        self._persistent = np.array([[each.persistent] for each in configs])

    def seconds(
        self,
        seconds_per_cycle: NDArray[Any],
        extents: tuple[int, ...],
        region: Region | Triangle,
        may_split: bool,
    ) -> NDArray[Any]:
        """The least seconds of each Config, at their `seconds_per_cycle`; of products whose k is not split,
        unless it `may_split`.
        """
        (m, n, k, *batch), columns, device = extents, self._columns, self._device
        block, seconds_per_cycle = gemm_block(columns, k, device, (False, False)), seconds_per_cycle[:, None]
        tiles: Any = prod(batch) * columns.grid(m, n)
        if region is not Region.ALL:  # half of its tiles, or of each tile's k
            tiles = prod(batch) * m * n / (2 * columns.BLK_M * columns.BLK_N)
        work = tiles * block.work / device.sm_count
        if isinstance(region, Triangle):
            return self._one_each(ROUNDING * seconds_per_cycle * work)
        # stream-K may spare what a last wave lacks; it is no less than one wave where tiles are few
        waves = tiles / (device.sm_count * columns.resident)
        waves = np.where(self._persistent | (tiles >= device.sm_count), waves, 1)
        least = np.maximum(work, waves * (block.latency + block.end))
        dram: Any = dram_cycles(columns, (m, n, k), columns.resident, device)
        seconds = seconds_per_cycle * np.maximum(least, prod(batch) * dram) + LAUNCH
        if may_split and k >= 2 * MIN_SLICE and prod(batch) == 1:
            split = self._split(seconds_per_cycle * work, extents, region)
            can_split = 2 * tiles <= MOST_WAVES * device.sm_count * self._fit
            seconds = np.where(can_split, np.minimum(seconds, split), seconds)
        return self._one_each(ROUNDING * seconds)

    def _split(self, seconds: Any, extents: tuple[int, ...], region: Region) -> Any:
        """The least seconds in slices, by the `seconds` of unsplit work: with the sum of two partials."""
        m, n, k = extents[:3]
        depth, size = self._columns.BLK_K, self._columns.dtype_facts.itemsize
        covered = 1.0 if region is Region.ALL else 0.5
        summing = CYCLE * covered * 4 * m * n * size / dram_rate(self._device)
        return np.maximum(seconds * k / (-(-k // depth) * depth) + LAUNCH + SUM + summing, HOST)

    @staticmethod
    def _one_each(column: Any) -> NDArray[Any]:
        bounds: NDArray[Any] = column[:, 0]
        return bounds
