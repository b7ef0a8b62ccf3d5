"""Workspace: device memory for the scratch of one call; each stream keeps its last for the next call.

Allocating and freeing take the host longer than a launch, and a call that needs scratch may be over in the
time of two.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from . import backend, launch, memory

__all__ = ["MOST_KEPT", "Room", "give", "take"]

MOST_KEPT = 8 << 20  # bytes that a stream keeps; with more to do the host has time
STREAMS = 8  # that keep any, the first ones: what a stream keeps can only be given back on it

#: Handles that are another stream on each thread; 0 is where cuda.bindings was told so.
_AMBIGUOUS = {launch.THREAD_STREAM}
if int(os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", 0)):
    _AMBIGUOUS.add(0)

_kept: dict[tuple[int, int], list[Room]] = {}


class Room(NamedTuple):
    """Memory on a device, for one call at a time on a stream.

    Attributes
    ----------
    address, nbytes, device, stream : int
    shelf : list of Room or None
        Where it is kept until the next call; None of what is not kept.
    """

    address: int
    nbytes: int
    device: int
    stream: int
    shelf: list[Room] | None


def take(nbytes: int, device: int, stream: int) -> Room:
    """At least `nbytes` bytes, for work that is enqueued on `stream` until they are given back."""
    shelf = _shelf(device, stream)
    if shelf is None or nbytes > MOST_KEPT or launch.is_captured(stream):
        return Room(memory.allocate(nbytes, device, stream), nbytes, device, stream, None)
    try:
        room = shelf.pop()  # empty while another thread enqueues on the stream
    except IndexError:
        room = None
    if room is not None:
        if room.nbytes >= nbytes:
            return room
        memory.release(room.address, stream)
    return Room(memory.allocate(nbytes, device, stream), nbytes, device, stream, shelf)


def give(room: Room) -> None:
    """Give it back, in order of its stream."""
    if room.shelf is None or room.shelf:
        memory.release(room.address, room.stream)
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
