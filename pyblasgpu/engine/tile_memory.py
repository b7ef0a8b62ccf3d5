"""Memory of a card for tiles: allocated in chunks on demand, and kept for later calls.

A GiB takes a card some ten milliseconds to allocate. So a call begins with the memory for its first tiles,
and what it keeps later calls do not allocate again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..errors import PyblasgpuError
from ..gpu import memory
from ..gpu.context import current_context
from ..gpu.events import record
from .cards import Card, Chunk, present

__all__ = ["CHUNK", "TileMemory", "release_tiles", "tile_memory"]

#: Bytes that are allocated at a time, unless a tile is larger.
CHUNK = 256 << 20


class TileMemory:
    """The slots of one call on a card, each for a tile.

    Parameters
    ----------
    card : Card
        Held by this call.
    nbytes : int
        Bytes of a slot.
    count : int
        Slots that there may be.
    """

    def __init__(self, card: Card, nbytes: int, count: int):
        self._card, self._nbytes, self._left = card, nbytes, count
        self._unused = list(card.chunks) if count else []

    def first(self, count: int) -> list[int]:
        """Addresses of `count` slots or more.

        Raises
        ------
        MemoryError
            When the card has no memory for these.
        """
        slots: list[int] = []
        while len(slots) < count and self._left:
            slots += self._next()
        return slots

    def more(self) -> list[int]:
        """Addresses of more slots; none once all are there, or where the card has no more memory."""
        slots: list[int] = []
        while not slots and self._left:
            try:
                slots = self._next()
            except MemoryError:
                self._left = 0
        return slots

    def _allocate(self) -> Chunk:
        """Allocate a chunk of no more slots than are needed, or than the card has, for all its streams."""
        card, count = self._card, min(max(1, CHUNK // self._nbytes), self._left)
        with current_context(card.device):
            while True:
                try:
                    address = memory.allocate(count * self._nbytes, card.device, card.memory)
                    break
                except MemoryError:
                    if count == 1:
                        raise
                    count //= 2
            chunk = Chunk(address, count * self._nbytes)
            card.chunks.append(chunk)
            _follow_memory(card)
        return chunk

    def _next(self) -> list[int]:
        """The slots in the next chunk, one that the card has kept or a new one."""
        chunk = self._unused.pop(0) if self._unused else self._allocate()
        count = min(chunk.nbytes // self._nbytes, self._left)
        self._left -= count
        return [chunk.address + index * self._nbytes for index in range(count)]


def _follow_memory(card: Card) -> None:
    """Let the streams of a card use what is allocated, and what an earlier call has used."""
    allocated = record(card.memory)
    for stream in card.streams:
        allocated.hold_back(stream)


@contextmanager
def tile_memory(card: Card, nbytes: int, count: int, limit: int) -> Iterator[TileMemory]:
    """Memory for at most `count` tiles of `nbytes` bytes; what the card is not to keep is given back.

    With what the card has kept these never are more than `limit` bytes.
    """
    try:
        _give_back(card, _rest(card, nbytes, count, limit))
        if card.chunks and count:
            with current_context(card.device):
                _follow_memory(card)
        yield TileMemory(card, nbytes, count)
    finally:
        with suppress(PyblasgpuError, MemoryError), current_context(card.device):
            for stream in card.streams:
                record(stream).hold_back(card.memory)
        _release(card, card.kept_bytes)


def _rest(card: Card, nbytes: int, count: int, limit: int) -> list[Chunk]:
    """Kept chunks that hold no slot of `nbytes` bytes, or with which `count` slots would exceed `limit`."""
    rest: list[Chunk] = []
    total = slots = 0
    for chunk in card.chunks:
        inside = chunk.nbytes // nbytes
        missing = max(0, count - slots - inside)
        if (count and not inside) or total + chunk.nbytes + missing * nbytes > limit:
            rest.append(chunk)
        else:
            total, slots = total + chunk.nbytes, slots + inside
    return rest


def _release(card: Card, kept: int = 0) -> int:
    """Give back all memory of a card for tiles but `kept` bytes; how many bytes that are."""
    rest: list[Chunk] = []
    total = 0
    for chunk in card.chunks:
        total += chunk.nbytes
        if total > kept:
            rest.append(chunk)
    return _give_back(card, rest)


def _give_back(card: Card, rest: list[Chunk]) -> int:
    """Give back chunks of a card; how many bytes that are."""
    if not rest:
        return 0
    card.chunks[:] = [chunk for chunk in card.chunks if chunk not in rest]
    for chunk in rest:
        with suppress(PyblasgpuError), current_context(card.device):
            memory.release(chunk.address, card.memory)
    with suppress(PyblasgpuError, MemoryError), current_context(card.device):
        memory.synchronize(card.memory)  # then others have it
    return sum(chunk.nbytes for chunk in rest)


def release_tiles(device: int | None = None) -> int:
    """Give back what cards keep that no call uses, those of `device` or all; how many bytes that are."""
    released = 0
    for card in present():
        if device in (None, card.device) and card.lock.acquire(blocking=False):
            try:
                released += _release(card)
            finally:
                card.lock.release()
            memory.trim(card.device)
    return released


memory.reserves.append(release_tiles)
