"""The choice at run time: a Config for (family, dtype, layout, extents, device), and where it comes from.

The levels, first the one that wins: an override, the user's file, the packaged file of the device, that of
its architecture, a computed default. What the wanted size class lacks in all files, its nearest class
gives; what a device cannot run is passed over with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from .. import database
from ..database import FAMILIES, FIXED, Document, nearest, rhs_class, size_class, tuned_at
from ..errors import BackendUnavailable, ConfigError, DatabaseWarning
from ..gpu.device import Device
from ..types import DTYPES, Dtype
from .prune import check_device
from .score import comfortable, score
from .space import space
from .store import user_file

__all__ = ["Choice", "generation", "levels", "override", "reload", "select", "stop_size"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, a Config or a stop size, and from where."""

    config: Any
    origin: str


@dataclass(frozen=True)
class Level:
    """One file of the database: where it stands, and how an origin names it."""

    path: Path
    device: str
    origin: str


_PACKAGED = Path(database.__file__).parent

#: Where nothing was measured.
DEFAULT_STOP = {"few": 256, "some": 256, "many": 256, "most": 128}

_overrides: ContextVar[tuple[tuple[str, Any], ...]] = ContextVar("overrides", default=())
_token: ContextVar[int] = ContextVar("token", default=0)  # a number for the overrides: cheap to compare
_tokens: dict[tuple, int] = {}
_numbers = count(1)
_chosen: dict[tuple, Choice] = {}
_reloads = 0


def select(stem: str, dtype: Dtype, layout: str, extents: tuple[int, ...], device: Device) -> Choice:
    """The Config of family `stem` for a problem, and its origin.

    Parameters
    ----------
    stem : str
        'gemm_tile', 'trsm_leaf', ...
    dtype : Dtype
    layout : str
        As the family's Config tells layouts apart ('nn', 'tn', ...); else ignored.
    extents : tuple of int
        (m, n, k) of a GEMM, (order, right-hand sides) of a leaf; then the batch, if any.
    device : Device

    Raises
    ------
    BackendUnavailable
        Where no Config of the family can run on `device`.
    """
    for name, config in _overrides.get():
        if name == stem and config.dtype == dtype.letter and getattr(config, "layout", layout) == layout:
            return Choice(config, "override")
    if stem in FIXED:
        return Choice(_fixed(stem, dtype.letter), "fixed")
    key = (stem, dtype.letter, layout, size_class(stem, extents), device.name, device.ordinal)
    choice = _chosen.get(key)
    if choice is None:
        choice = _chosen[key] = _choose(stem, dtype.letter, FAMILIES[stem].layout(layout), key[3], device)
    return choice


def stop_size(routine: str, dtype: Dtype, n: int, rhs: int, device: Device) -> Choice:
    """The order at which the recursion of 'trmm' or 'trsm' ends in a leaf, and its origin.

    Parameters
    ----------
    routine : str
    dtype : Dtype
    n, rhs : int
        Order of the triangle, right-hand sides.
    device : Device
    """
    for name, size in _overrides.get():
        if name == routine:
            return Choice(size, "override")
    key = (routine, dtype.letter, rhs_class(rhs), device.name, device.ordinal)
    choice = _chosen.get(key)
    if choice is None:
        choice = _chosen[key] = _choose_stop(routine, dtype.letter, key[2], device)
    return choice


@contextmanager
def override(name: str, value: Any) -> Iterator[None]:
    """Within the block, and in this thread or task, prefer `value`.

    Parameters
    ----------
    name : str
        A kernel family, for a Config of it, which then serves its own dtype and layout; or 'trmm' or
        'trsm', for a stop size.
    value : Config or int
    """
    active = ((name, value), *_overrides.get())
    before = _overrides.set(active)
    before_token = _token.set(_tokens.setdefault(active, next(_numbers)))
    try:
        yield
    finally:
        _overrides.reset(before)
        _token.reset(before_token)


def generation() -> tuple[int, int]:
    """A value that changes whenever `select` and `stop_size` might answer differently than before."""
    return _reloads, _token.get()


def reload() -> None:
    """Forget the files of tuned values and every choice made from them."""
    global _reloads
    _documents.cache_clear()
    _chosen.clear()
    _reloads += 1


def levels(device: Device) -> tuple[Level, ...]:
    """The files that hold values for `device`, first the one that wins; they need not exist."""
    own = user_file(device.name)
    return (
        Level(own, device.name, f"tuned here, {own}"),
        Level(_PACKAGED / own.name, device.name, f"packaged for {device.name}"),
        Level(_PACKAGED / f"{device.arch}.json", device.arch, f"packaged for {device.arch}"),
    )


@lru_cache
def _documents(device: Device) -> tuple[tuple[str, Document], ...]:
    found = ((level.origin, database.read(level.path, level.device)) for level in levels(device))
    return tuple((origin, document) for origin, document in found if document is not None)


def _choose(stem: str, dtype: str, layout: str, size: str, device: Device) -> Choice:
    for candidate in nearest(stem, size):
        for origin, document in _documents(device):
            entry = document.entries.get((stem, dtype, layout, candidate))
            if entry is None:
                continue
            try:
                config = FAMILIES[stem].config(dtype, layout, entry.parameters)
                check_device(config, device)
            except ConfigError as broken:
                place = f"{stem} {dtype} {layout} {candidate}"
                warnings.warn(f"{origin}: {place} is passed over: {broken}", DatabaseWarning, stacklevel=4)
                continue
            stands_in = "" if candidate == size else f", class {candidate}"
            return Choice(config, origin + stands_in)
    return Choice(_computed(stem, dtype, layout, size, device), "computed")


def _computed(stem: str, dtype: str, layout: str, size: str, device: Device) -> Any:
    """The best by `score` of the quick space that `device` can run, and that should not spill."""
    family, extents = FAMILIES[stem], tuned_at(stem, size)[-1]
    best, best_points = None, (False, -1.0)
    chosen: list[dict] = [{}]
    for axis in space(stem, DTYPES[dtype], layout, device, "quick"):
        chosen = [{**outer, **inner} for outer in chosen for inner in axis(outer)]
    for parameters in chosen:
        try:
            config = family.config(dtype, layout, parameters)
            check_device(config, device)
        except ConfigError:
            continue
        points = comfortable(config, device), score(stem, config, extents, device)
        if points > best_points:
            best, best_points = config, points
    if best is None:
        raise BackendUnavailable(f"{stem}: no Config can run on {device.name} ({device.arch})")
    return best


def _choose_stop(routine: str, dtype: str, size: str, device: Device) -> Choice:
    for candidate in nearest(routine, size):
        for origin, document in _documents(device):
            stop = document.stop_sizes.get((routine, dtype, candidate))
            if stop is not None:
                return Choice(stop, origin if candidate == size else f"{origin}, class {candidate}")
    return Choice(DEFAULT_STOP[size], "computed")


@lru_cache
def _fixed(stem: str, dtype: str) -> Any:
    return FIXED[stem].config(dtype, "", {})
