"""The candidates of each kernel family: nested loops as in Algorithm 2 of Kurzak et al. (2011).

A space is a list of axes. An axis gives the values of a few parameters, knowing those chosen before it;
`prune.walk` runs the loops and drops a branch as soon as a rule is broken. A family's file knows its rules,
this one only which values are worth trying.

'quick' is a short list of tiles, with everything else by formula; 'normal' tries every tile, and `prune`
keeps the best of them by `score`; 'exhaustive' also varies how a tile is loaded.
"""

from __future__ import annotations

from ..gpu.device import Device
from ..types import Dtype
from .common.axes import Axis, Parameters
from .registry import FAMILIES

__all__ = ["EFFORTS", "quick_points", "space"]

EFFORTS = ("quick", "normal", "exhaustive")


def space(stem: str, dtype: Dtype, layout: str, device: Device, effort: str) -> list[Axis]:
    """The axes of family `stem`, outermost first.

    Raises
    ------
    ValueError
        For an effort that is none of `EFFORTS`.
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort {effort!r} is none of {', '.join(EFFORTS)}")
    return FAMILIES[stem].space(dtype, layout, device, effort)


def quick_points(stem: str, dtype: Dtype, layout: str, device: Device) -> list[Parameters]:
    """All of the quick space, whatever rules they break; `prune.walk` is for spaces that are large."""
    chosen: list[Parameters] = [{}]
    for axis in space(stem, dtype, layout, device, "quick"):
        chosen = [{**outer, **inner} for outer in chosen for inner in axis(outer)]
    return chosen
