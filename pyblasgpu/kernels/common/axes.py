"""Axes of the spaces of candidates (`space`), and helpers that several families share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...gpu.device import Device
from ...gpu.intrinsics.mma import SHAPES, elements_per_mma
from ...types import Dtype

__all__ = ["VECTOR", "Axis", "Parameters", "first", "instructions", "length", "residence", "widest"]

Parameters = dict[str, Any]
Axis = Callable[[Parameters], list[Parameters]]

VECTOR = 16  # bytes of the widest load


def widest(dtype: Dtype, count: int) -> int:
    """The widest vector that divides `count` elements."""
    return next(v for v in (4, 2, 1) if count % v == 0 and v * dtype.itemsize <= VECTOR)


def instructions(dtype: Dtype, device: Device, rows: int, depths: Iterable[int]) -> list[tuple[int, int]]:
    """Return the instruction for each depth, each once: the large one, or the small one where `rows` are no
    multiple of its rows or the device lacks it.
    """

    def serves(shape: tuple[int, int]) -> bool:
        return SHAPES[shape] <= device.cc and rows % elements_per_mma(shape, dtype.reals_per_element)[0] == 0

    return list(dict.fromkeys((16, depth) if serves((16, depth)) else (8, 4) for depth in depths))


def residence(effort: str) -> Axis:
    most = 2 if effort == "quick" else 3
    return _Known(lambda _: [{"min_blocks": blocks} for blocks in range(most, 0, -1)], most)


def first(axis: Axis) -> Axis:
    """The first value of `axis` alone."""
    return _Known(lambda chosen: axis(chosen)[:1], 1)


def length(axis: Axis, chosen: Parameters) -> int:
    """Return the number of values of `axis`; they are made only where it does not know."""
    return axis.count if isinstance(axis, _Known) else len(axis(chosen))


class _Known:
    """An axis that has `count` values whatever was chosen before."""

    def __init__(self, axis: Axis, count: int):
        self._axis, self.count = axis, count

    def __call__(self, chosen: Parameters) -> list[Parameters]:
        return self._axis(chosen)
