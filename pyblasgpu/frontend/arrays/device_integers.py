"""Reads of integers that a routine left on a device, or in memory of the host, as LAPACK's info."""

from __future__ import annotations

from importlib import import_module
from sys import modules
from typing import Any, NamedTuple

import numpy as np

from .streams import contexts

__all__ = ["Place", "begin_read", "end_read", "place_to_write", "read_integers"]

#: Names in `sys.modules`, where a small call finds them sooner than by `import_module`.
_MEMORY, _READBACK, _EVENTS = (
    f"{__name__.split('.')[0]}.gpu.{name}" for name in ("memory", "readback", "events")
)


class Place(NamedTuple):
    """Numbers of int32 in memory of the host, and their address for kernels."""

    numbers: np.ndarray
    address: int


#: Elements that are read, and the event of their transfer.
_Pending = tuple[np.ndarray, Any]


def place_to_write(count: int, device: int) -> Place | None:
    """Return memory of this thread for `count` numbers of int32 that kernels may write, until the next read;
    None where they cannot.
    """
    readback = modules.get(_READBACK) or import_module(_READBACK)
    place = readback.place_to_write(4 * count, device)
    return None if place is None else Place(place[0].view(np.int32), place[1])


def begin_read(pointer: int, count: int, device: int, stream: int, written: Place | None = None) -> _Pending:
    """Begin to read `count` numbers of int32 after what is on the stream; work that follows there need not be
    over when `end_read` returns them.

    What is on the stream leaves them at `pointer`, or where they are `written` in memory of the host.
    """
    with contexts().current_context(device):
        if written is not None:
            events = modules.get(_EVENTS) or import_module(_EVENTS)
            return written.numbers, events.record(stream)
        memory = modules.get(_MEMORY) or import_module(_MEMORY)
        readback = modules.get(_READBACK) or import_module(_READBACK)
        numbers = readback.room(4 * count).view(np.int32)
        return numbers, memory.begin_to_host(numbers, pointer, stream)


def end_read(pending: _Pending) -> np.ndarray:
    """Wait for the numbers and return them, in memory of this thread, which the next read overwrites."""
    numbers, event = pending
    event.join()
    return numbers


def read_integers(
    pointer: int, count: int, device: int, stream: int, written: Place | None = None
) -> np.ndarray:
    """Return the numbers after the stream's work, see `begin_read` and `end_read`."""
    memory = modules.get(_MEMORY) or import_module(_MEMORY)
    with contexts().current_context(device):
        if written is not None:
            memory.synchronize(stream)
            return written.numbers
        readback = modules.get(_READBACK) or import_module(_READBACK)
        numbers = readback.room(4 * count).view(np.int32)
        memory.to_host(numbers, pointer, stream)
    return numbers
