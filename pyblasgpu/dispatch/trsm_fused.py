"""The Config with which `kernels.gemm.trsm_fused` solves by a triangle: by arithmetic, and what files say.

What is good for a product need not be good here (`model.trsm_fused`), so many Configs are candidates
(`trsm_fused_candidates`).

At some places the likeliest were timed, and a file has the fastest (its *solver*), of triangles by columns
and by rows, on either side (`SOLVED`). It is taken to be a little faster there than what the arithmetic has
for the best, and by as much faster than estimated at extents nearby.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import product
from typing import Any

from ..database import METHODS_AT, Solved, nearest_places, solved_as
from ..errors import BackendUnavailable
from ..gpu.device import Device
from ..gpu.workspace import FLAGS
from ..kernels.gemm.trmm_fused import tile_counts
from ..kernels.gemm.trsm_fused import APART
from ..model.trsm_fused import cycles
from ..types import Dtype, Triangle
from . import overrides, tuned_files
from .choose import Choice, generation
from .leaf import COMPUTED
from .trsm_fused_candidates import as_told, candidates, crowded, stems, tile

__all__ = ["choose", "likeliest"]

NEAR = 1.0  # how far away a place may be of which a solver tells, as `nearest_places` measures it
ALIKE = 0.97  # a solver by the best estimate: tiles that fit the extents a little better come after it


def choose(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: Triangle, device: Device
) -> Choice:
    """The Config for an m-by-n C and a triangle of order k, (m, n, k), as `trmm_fused` names it.

    An override by a Config of a GEMM kernel comes first.

    Raises
    ------
    BackendUnavailable
        Where no kernel can run on `device`, or all have more strips than there are flags.
    """
    for stem, config in overrides.active():
        if stem in stems(dtype, device) and config.dtype == dtype.letter and config.layout == layout:
            solver = as_told(config, triangle, device)
            if solver is not None and _has_flags(solver, extents, triangle):
                return Choice(solver, "override")
    return _fastest(dtype, layout, extents, triangle, device, generation()[0])


@lru_cache(maxsize=1 << 12)
def _fastest(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: Triangle, device: Device, reloads: int
) -> Choice:
    found = _estimates(dtype, layout, extents, triangle, device)
    if not found:
        raise BackendUnavailable(f"no kernel solves {dtype.name} in one launch on {device.name}")
    alike, share, origin = _as_filed(dtype, layout, extents, triangle, device)
    best = min(found, key=lambda config: found[config] * (share if config in alike else 1.0))
    return Choice(best, origin if best in alike else COMPUTED)


def likeliest(dtype: Dtype, solved: Solved, order: int, others: int, device: Device, count: int) -> list[Any]:
    """The `count` Configs of different tiles that had better be timed: the one that is chosen, then by their
    estimates; and those of the first half for more blocks a multiprocessor, which the estimate does not
    tell from them.
    """
    triangle = solved.triangle
    key = dtype, solved.layout, _extents(order, others, triangle), triangle, device
    found = _estimates(*key)
    chosen = [choose(*key).config] if found else []
    tiles: dict[tuple, Any] = {}
    for config in chosen + sorted(found, key=found.__getitem__):
        tiles.setdefault((tile(config, triangle), config.min_blocks), config)
    likely = list(tiles.values())[:count]
    twins = [twin for config in likely[: count // 2] for twin in crowded(config, triangle, device)]
    return list(dict.fromkeys(likely + twins))


def _estimates(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: Triangle, device: Device
) -> dict[Any, float]:
    """The Configs that can run, and the cycles that each is taken to need."""
    return {
        config: doubt * cycles(config, extents, triangle, device)
        for config, doubt in candidates(dtype, layout, triangle, device).items()
        if _has_flags(config, extents, triangle)
    }


def _as_filed(
    dtype: Dtype, layout: str, extents: tuple[int, int, int], triangle: Triangle, device: Device
) -> tuple[Collection[Any], float, str]:
    """The Configs with the tile of the nearest place's solver, what part of the estimate each is taken to
    need, and where that comes from.
    """
    m, n, order = extents
    others, solved = (n if triangle.on_left else m), solved_as(layout, triangle)
    for place, stem in product(nearest_places(order, others, NEAR), stems(dtype, device)):
        filed = tuned_files.solver(stem, dtype.letter, solved, place, device)
        if filed:
            found = _estimates(dtype, layout, _extents(*METHODS_AT[place], triangle), triangle, device)
            alike = _like(filed[0], found, triangle)
            if alike:
                best, own = min(found.values()), min(found[config] for config in alike)
                return alike, ALIKE * best / own, filed[1]
    return (), 1.0, COMPUTED


def _extents(order: int, others: int, triangle: Triangle) -> tuple[int, int, int]:
    """m, n and k of the product."""
    return (order, others, order) if triangle.on_left else (others, order, order)


def _like(solver: Any, found: Collection[Any], triangle: Triangle) -> list[Any]:
    """The solver, if it is among those `found`, else those of its tile, for as many blocks if there are."""
    if solver in found:
        return [solver]
    same = [config for config in found if tile(config, triangle) == tile(solver, triangle)]
    return [config for config in same if config.min_blocks == solver.min_blocks] or same


def _has_flags(config: Any, extents: tuple[int, int, int], triangle: Triangle) -> bool:
    """Whether there is a flag for each strip."""
    _, strips = tile_counts(config, triangle, *extents[:2])
    return strips * APART <= FLAGS
