"""The number of tiles of C, and their distribution over persistent blocks.

The blocks of a *persistent* kernel, no more than the device holds at once, go over all tiles of a batch, a
*work tile* after the other. In each of `full_waves` waves every block takes a whole tile. The k-tiles of the
tiles that are left are cut into equal runs, `k_iters_per_block` and for the first `remainder` blocks one
more, wherever tiles begin and end in them (stream-K: Osama et al., PPoPP 2023). So no multiprocessor idles
while others compute the last tiles. The block with the beginning of a tile adds up its partial tiles
(`kernels.gemm.persistent`).
"""

from __future__ import annotations

from math import lcm
from typing import NamedTuple

from ...types import Region

__all__ = ["MAX_K_TILES", "RASTER", "TileSchedule", "squares_of_tiles", "tile_count"]

#: Tiles of C are ordered in columns of this many rows of tiles, so that a wave shares its A in L2, where the
#: options of a launch set no other number.
RASTER = 8
MAX_K_TILES = 2**31 - 1  # that are numbered


class TileSchedule(NamedTuple):
    """Distribution of `tiles` tiles over `blocks` persistent blocks.

    Attributes
    ----------
    blocks, tiles : int
    full_waves : int
        In which every block takes a whole tile; the last of them may have fewer tiles than blocks.
    k_iters_per_block : int
        K-tiles, of the tiles that are left, that every block takes.
    remainder : int
        Blocks, the first ones, that take one more.
    """

    blocks: int
    tiles: int
    full_waves: int
    k_iters_per_block: int = 0
    remainder: int = 0

    @classmethod
    def of_whole_tiles(cls, blocks: int, tiles: int) -> TileSchedule:
        """No tile is split."""
        blocks = min(blocks, tiles)
        return cls(blocks, tiles, -(-tiles // blocks))

    @classmethod
    def stream_k(cls, blocks: int, tiles: int, k_tiles: int) -> TileSchedule:
        """All blocks end at the same time: the last one to two waves are split, where that helps.

        `k_tiles` are those of a tile; blocks without any are left out.
        """
        if tiles % blocks == 0 or k_tiles == 1:
            return cls.of_whole_tiles(blocks, tiles)
        full_waves = max(tiles // blocks - 1, 0)
        left = (tiles - full_waves * blocks) * k_tiles
        if full_waves == 0:
            blocks = min(blocks, left)
        return cls(blocks, tiles, full_waves, *divmod(left, blocks))

    def begin(self, block: int) -> int:
        """The first k-tile of a block's run, of those of all tiles after the full waves."""
        return block * self.k_iters_per_block + min(block, self.remainder)


def tile_count(BLK_M: int, BLK_N: int, m: int, n: int, region: Region = Region.ALL) -> int:
    """Tiles of an m-by-n matrix that are scheduled, to compute a `region` of it (`Region`).

    A triangle may be longer than its order: rows below a lower one, columns right of an upper one.
    """
    if region is Region.ALL:
        return -(-m // BLK_M) * -(-n // BLK_N)
    down, across = squares_of_tiles(BLK_M, BLK_N)
    order, length = -(-n // (across * BLK_N)), -(-m // (down * BLK_M))
    if region.is_upper:
        order, length = length, order
    return (order * (order + 1) // 2 + (length - order) * order) * down * across


def squares_of_tiles(BLK_M: int, BLK_N: int) -> tuple[int, int]:
    """Tiles down and across the smallest square that they fill: a triangle is rasterized by such squares."""
    square = lcm(BLK_M, BLK_N)
    return square // BLK_M, square // BLK_N
