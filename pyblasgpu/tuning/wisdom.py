"""``pyblasgpu wisdom``: the tuned values of this user: list, locate, hand on, take in, forget."""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .. import database
from ..database import FAMILIES, DatabaseError, Document, dumps, parse
from ..gpu import device as devices
from ..gpu.device import Device
from ..gpu.store import data_folder
from . import overlay
from .store import edit, merge, user_file

__all__ = ["export", "files", "forget", "main", "take_in"]

WIDTH = 140  # columns of a table that goes into a file or a pipe


def files() -> dict[Path, Document]:
    """The readable files of the user's tuned values, of all devices; others are named by a warning."""
    found = {}
    for path in sorted((data_folder() / "tuned").glob("*.json")):
        document = database.read(path)
        if document is not None:
            found[path] = document
    return found


def export(device: str) -> str:
    """The text of the user's tuned values of a device.

    Raises
    ------
    ValueError
        Where there are none.
    """
    document = database.read(user_file(device), device)
    if document is None:
        known = ", ".join(document.device for document in files().values()) or "no device"
        raise ValueError(f"there are no tuned values of {device!r}; there are some of {known}")
    return dumps(document)


def take_in(path: Path) -> tuple[Path, Document]:
    """Put the values of a file over the user's own, all of them or none; returns the user's file.

    Raises
    ------
    DatabaseError, OSError
        Where the file is not what `schema.json` describes, or cannot be read.
    """
    with path.open("rb") as file:
        document = parse(file.read(database.MAX_BYTES + 1))
    return merge(document), document


def forget(device: str, stems: tuple[str, ...] | None = None, dtypes: tuple[str, ...] | None = None) -> int:
    """Drop the user's tuned values of a device, all or those of some families, routines, dtypes.

    Returns how many were dropped; a file that holds nothing any more is removed.
    """

    def kept(name: str, dtype: str) -> bool:
        return (stems is not None and name not in stems) or (dtypes is not None and dtype not in dtypes)

    with edit(device) as document:
        before = len(document)
        document.entries = {key: e for key, e in document.entries.items() if kept(*key[:2])}
        document.stop_sizes = {key: s for key, s in document.stop_sizes.items() if kept(*key[:2])}
        document.methods = {key: way for key, way in document.methods.items() if kept(*key[:2])}
        document.solvers = {key: e for key, e in document.solvers.items() if kept("trsm", key[1])}
        return before - len(document)


def main(options: Any) -> int:
    """Do what ``options.action`` names; returns the exit code.

    Parameters
    ----------
    options : object
        With the attributes ``action``, ``device`` (a number, a name or None), ``file`` (of export and
        import, or None), ``routine`` and ``dtype`` (of forget, tuples of names or None), ``json``.
    """
    return _ACTIONS[options.action](options)


def _list(options: Any) -> int:
    found = files()
    if options.json:
        values = [{"file": str(path), **json.loads(dumps(document))} for path, document in found.items()]
        print(json.dumps(values, indent=2))
        return 0
    table = Table("device", "family", "dtype", "layout", "class", "Config or switch", "TFLOP/s")
    for document in found.values():
        solvers = (
            (("trsm", dtype, f"{stem} {solved}", at), e)
            for (stem, dtype, solved, at), e in sorted(document.solvers.items())
        )
        for key, entry in chain(sorted(document.entries.items()), solvers):
            config = " ".join(f"{name}={int(value)}" for name, value in entry.parameters.items())
            table.add_row(document.device, *key, config, f"{entry.tflops:.3g}" if entry.tflops else "")
        for (routine, dtype, size), stop in sorted(document.stop_sizes.items()):
            table.add_row(document.device, routine, dtype, "", size, f"stop={stop}", "")
        for (routine, dtype, place), way in sorted(document.methods.items()):
            table.add_row(document.device, routine, dtype, "", place, f"method={way}", "")
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table if table.row_count else "nothing was tuned here; packaged values serve")
    return 0


def _where(options: Any) -> int:
    """The files of a device, first the one that wins."""
    levels = overlay.levels(_device(options.device))
    rows = [
        {"level": level.origin, "file": str(level.path), "exists": level.path.is_file()} for level in levels
    ]
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        print(row["file"] if row["exists"] else f"{row['file']} (absent)")
    return 0


def _export(options: Any) -> int:
    text = export(_name(options.device))
    if options.file is None:
        print(text, end="")
    else:
        Path(options.file).write_text(text)
    return 0


def _import(options: Any) -> int:
    if options.file is None:
        raise ValueError("import needs the file to take values from")
    try:
        path, document = take_in(Path(options.file))
    except (OSError, DatabaseError) as problem:
        raise ValueError(f"{options.file} is not taken in: {problem}") from problem
    print(f"{len(document)} values of {document.device} are now in {path}")
    return 0


def _forget(options: Any) -> int:
    stems = None
    if options.routine is not None:
        families = (stem for stem, family in FAMILIES.items() if family.routine in options.routine)
        stems = (*families, *options.routine)
    name = _name(options.device)
    print(f"{forget(name, stems, options.dtype)} values of {name} are forgotten")
    return 0


def _device(name: str | None) -> Device:
    """A device by its number or by its short name."""
    return devices.known(name) if name and not name.isdecimal() else devices.current(int(name or 0))


def _name(name: str | None) -> str:
    """The driver's name of a device: given as such, or by what `_device` takes."""
    return name if name and not name.isdecimal() and name not in devices.names() else _device(name).name


_ACTIONS = {"list": _list, "where": _where, "export": _export, "import": _import, "forget": _forget}
