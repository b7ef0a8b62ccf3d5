"""Where an operand's elements lie once it is packed: the layouts ROW, CBL and RBL.

They are those of Matsumoto, Nakasato, Sedukhin (2012), section 2.2 and figure 3. The operand is taken as the
TN kernel there multiplies it, k by extent (m of A, n of B), and both are padded to whole tiles and stripes:

=====  ==================================================================================================
row    row-major: neighbours along the extent, then k (figure 3a)
cbl    column blocks: a tile's k by blk elements are contiguous, row-major within; then the next tile's (3b)
rbl    row blocks: the depth by blk elements of a stripe are contiguous, row-major within; then the stripe of
       the next tile at the same k, and after that of the last tile, those at the next k (3c)
=====  ==================================================================================================

So in 'cbl' as in 'rbl' a stripe is one contiguous run; in 'cbl' the next stripe of the same tile follows it.
The padding of the extents is zeros. Rows may be lengthened by `pad`, which the paper does not have: so that
a stripe that is copied as it lies has the rows in shared memory that reads without bank conflicts ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...errors import require

__all__ = ["CBL", "LAYOUTS", "RBL", "ROW", "Packing", "Steps"]

LAYOUTS = ("row", "cbl", "rbl")
ROW, CBL, RBL = range(len(LAYOUTS))  # as Configs tell them


class Steps(NamedTuple):
    """Elements from one tile, stripe, k to the next; neighbours along the extent are neighbours."""

    tile: int
    stripe: int
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
        Extent of a stripe along k.
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
            "stripe",
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
    def lead(self) -> int:
        """Elements of a row of a tile."""
        return self.blk + self.pad

    @property
    def stripe_size(self) -> int:
        """Elements of a stripe."""
        return self.depth * self.lead

    def tiles(self, extent: int) -> int:
        """Tiles along m or n, the last of them perhaps a part."""
        return -(-extent // self.blk)

    def stripes(self, k: int) -> int:
        """Stripes along k, the last of them perhaps a part."""
        return -(-k // self.depth)

    def size(self, extent: int, k: int) -> int:
        """Elements of a packed operand, its padding included."""
        return self.tiles(extent) * self.stripes(k) * self.stripe_size

    def steps(self, extent: int, k: int) -> Steps:
        """How far its parts lie apart."""
        tiles, stripes = self.tiles(extent), self.stripes(k)
        if self.layout == "row":
            return Steps(self.blk, self.depth * tiles * self.blk, tiles * self.blk)
        if self.layout == "cbl":
            return Steps(stripes * self.stripe_size, self.stripe_size, self.lead)
        return Steps(self.stripe_size, tiles * self.stripe_size, self.lead)

    def place(self, i, kk, extent: int, k: int):
        """Where element `i` along the extent and `kk` along k lies (ints, or arrays of them).

        Also those of the zeros that fill the last tile and the last stripe have their places.
        """
        step = self.steps(extent, k)
        within = kk % self.depth * step.k + i % self.blk
        return i // self.blk * step.tile + kk // self.depth * step.stripe + within

    def stride(self, extent: int, k: int) -> int:
        """The one step of a layout that the extents decide, which a kernel is told: from k to k in 'row',
        from tile to tile in 'cbl', from stripe to stripe in 'rbl'.
        """
        steps = self.steps(extent, k)
        return {"row": steps.k, "cbl": steps.tile, "rbl": steps.stripe}[self.layout]
