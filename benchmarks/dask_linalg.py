"""Cholesky factors and triangular solves on a LocalCluster: pyblasgpu.dask against dask.array.linalg.

``python -m benchmarks.dask_linalg [--n 20000] [--chunk 2000] [--columns C] [--workers 2] [--repeats 1]``

A time is from the submission of the graph to the result in the workers' memory, its matrices made by tasks of
the same graph; the shortest of the repeats. Memory is the most that the worker processes held together, less
what they held before, as multiples of the matrix. Each measurement has a cluster of its own, of workers with
one thread. On a machine that others use, compare the processor's seconds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster
from rich.table import Table

import pyblasgpu.dask
from benchmarks.dask_cluster import persisted
from benchmarks.study import Namespace, Option, Row, Rows, Study, main

__all__ = ["ROUTINES", "matrix", "measure"]


def matrix(n: int, chunk: int) -> Any:
    """A symmetric positive definite matrix that is made chunk by chunk."""
    return da.map_blocks(_chunk, chunks=da.core.normalize_chunks((chunk, chunk), (n, n)), dtype=np.float64)


def _chunk(block_info: Any = None) -> np.ndarray:
    (row, row_end), (col, col_end) = block_info[None]["array-location"]
    distance = np.abs(np.subtract.outer(np.arange(row, row_end), np.arange(col, col_end)))
    # diagonally dominant: the others of a row sum to less than 2 (1 + log n) < 30
    return np.where(distance, 1.0 / (1 + distance), 30.0)


#: What is timed: both libraries on the same matrix and right-hand sides.
ROUTINES: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "cholesky": {
        "pyblasgpu": lambda a, b: pyblasgpu.dask.cholesky(a, lower=True),
        "dask": lambda a, b: da.linalg.cholesky(a, lower=True),
    },
    "solve_triangular": {
        "pyblasgpu": lambda a, b: pyblasgpu.dask.solve_triangular(a, b, lower=True),
        "dask": lambda a, b: da.linalg.solve_triangular(a, b, lower=True),
    },
}


def measure(run: Callable[[Any, Any], Any], options: Any) -> dict[str, float]:
    """Seconds, those of the workers' processors, and the peak of memory in matrices."""
    rounds = []
    for _ in range(options.repeats):
        with (
            LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            a, b = (matrix(options.n, options.chunk) for _ in range(2))
            b = b[:, : options.columns or options.n]
            pids = list(client.run(_ready).values())
            with _Watched(pids) as memory:
                busy = memory.processor_seconds()
                _, seconds = persisted(client, run, a, b)
                busy = memory.processor_seconds() - busy
            rounds.append((seconds, busy, memory.peak / (8 * options.n**2)))
    seconds, busy, peak = min(rounds)
    return {"seconds": round(seconds, 2), "processor": round(busy, 2), "matrices": round(peak, 2)}


def _ready() -> int:
    """The id of a worker's process, once it has loaded what it needs."""
    small = matrix(4, 2)
    for libraries in ROUTINES.values():
        for run in libraries.values():
            run(small, small).compute(scheduler="sync")
    return os.getpid()


class _Watched:
    """Processes: the most bytes that they hold together beyond what they hold at first, and their work."""

    def __init__(self, pids: Sequence[int]):
        self.processes = [psutil.Process(pid) for pid in pids]
        self.first, self.peak, self.ended = self._held(), 0, threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)

    def _held(self) -> int:
        return sum(process.memory_info().rss for process in self.processes)

    def processor_seconds(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self.processes)

    def _sample(self) -> None:
        while not self.ended.wait(0.05):
            self.peak = max(self.peak, self._held() - self.first)

    def __enter__(self) -> _Watched:
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.thread.join()


def rows(options: Namespace) -> Rows:
    for routine in options.routines:
        for library in options.libraries:
            row = {"routine": routine, "library": library}
            yield {**row, **measure(ROUTINES[routine][library], options)}


def facts(options: Namespace) -> Row:
    about = {name: getattr(options, name) for name in ("n", "chunk", "columns", "workers")}
    return {**about, "columns": options.columns or options.n, "cores": os.cpu_count()}


def summary(rows: list[Row], options: Namespace) -> Iterator[Table]:
    table = Table(title=f"n = {options.n}, chunks of {options.chunk}, {options.workers} workers")
    for column in ("routine", "library", "seconds", "of processors", "memory in matrices"):
        table.add_column(column, justify="left" if column in ("routine", "library") else "right")
    for row in rows:
        numbers = (f"{row[name]:.2f}" for name in ("seconds", "processor", "matrices"))
        table.add_row(row["routine"], row["library"], *numbers)
    yield table


STUDY = Study(
    "dask_linalg",
    __doc__,
    rows,
    {
        "n": 20000,
        "chunk": 2000,
        "columns": Option(None, kind=int, help="right-hand sides; by default n"),
        "workers": 2,
        "repeats": 1,
        "routines": Option(tuple(ROUTINES), ROUTINES),
        "libraries": Option(("pyblasgpu", "dask"), ("pyblasgpu", "dask")),
    },
    facts,
    summary=summary,
)

if __name__ == "__main__":
    main(STUDY)
