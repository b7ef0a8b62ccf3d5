"""The order in which tiles of C are computed, and what of them a persistent block computes.

An ordinary block has one tile. A persistent one has work tiles, as a `TileSchedule` deals them.
"""

from __future__ import annotations

from collections.abc import Callable

from ...gpu.backend import cuda, device_function, ptx
from .options import RASTER_BIT, TRIANGLE, UPPER
from .tile_schedule import RASTER, squares_of_tiles

__all__ = ["columns", "rasterize", "tile_coords", "tile_origins", "work_tiles"]


def tile_origins(BLK_M: int, BLK_N: int, triangular: bool | None = False):
    """``coords(tile, tiles_m, tiles_n, options)``: row and column where a tile of a matrix begins, or of the
    triangle that the `options` select. `triangular` says whether it is a triangle; None: the options say.
    """
    if triangular is None:
        return _origins_in_either(tile_origins(BLK_M, BLK_N), tile_origins(BLK_M, BLK_N, True))
    if triangular:
        return _origins_in_triangle(BLK_M, BLK_N)
    int32, where = ptx.types.int32, columns()

    @device_function
    def coords(tile, tiles_m, tiles_n, options):
        rows = int32(options >> RASTER_BIT)
        down, across = where(tile, tiles_m, tiles_n, rows if rows > 0 else int32(RASTER))
        return int32(down * BLK_M), int32(across * BLK_N)

    return coords


def _origins_in_either(of_all: Callable, of_triangle: Callable):
    @device_function
    def coords(tile, tiles_m, tiles_n, options):
        if options & TRIANGLE:
            return of_triangle(tile, tiles_m, tiles_n, options)
        return of_all(tile, tiles_m, tiles_n, options)

    return coords


def _origins_in_triangle(BLK_M: int, BLK_N: int):
    """Return the function that finds a tile of a triangle: squares of tiles, on and below (above) the
    diagonal. Squares beyond its order follow.

    The triangle is folded to a rectangle, its longest row of squares with the shortest, so that the order is
    a matter of integers alone:

        0
        1 1              3 3 3 3 0
        2 2 2      ->    2 2 2 1 1
        3 3 3 3
    """
    int32, quotient, where = ptx.types.int32, ptx.quotient, rasterize()
    (DOWN, ACROSS), order_of = squares_of_tiles(BLK_M, BLK_N), _triangle_order(BLK_M, BLK_N)

    @device_function
    def coords(tile, tiles_m, tiles_n, options):
        order = order_of(tiles_m, tiles_n, options)
        square = quotient(tile, DOWN * ACROSS)
        within = tile - square * (DOWN * ACROSS)
        width = order | 1
        beyond = square - quotient(order * (order + 1), 2)
        if beyond < 0:
            i, j = where(square, quotient(order + 1, 2), width)
            row_length = order - i
            row, col = (row_length - 1, j) if j < row_length else (width - row_length - 1, j - row_length)
        else:
            row = order + quotient(beyond, order)
            col = beyond - (row - order) * order
        row, col = (col, row) if options & UPPER else (row, col)
        across = quotient(within, DOWN)
        down = within - across * DOWN
        return int32((row * DOWN + down) * BLK_M), int32((col * ACROSS + across) * BLK_N)

    return coords


def _triangle_order(BLK_M: int, BLK_N: int):
    """``order(tiles_m, tiles_n, options)``: of the triangle of a matrix, in squares of tiles."""
    quotient, (DOWN, ACROSS) = ptx.quotient, squares_of_tiles(BLK_M, BLK_N)

    @device_function
    def order(tiles_m, tiles_n, options):
        if options & UPPER:
            return quotient(tiles_m + (DOWN - 1), DOWN)
        return quotient(tiles_n + (ACROSS - 1), ACROSS)

    return order


def rasterize(most: int = RASTER):
    """``coords(i, rows, cols)``: row and column of the i-th element, in columns of `most` rows."""
    coords_of = columns()

    @device_function
    def coords(i, rows, cols):
        return coords_of(i, rows, cols, most)

    return coords


def columns():
    """``coords(i, rows, cols, most)``: the same, with a height that is known at run time."""
    quotient = ptx.quotient

    @device_function
    def coords(i, rows, cols, most):
        column = quotient(i, most * cols)
        within = i - column * (most * cols)
        height = min(rows - column * most, most)
        across = quotient(within, height)
        down = within - across * height
        return column * most + down, across

    return coords


def tile_coords(BLK_M: int, BLK_N: int, triangular: bool = False):
    """``locate(tile, m, n, options)``: row, column and matrix where a tile of the batch begins."""
    int64, quotient, coords = ptx.types.int64, ptx.quotient, tile_origins(BLK_M, BLK_N, triangular)
    (DOWN, ACROSS), order_of = squares_of_tiles(BLK_M, BLK_N), _triangle_order(BLK_M, BLK_N)

    @device_function
    def locate(tile, m, n, options):
        tiles_m, tiles_n = quotient(m + (BLK_M - 1), BLK_M), quotient(n + (BLK_N - 1), BLK_N)
        tiles = tiles_m * tiles_n
        if triangular:
            order = order_of(tiles_m, tiles_n, options)
            both = quotient(tiles_m + (DOWN - 1), DOWN) + quotient(tiles_n + (ACROSS - 1), ACROSS)
            tiles = (quotient(order * (order + 1), 2) + (both - 2 * order) * order) * (DOWN * ACROSS)
        matrix = quotient(tile, tiles)
        row0, col0 = coords(tile - matrix * tiles, tiles_m, tiles_n, options)
        return row0, col0, int64(matrix)

    return locate


def work_tiles():
    """``work_tile(i, block, k_tiles, schedule)``: of the i-th work tile of a block its tile, first k-tile,
    and number of k-tiles; none where there are no more work tiles. `schedule`: a `TileSchedule` without its
    blocks.
    """
    int32, quotient = ptx.types.int32, ptx.quotient

    @device_function
    def work_tile(i, block, k_tiles, schedule):
        tiles, full_waves, k_iters_per_block, remainder = schedule
        blocks = cuda.gridDim.x
        if i < full_waves:
            tile = i * blocks + block
            return int32(tile), int32(0), int32(k_tiles if tile < tiles else 0)
        begin = int32(block * k_iters_per_block + min(block, remainder))
        end = int32(begin + k_iters_per_block + (1 if block < remainder else 0))
        which = quotient(begin, k_tiles) + (i - full_waves)
        first, last = max(begin - which * k_tiles, 0), min(end - which * k_tiles, k_tiles)
        return int32(full_waves * blocks + which), int32(first), int32(max(last - first, 0))

    return work_tile
