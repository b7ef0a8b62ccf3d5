"""The families of level 2."""

from __future__ import annotations

from typing import Any

from ...gpu.device import Device
from ..registry import Axes, Family

__all__ = ["FAMILIES"]


def _gemv_cost(config: Any, extents: tuple[int, ...], device: Device) -> float:
    from .gemv_cost import GemvProblem, cycles

    outputs, terms, *batch = extents
    return cycles(config, GemvProblem(outputs, terms, batch[0] if batch else 1), device)


def _ger_cost(config: Any, extents: tuple[int, ...], device: Device) -> float:
    from .ger_cost import cycles

    rows, cols, *batch = extents
    return cycles(config, rows, cols, batch[0] if batch else 1, device)


FAMILIES = (
    Family(
        "gemv",
        ".level2.gemv",
        "Gemv",
        "gemv",
        layouts=("n", "t"),
        layout_fields=("transposed",),
        space_name=".level2.space:gemv",
        axes=Axes(tile=(("THR_O", "THR_R"), ("WARPS",)), variant=(("DIM_R",), ("MIN_STEPS",))),
        runtime_parameters=("DIM_R", "MIN_STEPS"),
        cost=_gemv_cost,
    ),
    Family("symv", ".level2.symv", "Symv", "symv"),
    Family("symv_small", ".level2.symv_small", "SymvSmall", "symv"),
    Family("symv_sum", ".level2.symv_sum", "SymvSum", "symv"),
    Family(
        "ger",
        ".level2.ger",
        "Ger",
        "ger",
        space_name=".level2.space:ger",
        axes=Axes(tile=(("DIM_M", "DIM_N"), ("THR_M", "THR_N"))),
        cost=_ger_cost,
    ),
)
