"""Dask with a card for each worker, against the engine of one process on the same cards.

    python -m benchmarks.dask_cards --out DIR [--cards 2] [--n 32768] [--chunk 8192] [--chunks numpy cupy]
                                    [--repeats 3] [--processes]

GEMM, the triangular solve with as many right-hand sides, and Cholesky, in double precision. A time is from
the submission of the graph to the result in the workers' memory, its inputs there already; the engine's is
from host memory to host memory. Workers are threads of one process, which pass chunks on as they are, or
with `--processes` processes that talk by TCP.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np
from distributed import Client, futures_of, get_task_stream, wait

from benchmarks.dask_cluster import ROUTINES, cluster, persisted, wait_until_forgotten
from benchmarks.dask_linalg import matrix
from benchmarks.host_problems import Pinned, nested_document
from benchmarks.several_cards import measured
from benchmarks.study import Namespace, Option, Row, Rows, Study, cubes, device_facts, main

__all__ = ["by_dask", "by_engine", "main"]


def _use(number: int) -> None:
    """Make a card the current one of a thread."""
    import_module("cupy").cuda.Device(number).use()


def _on_card(chunk: Any) -> Any:
    cupy = import_module("cupy")
    array = cupy.asarray(chunk)
    cupy.cuda.get_current_stream().synchronize()
    return array


def _on_host(array: Any) -> np.ndarray:
    """A part of a Dask array in host memory, whichever cards its chunks are on."""
    return array.map_blocks(_from_card, dtype=array.dtype, meta=np.empty((0, 0))).compute()


def _from_card(chunk: Any) -> np.ndarray:
    return chunk if isinstance(chunk, np.ndarray) else chunk.get()


def _error(routine: str, a: Any, b: Any, result: Any) -> float:
    """How far some entries of a result are from what they should be."""
    rows, cols = slice(-2, None), slice(0, 2)
    if routine == "gemm":
        part, expected = result[rows, cols], _on_host(a[rows]) @ _on_host(b[:, cols])
        return float(abs(_on_host(part) - expected).max())
    last = _on_host((a if routine == "trsm" else result)[rows])
    last[0, -1] = 0  # above the diagonal
    if routine == "trsm":
        return float(abs(last @ _on_host(result[:, cols]) - _on_host(b[rows, cols])).max())
    return float(abs(np.tril(last @ last.T - _on_host(a[rows, rows]))).max())


def by_dask(options: Namespace, library: str) -> dict[str, dict[str, Any]]:
    """By routine the seconds of each call on a cluster, also of the first, and what threads did in them."""
    by_routine: dict[str, dict[str, Any]] = {}
    with cluster(options.cards, options.processes, _use) as workers, Client(workers) as client:
        client.wait_for_workers(options.cards)
        inputs = [matrix(options.n, options.chunk) for _ in range(2)]
        if library == "cupy":
            meta = import_module("cupy").empty((0, 0))
            inputs = [x.map_blocks(_on_card, dtype=x.dtype, meta=meta) for x in inputs]
        a, b = (client.persist(x) for x in inputs)
        wait([a, b])
        for routine in options.routines:
            times: list[float] = []
            with get_task_stream(client=client) as stream:
                for _ in range(options.repeats):
                    with wait_until_forgotten(client):
                        result, took = persisted(client, ROUTINES[routine], a, b)
                        times.append(took)
                        assert all(future.status == "finished" for future in futures_of(result))
                        error = _error(routine, a, b, result)
                        del result
            by_routine[routine] = {"each": times, "spent": _spent(stream.data), "error": error}
        del inputs, a, b
    cupy = import_module("cupy")
    for number in range(options.cards):
        with cupy.cuda.Device(number):
            cupy.get_default_memory_pool().free_all_blocks()
    return by_routine


def _spent(tasks: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Seconds of all calls by worker and by what its threads did."""
    seconds: dict[str, Counter[str]] = defaultdict(Counter)
    for task in tasks:
        for each in task["startstops"]:
            seconds[task["worker"]][each["action"]] += each["stop"] - each["start"]
    return {worker: dict(spent) for worker, spent in seconds.items()}


def by_engine(options: Namespace) -> dict[str, float]:
    """By routine the seconds of the same from page-locked memory, on the same cards."""
    pinned = Pinned(3, options.n**2 * 8)
    return {
        routine: measured(routine, "d", options.n, pinned, [options.cards], ("host",))[0]["seconds"]
        for routine in options.routines
    }


def rows(options: Namespace) -> Rows:
    logging.getLogger("distributed").setLevel(logging.WARNING)

    def row(routine: str, by: str, took: float, **facts: Any) -> Row:
        tflops = cubes(routine) * options.n**3 / took / 1e12
        return {"routine": routine, "by": by, "seconds": took, **facts, "tflops": tflops}

    # the workers first: this process takes memory of all cards
    for library in options.chunks:
        for routine, record in by_dask(options, library).items():
            each = record["each"]
            yield row(routine, f"dask, {library}", median(each[1:] or each), **record)
    for routine, took in by_engine(options).items():
        yield row(routine, "engine", took)


def facts(options: Namespace) -> Row:
    about = {name: getattr(options, name) for name in ("n", "chunk", "cards", "processes")}
    return {**device_facts(options), **about}


STUDY = Study(
    "dask_cards",
    __doc__,
    rows,
    {
        "cards": 2,
        "n": 32768,
        "chunk": 8192,
        "chunks": Option(("numpy", "cupy"), ("numpy", "cupy")),
        "routines": Option(tuple(ROUTINES), ROUTINES),
        "repeats": 3,
        "processes": False,
    },
    facts,
    key="rows",
    document=nested_document,
)

if __name__ == "__main__":
    main(STUDY)
