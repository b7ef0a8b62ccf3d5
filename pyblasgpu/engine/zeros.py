"""Zeros that a card writes to page-locked memory of the host. Threads would hold up copies of tiles there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..errors import PyblasgpuError
from ..gpu import memory
from ..gpu.context import current_context
from ..gpu.events import Event, record
from ..gpu.transfers import Block, copy_down
from .cards import Card

__all__ = ["MOST", "Zeros", "zeros_of"]

#: Bytes of a matrix up to which a card writes its zeros. Of larger ones final tiles would wait for them.
MOST = 1 << 29


class Zeros:
    """Memory of a card that is zero, copied to the host before any tile.

    Parameters
    ----------
    card : Card
        Held by this call.
    """

    def __init__(self, card: Card) -> None:
        self._card, self._address, self._nbytes = card, 0, 0

    def write(self, target: Block) -> Event | None:
        """Enqueue zeros for a block of page-locked memory; the event of their end, None without memory."""
        card, nbytes = self._card, target.width * target.lines
        with current_context(card.device):
            try:
                self._take(nbytes)
            except MemoryError:
                return None
            zeros = Block(self._address, target.width, target.lines, target.width, card.device)
            copy_down(target, zeros, card.down)
            return record(card.down)

    def _take(self, nbytes: int) -> None:
        """Take memory for zeros, unless it is there."""
        if self._nbytes < nbytes:
            self.close()
            self._address = memory.allocate(nbytes, self._card.device, self._card.down)
            self._nbytes = nbytes
            memory.clear(self._address, nbytes, self._card.down)

    def close(self) -> None:
        """Give back the memory once all is written."""
        if self._nbytes:
            with suppress(PyblasgpuError, MemoryError), current_context(self._card.device):
                memory.release(self._address, self._card.down)
            self._nbytes = 0


@contextmanager
def zeros_of(card: Card) -> Iterator[Zeros]:
    """The zeros of a card, which are enqueued in the block."""
    zeros = Zeros(card)
    try:
        yield zeros
    finally:
        zeros.close()
