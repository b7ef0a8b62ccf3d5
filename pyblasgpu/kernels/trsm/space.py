"""The candidates of leaves: triangles that one launch solves by, or multiplies by (`space`)."""

from __future__ import annotations

from itertools import product

from ...gpu.device import Device
from ...types import Dtype
from ..common.axes import Axis, Parameters, instructions, residence, widest

__all__ = ["triangle_fma", "triangle_leaf", "triangle_mma"]

# BLK_M, BLK_N, BLK_K, THR_M, THR_N, SLICED_K
_QUICK_LEAVES = (
    (32, 8, 32, 2, 2, 4), (32, 8, 64, 2, 2, 8), (32, 16, 32, 2, 2, 4), (32, 16, 64, 2, 2, 8),
    (32, 16, 32, 2, 1, 2), (32, 32, 32, 4, 2, 2), (32, 32, 64, 4, 2, 4), (16, 16, 64, 2, 2, 8),
    (16, 8, 64, 2, 1, 8), (16, 32, 32, 2, 2, 2), (64, 16, 64, 4, 2, 8), (64, 32, 64, 4, 4, 4),
    (64, 8, 64, 4, 2, 8), (64, 16, 32, 4, 2, 4), (16, 16, 16, 2, 2, 1), (16, 16, 32, 2, 2, 2),
    (16, 8, 32, 2, 1, 4), (16, 8, 16, 2, 1, 2), (32, 16, 32, 2, 4, 4), (32, 16, 64, 2, 4, 8),
    (64, 16, 64, 4, 4, 8), (64, 16, 32, 4, 4, 4), (64, 16, 32, 4, 2, 2), (64, 16, 64, 4, 2, 4),
    (128, 16, 32, 4, 4, 2), (128, 16, 64, 8, 4, 4), (32, 16, 32, 2, 2, 2), (32, 16, 64, 2, 2, 4),
)  # fmt: skip
_LEAF_UNROLL = 8


def triangle_leaf(dtype: Dtype, layout: str, device: Device, effort: str) -> list[Axis]:
    wide = product((16, 32, 64), (8, 16, 32, 64), (32, 64, 128), (1, 2, 4), (1, 2, 4), (1, 2, 4, 8))
    shapes = _QUICK_LEAVES if effort == "quick" else tuple(wide)
    stages = (3,) if effort == "quick" else (2, 3, 4)

    def tiles(_: Parameters) -> list[Parameters]:
        return [
            {
                "BLK_M": m,
                "BLK_N": n,
                "BLK_K": k,
                "DIM_X": m // thr_m,
                "DIM_Y": n // thr_n,
                "SLICED_K": slices,
                "VEC_M": widest(dtype, thr_m),
                "VEC_N": widest(dtype, thr_n),
                "UNROLL": _LEAF_UNROLL,
                "stages": stage,
            }
            for (m, n, k, thr_m, thr_n, slices), stage in product(shapes, stages)
        ]

    return [tiles] if effort == "quick" else [tiles, residence(effort)]


def triangle_mma(dtype: Dtype, layout: str, device: Device, effort: str) -> list[Axis]:
    if dtype.letter not in _MMA_ORDERS:
        return [lambda _: []]
    quick = effort == "quick"
    # large tiles keep more of T in registers, of which complex numbers leave none
    likely, deep = (16, 8) if dtype.letter == "d" else (8, 16)
    blocks, widths, stages = ((likely,), (8,), (2,)) if quick else ((8, 16, 32), (8, 16, 32), (2, 3))
    # of complex numbers the deepest was never more than 1 % behind, however high the tile
    depths = (deep,) if quick or dtype.is_complex else (4, 8, 16)

    def tiles(_: Parameters) -> list[Parameters]:
        orders = _MMA_ORDERS[dtype.letter]
        shapes = [(shape, depths) for shape in _shapes(orders, blocks, (1, 2, 4, 8), widths, stages, effort)]
        shapes += [(shape, (deep,)) for shape in _crowded(dtype, orders)]
        return [
            {**shape, "MMA_M": mma_m, "MMA_K": mma_k}
            for shape, mma_depths in shapes
            for mma_m, mma_k in instructions(dtype, device, shape["BLK"], mma_depths)
        ]

    return [tiles] if quick else [tiles, residence(effort)]


_MMA_ORDERS = {"d": (64, 128, 256), "z": (32, 64, 128)}


def triangle_fma(dtype: Dtype, layout: str, device: Device, effort: str) -> list[Axis]:
    quick = effort == "quick"
    blocks, warps, widths = ((8, 16), (2, 4), (8,)) if quick else ((8, 16, 32), (1, 2, 4, 8), (8, 16, 32))
    stages = (2,) if quick else (2, 3)

    def tiles(_: Parameters) -> list[Parameters]:
        orders = _FMA_ORDERS[dtype.letter]
        return _shapes(orders, blocks, warps, widths, stages, effort) + _crowded(dtype, orders)

    return [tiles] if quick else [tiles, residence(effort)]


def _shapes(orders, blocks, warps, widths, stages, effort: str) -> list[Parameters]:
    """Return all combinations of these values, for leaves whose warps own columns."""
    names = ("ORDER", "BLK", "WARPS", "WARP_N", "stages", "PRODUCER_WARPS", "WARPS_PER_COLUMN_GROUP")
    values = product(orders, blocks, warps, widths, stages, _loaders(effort), SPLITS)
    return [dict(zip(names, each, strict=True)) for each in values]


# WARPS, WARP_N, WARPS_PER_COLUMN_GROUP, min_blocks where many blocks share a multiprocessor, as of batches
_CROWDED = (
    (4, 16, 1, 1),
    (4, 16, 2, 1),
    (2, 16, 1, 1),
    (2, 16, 2, 1),
    (4, 8, 1, 2),
    (4, 8, 1, 3),
    (4, 8, 1, 4),
)


def _crowded(dtype: Dtype, orders: tuple[int, ...]) -> list[Parameters]:
    """More columns for each element of T that is read, or fewer registers; no warp that only loads T."""
    block = 8 if dtype.is_complex else 16
    return [
        {
            "ORDER": order,
            "BLK": block,
            "WARPS": warps,
            "WARP_N": width,
            "stages": 2,
            "PRODUCER_WARPS": 0,
            "WARPS_PER_COLUMN_GROUP": split,
            "min_blocks": blocks,
        }
        for order, (warps, width, split, blocks) in product(orders, _CROWDED)
    ]


def _loaders(effort: str) -> tuple[int, ...]:
    """Warps that only load T."""
    return (0, 4) if effort == "quick" else (0, 2, 4, 8)


SPLITS = 1, 2  # warps that own the same columns

_FMA_ORDERS = {"s": (64, 128, 256, 512), "d": (64, 128, 256), "c": (64, 128, 256), "z": (32, 64)}
