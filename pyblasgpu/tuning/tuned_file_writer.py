"""Write files of tuned values: the user's own, and any other."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from ..database import Document, dumps, read
from ..database.policy import with_values
from ..dispatch.tuned_files import user_file

__all__ = ["edit", "edit_file", "merge", "save"]

_Values = TypeVar("_Values", bound=Sized)


def merge(document: Document) -> Path:
    """Put `document` into the user's file, over what is there for the same keys; returns the file."""
    with edit(document.device) as present:
        present.entries.update(document.entries)
        present.trsm_rates.update(document.trsm_rates)
        present.rasters.update(document.rasters)
        present.fixed.update(document.fixed)
        present.products.update(document.products)
        present.policy = with_values(present.policy, document.policy)
    return user_file(document.device)


@contextmanager
def edit(device: str) -> Iterator[Document]:
    """The user's tuned values of a device, to be changed, as of `edit_file`."""
    with edit_file(user_file(device), lambda path: read(path, device), Document(device), dumps) as present:
        yield present


@contextmanager
def edit_file(
    path: Path, read: Callable[[Path], _Values | None], empty: _Values, text: Callable[[_Values], str]
) -> Iterator[_Values]:
    """Give the values in a file, to be changed: written at the end, removed where none is left.

    Several processes may do so at once. A file that cannot be read is kept, as ``….damaged``.

    Parameters
    ----------
    path : Path
    read : callable
        Returns what a file holds, None of one that is absent or damaged.
    empty : sized object
        Its value then.
    text : callable
        Returns the text to be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(path.with_suffix(".lock")):
        present = read(path)
        if present is None:
            if path.exists():
                path.replace(path.with_suffix(".json.damaged"))
            present = empty
        yield present
        if len(present):
            _write(text(present), path)
        else:
            path.unlink(missing_ok=True)


def save(document: Document, path: Path) -> None:
    """Write `document` to `path`, which then holds either the old text or the new one, never a part."""
    _write(dumps(document), path)


def _write(text: str, path: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
