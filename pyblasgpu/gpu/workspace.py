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

__all__ = ["FLAGS", "MAX_KEPT_BYTES", "OwnedWorkspace", "Workspace", "free_lists", "give", "take"]

FLAGS = 128 << 10  # bytes
MAX_KEPT_BYTES = 32 << 20  # bytes that a stream keeps, as cuBLAS does; with more to do the host has time
STREAMS = 8  # that keep any, the first ones: what a stream keeps can only be given back on it

#: Handles that are another stream on each thread; 0 is where cuda.bindings was told so.
_AMBIGUOUS = {THREAD_STREAM}
if int(os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", 0)):
    _AMBIGUOUS.add(0)

#: What streams keep, by device and stream.
free_lists: dict[tuple[int, int], list[Workspace]] = {}


class Workspace(NamedTuple):
    """Memory on a device, for one call at a time on a stream.

    Attributes
    ----------
    address, nbytes, device, stream : int
        The flags end at the address.
    free_list : list of Workspace or None
        Where it is kept until the next call; None of what is not kept.
    """

    address: int
    nbytes: int
    device: int
    stream: int
    free_list: list[Workspace] | None


class OwnedWorkspace(memory.OwnedMemory):
    """Workspace that is held as long as this object, for work on any stream, a call at a time."""

    def __init__(self, nbytes: int, device: int):
        super().__init__(FLAGS + nbytes, device)
        with current_context(device):
            memory.clear(self.address, FLAGS, 0)
            memory.synchronize(0)
        self.address += FLAGS


def take(nbytes: int, device: int, stream: int, flags: bool = False) -> Workspace:
    """At least `nbytes` bytes, for work that is enqueued on `stream` until they are given back; with `flags`
    if these are used. The context of `device` is current until then.
    """
    free_list = _free_list(device, stream)
    if free_list is None or nbytes > MAX_KEPT_BYTES or launch.is_captured(stream):
        return _allocate(nbytes, device, stream, None, flags)
    try:
        workspace = free_list.pop()  # empty while another thread enqueues on the stream
    except IndexError:
        workspace = None
    if workspace is not None:
        if workspace.nbytes >= nbytes:
            return workspace
        _release(workspace)
    return _allocate(nbytes, device, stream, free_list, flags=True)


def _allocate(
    nbytes: int, device: int, stream: int, free_list: list[Workspace] | None, flags: bool
) -> Workspace:
    address = memory.allocate(FLAGS + nbytes, device, stream)
    if flags:
        memory.clear(address, FLAGS, stream)
    return Workspace(address + FLAGS, nbytes, device, stream, free_list)


def _release(workspace: Workspace) -> None:
    memory.release(workspace.address - FLAGS, workspace.stream)


def give(workspace: Workspace) -> None:
    """Give it back, in order of its stream."""
    if workspace.free_list is None or workspace.free_list:
        _release(workspace)
    else:
        workspace.free_list.append(workspace)


def _free_list(device: int, stream: int) -> list[Workspace] | None:
    """What a stream keeps; None of one that keeps nothing. In the simulator each call has its own, so that an
    access beyond its end is seen.
    """
    free_list = free_lists.get((device, stream))
    if free_list is None and len(free_lists) < STREAMS and stream not in _AMBIGUOUS and not backend.SIMULATED:
        free_list = free_lists[device, stream] = []
    return free_list
