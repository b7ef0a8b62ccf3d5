"""The update right of a panel on the tensor cores, in float64: a warp a tile of sixteen by sixteen."""

from __future__ import annotations

from ....gpu.backend import device_function, ptx, unrolled
from ....gpu.intrinsics.mma import elements_per_mma

__all__ = ["tile_edge", "trailing_update_mma"]

DEPTH = 8  # columns that are multiplied at a time
WIDE, NARROW = (16, 8), (8, 4)  # shapes of instructions, of Hopper and of Ampere


def tile_edge(config) -> int:
    """Rows and columns of a tile."""
    return 16 if config.BLK % 16 == 0 and config.rows_below % 16 == 0 else 8


def trailing_update_mma(config):
    """``update(l, acc, x, y, t, first, rows)``, as that of `cholesky_panel.trailing_update`."""
    REALS, LD, BLK = config.dtype_facts.reals_per_element, config.ld, config.BLK
    EDGE = tile_edge(config)
    WARPS, ORDER, TILES_BELOW = config.threads // 32, config.ORDER, config.rows_below // EDGE
    GROUPS, SUMS, offset = EDGE // 8, EDGE * EDGE // 32 * REALS, ptx.offset
    real, zero = ptx.REALS[config.dtype_facts.real], ptx.fill(SUMS)
    load = ptx.load_shared(REALS, GROUPS, 8 * REALS)
    multiply = _multiplier(EDGE, REALS)

    @device_function
    def product_step(step, acc, x, y, left, right, k):
        # what a lane has of the rows: every eighth, of every fourth column
        at = (k + 4 * step) * LD * REALS
        load(x, step * GROUPS * REALS, left, at)
        load(y, step * GROUPS * REALS, right, at)

    fetch = unrolled(DEPTH // 4, product_step)

    @device_function
    def subtract(column, target, acc):
        # columns 8j + 2t and 8j + 2t + 1
        at = (column // 2 * 8 + column % 2) * LD * REALS
        for group in range(GROUPS):
            for part in range(REALS):
                target[at + group * 8 * REALS + part] -= acc[(column * GROUPS + group) * REALS + part]

    subtract_all = unrolled(2 * GROUPS, subtract)

    @device_function
    def coords(number, triangle, first):
        i, j = 0, number
        if TILES_BELOW > 0 and number >= triangle:
            number -= triangle
            return ORDER + number % TILES_BELOW * EDGE, first + number // TILES_BELOW * EDGE
        while j > i:
            i += 1
            j -= i
        return first + i * EDGE, first + j * EDGE

    @device_function
    def update(l, acc, x, y, t, first, rows):
        tiles = rows // EDGE
        triangle = tiles * (tiles + 1) // 2
        g, quarter = t % 32 // 4, t % 4
        for number in range(t // 32, triangle + tiles * TILES_BELOW, WARPS):
            row, col = coords(number, triangle, first)
            columns = (first - BLK + quarter) * LD + g
            left, right = offset(l, (row + columns) * REALS), offset(l, (col + columns) * REALS)
            zero(acc, real(0))
            for k in range(0, BLK, DEPTH):
                fetch(0, acc, x, y, left, right, k)
                multiply(acc, x, y)
            subtract_all(0, offset(l, (row + g + (col + 2 * quarter) * LD) * REALS), acc)

    return update


def _multiplier(edge: int, reals: int):
    """``multiply(acc, x, y)``: acc += x y^H by the widest instruction of the architecture."""
    narrow, wide = (_product(edge, shape, reals) for shape in (NARROW, WIDE))
    if wide is None:
        return narrow
    has_wide_mma = ptx.has_wide_mma

    @device_function
    def multiply(acc, x, y):
        if has_wide_mma():
            wide(acc, x, y)
        else:
            narrow(acc, x, y)

    return multiply


def _product(edge: int, shape: tuple[int, int], reals: int):
    """The product by instructions of a shape; None where a tile is too small for it."""
    rows, depth = elements_per_mma(shape, reals)
    if edge % rows or DEPTH % depth:
        return None
    return ptx.warp_mma(edge // rows, edge // 8, shape, reals, False, True, DEPTH // depth)
