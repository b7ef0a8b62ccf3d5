"""Arrays that a call on a stream reads stay alive until the device has ended the call.

Exporters may use memory again, on streams of their own, as soon as nobody refers to it.
"""

from __future__ import annotations

import atexit
from contextlib import suppress
from threading import Lock
from typing import Any

from ...errors import BackendUnavailable
from .libraries import module

__all__ = ["alive", "held", "hold", "release"]

alive: list[tuple[Any, list[Any]]] = []  # an event, and what is alive until then
_lock = Lock()


def hold(owners: list[Any], stream: int) -> None:
    """Refer to `owners` until what is queued on `stream` of the current device is done."""
    events = module("pyblasgpu.gpu.events")
    if events.is_captured(stream):
        return
    event = events.record(stream)
    with _lock:
        if not alive:
            atexit.unregister(release)
            atexit.register(release)
        alive[:] = [each for each in alive if not each[0].is_done()]
        alive.append((event, owners))


def held() -> list[list[Any]]:
    """Return the objects that each call keeps alive, the oldest first."""
    return [owners for _, owners in alive]


def release() -> None:
    """Wait for the device, and refer to nothing any more; called before the libraries end."""
    with _lock, suppress(BackendUnavailable):  # a forked process cannot wait
        for event, _ in alive:
            event.synchronize()
        alive.clear()
