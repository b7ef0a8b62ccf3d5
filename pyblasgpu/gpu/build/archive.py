"""Archives of kernels built ahead: a file an architecture, checked on reading, nothing unpickled.

The first line is a header in JSON, the second the index in JSON, and after them the machine code, compressed
by zlib. The header holds digests of the kernels' source text and of the index, the toolchain and the size of
the file; the index holds a digest of each kernel's machine code.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

from ...errors import ArchiveWarning
from ...package_files import folder_of, package_file
from ..user_folders import NoFolder, data_folder, replace_file

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = [
    "Archive",
    "ArchiveError",
    "Record",
    "archive_name",
    "archives",
    "forget",
    "user_folder",
    "write",
]

FORMAT = 1
SUFFIX = ".kernels"
SWITCH = "PYBLASGPU_ARCHIVES"  # in the environment: 0 for none
_LONGEST_HEADER = 1 << 16
_LEVEL = 6  # of zlib: 9 takes eight times as long for 2 % less


class ArchiveError(ValueError):
    """A file is no archive of use here; the message says why, and goes on a line with its path."""


class Record(NamedTuple):
    """A kernel in an archive: what is known of it, readable, and its machine code."""

    facts: Mapping[str, Any]
    cubin: bytes


class Archive:
    """The kernels of an architecture in a file, read one by one.

    Parameters
    ----------
    path : Path or file in a zip
    architecture : str
        The linker's name, 'sm_90a'.
    source : str or None
        Digest of the text that the kernels are made of; None takes an archive of any text.

    Attributes
    ----------
    toolchain : dict
        Versions of what the kernels were made with.
    used : set of str
        Keys of the kernels that this process has taken.
    refused : bool
        Whether no more are taken from it.

    Raises
    ------
    ArchiveError
        Where the file is damaged, newer than this version reads, or of another architecture or source.
    OSError
        Where it cannot be read.
    """

    def __init__(self, path: Traversable, architecture: str, source: str | None):
        self.path = path
        self.used: set[str] = set()
        self.refused = False
        self._content = _OnDisk(path) if isinstance(path, Path) else _InMemory(path.read_bytes())
        try:
            header = self._header()
            _require_ours(header, architecture, source)
            self._start, self._index = self._read_index(header)
            self.toolchain: dict[str, str] = dict(header["toolchain"])
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, ArchiveError):
                raise
            raise ArchiveError("is damaged") from problem

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: str) -> bool:
        return key in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def get(self, key: str) -> Record | None:
        """The kernel under `key`; None where there is none, or, with a warning, where it is damaged."""
        facts = self._index.get(key)
        if facts is None or self.refused:
            return None
        try:
            offset, length = facts["at"]
            cubin = zlib.decompress(self._read(self._start + offset, length))
            if hashlib.sha256(cubin).hexdigest() != facts["sha256"]:
                raise ArchiveError("is damaged")
        except (OSError, KeyError, TypeError, ValueError, zlib.error):
            self.refuse("is damaged")
            return None
        self.used.add(key)
        return Record(facts, cubin)

    def refuse(self, problem: str) -> None:
        """Take no more kernels from it, and warn why."""
        self.refused = True
        _warn(self.path, problem)

    def _header(self) -> dict[str, Any]:
        line, newline, _ = self._content.read(0, _LONGEST_HEADER).partition(b"\n")
        header = json.loads(line) if newline else None
        if not isinstance(header, dict) or "pyblasgpu kernels" not in header:
            raise ArchiveError("is no archive of kernels, or a damaged one")
        if header["pyblasgpu kernels"] > FORMAT:
            raise ArchiveError("is of a newer version of pyblasgpu")
        if header["bytes"] != self._content.size - len(line) - 1:
            raise ArchiveError("is damaged: parts of it are missing")
        header["start"] = len(line) + 1
        return header

    def _read_index(self, header: dict[str, Any]) -> tuple[int, dict[str, dict[str, Any]]]:
        start, length = header["start"], header["index"]["bytes"]
        text = self._read(start, length)
        if hashlib.sha256(text).hexdigest() != header["index"]["sha256"]:
            raise ArchiveError("is damaged")
        return start + length, json.loads(text)

    def _read(self, offset: int, length: int) -> bytes:
        content = self._content.read(offset, length)
        if len(content) != length:
            raise ArchiveError("is damaged: parts of it are missing")
        return content


class _OnDisk:
    """A file that is read part by part; not by mmap, which ends the process where a file is cut short."""

    def __init__(self, path: Path):
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        finalize(self, os.close, self._file)

    @property
    def size(self) -> int:
        return os.fstat(self._file).st_size

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._file, length, offset)


class _InMemory:
    """A file of a zip, which is unpacked as a whole."""

    def __init__(self, content: bytes):
        self._content, self.size = content, len(content)

    def read(self, offset: int, length: int) -> bytes:
        return self._content[offset : offset + length]


def _require_ours(header: Mapping[str, Any], architecture: str, source: str | None) -> None:
    if header["architecture"] != architecture:
        raise ArchiveError(f"is of {header['architecture']}, not of {architecture}")
    if source is not None and header["source"] != source:
        raise ArchiveError("is of another version of pyblasgpu")


def write(
    path: Path,
    architecture: str,
    source: str,
    toolchain: Mapping[str, str],
    records: Iterable[tuple[str, Record]],
) -> None:
    """Write an archive; a file of this name is replaced at once, when all is written.

    Raises
    ------
    OSError
        Where it cannot be written; what was there before stays.
    """
    index: dict[str, dict[str, Any]] = {}
    blobs = []
    offset = 0
    for key, record in sorted(records, key=lambda item: item[0]):
        blob = zlib.compress(record.cubin, _LEVEL)
        digest = hashlib.sha256(record.cubin).hexdigest()
        index[key] = {**record.facts, "at": [offset, len(blob)], "sha256": digest}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(index).encode() + b"\n"
    header = {
        "pyblasgpu kernels": FORMAT,
        "architecture": architecture,
        "source": source,
        "toolchain": dict(toolchain),
        "kernels": len(index),
        "index": {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()},
        "bytes": len(text) + offset,
    }
    replace_file(path, [json.dumps(header).encode() + b"\n", text, *blobs], mode=0o644)


# --------------------------------------------------------------------------------------- where they are


def archive_name(architecture: str, source: str) -> str:
    """The name of an archive's file; those of several versions of this package coexist."""
    return f"{architecture}-{source[:12]}{SUFFIX}"


def user_folder() -> Path:
    """Return the folder of ``pyblasgpu build``'s archives; raise `NoFolder` like `data_folder`."""
    return data_folder() / "kernels"


@lru_cache
def archives(architecture: str, source: str) -> tuple[Archive, ...]:
    """The archives that serve an architecture, first the one that wins: the user's, that of an installed
    package, and the one in this package. An `ArchiveWarning` says, once, what cannot be used, and what to do.
    None where the environment switches them off.
    """
    fitting: list[Archive] = []
    foreign: list[Traversable] = []
    if os.environ.get(SWITCH) == "0":
        return ()
    for folder in _folders(architecture):
        path = folder.joinpath(archive_name(architecture, source))
        try:
            fitting.append(Archive(path, architecture, source))
        except FileNotFoundError:
            foreign += _of_architecture(folder, architecture)[:1]
        except (OSError, ArchiveError) as problem:
            _warn(path, str(problem) if isinstance(problem, ArchiveError) else f"cannot be read: {problem}")
    if foreign and not fitting:
        _warn(foreign[0], "is of another version of pyblasgpu")
    return tuple(fitting)


def forget() -> None:
    """Look for archives anew: some were built."""
    archives.cache_clear()


def _folders(architecture: str) -> Iterator[Traversable]:
    with suppress(NoFolder):
        yield user_folder()
    installed = folder_of(f"pyblasgpu_kernels_{architecture.replace('_', '').rstrip('a')}")
    if installed is not None:
        yield installed
    yield package_file("data")


def _of_architecture(folder: Traversable, architecture: str) -> list[Traversable]:
    """The archives of an architecture, of whichever version, in the order of their names."""
    try:
        entries = list(folder.iterdir()) if folder.is_dir() else []
    except OSError:  # of a folder that may not be read
        return []
    found = (each for each in entries if each.name.startswith(f"{architecture}-"))
    return sorted((each for each in found if each.name.endswith(SUFFIX)), key=lambda each: each.name)


def _warn(path: Traversable, problem: str) -> None:
    architecture = path.name.partition("-")[0].rstrip("a")
    advice = (
        f"kernels are compiled when they are needed; `pyblasgpu build --arch {architecture}` makes it anew"
    )
    warnings.warn(f"the archive {path} {problem} and is not used: {advice}", ArchiveWarning, stacklevel=2)
