"""Replay a recorded sweep to a strategy: what it would have found, and at what cost, without a device.

``python -m benchmarks.strategies`` compares the strategies by it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyblasgpu.database import FAMILIES
from pyblasgpu.errors import ConfigError
from pyblasgpu.gpu.device import Device
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.search_problem import Measurement, Problem, SearchProblem, Strategy, search_problem_of

__all__ = ["Outcome", "Recording", "recordings", "replay"]


class Recording(NamedTuple):
    """What was measured of one (stem, dtype, layout): the search, and the seconds of every measurement."""

    search: SearchProblem
    seconds: Mapping[Measurement, float]


@dataclass(frozen=True)
class Outcome:
    """What a strategy found.

    Attributes
    ----------
    used, total : int
        Timings that it requested, and that there are.
    losses : dict
        Problem -> how much slower than the best recorded its best is there, 0.02 for 2 %.
    """

    used: int
    total: int
    losses: dict[Problem, float]

    @property
    def share(self) -> float:
        """Part of the timings that it used."""
        return self.used / self.total

    @property
    def worst(self) -> float:
        return max(self.losses.values())

    @property
    def mean(self) -> float:
        return sum(self.losses.values()) / len(self.losses)


def recordings(records: Iterable[Record], device: Device) -> dict[tuple[str, str, str], Recording]:
    """The searches that `records` hold, by (stem, dtype, layout).

    Only candidates that were timed take part: what the compiler drops costs no timing. Of repeated timings
    the shortest counts. Records of a Config that breaks today's rules are left out, as are those of whole
    routines, and times with warm caches where there are cold ones.
    """
    records = list(records)
    cold = {(r.stem, r.dtype, r.layout) for r in records if r.outcome == "ok" and r.caches == "cold"}
    times: dict[tuple[str, str, str], dict[Measurement, float]] = defaultdict(dict)
    for record in records:
        if record.stem not in FAMILIES or record.outcome != "ok" or record.seconds <= 0:
            continue
        key = record.stem, record.dtype, record.layout
        if key in cold and record.caches != "cold":
            continue
        try:
            config = FAMILIES[record.stem].config(record.dtype, record.layout, record.parameters)
        except ConfigError:
            continue
        measurement = Measurement(config, record.size, record.extents)
        times[key][measurement] = min(record.seconds, times[key].get(measurement, math.inf))
    return {key: Recording(_search_of(key[0], seconds, device), seconds) for key, seconds in times.items()}


def _search_of(stem: str, measurements: Iterable[Measurement], device: Device) -> SearchProblem:
    measurements = list(measurements)
    candidates = tuple(dict.fromkeys(measurement.config for measurement in measurements))
    problems = tuple(dict.fromkeys(measurement.problem for measurement in measurements))
    return search_problem_of(stem, candidates, device)._replace(problems=problems)


def replay(recording: Recording, strategy: Strategy) -> Outcome:
    """Answer a strategy from a recording until it ends."""
    asked: set[Measurement] = set()
    steps = strategy(recording.search)
    try:
        batch = next(steps)
        while True:
            answered = {m: recording.seconds[m] for m in batch if m in recording.seconds}
            asked.update(answered)
            batch = steps.send(answered)
    except StopIteration:
        pass
    best = _fastest(recording.seconds, recording.seconds)
    best_asked = _fastest(recording.seconds, asked)
    losses = {problem: best_asked.get(problem, math.inf) / seconds - 1 for problem, seconds in best.items()}
    return Outcome(len(asked), len(recording.seconds), losses)


def _fastest(
    seconds: Mapping[Measurement, float], measurements: Iterable[Measurement]
) -> dict[Problem, float]:
    best: dict[Problem, float] = {}
    for measurement in measurements:
        problem = measurement.problem
        best[problem] = min(seconds[measurement], best.get(problem, math.inf))
    return best
