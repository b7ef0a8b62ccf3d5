"""The Config of a size class, or of the nearest that has one: from a file, or computed; stop sizes."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from ..database import FAMILIES, nearest, size_class
from ..database.policy import REFERENCE
from ..errors import BackendUnavailable
from ..gpu.device import Device, known
from ..kernels.registry import family_of
from . import overrides, portfolio, tuned_files
from .overrides import COMPUTED, FIXED_ORIGIN, KernelChoice

__all__ = [
    "REACH",
    "by_shape",
    "candidates",
    "computed",
    "fixed",
    "fixed_choice",
    "of_class",
    "of_shape",
    "of_size",
    "runs",
    "stop_size",
]


def runs(stem: str, device: Device) -> bool:
    """Whether `device` is made for the family; that it can run a Config at all is seen with the Config."""
    return family_of(stem).runs_on(device)


def of_class(
    stems: tuple[str, ...], dtype: str, layout: str, extents: tuple[int, ...], device: Device
) -> KernelChoice:
    """The Config of the size class, or of the nearest that has one; of several families the one that was
    fastest where the class is tuned.
    """
    return of_size(stems, dtype, layout, size_class(stems[0], extents), device)


def of_size(stems: tuple[str, ...], dtype: str, layout: str, size: str, device: Device) -> KernelChoice:
    """Return the Config of a size class."""
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


def computed(stem: str, dtype: str, layout: str, size: str, device: Device) -> Any:
    """The best by the model in a class, of the few that serve all classes where nothing is tuned."""
    rates = portfolio.best_by_model(stem, dtype, layout, device).rates
    return max(rates, key=lambda config: rates[config].get(size, 0.0))


def _unable(stem: str, device: Device) -> BackendUnavailable:
    return BackendUnavailable(f"{stem}: no Config can run on {device.name} ({device.arch})")


def stop_size(routine: str, dtype: str, device: Device) -> int:
    """The order at which the recursion of 'trmm' or 'trsm' ends in leaves, unless these are smaller."""
    requested = overrides.get_override(routine)
    if requested is not None:
        return int(requested)
    policy = tuned_files.policy_of(device)
    return int((policy.trmm_stop if routine == "trmm" else policy.trsm_stop)[dtype])


def fixed(stem: str, dtype: str, device: Device) -> Any:
    """The Config of a family that needs no tuning."""
    return fixed_choice(stem, dtype, device).config


@tuned_files.memo(1 << 10)
def fixed_choice(stem: str, dtype: str, device: Device) -> KernelChoice:
    """The Config with its origin: a file of tuned values, the packaged ones, or 'fixed' of its defaults."""
    if not runs(stem, device):
        raise _unable(stem, device)
    filed = tuned_files.fixed_of(stem, dtype, device)
    if filed is not None:
        return KernelChoice(filed.config, filed.origin)
    family = family_of(stem)
    origin = f"packaged for {known(REFERENCE).name}" if dtype in family.packaged else FIXED_ORIGIN
    return KernelChoice(family.fixed_config(dtype), origin)


# -------------------------------------------------------------------------------------------------- level 2


#: Number of nearest points of the database that count: results farther away do not carry over.
REACH = 3


def of_shape(stem: str, dtype: str, layout: str, extents: tuple[int, ...], device: Device) -> KernelChoice:
    """The Config for a matrix of (rows, columns[, batch]): that of the nearest point that has one, else the
    cheapest of those that serve.
    """
    size = size_class(stem, extents)
    for point in nearest(stem, size)[:REACH]:
        filed = tuned_files.of_class(stem, dtype, layout, point, device)
        if filed:
            origin = filed.origin if point == size else f"{filed.origin}, class {point}"
            return KernelChoice(filed.config, origin)
    return KernelChoice(by_shape(stem, dtype, layout, extents, device), COMPUTED)


def by_shape(stem: str, dtype: str, layout: str, extents: tuple[int, ...], device: Device) -> Any:
    """The cheapest of those that serve, by the family's cost."""
    cost = FAMILIES[stem].cost
    assert cost is not None
    configs = candidates(stem, dtype, layout, device)
    return min(configs, key=lambda config: cost(config, extents, device))


def candidates(stem: str, dtype: str, layout: str, device: Device) -> tuple[Any, ...]:
    """The Configs that may serve a matrix: of the kernels that files name, else of
    those that serve where nothing is tuned.
    """
    filed = dict.fromkeys(tuned_files.current_configs(stem, dtype, layout, device).values())
    if not filed:
        return FAMILIES[stem].untuned(dtype, layout)
    return tuple(
        dict.fromkeys(each for config in filed for each in getattr(config, "arrangements", (config,)))
    )
