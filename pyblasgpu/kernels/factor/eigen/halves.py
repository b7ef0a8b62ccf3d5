"""Sums over lanes of several numbers at a time: lanes exchange halves of the numbers that they have left."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import device_function, ptx, unrolled

__all__ = ["halver"]


def halver(half: int, distance: int) -> Callable:
    """``halve(0, y, lane)``: of 2 `half` elements of a lane and of the one that is `distance` away, the sums
    of the first half, or of the second one in the upper lane.
    """
    shuffle, int32, select = ptx.shuffle, ptx.types.int32, ptx.select

    @device_function
    def one(k, y, lane):
        is_second = (lane & distance) != 0
        sent = select(is_second, y[k], y[k + half])
        y[k] = select(is_second, y[k + half], y[k]) + shuffle(sent, int32(lane ^ distance))

    return unrolled(half, one)
