"""The Config of a size class, or of the nearest that has one: from a file, or computed; stop sizes too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from ..database import FAMILIES, nearest, size_class, tuned_at
from ..errors import BackendUnavailable, ConfigError
from ..gpu.device import Device
from ..kernels.registry import family_of
from ..kernels.space import quick_points
from ..model.occupancy import check_device, comfortable
from ..model.score import score
from ..types import DTYPES
from . import tuned_files
from .variants import three_m_twin

__all__ = [
    "COMPUTED", "DEFAULT_STOP", "Choice", "choose_method", "choose_stop", "computed", "fixed", "of_class",
    "runs",
]  # fmt: skip

COMPUTED = "computed"  # the origin of what no file gave

#: Where nothing was measured.
DEFAULT_STOP = {"few": 256, "some": 256, "many": 256, "most": 128}


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, a Config, a stop size or a method, and from where; of a product, also the chunks of
    its k, or that it is `STREAMED`, and which of A and B are copied first, to lie as the Config has it.
    """

    config: Any
    origin: str
    splits: int = 1
    copied: tuple[bool, bool] = (False, False)


def runs(stem: str, device: Device) -> bool:
    """Whether `device` is made for the family; that it can run a Config at all is seen with the Config."""
    return family_of(stem).runs_on(device)


def of_class(
    stems: tuple[str, ...], dtype: str, layout: str, extents: tuple[int, ...], device: Device
) -> Choice:
    """The Config of the size class, or of the nearest that has one; of several families the one that was
    fastest where the class is tuned.
    """
    size = size_class(stems[0], extents)
    for candidate in nearest(stems[0], size):
        filed = [
            found for stem in stems if (found := tuned_files.of_class(stem, dtype, layout, candidate, device))
        ]
        if filed:
            best = max(filed, key=itemgetter(0))
            config, origin = best.config, best.origin
            return Choice(config, origin if candidate == size else f"{origin}, class {candidate}")
    stem = next((stem for stem in stems if runs(stem, device)), stems[0])
    return Choice(computed(stem, dtype, FAMILIES[stem].layout(layout), size, device), COMPUTED)


@lru_cache(maxsize=1 << 10)
def computed(stem: str, dtype: str, layout: str, size: str, device: Device, three_m: bool = False) -> Any:
    """The best by `score` of the quick space that `device` can run, and that should not spill."""
    family, extents = FAMILIES[stem], tuned_at(stem, size)[-1]
    best, best_points = None, (False, -1.0)
    for parameters in quick_points(stem, DTYPES[dtype], layout, device):
        try:
            config = family.config(dtype, layout, parameters)
            check_device(config, device)
        except ConfigError:
            continue
        if three_m and (config := three_m_twin(config, device)) is None:
            continue
        points = comfortable(config, device), score(stem, config, extents, device)
        if points > best_points:
            best, best_points = config, points
    if best is None:
        raise _unable(stem, device)
    return best


def _unable(stem: str, device: Device) -> BackendUnavailable:
    return BackendUnavailable(f"{stem}: no Config can run on {device.name} ({device.arch})")


def choose_stop(routine: str, dtype: str, size: str, device: Device) -> Choice:
    for stop, origin, found in _filed("stop_sizes", routine, dtype, nearest(routine, size), device):
        return Choice(stop, origin if found == size else f"{origin}, class {found}")
    return Choice(DEFAULT_STOP[size], COMPUTED)


def choose_method(routine: str, dtype: str, places: Iterable[str], device: Device) -> Choice | None:
    """Which of `ways_of` a routine is the fastest, by the first of `places` that was timed, if any was."""
    for way, origin, place in _filed("methods", routine, dtype, places, device):
        return Choice(way, f"{origin}, {place}")
    return None


def _filed(
    section: str, routine: str, dtype: str, places: Iterable[str], device: Device
) -> Iterator[tuple[Any, str, str]]:
    """(value, origin, place) of a section of the files, those of the first of `places` first."""
    for place in places:
        for origin, document in tuned_files.documents(device):
            value = getattr(document, section).get((routine, dtype, place))
            if value is not None:
                yield value, origin, place


@lru_cache
def fixed(stem: str, dtype: str, device: Device) -> Any:
    """The Config of a family that needs no tuning."""
    if not runs(stem, device):
        raise _unable(stem, device)
    return family_of(stem).fixed_config(dtype)
