"""Dask with a card for each worker, beside the engine of one process on the same cards.

    python -m benchmarks.dask_cards --out DIR [--cards 4] [--n 16384] [--chunk 4096] [--chunks numpy cupy]

GEMM, the triangular solve with as many right-hand sides, and Cholesky, in double precision. A time is from
the submission of the graph to the result in the workers' memory, its inputs there already; the engine's is
from host memory to host memory. Workers talk by TCP.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, Nanny, Scheduler, SpecCluster, futures_of, wait

import pyblasgpu.dask
from benchmarks.dask_linalg import matrix
from benchmarks.host_problems import flops, seconds, write

__all__ = ["by_dask", "by_engine", "main"]

ROUTINES: dict[str, Callable[[Any, Any], Any]] = {
    "gemm": lambda a, b: pyblasgpu.dask.gemm(a, b),
    "trsm": lambda a, b: pyblasgpu.dask.solve_triangular(a, b, lower=True),
    "potrf": lambda a, b: pyblasgpu.dask.cholesky(a, lower=True),
}


def cluster(cards: int) -> SpecCluster:
    """A worker for each card, which sees no other."""
    options = {"nthreads": 1, "memory_limit": 0}
    workers = {
        number: {"cls": Nanny, "options": {**options, "env": {"CUDA_VISIBLE_DEVICES": str(number)}}}
        for number in range(cards)
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": None, "host": "127.0.0.1"}}
    return SpecCluster(workers=workers, scheduler=scheduler)


def _on_card(chunk: Any) -> Any:
    return import_module("cupy").asarray(chunk)


def _tasks(dask_scheduler: Scheduler) -> int:
    return len(dask_scheduler.tasks)


def by_dask(given: argparse.Namespace, library: str, repeats: int = 3) -> dict[str, list[float]]:
    """By routine the seconds of each call on a cluster, the first one included."""
    found: dict[str, list[float]] = {}
    with cluster(given.cards) as workers, Client(workers) as client:
        client.wait_for_workers(given.cards)
        inputs = [matrix(given.n, given.chunk) for _ in range(2)]
        if library == "cupy":
            meta = import_module("cupy").empty((0, 0))
            inputs = [x.map_blocks(_on_card, dtype=x.dtype, meta=meta) for x in inputs]
        inputs = [client.persist(x) for x in inputs]
        wait(inputs)
        known = client.run_on_scheduler(_tasks)
        for routine in given.routines:
            found[routine] = []
            for _ in range(repeats):
                start = time.perf_counter()
                result = client.persist(ROUTINES[routine](*inputs))
                wait(result)
                found[routine].append(time.perf_counter() - start)
                assert all(future.status == "finished" for future in futures_of(result))
                del result
                while client.run_on_scheduler(_tasks) > known:  # else the next one is there already
                    time.sleep(0.05)
    return found


def by_engine(routine: str, given: argparse.Namespace) -> float:
    """Seconds of the same from page-locked memory, on the same cards."""
    rng, n = np.random.default_rng(0), given.n
    pinned = import_module("cupyx").empty_pinned
    a, b, out = (pinned((n, n), order="F") for _ in range(3))
    for array in (a, b):
        array[...] = rng.uniform(-1 / n, 1 / n, n)
    np.fill_diagonal(a, 2)

    def run() -> None:
        if routine == "gemm":
            pyblasgpu.gemm(a, b, out=out, devices=range(given.cards))
        elif routine == "trsm":
            pyblasgpu.trsm(a, b, lower=True, out=out, devices=range(given.cards))
        else:
            with pyblasgpu.use_devices(range(given.cards)):
                pyblasgpu.lapack.potrf(out, 1, clean=0, overwrite_a=1)

    return seconds(run, 3, partial(np.copyto, out, a) if routine == "potrf" else lambda: None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cards", type=int, default=4)
    parser.add_argument("--n", type=int, default=16384)
    parser.add_argument("--chunk", type=int, default=4096)
    parser.add_argument("--chunks", nargs="+", default=("numpy", "cupy"), choices=("numpy", "cupy"))
    parser.add_argument("--routines", nargs="+", default=tuple(ROUTINES), choices=tuple(ROUTINES))
    given = parser.parse_args()
    rows = []
    # the workers first: this process takes memory of all cards
    for library in given.chunks:
        for routine, found in by_dask(given, library).items():
            rows.append({"routine": routine, "by": f"dask, {library}", "seconds": min(found), "each": found})
            print(rows[-1], flush=True)
    for routine in given.routines:
        took = by_engine(routine, given)
        rows.append({"routine": routine, "by": "engine", "seconds": took})
        print(rows[-1], flush=True)
    for row in rows:
        row["tflops"] = flops(row["routine"], given.n) / row["seconds"] / 1e12
    about = {"n": given.n, "chunk": given.chunk, "cards": given.cards}
    write(given.out, "dask_cards", about, rows)


if __name__ == "__main__":
    main()
