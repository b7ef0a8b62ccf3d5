"""The ways in which TRMM, TRSM and SYR2K may go, where they are timed against each other, and which place
stands for the others.
"""

from __future__ import annotations

from math import log

__all__ = [
    "METHODS", "METHODS_AT", "RECURSION", "TWO", "nearest_places", "rows_at_once", "way_of", "ways_at",
    "ways_of",
]  # fmt: skip

#: Routine -> its method; `overrides.override` of that name asks for it, or against it.
METHODS = {"trmm": "in_place", "trsm": "one_launch", "syr2k": "one_product"}

RECURSION = "recursion"
TWO = "two_products"  # of SYR2K, and of HER2K, which goes as it does

_OTHERWISE = {"trmm": RECURSION, "trsm": RECURSION, "syr2k": TWO}
_LAUNCHES = "launches_of_"  # and the order of the triangles in which the recursion then ends
_ENDS = {"trsm": (512, 1024, 2048)}
_LARGEST = {"syr2k": 2048}  # order of the places that matter: one product's scratch is limited
FEW = 512  # right-hand sides, and more, where such ends are timed

_ORDERS = (2048, 512, 8192, 1024, 4096)
_SQUARES = (256, 3072)
_WIDE = (1024, 8192), (512, 4096)  # as the launches in which the recursion ends

#: Place -> order of the triangle, right-hand sides, of SYR2K k: a coarse net first, as a run may end before
#: all is timed.
METHODS_AT = {
    f"{n}x{rhs}": (n, rhs)
    for n, rhs in [*((n, rhs) for n in _ORDERS for rhs in (n, 32, 512)), *((n, n) for n in _SQUARES), *_WIDE]
}

ORDER = 2  # times as much as right-hand sides does the order count: a leaf is a leaf
REACH = 2.8  # twice the order and four times the sides: farther away a place tells nothing
FEWEST = 16  # right-hand sides that places tell of: with fewer, tiles are not filled


def ways_of(routine: str) -> dict[str, int]:
    """The ways of a routine -> what an override of its method asks for.

    These are the method, the recursion or two products, and, of TRSM, the recursion that ends in triangles
    of some order which go by the method.
    """
    return {way_of(routine, asked): asked for asked in (True, False, *_ENDS.get(routine, ()))}


def ways_at(routine: str, place: str) -> dict[str, int]:
    """Those of `ways_of` that are timed at a place, if it matters there.

    With few right-hand sides the products of a recursion are small, wherever it ends.
    """
    order, sides = METHODS_AT[place]
    if order > _LARGEST.get(routine, order):
        return {}
    most = order - 1 if sides >= FEW else 1
    return {way: asked for way, asked in ways_of(routine).items() if asked <= most}


def way_of(routine: str, asked: int) -> str:
    """The way for which an override of the routine's method asks."""
    if asked in (True, False):
        return (METHODS if asked else _OTHERWISE)[routine]
    return f"{_LAUNCHES}{asked}"


def rows_at_once(way: str, order: int) -> int:
    """Up to which order triangles of one of `order` go by the method; 0 by the recursion."""
    if way.startswith(_LAUNCHES):
        return min(int(way.removeprefix(_LAUNCHES)), order)
    return 0 if way == RECURSION else order


def nearest_places(n: int, rhs: int, reach: float = REACH) -> list[str]:
    """The places in reach, the nearest first, by the logarithms of order and right-hand sides."""
    if rhs < FEWEST:
        return []
    distances = {
        place: ORDER * abs(log(order / n)) + abs(log(sides / rhs))
        for place, (order, sides) in METHODS_AT.items()
    }
    return sorted((place for place, far in distances.items() if far <= reach), key=distances.__getitem__)
