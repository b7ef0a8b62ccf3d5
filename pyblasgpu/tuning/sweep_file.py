"""The file of a sweep: one record a line, as JSON."""

from __future__ import annotations

import gzip
import json
import math
import os
import warnings
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock

from ..database import current_name, with_current_names
from ..dispatch.tuned_files import slug
from ..errors import DatabaseWarning
from ..gpu.user_folders import data_folder
from .results import Record, as_of_now

__all__ = ["append", "read_sweep", "sweep_file"]

MAX_LINE = 1 << 16  # bytes of a record
MAX_SWEEP = 1 << 30

_TEXTS = tuple(f.name for f in fields(Record) if f.type == "str")


def sweep_file(device: str) -> Path:
    """The user's measurements on `device`, a JSON object a line; `NoFolder` as of `data_folder`."""
    return data_folder() / "sweeps" / f"{slug(device)}.jsonl"


def append(path: Path, record: Record) -> None:
    """Add a line to a sweep at once; several processes may do so.

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
    records = [_record(line) for line in content.splitlines() if line]
    skipped = records.count(None)
    if skipped:
        warnings.warn(f"{path}: {skipped} lines are no records", DatabaseWarning, stacklevel=2)
    current = (as_of_now(record) for record in records if record is not None)
    return [record for record in current if record is not None]


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
    integers = (*record.extents, *_numbers(record.parameters), *_numbers(record.numbers))
    good = all(isinstance(text, str) for text in texts)
    good = good and all(type(x) in (int, float) and 0 <= x < math.inf for x in numbers)
    return record if good and all(isinstance(x, int) and x >= 0 for x in integers) else None


def _numbers(value: Any) -> tuple:
    """The values of an object; of anything else, something that is no number."""
    return tuple(value.values()) if isinstance(value, dict) else (None,)
