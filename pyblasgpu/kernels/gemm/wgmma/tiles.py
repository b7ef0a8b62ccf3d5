"""Tiles of C that a cluster of ``gemm_wgmma`` computes, their order, and their blocks along k."""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, ptx
from ...common.options import FROM_DIAGONAL, OF_COLUMNS, TO_DIAGONAL, TRIANGLE
from ...common.region import intersects
from ...common.tile_scheduler import tile_coords
from .config import GemmWgmma
from .image import GRAIN, unit_rows

__all__ = ["ROW_PAIRS", "is_servable", "judge", "pairs_of", "tile_finder"]

#: Option: two rows of C are the parts of one row of complex elements, of which a triangle is meant.
ROW_PAIRS = 1 << 13


def pairs_of():
    """``pairs(options)``: 1 where two rows are one of a complex C, else 0: rows are shifted by it."""
    int32 = ptx.types.int32

    @device_function
    def pairs(options):
        return int32(1 if options & ROW_PAIRS else 0)

    return pairs


def is_servable():
    """``servable(flags_a, first_a, flags_b, first_b, count, lane)``: whether no flag is set of two panels'
    `count` units; for a warp.
    """
    first_lane, int32, offset = ptx.first_lane, ptx.types.int32, ptx.offset

    @device_function
    def servable(flags_a, first_a, flags_b, first_b, count, lane):
        of_a, of_b = offset(flags_a, first_a), offset(flags_b, first_b)
        flagged, i = int32(0), int32(lane)
        while i < count:
            flagged |= of_a[i] | of_b[i]
            i = int32(i + 32)
        return first_lane(flagged != 0) < 0

    return servable


def _locator(config: GemmWgmma):
    """``locate(tile, m, n, options)``: row, column and matrix where a cluster's tiles begin, of all of C or
    of the triangle that the options select.
    """
    HEIGHT, quotient = config.cluster * config.BLK_M, ptx.quotient
    of_all, of_triangle = tile_coords(HEIGHT, config.BLK_N), tile_coords(HEIGHT, config.BLK_N, True)
    of_pairs = tile_coords(HEIGHT // 2, config.BLK_N, True)

    @device_function
    def locate(tile, m, n, options):
        if options & ROW_PAIRS:
            row, col, matrix = of_pairs(tile, quotient(m, 2), n, options)
            return 2 * row, col, matrix
        if options & TRIANGLE:
            return of_triangle(tile, m, n, options)
        return of_all(tile, m, n, options)

    return locate


def _range_of_k(config: GemmWgmma):
    """``range_of(row, col, blocks, options)``: the first of a tile's `blocks` of k, and how many they are, of
    a triangle those up to the diagonal or from it on.
    """
    int32, quotient, PER_GRAIN = ptx.types.int32, ptx.quotient, GRAIN // config.BLK_K

    @device_function
    def range_of(row, col, blocks, options):
        grain = quotient(int32(col if options & OF_COLUMNS else row), GRAIN)
        first = int32(grain * PER_GRAIN if options & FROM_DIAGONAL else 0)
        last = int32(min((grain + 1) * PER_GRAIN, blocks) if options & TO_DIAGONAL else blocks)
        return first, int32(last - first)

    return range_of


def _tile_order(config: GemmWgmma):
    """``number(i, tiles, options)``: the i-th tile in order: of a triangle the longest first, and to and fro,
    so that all blocks have as much to do.
    """
    int32, quotient, CLUSTER = ptx.types.int32, ptx.quotient, config.cluster

    @device_function
    def number(i, tiles, options):
        if options & (FROM_DIAGONAL | TO_DIAGONAL) == 0:
            return i
        blocks = quotient(int32(cuda.gridDim.x), CLUSTER)
        wave = quotient(i, blocks)
        begin = int32(wave * blocks)
        last = int32(min(blocks, tiles - begin) - 1)
        tile = int32(begin + last - (i - begin) if wave % 2 else i)
        return int32(tiles - 1 - tile if options & TO_DIAGONAL else tile)

    return number


def tile_finder(config: GemmWgmma):
    """``tile_of(i, tiles, m, n, options, blocks, step_a, step_b)``: of the i-th tile of a cluster
    whether any of C is meant, where this block's begins, and its matrix; the first blocks of its A, of the
    other block's, and of its B, in images with `blocks` a panel; and how many of these it has.
    """
    int32, quotient, BLK_M, PANEL = ptx.types.int32, ptx.quotient, config.BLK_M, config.PANEL
    CLUSTER, cluster_rank, locate, pairs = config.cluster, ptx.cluster_rank, _locator(config), pairs_of()
    is_met, number, range_of = (
        intersects(CLUSTER * BLK_M, config.BLK_N),
        _tile_order(config),
        _range_of_k(config),
    )

    @device_function
    def panel_of(row, m):
        """The panel of A with a row; below the last one that."""
        return quotient(int32(min(row, m - 1)), PANEL)

    @device_function
    def tile_of(i, tiles, m, n, options, blocks, step_a, step_b):
        row, col0, matrix = locate(number(i, tiles, options), m, n, options)
        met = is_met((row >> pairs(options)) - col0, options) & (row < m) & (col0 < n)
        col0 = int32(min(col0, n - 1))  # a tile that is not met has no panel of its own
        first, count = range_of(row, col0, blocks, options)
        mine, other = (cluster_rank() * BLK_M, (1 - cluster_rank()) * BLK_M) if CLUSTER > 1 else (0, 0)
        first_a = (matrix * step_a + panel_of(row + mine, m)) * blocks + first
        other_a = (matrix * step_a + panel_of(row + other, m)) * blocks + first
        first_b = (matrix * step_b + quotient(col0, PANEL)) * blocks + first
        return met, int32(row + mine), col0, matrix, (first_a, other_a, first_b), count

    return tile_of


def judge(config: GemmWgmma):
    """``verdict(flags, firsts, count, lane)``: whether the cluster multiplies its tiles, and whether pairs
    serve this block's, by the flags of A and of B; `firsts` and `count` as `tile_finder` has them.
    """
    servable, CLUSTER = is_servable(), config.cluster
    UNITS = config.PANEL // unit_rows(config.PANEL, config.BLK_K)

    @device_function
    def verdict(flags, firsts, count, lane):
        flags_a, flags_b = flags
        first_a, other_a, first_b = firsts
        units, b = count * UNITS, first_b * UNITS
        own = servable(flags_a, first_a * UNITS, flags_b, b, units, lane)
        if CLUSTER > 1:
            return own | servable(flags_a, other_a * UNITS, flags_b, b, units, lane), own
        return own, own

    return verdict
