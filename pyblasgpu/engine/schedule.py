"""The assignment of a list's tasks to cards, and what follows from both alone: repeated calls share it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ..tasks.task_list import Task, TaskList, Tile
from .infos import has_info
from .leaves import overwrites
from .placement import importers
from .tile_cache import uses_by_card

__all__ = ["Needs", "Schedule"]


class Needs(NamedTuple):
    """Tiles of a task, and whether it leaves an info.

    Attributes
    ----------
    tiles : tuple of Tile
        All of them, each once.
    contents : frozenset of Tile
        Tiles that it reads.
    has_info : bool
        Whether its leaf leaves an info.
    """

    tiles: tuple[Tile, ...]
    contents: frozenset[Tile]
    has_info: bool

    @classmethod
    def of(cls, task: Task) -> Needs:
        tiles = tuple(dict.fromkeys(task.tiles))
        contents = task.reads if overwrites(task.leaf) else tiles
        return cls(tiles, frozenset(contents), has_info(task))


class Schedule:
    """Assignment of tasks to cards.

    Parameters
    ----------
    tasks : TaskList
    owners : sequence of int
        By task, the index of its card.

    Attributes
    ----------
    needs : tuple of Needs
        By task.
    uses : dict of int to dict
        Numbers of the tasks that need each tile, by card.
    last_uses : dict of int to list of Tile
        Tiles that no later task needs, by task.
    shapes : frozenset of (str, int, int)
        Matrix, rows and columns of all tiles.
    most_tiles : int
        Most tiles that a task needs.
    infos : dict of int to list of int
        Numbers of a card's tasks that leave an info, by card.
    """

    def __init__(self, tasks: TaskList, owners: Sequence[int]):
        self.tasks, self.owners = tasks, tuple(owners)
        self.needs = tuple(map(Needs.of, tasks.tasks))
        self.uses = uses_by_card(tasks.tasks, owners)
        last = {tile: number for number, task in enumerate(tasks.tasks) for tile in task.tiles}
        self.shapes = frozenset((tile.matrix, *tasks.grids[tile.matrix].tile_shape(tile)) for tile in last)
        self.last_uses: dict[int, list[Tile]] = {}
        for tile, number in last.items():
            self.last_uses.setdefault(number, []).append(tile)
        self.most_tiles = max(len(each.tiles) for each in self.needs)
        self.infos: dict[int, list[int]] = {}
        for number, (needs, owner) in enumerate(zip(self.needs, owners, strict=True)):
            if needs.has_info:
                self.infos.setdefault(owner, []).append(number)
        self._brought_by: dict[frozenset[str], dict[Tile, int]] = {}

    def brought_by(self, on_host: frozenset[str]) -> dict[Tile, int]:
        """The cards that copy tiles from the host, where these matrices are; see `importers`."""
        if len(self.uses) < 2:
            return {}
        if on_host not in self._brought_by:

            def elements(tile: Tile) -> int:
                return prod(self.tasks.grids[tile.matrix].tile_shape(tile)) * (tile.matrix in on_host)

            self._brought_by[on_host] = importers(self.tasks.tasks, self.uses, elements)
        return self._brought_by[on_host]
