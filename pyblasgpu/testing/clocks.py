"""Clocks of the host and of a device, and the median of what they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median

from ..gpu.events import Stopwatch

__all__ = ["Clock", "device_clock", "host_clock", "median_seconds", "medians_in_turn"]

REPEATS = 5

#: Seconds of what it runs.
Clock = Callable[[Callable[[], object]], float]


def host_clock(run: Callable[[], object]) -> float:
    """Wall-clock seconds of ``run()``."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def device_clock(stream: int = 0, device: int = 0) -> Clock:
    """Clock of what is enqueued on a stream, by events."""
    return partial(Stopwatch(device).seconds, stream=stream)


def median_seconds(
    run: Callable[[], object],
    clock: Clock = host_clock,
    prepare: Callable[[], object] = lambda: None,
    repeats: int = REPEATS,
    untimed: int = 1,
) -> float:
    """Median seconds of ``run()``, each after ``prepare()``; the first `untimed` runs are not counted."""
    return medians_in_turn({"": run}, clock, prepare, repeats, untimed)[""]


def medians_in_turn(
    runs: Mapping[str, Callable[[], object]],
    clock: Clock = host_clock,
    prepare: Callable[[], object] = lambda: None,
    repeats: int = REPEATS,
    untimed: int = 1,
) -> dict[str, float]:
    """Median seconds of each run as by `median_seconds`: a round has all of them, one after the other."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(untimed + repeats):
        for name, run in runs.items():
            prepare()
            times[name].append(clock(run))
    return {name: median(each[untimed:] or each) for name, each in times.items()}
