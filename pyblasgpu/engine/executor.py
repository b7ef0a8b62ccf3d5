"""Executes a list of tasks: fetches what a task reads, runs its leaf, copies final tiles home.

One thread enqueues everything, in the order of the list, so that whatever waits on a device waits for what is
enqueued already. It runs ahead of the devices by a few tasks, and requests tiles further ahead: their slots
are reserved, host threads stage them, copies begin.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..errors import CallCancelled
from ..gpu.context import current_context
from ..gpu.events import Event
from ..gpu.transfers import copy_peer
from ..operands import Operand
from ..tasks.task_list import Task, Tile
from .cards import Card, Mark, record_mark, wait_for
from .host_traffic import HostTraffic
from .leaves import EnqueueLeaf
from .matrices import DeviceMatrix, HostMatrix, Matrix
from .schedule import Schedule
from .tile_cache import TileCache, TileCopy

__all__ = ["AHEAD", "AHEAD_ON_SEVERAL", "FEW", "IN_FLIGHT", "MOST_IN_FLIGHT", "TaskExecutor"]

#: Tasks whose tiles are requested before they are enqueued, on one card and on several. These wait for each
#: other, and a copy that waits holds up those that were requested after it.
AHEAD, AHEAD_ON_SEVERAL = 24, 8
#: Tasks that a card may have before it, enqueued and not done; more while another card has `FEW` or less.
#: Many in a row are of one card, as those of a tile or of a column of tiles. More tasks in flight take more
#: memory, as slots are written anew once tasks are done.
IN_FLIGHT, MOST_IN_FLIGHT = 32, 128
FEW = 8


class TaskExecutor:
    """One run of a list of tasks.

    Parameters
    ----------
    schedule : Schedule
    matrices : mapping of str to Matrix
    cards : sequence of Card
    caches : sequence of TileCache
        One a card.
    traffic : HostTraffic
    enqueue : callable
        See `leaves`.
    infos : sequence of callable
        For each card ``infos[card](number)``: the operand for the info of the leaf of a task.

    importers : mapping of Tile to int, optional
        The cards that copy tiles from the host; by default those that need them first.

    Attributes
    ----------
    versions : Counter of Tile
        Number of writes of each tile by enqueued tasks.
    done : int
        Tasks that are known to be done.
    """

    def __init__(
        self,
        schedule: Schedule,
        matrices: Mapping[str, Matrix],
        cards: Sequence[Card],
        caches: Sequence[TileCache],
        traffic: HostTraffic,
        enqueue: EnqueueLeaf,
        infos: Sequence[Callable[[int], Operand]] = (),
        importers: Mapping[Tile, int] | None = None,
    ):
        self.routine, self.tasks = schedule.tasks.routine, schedule.tasks.tasks
        self.matrices, self.owners, self.last_uses = matrices, schedule.owners, schedule.last_uses
        self.needs = schedule.needs
        self.cards, self.caches, self.traffic = cards, caches, traffic
        self.enqueue, self.infos, self.importers = enqueue, infos, importers or {}
        self.versions: Counter[Tile] = Counter()
        self.home_versions: Counter[Tile] = Counter()
        self.final: list[Tile] = []
        self.done = 0
        self._requested: deque[list[TileCopy]] = deque()  # what is pinned for each of the next tasks
        self._next_request = 0
        self._unwritten: Counter[Tile] = Counter()  # writes that are requested and not enqueued
        self._in_flight: list[deque[Event]] = [deque() for _ in cards]

    # ---------------------------------------------------------------------------------------- execution

    def run(self, is_cancelled: Callable[[], bool], progress: Callable[[int, int], None]) -> None:
        """Enqueue all tasks, and wait until all that is final is home."""
        total = len(self.tasks)
        for number, task in enumerate(self.tasks):
            if is_cancelled():
                raise CallCancelled(f"{self.routine}: cancelled")
            self._request_ahead(number)
            self._issue(number, task)
            progress(self.done, total)
        for index in range(len(self.cards)):
            while self._in_flight[index]:
                self._retire(index)
                progress(self.done, total)

    def _retire(self, index: int) -> None:
        """Wait for the oldest task that a card has before it."""
        self._in_flight[index].popleft().join()  # whichever context is current
        self.done += 1

    def _has_room(self, index: int) -> bool:
        """Whether a card may have another task before it."""
        count = len(self._in_flight[index])
        return count < IN_FLIGHT or (count < MOST_IN_FLIGHT and self._is_another_idle(index))

    def _is_another_idle(self, index: int) -> bool:
        """Whether a card but this one has few tasks before it."""
        others = (events for other, events in enumerate(self._in_flight) if other != index)
        return any(len(events) <= FEW or events[-FEW - 1].is_done() for events in others)

    # ------------------------------------------------------------------------------------------- requests

    def _request_ahead(self, number: int) -> None:
        """Request the tiles of task `number`, and of some after it as far as slots and buffers go."""
        ahead = AHEAD if len(self.cards) == 1 else AHEAD_ON_SEVERAL
        last = min(number + ahead, len(self.tasks))
        while self._next_request < last:
            if not self._request(self._next_request, must=self._next_request == number):
                return
            self._next_request += 1

    def _request(self, number: int, must: bool) -> bool:
        """Reserve and pin the tiles of a task, and begin to fetch them; False where that must wait."""
        needs, index = self.needs[number], self.owners[number]
        pinned: list[TileCopy] = []
        for tile in needs.tiles:
            copy = self._reserve(index, tile, number)
            if copy is None:
                for each in pinned:  # what is on its way goes on
                    each.pins -= 1
                if must:
                    raise MemoryError(
                        f"the tiles of one task do not fit into the memory that device "
                        f"{self.cards[index].device} may use"
                    )
                return False
            copy.pins += 1
            pinned.append(copy)
            if tile in needs.contents and not self._unwritten[tile]:
                pinned += self._begin_import(index, tile, number)
                self._begin_fetch(index, copy)
        self._requested.append(pinned)
        self._unwritten.update(self.tasks[number].writes)
        return True

    def _reserve(self, index: int, tile: Tile, number: int) -> TileCopy | None:
        """The copy of a tile on a card, or a slot for it; None where all slots are pinned."""
        cache, matrix = self.caches[index], self.matrices[tile.matrix]
        device = self.cards[index].device
        copy = cache.copies.get(tile)
        if copy is not None:
            return copy
        if isinstance(matrix, DeviceMatrix) and matrix.device == device:
            return self._home_copy(index, matrix, tile)
        if not cache.find_free_slot():
            victim = cache.victim(number)
            if victim is None:
                return None
            self._evict(index, victim)
        return cache.assign_slot(tile, matrix.layout(tile), device)

    def _home_copy(self, index: int, matrix: DeviceMatrix, tile: Tile) -> TileCopy:
        """A tile's place in the caller's array."""
        operand, block = matrix.home_operand(tile), matrix.home_block(tile)
        copy = self.caches[index].copies[tile] = TileCopy(tile, operand, block, None)
        copy.version = self.home_versions[tile]
        return copy

    def _evict(self, index: int, copy: TileCopy) -> None:
        card = self.cards[index]
        if copy.staged is not None:
            staged, copy.staged = copy.staged, None
            copy.uses[card.up] = Mark(staged.give_up(), card.up)
        if copy.is_dirty:
            with current_context(card.device):
                self._bring_home(index, copy)
        self.caches[index].drop(copy)

    # -------------------------------------------------------------------------------------------- fetches

    def _begin_import(self, index: int, tile: Tile, number: int) -> list[TileCopy]:
        """Begin to copy a tile from the host to another card, from which this one then copies it.

        That card's copy is pinned and given, if there is to be one.
        """
        importer = self.importers.get(tile, index)
        is_at_home = self.home_versions[tile] == self.versions[tile]
        if importer == index or not is_at_home or any(tile in each.copies for each in self._others(index)):
            return []
        if self.caches[index].copies[tile].version == self.versions[tile]:
            return []
        copy = self._reserve(importer, tile, number)
        if copy is None or copy.address is None:
            return []
        copy.pins += 1
        self._begin_fetch(importer, copy)
        return [copy]

    def _others(self, index: int) -> list[TileCache]:
        """Return the caches of the other cards."""
        return [cache for other, cache in enumerate(self.caches) if other != index]

    def _begin_fetch(self, index: int, copy: TileCopy) -> None:
        """Begin to copy the newest version to a card, if it is not there."""
        if copy.version == self.versions[copy.tile] or copy.staged is not None:
            return
        matrix = self.matrices[copy.tile.matrix]
        if self._is_staged_elsewhere(index, copy.tile):
            return
        source = self._newest_elsewhere(index, copy.tile)
        if source is None and isinstance(matrix, HostMatrix):
            is_written = self.home_versions[copy.tile] > 0
            if not matrix.is_direct(is_written):
                self._stage(index, copy, matrix, is_written)
                return
        self._fetch(index, copy)

    def _stage(self, index: int, copy: TileCopy, matrix: HostMatrix, is_written: bool) -> None:
        """Begin to copy a tile to a card through pinned buffers, after what still uses its slot."""
        card = self.cards[index]
        prepare = partial(self._wait_for_slot, card, copy)
        copy.staged = self.traffic.stage(matrix, copy.tile, is_written, copy.block, card, prepare)

    @staticmethod
    def _wait_for_slot(card: Card, copy: TileCopy) -> None:
        wait_for(card.up, copy.marks)

    def _is_staged_elsewhere(self, index: int, tile: Tile) -> bool:
        """Whether the tile is on its way to another card through a pinned buffer."""
        return any(tile in cache.copies and cache.copies[tile].staged for cache in self._others(index))

    def _newest_elsewhere(self, index: int, tile: Tile) -> tuple[int, TileCopy] | None:
        """A copy of the newest version on another card, and which card that is."""
        version = self.versions[tile]
        for other, cache in enumerate(self.caches):
            copy = cache.copies.get(tile)
            if other != index and copy is not None and copy.version == version and copy.ready is not None:
                return other, copy
        return None

    def _fetch(self, index: int, copy: TileCopy) -> None:
        """Enqueue the copy of the newest version to a card."""
        card, tile = self.cards[index], copy.tile
        matrix, version = self.matrices[tile.matrix], self.versions[tile]
        with current_context(card.device):
            if copy.staged is not None:
                self._upload_staged(card, copy)
                return
            for other, cache in enumerate(self.caches):
                if tile in cache.copies and cache.copies[tile].staged is not None:
                    self._fetch(other, cache.copies[tile])
            newest = self._newest_elsewhere(index, tile)
            if newest is not None:
                self._fetch_from_card(card, copy, newest[1])
            elif isinstance(matrix, HostMatrix):
                is_written = self.home_versions[tile] > 0
                if not matrix.is_direct(is_written):
                    self._stage(index, copy, matrix, is_written)
                    self._upload_staged(card, copy)
                    return
                wait_for(card.up, copy.marks)
                event = self.traffic.upload(matrix, tile, is_written, copy.block, card)
                self._arrives(copy, event, card.up, version)
            else:
                self._fetch_from_card(card, copy, self._at_home(tile))

    def _upload_staged(self, card: Card, copy: TileCopy) -> None:
        """Wait until all of a tile that is staged is enqueued."""
        staged, copy.staged = copy.staged, None
        self._arrives(copy, staged.finish(), card.up, self.versions[copy.tile])

    def _at_home(self, tile: Tile) -> TileCopy:
        """A tile in the caller's array on a card."""
        matrix = self.matrices[tile.matrix]
        assert isinstance(matrix, DeviceMatrix)
        for index, card in enumerate(self.cards):
            if card.device == matrix.device:
                return self.caches[index].copies.get(tile) or self._home_copy(index, matrix, tile)
        raise AssertionError("the card that has a matrix is always among those of the call")

    def _fetch_from_card(self, card: Card, copy: TileCopy, source: TileCopy) -> None:
        wait_for(card.peer, [*copy.marks, source.ready])
        copy_peer(copy.block, source.block, card.peer)
        mark = record_mark(card.peer)
        source.uses[card.peer] = mark
        copy.uses, copy.ready, copy.version = {}, mark, source.version

    @staticmethod
    def _arrives(copy: TileCopy, event: Event, stream: int, version: int) -> None:
        copy.uses, copy.ready, copy.version = {}, Mark(event, stream), version

    # ---------------------------------------------------------------------------------------------- tasks

    def _issue(self, number: int, task: Task) -> None:
        """Enqueue a task, whose tiles are requested."""
        index = self.owners[number]
        card, copies, needs = self.cards[index], self._requested.popleft(), self.needs[number]
        # of a tile that is copied by way of another card, its own copy is the first one
        by_tile = {copy.tile: copy for copy in reversed(copies)}
        reads = [by_tile[tile] for tile in task.reads]
        writes = [by_tile[tile] for tile in task.writes]
        for tile in needs.tiles:
            if tile in needs.contents and by_tile[tile].version != self.versions[tile]:
                self._fetch(index, by_tile[tile])
        while not self._has_room(index):
            self._retire(index)
        with current_context(card.device):
            # a kernel that has read a tile has waited for it
            wait_for(card.compute, [copy.ready for copy in reads if card.compute not in copy.uses])
            for copy in writes:
                wait_for(card.compute, copy.marks)
            infos = [self.infos[index](number)] if needs.has_info else []
            operands = [*infos, *(copy.operand for copy in (*reads, *writes))]
            self.enqueue(task.leaf, operands, card.compute)
            mark = record_mark(card.compute)
            self._in_flight[index].append(mark.event)
            for copy in reads:
                copy.uses[card.compute] = mark
            for copy in writes:
                self._written(index, copy, mark)
            for tile in task.finishes:
                self._finish(index, by_tile[tile])
        for copy in copies:
            copy.pins -= 1
        for tile in self.last_uses.get(number, ()):
            for cache in self.caches:
                cache.forget(tile)

    def _written(self, index: int, copy: TileCopy, mark: Any) -> None:
        """Note that a task writes a tile: copies on other cards are old."""
        tile = copy.tile
        self._unwritten[tile] -= 1
        self.versions[tile] += 1
        for cache in self.caches:
            if tile in cache.copies:
                cache.copies[tile].is_dirty = False
        copy.version, copy.ready, copy.uses, copy.is_dirty = self.versions[tile], mark, {}, True
        if copy.address is None:
            copy.is_dirty, self.home_versions[tile] = False, copy.version

    def _finish(self, index: int, copy: TileCopy) -> None:
        """Copy a final tile home."""
        if copy.is_dirty:
            self._bring_home(index, copy)
        self.final.append(copy.tile)

    def _bring_home(self, index: int, copy: TileCopy) -> None:
        """Enqueue the copy of a tile to where its matrix lives."""
        card, tile = self.cards[index], copy.tile
        matrix = self.matrices[tile.matrix]
        if isinstance(matrix, HostMatrix):
            wait_for(card.down, [copy.ready])
            self.home_versions[tile] = copy.version  # before: if this fails, a part may be there
            event = self.traffic.download(matrix, tile, copy.block, card)
            copy.uses[card.down] = Mark(event, card.down)
        else:
            home = self._at_home(tile)
            wait_for(card.peer, [copy.ready, *home.marks])
            copy_peer(home.block, copy.block, card.peer)
            mark = copy.uses[card.peer] = record_mark(card.peer)
            home.uses, home.ready, home.version = {}, mark, copy.version
        copy.is_dirty, self.home_versions[tile] = False, copy.version
