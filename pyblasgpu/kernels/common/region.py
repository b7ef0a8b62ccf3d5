"""Which elements and tiles belong to a `Region` of a matrix.

The `shift` of a tile is its first row less its first column. Element (i, j) of the tile is on the diagonal
where i + shift = j.
"""

from __future__ import annotations

from collections.abc import Collection

from ...errors import require
from ...gpu.backend import device_function
from ...types import Region

__all__ = ["check_region", "contains", "contains_tile", "intersects"]


def check_region(region: Region, allowed: Collection[Region] = tuple(Region)) -> None:
    """Raise `ConfigError` for what is none of `allowed`."""
    names = ", ".join(each.name for each in allowed)
    require(region in allowed, "region", f"region in ({names})", region=region)


def contains(region: Region):
    """``contains(i, j, shift)``: whether an element of a tile belongs to the region."""
    ALL, UPPER, FIRST = region is Region.ALL, region.is_upper, 1 if region.strict else 0

    @device_function
    def is_inside(i, j, shift):
        if ALL:
            return True
        return i + shift <= j if UPPER else i + shift - j >= FIRST

    return is_inside


def intersects(region: Region, BLK_M: int, BLK_N: int):
    """``intersects(shift)``: whether anything of a tile belongs to the region."""
    ALL, UPPER, FIRST = region is Region.ALL, region.is_upper, 1 if region.strict else 0

    @device_function
    def is_met(shift):
        if ALL:
            return True
        return shift < BLK_N if UPPER else shift + BLK_M > FIRST

    return is_met


def contains_tile(region: Region, BLK_M: int, BLK_N: int):
    """``contains_tile(shift)``: whether a whole tile belongs to the region, and nothing of it is on the
    diagonal.
    """
    ALL, UPPER = region is Region.ALL, region.is_upper

    @device_function
    def is_covered(shift):
        if ALL:
            return True
        return shift + BLK_M <= 0 if UPPER else shift >= BLK_N

    return is_covered
