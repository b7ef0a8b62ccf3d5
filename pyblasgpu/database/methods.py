"""Where TRSM is timed both ways, as one launch and by recursion, and which place stands for the others."""

from __future__ import annotations

from math import log

__all__ = ["ONE_LAUNCH_AT", "ONE_LAUNCH_ROUTINES", "nearest_places"]

#: The routines that may be one launch.
ONE_LAUNCH_ROUTINES = ("trsm",)

_SQUARES = (256, 512, 1024, 2048, 3072, 4096, 8192)
_TALL = (512, 1024, 2048, 4096, 8192)

#: Place -> order of the triangle, right-hand sides.
ONE_LAUNCH_AT = {
    f"{n}x{rhs}": (n, rhs)
    for n, rhs in [*((n, n) for n in _SQUARES), *((n, rhs) for rhs in (32, 512) for n in _TALL)]
}


def nearest_places(n: int, rhs: int) -> list[str]:
    """All places, the nearest first, by the logarithms of order and right-hand sides."""

    def distance(place: str) -> float:
        order, sides = ONE_LAUNCH_AT[place]
        return abs(log(order / n)) + abs(log(sides / rhs))

    return sorted(ONE_LAUNCH_AT, key=distance)
