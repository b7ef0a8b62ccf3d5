"""LU factors by block columns: a card holds whole block columns, and leaves work on parts of them."""

from __future__ import annotations

from ..tasks.task_list import Grid, Step, TaskList, Tile, TileLeaf, finished

__all__ = ["WINDOWS", "by_columns"]

#: The flag of a leaf with the rows of its operands that are meant, as pairs; None of all rows.
WINDOWS = "windows"


def by_columns(tasks: TaskList, matrix: str = "a") -> TaskList:
    """Replace tiles of `matrix` by its block columns, and note which rows of them each task means."""
    grid = tasks.grids[matrix]
    offsets = grid.row_offsets

    def window(tile: Tile) -> tuple[int, int] | None:
        return (offsets[tile.row], offsets[tile.row + tile.rows]) if tile.matrix == matrix else None

    def column(tile: Tile) -> Tile:
        return Tile(matrix, 0, tile.col) if tile.matrix == matrix else tile

    def step(leaf: TileLeaf, reads: tuple[Tile, ...], writes: tuple[Tile, ...]) -> Step:
        windows = tuple(map(window, (*reads, *writes)))
        leaf = leaf._replace(flags=(*leaf.flags, (WINDOWS, windows)))
        return leaf, tuple(map(column, reads)), tuple(map(column, writes))

    steps = [step(task.leaf, task.reads, task.writes) for task in tasks.tasks]
    grids = {**tasks.grids, matrix: Grid((sum(grid.rows),), grid.cols)}
    return TaskList(tasks.routine, grids, finished(steps))
