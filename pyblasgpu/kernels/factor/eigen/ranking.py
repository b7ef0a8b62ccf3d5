"""Places of values in ascending or descending order."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import device_function, ptx

__all__ = ["ranker"]


def ranker(descends: bool) -> Callable:
    """``rank(values, i, n)``: the place of value i, of equal ones in the order in which they stand."""
    int32 = ptx.types.int32

    @device_function
    def rank(values, i, n):
        x, place = values[i], int32(0)
        for j in range(n):
            y = values[j]
            is_before = y > x if descends else y < x
            if is_before or (y == x and j < i):
                place = int32(place + 1)
        return place

    return rank
