"""The on-disk store of cubins: a private folder, atomic writes, checked on reading, nothing unpickled."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

from ..errors import lacking

__all__ = ["CubinStore", "NoFolder", "cache_folder", "data_folder", "home_folder", "tell_once"]

_log = logging.getLogger("pyblasgpu")
_MAX_BYTES = 1 << 30


class NoFolder(OSError):
    """Nothing says where this user's files belong."""


def cache_folder() -> Path:
    """Where cubins are kept: ``$PYBLASGPU_HOME/cache``, else the user's cache folder.

    Raises
    ------
    NoFolder
        Where there is neither; see `home_folder`.
    """
    return home_folder("cache")[0]


def data_folder() -> Path:
    """Where tuned values are kept: ``$PYBLASGPU_HOME/data``, else the user's data folder; else `NoFolder`."""
    return home_folder("data")[0]


def home_folder(kind: str) -> tuple[Path, str]:
    """The folder of the 'cache' or of the 'data', and what it is from, in words.

    Raises
    ------
    NoFolder
        Where ``PYBLASGPU_HOME`` names no folder, or is not set and the user has no home folder.
    """
    given = os.environ.get("PYBLASGPU_HOME")
    if given:
        home = os.path.expanduser(given)
        if home.startswith("~"):
            raise NoFolder(f"PYBLASGPU_HOME={given} names the home folder of a user who has none")
        return Path(home).absolute() / kind, "PYBLASGPU_HOME"
    find = platformdirs.user_cache_dir if kind == "cache" else platformdirs.user_data_dir
    try:
        folder, variable = Path(find("pyblasgpu")), f"XDG_{kind.upper()}_HOME"
    except RuntimeError:  # of a user without a home folder; older releases give a path that begins with ~
        folder = Path()
    if not folder.is_absolute():
        raise NoFolder("HOME is not set to a folder, nor has this user one; PYBLASGPU_HOME can name one")
    chosen = os.environ.get(variable, "").strip()
    return folder, variable if chosen and folder.is_relative_to(chosen) else "the user's home"


@cache
def tell_once(problem: str) -> None:
    """Log that nothing is kept, and why: once a process."""
    _log.warning("nothing is kept on disk, neither kernels nor tuned values: %s", problem)


class CubinStore:
    """Records of JSON facts and machine code under hexadecimal keys.

    Safe for any number of threads and processes: cuda.core's file store replaces files atomically, and
    every record carries the digest of its content, so that a damaged one reads as absent. A folder that
    is not this user's alone is not used.
    """

    def __init__(self, folder: Path):
        from cuda.core.utils import FileStreamProgramCache

        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _require_private(folder)
        self._files = FileStreamProgramCache(folder, max_size_bytes=_MAX_BYTES)

    @classmethod
    def default(cls) -> CubinStore | _NoStore:
        """The store of this user; where its folder cannot be used, one that keeps nothing."""
        try:
            folder = cache_folder() / "cubin"
        except NoFolder as problem:
            tell_once(str(problem))
            return _NO_STORE
        store = _stores.get(folder)
        if store is None:
            try:
                store = cls(folder)
            except (OSError, ImportError) as problem:
                reason = lacking(problem, "cu13", "cu12") if isinstance(problem, ImportError) else problem
                _log.warning("kernels are not kept on disk: %s", reason)
                store = _NO_STORE
            _stores[folder] = store
        return store

    def get(self, key: str) -> tuple[dict[str, Any], bytes] | None:
        """The facts and the code kept under `key`."""
        try:
            record = self._files.get(key)
        except OSError:
            return None
        if record is None:
            return None
        digest, _, content = bytes(record).partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != digest:
            _log.warning("a damaged record in %s is ignored", self.folder)
            return None
        header, _, code = content.partition(b"\n")
        return json.loads(header), code

    def put(self, key: str, facts: dict[str, Any], code: bytes) -> None:
        """Keep `facts` and `code` under `key`; failing to is no error."""
        content = json.dumps(facts).encode() + b"\n" + code
        try:
            self._files[key] = hashlib.sha256(content).hexdigest().encode() + b"\n" + content
        except OSError as problem:
            _log.warning("a kernel is not kept on disk: %s", problem)


class _NoStore:
    folder = None

    def get(self, key):
        return None

    def put(self, key, facts, code):
        pass


_NO_STORE = _NoStore()
_stores: dict[Path, CubinStore | _NoStore] = {}


def _require_private(folder: Path) -> None:
    facts = folder.stat()
    if hasattr(os, "getuid") and facts.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        folder.chmod(0o700)
