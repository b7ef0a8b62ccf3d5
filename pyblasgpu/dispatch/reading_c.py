"""What it adds to a product's time that C is read: beta is not zero."""

from __future__ import annotations

from math import prod
from typing import Any

from ..gpu.device import Device
from ..model.block_cost import dram_rate
from ..model.occupancy import blocks_per_sm
from ..types import Region
from .gemm_problem import GemmProblem
from .split_k import CYCLE

__all__ = ["reading_c"]

#: In which it was measured: in others a Config is judged as if C were not read.
DTYPES = ("d",)
RATE = 0.9  # of DRAM's


def reading_c(config: Any, problem: GemmProblem, device: Device) -> float:
    """Seconds in which C is read, where the `problem` adds to it.

    A block reads a few elements of C at a time, and does not multiply meanwhile. Other blocks of its
    multiprocessor do. With one block a multiprocessor reading takes twice the time that DRAM needs, with two
    1.2 times, with three as long as DRAM (an H200; products of rank 64 and 128).
    """
    if not problem.adds or problem.dtype.letter not in DTYPES:
        return 0.0
    m, n, _, *batch = problem.extents
    size = m * n * prod(batch) * problem.dtype.itemsize / (1 if problem.region is Region.ALL else 2)
    waiting = 1 + 1 / max(blocks_per_sm(config, device), 1) ** 2
    return size * waiting * CYCLE / (RATE * dram_rate(device))
