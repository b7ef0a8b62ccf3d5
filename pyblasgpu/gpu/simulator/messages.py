"""The intrinsics of `messages` in Python.

Who receives a number also knows to be over what the sender had read up to its last barrier, as with
`store_relaxed`. A kernel may rely on it where what it sends depends on all that was read.
"""

from __future__ import annotations

import numpy as np

from .block import current_thread
from .memory import Pointer
from .thread_order import gives_way

__all__ = ["send_real", "try_receive_real"]


def send_real(words: Pointer, i: int, value, tag: int) -> None:
    """Send `value` to whoever receives number `i` of `words`."""
    thread, halves = current_thread(), np.asarray(value).reshape(1).view(np.int32)
    at = i * 2 * halves.size
    pairs = words.array[words.span(at, 2 * halves.size, 2)]
    pairs[::2], pairs[1::2] = halves, tag
    thread.block.publish(words.offset(at), written=False)
    if gives_way():
        thread.stall()


def try_receive_real(local: Pointer, k: int, words: Pointer, i: int, tag: int) -> bool:
    """Whether number `i` of `words` has arrived with this tag; ``local[k]`` is it then, and else nothing."""
    thread, count = current_thread(), local.array.itemsize // 4
    at = i * 2 * count
    pairs = words.array[words.span(at, 2 * count, 2)]
    if (pairs[1::2] != tag).any():
        thread.stall()
        return False
    thread.block.learn(words.offset(at), once=False)
    local.write(k, pairs[::2].copy().view(local.dtype)[0])
    return True
