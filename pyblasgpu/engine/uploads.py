"""Copies of pageable host memory to a card: threads fill page-locked buffers, and enqueue their copies.

The thread that runs a call only waits for the threads where a kernel needs what they copy. Few buffers are in
use at a time, so that caches of the host still hold what the card reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

import numpy as np

from ..gpu.context import current_context
from ..gpu.events import Event, record
from ..gpu.page_locked import PinnedPool
from ..gpu.transfers import Block, copy_up
from .workers import Workers

__all__ = ["Upload"]


class Upload:
    """A copy to a card that is under way, in pieces.

    Parameters
    ----------
    workers : Workers
        The threads.
    pool : PinnedPool
        Their buffers.
    device, stream : int
        The stream of the copies, and its device.
    prepare : callable
        Enqueues on the stream what precedes the first of them.

    Attributes
    ----------
    event : Event or None
        The end of the piece that was enqueued last.
    """

    def __init__(
        self,
        workers: Workers,
        pool: PinnedPool,
        device: int,
        stream: int,
        prepare: Callable[[], None] = lambda: None,
    ):
        self._workers, self._pool, self._device, self._stream = workers, pool, device, stream
        self._prepare, self._is_prepared = prepare, False
        self._pieces: list[Future[None]] = []
        self._lock = threading.Lock()
        self.event: Event | None = None

    def add(
        self,
        target: Block,
        source: np.ndarray,
        nbytes: int,
        place: Callable[[np.ndarray], np.ndarray],
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Have a thread copy a piece.

        Parameters
        ----------
        target : Block
            Its place on the card.
        source : numpy.ndarray
            Elements of the piece.
        nbytes : int
            Bytes of a buffer for it.
        place : callable
            Returns the elements in the bytes of a buffer, where they are as in `target`.
        ready : callable
            Waits until the source may be read.
        """
        self._pieces.append(self._workers.submit(self._send, target, source, nbytes, place, ready))

    def _send(
        self,
        target: Block,
        source: np.ndarray,
        nbytes: int,
        place: Callable[[np.ndarray], np.ndarray],
        ready: Callable[[], None],
    ) -> None:
        """Copy a piece into a buffer, and enqueue the copy to the card."""
        ready()
        with current_context(self._device):
            buffer = self._pool.take(nbytes)
            try:
                np.copyto(place(buffer.array), source)
                event = self._enqueue(target, buffer.address)
            except BaseException:
                self._pool.discard(buffer)
                raise
            self._pool.give(buffer, event)

    def _enqueue(self, target: Block, address: int) -> Event:
        """Enqueue the copy of a buffer; one thread at a time does, so that `event` is the last one's."""
        with self._lock:
            if not self._is_prepared:
                self._prepare()
                self._is_prepared = True
            copy_up(target, Block(address, target.width, target.lines, target.pitch, -1), self._stream)
            self.event = record(self._stream)
            return self.event

    def finish(self) -> Event:
        """Wait until all pieces are enqueued; the event of their end. An error of a thread is raised."""
        try:
            for piece in self._pieces:
                piece.result()
        except BaseException:
            self.give_up()
            raise
        assert self.event is not None
        return self.event

    def give_up(self) -> Event | None:
        """Enqueue no more pieces; the event of the end of those that are, if any."""
        for piece in self._pieces:
            piece.cancel()
        for piece in self._pieces:
            if not piece.cancelled():
                with suppress(BaseException):
                    piece.exception()
        return self.event
