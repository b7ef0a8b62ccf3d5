"""The Config of a size class, or of the nearest that has one: from a file, or computed; stop sizes."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import Any

from ..database import FAMILIES, nearest, size_class, tuned_at
from ..errors import BackendUnavailable, ConfigError
from ..gpu.device import Device
from ..kernels.registry import family_of
from ..kernels.space import quick_points
from ..model.occupancy import check_device, has_register_slack
from ..model.score import score
from ..types import DTYPES
from . import overrides, tuned_files
from .decisions import COMPUTED, KernelChoice
from .variants import three_m_variant

__all__ = ["STOPS", "computed", "fixed", "of_class", "runs", "stop_size"]

#: Routine -> dtype -> order at which its recursion ends in leaves. Tuned on Hopper it was the same for all
#: numbers of right-hand sides: larger leaves of TRMM cost more than the levels above them, and those of TRSM
#: with complex elements do not fit in shared memory.
STOPS = {
    "trmm": {"s": 64, "d": 64, "c": 64, "z": 64},
    "trsm": {"s": 256, "d": 256, "c": 128, "z": 128},
}


def runs(stem: str, device: Device) -> bool:
    """Whether `device` is made for the family; that it can run a Config at all is seen with the Config."""
    return family_of(stem).runs_on(device)


def of_class(
    stems: tuple[str, ...], dtype: str, layout: str, extents: tuple[int, ...], device: Device
) -> KernelChoice:
    """The Config of the size class, or of the nearest that has one; of several families the one that was
    fastest where the class is tuned.
    """
    size = size_class(stems[0], extents)
    for candidate in nearest(stems[0], size):
        filed = [
            entry for stem in stems if (entry := tuned_files.of_class(stem, dtype, layout, candidate, device))
        ]
        if filed:
            best = max(filed, key=itemgetter(0))
            config, origin = best.config, best.origin
            return KernelChoice(config, origin if candidate == size else f"{origin}, class {candidate}")
    stem = next((stem for stem in stems if runs(stem, device)), stems[0])
    return KernelChoice(computed(stem, dtype, FAMILIES[stem].layout(layout), size, device), COMPUTED)


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
        if three_m and (config := three_m_variant(config, device)) is None:
            continue
        points = has_register_slack(config, device), score(stem, config, extents, device)
        if points > best_points:
            best, best_points = config, points
    if best is None:
        raise _unable(stem, device)
    return best


def _unable(stem: str, device: Device) -> BackendUnavailable:
    return BackendUnavailable(f"{stem}: no Config can run on {device.name} ({device.arch})")


def stop_size(routine: str, dtype: str) -> int:
    """The order at which the recursion of 'trmm' or 'trsm' ends in leaves, unless these are smaller."""
    asked = overrides.get_override(routine)
    return STOPS[routine][dtype] if asked is None else asked


@lru_cache
def fixed(stem: str, dtype: str, device: Device) -> Any:
    """The Config of a family that needs no tuning."""
    if not runs(stem, device):
        raise _unable(stem, device)
    return family_of(stem).fixed_config(dtype)
