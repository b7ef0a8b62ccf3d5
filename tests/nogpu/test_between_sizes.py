"""The choice on the recorded sweep: at the sizes that were tuned, and at each as if it had not been."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from pyblasgpu.database import FAMILIES, Document, Entry, sizes_of, tuned_at
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning import overlay, splits
from pyblasgpu.tuning import select as selecting
from pyblasgpu.tuning.overrides import override
from pyblasgpu.tuning.select import select
from pyblasgpu.tuning.store import read_sweep, sound, winners
from pyblasgpu.types import DTYPES

SWEEP = Path(__file__).parents[2] / "tuning" / "sweeps" / "nvidia_h200_f9f3c23.jsonl.gz"
H200 = known("h200")


@pytest.fixture(scope="module")
def recorded():
    """The winners, and of each (dtype, layout, size class) the seconds of every Config."""
    records = [r for r in read_sweep(SWEEP) if r.stem in FAMILIES and FAMILIES[r.stem].routine == "gemm"]
    times = defaultdict(dict)
    for record in sound(records):
        config = FAMILIES[record.stem].config(record.dtype, record.layout, record.parameters)
        place = times[record.dtype, record.layout, record.size]
        place[config] = min(record.seconds, place.get(config, record.seconds))
    return winners(records, H200.name), times


def losses(recorded, monkeypatch, hidden: bool) -> list[float]:
    """At each place, how much longer the choice takes than the best, of k not in chunks; its own class, and
    what others did there, `hidden`.
    """
    document, times = recorded
    monkeypatch.setattr(splits, "COUNTS", ())
    monkeypatch.setattr(splits, "HOST", 0.0)  # the recorded times are the device's alone
    found = []
    for size in sizes_of("gemm_tile"):
        entries = dict(document.entries)
        if hidden:
            entries = {key: without(entry, size) for key, entry in entries.items() if key[3] != size}
        seen = Document(H200.name, entries)
        monkeypatch.setattr(overlay, "documents", lambda device, seen=seen: (("the sweep", seen),))
        selecting._chosen.clear()
        selecting._measured.cache_clear()
        for (dtype, layout, at), seconds in times.items():
            if at == size:
                with override("packed", False):
                    extents = tuned_at("gemm_tile", size)[-1]
                    choice = select("gemm", DTYPES[dtype], layout, extents, H200)
                found.append(seconds[choice.config] / min(seconds.values()) - 1)
    selecting._chosen.clear()
    selecting._measured.cache_clear()
    return found


def without(entry: Entry, size: str) -> Entry:
    return replace(entry, elsewhere={at: rate for at, rate in entry.elsewhere.items() if at != size})


def test_a_winner_is_chosen_where_it_won(recorded, monkeypatch):
    lost = losses(recorded, monkeypatch, hidden=False)
    assert len(lost) == 256
    assert mean(lost) < 0.005 and max(lost) < 0.1


def test_an_untuned_class_has_others_to_stand_in(recorded, monkeypatch):
    """Neighbours are a factor of two away in each extent here, or of 64 in one: twice as far as in use. The
    smallest batches have a neighbour on one side alone.
    """
    lost = losses(recorded, monkeypatch, hidden=True)
    assert mean(lost) < 0.055 and sorted(lost)[len(lost) // 2] < 0.025
    assert sum(loss > 0.25 for loss in lost) <= 12
