"""Plans of routines by tiles: what repeated calls have in common is found once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from ..engine.order import by_blocks, by_columns_of_b
from ..engine.placement import card_grid, owners_of
from ..engine.schedule import Schedule
from .tiled_routines import TiledRoutine, task_list

__all__ = ["made", "plan_of"]

#: Plans that are kept, and the tasks of the longest one that is: longer calls take longer than to make it.
KEPT, LONGEST = 16, 8192


def plan_of(
    tiled: TiledRoutine,
    orders: tuple[int, ...],
    scalars: tuple[Any, ...],
    letter: str,
    weights: Sequence[float],
    holds_output: bool,
) -> Schedule:
    """The tasks of a routine in their order, dealt to cards.

    Parameters
    ----------
    tiled : TiledRoutine
    orders : tuple of int
        Rows or columns of tiles, for each extent.
    scalars : tuple
        alpha, or alpha and beta.
    letter : str
        The dtype, of which the scalars are.
    weights : sequence of float
        The shares of the cards.
    holds_output : bool
        Whether the cards hold all of the output at once.
    """
    parts = [-(-extent // order) for extent, order in zip(tiled.extents, orders, strict=True)]
    count = prod(parts) if len(parts) > 2 else prod(parts) * max(parts)
    find = made if count <= LONGEST else made.__wrapped__
    fields = {**tiled._asdict(), "flags": tuple(tiled.flags.items())}  # a dictionary has no hash
    return find(tuple(fields.values()), orders, scalars, letter, tuple(weights), holds_output)


@lru_cache(maxsize=KEPT)
def made(
    fields: tuple[Any, ...],
    orders: tuple[int, ...],
    scalars: tuple[Any, ...],
    letter: str,
    weights: tuple[float, ...],
    holds_output: bool,
) -> Schedule:
    """The plan of a routine with these fields, its flags as pairs."""
    tiled = TiledRoutine(*fields)
    tasks = task_list(tiled._replace(flags=dict(tiled.flags)), orders, scalars)
    tasks = by_blocks(tasks, card_grid(len(weights)), holds_output)
    tasks = by_columns_of_b(tasks, len(weights), tiled.side)
    return Schedule(tasks, owners_of(tasks, weights, tiled.side))
