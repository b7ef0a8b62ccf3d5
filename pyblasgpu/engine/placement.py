"""Assignment of tasks to cards: a task runs on the card of the tile that it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isqrt, lcm
from typing import Any

from ..tasks import flops
from ..tasks.task_list import Task, TaskList, Tile
from ..types import Side

__all__ = ["card_grid", "deal", "dealt_among", "importers", "owners_of"]

#: Routines of which whole columns of the output are dealt, or rows from the right.
BY_COLUMNS = ("trsm", "trmm", "potrs", "getrf")


def owners_of(tasks: TaskList, weights: Sequence[float], side: Side | None = None) -> list[int]:
    """Return the index of each task's card.

    Triangular routines deal the columns of b, from the right its rows: no card needs what another one
    computes. LU factors deal block columns. Others deal tiles two-dimensionally and block-cyclically, so that
    a card needs the tiles of few rows and columns.

    Parameters
    ----------
    tasks : TaskList
    weights : sequence of float
        Each card's share of the work.
    side : Side, optional
        Side of a triangular routine.
    """
    grid = tasks.grids[_output(tasks.tasks[0])]
    if len(weights) == 1:
        return [0] * len(tasks.tasks)
    if tasks.routine in BY_COLUMNS:
        by_cols = side is not Side.RIGHT
        dealt = deal(grid.cols if by_cols else grid.rows, weights)
        return [dealt[_target(task).col if by_cols else _target(task).row] for task in tasks.tasks]
    rows, cols = card_grid(len(weights))
    row_work, col_work = _work(tasks)
    by_row = deal(row_work, [sum(weights[r * cols : (r + 1) * cols]) for r in range(rows)])
    by_col = deal(col_work, [sum(weights[c::cols]) for c in range(cols)])
    return [by_row[_target(task).row] * cols + by_col[_target(task).col] for task in tasks.tasks]


def _work(tasks: TaskList) -> tuple[list[float], list[float]]:
    """The work in each row and in each column of output tiles: of a triangle they differ."""
    grid = tasks.grids[_output(tasks.tasks[0])]
    rows, cols = [0.0] * len(grid.rows), [0.0] * len(grid.cols)
    for task in tasks.tasks:
        target, work = _target(task), flops(tasks, task)
        rows[target.row] += work
        cols[target.col] += work
    return rows, cols


def importers(
    tasks: Iterable[Task], uses: Mapping[int, Mapping[Tile, Any]], size: Callable[[Tile], int]
) -> dict[Tile, int]:
    """Return by tile the card that copies it from the host, of those that need it: all links carry equally
    much.

    Parameters
    ----------
    tasks : iterable of Task
    uses : mapping of int to mapping of Tile
        Tiles that each card needs.
    size : callable
        Returns the size of a tile in host memory, 0 for others.
    """
    chosen: dict[Tile, int] = {}
    brought = dict.fromkeys(uses, 0)
    for task in tasks:
        for tile in (*task.reads, *task.writes):
            if tile not in chosen:
                needing = [card for card in uses if tile in uses[card]]
                chosen[tile] = min(needing, key=lambda card: (brought[card], card))
                brought[chosen[tile]] += size(tile)
    return chosen


def _target(task: Task) -> Tile:
    return task.writes[0]


def _output(task: Task) -> str:
    return _target(task).matrix


def card_grid(count: int) -> tuple[int, int]:
    """Cards as a grid, as square as it can be, of no more rows than columns."""
    rows = next(each for each in range(isqrt(count), 0, -1) if count % each == 0)
    return rows, count // rows


def dealt_among(routine: str, count: int) -> int:
    """Return a number of tiles along a side of the output that deals each of `count` cards equally many."""
    return count if routine in BY_COLUMNS else lcm(*card_grid(count))


def deal(extents: Sequence[float], weights: Sequence[float]) -> list[int]:
    """Deal blocks in turn, the largest first, so that at each moment everyone has had what `weights` say."""
    dealt = [0] * len(extents)
    had = [0.0] * len(weights)
    for block in sorted(range(len(extents)), key=lambda each: -extents[each]):
        extent = extents[block]
        index = min(range(len(weights)), key=lambda each: ((had[each] + extent) / weights[each], each))
        had[index] += extent
        dealt[block] = index
    return dealt
