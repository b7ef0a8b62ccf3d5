"""The number of a tile of C among those that are kept: of all of C, or of a triangle alone."""

from __future__ import annotations

from math import lcm

from ....gpu.backend import device_function, ptx
from ...common.options import TRIANGLE, UPPER
from ...common.tile_schedule import squares_of_tiles

__all__ = ["tile_slots"]


def tile_slots(BLK_M: int, BLK_N: int):
    """``slot(row, col, m, n, options)``: number of the tile with an element, in rows of tiles; of a triangle
    square after square of tiles, in rows of squares, and -1 beyond it.

    They are `tile_count` numbers, whatever the order in which tiles are computed.
    """
    int32, quotient, SIDE = ptx.types.int32, ptx.quotient, lcm(BLK_M, BLK_N)
    DOWN, ACROSS = squares_of_tiles(BLK_M, BLK_N)

    @device_function
    def in_triangle(row, col, m, n, options):
        i, j = quotient(row, SIDE), quotient(col, SIDE)
        within = quotient(int32(row - i * SIDE), BLK_M) + quotient(int32(col - j * SIDE), BLK_N) * DOWN
        upper = options & UPPER
        order = quotient(int32((m if upper else n) + (SIDE - 1)), SIDE)
        along, across = (j, i) if upper else (i, j)
        whole = min(along, order)  # rows of squares of the triangle itself, which grow
        before = quotient(int32(whole * (whole + 1)), 2) + (along - whole) * order
        return int32((before + across) * (DOWN * ACROSS) + within if across <= along else -1)

    @device_function
    def slot(row, col, m, n, options):
        if options & TRIANGLE:
            return in_triangle(row, col, m, n, options)
        across = quotient(int32(n + (BLK_N - 1)), BLK_N)
        return int32(quotient(row, BLK_M) * across + quotient(col, BLK_N))

    return slot
