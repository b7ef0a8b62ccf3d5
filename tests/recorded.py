"""The recorded sweeps that tests read (`data/README.md`), and the times of each class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyblasgpu.database import FAMILIES
from pyblasgpu.tuning.results import Record, sound

DATA = Path(__file__).parent / "data"
QUICK = DATA / "quick_search.jsonl.gz"
EXHAUSTIVE = DATA / "exhaustive_search.jsonl.gz"
GEMM_WINNERS = DATA / "gemm_winners.jsonl.gz"
RIVALS = DATA / "rivals.jsonl.gz"


def seconds_of(records: Iterable[Record]) -> dict[tuple[str, str, str], dict[Any, float]]:
    """The least seconds of every Config, by (dtype, layout, size class)."""
    times: dict[tuple[str, str, str], dict[Any, float]] = defaultdict(dict)
    for record in sound(records):
        config = FAMILIES[record.stem].config(record.dtype, record.layout, record.parameters)
        of_class = times[record.dtype, record.layout, record.size]
        of_class[config] = min(record.seconds, of_class.get(config, record.seconds))
    return times
