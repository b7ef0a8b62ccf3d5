"""A stream of its own on each card for each thread of a worker.

On the default stream a copy between devices waits for all work on both of them. All later work on either one
waits for the copy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["on_current_card", "own_stream"]

_local = threading.local()


@contextmanager
def own_stream(arrays: Sequence[Any]) -> Iterator[None]:
    """Make one of this thread's streams CuPy's current one on the current card, in the block.

    It follows what is on the streams that are current now, on this card and on those of `arrays`. All of it
    is done when the block ends, so that others may use the results on any stream.
    """
    cuda = import_module("cupy").cuda
    here = cuda.Device()
    streams = _local.__dict__.setdefault("streams", {})
    if here.id not in streams:
        streams[here.id] = cuda.Stream(non_blocking=True)
    stream = streams[here.id]
    cards = {each.id: each for each in (here, *(x.device for x in arrays if not isinstance(x, np.ndarray)))}
    for card in cards.values():
        with card:
            stream.wait_event(cuda.get_current_stream().record())
    with stream:
        try:
            yield
        finally:
            stream.synchronize()


def on_current_card(array: Any) -> Any:
    """A CuPy array of another card as a copy on the current one."""
    if isinstance(array, np.ndarray) or array.device == import_module("cupy").cuda.Device():
        return array
    stream = import_module("cupy").cuda.get_current_stream()
    stream.synchronize()  # a copy that waits for this stream's kernels holds up those of other cards
    contiguous = array
    if not (array.flags.c_contiguous or array.flags.f_contiguous):  # CuPy copies no others between cards
        with array.device:
            contiguous = array.copy()
            import_module("cupy").cuda.get_current_stream().synchronize()
    moved = contiguous.copy(order="K")  # to the current card
    stream.synchronize()  # before its card gives the memory of `contiguous` to others
    return moved
