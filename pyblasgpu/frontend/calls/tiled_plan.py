"""Routines as lists of tile tasks, and their plans: what repeated calls have in common is found once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from ... import tasks as tasks_module
from ...engine.order import by_blocks, by_columns_of_b, by_lines_of_factor
from ...engine.placement import card_grid, owners_of
from ...engine.schedule import Schedule
from ...tasks import TaskList, Tile, cut
from .tiled_routines import TiledRoutine

__all__ = ["can_hold_output", "made", "plan_of", "task_list", "untouched"]

#: Plans that are kept, and the tasks of the longest one that is: longer calls take longer than to make it.
KEPT, LONGEST = 16, 8192
#: Share of the memory for tiles that the output of a product may take while it is computed as a whole.
HELD_OUTPUT = 1 / 4


def can_hold_output(nbytes: int, limit: int, cards: int) -> bool:
    """Whether cards with `limit` bytes each for tiles can hold all of an output of `nbytes` bytes at once."""
    return nbytes < HELD_OUTPUT * limit * cards


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
    tasks = by_lines_of_factor(tasks, len(weights))
    return Schedule(tasks, owners_of(tasks, weights, tiled.side))


def task_list(tiled: TiledRoutine, orders: tuple[int, ...], scalars: tuple[Any, ...]) -> TaskList:
    """The routine with each extent cut by its order, and with alpha, or alpha and beta."""
    cuts = [cut(extent, order) for extent, order in zip(tiled.extents, orders, strict=True)]
    numbers = dict(zip(tiled.row.scalars, scalars, strict=False))
    make_list: Callable[..., TaskList] = getattr(tasks_module, tiled.row.tasks)
    tasks = make_list(*cuts, **tiled.flags, **numbers)
    return _with_zeros(tasks) if tiled.is_new_output else tasks


def _with_zeros(tasks: TaskList) -> TaskList:
    """Return the list of tasks with zeros in the other triangle of diagonal tiles."""
    flag = {"syrk": "is_new_output", "herk": "is_new_output", "potrf": "clean"}

    def changed(task: Any) -> Any:
        name = flag.get(task.leaf.routine)
        is_first = task.leaf.keywords.get("beta", 0) == 0
        if name is None or not is_first:
            return task
        return task._replace(leaf=task.leaf._replace(flags=(*task.leaf.flags, (name, True))))

    return TaskList(tasks.routine, tasks.grids, tuple(map(changed, tasks.tasks)))


def untouched(tasks: TaskList, output: str) -> list[Tile]:
    """The tiles of the output that no task writes."""
    grid = tasks.grids[output]
    written = {tile for task in tasks.tasks for tile in task.finishes}
    every = (Tile(output, row, col) for row in range(len(grid.rows)) for col in range(len(grid.cols)))
    return [tile for tile in every if tile not in written]
