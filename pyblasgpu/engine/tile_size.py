"""Orders of tiles: large enough for kernels and host, small enough for the memory and for all cards."""

from __future__ import annotations

from collections.abc import Sequence

from ..routine_table import ROUTINES
from ..types import DTYPES
from .placement import dealt_among

__all__ = ["LARGEST", "SMALLEST", "UNIT", "WANTED", "tile_orders"]

#: Rows and columns of a tile, where nothing speaks against it. A kernel on a smaller one leaves
#: multiprocessors without work, and is over before the host has enqueued the next one.
WANTED = 2048
#: Largest tile, and the least number of tiles along a matrix's longest side, so that little is transferred
#: before the first task and after the last one. The output of these routines is a triangle, of which half a
#: tile on the diagonal is transferred for nothing; tiles of a factor depend on one another as well.
LARGEST, PARTS = 4096, 4
PARTS_OF_TRIANGLE = {"syrk": 4, "potrf": 8}
#: Parts of a Cholesky factor on several cards, where they leave tiles of `WANTED` or more: fewer keep cards
#: waiting for each other, more cost the host too much.
PARTS_ON_SEVERAL, STEP = 11, 256
#: Bytes of a line of a tile, where the matrix has lines of twice as many or more: next to running kernels
#: shorter ones are copied at two thirds of the rate.
LINE = 32 << 10
#: Most bytes of a line of a tile of routines whose output is a triangle, while transfers matter. Lines that
#: are `FAR` bytes apart or more are cut into equal parts: those of 16 KiB are copied at 0.65 of their rate.
LINE_OF_TRIANGLE, FAR = 24 << 10, 64 << 10
#: Parts into which dimensions are cut along which no matrix has its lines, where transfers take as long as
#: products: less should be transferred before the first task and go after the last one. Solves have no fewer
#: columns than their kernels need.
NARROW_PARTS, NARROWEST, NARROWEST_SOLVE = 8, 512, 1024
#: Below this kernels lose more than a small memory is worth.
SMALLEST = 256
UNIT = 64
#: Tiles that a card should hold: those of a task, some ahead, some on their way home.
HELD = 24
#: Tiles along the dimension that is dealt, for each card.
EACH = 2
#: Tiles are made smaller, down to `EVENED`, lest some cards have one more than others; multiples of `EVEN`.
EVENED, EVEN = 3072, 128
#: Number of cards that are done with a task of `WANTED` before the host has enqueued the next one for each of
#: them. Of large matrices tiles are longer along the inner dimension then, and tasks fewer.
MANY_CARDS = 4


def tile_orders(
    routine: str,
    extents: Sequence[int],
    letter: str,
    limit: int,
    cards: int,
    has_lines: Sequence[bool] = (),
    inner: int | None = None,
    narrow_up_to: float = 0,
) -> tuple[int, ...]:
    """Rows or columns of the tiles of a call, for each of its extents.

    Parameters
    ----------
    routine : str
    extents : sequence of int
        Extents that are cut into tiles, as `TiledRoutine` has them.
    letter : str
        The dtype.
    limit : int
        Bytes that tiles may take on a card.
    cards : int
    has_lines : sequence of bool
        By extent whether a host matrix has its lines along it; empty of matrices on a card.
    inner : int, optional
        Index of the extent that is summed over; it may be cut less finely than the others.
    narrow_up_to : number
        Longest side up to which transfers take as long as products.
    """
    longest, is_update, itemsize = max(extents), ROUTINES[routine].is_update, DTYPES[letter].itemsize
    order = _wanted(routine, longest, itemsize, cards)
    while order > SMALLEST and order * order * (1 + is_update) * itemsize * HELD > limit:
        order //= 2
    if cards > 1 and routine not in PARTS_OF_TRIANGLE:
        side = max(extent for index, extent in enumerate(extents) if index != inner)
        order = _evened(order, side, dealt_among(routine, cards))
    along = order if inner is None else _along_inner(routine, order, extents, inner, cards, limit // itemsize)
    orders = tuple(along if index == inner else order for index in range(len(extents)))
    # as large as the matrix or half of it, rather than a sliver next to a tile
    whole = _part(longest, 2 if longest >= WANTED else 1, UNIT)
    orders = tuple(min(each, whole) for each in orders)
    if cards > 1 or not has_lines or longest * longest * itemsize * 8 > limit:
        return orders
    if longest <= narrow_up_to:
        orders = _narrow(routine, longest, orders, has_lines, longest <= narrow_up_to // 2)
    if routine in PARTS_OF_TRIANGLE and longest <= 2 * narrow_up_to and longest * itemsize >= FAR:
        return _with_lines(longest, itemsize, orders, has_lines)
    return orders


def _with_lines(
    longest: int, itemsize: int, orders: tuple[int, ...], has_lines: Sequence[bool]
) -> tuple[int, ...]:
    """Orders where lines that are far apart are not short; across lines they are finer then."""
    line = _part(longest, -(-longest * itemsize // LINE_OF_TRIANGLE), UNIT)
    if orders[0] >= line:
        return orders
    across = max(NARROWEST, _part(longest, NARROW_PARTS, UNIT))
    return tuple(line if is_lined else across for is_lined in has_lines)


def _narrow(
    routine: str, longest: int, orders: tuple[int, ...], has_lines: Sequence[bool], is_bound: bool
) -> tuple[int, ...]:
    """Orders where transfers take as long as products, or twice as long where the call `is_bound` by them."""
    part = _part(longest, NARROW_PARTS, UNIT)
    if ROUTINES[routine].is_update:
        along = min(max(orders[1], _part(longest, 2, UNIT)), 2 * orders[1])
        return min(orders[0], max(WANTED // 2, part)), along
    narrow = max(NARROWEST_SOLVE if routine in ("trsm", "potrs") else NARROWEST, part)
    outer = [
        order if is_lined else min(order, narrow)
        for order, is_lined in zip(orders[:2], has_lines, strict=False)
    ]
    # whole inner products finish a tile at once
    inner = [longest if is_bound and min(outer) < order else order for order in orders[2:]]
    return (*outer, *inner)


def _part(side: int, parts: int, unit: int) -> int:
    """One of `parts` parts of a side, a multiple of `unit`."""
    return max(-(-side // (parts * unit)) * unit, unit)


def _along_inner(
    routine: str, order: int, extents: Sequence[int], inner: int, cards: int, elements: int
) -> int:
    """The order along the inner dimension, where that of the others is `order`; memory holds `elements`."""
    # the matrix of a triangular or symmetric routine has the inner dimension twice
    is_once = "k" in ROUTINES[routine].dims
    others = [each for index, each in enumerate(extents) if index != inner or not is_once]
    if cards >= MANY_CARDS and min(others) >= PARTS * LARGEST:
        longer = _part(extents[inner], -(-extents[inner] // min(2 * order, LARGEST)), UNIT)
        if longer * (order if is_once else longer) * HELD <= elements:
            return max(order, longer)
    return max(order, min(2 * order, WANTED)) if ROUTINES[routine].is_update else order


def _wanted(routine: str, longest: int, itemsize: int, cards: int) -> int:
    """The order of tiles where memory is not short."""
    parts = PARTS_OF_TRIANGLE.get(routine, PARTS)
    is_small = routine == "syrk" or longest < PARTS * WANTED  # of larger factors the host has few tasks
    order = max(SMALLEST, WANTED // 2) if routine in PARTS_OF_TRIANGLE and cards == 1 and is_small else WANTED
    while order < LARGEST and order * 2 * parts <= longest:
        order *= 2
    if routine not in PARTS_OF_TRIANGLE and cards == 1 and longest * itemsize >= 2 * LINE:
        order = max(order, min(LINE // itemsize, LARGEST))
    if routine == "potrf" and cards > 1:
        return min(max(WANTED, _part(longest, PARTS_ON_SEVERAL, STEP)), LARGEST)
    while order > WANTED and longest < order * EACH * cards and cards > 1:
        order //= 2
    return order


def _evened(order: int, side: int, among: int) -> int:
    """`order`, or less, of `EVENED` at least, so that a side has a multiple of `among` tiles."""
    parts = -(-side // (order * among)) * among
    even = _part(side, parts, EVEN)
    return even if EVENED <= even < order else order
