"""The Config of a kernel of level 2 that is tuned: from a file, or by shape."""

from __future__ import annotations

from typing import Any

from ..database import nearest, size_class
from ..gpu.device import Device
from ..kernels.registry import FAMILIES
from . import tuned_files
from .decisions import COMPUTED, KernelChoice

__all__ = ["REACH", "by_shape", "of_shape", "candidates"]

#: Of the points of the database, the nearest so many: what was tuned farther away tells nothing.
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
