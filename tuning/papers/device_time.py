"""Seconds of calls on CuPy arrays by events, the host not in the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

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

    busy, host, times = cupy.empty(BUSY, cupy.uint8), 0.0, []
    for number in range(UNTIMED + repeats):
        arrays = [original.copy(order="F") for original in originals]
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(min(1 + math.ceil(MARGIN * host / FILL), MOST_FILLS)):
            busy.fill(number)
        start.record()
        begun = time.perf_counter()
        call(*arrays)
        host = time.perf_counter() - begun
        stop.record()
        stop.synchronize()
        if number >= UNTIMED:
            times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return median(times)
