"""The second stream of a launch list: for each stream of callers a side stream, of higher priority.

It follows the caller's stream by events alone, and is captured in a graph where that one is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from . import backend
from .context import AMBIGUOUS_STREAMS
from .driver import after_fork

if TYPE_CHECKING:
    from .transfers import Stream

__all__ = ["side_stream", "known_streams"]

#: Streams that are kept; of more, those used last.
MAX_STREAMS = 16

#: Side streams, by device, caller's stream and, where it is another one on each, thread.
known_streams: OrderedDict[tuple[int, int, int], Stream] = OrderedDict()
_lock = threading.Lock()
after_fork(known_streams.clear)


def side_stream(device: int, stream: int) -> Stream | None:
    """The side stream of `stream`, whose launches the device serves first; it ends with its last user.

    Two calls on one stream share it, as they share their stream. None in the simulator.
    """
    if backend.SIMULATED:
        return None
    key = device, stream, threading.get_ident() if stream in AMBIGUOUS_STREAMS else 0
    with _lock:
        lane = known_streams.get(key)
        if lane is None:
            from .transfers import Stream  # most calls have one lane

            lane = known_streams[key] = Stream(device, urgent=True)
            if len(known_streams) > MAX_STREAMS:
                known_streams.popitem(last=False)
        else:
            known_streams.move_to_end(key)
        return lane
