"""Host memory of results for NumPy, kept for later ones once an array is gone.

Pages of fresh memory fault one by one, and a card's copies to pages that are not locked are staged. Locking
them takes longer than either, so memory is page-locked where it serves for the second time.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from functools import cache
from math import prod
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from ..errors import PyblasgpuError
from .driver import after_fork
from .page_locked import PAGE, Pages, whole_pages

__all__ = ["KeptResults", "kept_results"]

#: Environment variable with the most bytes that are kept; by default a part of the host's, at most `MOST`.
VARIABLE, PART, MOST = "PYBLASGPU_HOST_MEMORY", 16, 16 << 30


class _Memory(Pages):
    """Whole pages of host memory, which can be locked once.

    Attributes
    ----------
    is_kept : bool
        Whether it was in use before, and so counts among what is kept.
    """

    def __init__(self, nbytes: int):
        self._buffer, self.is_kept = whole_pages(nbytes), False
        super().__init__(self._buffer.ctypes.data, self._buffer.nbytes)


class _Owner:
    """Interface by which NumPy makes an array of memory; the array and its views keep it."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: str):
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": np.dtype(dtype).str,
            "data": (address, False),
        }


class KeptResults:
    """Memory of large host arrays, taken again when these and all their views are gone.

    Parameters
    ----------
    limit : int
        Most bytes that are kept: those that no array uses, and those that are used again.

    Attributes
    ----------
    lock : threading.Lock
        Held while memory is taken or given back; an array that goes then has its memory wait.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self._free: list[_Memory] = []  # the oldest first
        self._left: deque[_Memory] = deque()  # by arrays that are gone, on whatever thread
        self._used_again = 0  # bytes
        self.lock = threading.Lock()

    @property
    def held(self) -> int:
        """The bytes that no array uses."""
        return sum(memory.nbytes for memory in (*self._free, *self._left))

    def empty(self, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
        """Return a new array by rows; some device's context is current."""
        nbytes = prod(shape) * np.dtype(dtype).itemsize
        memory = self._taken(nbytes) or _Memory(nbytes)
        owner = _Owner(memory.address, shape, dtype)
        finalize(owner, self._leave, memory).atexit = False
        return np.asarray(owner)

    def release(self) -> None:
        """Free what no array uses."""
        with self.lock:
            self._settle()
            self._shrink(0)

    def _taken(self, nbytes: int) -> _Memory | None:
        """Free memory that fits, its pages locked if they can be."""
        with self.lock:
            self._settle()
            fitting = [each for each in self._free if nbytes <= each.nbytes <= nbytes + nbytes // 8 + PAGE]
            if not fitting:
                return None
            memory = min(fitting, key=lambda each: each.nbytes)
            self._free.remove(memory)
            is_new, memory.is_kept = not memory.is_kept, True
            self._used_again += memory.nbytes
        if is_new:
            with suppress(PyblasgpuError):  # copies are staged then
                memory.lock()
        return memory

    def _leave(self, memory: _Memory) -> None:
        """Take the memory of an array that is gone, if need be when another thread is done here."""
        self._left.append(memory)
        # the collector may run this in the middle of what holds the lock
        if self.lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self.lock.release()

    def _settle(self) -> None:
        """Keep what arrays have left, as far as the limit goes."""
        while self._left:
            memory = self._left.popleft()
            if memory.is_kept:
                self._used_again -= memory.nbytes
            most = self.limit - self._used_again
            if memory.nbytes > most:
                memory.unlock()
            else:
                self._free.append(memory)
                self._shrink(most)

    def _shrink(self, most: int) -> None:
        """Free the oldest memory until at most `most` bytes are held."""
        held = sum(memory.nbytes for memory in self._free)
        while self._free and held > most:
            memory = self._free.pop(0)
            held -= memory.nbytes
            memory.unlock()


@cache
def kept_results() -> KeptResults:
    """Return the memory of the process.

    Raises
    ------
    ValueError
        When the environment names no number of bytes.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return KeptResults(min(_host_bytes() // PART, MOST))
    if not text.isdecimal():
        raise ValueError(f"{VARIABLE}={text!r} is no number of bytes")
    return KeptResults(int(text))


after_fork(kept_results.cache_clear)


def _host_bytes() -> int:
    """Return the bytes of memory that the process may use; 0 where the system does not say."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
    with suppress(OSError, ValueError):  # of a container
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found
