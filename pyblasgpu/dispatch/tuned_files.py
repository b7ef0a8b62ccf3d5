"""The files of tuned values, one over the other: the user's, the packaged one of the device, that of its
architecture.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, cast

from .. import database
from ..database import FIXED, TUNED, Document, Entry, Family, sizes_of
from ..database.policy import REFERENCE, Policy, computed, merged, reference
from ..errors import ConfigError, DatabaseWarning, require
from ..gpu.device import Device, here, known
from ..gpu.garbage import uncollected
from ..gpu.user_folders import NoFolder, data_folder, tell_once
from ..model.occupancy import check_device
from ..package_files import package_file

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = [
    "PACKAGED",
    "Filed",
    "Level",
    "all_of_class",
    "common_host_order",
    "documents",
    "forget",
    "memo",
    "policy_changes",
    "policy_of",
    "policy_origin",
    "rates_of",
    "recorded",
    "reference_policy",
    "file_name",
    "fixed_of",
    "levels",
    "of_class",
    "of_classes",
    "current_configs",
    "slug",
    "unusable",
    "user_file",
    "user_files",
]

PACKAGED = package_file("database")
TUNED_HERE = "tuned here, "  # begins the origin of the user's file

_P = ParamSpec("_P")
_R = TypeVar("_R")
_memos: list[Callable[[], None]] = []


def memo(maxsize: int) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that keeps results, as `lru_cache` does, until `forget` is called."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        cached = lru_cache(maxsize)(function)
        _memos.append(cached.cache_clear)
        return cast(Callable[_P, _R], cached)

    return decorate


def forget() -> None:
    """Read the files anew, and forget all that was made of them."""
    for clear in _memos:
        clear()


@dataclass(frozen=True)
class Level:
    """One file of the database.

    Attributes
    ----------
    path : Path or file in a zip
    device : str
        The device or architecture whose values it holds.
    origin : str
        Its name in an origin.
    is_packaged : bool
        Whether it is a file of this package.
    """

    path: Traversable
    device: str
    origin: str
    is_packaged: bool = True

    @property
    def exists(self) -> bool:
        """Whether the file is there and can be seen."""
        try:
            return self.path.is_file()
        except OSError:
            return False


class Filed(NamedTuple):
    """An entry of the files for a class; a rate of 0 is unknown."""

    tflops: float
    config: Any
    origin: str
    elsewhere: Mapping[str, float]


def of_class(stem: str, dtype: str, layout: str, size: str, device: Device) -> Filed | None:
    """The first entry that is of use, with what others say of the same Config elsewhere; None: no such."""
    return next(all_of_class(stem, dtype, layout, size, device), None)


@memo(1 << 10)
def of_classes(stem: str, dtype: str, layout: str, device: Device) -> Mapping[str, Filed]:
    """`of_class` of all size classes that have one, those of batches too."""
    filed = ((size, of_class(stem, dtype, layout, size, device)) for size in sizes_of(stem))
    return {size: entry for size, entry in filed if entry}


def all_of_class(stem: str, dtype: str, layout: str, size: str, device: Device) -> Iterator[Filed]:
    """All entries that are of use, first the one that wins."""
    layout, complete = TUNED[stem].layout(layout), TUNED[stem].complete
    entries = list(_entries((stem, dtype, layout, size), device))
    for origin, entry in entries:
        where = f"{origin}: {stem} {dtype} {layout} {size}"
        config = _usable(TUNED[stem], dtype, layout, entry.parameters, device, where)
        if config is not None:
            rates, ours = dict[str, float](), complete(entry.parameters)
            for _, other in reversed(entries):
                rates |= other.elsewhere if complete(other.parameters) == ours else {}
            yield Filed(entry.tflops or 0.0, config, origin, rates)


def fixed_of(stem: str, dtype: str, device: Device) -> Filed | None:
    """The first entry for a family without a search space that is of use; None: no file has one."""
    for origin, document in documents(device):
        parameters = document.fixed.get((stem, dtype))
        if parameters is not None:
            where = f"{origin}: {stem} {dtype}"
            config = _usable(FIXED[stem], dtype, "", parameters, device, where, _check_threads)
            if config is not None:
                return Filed(0.0, config, origin, {})
    return None


def _check_threads(config: Any, device: Device) -> None:
    """Check a Config that states no registers, and that fits its shared memory to the device by itself."""
    most = device.max_threads_per_block
    require(config.threads <= most, "device_threads", f"threads <= {most}", threads=config.threads)


def levels(device: Device) -> tuple[Level, ...]:
    """The files that hold values for `device`, first the one that wins; they need not exist.

    Where there is no folder for the user's own, as `gpu.user_folders.data_folder` says, the packaged ones
    alone.
    """
    packaged = (
        Level(PACKAGED / file_name(device.name), device.name, f"packaged for {device.name}"),
        Level(PACKAGED / f"{device.arch}.json", device.arch, f"packaged for {device.arch}"),
    )
    try:
        own = user_file(device.name)
    except NoFolder as problem:
        tell_once(str(problem))
        return packaged
    return (Level(own, device.name, f"{TUNED_HERE}{own}", is_packaged=False), *packaged)


@memo(1 << 7)
@uncollected()
def documents(device: Device) -> tuple[tuple[str, Document], ...]:
    read = ((level.origin, _read(level)) for level in levels(device))
    return tuple((origin, document) for origin, document in read if document is not None)


def policy_of(device: Device) -> Policy:
    """The values by which dispatch decides on a device: of the files, else computed.

    Within `recorded` it is noted which of them are read.
    """
    names, policy = _read_names.get(), rates_of(device)
    return policy if names is None else cast(Policy, _Recorded(policy, names))


_read_names: ContextVar[dict[str, None] | None] = ContextVar("read_names", default=None)


@contextmanager
def recorded() -> Iterator[dict[str, None]]:
    """Yield the names of the values that are read in the block, in this thread or task, as they are read."""
    names: dict[str, None] = {}
    before = _read_names.set(names)
    try:
        yield names
    finally:
        _read_names.reset(before)


class _Recorded:
    """A policy that notes which of its values are read."""

    def __init__(self, policy: Policy, names: dict[str, None]):
        self._policy, self._names = policy, names

    def __getattr__(self, name: str) -> Any:
        self._names[name] = None
        return getattr(self._policy, name)


@memo(1 << 7)
def rates_of(device: Device) -> Policy:
    """The values of `policy_of` for estimates of times, which may be kept; none is noted."""
    policy = computed(device)
    for _, document in reversed(documents(device)):
        policy = merged(policy, document.policy)
    return _changed(policy)


@memo(1 << 3)
def common_host_order(letter: str) -> float | None:
    """Return the order from which on host matrices go to any device; None where they differ, or without."""
    orders = {rates_of(device).host_min_order[letter] for device in here()}
    return orders.pop() if len(orders) == 1 else None


def reference_policy() -> Policy:
    """The values where a call runs on no device: those of the reference."""
    return _changed(reference())


#: Values that tests and benchmarks put in place (`testing.policies`).
policy_changes: list[dict[str, Any]] = []


def _changed(policy: Policy) -> Policy:
    for values in policy_changes:
        policy = replace(policy, **values)
    return policy


def policy_origin(name: str, device: Device) -> str:
    """Return the origin of a policy value: a file, or the device that it is computed from.

    The user's file has what `pyblasgpu tune` measured here.
    """
    for origin, document in documents(device):
        if name in document.policy:
            return origin.replace(TUNED_HERE, "measured here, ", 1)
    measured = known(REFERENCE)
    if device.name == measured.name:
        return f"packaged for {measured.name}"
    return f"computed from {measured.name}'s"


def _read(level: Level) -> Document | None:
    read = database.read_packaged if level.is_packaged else database.read
    return read(level.path, level.device)


def current_configs(stem: str, dtype: str, layout: str, device: Device) -> dict[str, Any]:
    """The Configs that the files name, by size class, those of batches too."""
    return {size: entry.config for size, entry in of_classes(stem, dtype, layout, device).items()}


def unusable(document: Document, device: Device | None) -> list[str]:
    """Return the entries of `document` that are skipped, and why: a rule is broken, or `device` cannot run
    them.
    """
    problems = []
    for key, entry in document.entries.items():
        stem, dtype, layout, _ = key
        try:
            config = TUNED[stem].config(dtype, layout, entry.parameters)
            if device is not None:
                check_device(config, device)
        except ConfigError as broken:
            problems.append(f"{' '.join(key)}: {broken}")
    return problems


def _entries(key: tuple[str, str, str, str], device: Device) -> Iterator[tuple[str, Entry]]:
    """Yield the files' entries for `key`, the one that takes precedence first."""
    for origin, document in documents(device):
        entry = document.entries.get(key)
        if entry is not None:
            yield origin, entry


def _usable(
    family: Family,
    dtype: str,
    layout: str,
    parameters: Mapping[str, int],
    device: Device,
    where: str,
    check: Callable[[Any, Device], None] = check_device,
) -> Any:
    """The Config of an entry; None, with a warning, where `device` cannot run it."""
    config = _checked(family, dtype, layout, tuple(parameters.items()), device, check)
    if isinstance(config, ConfigError):
        warnings.warn(f"{where} is passed over: {config}", DatabaseWarning, stacklevel=5)
        return None
    return config


@lru_cache(maxsize=1 << 10)
def _checked(
    family: Family,
    dtype: str,
    layout: str,
    parameters: tuple[tuple[str, int], ...],
    device: Device,
    check: Callable[[Any, Device], None],
) -> Any:
    """The Config of these parameters, which several classes may have, or the rule that they break."""
    try:
        config = family.config(dtype, layout, dict(parameters))
        check(config, device)
    except ConfigError as broken:
        return broken
    return config


def slug(device: str) -> str:
    """The stem of a device's file names: 'NVIDIA H200' gives 'nvidia_h200'."""
    return re.sub(r"[^a-z0-9]+", "_", device.lower()).strip("_") or "device"


def file_name(device: str) -> str:
    """The name of a file of tuned values of `device`."""
    return f"{slug(device)}.json"


def user_file(device: str) -> Path:
    """The user's tuned values of `device`; `NoFolder` as of `data_folder`."""
    return data_folder() / "tuned" / file_name(device)


def user_files() -> list[Path]:
    """The files of the user's tuned values, of devices and of processors; none where there is no folder.

    A `DatabaseWarning` says where the folder cannot be read.
    """
    try:
        folder = data_folder() / "tuned"
    except NoFolder as problem:
        tell_once(str(problem))
        return []
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as problem:
        warnings.warn(f"tuned values are set aside: {problem}", DatabaseWarning, stacklevel=1)
        return []
    return [folder / name for name in names if name.endswith(".json")]
