"""Play a recorded sweep to a strategy: what it would have found, and at what cost, without a device."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..database import FAMILIES
from ..errors import ConfigError
from ..gpu.device import Device
from .results import Record
from .search_problem import Measurement, Place, SearchProblem, Strategy, search_problem_of

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
        Timings that it asked for, and that there are.
    losses : dict
        Place -> how much slower than the best recorded what it found is there, 0.02 for 2 %.
    """

    used: int
    total: int
    losses: dict[Place, float]

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
    the shortest counts. Records of a Config that breaks today's rules are left out, as are stop sizes, and
    times with warm caches where there are cold ones.
    """
    records = list(records)
    cold = {(r.stem, r.dtype, r.layout) for r in records if r.outcome == "ok" and r.caches == "cold"}
    times: dict[tuple[str, str, str], dict[Measurement, float]] = defaultdict(dict)
    for record in records:
        if record.stem not in FAMILIES or record.outcome != "ok" or record.seconds <= 0:
            continue
        try:
            config = FAMILIES[record.stem].config(record.dtype, record.layout, record.parameters)
        except ConfigError:
            continue
        key, measurement = (
            (record.stem, record.dtype, record.layout),
            Measurement(config, record.size, record.extents),
        )
        if key in cold and record.caches != "cold":
            continue
        times[key][measurement] = min(record.seconds, times[key].get(measurement, math.inf))
    found = {}
    for key, seconds in times.items():
        candidates = tuple(dict.fromkeys(measurement.config for measurement in seconds))
        places = tuple(dict.fromkeys((measurement.size, measurement.extents) for measurement in seconds))
        found[key] = Recording(search_problem_of(key[0], candidates, device)._replace(places=places), seconds)
    return found


def replay(recording: Recording, strategy: Strategy) -> Outcome:
    """Answer a strategy from a recording until it ends."""
    asked: set[Measurement] = set()
    steps = strategy(recording.search)
    try:
        batch = next(steps)
        while True:
            answered = {t: recording.seconds[t] for t in batch if t in recording.seconds}
            asked.update(answered)
            batch = steps.send(answered)
    except StopIteration:
        pass
    best = _fastest(recording.seconds, recording.seconds)
    found = _fastest(recording.seconds, asked)
    losses = {place: found.get(place, math.inf) / seconds - 1 for place, seconds in best.items()}
    return Outcome(len(asked), len(recording.seconds), losses)


def _fastest(seconds: Mapping[Measurement, float], measurements: Iterable[Measurement]) -> dict[Place, float]:
    best: dict[Place, float] = {}
    for measurement in measurements:
        place = measurement.size, measurement.extents
        best[place] = min(seconds[measurement], best.get(place, math.inf))
    return best
