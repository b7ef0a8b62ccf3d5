"""Gather the sweeps of each device into one file: ``python tuning/gather_sweeps.py SWEEP ...``

Give the device's file in `tuning/sweeps` first, then new sweeps, as to `database_from_sweeps.py`, which
computes the same from the gathered file. At each place that holds, last, the times of the run that decides
there. Before them are the best rates of candidates that this run has not timed, or timed as slower, in six
digits. Of cuBLAS the best remains, and of what failed one record a candidate. The toolchain of a record names
its run by the file that it came from, as in ``7ac45f1_dgemm.jsonl``. The state of the device is left out, and
dates are without hours.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pyblasgpu.dispatch.tuned_files import slug
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning.results import Record
from pyblasgpu.tuning.sweep_file import read_sweep
from tuning.database_from_sweeps import decisive

FOLDER = Path(__file__).parent / "sweeps"
DIGITS = 6  # of times that do not decide; they vary in the third
RUN = ", run "


def main(sweeps: list[str], folder: Path = FOLDER) -> list[Path]:
    """Write a file for each device in `sweeps`; returns the files."""
    runs = [[_brief(record, path) for record in read_sweep(path)] for path in map(Path, sweeps)]
    lines: dict[str, list[str]] = defaultdict(list)
    for record in gathered(runs):
        lines[record.device].append(json.dumps(asdict(record)) + "\n")
    written = []
    for device, own in lines.items():
        written.append(folder / f"{slug(device)}.jsonl.gz")
        written[-1].write_bytes(gzip.compress("".join(own).encode(), mtime=0))
    return written


def _brief(record: Record, path: Path) -> Record:
    """`record` with the name of its run, and without what nothing reads later."""
    run = "" if RUN in record.toolchain else RUN + path.name.split(".")[0]
    return replace(record, toolchain=record.toolchain + run, when=record.when[:10], state={})


def _rounded(record: Record) -> Record:
    seconds, tflops = (float(f"{value:.{DIGITS}g}") for value in (record.seconds, record.tflops))
    return replace(record, seconds=seconds, tflops=tflops)


def gathered(sweeps: Sequence[Sequence[Record]]) -> list[Record]:
    """What is kept of `sweeps`: failures, then of other runs the best rates, then the times that decide."""
    records = [record for sweep in sweeps for record in sweep]
    deciding = [record for record in decisive(sweeps) if record.outcome == "ok"]
    best_deciding = _best(deciding)
    others = {
        measurement: record
        for measurement, record in _best(record for record in records if record.outcome == "ok").items()
        if measurement not in best_deciding or record.tflops > best_deciding[measurement].tflops
    }
    spelled = _spellings(others.values()) | _spellings(deciding)
    vendor = _best(record for record in records if record.outcome == "vendor")
    failed = {
        (record.device, record.candidate, record.outcome): record
        for record in records
        if record.outcome not in ("ok", "vendor", "reference")
    }
    timed = [_rounded(replace(r, parameters=spelled[r.candidate])) for r in others.values()]
    parts = [*vendor.values(), *failed.values()], timed, deciding
    return [record for part in parts for record in sorted(part, key=_order)]


def _best(records: Iterable[Record]) -> dict[tuple, Record]:
    """The record with the best rate of each candidate at each class and extents, of each device."""
    best: dict[tuple, Record] = {}
    for record in records:
        measurement = record.device, record.candidate, record.size, record.extents
        if measurement not in best or record.tflops > best[measurement].tflops:
            best[measurement] = record
    return best


def _spellings(records: Iterable[Record]) -> dict[tuple, dict[str, int]]:
    """Parameters in full of each candidate: older runs left out what its Config has got since."""
    ranked = sorted(records, key=lambda record: (len(record.parameters), json.dumps(record.parameters)))
    return {record.candidate: record.parameters for record in ranked}


def _order(record: Record) -> tuple:
    """Records of a candidate are neighbours, which compresses well."""
    parameters = json.dumps(record.parameters)
    return record.stem, record.dtype, record.layout, parameters, record.size, record.extents


def _command() -> int:
    for path in main(sys.argv[1:]):
        print(path)
    return 0


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    sys.exit(guarded(["tuning/gather_sweeps.py"], _command))
