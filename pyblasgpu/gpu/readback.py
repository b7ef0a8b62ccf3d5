"""Page-locked memory of each thread for small transfers to the host, which the driver need not stage."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..errors import PyblasgpuError
from .context import current_context
from .driver import after_fork
from .page_locked import PinnedBuffer

__all__ = ["place_to_write", "release", "room"]

#: Bytes that a thread keeps at most, and at least once it keeps any.
MOST, LEAST = 1 << 20, 1 << 12


class _Rooms(threading.local):
    array: np.ndarray[Any, Any] = np.empty(0, np.uint8)
    owner: PinnedBuffer | None = None


_rooms = _Rooms()


def room(nbytes: int) -> np.ndarray[Any, Any]:
    """Memory of this thread until the next call, page-locked where that can be; a context is current."""
    if nbytes > MOST:
        return np.empty(nbytes, np.uint8)
    if nbytes > len(_rooms.array):
        _grow(1 << max(LEAST, nbytes - 1).bit_length())
    return _rooms.array[:nbytes]


def place_to_write(nbytes: int, device: int) -> tuple[np.ndarray[Any, Any], int] | None:
    """`room`, and its address for kernels that write there; None where the memory is not page-locked.

    The device's context need not be current: memory that is kept takes none.
    """
    if nbytes > MOST:
        return None
    if nbytes > len(_rooms.array):
        with current_context(device):
            room(nbytes)
    owner = _rooms.owner
    return None if owner is None else (_rooms.array[:nbytes], owner.address)


def release() -> None:
    """Free what this thread keeps."""
    _rooms.__dict__.clear()


after_fork(release)


def _grow(nbytes: int) -> None:
    try:
        _rooms.owner = PinnedBuffer(nbytes)
        _rooms.array = _rooms.owner.array
    except (PyblasgpuError, MemoryError):  # any memory will do
        _rooms.owner, _rooms.array = None, np.empty(nbytes, np.uint8)
