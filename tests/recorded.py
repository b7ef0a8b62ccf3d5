"""What recorded sweeps say of each place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pyblasgpu.database import FAMILIES
from pyblasgpu.tuning.store import Record, sound


def seconds_of(records: Iterable[Record]) -> dict[tuple[str, str, str], dict[Any, float]]:
    """Of each (dtype, layout, size class) the least seconds of every Config."""
    times: dict[tuple[str, str, str], dict[Any, float]] = defaultdict(dict)
    for record in sound(records):
        config = FAMILIES[record.stem].config(record.dtype, record.layout, record.parameters)
        place = times[record.dtype, record.layout, record.size]
        place[config] = min(record.seconds, place.get(config, record.seconds))
    return times
