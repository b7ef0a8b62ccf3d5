"""The ways in which TRMM and TRSM may go, where they are timed against each other, and which place stands for
the others.
"""

from __future__ import annotations

from math import log

__all__ = ["METHODS", "METHODS_AT", "RECURSION", "nearest_places", "ways_of"]

#: Routine -> its method beside the recursion; `overrides.override` of that name asks for it, or against it.
METHODS = {"trmm": "in_place", "trsm": "one_launch"}

RECURSION = "recursion"

_ORDERS = (2048, 512, 8192, 1024, 4096)
_SQUARES = (256, 3072)

#: Place -> order of the triangle, right-hand sides: a coarse net first, as a run may end before all is timed.
METHODS_AT = {
    f"{n}x{rhs}": (n, rhs)
    for n, rhs in [*((n, rhs) for n in _ORDERS for rhs in (n, 32, 512)), *((n, n) for n in _SQUARES)]
}

ORDER = 2  # times as much as right-hand sides does the order count: a leaf is a leaf
REACH = 2.8  # twice the order and four times the sides: farther away a place tells nothing
FEWEST = 16  # right-hand sides that places tell of: with fewer, tiles are not filled


def ways_of(routine: str) -> tuple[str, str]:
    """The method of a routine, and the recursion."""
    return METHODS[routine], RECURSION


def nearest_places(n: int, rhs: int) -> list[str]:
    """The places in reach, the nearest first, by the logarithms of order and right-hand sides."""
    if rhs < FEWEST:
        return []
    distances = {
        place: ORDER * abs(log(order / n)) + abs(log(sides / rhs))
        for place, (order, sides) in METHODS_AT.items()
    }
    return sorted((place for place, far in distances.items() if far <= REACH), key=distances.__getitem__)
