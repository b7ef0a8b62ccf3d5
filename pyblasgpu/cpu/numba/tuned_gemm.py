"""The Config of a GEMM on the processor: the user's tuned one, else what the caches and registers give."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ...dispatch.overrides import COMPUTED
from ...dispatch.tuned_files import user_file
from ...errors import ConfigError, DatabaseWarning
from ...gpu.user_folders import NoFolder
from .config import CpuGemm
from .device import Processor
from .space import default

__all__ = ["TunedProcessor", "choose", "dumps", "forget", "is_named_so", "parse", "read", "tuned_file"]

_PREFIX = "cpu"  # of the names of processors' files

_MAX_BYTES = 1 << 16
_FIELDS = ("BLK_M", "BLK_N", "BLK_K", "THR_M", "THR_N", "VEC", "UNROLL")
_MOST = 1 << 16  # of a parameter


class TunedProcessor(NamedTuple):
    """The tuned Configs of a processor, by dtype."""

    processor: str
    configs: Mapping[str, CpuGemm]


@lru_cache(maxsize=16)
def choose(letter: str, processor: Processor) -> tuple[CpuGemm, str]:
    """Return the Config of a dtype, and its origin."""
    origin, configs = _tuned(processor)
    config = configs.get(letter)
    return (default(letter, processor), COMPUTED) if config is None else (config, origin)


def tuned_file(processor: str) -> Path:
    """The user's tuned values of a processor, by its name; `NoFolder` where there is no folder for them."""
    return user_file(f"{_PREFIX} {processor}")


def is_named_so(path: Path) -> bool:
    """Whether a file is named as those of processors are."""
    return path.name.startswith(f"{_PREFIX}_")


@lru_cache(maxsize=4)
def _tuned(processor: Processor) -> tuple[str, Mapping[str, CpuGemm]]:
    try:
        path = tuned_file(processor.name)
    except NoFolder:
        return COMPUTED, {}
    tuned = read(path, processor.name)
    return f"tuned here, {path}", tuned.configs if tuned else {}


def forget() -> None:
    """Have the next choice read the file again."""
    _tuned.cache_clear()
    choose.cache_clear()


def read(path: Path, processor: str | None = None) -> TunedProcessor | None:
    """Return the values in a file; None where there is none, or, with a warning, where it cannot be used.

    Parameters
    ----------
    path : Path
    processor : str, optional
        The name of the processor that it must be of; by default any.
    """
    try:
        with path.open("rb") as file:
            tuned = parse(file.read(_MAX_BYTES + 1))
        if processor not in (None, tuned.processor):
            raise ValueError("it is of another processor")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        warnings.warn(f"{path} is passed over: {problem}", DatabaseWarning, stacklevel=3)
        return None
    return tuned


def parse(content: bytes) -> TunedProcessor:
    """The tuned values in the text of a file.

    Raises
    ------
    ValueError
        Where it is not as `dumps` writes it.
    """
    if len(content) > _MAX_BYTES:
        raise ValueError("it is too large")
    try:
        document = json.loads(content)
        name, configs = document["processor"], document["configs"]
        if not isinstance(name, str) or not name:
            raise ValueError("its processor is no name")
        return TunedProcessor(name, {letter: _config(letter, values) for letter, values in configs.items()})
    except (KeyError, TypeError, AttributeError, ConfigError, RecursionError) as problem:
        raise ValueError(f"it is no file of a processor: {problem}") from problem


def dumps(tuned: TunedProcessor) -> str:
    """The text of a file."""
    configs = {
        letter: {name: getattr(config, name) for name in _FIELDS} for letter, config in tuned.configs.items()
    }
    return json.dumps({"processor": tuned.processor, "configs": configs}, indent=1) + "\n"


def _config(letter: Any, values: Any) -> CpuGemm:
    if set(values) != set(_FIELDS) or not all(type(x) is int and 0 < x <= _MOST for x in values.values()):
        raise ValueError(f"{letter}: its parameters are not {', '.join(_FIELDS)} as positive integers")
    return CpuGemm(dtype=letter, **values)
