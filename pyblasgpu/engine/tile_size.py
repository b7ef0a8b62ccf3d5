"""How large tiles are: large enough for the kernels, small enough for the memory and for all cards."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["LARGEST", "SMALLEST", "UNIT", "WANTED", "tile_order"]

#: Rows and columns of a tile, where nothing speaks against it: of them a matrix should have `PARTS` along its
#: longest side, so that little is transferred before the first task and after the last one.
WANTED, LARGEST = 1024, 4096
PARTS = 4
#: Below this kernels lose more than several cards or a small memory are worth.
SMALLEST = 256
UNIT = 64
#: Tiles that a card should hold: those of a task, some ahead, some on their way home.
HELD = 24
#: Tiles along the dimension that is dealt, for each card.
EACH = 2


def tile_order(extents: Sequence[int], itemsize: int, limit: int, cards: int, is_factor: bool = False) -> int:
    """Rows and columns of the tiles of a call.

    Parameters
    ----------
    extents : sequence of int
        m, n and k.
    itemsize : int
        Bytes of an element.
    limit : int
        Bytes that tiles may take on a card.
    cards : int
    is_factor : bool
        Whether tiles depend on one another as those of a factor do: then twice as many are wanted.
    """
    more = 2 if is_factor else 1
    order = WANTED
    while order < LARGEST and order * 2 * PARTS * more <= max(extents):
        order *= 2
    while order > SMALLEST and order * order * itemsize * HELD > limit:
        order //= 2
    while cards > 1 and order > SMALLEST and max(extents) < order * EACH * cards * more:
        order //= 2
    # as large as the matrix, rather than a sliver beside a tile
    return min(order, max(-(-max(extents) // UNIT) * UNIT, UNIT))
