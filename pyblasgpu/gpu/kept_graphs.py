"""Graphs of launches that are repeated at the same addresses.

A program that repeats itself finds its memory where it was: an allocator gives back what was freed. A list of
many launches is one launch of a graph then, whose blocks follow each other sooner, too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from . import backend, launch
from .driver import DeviceError, after_fork

__all__ = [
    "EARNED",
    "IDLE",
    "LEAST",
    "MOST",
    "REPEATS",
    "SEEN",
    "by_graphs",
    "graphs",
    "kept",
    "runs",
    "seen",
]

LEAST = 2  # launches of a list from which on it has graphs
REPEATS = 3  # runs at the same addresses before there is a graph, which costs as much as a few runs
MOST = 128  # graphs, of some hundred KiB of device memory each
IDLE = 2 * MOST  # runs of lists after which a graph that was in none of them makes room
EARNED = 32  # runs by graphs before one makes room: a graph costs as much as these save
SEEN = 1024  # addresses of runs without a graph that are remembered


class _Kept:
    """A graph, and the number of the last run that it served."""

    __slots__ = ("graph", "last")

    def __init__(self, graph: launch.Graph, last: int):
        self.graph, self.last = graph, last


#: Graphs by list and addresses; those that ran last are last.
graphs: OrderedDict[tuple[Any, ...], _Kept] = OrderedDict()
#: Runs without a graph, by the same.
seen: OrderedDict[tuple[Any, ...], int] = OrderedDict()
#: Runs, and those by graphs since one made room.
runs, by_graphs = count(), [0]
after_fork(graphs.clear)


def kept(
    enqueue: Callable[[Sequence[int], int], None], device: int, launches: int, has_lanes: bool = False
) -> Callable[[Sequence[int], int], None]:
    """Return a function that does what ``enqueue(bases, stream)`` does, after `REPEATS` runs at the same
    addresses by a graph.

    The context of the device is current in it. What is being captured, and what the driver refuses to
    capture, is enqueued launch by launch; so is all of a list of few launches. In the graph of a list that
    `has_lanes` the launches of the side stream are served first, as without it.
    """
    if launches < LEAST or backend.SIMULATED:
        return enqueue
    may_capture = True

    def run(bases: Sequence[int], stream: int) -> None:
        nonlocal may_capture
        key, number = (run, *bases), next(runs)
        found = graphs.get(key)
        if found is None and may_capture and _is_due(key, number) and not launch.is_captured(stream):
            try:
                graph = launch.Graph(lambda apart: enqueue(bases, apart), device, has_lanes)
            except DeviceError:
                may_capture = False
            else:
                found = graphs[key] = _Kept(graph, number)
        if found is None or not found.graph.launch(stream):
            enqueue(bases, stream)
            return
        found.last = number
        by_graphs[0] += 1
        if key in graphs:
            graphs.move_to_end(key)

    return run


def _is_due(key: tuple[Any, ...], number: int) -> bool:
    """Whether a run at addresses is to have a graph. It is after as many runs, where there is room for it, or
    a graph that is idle, and others are not.
    """
    times = seen.get(key, 0)
    if times < REPEATS:
        seen[key] = times + 1
        if len(seen) > SEEN:
            seen.popitem(last=False)
        return False
    if len(graphs) >= MOST:
        oldest = next(iter(graphs), None)
        if oldest is None or number - graphs[oldest].last < IDLE or by_graphs[0] < EARNED:
            return False
        graphs.pop(oldest, None)
        by_graphs[0] = 0
    seen.pop(key, None)
    return True
