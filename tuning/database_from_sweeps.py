"""Compute the packaged tuned values from recorded sweeps: ``python tuning/database_from_sweeps.py SWEEP ...``

An architecture gets few Configs, which serve all classes of all of its devices well (`tuning.portfolio`), and
the winners among them. A device gets those winners of its own records that differ, from the same Configs.
Give every sweep of an architecture at once, its calls (`gather_calls`), and the devices' products between the
classes (`time_products`): files are written anew. Times of different runs are not compared, but for those of
calls under load (`under_load`). Of several sweeps of a device the last one decides where it has timed what
was the best before, or something faster. Of algorithms it has to have all that were timed before. Of runs in
one sweep, distinguished by their toolchain, the last one at a place decides there. A winner that spills
registers under the toolchain here, though not under the one it was measured with, gives way to others.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pyblasgpu import database
from pyblasgpu.database import FAMILIES, FUSED_TRSM, TUNED
from pyblasgpu.dispatch.tuned_files import slug
from pyblasgpu.gpu.device import known
from pyblasgpu.terminal import guarded
from pyblasgpu.tuning import portfolio
from pyblasgpu.tuning.compile_pool import compile_all, complaint
from pyblasgpu.tuning.filing import file_all
from pyblasgpu.tuning.results import Record, candidate_of, winners
from pyblasgpu.tuning.sweep_file import read_sweep
from pyblasgpu.tuning.tuned_file_writer import save
from tuning import time_products
from tuning.gather_calls import SUFFIX, read_calls
from tuning.under_load import under_load

FOLDER = Path(database.__file__).parent
PRODUCTS = ".products.gz"
SHARED = 1.01  # of the best time in a class: as much as two readings of one kernel differ


def main(
    sweeps: list[str], folder: Path = FOLDER, spilling: Callable[[set], set] | None = None
) -> list[Path]:
    """Write a file for each device and each architecture in `sweeps`; returns the files.

    ``spilling(candidates)`` returns those of the (stem, Config, arch) that spill.
    """
    spilling = spilling or _spilling
    of_devices = {
        Path(path).name.removesuffix(SUFFIX): read_calls(Path(path))
        for path in sweeps
        if path.endswith(SUFFIX)
    }
    products = {
        Path(path).name.removesuffix(PRODUCTS): time_products.read(Path(path))
        for path in sweeps
        if path.endswith(PRODUCTS)
    }
    calls = [call for swept in of_devices.values() for call in swept]
    devices: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in decisive(
        read_sweep(Path(path)) for path in sweeps if not path.endswith((SUFFIX, PRODUCTS))
    ):
        devices[record.arch, record.device].append(record)
    architectures: dict[str, list[Record]] = defaultdict(list)
    for (arch, device), of_card in devices.items():
        architectures[arch] += under_load(of_card, of_devices.get(slug(device), ()))
    documents, own = [], []
    for arch, of_arch in architectures.items():
        kept, records, document = _portfolio(of_arch, arch, spilling, calls)
        documents.append(document)
        for device in dict.fromkeys(record.device for record in of_arch):
            of_device = portfolio.reduced((r for r in records if r.device == device), kept)
            device_document = winners(of_device, device)
            file_all(device_document, of_device)
            _give_way(device_document, document, of_device)
            own.append(database.difference(device_document, document))
            own[-1].products.update(products.get(slug(device), {}))
    return [_write(document, folder) for document in (*documents, *own)]


def _give_way(own: database.Document, shared: database.Document, records: list[Record]) -> None:
    """Drop a device's winner of fused TRSM where one that was not timed on it was faster on another card."""
    timed = {record.candidate for record in records if record.stem in FUSED_TRSM}
    for key, entry in list(own.entries.items()):
        best = shared.entries.get(key)
        if key[0] in FUSED_TRSM and best and (best.tflops or 0.0) > (entry.tflops or 0.0):
            stem, dtype, layout, point = key
            if (*candidate_of(stem, dtype, layout, best.parameters), point) not in timed:
                del own.entries[key]


def _write(document: database.Document, folder: Path) -> Path:
    path = folder / f"{slug(document.device)}.json"
    before = database.read(path) if path.exists() else None
    if before is not None:  # no sweep times rasters
        document.rasters.update(before.rasters)
    save(document, path)
    path.chmod(0o644)
    return path


def decisive(sweeps: Iterable[Iterable[Record]]) -> list[Record]:
    """All failures, and of each place on a device the times of the last run that decides there."""
    failures: list[Record] = []
    times: dict[tuple, list[Record]] = {}
    for sweep in sweeps:
        here: dict[tuple, list[Record]] = defaultdict(list)
        for record in sweep:
            place = record.device, record.stem, record.dtype, record.layout, record.size
            group = here[place] if record.outcome == "ok" else failures
            if record.outcome == "ok" and group and group[-1].toolchain != record.toolchain:
                group.clear()  # those of an earlier run
            group.append(record)
        out = {record.candidate for record in failures}
        times.update(
            (place, group) for place, group in here.items() if _decides(group, times.get(place, ()), out)
        )
    return [*failures, *(record for records in times.values() for record in records)]


def _decides(later: Sequence[Record], before: Sequence[Record], out: set[tuple]) -> bool:
    """Whether one that was the best `before`, or nearly so, is among the `later`, or one of these is faster.
    A search that was cut off may have neither. Of algorithms one alone says nothing.
    """
    later, before = ([r for r in records if r.candidate not in out] for records in (later, before))
    if algorithms := {r.algorithm for r in before if r.algorithm}:
        return algorithms <= {r.algorithm for r in later}
    fastest, now = _fastest(before), _fastest(later)
    best = {r.candidate for r in before if r.seconds <= SHARED * fastest[r.extents]}
    return (
        not best
        or any(r.candidate in best for r in later)
        or all(now.get(extents, math.inf) < seconds for extents, seconds in fastest.items())
    )


def _fastest(records: Sequence[Record]) -> dict[tuple[int, ...], float]:
    """The shortest time at each extents."""
    shortest: dict[tuple[int, ...], float] = {}
    for record in records:
        shortest[record.extents] = min(record.seconds, shortest.get(record.extents, math.inf))
    return shortest


def _portfolio(
    records: list[Record], arch: str, spilling: Callable[[set], set], calls: list[dict[str, Any]]
) -> tuple[set[tuple], list[Record], database.Document]:
    """The candidates that an architecture keeps, none spilling; the records that count; the winners."""
    calls = [call for call in calls if call["arch"] == arch]
    while True:
        kept = portfolio.chosen(records, calls)
        reduced = portfolio.reduced(records, kept)
        document = winners(reduced, arch)
        file_all(document, reduced)
        kernels = {
            (stem, FAMILIES[stem].config(dtype, layout, entry.parameters), arch)
            for (stem, dtype, layout, _), entry in document.entries.items()
            if stem in FAMILIES
        }
        bad = spilling(kernels)
        if not bad:
            return kept, records, document
        # the other leaves of a routine were timed within it at few orders, which says nothing of these
        spoilt = {_routine_class(r) for r in records if r.stem not in TUNED and _candidate(r) in bad}
        records = [r for r in records if _candidate(r) not in bad and _routine_class(r) not in spoilt]


def _routine_class(record: Record) -> tuple | None:
    """Routine, dtype and class of a record of a whole routine."""
    return (record.stem, record.dtype, record.size) if record.stem not in TUNED else None


def _candidate(record: Record) -> tuple | None:
    """The kernel that a time is of, itself or as the leaf of a routine."""
    if record.kernel is None or record.outcome != "ok":
        return None
    stem, dtype, layout, parameters = record.kernel
    return stem, TUNED[stem].config(dtype, layout, parameters), record.arch


def _spilling(candidates: set) -> set:
    """Return the `candidates` that the compiler here cannot keep in registers."""
    bad = set()
    for arch in {arch for *_, arch in candidates}:
        device = known(arch)
        jobs = [(stem, config) for stem, config, of in candidates if of == arch]
        for (stem, config), report in compile_all(jobs, device.cc):
            if complaint(config, report, device)[0] != "ok":
                bad.add((stem, config, arch))
    return bad


def _command() -> int:
    for path in main(sys.argv[1:]):
        print(path)
    return 0


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    sys.exit(guarded(["tuning/database_from_sweeps.py"], _command))
