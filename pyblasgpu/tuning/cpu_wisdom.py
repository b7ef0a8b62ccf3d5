"""The user's tuned values of processors, in files of their own: read, merged, exported, forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from ..cpu.numba import tuned_gemm
from ..cpu.numba.config import CpuGemm
from ..cpu.numba.device import current
from ..cpu.numba.tuned_gemm import TunedProcessor, dumps
from ..dispatch.tuned_files import Level, user_files
from .tuned_file_writer import edit_file

__all__ = ["export", "files", "forget", "is_of_processor", "level", "merge", "rows"]


def level() -> Level:
    """The file of the processor here."""
    name = current().name
    path = tuned_gemm.tuned_file(name)
    return Level(path, name, f"tuned here, {path}", is_packaged=False)


def rows(tuned: TunedProcessor) -> Iterator[tuple[str, ...]]:
    """Rows of `wisdom list`: device, family, dtype, no layout, no class, Config, no rate."""
    for letter, config in sorted(tuned.configs.items()):
        values = " ".join(f"{name}={value}" for name, value in asdict(config).items() if name != "dtype")
        yield tuned.processor, config.STEM, letter, "", "", values, ""


def export() -> str:
    """The text of the user's tuned values of the processor here.

    Raises
    ------
    ValueError
        Where there are none.
    """
    name = current().name
    tuned = tuned_gemm.read(tuned_gemm.tuned_file(name), name)
    if tuned is None:
        raise ValueError(f"there are no tuned values of the processor {name!r}")
    return dumps(tuned)


def is_of_processor(content: bytes) -> bool:
    """Whether the text of a file is of a processor, not of a device."""
    try:
        return "processor" in json.loads(content)
    except (ValueError, TypeError, RecursionError):
        return False


def files() -> dict[Path, TunedProcessor]:
    """The readable files of this user, of all processors; others are named by a warning."""
    read = {path: tuned_gemm.read(path) for path in user_files() if tuned_gemm.is_named_so(path)}
    return {path: tuned for path, tuned in read.items() if tuned is not None}


def merge(tuned: TunedProcessor) -> Path:
    """Put Configs into the user's file, over those of the same dtypes; returns the file."""
    with _edit(tuned.processor) as present:
        present.update(tuned.configs)
    return tuned_gemm.tuned_file(tuned.processor)


def forget(processor: str, dtypes: tuple[str, ...] | None = None) -> int:
    """Drop the user's Configs of a processor, all or those of some dtypes; returns how many."""
    with _edit(processor) as present:
        dropped = [letter for letter in present if dtypes is None or letter in dtypes]
        for letter in dropped:
            del present[letter]
    return len(dropped)


@contextmanager
def _edit(processor: str) -> Iterator[dict[str, CpuGemm]]:
    """The Configs of a processor, to be changed, as of `edit_file`."""

    def read(path: Path) -> dict[str, CpuGemm] | None:
        tuned = tuned_gemm.read(path, processor)
        return dict(tuned.configs) if tuned else None

    def text(present: dict[str, CpuGemm]) -> str:
        return dumps(TunedProcessor(processor, present))

    empty: dict[str, CpuGemm] = {}
    with edit_file(tuned_gemm.tuned_file(processor), read, empty, text) as present:
        yield present
    tuned_gemm.forget()
