"""Tiles of which a call needs one triangle: the parts copied to cards and home, so that the rest stays.

The triangle is copied in strips of some lines. A strip begins or ends at a square on the diagonal, which
holds elements of the other triangle, too. Where such a strip goes home, the squares were copied to the card
before.

Lines are columns, or rows. Of line j the triangle has its tail, the elements from j on, or its head.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..gpu.transfers import Block

__all__ = ["PARTS", "STRIP", "diagonal_squares", "covering"]

#: Lines of a strip, at least, and the most strips of a tile.
STRIP, PARTS = 256, 8


def _strips(tile: Block) -> Iterator[tuple[int, int]]:
    """Return each strip's first line, and its number of lines."""
    strip = max(STRIP, -(-tile.lines // PARTS))
    return ((first, min(strip, tile.lines - first)) for first in range(0, tile.lines, strip))


def covering(tile: Block, itemsize: int, has_tails: bool) -> list[Block]:
    """The strips of a square tile that hold the triangle."""
    parts = []
    for first, count in _strips(tile):
        skipped, length = (first, tile.lines - first) if has_tails else (0, first + count)
        address = tile.address + first * tile.pitch + skipped * itemsize
        parts.append(Block(address, length * itemsize, count, tile.pitch, tile.device))
    return parts


def diagonal_squares(tile: Block, itemsize: int) -> list[Block]:
    """The squares of a square tile that hold what its strips have of the other triangle, whichever it is."""
    return [
        Block(
            tile.address + first * (tile.pitch + itemsize), count * itemsize, count, tile.pitch, tile.device
        )
        for first, count in _strips(tile)
    ]
