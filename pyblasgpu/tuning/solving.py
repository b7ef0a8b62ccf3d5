"""The Config with which `kernels.gemm_solve` solves by a triangle: by arithmetic, and what files say.

What is good for a product need not be good here (`solve_cycles`). So all Configs are asked that were tuned
for products, of other layouts the same tiles, and the short space of the family.

At some places the likeliest were timed, and a file has the fastest (its *solver*), of triangles by columns
and by rows, on either side (`SOLVED`). It is taken to be a little faster there than what the arithmetic has
for the best, and by as much faster than estimated at extents nearby.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from ..database import FAMILIES, METHODS_AT, Solved, nearest_places
from ..errors import BackendUnavailable, ConfigError
from ..gpu.device import Device
from ..gpu.workspace import FLAGS
from ..kernels.gemm_in_place import tile_counts, tile_orders
from ..kernels.gemm_solve import APART
from ..types import Dtype
from . import overlay, overrides
from .by_class import COMPUTED
from .in_place import in_place_twin
from .product_space import deepened, laid_out
from .prune import check_device
from .select import Choice, generation, tuned_configs
from .solve_cycles import cycles, resident
from .space import quick_points

__all__ = ["choose", "likeliest"]

DOUBT = 1.04  # times that of a Config whose products were timed
SPARE = {1: 40, 2: 110}  # registers that a kernel needs beside its estimate, by parts of an element
DEEP = 64  # unknowns of a stripe of `s`, with which no product is tuned; of others it was slower
NEAR = 1.0  # how far away a place may be of which a solver tells, as `nearest_places` measures it
ALIKE = 0.97  # a solver by the best estimate: tiles that fit the extents a little better come after it


def choose(dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: str, device: Device) -> Choice:
    """The Config for an m-by-n C and a triangle of order k, (m, n, k), as `gemm_in_place` names it.

    An override by a Config of a GEMM kernel comes first.

    Raises
    ------
    BackendUnavailable
        Where no kernel can run on `device`, or all have more strips than there are flags.
    """
    for stem, config in overrides.active():
        if stem in _stems(dtype, device) and config.dtype == dtype.letter and config.layout == layout:
            twin = _twin(config, triangle, device)
            if twin is not None and _has_flags(twin, extents, triangle):
                return Choice(twin, "override")
    return _fastest(dtype, layout, extents, triangle, device, generation()[0])


@lru_cache(maxsize=1 << 12)
def _fastest(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: str, device: Device, reloads: int
) -> Choice:
    found = _estimates(dtype, layout, extents, triangle, device)
    if not found:
        raise BackendUnavailable(f"no kernel solves {dtype.name} in one launch on {device.name}")
    alike, share, origin = _as_filed(dtype, layout, extents, triangle, device)
    best = min(found, key=lambda config: found[config] * (share if config in alike else 1.0))
    return Choice(best, origin if best in alike else COMPUTED)


def likeliest(dtype: Dtype, solved: Solved, order: int, others: int, device: Device, count: int) -> list[Any]:
    """The `count` Configs of different tiles that had better be timed: the one that is chosen, then by their
    estimates.
    """
    triangle = solved.triangle
    key = dtype, solved.layout, _extents(order, others, triangle), triangle, device
    found = _estimates(*key)
    chosen = [choose(*key).config] if found else []
    tiles: dict[tuple, Any] = {}
    for config in chosen + sorted(found, key=found.__getitem__):
        tiles.setdefault(_tile(config, triangle), config)
    return list(tiles.values())[:count]


def _estimates(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: str, device: Device
) -> dict[Any, float]:
    """The Configs that can run, and the cycles that each is taken to need."""
    return {
        config: doubt * cycles(config, extents, triangle, device)
        for config, doubt in candidates(dtype, layout, triangle, device).items()
        if _has_flags(config, extents, triangle)
    }


def _as_filed(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: str, device: Device
) -> tuple[Collection[Any], float, str]:
    """The Configs with the tile of the nearest place's solver, what part of the estimate each is taken to
    need, and where that comes from.
    """
    m, n, order = extents
    others, solved = (n if triangle.endswith("a") else m), _solved(layout, triangle)
    for place, stem in product(nearest_places(order, others, NEAR), _stems(dtype, device)):
        filed = overlay.solver(stem, dtype.letter, solved, place, device)
        if filed:
            found = _estimates(dtype, layout, _extents(*METHODS_AT[place], triangle), triangle, device)
            alike = _like(filed[0], found, triangle)
            if alike:
                best, own = min(found.values()), min(found[config] for config in alike)
                return alike, ALIKE * best / own, filed[1]
    return (), 1.0, COMPUTED


def _extents(order: int, others: int, triangle: str) -> tuple[int, int, int]:
    """m, n and k of the product."""
    return (order, others, order) if triangle.endswith("a") else (others, order, order)


def _solved(layout: str, triangle: str) -> str:
    """Which of `SOLVED` tells of a triangle."""
    side = "ab".index(triangle[-1])
    return f"{('left', 'right')[side]}_by_{'columns' if layout[side] == 'n' else 'rows'}"


def _like(solver: Any, found: Collection[Any], triangle: str) -> list[Any]:
    """The solver, if it is among those `found`, else those of its tile."""
    if solver in found:
        return [solver]
    return [config for config in found if _tile(config, triangle) == _tile(solver, triangle)]


def _tile(config: Any, triangle: str) -> tuple:
    """What makes two Configs alike for triangles on either side: extents along the triangle and across."""
    return (*tile_orders(config, triangle), config.BLK_K, config.threads)


def candidates(dtype: Dtype, layout: str, triangle: str, device: Device) -> dict[Any, float]:
    """The Configs that are asked, and how many times longer each is taken to be."""
    return _candidates(dtype, layout, triangle, device, generation()[0])


@lru_cache(maxsize=1 << 7)
def _candidates(dtype: Dtype, layout: str, triangle: str, device: Device, reloads: int) -> dict[Any, float]:
    found: dict[Any, float] = {}

    def add(twin: Any, doubt: float = DOUBT) -> None:
        if twin is not None:
            found.setdefault(twin, doubt)

    for config, doubt in _asked(dtype, layout, device):
        add(_twin(config, triangle, device), doubt)
    tiles = {_tile(config, triangle) for config in found}
    for config in _of_other_layouts(dtype, layout, device):
        twin = _laid_twin(config, layout, triangle, device)
        if twin is not None and _tile(twin, triangle) not in tiles:
            tiles.add(_tile(twin, triangle))
            add(twin)
    for config in list(found):
        add(_deeper(config, dtype, layout, triangle, device))
    for config in _solvers(dtype, _solved(layout, triangle), device):
        add(_laid_twin(config, layout, triangle, device))
    return found


def _has_flags(config: Any, extents: tuple[int, int, int], triangle: str) -> bool:
    """Whether there is a flag for each strip."""
    _, strips = tile_counts(config, triangle, *extents[:2])
    return strips * APART <= FLAGS


def _stems(dtype: Dtype, device: Device) -> tuple[str, ...]:
    """The families that are fast in `dtype`."""
    return ("gemm_mma",) if dtype.real_size == 8 and device.has_double_mma else ("gemm_tile",)


def _asked(dtype: Dtype, layout: str, device: Device) -> Iterator[tuple[Any, float]]:
    for stem in _stems(dtype, device):
        for config in tuned_configs(stem, dtype, layout, device):
            yield config, 1.0
        for parameters in quick_points(stem, dtype, layout, device):
            try:
                yield FAMILIES[stem].config(dtype.letter, layout, parameters), DOUBT
            except ConfigError:
                continue


def _of_other_layouts(dtype: Dtype, layout: str, device: Device) -> Iterator[Any]:
    for stem in _stems(dtype, device):
        for other in FAMILIES[stem].layouts:
            if other != layout:
                yield from tuned_configs(stem, dtype, other, device)


def _solvers(dtype: Dtype, solved: str, device: Device) -> Iterator[Any]:
    """What files say of all places."""
    for stem, place in product(_stems(dtype, device), METHODS_AT):
        filed = overlay.solver(stem, dtype.letter, solved, place, device)
        if filed:
            yield filed[0]


def _laid_twin(config: Any, layout: str, triangle: str, device: Device) -> Any:
    """The same tile for operands that lie as `layout` says, as it solves; None where it cannot."""
    if config.layout == layout:
        return _twin(config, triangle, device)
    family, dtype = FAMILIES[config.STEM], config.dtype_facts
    found = laid_out(config.STEM, dtype, layout, family.parameters_of(config), device)
    try:
        return _twin(family.config(dtype.letter, layout, found), triangle, device)
    except ConfigError:
        return None


def _deeper(config: Any, dtype: Dtype, layout: str, triangle: str, device: Device) -> Any:
    """The same tile with deeper stripes, so that it has fewer on the diagonal, and as many stages as fit;
    None where that does not pay, or cannot be.
    """
    if dtype.letter != "s" or 2 * config.BLK_K != DEEP:
        return None
    family, parameters = FAMILIES[config.STEM], FAMILIES[config.STEM].parameters_of(config)
    for stages in range(config.stages, 1, -1):
        found = deepened(config.STEM, dtype, layout, {**parameters, "stages": stages}, DEEP)
        try:
            twin = _twin(family.config(dtype.letter, layout, found), triangle, device)
        except ConfigError:
            continue
        if twin is not None:
            return twin
    return None


def _twin(config: Any, triangle: str, device: Device) -> Any:
    """The Config as it solves, with all registers that it can have; None where it cannot, or has too few."""
    twin = in_place_twin(config, triangle)
    if twin is None:
        return None
    twin = replace(twin, min_blocks=1)
    try:
        check_device(twin, device)
    except ConfigError:
        return None
    limit = min(device.registers_per_sm // twin.threads, device.max_registers_per_thread)
    has_registers = twin.registers + SPARE[twin.dtype_facts.parts] <= limit
    return twin if has_registers and resident(twin, triangle, device) else None
