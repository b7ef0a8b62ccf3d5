"""The ways in which TRMM, TRSM and SYR2K may go, where they are timed against each other, and which place
stands for the others.

Of batches, and of triangles that are a leaf, TRSM has ways of its own: to be parted into the small triangles
of `kernels.trsm.small`, or the recursion that ends in the leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log

__all__ = [
    "METHODS", "METHODS_AT", "RECURSION", "SMALL", "SMALL_AT", "TWO", "nearest_places", "nearest_small",
    "rows_at_once", "switch_at", "way_of", "ways_at", "ways_of",
]  # fmt: skip

#: Routine -> its method; `overrides.override` of that name asks for it, or against it.
METHODS = {"trmm": "in_place", "trsm": "one_launch", "syr2k": "one_product"}

SMALL = "small_triangles"  # of TRSM at `SMALL_AT`; an override of that name asks for it, or against it
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

#: Place -> order, right-hand sides of each, and number of triangles, where TRSM is timed by `SMALL` ones.
SMALL_AT = {
    f"{n}x{rhs}x{count}": (n, rhs, count)
    for n, rhs, count in (
        (64, 64, 1000), (128, 128, 1000), (32, 32, 10_000), (16, 16, 10_000), (256, 256, 100),
        (64, 64, 100), (128, 128, 100), (128, 128, 10), (256, 256, 10), (512, 512, 100), (512, 512, 10),
        (32, 512, 1), (64, 512, 1), (16, 32, 1), (32, 32, 100), (32, 32, 1), (64, 32, 1),
    )
}  # fmt: skip
WARP = 32  # columns at least that a triangle is reckoned with

ORDER = 2  # times as much as right-hand sides does the order count: a leaf is a leaf
REACH = 2.8  # twice the order and four times the sides: farther away a place tells nothing
FEWEST = 16  # right-hand sides that places tell of: with fewer, tiles are not filled


def switch_at(routine: str, place: str) -> str | None:
    """The override that asks for a way of the routine at a place, if it has any there."""
    if place in SMALL_AT:
        return SMALL if routine == "trsm" else None
    return METHODS.get(routine) if place in METHODS_AT else None


def ways_of(routine: str, place: str) -> dict[str, int]:
    """The ways of a routine at places like this one -> what an override asks for.

    These are the method, the recursion or two products, and, of TRSM, the recursion that ends in triangles
    of some order which go by the method.
    """
    if switch_at(routine, place) is None:
        return {}
    if place in SMALL_AT:
        return {SMALL: True, RECURSION: False}
    return {way_of(routine, asked): asked for asked in (True, False, *_ENDS.get(routine, ()))}


def ways_at(routine: str, place: str) -> dict[str, int]:
    """Those of `ways_of` that are timed at a place, if it matters there.

    With few right-hand sides the products of a recursion are small, wherever it ends.
    """
    ways = ways_of(routine, place)
    if place in SMALL_AT:
        return ways
    order, sides = METHODS_AT[place]
    if order > _LARGEST.get(routine, order):
        return {}
    most = order - 1 if sides >= FEW else 1
    return {way: asked for way, asked in ways.items() if asked <= most}


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
    return _nearest(METHODS_AT, n, rhs, reach) if rhs >= FEWEST else []


def nearest_small(n: int, rhs: int, count: int) -> list[str]:
    """Those of `SMALL_AT` in reach of `count` triangles, by their orders, up to the next power of two as they
    are parted, and the columns of all of them: each is a thread's, or, in leaves, they part the grid.
    """
    return _nearest(_SMALL_COLUMNS, 1 << (n - 1).bit_length(), _columns(rhs, count), REACH)


def _columns(rhs: int, count: int) -> int:
    """Of `count` triangles together."""
    return count * max(rhs, WARP)


_SMALL_COLUMNS = {place: (order, _columns(*of_each)) for place, (order, *of_each) in SMALL_AT.items()}


def _nearest(places: Mapping[str, tuple[int, int]], n: int, sides: int, reach: float) -> list[str]:
    distances = {
        place: ORDER * abs(log(order / n)) + abs(log(others / sides))
        for place, (order, others) in places.items()
    }
    return sorted((place for place, far in distances.items() if far <= reach), key=distances.__getitem__)
