"""Tiles of which a call needs one triangle: what is brought and what goes home, for the rest to stay.

The triangle is copied in strips of some lines. Beside it they hold a few elements of the other triangle, next
to the diagonal. Where such a strip goes home, these were brought before.

Lines are columns, or rows. Of line j the triangle has its tail, the elements from j on, or its head.
"""

from __future__ import annotations

from ..gpu.transfers import Block

__all__ = ["PARTS", "STRIP", "beside", "covering"]

#: Lines of a strip: so many, or more where there would be too many strips.
STRIP, PARTS = 128, 16


def _strip(order: int) -> int:
    return min(max(STRIP, -(-order // PARTS)), order)


def covering(tile: Block, itemsize: int, has_tails: bool) -> list[Block]:
    """The strips of a square tile that hold the triangle."""
    order, strip = tile.lines, _strip(tile.lines)
    step = tile.pitch + itemsize  # from one element of the diagonal to the next
    strips = []
    for first in range(0, order, strip):
        count = min(strip, order - first)
        if has_tails:
            address, length = tile.address + first * step, order - first
        else:
            address, length = tile.address + first * tile.pitch, first + count
        strips.append(Block(address, length * itemsize, count, tile.pitch, tile.device))
    return strips


def beside(tile: Block, itemsize: int, has_tails: bool) -> list[Block]:
    """The parts of a square tile that hold all elements of its other triangle that are in these strips."""
    order, strip = tile.lines, _strip(tile.lines)
    step = tile.pitch + itemsize
    # the lines that are shorter than the band along the diagonal, and the band
    corner = tile.address + (0 if has_tails else (order - strip) * step)
    band = tile.address + (strip * tile.pitch if has_tails else itemsize)
    parts = [Block(corner, strip * itemsize, strip, tile.pitch, tile.device)]
    if strip < order:
        parts.append(Block(band, strip * itemsize, order - strip, step, tile.device))
    return parts
