"""Tiles of which a call writes one triangle: what is brought and what goes home, for the rest to stay.

A tile goes home in strips of some lines. Beside the triangle they hold a few elements of the other one, next
to the diagonal. Only these are brought to the card.

Lines are columns, or rows. Of line j the triangle has its tail, the elements from j on, or its head.
"""

from __future__ import annotations

from ..gpu.transfers import Block

__all__ = ["STRIP", "kept", "written"]

#: Lines of a strip.
STRIP = 128


def written(tile: Block, itemsize: int, has_tails: bool) -> list[Block]:
    """The strips of a square tile that hold the triangle."""
    order, step = tile.lines, tile.pitch + itemsize  # from one element of the diagonal to the next
    strips = []
    for first in range(0, order, STRIP):
        count = min(STRIP, order - first)
        if has_tails:
            address, length = tile.address + first * step, order - first
        else:
            address, length = tile.address + first * tile.pitch, first + count
        strips.append(Block(address, length * itemsize, count, tile.pitch, tile.device))
    return strips


def kept(tile: Block, itemsize: int, has_tails: bool) -> list[Block]:
    """The parts of a square tile that hold all elements of its other triangle that are in these strips."""
    order, step = tile.lines, tile.pitch + itemsize
    strip = min(STRIP, order)
    # the lines that are shorter than the band beside the diagonal, and the band
    corner = tile.address + (0 if has_tails else (order - strip) * step)
    band = tile.address + (strip * tile.pitch if has_tails else itemsize)
    parts = [Block(corner, strip * itemsize, strip, tile.pitch, tile.device)]
    if strip < order:
        parts.append(Block(band, strip * itemsize, order - strip, step, tile.device))
    return parts
