"""The candidates of `gemv` and `ger` (`kernels.space`)."""

from __future__ import annotations

from itertools import product

from ...gpu.device import Device
from ...types import Dtype
from ..common.axes import VECTOR, Axis, Parameters

__all__ = ["gemv", "ger"]

#: Values of a parameter, by effort; the others are in `_SHAPES`.
_WARPS = {"quick": (8,), "normal": (4, 8, 16), "exhaustive": (2, 4, 8, 16)}
_MIN_STEPS = {"quick": (1,), "normal": (1, 4), "exhaustive": (1, 2, 4, 16)}
MAX_LOADED = 16  # elements that a thread loads at a time: with more, and several vectors of sums, it spills
#: Vectors of outputs of a thread, or outputs, and loads of each.
_SHAPES = {
    "quick": ((1, 4), (1, 8), (2, 4), (2, 2)),
    "normal": ((1, 4), (1, 8), (2, 2), (2, 4), (4, 2), (4, 4)),
    "exhaustive": tuple(product((1, 2, 4), (1, 2, 4, 8))),
}


def gemv(dtype: Dtype, layout: str, device: Device, effort: str) -> list[Axis]:
    """Threads along the sums last: they make no kernel of their own."""
    width = 1 if layout == "t" else max(VECTOR // dtype.itemsize, 1)

    def shapes(_: Parameters) -> list[Parameters]:
        return [
            {"THR_O": vectors * width, "THR_R": loads, "WARPS": warps}
            for (vectors, loads), warps in product(_SHAPES[effort], _WARPS[effort])
            if width * vectors * loads <= MAX_LOADED or vectors == 1
        ]

    def threads(_: Parameters) -> list[Parameters]:
        least = 1 if layout == "t" else 4
        return [
            {"DIM_R": 1 << power, "MIN_STEPS": steps}
            for power, steps in product(range(10), _MIN_STEPS[effort])
            if 1 << power >= least
        ]

    return [shapes, threads]


#: DIM_M, DIM_N, THR_M and THR_N.
_GER_QUICK = (
    (32, 4, 4, 4),
    (32, 4, 4, 2),
    (32, 8, 4, 4),
    (32, 8, 4, 2),
    (32, 4, 2, 4),
    (32, 8, 2, 4),
    (32, 4, 2, 8),
    (64, 4, 4, 4),
    (16, 8, 4, 4),
    (64, 2, 4, 4),
    (32, 4, 4, 8),
    (64, 4, 4, 2),
    (32, 2, 4, 4),
)
_GER_WIDE = tuple(product((16, 32, 64, 128), (2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8)))


def ger(dtype: Dtype, layout: str, device: Device, effort: str) -> list[Axis]:
    names = "DIM_M", "DIM_N", "THR_M", "THR_N"
    shapes = _GER_QUICK if effort == "quick" else _GER_WIDE

    def tiles(_: Parameters) -> list[Parameters]:
        return [dict(zip(names, each, strict=True)) for each in shapes]

    return [tiles]
