"""What a tuning run leaves: a line for each measurement, and the user's file of winners made from them."""

from __future__ import annotations

import gzip
import json
import math
import os
import tempfile
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from filelock import FileLock

from ..database import (
    FAMILIES,
    METHODS,
    METHODS_AT,
    STOP_ROUTINES,
    Document,
    Entry,
    current_name,
    dumps,
    families_of,
    read,
    solved_in,
    switch_at,
    ways_of,
    with_current_names,
)
from ..dispatch.tuned_files import slug, user_file
from ..errors import DatabaseWarning
from ..gpu.kernel_store import data_folder

__all__ = [
    "FATAL",
    "Record",
    "add_elsewhere",
    "append",
    "candidate_of",
    "edit",
    "merge",
    "read_sweep",
    "save",
    "sound",
    "sweep_file",
    "winners",
]


#: Outcomes after which a candidate is out, whatever was measured before.
FATAL = frozenset({"wrong", "spoils", "crash", "hang", "error"})
MAX_LINE = 1 << 16  # bytes of a record
MAX_SWEEP = 1 << 30


@dataclass(frozen=True)
class Record:
    """One candidate at one size: a kernel's Config, a stop size, or a method.

    Attributes
    ----------
    device, arch : str
        Where it was measured.
    stem : str
        A kernel family; or a routine, for its stop size, its method, or as a whole.
    dtype, layout, size : str
        As in the database; of a method the place, and the layout 'any', or that of another of `SOLVED`.
    extents : tuple of int
        What was run.
    parameters : dict
        Of the Config; of a stop size ``{"stop": size}``, with the Config of the leaf that it was timed with;
        of a method, ``{"one_launch": 1}``, maybe with the Config that it was timed with, of the recursion
        beside it, ``{"one_launch": 0}``, and of one that ends in triangles of 1024 which go by it,
        ``{"one_launch": 1024}``; of batches ``{"small_triangles": 1}``, or 0.
    outcome : str
        'ok'; or why there is no time: the rule that it broke, 'compile', 'wrong', 'spoils' (it wrote where
        it must not), 'crash', 'hang', 'error'; or what was timed beside the candidates: 'vendor',
        'reference', and whole routines 'before' and 'after' the run.
    seconds, tflops : float
        0 without a time.
    detail : str
        The complaint, if any.
    effort, toolchain : str
        Of the run; a later one resumes what was measured with its own.
    caches : {'warm', 'cold'}
        Whether operands lay in the L2 cache.
    when : str
        Date and time, UTC.
    state : dict
        Clock, temperature, power of the device as NVML told it: sm_mhz, celsius, watts.
    numbers : dict
        What the linker reported of a candidate that was dropped for it: registers, bytes of spills, ...
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
    effort: str = ""
    toolchain: str = ""
    caches: str = "warm"
    when: str = ""
    state: dict[str, float] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def candidate(self) -> tuple:
        """Equal for the records of one candidate; a method is another one at every place."""
        found = candidate_of(self.stem, self.dtype, self.layout, self.parameters)
        return (*found, self.size) if self.method or self.solver else found

    @property
    def method(self) -> str | None:
        """Of a record of a method which of `ways_of` the routine it is of."""
        asked = self.parameters.get(switch_at(self.stem, self.size) or "")
        if self.layout != "any":
            return None
        return next((way for way, value in ways_of(self.stem, self.size).items() if value == asked), None)

    @property
    def solver(self) -> tuple[str, str, dict[str, int]] | None:
        """Family, which of `SOLVED`, and parameters of the GEMM Config that solved all in one launch, if the
        record has them.
        """
        switch = METHODS.get(self.stem, "")
        solved = solved_in(self.layout)
        if solved is None or self.size not in METHODS_AT or self.parameters.get(switch) != 1:
            return None
        given = {name: value for name, value in self.parameters.items() if name != switch}
        stems = families_of("gemm", self.dtype)
        stem = next((stem for stem in stems if set(given) == set(FAMILIES[stem].parameters)), None)
        return (stem, solved, given) if stem else None

    @property
    def kernel(self) -> tuple[str, str, str, dict[str, int]] | None:
        """Family, dtype, layout and parameters of the kernel: its own, or the leaf of a whole routine."""
        if self.stem in FAMILIES:
            return self.stem, self.dtype, self.layout, self.parameters
        leaf = {name: value for name, value in self.parameters.items() if name != "stop"}
        stems = families_of(self.stem, self.dtype) if "stop" in self.parameters and leaf else ()
        fitting = [stem for stem in stems if FAMILIES[stem].required <= set(leaf)]
        # another family may have all of these parameters, and more
        stem = min(fitting, key=lambda stem: len(set(leaf) ^ set(FAMILIES[stem].parameters)), default=None)
        return (stem, self.dtype, FAMILIES[stem].layouts[0], leaf) if stem else None


def candidate_of(stem: str, dtype: str, layout: str, parameters: dict[str, int]) -> tuple:
    """The same for one that was written down before its Config had all of its parameters."""
    if stem in FAMILIES:
        parameters = FAMILIES[stem].complete(parameters)
    return stem, dtype, layout, *sorted(parameters.items())


_TEXTS = tuple(f.name for f in fields(Record) if f.type == "str")


def sweep_file(device: str) -> Path:
    """The user's measurements on `device`, a JSON object a line; `NoFolder` as of `data_folder`."""
    return data_folder() / "sweeps" / f"{slug(device)}.jsonl"


def append(path: Path, record: Record) -> None:
    """Add a line to a sweep, whole, and at once; several processes may do so.

    A line that a killed process has left unfinished is ended first, lest it take this one with it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    line = json.dumps(asdict(record)).encode() + b"\n"
    with FileLock(path.with_suffix(".lock")), path.open("a+b") as file:
        if file.tell() and _last_byte(file) != b"\n":
            line = b"\n" + line
        file.write(line)


def _last_byte(file: BinaryIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def read_sweep(path: Path) -> list[Record]:
    """The records of a sweep, plain or gzipped; lines that are none, as an unfinished last one, are skipped.

    So are records of what can no longer run, as its Config has lost a parameter that was on.

    Raises
    ------
    OSError
        Where it cannot be read.
    """
    unpacked = gzip.open if path.suffix == ".gz" else open
    try:
        with unpacked(path, "rb") as file:
            content = file.read(MAX_SWEEP + 1)
    except (EOFError, zlib.error) as damage:
        raise OSError(f"{path} is no whole gzip file: {damage}") from damage
    if len(content) > MAX_SWEEP:
        raise OSError(f"{path} has more than {MAX_SWEEP} bytes")
    found = [_record(line) for line in content.splitlines() if line]
    skipped = found.count(None)
    if skipped:
        warnings.warn(f"{path}: {skipped} lines are no records", DatabaseWarning, stacklevel=2)
    read = (_as_of_now(record) for record in found if record is not None)
    return [record for record in read if record is not None]


def _as_of_now(record: Record) -> Record | None:
    """`record` with no parameter that its Config has lost since; None where such a one was on.

    What a sweep recorded stays in its file. A kernel whose lost parameter was off, or 0, is the same without
    it; the time of another is of no Config that there is.
    """
    if record.kernel is None:
        return record
    stem, _, _, parameters = record.kernel
    lost = parameters.keys() - FAMILIES[stem].parameters.keys()
    if any(parameters[name] for name in lost):
        return None
    kept = {name: value for name, value in record.parameters.items() if name not in lost}
    return replace(record, parameters=kept) if lost else record


def _record(line: bytes) -> Record | None:
    """The record in a line, if everything in it has the type that it must have."""
    if len(line) > MAX_LINE:
        return None
    try:
        raw = json.loads(line)
        raw = {**raw, "stem": current_name(raw["stem"]), "extents": tuple(raw.get("extents", ()))}
        raw["parameters"] = with_current_names(raw.get("parameters", {}))
        record = Record(**raw)
    except (ValueError, TypeError, AttributeError, RecursionError, KeyError):
        return None
    texts = (getattr(record, name) for name in _TEXTS)
    numbers = (record.seconds, record.tflops, *_numbers(record.state))
    whole = (*record.extents, *_numbers(record.parameters), *_numbers(record.numbers))
    good = all(isinstance(text, str) for text in texts)
    good = good and all(type(x) in (int, float) and 0 <= x < math.inf for x in numbers)
    return record if good and all(isinstance(x, int) and x >= 0 for x in whole) else None


def _numbers(value: Any) -> tuple:
    """The values of an object; of anything else, something that is no number."""
    return tuple(value.values()) if isinstance(value, dict) else (None,)


def winners(records: Iterable[Record], device: str) -> Document:
    """The fastest of what was measured, class by class, as the tuned values of `device`.

    Of a class with several extents that candidate wins whose times are the smallest multiples of the best
    on average; only candidates with a time at each of them take part, of those that are `sound`. The
    same rule joins devices when `records` are those of several, for the values of an architecture.
    Of methods it takes two that a device tried at a place; one may have failed there.
    """
    records = list(records)
    tried: dict[tuple, set[str]] = defaultdict(set)
    for record in records:
        if method := record.method:
            tried[_method_place(record)].add(method)
    records = sound(records)
    times: dict[tuple, dict[tuple, dict[tuple, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if not record.method or len(tried[_method_place(record)]) > 1:
            key = (record.stem, record.dtype, record.layout, record.size)
            times[key][record.candidate][record.device, record.extents] = record
    document = Document(device)
    # families first: the leaf that was best within its routine takes the place of the one best by itself
    for key, measured in sorted(times.items(), key=lambda item: item[0][0] not in FAMILIES):
        best = _best(measured)
        # the larger of the extents is the one to quote
        quoted = max(best.values(), key=lambda record: record.extents)
        stem, dtype, _, size = key
        if stem in STOP_ROUTINES and "stop" in quoted.parameters:
            document.stop_sizes[stem, dtype, size] = quoted.parameters["stop"]
        if quoted.method:
            document.methods[stem, dtype, size] = quoted.method
        if quoted.kernel is not None:
            stem, dtype, layout, parameters = quoted.kernel
            alone = times[stem, dtype, layout, size].get(candidate_of(*quoted.kernel), {})
            rates = [record.tflops for _, record in sorted(alone.items(), key=lambda item: item[0])]
            document.entries[stem, dtype, layout, size] = Entry(parameters, rates[-1] if rates else None)
            if key[0] in STOP_ROUTINES:
                _drop_others(document, stem, dtype, size)
    _add_solvers(document, records)
    add_elsewhere(document, records)
    return document


def _method_place(record: Record) -> tuple[str, ...]:
    return record.device, record.stem, record.dtype, record.size


def _add_solvers(document: Document, records: Iterable[Record]) -> None:
    """The Config of the fastest of `sound` records at each place, of each of `SOLVED`."""
    fastest: dict[tuple, Record] = {}
    for record in records:
        if solver := record.solver:
            key = record.dtype, solver[1], record.size
            if key not in fastest or record.seconds < fastest[key].seconds:
                fastest[key] = record
    for (dtype, which, place), record in fastest.items():
        stem, _, parameters = cast(tuple, record.solver)
        document.solvers[stem, dtype, which, place] = Entry(parameters, record.tflops)


def add_elsewhere(document: Document, records: Iterable[Record]) -> None:
    """Tell of each product's Config what it reached at the extents of other classes, by `sound` records."""
    rates: dict[tuple, dict[str, float]] = defaultdict(dict)
    for record in records:
        if record.stem in FAMILIES and FAMILIES[record.stem].routine == "gemm":
            rates[record.candidate][record.size] = record.tflops
    for (stem, dtype, layout, size), entry in document.entries.items():
        known = rates.get(candidate_of(stem, dtype, layout, entry.parameters), {})
        elsewhere = {other: rate for other, rate in known.items() if other != size}
        document.entries[stem, dtype, layout, size] = replace(entry, elsewhere=elsewhere)


def _drop_others(document: Document, stem: str, dtype: str, size: str) -> None:
    """Drop what other families of the routine have at the same place."""
    for other in families_of(FAMILIES[stem].routine, dtype):
        if other != stem:
            document.entries.pop((other, dtype, FAMILIES[other].layouts[0], size), None)


def sound(records: Iterable[Record]) -> list[Record]:
    """The times of candidates at which nothing was ever wrong.

    Where some times of a class are of cold caches, those of warm ones do not count.
    """
    records = list(records)
    out = {record.candidate for record in records if record.outcome in FATAL}
    timed = [r for r in records if r.outcome == "ok" and r.seconds > 0 and not _names(r) & out]
    cold = {_class(record) for record in timed if record.caches == "cold"}
    return [record for record in timed if record.caches == "cold" or _class(record) not in cold]


def _names(record: Record) -> set[tuple]:
    """The candidates on which a record depends: its own, and the kernel that it ran as a leaf."""
    kernel = record.kernel
    return {record.candidate, candidate_of(*kernel)} if kernel else {record.candidate}


def _class(record: Record) -> tuple:
    return record.device, record.stem, record.dtype, record.layout, record.size


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
    """Put `found` into the user's file, over what is there for the same keys; returns the file."""
    with edit(found.device) as present:
        for stem, dtype, _, size in found.entries:
            if (FAMILIES[stem].routine, dtype, size) in found.stop_sizes:
                _drop_others(present, stem, dtype, size)
        present.entries.update(found.entries)
        present.stop_sizes.update(found.stop_sizes)
        present.methods.update(found.methods)
        present.solvers.update(found.solvers)
    return user_file(found.device)


@contextmanager
def edit(device: str) -> Iterator[Document]:
    """The user's tuned values of a device, to be changed: written at the end, removed where none is left.

    Several processes may do so at once. A file that cannot be read is kept beside, as ``….damaged``.
    """
    path = user_file(device)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(path.with_suffix(".lock")):
        present = read(path, device)
        if present is None:
            if path.exists():
                path.replace(path.with_suffix(".json.damaged"))
            present = Document(device)
        yield present
        if present:
            save(present, path)
        else:
            path.unlink(missing_ok=True)


def save(document: Document, path: Path) -> None:
    """Write `document` to `path`, which then holds either the old text or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(dumps(document))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
