"""The Config of a GEMM on the processor: the user's tuned one, else what the caches and registers give."""

from __future__ import annotations

import json
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..cpu.device import Processor
from ..errors import ConfigError, DatabaseWarning
from ..gpu.user_folders import NoFolder
from ..kernels.cpu.config import CpuGemm
from ..kernels.cpu.space import default
from .overrides import COMPUTED
from .tuned_files import user_file

__all__ = ["choose", "forget", "read", "tuned_file"]

_MAX_BYTES = 1 << 16
_FIELDS = ("BLK_M", "BLK_N", "BLK_K", "THR_M", "THR_N", "VEC", "UNROLL")
_MOST = 1 << 16  # of a parameter


@lru_cache(maxsize=16)
def choose(letter: str, processor: Processor) -> tuple[CpuGemm, str]:
    """The Config of a dtype, and where it comes from."""
    origin, configs = _tuned(processor)
    config = configs.get(letter)
    return (default(letter, processor), COMPUTED) if config is None else (config, origin)


def tuned_file(processor: Processor) -> Path:
    """The user's tuned values of a processor; `NoFolder` where there is no folder for them."""
    return user_file(f"cpu {processor.name}")


@lru_cache(maxsize=4)
def _tuned(processor: Processor) -> tuple[str, dict[str, CpuGemm]]:
    try:
        path = tuned_file(processor)
    except NoFolder:
        return COMPUTED, {}
    return f"tuned here, {path}", read(path, processor)


def forget() -> None:
    """Have the next choice read the file again."""
    _tuned.cache_clear()
    choose.cache_clear()


def read(path: Path, processor: Processor) -> dict[str, CpuGemm]:
    """The Configs of a file, by dtype; none, with a warning, where it cannot be used."""
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError("it is too large")
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("processor") != processor.name:
            raise ValueError("it is of another processor")
        return {letter: _config(letter, values) for letter, values in document["configs"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ConfigError, RecursionError) as problem:
        warnings.warn(f"{path} is passed over: {problem}", DatabaseWarning, stacklevel=3)
        return {}


def _config(letter: Any, values: Any) -> CpuGemm:
    if set(values) != set(_FIELDS) or not all(type(x) is int and 0 < x <= _MOST for x in values.values()):
        raise ValueError(f"{letter}: its parameters are not {', '.join(_FIELDS)} as positive integers")
    return CpuGemm(dtype=letter, **values)
