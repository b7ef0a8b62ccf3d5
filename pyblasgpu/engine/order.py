"""The order of the tasks of products: much to compute for each tile that comes, output that goes home early.

At the beginning every tile is new: one row of tiles of C after the other would wait for each tile of B,
which one product needs. So all tiles of C get the first half of their products first, step by step along k.
Each row of A and column of B that comes then gives products of all tiles of C. Of the second half a tile of C
is finished before the next one begins, and goes home meanwhile.

Where a card cannot hold its part of C, blocks of g by g tiles of C come one after the other instead. A block
whose tiles of A and B are new is computed step by step: 2 g tiles give g^2 products.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from ..tasks.task_list import Task, TaskList, Tile

__all__ = ["BLOCK", "PRODUCTS", "by_blocks"]

#: Rows and columns of a block, in tiles of each card, where a card does not hold its part of C.
BLOCK = 3
#: Routines whose output tiles do not depend on one another.
PRODUCTS = ("gemm", "syrk", "herk", "symm", "hemm")


def by_blocks(tasks: TaskList, cards: tuple[int, int] = (1, 1), holds_output: bool = False) -> TaskList:
    """The same tasks in another order; other routines as they are.

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
