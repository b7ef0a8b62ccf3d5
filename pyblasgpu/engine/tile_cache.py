"""The tiles that a card holds: slots of equal size, and which tile gives way to which.

The list of tasks determines when each tile is needed again. The one whose next use is farthest ahead gives
way (Belady, 1966), what has no copy elsewhere last. A slot is written anew only after all that still reads
it. A tile that no card needs again gives its slot back at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

from ..gpu.transfers import Block
from ..operands import Operand
from ..tasks.task_list import Task, Tile
from .cards import Mark

__all__ = ["TileCache", "TileCopy", "uses_by_card"]


class TileCopy:
    """A tile in the memory of a card.

    Attributes
    ----------
    tile : Tile
    operand, block : Operand, Block
        Its memory, for routines and for copies.
    address : int or None
        The slot; None for a tile in the caller's array.
    version : int
        Number of the tile's writes before this copy was made; -1 while nothing is there.
    ready : Mark or None
        When its contents are there.
    uses : dict of int to Mark
        Last read of it, or use of the slot before, by stream. Whoever writes it waits for these and for
        `ready`.
    pins : int
        Requested tasks that will use it.
    is_dirty : bool
        Whether no other memory has this version.
    staged : object or None
        The buffers that a fetch in progress waits for.
    """

    __slots__ = (
        "address",
        "block",
        "is_dirty",
        "operand",
        "pins",
        "ready",
        "staged",
        "tile",
        "uses",
        "version",
    )

    def __init__(self, tile: Tile, operand: Operand, block: Block, address: int | None):
        self.tile, self.operand, self.block, self.address = tile, operand, block, address
        self.version, self.pins, self.is_dirty = -1, 0, False
        self.ready: Mark | None = None
        self.uses: dict[int, Mark] = {}
        self.staged: Any = None

    @property
    def marks(self) -> list[Mark | None]:
        """Return the marks that a write to the slot waits for."""
        return [self.ready, *self.uses.values()]


class TileCache:
    """The tiles of one card.

    Parameters
    ----------
    slots : sequence of int
        Addresses of memory for a tile each.
    uses : mapping of Tile to list of int
        The numbers of the tasks on this card that need a tile, ascending.
    more : callable, optional
        Gives the addresses of more slots, or none.

    Attributes
    ----------
    copies : dict of Tile to TileCopy
    """

    def __init__(
        self, slots: Sequence[int], uses: dict[Tile, list[int]], more: Callable[[], Sequence[int]] = tuple
    ):
        self.copies: dict[Tile, TileCopy] = {}
        self._uses, self._more = uses, more
        self._free: deque[tuple[int, dict[int, Mark]]] = deque()
        self._add(slots)

    def _add(self, slots: Sequence[int]) -> None:
        """Slots that nothing uses yet, which are taken first."""
        self._free.extendleft((address, {}) for address in reversed(slots))

    def next_use(self, tile: Tile, number: int) -> float:
        """The first task from `number` on that needs a tile."""
        numbers = self._uses.get(tile, ())
        index = bisect_left(numbers, number)
        return numbers[index] if index < len(numbers) else inf

    def victim(self, number: int) -> TileCopy | None:
        """Return the copy to evict for a tile of task `number`; None while requested tasks need all."""
        candidates = [copy for copy in self.copies.values() if copy.address is not None and not copy.pins]
        if not candidates:
            return None
        return max(candidates, key=lambda copy: (not copy.is_dirty, self.next_use(copy.tile, number)))

    def find_free_slot(self) -> bool:
        """Whether a slot is free, after allocating more memory where none is, or none that is unused."""
        if not self._free or not all(mark.event.is_done() for mark in self._free[0][1].values()):
            self._add(self._more())
        return bool(self._free)

    def assign_slot(self, tile: Tile, layout: Any, device: int) -> TileCopy:
        """The slot that is free for the longest time for a tile; nothing is there yet."""
        address, uses = self._free.popleft()
        copy = TileCopy(tile, layout.operand(address, device), layout.block(address, device), address)
        copy.uses = uses
        self.copies[tile] = copy
        return copy

    def forget(self, tile: Tile) -> None:
        """Give up a tile that no card needs again, unless it has no copy elsewhere."""
        copy = self.copies.get(tile)
        if copy is not None and copy.address is not None and not copy.pins and not copy.is_dirty:
            self.drop(copy)

    def drop(self, copy: TileCopy) -> None:
        """Give up a copy; its slot is free, for whoever waits for what still uses it."""
        del self.copies[copy.tile]
        if copy.address is not None:
            uses = dict(copy.uses)
            if copy.ready is not None:
                # nothing on a stream is older than what is on it now
                uses.setdefault(copy.ready.stream, copy.ready)
            self._free.append((copy.address, uses))


def uses_by_card(tasks: Iterable[Task], owners: Sequence[int]) -> dict[int, dict[Tile, list[int]]]:
    """The numbers of the tasks that need each tile, by card."""
    uses: dict[int, dict[Tile, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, task in enumerate(tasks):
        for tile in dict.fromkeys(task.tiles):
            uses[owners[number]][tile].append(number)
    return uses
