"""Numbers of neighbouring lanes combined, two at a time: sums and maxima, the same bits in all of them."""

from __future__ import annotations

from collections.abc import Callable

from ...gpu.backend import device_function, ptx, unrolled
from ..common.kernel_config import WARP

__all__ = ["adder", "larger", "over_lanes", "several_over_warp"]


def adder() -> Callable:
    """``add(x, y)``: x + y."""

    @device_function
    def add(x, y):
        return x + y

    return add


def larger() -> Callable:
    """``larger(x, y)``: the larger of two numbers."""

    @device_function
    def larger_one(x, y):
        return max(x, y)

    return larger_one


def over_lanes(combine: Callable) -> Callable:
    """``reduce(x, lane, width)``: the numbers of `width` neighbouring lanes, a power of two."""
    shuffle, int32 = ptx.shuffle, ptx.types.int32

    @device_function
    def reduce(x, lane, width):
        distance = int32(width >> 1)
        while distance > 0:
            x = combine(x, shuffle(x, int32(lane ^ distance)))
            distance = int32(distance >> 1)
        return x

    return reduce


def several_over_warp(count: int, combine: Callable) -> Callable:
    """``reduce(x, lane)``: the first `count` elements of a local array over a warp, all at a time."""
    shuffle, int32 = ptx.shuffle, ptx.types.int32

    @device_function
    def one(k, x, lane, distance):
        x[k] = combine(x[k], shuffle(x[k], int32(lane ^ distance)))

    every = unrolled(count, one)

    @device_function
    def reduce(x, lane):
        distance = int32(WARP // 2)
        while distance > 0:
            every(0, x, lane, distance)
            distance = int32(distance >> 1)

    return reduce
