"""Join Configs to the runs that decide: ``python tuning/join_readings.py SWEEP.jsonl.gz READINGS.json``

Readings are of new Configs and of cuBLAS, in turn, at size classes. Times of different runs are not compared;
but each run timed cuBLAS, too. So a new Config gets cuBLAS's time of the sweep, times the ratio of the two in
the reading. It is as if the run that decides in its class had timed it.

`READINGS.json` is a list; an item has `stem`, `dtype`, `layout`, `size`, `extents`, `parameters`, `seconds`
and `vendor_seconds`.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.sweep_file import read_sweep

EFFORT = "beside cuBLAS"


def joined(records: Sequence[Record], readings: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """The records of `readings`, each as of the last run at its place; none where a place has no run."""
    last: dict[tuple, Record] = {}
    vendor: dict[tuple, float] = {}
    for record in records:
        place = record.stem, record.dtype, record.layout, record.size
        if record.outcome == "ok":
            last[place] = record
        elif record.outcome == "vendor":
            vendor[place] = min(record.seconds, vendor.get(place, record.seconds))
    for reading in readings:
        place = reading["stem"], reading["dtype"], reading["layout"], reading["size"]
        if place in last and place in vendor:
            seconds = vendor[place] * reading["seconds"] / reading["vendor_seconds"]
            of_run = last[place]
            tflops = of_run.tflops * of_run.seconds / seconds
            yield replace(
                of_run, parameters=reading["parameters"], seconds=seconds, tflops=tflops, effort=EFFORT
            )


def main(sweep: str, readings: str) -> int:
    """Add the records to the sweep; returns their number."""
    path = Path(sweep)
    records = list(read_sweep(path))
    new = list(joined(records, json.loads(Path(readings).read_text())))
    lines = "".join(json.dumps(asdict(record)) + "\n" for record in new)
    text = gzip.decompress(path.read_bytes()) + lines.encode()
    path.write_bytes(gzip.compress(text, mtime=0))
    return len(new)


def _command() -> int:
    print(f"{main(*sys.argv[1:])} records")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(guarded(["tuning/join_readings.py"], _command))
