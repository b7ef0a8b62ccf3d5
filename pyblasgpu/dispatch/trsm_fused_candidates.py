"""The Configs of products that are candidates for the fused TRSM, and how uncertain each is.

All that were tuned for products of the layout, and of other layouts the same tiles. Then the short space of
the family, narrow tiles, and what files say of any point.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import Any

from ..database import FAMILIES, FUSED_STEMS, TRSM_POINTS, t_layout
from ..errors import ConfigError
from ..gpu.device import Device
from ..kernels.common.axes import Parameters, instructions
from ..kernels.gemm.space import deepened, laid_out
from ..kernels.space import quick_points
from ..types import Dtype, Triangle
from . import tuned_files
from .choose import tuned_configs
from .product_kinds import stems, tile, trsm_variant, with_requested_occupancy

__all__ = ["DEEP", "UNCERTAINTY", "candidates"]

UNCERTAINTY = 1.04  # times that of a Config whose products were timed
#: Tiles for few right-hand sides, with T on the left, by family and dtype: BLK_M, BLK_N, and DIM_X, DIM_Y or
#: WARP_M, WARP_N. No product is tuned with them. Below: their stages, and the unknowns of a k-tile.
NARROW = {
    ("gemm_simt", "s"): ((64, 8, 32, 8), (128, 8, 32, 8), (128, 16, 32, 8)),
    ("gemm_simt", "c"): ((64, 8, 32, 8), (128, 8, 32, 8)),
    ("gemm_mma", "d"): ((64, 16, 16, 8),),
}
NARROW_STAGES, NARROW_DEPTH = (2, 3, 4, 6), 32
DEEP = 64  # unknowns of a k-tile of `s`, with which no product is tuned; of others it was slower


@tuned_files.memo(1 << 7)
def candidates(dtype: Dtype, layout: str, triangle: Triangle, device: Device) -> dict[Any, float]:
    """The Configs to estimate, and the factor by which each one's time is multiplied."""
    uncertainties: dict[Any, float] = {}

    def add(config: Any, uncertainty: float = UNCERTAINTY) -> None:
        if config is not None:
            uncertainties.setdefault(config, uncertainty)

    for config, uncertainty in _of_layout(dtype, layout, triangle, device):
        add(config, uncertainty)
    tiles = {tile(config, triangle) for config in uncertainties}
    for config in _of_other_layouts(dtype, layout, device):
        relaid = trsm_variant(_in_layout(config, layout, device), triangle, device)
        if relaid is not None and tile(relaid, triangle) not in tiles:
            tiles.add(tile(relaid, triangle))
            add(relaid)
    for config in list(uncertainties):
        add(_with_deeper_tiles(config, dtype, layout, triangle, device))
    for config in _tuned(dtype, t_layout(layout, triangle), device):
        add(with_requested_occupancy(_in_layout(config, layout, device), triangle, device))
    return uncertainties


def _of_layout(dtype: Dtype, layout: str, triangle: Triangle, device: Device) -> Iterator[tuple[Any, float]]:
    for stem in stems(dtype, device):
        for config in tuned_configs(stem, dtype, layout, device):
            yield trsm_variant(config, triangle, device), 1.0
        others = quick_points(stem, dtype, layout, device), _narrow(stem, dtype, layout, triangle, device)
        for parameters in chain(*others):
            yield _fused_of(stem, dtype, layout, parameters, triangle, device), UNCERTAINTY


def _narrow(stem: str, dtype: Dtype, layout: str, triangle: Triangle, device: Device) -> Iterator[Parameters]:
    """Yield the parameters of tiles for few right-hand sides."""
    for (m, n, *inner), stages in product(NARROW.get((stem, dtype.letter), ()), NARROW_STAGES):
        chosen: Parameters = {"BLK_K": NARROW_DEPTH, "stages": stages, "prefetch": True}
        if FAMILIES[stem].tensor_cores:
            ((mma_m, mma_k),) = instructions(dtype, device, inner[0], (4,))
            chosen |= dict(zip(("WARP_M", "WARP_N"), inner, strict=True)) | {"MMA_M": mma_m, "MMA_K": mma_k}
        else:
            dims = ("DIM_Y", "DIM_X") if not triangle.on_left else ("DIM_X", "DIM_Y")
            chosen |= dict(zip(dims, inner, strict=True))
            chosen |= {"UNROLL": NARROW_DEPTH, "by_rows": dtype.letter == "c"}
        chosen |= {"BLK_M": n, "BLK_N": m} if not triangle.on_left else {"BLK_M": m, "BLK_N": n}
        yield laid_out(stem, dtype, layout, chosen, device)


def _of_other_layouts(dtype: Dtype, layout: str, device: Device) -> Iterator[Any]:
    for stem in stems(dtype, device):
        for other in FAMILIES[stem].layouts:
            if other != layout:
                yield from tuned_configs(stem, dtype, other, device)


def _tuned(dtype: Dtype, layout: str, device: Device) -> Iterator[Any]:
    """Yield the filed Configs of all points, for a T of this layout."""
    for stem, point in product(stems(dtype, device), TRSM_POINTS):
        entry = tuned_files.of_class(FUSED_STEMS[stem], dtype.letter, layout, point, device)
        if entry:
            yield entry.config


def _in_layout(config: Any, layout: str, device: Device) -> Any:
    """Return the Config with the same tile for operands of `layout`; None where there is none."""
    if config.layout == layout:
        return config
    stem, dtype = config.STEM, config.dtype_facts
    parameters = laid_out(stem, dtype, layout, FAMILIES[stem].parameters_of(config), device)
    return _config(stem, dtype, layout, parameters)


def _with_deeper_tiles(config: Any, dtype: Dtype, layout: str, triangle: Triangle, device: Device) -> Any:
    """Return the Config with deeper k-tiles, hence fewer on the diagonal, and as many stages as fit; None
    where that does not pay or breaks a rule.
    """
    if dtype.letter != "s" or 2 * config.BLK_K != DEEP:
        return None
    stem, parameters = config.STEM, FAMILIES[config.STEM].parameters_of(config)
    for stages in range(config.stages, 1, -1):
        deep = deepened(stem, dtype, layout, {**parameters, "stages": stages}, DEEP)
        deeper = _fused_of(stem, dtype, layout, deep, triangle, device)
        if deeper is not None:
            return deeper
    return None


def _fused_of(
    stem: str, dtype: Dtype, layout: str, parameters: Parameters, triangle: Triangle, device: Device
) -> Any:
    """The Config of these parameters as it solves; None where there is no such, or it cannot."""
    return trsm_variant(_config(stem, dtype, layout, parameters), triangle, device)


def _config(stem: str, dtype: Dtype, layout: str, parameters: Parameters) -> Any:
    try:
        return FAMILIES[stem].config(dtype.letter, layout, parameters)
    except ConfigError:
        return None
