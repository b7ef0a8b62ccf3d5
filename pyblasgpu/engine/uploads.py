"""Copies of pageable host memory to a card: threads fill page-locked buffers, and enqueue their copies.

The thread that runs a call only waits for the threads where a kernel needs what they copy. Few buffers are in
use at a time, so that caches of the host still hold what the card reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from ..gpu.context import current_context, make_current
from ..gpu.events import Event, record
from ..gpu.page_locked import PinnedBuffer, PinnedPool
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
    count : int
        Number of pieces.
    prepare : callable, optional
        Enqueues on the stream what precedes the first of them.

    Attributes
    ----------
    event : Event or None
        The end of all pieces, once they are enqueued.
    """

    def __init__(
        self,
        workers: Workers,
        pool: PinnedPool,
        device: int,
        stream: int,
        count: int,
        prepare: Callable[[], None] | None = None,
    ):
        self._workers, self._pool, self._device, self._stream = workers, pool, device, stream
        self._prepare = prepare
        self._error: BaseException | None
        self._pieces: list[Future[None]] = []
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._left, self._error = count, None
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
        try:
            ready()
            _stay_on(self._device)
            buffer = self._pool.take(nbytes)
            try:
                np.copyto(place(buffer.array), source)
                event = self._enqueue(target, buffer)
            except BaseException:
                self._pool.discard(buffer)
                raise
            self._pool.give(buffer, event)
        except BaseException as error:
            self._error = error
            self._ended.set()

    def _enqueue(self, target: Block, buffer: PinnedBuffer) -> Event:
        """Enqueue the copy of a buffer, by one thread at a time; the event of its end."""
        with self._lock:
            if self._prepare is not None:
                self._prepare()
                self._prepare = None
            source = Block(buffer.address, target.width, target.lines, target.pitch, -1)
            copy_up(target, source, self._stream)
            self._left -= 1
            if self._left:
                return buffer.record(self._device, self._stream)
            event = self.event = record(self._stream)
            self._ended.set()
            return event

    def finish(self) -> Event:
        """Wait until all pieces are enqueued; the event of their end. An error of a thread is raised."""
        try:
            self._ended.wait()
            if self._error is not None:
                raise self._error
        except BaseException:
            self.stop()
            raise
        assert self.event is not None
        return self.event

    def stop(self) -> None:
        """Enqueue no more pieces."""
        for piece in self._pieces:
            piece.cancel()
        for piece in self._pieces:
            if not piece.cancelled():
                piece.exception()

    def give_up(self) -> Event:
        """Enqueue no more pieces; the event of the end of those that are."""
        self.stop()
        with current_context(self._device):
            return record(self._stream)


_thread = threading.local()


def _stay_on(device: int) -> None:
    """Let the context of a device be current on a thread of ours from now on: each change costs a call."""
    if getattr(_thread, "device", None) != device:
        make_current(device)
        _thread.device = device
