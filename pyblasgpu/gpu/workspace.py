"""Workspace: device memory for the scratch of one call; each stream keeps its last for the next call.

Allocating and freeing take the host longer than a launch, and a call that needs scratch may be over in the
time of two.

Before every workspace lie flags, by which the blocks of a launch tell each other how far they are. They are 0
before a launch that uses them, and 0 again after it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from . import backend, launch, memory
from .context import THREAD_STREAM, current_context

__all__ = ["FLAGS", "MOST_KEPT", "Held", "Room", "give", "take"]

FLAGS = 32 << 10  # bytes
MOST_KEPT = 32 << 20  # bytes that a stream keeps, as cuBLAS does; with more to do the host has time
STREAMS = 8  # that keep any, the first ones: what a stream keeps can only be given back on it

#: Handles that are another stream on each thread; 0 is where cuda.bindings was told so.
_AMBIGUOUS = {THREAD_STREAM}
if int(os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", 0)):
    _AMBIGUOUS.add(0)

_kept: dict[tuple[int, int], list[Room]] = {}


class Room(NamedTuple):
    """Memory on a device, for one call at a time on a stream.

    Attributes
    ----------
    address, nbytes, device, stream : int
        The flags end at the address.
    shelf : list of Room or None
        Where it is kept until the next call; None of what is not kept.
    """

    address: int
    nbytes: int
    device: int
    stream: int
    shelf: list[Room] | None


class Held(memory.Room):
    """Workspace that is held as long as this object, for work on any stream, a call at a time."""

    def __init__(self, nbytes: int, device: int):
        super().__init__(FLAGS + nbytes, device)
        with current_context(device):
            memory.clear(self.address, FLAGS, 0)
            memory.synchronize(0)
        self.address += FLAGS


def take(nbytes: int, device: int, stream: int, flags: bool = False) -> Room:
    """At least `nbytes` bytes, for work that is enqueued on `stream` until they are given back; with `flags`
    if these are used. The context of `device` is current until then.
    """
    shelf = _shelf(device, stream)
    if shelf is None or nbytes > MOST_KEPT or launch.is_captured(stream):
        return _fresh(nbytes, device, stream, None, flags)
    try:
        room = shelf.pop()  # empty while another thread enqueues on the stream
    except IndexError:
        room = None
    if room is not None:
        if room.nbytes >= nbytes:
            return room
        _release(room)
    return _fresh(nbytes, device, stream, shelf, flags=True)


def _fresh(nbytes: int, device: int, stream: int, shelf: list[Room] | None, flags: bool) -> Room:
    address = memory.allocate(FLAGS + nbytes, device, stream)
    if flags:
        memory.clear(address, FLAGS, stream)
    return Room(address + FLAGS, nbytes, device, stream, shelf)


def _release(room: Room) -> None:
    memory.release(room.address - FLAGS, room.stream)


def give(room: Room) -> None:
    """Give it back, in order of its stream."""
    if room.shelf is None or room.shelf:
        _release(room)
    else:
        room.shelf.append(room)


def _shelf(device: int, stream: int) -> list[Room] | None:
    """What a stream keeps; None of one that keeps nothing. In the simulator each call has its own, so that an
    access beyond its end is seen.
    """
    found = _kept.get((device, stream))
    if found is None and len(_kept) < STREAMS and stream not in _AMBIGUOUS and not backend.SIMULATED:
        found = _kept[device, stream] = []
    return found
