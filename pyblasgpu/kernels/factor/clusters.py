"""Clusters of blocks that work at one matrix: the most blocks of one, and their meetings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...gpu.backend import cuda, device_function, ptx

if TYPE_CHECKING:
    from ...gpu.device import Device

__all__ = ["MOST_BLOCKS", "cluster_meeter", "largest_cluster"]

MOST_BLOCKS, MANY = 16, 132  # blocks of a cluster on a Hopper device of as many multiprocessors


def largest_cluster(device: Device) -> int:
    """Blocks of the largest cluster that a device was seen to run, or that all of its kind have."""
    return MOST_BLOCKS if device.cc == (9, 0) and device.sm_count >= MANY else 8


def cluster_meeter(has_clusters: bool) -> Callable:
    """``meet(blocks)``: all blocks of a matrix; each then reads what the others wrote before."""
    cluster_sync = ptx.cluster_sync

    @device_function
    def meet(blocks):
        cuda.syncthreads()
        if has_clusters and blocks > 1:
            cluster_sync()

    return meet
