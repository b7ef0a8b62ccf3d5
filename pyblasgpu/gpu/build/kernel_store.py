"""The on-disk store of cubins: a private folder, atomic writes, checked on reading, nothing unpickled."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..user_folders import TEMPORARY, NoFolder, cache_folder, replace_file, tell_once

__all__ = ["CubinStore"]

_log = logging.getLogger("pyblasgpu")
MAX_BYTES = 1 << 30  # of a store
_KEPT = 0.8  # of them stay when the oldest records go
_PUTS = 256  # from one look at the size to the next
_ABANDONED = 3600.0  # seconds after which nobody writes a temporary file any more


class CubinStore:
    """Records of JSON facts and machine code under hexadecimal keys, a file each.

    Safe for any number of threads and processes: files are replaced atomically. Every record carries the
    digest of its content, so that a damaged one reads as absent. A folder that is not this user's alone is
    not used. What was used longest ago goes when there is too much.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES):
        self.folder = folder
        self._max_bytes, self._puts, self._complained = max_bytes, 0, False
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _require_private(folder)

    @classmethod
    def default(cls, name: str = "cubin") -> CubinStore | _NoStore:
        """The store of this user under `name`; where its folder cannot be used, one that keeps nothing."""
        try:
            folder = cache_folder() / name
        except NoFolder as problem:
            tell_once(str(problem))
            return _NO_STORE
        store = open_stores.get(folder)
        if store is None:
            try:
                store = cls(folder)
            except OSError as problem:
                _log.warning("kernels are not kept on disk: %s", problem)
                store = _NO_STORE
            open_stores[folder] = store
        return store

    def get(self, key: str) -> tuple[dict[str, Any], bytes] | None:
        """The facts and the code kept under `key`."""
        path = self._path(key)
        try:
            record = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # of a folder that can only be read
            os.utime(path)
        digest, _, content = record.partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != digest:
            _log.warning("a damaged record in %s is ignored", self.folder)
            return None
        header, _, code = content.partition(b"\n")
        return json.loads(header), code

    def put(self, key: str, facts: dict[str, Any], code: bytes) -> None:
        """Keep `facts` and `code` under `key`; failing to is no error."""
        content = json.dumps(facts).encode() + b"\n" + code
        record = [hashlib.sha256(content).hexdigest().encode(), b"\n", content]
        try:
            replace_file(self._path(key), record)
            if self._puts % _PUTS == 0:
                self._trim()
        except OSError as problem:
            if not self._complained:
                _log.warning("kernels are not kept on disk: %s", problem)
            self._complained = True
        self._puts += 1

    def is_empty(self) -> bool:
        """Whether it holds no record."""
        return next(self._files(), None) is None

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def _files(self) -> Iterator[Path]:
        for parent, _, names in os.walk(self.folder):
            yield from (Path(parent) / name for name in names)

    def _trim(self) -> None:
        """Remove what was used longest ago where there is too much, and what was never written to its end."""
        cubins, now = [], time.time()
        for path in self._files():
            with suppress(OSError):  # another process removed it
                facts = path.stat()
                if path.name.startswith(TEMPORARY) and now - facts.st_mtime > _ABANDONED:
                    path.unlink()
                else:
                    cubins.append((facts.st_mtime, facts.st_size, path))
        total = sum(size for _, size, _ in cubins)
        if total <= self._max_bytes:
            return
        for _, size, path in sorted(cubins):
            with suppress(OSError):
                path.unlink()
                total -= size
            if total <= _KEPT * self._max_bytes:
                return


class _NoStore:
    folder = None

    def get(self, key):
        return None

    def put(self, key, facts, code):
        pass

    def is_empty(self):
        return True


_NO_STORE = _NoStore()
#: Stores of this process, by folder.
open_stores: dict[Path, CubinStore | _NoStore] = {}


def _require_private(folder: Path) -> None:
    facts = folder.stat()
    if hasattr(os, "getuid") and facts.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        folder.chmod(0o700)
