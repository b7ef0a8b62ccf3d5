"""Compute the packaged tuned values from recorded sweeps: ``python tuning/defaults.py SWEEP.jsonl ...``

A device gets the winners of its own records; an architecture the candidates that are the best for all of its
devices together. Give every sweep of an architecture at once: files are written anew.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from pyblasgpu import database
from pyblasgpu.tuning.store import Record, read_sweep, save, slug, winners

FOLDER = Path(database.__file__).parent


def main(sweeps: list[str], folder: Path = FOLDER) -> list[Path]:
    """Write a file for each device and each architecture in `sweeps`; returns the files."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for sweep in sweeps:
        for record in read_sweep(Path(sweep)):
            groups[record.device].append(record)
            groups[record.arch].append(record)
    written = []
    for name, records in groups.items():
        path = folder / f"{slug(name)}.json"
        save(winners(records, name), path)
        written.append(path)
    return written


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    for path in main(sys.argv[1:]):
        print(path)
