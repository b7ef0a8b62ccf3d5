"""A Dask cluster of one process whose leaves and copies only take their time, and compute nothing.

A card runs one leaf at a time and takes in one chunk at a time; a leaf takes `LEAVES`, a copy from another
card `COPY`, scaled to the chunk.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import dask.array as da
import numpy as np
from dask.sizeof import sizeof
from distributed import Client, wait

from benchmarks.dask_cluster import ROUTINES, cluster, persisted, wait_until_forgotten
from pyblasgpu import tasks
from pyblasgpu.dask import leaves
from pyblasgpu.types import Diag, Side, Trans, Uplo

__all__ = ["LEAVES", "bounds", "makespans"]

#: Seconds of a leaf on double-precision chunks of order `ORDER`, as assumed of an H200: GEMM at 58 TFLOP/s.
LEAVES = {"gemm": 0.019, "trsm": 0.011, "herk": 0.011, "potrf": 0.007}
COPY, ORDER = 0.002, 8192

_thread = threading.local()


def use(number: int) -> None:
    """Make a card the current one of a thread."""
    _thread.card = number


class Chunk(np.ndarray):
    """A tiny array for a chunk of order `stands_for` of a card; copies lie on the current one."""

    stands_for = ORDER

    def __array_finalize__(self, other: Any) -> None:
        self.card = getattr(_thread, "card", None)


@sizeof.register(Chunk)
def _nbytes(chunk: Chunk) -> int:
    return 8 * chunk.stands_for**2


def make_chunk(order: int, block_info: Any = None) -> Chunk:
    return np.ones((order, order)).view(Chunk)


class Cards:
    """When each card and each link to one is free again.

    Attributes
    ----------
    order : int
        Of the chunks that the tiny ones stand for.
    busy : mapping of int to float
        Seconds of leaves by card.
    """

    def __init__(self, order: int):
        self.order, self.busy = order, defaultdict[int, float](float)
        self.locks = defaultdict[tuple[str, int], threading.Lock](threading.Lock)
        self.free = defaultdict[tuple[str, int], float](float)

    def take(self, what: str, seconds: float) -> None:
        """Wait until the current card or its link has done this, after what the thread did before."""
        resource = what, _thread.card
        with self.locks[resource]:
            _thread.clock = self.free[resource] = max(_thread.clock, self.free[resource]) + seconds
            time.sleep(max(_thread.clock - time.perf_counter(), 0))

    def run_call(self, call: leaves.LeafCall, reads: list[Any], out: Any) -> None:
        seconds = LEAVES[call.leaf.routine] * (self.order / ORDER) ** 3
        self.take("card", seconds)
        self.busy[_thread.card] += seconds

    def on_current_card(self, array: Any) -> Any:
        if array.card == _thread.card:
            return array
        self.take("link", COPY * (self.order / ORDER) ** 2)
        return np.array(array).view(Chunk)

    @contextmanager
    def instead_of_leaves(self) -> Iterator[None]:
        """In the block Dask tasks on `Chunk` take this model's time, and compute nothing."""
        call = leaves.Accumulate.__call__

        def run(task: leaves.Accumulate, start: Any, operands: Sequence[Any]) -> Any:
            _thread.clock = time.perf_counter()
            start = self.on_current_card(start) if isinstance(start, Chunk) else start
            return call(task, start, operands).view(Chunk)

        with (
            patch.object(Chunk, "stands_for", self.order),
            patch.object(leaves, "run_call", self.run_call),
            patch.object(leaves, "on_current_card", self.on_current_card),
            patch.object(leaves.Accumulate, "__call__", run),
        ):
            yield


def bounds(routine: str, blocks: int, order: int, cards: int) -> tuple[float, float]:
    """Seconds of the longest chain of leaves, and of all leaves on all cards."""
    n = (order,) * blocks
    match routine:
        case "gemm":
            work = tasks.gemm(n, n, n, Trans.NO, Trans.NO, 1, 0)
        case "trsm":
            work = tasks.trsm(n, n, Side.LEFT, Uplo.LOWER, Trans.NO, Diag.NON_UNIT, 1)
        case _:
            work = tasks.potrf(n, Uplo.LOWER, True)
    ends: dict[tasks.Tile, float] = {}
    total = 0.0
    for task in work.tasks:
        seconds = LEAVES[task.leaf.routine] * (order / ORDER) ** 3
        total += seconds
        ends[task.writes[0]] = max(ends.get(tile, 0.0) for tile in task.tiles) + seconds
    return max(ends.values()), total / cards


def makespans(
    routine: str, blocks: int, order: int, cards: int, threads: int, repeats: int
) -> tuple[list[float], list[float]]:
    """Seconds of each call on a new cluster, and of the leaves of each card in the last one."""
    model = Cards(order)
    with (
        model.instead_of_leaves(),
        cluster(cards, False, use, threads) as workers,
        Client(workers) as client,
    ):
        client.wait_for_workers(cards)
        cuts = ((2,) * blocks,) * 2
        names = (f"model-{name}" for name in ("a", "b"))
        chunks = [da.map_blocks(make_chunk, 2, chunks=cuts, meta=np.empty((0, 0)), name=x) for x in names]
        a, b = (client.persist(x) for x in chunks)
        wait([a, b])
        times = []
        for _ in range(repeats):
            model.busy.clear()
            with wait_until_forgotten(client):
                result, took = persisted(client, ROUTINES[routine], a, b)
                times.append(took)
                del result
    return times, [model.busy[card] for card in range(cards)]
