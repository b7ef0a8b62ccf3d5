"""Cards as the engine uses them: streams of their own for kernels and for each direction of copies."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from ..gpu.driver import after_fork
from ..gpu.events import Event, record
from ..gpu.transfers import Stream, enable_peer_access, memory_bytes

__all__ = [
    "Card",
    "Chunk",
    "Mark",
    "held",
    "known_cards",
    "present",
    "record_mark",
    "wait_for",
]

#: Bytes that a card keeps between calls, and their largest share of its memory.
KEPT, KEPT_SHARE = 8 << 30, 1 / 16


class Chunk(NamedTuple):
    """Memory of a card for tiles."""

    address: int
    nbytes: int


class Mark(NamedTuple):
    """An event, and the stream on which it was recorded."""

    event: Event
    stream: int


class Card:
    """A device with the streams of the engine.

    Attributes
    ----------
    device : int
    compute, up, down, peer : int
        Handles of streams: for kernels, for copies from the host, to it, and from other cards.
    streams : tuple of int
        These four.
    memory : int
        Handle of the stream on which memory for tiles is allocated: nothing there takes time.
    chunks : list of Chunk
        Memory for tiles, what earlier calls left included.
    kept_bytes : int
        Bytes of it that stay for later calls.
    """

    def __init__(self, device: int):
        self.device = device
        self.lock = threading.Lock()
        self.holder: int | None = None  # the thread that has the lock
        self._streams = [Stream(device), *(Stream(device, urgent=True) for _ in range(4))]
        *streams, self.memory = (stream.handle for stream in self._streams)
        self.streams = tuple(streams)
        self.compute, self.up, self.down, self.peer = self.streams
        self.chunks: list[Chunk] = []
        self.kept_bytes = min(KEPT, int(KEPT_SHARE * memory_bytes(device).total))


known_cards: dict[int, Card] = {}
_making = threading.Lock()
after_fork(known_cards.clear)


def _card(device: int) -> Card:
    with _making:
        if device not in known_cards:
            known_cards[device] = Card(device)
        return known_cards[device]


def present() -> list[Card]:
    """The cards that any call has used."""
    return list(known_cards.values())


@contextmanager
def held(devices: Sequence[int]) -> Iterator[list[Card]]:
    """The cards of these devices, for this call alone: another one that streams through them waits.

    Raises
    ------
    RuntimeError
        Where the same thread has them already, as that of a progress callback.
    """
    cards, here = [_card(device) for device in devices], threading.get_ident()
    if any(card.holder == here for card in cards):
        raise RuntimeError("a call by tiles was made from the progress callback of another one")
    for one in devices:
        for other in devices:
            enable_peer_access(one, other)
    with ExitStack() as stack:
        # in one order, lest two calls wait for each other
        for card in sorted(cards, key=lambda each: each.device):
            stack.enter_context(_locked(card, here))
        yield cards


@contextmanager
def _locked(card: Card, thread: int) -> Iterator[None]:
    with card.lock:
        card.holder = thread
        try:
            yield
        finally:
            card.holder = None


def record_mark(stream: int) -> Mark:
    """The mark of what is queued on a stream now; the context of its device is current."""
    return Mark(record(stream), stream)


def wait_for(stream: int, marks: Sequence[Mark | None]) -> None:
    """Let what is queued on `stream` from now on wait for the work of `marks`."""
    for mark in marks:
        if mark is not None and mark.stream != stream:
            mark.event.hold_back(stream)
