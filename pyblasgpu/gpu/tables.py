"""Tables that the host makes for a launch: small arrays, copied to a device in order of a stream."""

from __future__ import annotations

import ctypes

import numpy as np

from . import backend, events, memory
from .driver import after_fork, check, load
from .page_locked import PinnedBuffer, shared_pool

__all__ = ["LEAST", "send"]

#: Bytes of the smallest buffer: tables of equal size classes share buffers.
LEAST = 1 << 12

#: Buffers that graphs read whenever they are launched, for the life of the process.
_captured: list[PinnedBuffer] = []
after_fork(_captured.clear)


def send(table: np.ndarray, address: int, stream: int) -> None:
    """Copy a contiguous array to device memory on `stream`, and return once the array may change.

    The copy is from page-locked memory, so the host does not wait. The context of the stream's device is
    current. A graph that captures the copy keeps what it read.
    """
    if backend.SIMULATED:
        memory.to_device(address, table, stream)
        return
    pool, is_captured = shared_pool("tables"), events.is_captured(stream)
    nbytes = 1 << max(LEAST, table.nbytes - 1).bit_length()
    buffer = _allocated(nbytes) if is_captured else pool.take(nbytes)
    ctypes.memmove(buffer.address, table.ctypes.data, table.nbytes)
    try:
        check(load().cuMemcpyHtoDAsync(address, buffer.address, table.nbytes, stream), "cuMemcpyHtoDAsync")
    finally:
        if is_captured:
            _captured.append(buffer)
        else:
            pool.give(buffer, events.record(stream))


def _allocated(nbytes: int) -> PinnedBuffer:
    """Return a new buffer; a capture of this thread, which forbids allocations by default, goes on."""
    driver = load()
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = check(driver.cuThreadExchangeStreamCaptureMode(relaxed), "cuThreadExchangeStreamCaptureMode")
    try:
        return PinnedBuffer(nbytes)
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)
