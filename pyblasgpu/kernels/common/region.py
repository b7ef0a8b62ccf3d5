"""Elements and tiles of a `Region` of a matrix.

A kernel is made for all of a matrix, for triangles, or for both. Which triangle, `options` select at run
time.

The `shift` of a tile is its first row less its first column. Element (i, j) of the tile is on the diagonal
where i + shift = j.
"""

from __future__ import annotations

from ...gpu.backend import device_function, ptx
from .options import STRICT, TRIANGLE, UPPER

__all__ = ["contains", "contains_tile", "intersects", "rows_of_column"]


def _is_whole(triangular: bool | None):
    """``is_whole(options)``: whether all of the matrix is meant. `triangular` is known, or None."""

    @device_function
    def of_options(options):
        return options & TRIANGLE == 0

    @device_function
    def as_known(options):
        return not triangular

    return of_options if triangular is None else as_known


def contains(triangular: bool | None = None):
    """``contains(i, j, shift, options)``: whether an element of a tile belongs to the region.

    `triangular` says whether it is a triangle; None: the options say.
    """
    ALL, is_whole, ROWS = triangular is False, _is_whole(triangular), 2**31 - 1

    @device_function
    def is_inside(i, j, shift, options):
        if ALL:
            return True
        # from its first row to its last: what a column's elements share, the compiler computes once
        diagonal = j - shift
        first = -ROWS if options & UPPER else diagonal + (1 if options & STRICT else 0)
        last = diagonal if options & UPPER else ROWS
        return (first <= i) & (i <= last) | is_whole(options)

    return is_inside


def rows_of_column(triangular: bool | None = None):
    """``rows_of(j, rows, cols, shift, options)``: the first of a tile's `rows` that column `j` has in the
    region, with a diagonal, and the end of them; none beyond the `cols`.

    All elements of a column are compared with these two, which takes less code than `contains`.
    """
    is_whole, int32 = _is_whole(triangular), ptx.types.int32

    @device_function
    def rows_of(j, rows, cols, shift, options):
        first, end, diagonal = int32(0), int32(rows if j < cols else 0), int32(j - shift)
        first = first if is_whole(options) or options & UPPER else diagonal
        end = end if is_whole(options) or options & UPPER == 0 else min(end, int32(diagonal + 1))
        return first, end

    return rows_of


def intersects(BLK_M: int, BLK_N: int, triangular: bool | None = None):
    """``intersects(shift, options)``: whether anything of a tile belongs to the region."""
    is_whole = _is_whole(triangular)

    @device_function
    def is_met(shift, options):
        met = shift < BLK_N if options & UPPER else shift + BLK_M > (1 if options & STRICT else 0)
        return met | is_whole(options)

    return is_met


def contains_tile(BLK_M: int, BLK_N: int, triangular: bool | None = None):
    """``contains_tile(shift, options)``: whether a whole tile belongs to the region, and nothing of it is on
    the diagonal.
    """
    ALL, is_whole = triangular is False, _is_whole(triangular)

    @device_function
    def is_covered(shift, options):
        if ALL:
            return True
        covered = shift + BLK_M <= 0 if options & UPPER else shift >= BLK_N
        return covered | is_whole(options)

    return is_covered
