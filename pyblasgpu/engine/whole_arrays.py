"""Large arrays in pageable host memory, copied to a device and from it as a whole.

The driver stages such copies on one thread. Here threads copy between the array and page-locked buffers, some
pieces ahead of the device, as `host_traffic` does with tiles.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

import numpy as np

from ..gpu import backend, memory
from ..gpu.context import current_context, current_device
from ..gpu.events import Event, record
from ..gpu.page_locked import PinnedBuffer, PinnedPool, is_page_locked, shared_pool
from ..gpu.transfers import Block, copy_down
from .host_traffic import PIECE, THREADS
from .uploads import Upload
from .workers import Workers

__all__ = ["to_device", "to_host"]

#: Pieces that are in buffers at a time.
AHEAD = 2 * THREADS


def to_device(address: int, array: np.ndarray, stream: int) -> None:
    """Copy a contiguous array to the device whose context is current; see `memory.to_device`."""
    if not _is_staged(array):
        memory.to_device(address, array, stream)
        return
    workers = Workers(THREADS, "pyblasgpu-up")
    try:
        pieces = _pieces(array)
        upload = Upload(workers, shared_pool("up"), current_device(), stream, len(pieces))
        for first, part in pieces:
            upload.add(_block(address + first, part.size), part, PIECE, partial(_first, part.size))
        upload.finish()
    finally:
        workers.close()


def _first(count: int, buffer: np.ndarray) -> np.ndarray:
    return buffer[:count]


def to_host(array: np.ndarray, address: int, stream: int) -> None:
    """Copy from the device whose context is current into a contiguous array, and wait for it."""
    if not _is_staged(array):
        memory.to_host(array, address, stream)
        return
    pool, workers, device = shared_pool("down"), Workers(THREADS, "pyblasgpu-down"), current_device()
    jobs: list[Future[None]] = []
    try:
        for first, part in _pieces(array):
            if len(jobs) >= AHEAD:
                jobs[-AHEAD].result()
            buffer = pool.take(PIECE)
            try:
                copy_down(_block(buffer.address, part.size), _block(address + first, part.size), stream)
                jobs.append(workers.submit(_empty, device, part, buffer, record(stream), pool))
            except BaseException:
                pool.discard(buffer)
                raise
    finally:
        workers.close()
    for job in jobs:
        job.result()


def _empty(device: int, part: np.ndarray, buffer: PinnedBuffer, event: Event, pool: PinnedPool) -> None:
    """Copy what a buffer holds after `event`, and give the buffer back."""
    with current_context(device):
        try:
            event.join()
        except BaseException:
            pool.discard(buffer)
            raise
    try:
        np.copyto(part, buffer.array[: part.size])
    finally:
        pool.give(buffer)


def _is_staged(array: np.ndarray) -> bool:
    """Whether the device does not copy the array directly."""
    return not backend.SIMULATED and not is_page_locked(array.ctypes.data, array.nbytes)


def _pieces(array: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The bytes of an array in pieces, each with its distance from the first byte."""
    flat = array.reshape(-1, order="A").view(np.uint8)
    return [(first, flat[first : first + PIECE]) for first in range(0, flat.size, PIECE)]


def _block(address: int, nbytes: int) -> Block:
    return Block(address, nbytes, 1, nbytes, -1)
