"""What a tuning run leaves: a line for each measurement, and the user's file of winners made from them."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from filelock import FileLock

from ..database import FAMILIES, Document, Entry, dumps, read
from ..gpu.store import data_folder

__all__ = [
    "Record", "append", "merge", "read_sweep", "save", "slug", "sweep_file", "user_file", "winners",
]  # fmt: skip


@dataclass(frozen=True)
class Record:
    """One candidate at one size: a kernel's Config, or a stop size.

    Attributes
    ----------
    device, arch : str
        Where it was measured.
    stem : str
        A kernel family, or the routine whose stop size it is.
    dtype, layout, size : str
        As in the database.
    extents : tuple of int
        What was run.
    parameters : dict
        Of the Config; ``{"stop": size}`` of a stop size.
    outcome : str
        'ok', or why there is no time: the rule that it broke, 'compile', 'wrong', 'error'.
    seconds, tflops : float
        0 without a time.
    detail : str
        The complaint, if any.
    """

    device: str
    arch: str
    stem: str
    dtype: str
    layout: str
    size: str
    extents: tuple[int, ...] = ()
    parameters: dict[str, int] = field(default_factory=dict)
    outcome: str = "ok"
    seconds: float = 0.0
    tflops: float = 0.0
    detail: str = ""


def slug(device: str) -> str:
    """The stem of a device's file names: 'NVIDIA H200' gives 'nvidia_h200'."""
    return re.sub(r"[^a-z0-9]+", "_", device.lower()).strip("_") or "device"


def user_file(device: str) -> Path:
    """The user's tuned values of `device`."""
    return data_folder() / "tuned" / f"{slug(device)}.json"


def sweep_file(device: str) -> Path:
    """The user's measurements on `device`, a JSON object a line."""
    return data_folder() / "sweeps" / f"{slug(device)}.jsonl"


def append(path: Path, record: Record) -> None:
    """Add a line to a sweep, whole, and at once."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as file:
        file.write(json.dumps(asdict(record)).encode() + b"\n")


def read_sweep(path: Path) -> list[Record]:
    """The records of a sweep; a line that a killed run left unfinished is skipped."""
    records = []
    for line in path.read_bytes().splitlines():
        try:
            raw = json.loads(line)
            records.append(Record(**{**raw, "extents": tuple(raw["extents"])}))
        except (ValueError, TypeError, KeyError):
            continue
    return records


def winners(records: Iterable[Record], device: str) -> Document:
    """The fastest of what was measured, class by class, as the tuned values of `device`.

    Of a class with several extents that candidate wins whose times are the smallest multiples of the best
    on average; only candidates with a time at each of them take part, and none that was ever wrong. The
    same rule joins devices when `records` are those of several, for the values of an architecture.
    """
    records = list(records)
    wrong = {_candidate(record) for record in records if record.outcome == "wrong"}
    times: dict[tuple, dict[tuple, dict[tuple, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if record.outcome == "ok" and record.seconds > 0 and _candidate(record) not in wrong:
            key = (record.stem, record.dtype, record.layout, record.size)
            times[key][_candidate(record)][record.device, record.extents] = record
    document = Document(device)
    for (stem, dtype, layout, size), measured in times.items():
        best = _best(measured)
        # the larger of the extents is the one to quote
        quoted = max(best.values(), key=lambda record: record.extents)
        if stem in FAMILIES:
            document.entries[stem, dtype, layout, size] = Entry(quoted.parameters, quoted.tflops)
        else:
            document.stop_sizes[stem, dtype, size] = quoted.parameters["stop"]
    return document


def _candidate(record: Record) -> tuple:
    return record.stem, record.dtype, record.layout, *sorted(record.parameters.items())


def _best(measured: dict[tuple, dict[tuple, Record]]) -> dict[tuple, Record]:
    """The times, by place, of the candidate that wins."""
    places = {place for times in measured.values() for place in times}
    complete = [times for times in measured.values() if len(times) == len(places)] or list(measured.values())
    fastest = {place: min(times[place].seconds for times in complete if place in times) for place in places}
    return min(
        complete,
        key=lambda times: sum(times[place].seconds / fastest[place] for place in times) / len(times),
    )


def merge(found: Document) -> Path:
    """Put `found` into the user's file, over what is there for the same keys; returns the file.

    Several processes may do so at once. A file that cannot be read is kept beside, as ``….damaged``.
    """
    path = user_file(found.device)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(path.with_suffix(".lock")):
        present = read(path, found.device)
        if present is None:
            if path.exists():
                path.replace(path.with_suffix(".json.damaged"))
            present = Document(found.device)
        present.entries.update(found.entries)
        present.stop_sizes.update(found.stop_sizes)
        save(present, path)
    return path


def save(document: Document, path: Path) -> None:
    """Write `document` to `path`, which then holds either the old text or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(dumps(document))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
