"""The order of tasks: much to compute for each tile that is transferred, output that goes home early.

At the beginning every tile is new. One row of tiles of C after the other would wait for each tile of B, which
one product needs. So all tiles of C get the first half of their products first, step by step along k. Each
transferred row of A and column of B then gives products of all tiles of C. Of the second half a tile of C is
finished before the next one begins, and goes home meanwhile.

Where a card cannot hold its part of C, blocks of g by g tiles of C follow one another instead. A block whose
tiles of A and B are new is computed step by step: 2 g tiles give g^2 products.

TRMM begins with the row of the triangle that reads all of B. So some columns of B are computed first, row by
row while the triangle is transferred, and then those that are left, column by column.

Cholesky factors on one card go by block rows of L, or block columns of U. A row needs no tiles but its own
and those that are there, and is final as it ends. By block columns of L, which several cards take, the first
ones wait for most of the transfers, and the last ones have none.

LU on several cards goes panel by panel: each updates all columns, the next panel first. So cards update their
columns while one of them factors a panel. By columns, as one card takes them, each column waits for the panel
before it with all that it has left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from ..tasks.task_list import Task, TaskList, Tile
from ..types import Side

__all__ = ["BLOCK", "PRODUCTS", "by_blocks", "by_columns_of_b", "by_lines_of_factor", "by_panels"]

#: Rows and columns of a block, in tiles of each card, where a card does not hold its part of C.
BLOCK = 3
#: Share of B's columns that TRMM computes first.
FIRST_COLUMNS = 1 / 4
#: Routines whose output tiles do not depend on one another.
PRODUCTS = ("gemm", "syrk", "herk", "symm", "hemm")


def by_blocks(tasks: TaskList, cards: tuple[int, int] = (1, 1), holds_output: bool = False) -> TaskList:
    """Reorder the tasks of a product by blocks of tiles; return those of other routines unchanged.

    The tasks of a tile stay in their order, so that its bits do.

    Parameters
    ----------
    tasks : TaskList
    cards : tuple of int
        The rows and columns of cards to which tiles are dealt in turn.
    holds_output : bool
        Whether the cards hold all of the output at once.
    """
    if tasks.routine not in PRODUCTS:
        return tasks
    steps: dict[Tile, list[Task]] = defaultdict(list)
    for task in tasks.tasks:
        steps[task.writes[0]].append(task)
    early = max(map(len, steps.values())) // 2 if holds_output else 0
    rows, cols = cards if early else (BLOCK * cards[0], BLOCK * cards[1])
    blocks: dict[tuple[int, int], list[Tile]] = defaultdict(list)
    for tile in steps:
        blocks[tile.row // rows, tile.col // cols].append(tile)
    # squares that grow from the first corner: each needs one more row and column of blocks
    squares = sorted(blocks, key=lambda each: (max(each), each))
    ordered = [*_along_k([steps[tile][:early] for square in squares for tile in blocks[square]])]
    for square in squares:
        lists = [steps[tile][early:] for tile in blocks[square]]
        ordered += _along_k(lists) if 0 in square else chain(*lists)
    return replace(tasks, tasks=tuple(ordered))


def _along_k(lists: Sequence[Sequence[Task]]) -> Iterator[Task]:
    """The first task of each list, the second ones, and so on."""
    depth = max(map(len, lists))
    return (each[step] for step in range(depth) for each in lists if step < len(each))


def by_columns_of_b(tasks: TaskList, cards: int, side: Side | None) -> TaskList:
    """TRMM's tasks by groups of columns of B, from the right by rows; other routines as they are.

    Parameters
    ----------
    tasks : TaskList
    cards : int
        To which these columns are dealt in turn.
    side : Side, optional
        Side of the triangle.
    """
    if tasks.routine != "trmm":
        return tasks
    grid = tasks.grids["b"]
    count = len(grid.rows if side is Side.RIGHT else grid.cols)
    first = max(int(FIRST_COLUMNS * count) // cards, 1) * cards

    def group(task: Task) -> int:
        tile = task.writes[0]
        return max((tile.row if side is Side.RIGHT else tile.col) - first + cards, 0) // cards

    return replace(tasks, tasks=tuple(sorted(tasks.tasks, key=group)))


def by_lines_of_factor(tasks: TaskList, cards: int) -> TaskList:
    """POTRF's tasks on one card by block rows of L, or block columns of U; other tasks as they are."""
    if tasks.routine != "potrf" or cards > 1:
        return tasks

    def line(task: Task) -> tuple[int, int]:
        tile = task.writes[0]
        return max(tile.row, tile.col), min(tile.row, tile.col)

    return replace(tasks, tasks=tuple(sorted(tasks.tasks, key=line)))


def by_panels(tasks: TaskList) -> TaskList:
    """LU's tasks by panels; those of a column stay in their order, so that its bits do."""
    panels = len(tasks.grids["piv"].rows)

    def step(task: Task) -> tuple[int, bool]:
        column = task.writes[0].col
        if task.leaf.routine == "getrf":
            return column - 1, False  # with the last update
        read = task.reads[0]
        panel = read.row if read.matrix == "piv" else read.col
        return (panels, True) if panel > column else (panel, column != panel + 1)

    return replace(tasks, tasks=tuple(sorted(tasks.tasks, key=step)))
