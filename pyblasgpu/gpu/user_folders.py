"""Folders and files of this package in the user's home."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = [
    "TEMPORARY",
    "NoFolder",
    "cache_folder",
    "data_folder",
    "home_folder",
    "replace_file",
    "tell_once",
]

_log = logging.getLogger("pyblasgpu")
TEMPORARY = ".tmp-"  # how the name of a file begins that is being written


class NoFolder(OSError):
    """Nothing says where this user's files belong."""


def cache_folder() -> Path:
    """Return the folder of cubins: ``$PYBLASGPU_HOME/cache``, else the user's cache folder.

    Raises
    ------
    NoFolder
        Where there is neither; see `home_folder`.
    """
    return home_folder("cache")[0]


def data_folder() -> Path:
    """Return the folder of tuned values: ``$PYBLASGPU_HOME/data``, else the user's data folder; else
    `NoFolder`.
    """
    return home_folder("data")[0]


def home_folder(kind: str) -> tuple[Path, str]:
    """The folder of the 'cache' or of the 'data', and what it is from, in words.

    Raises
    ------
    NoFolder
        Where ``PYBLASGPU_HOME`` names no folder, or is not set and the user has no home folder.
    """
    configured = os.environ.get("PYBLASGPU_HOME")
    if configured:
        home = os.path.expanduser(configured)
        if home.startswith("~"):
            raise NoFolder(f"PYBLASGPU_HOME={configured} names the home folder of a user who has none")
        return Path(home).absolute() / kind, "PYBLASGPU_HOME"
    import platformdirs  # not in a process whose folder is set

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


def replace_file(path: Path, parts: Iterable[bytes], mode: int = 0o600) -> None:
    """Write `parts` as the file `path`; what was there before stays until all is written.

    Raises
    ------
    OSError
        Where it cannot be written; nothing of it is left then.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.parent / f"{TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}"
    try:
        with open(temporary, "xb") as file:
            os.chmod(temporary, mode)
            file.writelines(parts)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
