"""The order of the tasks of products: blocks of output tiles, so that few tiles give much to compute.

At the beginning every tile is new: one row of tiles of C after the other would wait for each tile of B,
which one product needs. In a block of g by g tiles of C, computed together, 2 g tiles give g^2 products.
Later, when the tiles of A and B are there, a tile of C is finished before the next one begins, and goes home
meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from ..tasks.task_list import Task, TaskList, Tile

__all__ = ["BLOCK", "PRODUCTS", "by_blocks"]

#: Rows and columns of a block, in tiles of each card.
BLOCK = 3
#: Routines whose output tiles do not depend on one another.
PRODUCTS = ("gemm", "syrk", "herk", "symm", "hemm")


def by_blocks(tasks: TaskList, cards: tuple[int, int] = (1, 1)) -> TaskList:
    """The same tasks, block by block of output tiles; other routines as they are.

    `cards` are the rows and columns of cards to which tiles are dealt in turn. The tasks of a tile stay in
    their order, so that its bits do.
    """
    if tasks.routine not in PRODUCTS:
        return tasks
    rows, cols = (BLOCK * count for count in cards)
    steps: dict[Tile, list[Task]] = defaultdict(list)
    for task in tasks.tasks:
        steps[task.writes[0]].append(task)
    blocks: dict[tuple[int, int], list[Tile]] = defaultdict(list)
    for tile in steps:
        blocks[tile.row // rows, tile.col // cols].append(tile)
    ordered: list[Task] = []
    # squares that grow from the first corner: each needs one more row and column of blocks
    for block in sorted(blocks, key=lambda each: (max(each), each)):
        lists = [steps[tile] for tile in blocks[block]]
        if 0 in block:
            depth = max(map(len, lists))
            ordered += [each[step] for step in range(depth) for each in lists if step < len(each)]
        else:
            ordered += [task for each in lists for task in each]
    return replace(tasks, tasks=tuple(ordered))
