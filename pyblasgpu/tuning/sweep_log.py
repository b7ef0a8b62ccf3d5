"""Measurements of a run, and those of earlier runs that it resumes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

from ..database import FAMILIES
from ..gpu.build.compile import toolchain
from ..gpu.device import Device
from .results import Record
from .sweep_file import append, read_sweep, sweep_file

__all__ = ["SweepLog", "SearchKey"]

#: (family or routine, dtype, layout), what is searched separately.
SearchKey = tuple[str, str, str]

#: Outcomes that are no candidate's.
NO_CANDIDATES = frozenset({"vendor", "reference", "before", "after", "decided"})


class SweepLog:
    """The records of a run, each in the sweep's file as soon as it is there.

    Parameters
    ----------
    device : Device
    effort : str
        Effort, as in `space`.
    resume : bool
        Whether the records in the file that are of this device, toolchain and effort count as this run's.

    Attributes
    ----------
    path : Path
        The sweep's file.
    records : list of Record
        Records of this run and of those that it resumes.
    counts : Counter
        Candidates by outcome, without those that were resumed.
    """

    def __init__(self, device: Device, effort: str, resume: bool = False):
        self._facts: dict[str, Any] = {"effort": effort, "toolchain": toolchain(), "caches": "cold"}
        self._device = device
        self.path = sweep_file(device.name)
        self.records: list[Record] = []
        self.counts: Counter[str] = Counter()
        self._times: dict[tuple, dict[tuple, float]] = defaultdict(dict)
        self._timed: dict[tuple, list[Record]] = defaultdict(list)
        self._top: dict[tuple, float] = defaultdict(float)
        self._out: set[tuple] = set()
        if resume and self.path.exists():
            for record in read_sweep(self.path):
                if record.device == device.name and self._is_ours(record):
                    self.take(record)

    def add(self, key: SearchKey, size: str, parameters: dict[str, int], **facts: Any) -> Record:
        """Append a record; `facts` are further attributes of it."""
        stem, dtype, layout = key
        record = Record(
            self._device.name,
            self._device.arch,
            stem,
            dtype,
            layout,
            size,
            parameters=parameters,
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            **self._facts,
            **facts,
        )
        self.take(record)
        append(self.path, record)
        return record

    def note(self, key: SearchKey, size: str, config: Any, **facts: Any) -> Record:
        """Append a record of a Config."""
        return self.add(key, size, FAMILIES[key[0]].parameters_of(config), **facts)

    def seconds(self, key: SearchKey, config: Any, size: str, extents: tuple[int, ...]) -> float | None:
        """The time of a Config on a problem, if it is known."""
        return self._times[*key, size, extents].get(_candidate(key, config))

    def is_out(self, key: SearchKey, config: Any) -> bool:
        """Whether a Config has failed."""
        return _candidate(key, config) in self._out

    def best(self, key: SearchKey, size: str, extents: tuple[int, ...]) -> float:
        """The shortest time on a problem."""
        return min(self._times[*key, size, extents].values(), default=math.inf)

    def timed(self, key: SearchKey) -> list[Record]:
        """The times of a search, of candidates that have failed since too."""
        return self._timed[key]

    def top(self, key: SearchKey) -> float:
        """The highest rate of a search so far, in TFLOP/s."""
        return self._top[key]

    def _is_ours(self, record: Record) -> bool:
        return all(getattr(record, name) == value for name, value in self._facts.items())

    def take(self, record: Record) -> None:
        """Count a record as this run's."""
        self.records.append(record)
        if record.outcome == "ok":
            problem = (record.stem, record.dtype, record.layout, record.size, record.extents)
            self._times[problem][record.candidate] = record.seconds
            key = problem[:3]
            self._timed[key].append(record)
            self._top[key] = max(self._top[key], record.tflops)
        elif record.outcome not in NO_CANDIDATES:
            self._out.add(record.candidate)
            for times in self._times.values():  # which are not to be beaten any more
                times.pop(record.candidate, None)


def _candidate(key: SearchKey, config: Any) -> tuple:
    return *key, *sorted(FAMILIES[key[0]].parameters_of(config).items())
