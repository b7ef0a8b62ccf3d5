"""Page-locked host memory, which the device copies at full speed while the host goes on.

A pool keeps what it has allocated: page-locking takes longer than copying. Some context is current on the
threads that call these functions.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from contextlib import suppress
from typing import Any
from weakref import finalize

import numpy as np

from ..errors import PyblasgpuError
from ..operands import span
from .context import current_context, current_device
from .driver import after_fork, check, load
from .events import Event, record

__all__ = [
    "PAGE",
    "Pages",
    "PinnedBuffer",
    "PinnedPool",
    "is_page_locked",
    "page_locked",
    "shared_pool",
    "shared_pools",
    "whole_pages",
]

PAGE = 4096
#: Bytes from which on a buffer is memory of the process, whose pages are large.
LARGE = 4 << 20
#: Bytes of page-locked memory that the pool of the process may hold, and keeps.
MAX_POOLED = 1 << 28


class Pages:
    """Memory of the host whose pages can be locked.

    Attributes
    ----------
    address, nbytes : int
    locked_by : int
        The device that was current when they were locked, for all devices; -1 while they are not.
    """

    def __init__(self, address: int, nbytes: int):
        self.address, self.nbytes, self.locked_by = address, nbytes, -1

    def lock(self) -> Any:
        """Lock the pages; return the status of the driver."""
        driver = load()
        (status,) = driver.cuMemHostRegister(self.address, self.nbytes, driver.CU_MEMHOSTREGISTER_PORTABLE)
        if not status:
            self.locked_by = current_device()
        return status

    def unlock(self) -> None:
        """Unlock the pages, which nothing uses."""
        if self.locked_by >= 0:
            # in a forked process they are not locked
            with suppress(PyblasgpuError), current_context(self.locked_by):
                load().cuMemHostUnregister(self.address)
            self.locked_by = -1


def whole_pages(nbytes: int) -> np.ndarray[Any, Any]:
    """Memory of as many whole pages as `nbytes` bytes need; NumPy has the system take large ones."""
    nbytes = -(-nbytes // PAGE) * PAGE
    memory = np.empty(nbytes + PAGE, np.uint8)
    return memory[-memory.ctypes.data % PAGE :][:nbytes]


class PinnedBuffer:
    """Page-locked memory of every device, held as long as this object.

    Attributes
    ----------
    address, nbytes : int
    array : numpy.ndarray
        Its bytes.
    """

    def __init__(self, nbytes: int):
        self.nbytes = nbytes
        self._events: dict[int, Event] = {}
        if nbytes >= LARGE:
            # sooner than the driver allocates small pages
            self.array = whole_pages(nbytes)
            self.array[::PAGE] = 0
            pages = Pages(self.array.ctypes.data, self.array.nbytes)
            check((pages.lock(),), "cuMemHostRegister")
            self.address = pages.address
            finalize(self, _unlock, pages, self.array).atexit = False
            return
        driver, device = load(), current_device()
        flags = driver.CU_MEMHOSTALLOC_PORTABLE
        self.address = int(check(driver.cuMemHostAlloc(nbytes, flags), "cuMemHostAlloc"))
        self.array = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(self.address))
        finalize(self, _free, self.address, device).atexit = False

    def record(self, device: int, stream: int) -> Event:
        """The event of what is queued on a stream of a device: the same one each time, once it is over."""
        event = self._events.get(device)
        if event is None:
            event = self._events[device] = record(stream)
        else:
            event.record(stream)
        return event


def _unlock(pages: Pages, memory: np.ndarray[Any, Any]) -> None:
    """Unlock the pages of `memory`, which ends then."""
    pages.unlock()


def _free(address: int, device: int) -> None:
    with suppress(PyblasgpuError), current_context(device):
        load().cuMemFreeHost(address)


class PinnedPool:
    """Page-locked buffers for copies that are under way, at most `limit` bytes of them at a time.

    A buffer that is given back with an event is taken again once the event is over. Whoever waits for one
    holds none that others wait for.

    Parameters
    ----------
    limit : int
    """

    def __init__(self, limit: int = MAX_POOLED):
        self.limit = limit
        self.held = 0  # bytes that are allocated
        self._free: list[PinnedBuffer] = []
        self._in_flight: deque[tuple[Event, PinnedBuffer]] = deque()
        self._condition = threading.Condition()

    def take(self, nbytes: int) -> PinnedBuffer:
        """A buffer of `nbytes` bytes or more; where the limit is reached it waits for one that others hold.

        One buffer is given in any case, however large.
        """
        while True:
            with self._condition:
                buffer = self._find(nbytes)
                if buffer is not None:
                    return buffer
                if self._reserves(nbytes):
                    break
                if not self._in_flight:
                    self._condition.wait()
                    continue
                event, oldest = self._in_flight.popleft()
            try:
                event.synchronize()  # while others give and take
            except BaseException:
                self.discard(oldest)
                raise
            self.give(oldest)
        try:
            return PinnedBuffer(nbytes)
        except BaseException:
            with self._condition:
                self.held -= nbytes
                self._condition.notify()
            raise

    def give(self, buffer: PinnedBuffer, event: Event | None = None) -> None:
        """Give a buffer back, once `event` is over."""
        with self._condition:
            if event is None:
                self._free.append(buffer)
            else:
                self._in_flight.append((event, buffer))
            self._condition.notify()

    def release(self) -> None:
        """Free what nobody uses."""
        with self._condition:
            while self._in_flight and self._in_flight[0][0].is_done():
                self._free.append(self._in_flight.popleft()[1])
            self.held -= sum(buffer.nbytes for buffer in self._free)
            self._free.clear()

    def discard(self, buffer: PinnedBuffer) -> None:
        """Give up a buffer that the device which is current may still use."""
        load().cuCtxSynchronize()
        with self._condition:
            self.held -= buffer.nbytes
            self._condition.notify()

    def _find(self, nbytes: int) -> PinnedBuffer | None:
        """The smallest free buffer that suffices, of these the last one: caches may hold it."""
        while self._in_flight and self._in_flight[0][0].is_done():
            self._free.append(self._in_flight.popleft()[1])
        fitting = [buffer for buffer in reversed(self._free) if buffer.nbytes >= nbytes]
        if not fitting:
            return None
        smallest = min(fitting, key=lambda buffer: buffer.nbytes)
        self._free.remove(smallest)
        return smallest

    def _reserves(self, nbytes: int) -> bool:
        """Whether the limit allows a new buffer, which counts then; buffers that are too small give way."""
        while self._free and self.held + nbytes > self.limit:
            self.held -= self._free.pop(0).nbytes
        if self.held and self.held + nbytes > self.limit:
            return False
        self.held += nbytes
        return True


shared_pools: dict[str, PinnedPool] = {}
after_fork(shared_pools.clear)


def shared_pool(use: str) -> PinnedPool:
    """The pool of the process for one use: a direction, 'up' or 'down', or 'tables'.

    They are apart: what waits for a buffer of one may hold buffers of the other.
    """
    return shared_pools.setdefault(use, PinnedPool())


def is_page_locked(address: int, nbytes: int) -> bool:
    """Whether the device copies these bytes of the host's without staging.

    The first and the last byte of page-locked memory are looked up.
    """
    driver = load()
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    for each in (address, address + nbytes - 1):
        error, kind = driver.cuPointerGetAttribute(attribute, each)
        if error or int(kind) != int(driver.CUmemorytype.CU_MEMORYTYPE_HOST):
            return False
    return True


class page_locked:
    """Context manager: the pages of an array are locked in the block, if they can be.

    Attributes
    ----------
    array : numpy.ndarray
    is_locked : bool
        Whether this has locked them.
    """

    def __init__(self, array: np.ndarray):
        self.array, self.is_locked = array, False

    def __enter__(self) -> page_locked:
        low, nbytes = self._span()
        driver = load()
        flags = driver.CU_MEMHOSTREGISTER_PORTABLE
        if not self.array.flags.writeable:
            flags |= driver.CU_MEMHOSTREGISTER_READ_ONLY
        (error,) = driver.cuMemHostRegister(low, nbytes, flags)
        self.is_locked = not error
        return self

    def __exit__(self, *_: Any) -> None:
        if self.is_locked:
            load().cuMemHostUnregister(self._span()[0])

    def _span(self) -> tuple[int, int]:
        """First address and bytes."""
        array = self.array
        low, high = span(array.ctypes.data, array.shape, array.strides, array.itemsize)
        return low, high - low
