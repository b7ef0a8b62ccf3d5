"""Pages of the caller's arrays, locked from an array's second use on.

A card copies locked pages at the full rate of the link, which threads that stage others do not reach. To lock
pages takes about as long as to stage them once. They are unlocked before NumPy frees them.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from sys import is_finalizing
from typing import Any
from weakref import WeakSet, finalize

import numpy as np

from .driver import after_fork
from .kept_results import kept_results
from .page_locked import Pages

__all__ = ["LEAST", "lock_again", "release_arrays"]

#: Bytes of an array from which on its pages are locked.
LEAST = 32 << 20


class _Memory(Pages):
    """Memory that an array owns, its pages locked.

    Attributes
    ----------
    users : WeakSet
        Matrices of calls that may be under way.
    ends : finalize
        Unlocks the pages when the array is gone. NumPy resizes no array that something refers to.
    """

    def __init__(self, owner: np.ndarray[Any, Any]):
        super().__init__(owner.ctypes.data, owner.nbytes)
        self.users: WeakSet[Any] = WeakSet()
        self.ends = finalize(owner, _leave, self.address)
        self.ends.atexit = False


#: Addresses and bytes of arrays that were used and are not locked, and the locked ones by address.
_used: deque[tuple[int, int]] = deque(maxlen=64)
_locked: dict[int, _Memory] = {}
_changing = threading.RLock()  # the collector may run `_leave` in the middle


def _begin_anew() -> None:
    """Forget all in a forked process, where no pages are locked, and another thread cannot hold the lock."""
    global _changing
    _changing = threading.RLock()
    _used.clear()
    _locked.clear()


after_fork(_begin_anew)


def lock_again(array: np.ndarray[Any, Any], user: object) -> None:
    """Lock the pages of an array that was used before, if they can be; some device's context is current.

    Parameters
    ----------
    array : numpy.ndarray
    user : object
        Lives as long as something may copy them.
    """
    owner = _owner(array)
    if owner is None or array.nbytes < LEAST or 2 * array.nbytes < owner.nbytes:
        return
    place = owner.ctypes.data, owner.nbytes
    with _changing:
        memory = _locked.get(place[0])
        if memory is None:
            if place not in _used:
                _used.append(place)
                return
            held = sum(each.nbytes for each in list(_locked.values()))
            if held + owner.nbytes > kept_results().limit:
                return
            memory = _Memory(owner)
            if memory.lock():  # copies are staged
                memory.ends.detach()
                return
            _used.remove(place)
            _locked[place[0]] = memory
        memory.users.add(user)


def _owner(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The array of NumPy's that owns the memory of `array`; None where another library does."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None and array.flags.owndata else None


def _leave(address: int) -> None:
    """Unlock the memory of an array that is about to free it."""
    with _changing:
        memory = _locked.pop(address, None)
    if memory is not None and not is_finalizing():
        memory.unlock()


def release_arrays() -> None:
    """Unlock the pages that no call uses; the next use of an array is its first one."""
    with _changing:
        _used.clear()
        for address, memory in list(_locked.items()):
            if not memory.users:
                memory.ends.detach()
                del _locked[address]
                memory.unlock()


# the system may give the pages of one process to the other, and this one's array new pages
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=release_arrays)
