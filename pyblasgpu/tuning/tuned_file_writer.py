"""Write files of tuned values: the user's own, and any other."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from ..database import Document, dumps, read
from ..dispatch.tuned_files import user_file

__all__ = ["edit", "merge", "save"]


def merge(document: Document) -> Path:
    """Put `found` into the user's file, over what is there for the same keys; returns the file."""
    with edit(document.device) as present:
        present.entries.update(document.entries)
        present.trsm_rates.update(document.trsm_rates)
        present.rasters.update(document.rasters)
    return user_file(document.device)


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
