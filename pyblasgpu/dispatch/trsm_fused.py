"""The Config with which `kernels.gemm.trsm_fused` solves by a triangle: by arithmetic, and what files say.

What is good for a product need not be good here (`model.trsm_fused`). At the points of `TRSM_POINTS` the
likeliest of many Configs (`trsm_fused_candidates`) were timed. Files have the fastest of few, of T column-
and row-major, on either side (`T_LAYOUTS`). The choice is made between these. That of the nearest point is
taken to be a little faster there than what the model has for the best. It is by as much faster than estimated
at extents nearby. Where nothing was tuned, there are few by the model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice, product
from typing import Any

from ..database import FUSED_STEMS, T_LAYOUTS, TRSM_POINTS, nearest_points, t_layout
from ..errors import BackendUnavailable
from ..gpu.device import Device
from ..gpu.workspace import FLAGS
from ..kernels.gemm.fused import FLAG_STRIDE, tile_counts
from ..model.trsm_fused import cycles
from ..types import Dtype, Triangle
from . import overrides, tuned_files
from .overrides import COMPUTED, OVERRIDE, KernelChoice
from .portfolio import Portfolio, fused_trsm
from .product_kinds import higher_occupancy, stems, tile, with_requested_occupancy

__all__ = ["choose", "likeliest", "serving_trsm"]

NEAR = 1.0  # how far away a point may be, as `nearest_points` measures it
MOST_COMPUTED = 2  # Configs by the model, where nothing was tuned
TUNED_SHARE = 0.97  # of the best estimate: a tuned tile precedes those that fit the extents a little better


def choose(
    dtype: Dtype,
    layout: str,
    extents: tuple[int, int, int],
    triangle: Triangle,
    device: Device,
    conj: bool = False,
) -> KernelChoice:
    """The Config for an m-by-n C and a triangle of order k, (m, n, k), as `trmm_fused` names it; of T
    conjugated or not.

    An override by a Config of a GEMM kernel takes precedence.

    Raises
    ------
    BackendUnavailable
        Where no kernel can run on `device`, or all have more strips than there are flags.
    """
    for stem, config in overrides.active():
        if stem in stems(dtype, device) and config.dtype == dtype.letter and config.layout == layout:
            fitting = with_requested_occupancy(config, triangle, device)
            if fitting is not None and _has_flags(fitting, extents, triangle):
                return KernelChoice(fitting, OVERRIDE)
    problem = dtype, layout, extents, triangle, device
    return _fastest(*problem, conj)


@tuned_files.memo(1 << 12)
def _fastest(
    dtype: Dtype,
    layout: str,
    extents: tuple[int, int, int],
    triangle: Triangle,
    device: Device,
    conj: bool,
) -> KernelChoice:
    served = serving_trsm(dtype, t_layout(layout, triangle), device, conj)
    estimates = {
        config: cycles(config, extents, triangle, device)
        for config in served
        if _has_flags(config, extents, triangle)
    }
    if not estimates:
        raise BackendUnavailable(f"no kernel solves {dtype.name} in one launch on {device.name}")
    tuned, share, origin = _tuned(dtype, layout, extents, triangle, device, estimates)
    best = min(estimates, key=lambda config: estimates[config] * (share if config in tuned else 1.0))
    return KernelChoice(best, origin if best in tuned else COMPUTED)


def likeliest(dtype: Dtype, layout: str, order: int, rhs: int, device: Device, count: int) -> list[Any]:
    """The `count` Configs of different tiles that had better be timed for a T of this layout.

    First the one that is chosen, then by their estimates; and those of the first half for more blocks a
    multiprocessor, which the estimate does not distinguish from them.
    """
    product_layout, triangle = T_LAYOUTS[layout]
    key = dtype, product_layout, _extents(order, rhs, triangle), triangle, device
    estimates = _estimates(*key)
    chosen = [choose(*key).config] if estimates else []
    tiles: dict[tuple[Any, ...], Any] = {}
    for config in chosen + sorted(estimates, key=estimates.__getitem__):
        tiles.setdefault((tile(config, triangle), config.min_blocks), config)
    likely = list(tiles.values())[:count]
    variants = [
        each for config in likely[: count // 2] for each in higher_occupancy(config, triangle, device)
    ]
    return list(dict.fromkeys(likely + variants))


@tuned_files.memo(1 << 8)
def serving_trsm(dtype: Dtype, layout: str, device: Device, conj: bool = False) -> tuple[Any, ...]:
    """The Configs that solve by a T of this layout, one of `T_LAYOUTS`; of a conjugated T the first alone.

    They are those of the files, and where these have few points also some by the model.
    """
    product_layout, triangle = T_LAYOUTS[layout]
    rates: dict[Any, dict[str, float]] = {}
    for stem in stems(dtype, device):
        for config, at in fused_trsm(stem, dtype.letter, layout, device).rates.items():
            variant = with_requested_occupancy(config, triangle, device)
            if variant is not None:
                rates.setdefault(variant, {}).update(at)
    points = {point for at in rates.values() for point in at}
    order = [*_ordered(rates)]
    if 2 * len(points) < len(TRSM_POINTS):
        computed = islice(_ordered(_rates_by_model(dtype, product_layout, triangle, device)), MOST_COMPUTED)
        order += [config for config in computed if config not in rates]
    return tuple(order[:1] if conj else order)


def _ordered(rates: dict[Any, dict[str, float]]) -> Iterator[Any]:
    """The Configs most worth having first."""
    return Portfolio(rates).ordered(lambda config: True, lambda point: 1.0)


def _rates_by_model(
    dtype: Dtype, layout: str, triangle: Triangle, device: Device
) -> dict[Any, dict[str, float]]:
    """Return the estimated rates of all candidates at the points."""
    rates: dict[Any, dict[str, float]] = {}
    for point, problem in TRSM_POINTS.items():
        for config, needed in _estimates(
            dtype, layout, _extents(*problem, triangle), triangle, device
        ).items():
            rates.setdefault(config, {})[point] = 1 / needed
    return rates


def _estimates(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: Triangle, device: Device
) -> dict[Any, float]:
    """The Configs that can run, and the cycles that each is taken to need."""
    from .trsm_fused_candidates import candidates  # with search spaces; tuned Configs do without

    return {
        config: uncertainty * cycles(config, extents, triangle, device)
        for config, uncertainty in candidates(dtype, layout, triangle, device).items()
        if _has_flags(config, extents, triangle)
    }


def _tuned(
    dtype: Dtype,
    layout: str,
    extents: tuple[int, int, int],
    triangle: Triangle,
    device: Device,
    served: Collection[Any],
) -> tuple[Collection[Any], float, str]:
    """Return the `served` Configs with the tile of the nearest point's entry, their share of the estimate,
    and its origin.
    """
    m, n, order = extents
    rhs, t_layout_key = (n if triangle.on_left else m), t_layout(layout, triangle)
    for point, stem in product(nearest_points(order, rhs, NEAR), stems(dtype, device)):
        entry = tuned_files.of_class(FUSED_STEMS[stem], dtype.letter, t_layout_key, point, device)
        if entry:
            point_extents = _extents(*TRSM_POINTS[point], triangle)
            same = _same_tile(entry.config, served, triangle)
            if same:
                estimates = {config: cycles(config, point_extents, triangle, device) for config in served}
                best, own = min(estimates.values()), min(estimates[config] for config in same)
                return same, TUNED_SHARE * best / own, f"{entry.origin}, {point}"
    return (), 1.0, COMPUTED


def _extents(order: int, rhs: int, triangle: Triangle) -> tuple[int, int, int]:
    """m, n and k of the product."""
    return (order, rhs, order) if triangle.on_left else (rhs, order, order)


def _same_tile(tuned: Any, known: Collection[Any], triangle: Triangle) -> list[Any]:
    """The tuned Config, if it is `known`, else those of its tile, for as many blocks if there are."""
    if tuned in known:
        return [tuned]
    same = [config for config in known if tile(config, triangle) == tile(tuned, triangle)]
    return [config for config in same if config.min_blocks == tuned.min_blocks] or same


def _has_flags(config: Any, extents: tuple[int, int, int], triangle: Triangle) -> bool:
    """Whether there is a flag for each strip."""
    _, strips = tile_counts(config, triangle, *extents[:2])
    return strips * FLAG_STRIDE <= FLAGS
