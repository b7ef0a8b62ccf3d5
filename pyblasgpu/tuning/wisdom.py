"""``pyblasgpu wisdom``: the tuned values of this user: list, locate, export, import, forget."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from .. import database, terminal
from ..cpu.numba import tuned_gemm
from ..cpu.numba.device import current
from ..cpu.numba.tuned_gemm import TunedProcessor
from ..database import TUNED, DatabaseError, Document, dumps, parse
from ..database.policy import is_by_dtype, trials
from ..dispatch import tuned_files
from ..gpu import device as devices
from . import cpu_wisdom
from .tuned_file_writer import edit, merge

__all__ = ["driver_name", "export", "files", "forget", "main", "take_in"]

WIDTH = 140  # columns of a table that goes into a file or a pipe
CPU = "cpu"  # what a person calls the processor


def files() -> dict[Path, Document]:
    """The readable files of the user's tuned values, of all devices; others are named by a warning.

    None where there is no folder for them.
    """
    paths = (path for path in tuned_files.user_files() if not tuned_gemm.is_named_so(path))
    documents = {path: database.read(path) for path in paths}
    return {path: document for path, document in documents.items() if document is not None}


def driver_name(device: str | None) -> str:
    """The driver's name of the device that a person means, as of `devices.named`, or that of a user's file.

    Raises
    ------
    BackendUnavailable
        Where there is no device of that number.
    ValueError
        For a name of no device that is here, known, or in a file.
    """
    try:
        return devices.named(device).name
    except ValueError:
        tuned = (document.device for document in files().values())
        match = next((name for name in tuned if devices.same_name(name, device or "")), None)
        if match is None:
            raise
        return match


def export(device: str) -> str:
    """The text of the user's tuned values of a device, by its number or any spelling of its name.

    Raises
    ------
    ValueError
        Where there are none.
    """
    name, documents = driver_name(device), files().values()
    document = next((document for document in documents if document.device == name), None)
    if document is None:
        known = ", ".join(document.device for document in documents) or "no device"
        raise ValueError(f"there are no tuned values of {name!r}; there are some of {known}")
    return dumps(document)


def take_in(path: Path, device: str | None = None) -> tuple[Path, Document]:
    """Put the values of a file over the user's own, all of them or none; returns the user's file.

    Parameters
    ----------
    path : Path
    device : str, optional
        The number or a name of the device whose values they shall be; the file may be of its architecture.
        Default: the one that the file is of.

    Raises
    ------
    DatabaseError, OSError
        Where the file is not what `schema.json` describes, or cannot be read, or where nothing would ever
        read its values.
    """
    document = parse(_content(path))
    if _is_cpu(device):
        raise DatabaseError(f"it is of {document.device!r}, which is no processor")
    document.device = _reader(document.device, device)
    if not len(document):
        raise DatabaseError("it holds no values")
    return merge(document), document


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(database.MAX_BYTES + 1)


def _is_cpu(device: str | None) -> bool:
    """Whether a person means the processor."""
    return device is not None and device.strip().lower() == CPU


def _reader(written: str, asked: str | None) -> str:
    """The driver's name of the device that will read the values of a file of `written`."""
    if asked is not None:
        meant = devices.named(asked)
        if not any(devices.same_name(written, name) for name in (meant.name, meant.arch)):
            raise DatabaseError(f"it is of {written!r}, neither of {meant.name!r} nor of {meant.arch!r}")
        return meant.name
    if re.fullmatch(r"sm_?\d+a?", written.lower()):
        raise DatabaseError(
            f"it is of the architecture {written!r}, and the user's values are read by the name of a device; "
            "--device says for which they shall be"
        )
    try:
        return driver_name(written)
    except ValueError:  # of a device that only its driver knows
        return written


def forget(device: str, stems: tuple[str, ...] | None = None, dtypes: tuple[str, ...] | None = None) -> int:
    """Drop the user's tuned values of a device, all or those of some families, routines, dtypes; it goes by
    its number or any spelling of its name.

    Returns how many were dropped; a file that holds nothing any more is removed.
    """

    def kept(name: str, dtype: str) -> bool:
        return (stems is not None and name not in stems) or (dtypes is not None and dtype not in dtypes)

    with edit(driver_name(device)) as document:
        before = len(document)
        document.entries = {key: e for key, e in document.entries.items() if kept(*key[:2])}
        document.trsm_rates = {key: each for key, each in document.trsm_rates.items() if kept("trsm", key[0])}
        document.rasters = {dtype: each for dtype, each in document.rasters.items() if kept("gemm", dtype)}
        document.policy = dict(_kept(document.policy, kept))
        document.fixed = {key: each for key, each in document.fixed.items() if kept(*key)}
        document.products = {key: each for key, each in document.products.items() if kept(*key[:2])}
        return before - len(document)


def _kept(values: Mapping[str, Any], kept: Callable[[str, str], bool]) -> Iterator[tuple[str, Any]]:
    """The values of the policy that are ``kept(routine, dtype)``, by the routine that they are measured by;
    a value of all dtypes has none.
    """
    routines = {name: trial.routine for name, trial in trials().items()}
    for name, value in values.items():
        routine = routines.get(name, "")
        if is_by_dtype(name):
            value = {dtype: each for dtype, each in value.items() if kept(routine, dtype)}
            if value:
                yield name, value
        elif kept(routine, ""):
            yield name, value


def main(options: Any) -> int:
    """Do what ``options.action`` names; returns the exit code.

    Parameters
    ----------
    options : object
        With the attributes ``action``, ``device`` (a number, a name or None), ``file`` (of export and
        import, or None), ``routine`` and ``dtype`` (of forget, tuples of names or None), ``json``.
    """
    if options.file is not None and options.action not in ("export", "import"):
        raise ValueError(f"{options.action} takes no file, as {options.file}; export and import do")
    for name in ("routine", "dtype"):
        if getattr(options, name) is not None and options.action != "forget":
            raise ValueError(f"--{name} narrows what is forgotten; {options.action} takes none")
    return _ACTIONS[options.action](options)


def _list(options: Any) -> int:
    documents, processors = _listed(options.device)
    if options.json:
        texts = {path: dumps(document) for path, document in documents.items()}
        texts |= {path: tuned_gemm.dumps(tuned) for path, tuned in processors.items()}
        values = [{"file": str(path), **json.loads(text)} for path, text in texts.items()]
        print(json.dumps(values, indent=2))
        return 0
    table = Table("device", "family", "dtype", "layout", "class", "Config or algorithm", "TFLOP/s")
    for document in documents.values():
        for key, entry in sorted(document.entries.items()):
            config = " ".join(f"{name}={int(value)}" for name, value in entry.parameters.items())
            table.add_row(document.device, *key, config, f"{entry.tflops:.3g}" if entry.tflops else "")
        for (dtype, point), rates in sorted(document.trsm_rates.items()):
            for algorithm, rate in sorted(rates.items()):
                table.add_row(document.device, "trsm", dtype, "", point, algorithm, f"{rate:.3g}")
        for dtype, raster in sorted(document.rasters.items()):
            table.add_row(document.device, "gemm", dtype, "", "", f"raster={raster}", "")
        for (stem, dtype), parameters in sorted(document.fixed.items()):
            config = " ".join(f"{name}={value}" for name, value in parameters.items())
            table.add_row(document.device, stem, dtype, "", "", config, "")
        for name, value in sorted(document.policy.items()):
            table.add_row(document.device, "policy", "", "", name, json.dumps(value), "")
    for row in (row for tuned in processors.values() for row in cpu_wisdom.rows(tuned)):
        table.add_row(*row)
    terminal.console(WIDTH).print(
        table if table.row_count else "nothing was tuned here; packaged values serve"
    )
    return 0


def _listed(device: str | None) -> tuple[dict[Path, Document], dict[Path, TunedProcessor]]:
    """The files of devices and those of processors that a person means, by default all."""
    if _is_cpu(device):
        return {}, cpu_wisdom.files()
    if device is None:
        return files(), cpu_wisdom.files()
    name = driver_name(device)
    return {path: document for path, document in files().items() if document.device == name}, {}


def _where(options: Any) -> int:
    """The files of a device, first the one that wins."""
    is_cpu = _is_cpu(options.device)
    levels = (cpu_wisdom.level(),) if is_cpu else tuned_files.levels(devices.named(options.device))
    rows = [{"level": level.origin, "file": str(level.path), "exists": level.exists} for level in levels]
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        print(row["file"] if row["exists"] else f"{row['file']} (absent)")
    return 0


def _export(options: Any) -> int:
    text = cpu_wisdom.export() if _is_cpu(options.device) else export(driver_name(options.device))
    if options.file is None:
        print(text, end="")
    else:
        Path(options.file).write_text(text, encoding="utf-8")
    return 0


def _import(options: Any) -> int:
    if options.file is None:
        raise ValueError("import needs the file to take values from")
    try:
        if cpu_wisdom.is_of_processor(_content(Path(options.file))):
            return _import_of_processor(Path(options.file), options.device)
        path, document = take_in(Path(options.file), options.device)
    except (OSError, ValueError) as problem:
        raise ValueError(f"{options.file} is not taken in: {problem}") from problem
    print(f"{len(document)} values of {document.device} are now in {path}")
    for note in _notes(document):
        print(note, file=sys.stderr)
    return 0


def _import_of_processor(path: Path, device: str | None) -> int:
    tuned, here = tuned_gemm.parse(_content(path)), current().name
    if device is not None and not (_is_cpu(device) and tuned.processor == here):
        meant = f"the processor {here!r}" if _is_cpu(device) else f"the device {device!r}"
        raise ValueError(f"it is of the processor {tuned.processor!r}, not of {meant}")
    if not tuned.configs:
        raise ValueError("it holds no values")
    print(f"{len(tuned.configs)} values of {tuned.processor} are now in {cpu_wisdom.merge(tuned)}")
    if tuned.processor != here:
        print(
            f"only a processor called {tuned.processor!r} will read them; this is {here!r}", file=sys.stderr
        )
    return 0


def _notes(document: Document) -> list[str]:
    """Return notes on devices that will not read the imported values."""
    try:
        device = devices.named(document.device)
    except ValueError:
        device = None
    here = [device.name for device in devices.here()]
    notes = []
    if document.device not in here:
        known = "" if device else ", which is the name of no device that is known,"
        there = f" (here: {', '.join(here)})" if here else ""
        notes.append(
            f"only a device called {document.device!r}{known} will read them, and none is here{there}"
        )
    skipped = tuned_files.unusable(document, device)
    if skipped:
        notes.append(f"{len(skipped)} of them are passed over, as {skipped[0]}")
    return notes


def _forget(options: Any) -> int:
    if _is_cpu(options.device):
        name = current().name
        is_meant = options.routine is None or "gemm" in options.routine  # all are Configs of GEMM
        count = cpu_wisdom.forget(name, options.dtype if is_meant else ())
        print(f"{count} values of {name} are forgotten")
        return 0
    stems = None
    if options.routine is not None:
        families = (stem for stem, family in TUNED.items() if family.routine in options.routine)
        stems = (*families, *options.routine)
    name = driver_name(options.device)
    print(f"{forget(name, stems, options.dtype)} values of {name} are forgotten")
    return 0


_ACTIONS = {"list": _list, "where": _where, "export": _export, "import": _import, "forget": _forget}
