"""Compute the packaged tuned values from recorded sweeps: ``python tuning/defaults.py SWEEP.jsonl ...``

A device gets the winners of its own records; an architecture the candidates that are the best for all of its
devices together. Give every sweep of an architecture at once: files are written anew. A winner that spills
registers under the toolchain here, though not under the one it was measured with, gives way to the next.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from pyblasgpu import database
from pyblasgpu.database import FAMILIES
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.build import compile_all, complaint
from pyblasgpu.tuning.store import Record, read_sweep, save, slug, winners

FOLDER = Path(database.__file__).parent


def main(
    sweeps: list[str], folder: Path = FOLDER, spilling: Callable[[set], set] | None = None
) -> list[Path]:
    """Write a file for each device and each architecture in `sweeps`; returns the files.

    ``spilling(candidates)`` tells which of the (stem, Config, arch) it is given spill.
    """
    spilling = spilling or _spilling
    groups: dict[str, list[Record]] = defaultdict(list)
    for sweep in sweeps:
        for record in read_sweep(Path(sweep)):
            groups[record.device].append(record)
            groups[record.arch].append(record)
    written = []
    for name, records in groups.items():
        path = folder / f"{slug(name)}.json"
        save(_sound_winners(records, name, spilling), path)
        path.chmod(0o644)
        written.append(path)
    return written


def _sound_winners(records: list[Record], name: str, spilling: Callable[[set], set]) -> database.Document:
    """The winners, without those that spill."""
    while True:
        document = winners(records, name)
        arch = records[0].arch
        found = {
            (stem, FAMILIES[stem].config(dtype, layout, entry.parameters), arch)
            for (stem, dtype, layout, _), entry in document.entries.items()
        }
        bad = spilling(found)
        if not bad:
            return document
        records = [record for record in records if _candidate(record) not in bad]


def _candidate(record: Record) -> tuple | None:
    """The kernel that a time is of, itself or as the leaf of a routine."""
    if record.kernel is None or record.outcome != "ok":
        return None
    stem, dtype, layout, parameters = record.kernel
    return stem, FAMILIES[stem].config(dtype, layout, parameters), record.arch


def _spilling(candidates: set) -> set:
    """Those of `candidates` that the compiler here cannot keep in registers."""
    bad = set()
    for arch in {arch for *_, arch in candidates}:
        device = known(arch)
        jobs = [(stem, config) for stem, config, of in candidates if of == arch]
        for (stem, config), report in compile_all(jobs, device.cc):
            if complaint(config, report, device)[0] != "ok":
                bad.add((stem, config, arch))
    return bad


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    for path in main(sys.argv[1:]):
        print(path)
