"""Seconds of calls on CuPy arrays by events, the host not in the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pyblasgpu.testing.clocks import device_clock, host_clock, median_seconds

__all__ = ["device_seconds"]

REPEATS = 5
UNTIMED = 2  # calls: one compiles, one tells how long the host takes
BUSY = 1 << 28  # bytes that are written before each call, as often as it takes the host to enqueue it
FILL = 8e-5  # seconds of one such write, at least
MARGIN = 1.5
MOST_FILLS = 500


def device_seconds(call: Callable[..., Any], originals: Sequence[Any], repeats: int = REPEATS) -> float:
    """Seconds of ``call(*copies)``, the copies made anew each time; the median of several."""
    import cupy

    busy, host, arrays = cupy.empty(BUSY, cupy.uint8), [0.0], list[Any]()

    def prepare() -> None:
        arrays[:] = [original.copy(order="F") for original in originals]
        for _ in range(min(1 + math.ceil(MARGIN * host[-1] / FILL), MOST_FILLS)):
            busy.fill(0)

    def run() -> None:
        host.append(host_clock(lambda: call(*arrays)))

    return median_seconds(run, device_clock(), prepare, repeats, UNTIMED)
