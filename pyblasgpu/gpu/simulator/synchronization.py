"""The intrinsics of `synchronization` in Python: flags between blocks, and warps that meet."""

from __future__ import annotations

import numpy as np

from .block import current_thread
from .memory import Pointer
from .thread_order import gives_way

__all__ = [
    "atomic_add",
    "grid_dependency_wait",
    "load_acquire",
    "set_flag_release",
    "store_relaxed",
    "store_release",
    "sync_warp",
    "take_ticket",
    "try_take_flag",
]


def _flag(flags: Pointer, i: int) -> np.ndarray:
    """The int32 of ``flags[i]``: the first of it, if it is a float64."""
    return flags.array[flags.span(i, 1)].view(np.int32)[:1]


def set_flag_release(flags: Pointer, i: int) -> None:
    """Set ``flags[i]``: a block that takes it reads what this thread knows to be written."""
    _flag(flags, i)[0] = 1
    current_thread().block.publish(flags.offset(i))


def try_take_flag(flags: Pointer, i: int) -> bool:
    """Whether ``flags[i]`` was set; it is not any more."""
    thread, flag = current_thread(), _flag(flags, i)
    if not flag[0]:
        thread.stall()
        return False
    flag[0] = 0
    thread.block.learn(flags.offset(i), once=True)
    return True


def atomic_add(flags: Pointer, i: int, count: int) -> int:
    """Return the value of ``flags[i]`` before `count` is added to it.

    Other blocks run in between, so that those that have their numbers run in any order.
    """
    thread, flag = current_thread(), _flag(flags, i)
    before = int(flag[0])
    flag[0] = before + count
    thread.block.launch.events += 1
    thread.stall()
    return before


def take_ticket(flags: Pointer, i: int) -> int:
    """Return the number of tickets of ``flags[i]`` taken before; acquire what their takers released, and
    release.
    """
    thread, flag = current_thread(), _flag(flags, i)
    before = int(flag[0])
    flag[0] = before + 1
    thread.block.learn(flags.offset(i), once=False)
    thread.block.publish(flags.offset(i))
    return before


def load_acquire(flags: Pointer, i: int) -> int:
    """``flags[i]``; who finds a number reads what was known to the thread that released it.

    A thread that reads what it read before gives way to other blocks.
    """
    thread, at, flag = current_thread(), flags.span(i, 1).start, _flag(flags, i)
    if thread.last_flags.get(at) == flag[0]:
        thread.stall()
    thread.last_flags[at] = flag[0]
    thread.block.learn(flags.offset(i), once=False)
    return int(flag[0])


def store_release(flags: Pointer, i: int, value: int) -> None:
    """``flags[i] = value``, for others to acquire, with all that this thread knows to be written.

    Other blocks may run in between, which then find this value, not the last one.
    """
    _store(flags, i, value, written=True)


def store_relaxed(flags: Pointer, i: int, value: int) -> None:
    """``flags[i] = value``, for others to acquire, who may write what this block read up to the last
    barrier, but know nothing of what it wrote.
    """
    _store(flags, i, value, written=False)


def _store(flags: Pointer, i: int, value: int, written: bool) -> None:
    thread = current_thread()
    _flag(flags, i)[0] = value
    thread.block.publish(flags.offset(i), written)
    if gives_way():
        thread.stall()


def grid_dependency_wait() -> None:
    """Wait until the launches before are over: here they always are."""


def sync_warp() -> None:
    """Wait for all lanes of the warp; what each wrote before, the others read after."""
    thread = current_thread()
    thread.meet(None, lambda _: thread.block.settle(thread))
