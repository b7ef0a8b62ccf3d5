"""A Dask cluster with a worker for each card, and what is timed on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, Nanny, Scheduler, SpecCluster, Worker, wait

import pyblasgpu.dask

__all__ = ["ROUTINES", "cluster", "persisted", "wait_until_forgotten"]

ROUTINES: dict[str, Callable[[Any, Any], Any]] = {
    "gemm": lambda a, b: pyblasgpu.dask.gemm(a, b),
    "trsm": lambda a, b: pyblasgpu.dask.solve_triangular(a, b, lower=True),
    "potrf": lambda a, b: pyblasgpu.dask.cholesky(a, lower=True),
}


#: For workers of one process: chunks that they pass on are no copies, and cost next to nothing.
ONE_PROCESS = {
    "distributed.scheduler.active-memory-manager.start": False,  # it would gather the inputs on few workers
    "distributed.scheduler.bandwidth": "100 GB",
    "distributed.worker.transfer.message-bytes-limit": "1 TB",
}


def cluster(cards: int, processes: bool, use: Callable[[int], None], threads: int = 2) -> SpecCluster:
    """A worker for each card: a process that sees no other, or threads whose current card it is.

    `use` makes a card the current one of a thread.
    """
    options: dict[str, Any] = {"nthreads": 1 if processes else threads, "memory_limit": 0}
    workers: dict[int, dict[str, Any]] = {}
    for number in range(cards):
        if processes:
            own: dict[str, Any] = {"env": {"CUDA_VISIBLE_DEVICES": str(number)}}
        else:
            pool = ThreadPoolExecutor(threads, f"card-{number}", use, (number,))
            own = {"executor": pool}
        workers[number] = {"cls": Nanny if processes else Worker, "options": {**options, **own}}
    where = {"host": "127.0.0.1"} if processes else {"protocol": "inproc"}
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": None, **where}}
    with dask.config.set({} if processes else ONE_PROCESS):
        return SpecCluster(workers=workers, scheduler=scheduler)


def _tasks(dask_scheduler: Scheduler) -> int:
    return len(dask_scheduler.tasks)


@contextmanager
def wait_until_forgotten(client: Client) -> Iterator[None]:
    """What the block computes and deletes is gone when it ends; else the next call finds it there."""
    known = client.run_on_scheduler(_tasks)
    yield
    while client.run_on_scheduler(_tasks) > known:
        time.sleep(0.05)


def persisted(client: Client, run: Callable[..., Any], *arrays: Any) -> tuple[Any, float]:
    """An array computed in the workers' memory, and seconds from the submission of its graph."""
    start = time.perf_counter()
    result = client.persist(run(*arrays))
    wait(result)
    return result, time.perf_counter() - start
