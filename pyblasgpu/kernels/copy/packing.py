"""Layouts of a packed operand: ROW, CBL and RBL.

They are those of Matsumoto, Nakasato, Sedukhin (2012), section 2.2 and figure 3. The operand is taken as the
TN kernel there multiplies it, k by extent (m of A, n of B), and both are padded to whole tiles and k-tiles:

=====  ==================================================================================================
row    row-major: neighbours along the extent, then k (figure 3a)
cbl    column blocks: a tile's k by blk elements are contiguous, row-major within; then the next tile's (3b)
rbl    row blocks: the depth by blk elements of a k-tile are contiguous, row-major within; then the k-tile of
       the next tile at the same k, and after that of the last tile, those at the next k (3c)
=====  ==================================================================================================

So in 'cbl' as in 'rbl' a k-tile is one contiguous run; in 'cbl' the next k-tile of the same tile follows it.
The padding of the extents is zeros. Rows may be lengthened by `pad`, which the paper does not have: so that a
k-tile that is copied as stored has the rows in shared memory that reads without bank conflicts need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...errors import require

__all__ = ["CBL", "LAYOUTS", "RBL", "ROW", "Packing", "Steps"]

LAYOUTS = ("row", "cbl", "rbl")
ROW, CBL, RBL = range(len(LAYOUTS))  # as Configs have them


class Steps(NamedTuple):
    """Elements from one tile, k-tile, k to the next; neighbours along the extent are neighbours."""

    tile: int
    k_tile: int
    k: int


@dataclass(frozen=True)
class Packing:
    """A layout of packed operands.

    Attributes
    ----------
    layout : str
        'row', 'cbl' or 'rbl'.
    blk : int
        Extent of a tile along m or n.
    depth : int
        Extent of a k-tile along k.
    pad : int
        Elements added to a row of a tile; none in 'row', where a tile has no rows of its own.

    Raises
    ------
    ConfigError
        Where these are out of their range.
    """

    layout: str
    blk: int
    depth: int
    pad: int = 0

    def __post_init__(self):
        require(
            self.layout in LAYOUTS, "layout", f"layout in ({', '.join(LAYOUTS)})", layout=repr(self.layout)
        )
        require(
            self.blk >= 1 and self.depth >= 1,
            "k_tile",
            "blk >= 1 and depth >= 1",
            blk=self.blk,
            depth=self.depth,
        )
        require(self.pad >= 0, "pad", "pad >= 0", pad=self.pad)
        require(
            self.pad == 0 or self.layout != "row",
            "row_unpadded",
            "pad == 0 where layout is row",
            pad=self.pad,
        )

    @property
    def ld(self) -> int:
        """Elements of a row of a tile."""
        return self.blk + self.pad

    @property
    def k_tile_size(self) -> int:
        """Elements of a k-tile."""
        return self.depth * self.ld

    def tiles(self, extent: int) -> int:
        """Tiles along m or n, the last of them perhaps a part."""
        return -(-extent // self.blk)

    def k_tiles(self, k: int) -> int:
        """K-tiles along k, the last of them perhaps a part."""
        return -(-k // self.depth)

    def size(self, extent: int, k: int) -> int:
        """Elements of a packed operand, its padding included."""
        return self.tiles(extent) * self.k_tiles(k) * self.k_tile_size

    def steps(self, extent: int, k: int) -> Steps:
        """The distances of its parts."""
        tiles, k_tiles = self.tiles(extent), self.k_tiles(k)
        if self.layout == "row":
            return Steps(self.blk, self.depth * tiles * self.blk, tiles * self.blk)
        if self.layout == "cbl":
            return Steps(k_tiles * self.k_tile_size, self.k_tile_size, self.ld)
        return Steps(self.k_tile_size, tiles * self.k_tile_size, self.ld)

    def offset(self, i, kk, extent: int, k: int):
        """Return the offset of element `i` along the extent and `kk` along k (ints, or arrays of them).

        Also those of the zeros that fill the last tile and the last k-tile have their offsets.
        """
        step = self.steps(extent, k)
        within = kk % self.depth * step.k + i % self.blk
        return i // self.blk * step.tile + kk // self.depth * step.k_tile + within

    def stride(self, extent: int, k: int) -> int:
        """The one step of a layout that the extents decide, which a kernel receives: from k to k in 'row',
        from tile to tile in 'cbl', from k-tile to k-tile in 'rbl'.
        """
        steps = self.steps(extent, k)
        return {"row": steps.k, "cbl": steps.tile, "rbl": steps.k_tile}[self.layout]
