"""Tasks that must have ended before a task begins."""

from __future__ import annotations

from collections.abc import Sequence

from .task_list import Task, Tile

__all__ = ["dependencies"]


def dependencies(tasks: Sequence[Task]) -> list[set[int]]:
    """Return for each task the numbers of those before it that must have ended.

    A task waits for whoever wrote what it reads or writes, and for whoever reads what it overwrites. What
    follows from other dependencies is left out only for tasks on the same tile.
    """
    writer: dict[Tile, int] = {}
    readers: dict[Tile, list[int]] = {}
    needs: list[set[int]] = []
    for number, task in enumerate(tasks):
        reads = [tile for operand in task.reads for tile in operand.each()]
        writes = [tile for operand in task.writes for tile in operand.each()]
        need = {writer[tile] for tile in (*reads, *writes) if tile in writer}
        for tile in writes:
            need.update(readers.pop(tile, ()))
            writer[tile] = number
        for tile in reads:
            readers.setdefault(tile, []).append(number)
        needs.append(need - {number})
    return needs
