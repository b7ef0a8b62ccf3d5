"""How large tiles are: large enough for kernels and host, small enough for the memory and for all cards."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["LARGEST", "SMALLEST", "UNIT", "WANTED", "tile_orders"]

#: Rows and columns of a tile, where nothing speaks against it. A kernel on a smaller one leaves
#: multiprocessors without work, and is over before the host has enqueued the next one.
WANTED = 2048
#: Of larger tiles a matrix should have `PARTS` along its longest side, so that little is transferred before
#: the first task and after the last one. The output of these routines is a triangle, of which half a tile on
#: the diagonal is transferred for nothing; tiles of a factor depend on one another as well.
LARGEST, PARTS = 4096, 4
PARTS_OF_TRIANGLE = {"syrk": 4, "potrf": 8}
#: Bytes of a line of a tile, where the matrix has lines of twice as many or more: calls with shorter ones
#: were slower, though a copy alone hardly is.
LINE = 32 << 10
#: Where the longest side has no more bytes than `FINE_UP_TO`, transfers take as long as products. Then
#: dimensions along which no matrix has its lines are cut into `FINE_PARTS`: less is transferred before the
#: first task and after the last one, in lines as long as before.
FINE_UP_TO, FINE_PARTS, FINEST = 64 << 10, 8, 512
#: Below this kernels lose more than a small memory is worth.
SMALLEST = 256
UNIT = 64
#: Tiles that a card should hold: those of a task, some ahead, some on their way home.
HELD = 24
#: Tiles along the dimension that is dealt, for each card.
EACH = 2


def tile_orders(
    routine: str,
    extents: Sequence[int],
    itemsize: int,
    limit: int,
    cards: int,
    has_lines: Sequence[bool] = (),
) -> tuple[int, ...]:
    """Rows or columns of the tiles of a call, for each of its extents.

    Parameters
    ----------
    routine : str
    extents : sequence of int
        What is cut into tiles, as `TiledRoutine` has it.
    itemsize : int
        Bytes of an element.
    limit : int
        Bytes that tiles may take on a card.
    cards : int
    has_lines : sequence of bool
        By extent whether a host matrix has its lines along it; empty of matrices on a card.
    """
    longest, is_syrk = max(extents), routine == "syrk"
    order = _wanted(routine, longest, itemsize, cards)
    while order > SMALLEST and order * order * (1 + is_syrk) * itemsize * HELD > limit:
        order //= 2
    # the inner dimension may be cut less finely than the triangle
    inner = max(order, min(2 * order, WANTED))
    orders = (order, inner) if is_syrk else (order,) * len(extents)
    # as large as the matrix or half of it, rather than a sliver beside a tile
    orders = tuple(min(each, _part(longest, 2 if longest >= WANTED else 1)) for each in orders)
    if not has_lines or cards > 1 or longest * itemsize > FINE_UP_TO:
        return orders
    fine = max(FINEST, _part(longest, FINE_PARTS))
    return tuple(
        order if is_lined else min(order, fine) for order, is_lined in zip(orders, has_lines, strict=True)
    )


def _part(longest: int, parts: int) -> int:
    """One of `parts` parts of a side, a multiple of `UNIT`."""
    return max(-(-longest // (parts * UNIT)) * UNIT, UNIT)


def _wanted(routine: str, longest: int, itemsize: int, cards: int) -> int:
    """The order of tiles where memory is not short."""
    parts = PARTS_OF_TRIANGLE.get(routine, PARTS)
    order = max(SMALLEST, WANTED // 2) if routine in PARTS_OF_TRIANGLE and cards == 1 else WANTED
    while order < LARGEST and order * 2 * parts <= longest:
        order *= 2
    if routine not in PARTS_OF_TRIANGLE and cards == 1 and longest * itemsize >= 2 * LINE:
        order = max(order, min(LINE // itemsize, LARGEST))
    while order > WANTED and longest < order * EACH * cards * parts // PARTS and cards > 1:
        order //= 2
    return order
