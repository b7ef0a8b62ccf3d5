"""Tiles between the host and cards: copied directly where pages are locked, else through pinned buffers.

Threads copy between the caller's pages, mapped files among them, and the buffers while the device works.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from ..gpu.context import current_context
from ..gpu.events import Event, record
from ..gpu.page_locked import PinnedBuffer, PinnedPool, shared_pool
from ..gpu.transfers import Block, copy_down, copy_up
from ..tasks.task_list import Tile
from .cards import Card
from .matrices import HostMatrix, TileLayout
from .uploads import Upload
from .workers import Workers
from .zeros import MOST, Zeros

__all__ = ["PIECE", "THREADS", "HostTraffic"]

#: Bytes of a tile that a thread copies at a time, so that all threads work on a tile that is waited for.
PIECE = 8 << 20
#: Threads that copy in each direction.
THREADS = max(1, min(8, os.cpu_count() or 1))

Prepare = Callable[[], None]


class HostTraffic:
    """Uploads and downloads of one call.

    Attributes
    ----------
    home_jobs : dict of Tile to list of Future, or Event
        For each tile the job that its newest version in host memory waits for.
    """

    def __init__(self, up: PinnedPool | None = None, down: PinnedPool | None = None):
        self._up, self._down = up or shared_pool("up"), down or shared_pool("down")
        self._readers = Workers(THREADS, "pyblasgpu-up")
        self._writers = Workers(THREADS, "pyblasgpu-down")
        self.home_jobs: dict[Tile, Any] = {}

    def close(self) -> None:
        """Wait for all copies of threads, and end these."""
        try:
            self._readers.close()
        finally:
            self._writers.close()

    def join(self, tile: Tile) -> None:
        """Wait until the newest version of a tile is in host memory; an error on its way is raised."""
        _join(self.home_jobs.get(tile))

    def is_home(self, tile: Tile) -> bool:
        """Whether the newest version of a tile is in host memory, once all is over."""
        try:
            self.join(tile)
        except BaseException:
            return False
        return True

    def stage(
        self, matrix: HostMatrix, tile: Tile, is_written: bool, target: Block, card: Card, prepare: Prepare
    ) -> Upload:
        """Begin to copy a tile to a card by way of pinned buffers, once the stream has done what `prepare`
        enqueues.
        """
        layout, view = matrix.layout(tile), matrix.view(tile, is_written)
        pieces = list(layout.pieces(PIECE))
        upload = Upload(self._readers, self._up, card.device, card.up, len(pieces), prepare)
        ready = partial(_join, self.home_jobs.get(tile))
        try:
            for first, part in pieces:
                lines = layout.lines_of(view, first, part.lines)
                piece = target.lines_from(first, part.lines)
                upload.add(piece, lines, _buffer_bytes(layout, part), part.array, ready)
        except BaseException:
            upload.stop()
            raise
        return upload

    def upload(self, matrix: HostMatrix, tile: Tile, is_written: bool, target: Block, card: Card) -> Event:
        """Enqueue the copy of a tile whose pages are locked; the event of its end."""
        job = self.home_jobs.get(tile)
        if isinstance(job, Event):
            job.hold_back(card.up)
        else:
            _join(job)
        source = matrix.host_block(tile, is_written)
        parts = None if is_written else matrix.parts(tile, is_brought=True)
        for there, here in _pairs(parts, target, source):
            copy_up(there, here, card.up)
        return record(card.up)

    def download(self, matrix: HostMatrix, tile: Tile, source: Block, card: Card) -> Event:
        """Enqueue the copy of a tile to the caller's array; the event of the end of what reads the card."""
        if matrix.is_written_directly:
            target, parts = matrix.host_block(tile, is_written=True), matrix.parts(tile, is_brought=False)
            for there, here in _pairs(parts, target, source):
                copy_down(there, here, card.down)
            event = self.home_jobs[tile] = record(card.down)
            return event
        layout, view = matrix.layout(tile), matrix.view(tile, is_written=True)
        before = self.home_jobs.get(tile)
        jobs: list[Future[None]] = []
        self.home_jobs[tile] = jobs
        for first, part in layout.pieces(PIECE):
            buffer = self._down.take(_buffer_bytes(layout, part))
            try:
                copy_down(part.block(buffer.address, -1), source.lines_from(first, part.lines), card.down)
                event = record(card.down)
                lines = layout.lines_of(view, first, part.lines)
                arguments = lines, part.array(buffer.array), buffer, event, before
                jobs.append(self._writers.submit(self._write, card.device, *arguments))
            except BaseException:
                self._down.discard(buffer)
                raise
        return event

    def _write(
        self,
        device: int,
        target: np.ndarray,
        source: np.ndarray,
        buffer: PinnedBuffer,
        event: Event,
        before: Any,
    ) -> None:
        with current_context(device):
            try:
                event.join()
            except BaseException:
                self._down.discard(buffer)
                raise
        try:
            _join(before)
            np.copyto(target, source)
        finally:
            self._down.give(buffer)

    def settle(self, matrix: HostMatrix, tile: Tile, zeros: Zeros | None) -> None:
        """Write a tile that no task writes: zeros by a card if pages are locked, else by a thread."""
        if zeros and matrix.rest_is_zero and matrix.is_written_directly and matrix.array.nbytes <= MOST:
            written = zeros.write(matrix.host_block(tile, is_written=True))
            if written is not None:
                self.home_jobs[tile] = written
                return
        target = matrix.view(tile, is_written=True)
        value = 0 if matrix.rest_is_zero else matrix.view(tile, is_written=False)
        self.home_jobs[tile] = [self._writers.submit(np.copyto, target, value)]


def _buffer_bytes(layout: TileLayout, part: TileLayout) -> int:
    """Bytes of the buffer for a part of a tile: those of large tiles fit all large tiles."""
    return max(PIECE, part.nbytes) if layout.nbytes >= PIECE else part.nbytes


def _pairs(
    parts: Callable[[Block], list[Block]] | None, target: Block, source: Block
) -> Iterable[tuple[Block, Block]]:
    """Return the pairs of target and source that are copied for a tile: some parts, or all of it."""
    return [(target, source)] if parts is None else zip(parts(target), parts(source), strict=True)


def _join(job: Any) -> None:
    """Wait for a download, and raise its error."""
    if isinstance(job, list):
        for each in job:
            each.result()
    elif job is not None:
        job.join()
