"""The Configs of products that are asked when TRSM is one launch (`solving`), and how doubtful each is.

All that were tuned for products of the layout, of other layouts the same tiles, the short space of the
family, and what files say of any place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain, product
from typing import Any

from ..database import FAMILIES, METHODS_AT, solved_as
from ..errors import ConfigError
from ..gpu.device import Device
from ..kernels.gemm_in_place import tile_orders
from ..types import Dtype
from . import overlay
from .axes import Parameters, instructions
from .in_place import in_place_twin
from .product_space import deepened, laid_out
from .prune import check_device
from .select import generation, tuned_configs
from .solve_cycles import resident
from .space import quick_points

__all__ = ["DEEP", "DOUBT", "candidates", "stems", "tile", "twin"]

DOUBT = 1.04  # times that of a Config whose products were timed
SPARE = {1: 40, 2: 110}  # registers that a kernel needs beside its estimate, by parts of an element
#: Of a family and dtype, BLK_M, BLK_N, and DIM_X, DIM_Y or WARP_M, WARP_N, of tiles with so few right-hand
#: sides that no product is tuned with them, T on the left. Their stages, and how many unknowns a stripe has.
NARROW = {
    ("gemm_tile", "s"): ((64, 8, 32, 8), (128, 8, 32, 8), (128, 16, 32, 8)),
    ("gemm_tile", "c"): ((64, 8, 32, 8), (128, 8, 32, 8)),
    ("gemm_mma", "d"): ((64, 16, 16, 8),),
}
NARROW_STAGES, NARROW_DEPTH = (2, 3, 4, 6), 32
DEEP = 64  # unknowns of a stripe of `s`, with which no product is tuned; of others it was slower


def candidates(dtype: Dtype, layout: str, triangle: str, device: Device) -> dict[Any, float]:
    """The Configs that are asked, and how many times longer each is taken to be."""
    return _candidates(dtype, layout, triangle, device, generation()[0])


@lru_cache(maxsize=1 << 7)
def _candidates(dtype: Dtype, layout: str, triangle: str, device: Device, reloads: int) -> dict[Any, float]:
    found: dict[Any, float] = {}

    def add(config: Any, doubt: float = DOUBT) -> None:
        if config is not None:
            found.setdefault(config, doubt)

    for config, doubt in _asked(dtype, layout, triangle, device):
        add(config, doubt)
    tiles = {tile(config, triangle) for config in found}
    for config in _of_other_layouts(dtype, layout, device):
        laid = _laid_twin(config, layout, triangle, device)
        if laid is not None and tile(laid, triangle) not in tiles:
            tiles.add(tile(laid, triangle))
            add(laid)
    for config in list(found):
        add(_deeper(config, dtype, layout, triangle, device))
    for config in _solvers(dtype, solved_as(layout, triangle), device):
        add(_laid_twin(config, layout, triangle, device))
    return found


def stems(dtype: Dtype, device: Device) -> tuple[str, ...]:
    """The families that are fast in `dtype`."""
    return ("gemm_mma",) if dtype.real_size == 8 and device.has_double_mma else ("gemm_tile",)


def _asked(dtype: Dtype, layout: str, triangle: str, device: Device) -> Iterator[tuple[Any, float]]:
    for stem in stems(dtype, device):
        for config in tuned_configs(stem, dtype, layout, device):
            yield twin(config, triangle, device), 1.0
        others = quick_points(stem, dtype, layout, device), _narrow(stem, dtype, layout, triangle, device)
        for parameters in chain(*others):
            yield _made(stem, dtype, layout, parameters, triangle, device), DOUBT


def _narrow(stem: str, dtype: Dtype, layout: str, triangle: str, device: Device) -> Iterator[Parameters]:
    """Of tiles with few right-hand sides."""
    for (m, n, *inner), stages in product(NARROW.get((stem, dtype.letter), ()), NARROW_STAGES):
        chosen: Parameters = {"BLK_K": NARROW_DEPTH, "stages": stages, "prefetch": True}
        if stem == "gemm_mma":
            ((mma_m, mma_k),) = instructions(dtype, device, inner[0], (4,))
            chosen |= dict(zip(("WARP_M", "WARP_N"), inner, strict=True)) | {"MMA_M": mma_m, "MMA_K": mma_k}
        else:
            dims = ("DIM_Y", "DIM_X") if triangle.endswith("b") else ("DIM_X", "DIM_Y")
            chosen |= dict(zip(dims, inner, strict=True))
            chosen |= {"UNROLL": NARROW_DEPTH, "by_rows": dtype.letter == "c"}
        chosen |= {"BLK_M": n, "BLK_N": m} if triangle.endswith("b") else {"BLK_M": m, "BLK_N": n}
        yield laid_out(stem, dtype, layout, chosen, device)


def _of_other_layouts(dtype: Dtype, layout: str, device: Device) -> Iterator[Any]:
    for stem in stems(dtype, device):
        for other in FAMILIES[stem].layouts:
            if other != layout:
                yield from tuned_configs(stem, dtype, other, device)


def _solvers(dtype: Dtype, solved: str, device: Device) -> Iterator[Any]:
    """What files say of all places."""
    for stem, place in product(stems(dtype, device), METHODS_AT):
        filed = overlay.solver(stem, dtype.letter, solved, place, device)
        if filed:
            yield filed[0]


def _laid_twin(config: Any, layout: str, triangle: str, device: Device) -> Any:
    """The same tile for operands that lie as `layout` says, as it solves; None where it cannot."""
    if config.layout == layout:
        return twin(config, triangle, device)
    stem, dtype = config.STEM, config.dtype_facts
    found = laid_out(stem, dtype, layout, FAMILIES[stem].parameters_of(config), device)
    return _made(stem, dtype, layout, found, triangle, device)


def _deeper(config: Any, dtype: Dtype, layout: str, triangle: str, device: Device) -> Any:
    """The same tile with deeper stripes, so that it has fewer on the diagonal, and as many stages as fit;
    None where that does not pay, or cannot be.
    """
    if dtype.letter != "s" or 2 * config.BLK_K != DEEP:
        return None
    stem, parameters = config.STEM, FAMILIES[config.STEM].parameters_of(config)
    for stages in range(config.stages, 1, -1):
        found = deepened(stem, dtype, layout, {**parameters, "stages": stages}, DEEP)
        deeper = _made(stem, dtype, layout, found, triangle, device)
        if deeper is not None:
            return deeper
    return None


def _made(stem: str, dtype: Dtype, layout: str, parameters: Parameters, triangle: str, device: Device) -> Any:
    """The Config of these parameters as it solves; None where there is no such, or it cannot."""
    try:
        config = FAMILIES[stem].config(dtype.letter, layout, parameters)
    except ConfigError:
        return None
    return twin(config, triangle, device)


def twin(config: Any, triangle: str, device: Device) -> Any:
    """The Config as it solves, with all registers that it can have; None where it cannot, or has too few."""
    found = in_place_twin(config, triangle)
    if found is None:
        return None
    found = replace(found, min_blocks=1)
    try:
        check_device(found, device)
    except ConfigError:
        return None
    limit = min(device.registers_per_sm // found.threads, device.max_registers_per_thread)
    has_registers = found.registers + SPARE[found.dtype_facts.parts] <= limit
    return found if has_registers and resident(found, triangle, device) else None


def tile(config: Any, triangle: str) -> tuple:
    """What makes two Configs alike for triangles on either side: extents along the triangle and across."""
    return (*tile_orders(config, triangle), config.BLK_K, config.threads)
