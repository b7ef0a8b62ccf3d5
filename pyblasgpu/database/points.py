"""The problems at which algorithms of TRSM are timed against each other, and which one substitutes for
another; those at which kernels of level 2 are tuned.

One triangle of more rows than a leaf has goes by the points of `TRSM_POINTS`. Batches, and triangles of one
leaf, go by those of `TRSM_SMALL_POINTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log

__all__ = [
    "MATRIX_VECTOR_POINTS",
    "RECURSION",
    "TRSM_FUSED",
    "TRSM_POINTS",
    "TRSM_SMALL",
    "TRSM_SMALL_POINTS",
    "algorithms_at",
    "algorithms_of",
    "max_fused_order",
    "nearest_matrix",
    "nearest_points",
    "nearest_small_points",
]

RECURSION = "recursion"  # to the leaves
TRSM_FUSED = "trsm_fused"  # one launch; with an order behind it, a recursion that ends in such launches
TRSM_SMALL = "trsm_small"  # triangles of at most 64 rows, with products between them

_FUSED_ORDERS = {f"{TRSM_FUSED}_{order}": order for order in (512, 1024, 2048)}
MIN_RHS = 512  # right-hand sides from which on a recursion that ends in fused triangles is timed

_ORDERS = (2048, 512, 8192, 1024, 4096)
_SQUARES = (256, 3072)
_WIDE = (1024, 8192), (512, 4096)  # as the triangles in which the recursion ends

#: Point -> order, right-hand sides: a coarse net first, as a run may end before all is timed.
TRSM_POINTS = {
    f"{n}x{rhs}": (n, rhs)
    for n, rhs in [*((n, rhs) for n in _ORDERS for rhs in (n, 32, 512)), *((n, n) for n in _SQUARES), *_WIDE]
}

#: Point -> order, right-hand sides of each, and number of triangles.
TRSM_SMALL_POINTS = {
    f"{n}x{rhs}x{count}": (n, rhs, count)
    for n, rhs, count in (
        (64, 64, 1000),
        (128, 128, 1000),
        (32, 32, 10_000),
        (16, 16, 10_000),
        (256, 256, 100),
        (64, 64, 100),
        (128, 128, 100),
        (128, 128, 10),
        (256, 256, 10),
        (512, 512, 100),
        (512, 512, 10),
        (32, 512, 1),
        (64, 512, 1),
        (16, 32, 1),
        (32, 32, 100),
        (32, 32, 1),
        (64, 32, 1),
    )
}
_SQUARE_ORDERS = (256, 512, 1024, 2048, 4096, 8192, 16384)
_TALL = (200_000, 32), (65536, 256), (16384, 1024)

#: Point -> rows and columns of the matrix: square, tall and wide ones.
MATRIX_VECTOR_POINTS = {
    f"{m}x{n}": (m, n)
    for m, n in [*((n, n) for n in _SQUARE_ORDERS), *_TALL, *((cols, rows) for rows, cols in _TALL)]
}

WARP = 32  # a triangle counts as one with at least this number of columns

ORDER_WEIGHT = 2  # the order counts for more than right-hand sides: a leaf is a leaf
REACH = 2.8  # twice the order and four times the sides: farther points do not carry over
MIN_TILE_RHS = 16  # right-hand sides of the points, at least: with fewer, tiles are not filled


def algorithms_of(point: str) -> tuple[str, ...]:
    """The algorithms that can be chosen at problems like this one; none of an unknown point."""
    if point in TRSM_SMALL_POINTS:
        return TRSM_SMALL, RECURSION
    return (TRSM_FUSED, RECURSION, *_FUSED_ORDERS) if point in TRSM_POINTS else ()


def algorithms_at(point: str) -> tuple[str, ...]:
    """Return the algorithms of `algorithms_of` that are timed at a point.

    With few right-hand sides the products of a recursion are small, wherever it ends.
    """
    if point in TRSM_SMALL_POINTS:
        return algorithms_of(point)
    order, rhs = TRSM_POINTS[point]
    ends = (name for name, end in _FUSED_ORDERS.items() if end < order and rhs >= MIN_RHS)
    return TRSM_FUSED, RECURSION, *ends


def max_fused_order(algorithm: str, order: int, fused: str = TRSM_FUSED) -> int:
    """Up to which order triangles within one of `order` take one launch, that of `fused`; 0: none does."""
    if algorithm == fused:
        return order
    prefix, _, end = algorithm.rpartition("_")
    return min(int(end), order) if prefix == fused else 0


def nearest_points(order: int, rhs: int, reach: float = REACH) -> list[str]:
    """The `TRSM_POINTS` in reach, the nearest first, by the logarithms of order and right-hand sides."""
    return _nearest(TRSM_POINTS, order, rhs, reach) if rhs >= MIN_TILE_RHS else []


def nearest_small_points(order: int, rhs: int, count: int) -> list[str]:
    """The `TRSM_SMALL_POINTS` in reach of `count` triangles.

    They go by their order, up to the next power of two as they are split, and the columns of all. Each column
    is a thread's, or, in leaves, columns are split over the grid.
    """
    return _nearest(_COLUMNS_AT, 1 << (order - 1).bit_length(), _columns(rhs, count), REACH)


def nearest_matrix(rows: int, cols: int) -> list[str]:
    """The `MATRIX_VECTOR_POINTS`, the nearest first, by the logarithms of rows and columns."""
    distances = {
        point: abs(log(m / rows)) + abs(log(n / cols)) for point, (m, n) in MATRIX_VECTOR_POINTS.items()
    }
    return sorted(distances, key=distances.__getitem__)


def _columns(rhs: int, count: int) -> int:
    """Return the columns of `count` triangles together."""
    return count * max(rhs, WARP)


_COLUMNS_AT = {point: (order, _columns(*of_each)) for point, (order, *of_each) in TRSM_SMALL_POINTS.items()}


def _nearest(points: Mapping[str, tuple[int, int]], order: int, rhs: int, reach: float) -> list[str]:
    distances = {
        point: ORDER_WEIGHT * abs(log(n / order)) + abs(log(sides / rhs))
        for point, (n, sides) in points.items()
    }
    return sorted(
        (point for point, distance in distances.items() if distance <= reach), key=distances.__getitem__
    )
