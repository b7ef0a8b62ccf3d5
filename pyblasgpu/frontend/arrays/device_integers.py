"""Reads of integers that a routine left on a device, as LAPACK's info."""

from __future__ import annotations

from importlib import import_module
from sys import modules
from typing import Any

import numpy as np

from .streams import contexts

__all__ = ["begin_read", "end_read", "read_integers"]

#: Names in `sys.modules`, where a small call finds them sooner than by `import_module`.
_MEMORY, _READBACK = (f"{__name__.split('.')[0]}.gpu.{name}" for name in ("memory", "readback"))


#: Elements that are read, and the event of their transfer.
_Pending = tuple[np.ndarray, Any]


def begin_read(pointer: int, count: int, device: int, stream: int) -> _Pending:
    """Begin to read `count` numbers of int32 after what is on the stream; work that follows there need not be
    over when `end_read` returns them.
    """
    memory = modules.get(_MEMORY) or import_module(_MEMORY)
    readback = modules.get(_READBACK) or import_module(_READBACK)
    with contexts().current_context(device):
        numbers = readback.room(4 * count).view(np.int32)
        return numbers, memory.begin_to_host(numbers, pointer, stream)


def end_read(pending: _Pending) -> np.ndarray:
    """Wait for the numbers and return them, in memory of this thread, which the next read overwrites."""
    numbers, event = pending
    event.join()
    return numbers


def read_integers(pointer: int, count: int, device: int, stream: int) -> np.ndarray:
    """Return the numbers after the stream's work, see `end_read`."""
    memory = modules.get(_MEMORY) or import_module(_MEMORY)
    readback = modules.get(_READBACK) or import_module(_READBACK)
    with contexts().current_context(device):
        numbers = readback.room(4 * count).view(np.int32)
        memory.to_host(numbers, pointer, stream)
    return numbers
