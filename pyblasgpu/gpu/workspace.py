"""Workspace: device memory for the scratch of one call; each stream keeps its last for the next call.

Allocating and freeing take the host longer than a launch, and a call that needs scratch may be over in the
time of two.

Before every workspace are flags, with which the blocks of a launch publish their progress. They are 0 before
a launch that uses them, and 0 again after it. Launches that may run side by side have flags of their own, so
there are as many as lanes of a launch list.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from . import backend, launch, memory
from .context import AMBIGUOUS_STREAMS, current_context

__all__ = [
    "ALIGN",
    "ALL_FLAGS",
    "FLAGS",
    "LANES",
    "MAX_KEPT_BYTES",
    "OwnedWorkspace",
    "Workspace",
    "free_lists",
    "give",
    "lent",
    "take",
]

FLAGS = 128 << 10  # bytes of a lane
LANES = 2
ALL_FLAGS = LANES * FLAGS
ALIGN = 256  # bytes at whose multiples a workspace begins
MAX_KEPT_BYTES = 32 << 20  # bytes that a stream keeps, as cuBLAS does; with more to do the host has time
STREAMS = 8  # that keep any, the first ones: what a stream keeps can only be given back on it

#: Free workspaces of streams, by device and stream.
free_lists: dict[tuple[int, int], list[Workspace]] = {}


class Workspace(NamedTuple):
    """Memory on a device, for one call at a time on a stream.

    Attributes
    ----------
    address, nbytes, device, stream : int
        The flags end at the address.
    free_list : list of Workspace or None
        The list that keeps it until the next call; None if it is not kept.
    """

    address: int
    nbytes: int
    device: int
    stream: int
    free_list: list[Workspace] | None


class OwnedWorkspace(memory.OwnedMemory):
    """Workspace that is held as long as this object, for work on any stream, a call at a time."""

    def __init__(self, nbytes: int, device: int):
        super().__init__(ALL_FLAGS + nbytes, device)
        with current_context(device):
            memory.clear(self.address, ALL_FLAGS, 0)
            memory.synchronize(0)
        self.address += ALL_FLAGS


class _Lent(threading.local):
    free_list: list[Workspace] | None = None


_lent = _Lent()


@contextmanager
def lent(address: int, nbytes: int, device: int, stream: int, clears: bool) -> Iterator[None]:
    """Let calls of this thread in the block take memory of somebody else's; nothing is allocated if it is
    enough.

    Parameters
    ----------
    address, nbytes : int
        Memory for work on `stream`, with `ALL_FLAGS` for the flags.
    clears : bool
        Whether the flags are used, and set to 0 first.
    """
    start = -(-address // ALIGN) * ALIGN + ALL_FLAGS
    if clears:
        memory.clear(start - ALL_FLAGS, ALL_FLAGS, stream)
    free_list: list[Workspace] = []
    free_list.append(Workspace(start, address + nbytes - start, device, stream, free_list))
    _lent.free_list = free_list
    try:
        yield
    finally:
        _lent.free_list = None


def take(nbytes: int, device: int, stream: int, flags: bool = False) -> Workspace:
    """At least `nbytes` bytes, for work that is enqueued on `stream` until they are given back; with `flags`
    if these are used. The context of `device` is current until then.
    """
    free_list = _lent.free_list
    if free_list and free_list[-1].nbytes >= nbytes:
        return free_list.pop()
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
    address = memory.allocate(ALL_FLAGS + nbytes, device, stream)
    if flags:
        memory.clear(address, ALL_FLAGS, stream)
    return Workspace(address + ALL_FLAGS, nbytes, device, stream, free_list)


def _release(workspace: Workspace) -> None:
    memory.release(workspace.address - ALL_FLAGS, workspace.stream)


def give(workspace: Workspace) -> None:
    """Give it back, in order of its stream."""
    if workspace.free_list is None or workspace.free_list:
        _release(workspace)
    else:
        workspace.free_list.append(workspace)


def _free_list(device: int, stream: int) -> list[Workspace] | None:
    """Return a stream's free workspaces; None for a stream that keeps none. In the simulator each call
    allocates its own, so that an access beyond its end is seen.
    """
    free_list = free_lists.get((device, stream))
    is_told = stream not in AMBIGUOUS_STREAMS and not backend.SIMULATED
    if free_list is None and len(free_lists) < STREAMS and is_told:
        free_list = free_lists[device, stream] = []
    return free_list
