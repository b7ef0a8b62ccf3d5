"""Host matrices streamed through a card, against upload + cuBLAS + download, and against cublasXt.

    python -m benchmarks.host_resident --out DIR [--seconds 100] [--letters ds] [--sizes 4096 8192 ...]

Wall-clock medians; every call waits for its result in host memory. `aim` is the larger of the transfer at the
measured rate of page-locked memory and of what cuBLAS takes on the device. `calls` are seconds of calls on
ordinary memory with new results, one after the other from the first on. `of_aim_least` and `of_aim_mean` are
what share of these the aim is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from statistics import mean
from typing import Any
from unittest.mock import patch

import cupy
import numpy as np

import pyblasgpu
from benchmarks.host_problems import (
    ROUTINES,
    HostProblem,
    Pinned,
    Xt,
    copy_matrix,
    nested_document,
    rates,
    seconds,
    streaming,
)
from benchmarks.study import Namespace, Option, Row, Rows, Study, cubes, device_facts, main, table
from pyblasgpu.engine import executor, host_traffic, tile_size
from pyblasgpu.frontend.calls import tiled_plan
from pyblasgpu.gpu import memory
from pyblasgpu.gpu.context import current_context
from pyblasgpu.gpu.page_locked import page_locked
from pyblasgpu.testing.clocks import device_clock, host_clock, median_seconds
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES

GIB = 1 << 30
#: Calls that are timed one after the other.
CALLS = 8


def calls_alone(problem: HostProblem, rate: dict[str, float]) -> Row:
    """Calls of one problem on ordinary memory, one after the other."""
    aim = max(transfer(problem, rate), problem.vendor_compute_seconds())
    cupy.get_default_memory_pool().free_all_blocks()
    row = {"routine": problem.routine, "dtype": problem.letter, "n": problem.n, "aim": aim}
    return row | one_by_one(partial(problem.pageable().ours, out=None), aim)


def transfer(problem: HostProblem, rate: dict[str, float]) -> float:
    """Seconds of the longer one of both directions, of triangles both halves."""
    nbytes = problem.n**2 * DTYPES[problem.letter].itemsize
    return max(nbytes * (1 if problem.routine == "syrk" else 2) / rate["up"], nbytes / rate["down"])


def case(problem: HostProblem, rate: dict[str, float], xt: Xt | None, pageable: bool) -> Row:
    """One problem in every way."""
    routine, letter, n = problem.routine, problem.letter, problem.n
    itemsize = DTYPES[letter].itemsize
    nbytes = 3 * n * n * itemsize
    row: Row = {"routine": routine, "dtype": letter, "n": n}
    with streaming():
        row["streamed"] = seconds(problem.streamed, 5 if n <= 8192 else 3)
    actual = problem.sample()
    row["transfer"] = transfer(problem, rate)
    if nbytes < 70 * GIB:
        row["cublas_device"] = problem.vendor_compute_seconds()
        run = problem.vendor()
        row["upload_cublas_download"] = seconds(run)
        expected = problem.sample()
        row["difference"] = float(abs(actual - expected).max() / abs(expected).max())
        row["aim"] = max(row["transfer"], row["cublas_device"])
        row["of_aim"] = row["aim"] / row["streamed"]
        del run
        cupy.get_default_memory_pool().free_all_blocks()
    if xt is not None:
        prepare = (lambda: np.copyto(problem.c, problem.b)) if routine == "trsm" else (lambda: None)
        row["cublas_xt"] = seconds(lambda: xt.run(problem), 2, prepare)
    if pageable:
        apart = problem.pageable()
        with streaming():
            row["streamed_pageable"] = seconds(apart.streamed)
        if "aim" in row:
            row |= one_by_one(partial(apart.ours, out=None), row["aim"])
        if nbytes < 60 * GIB:
            with deciding_by(streamed_min_bytes=inf):
                row["whole_pageable"] = seconds(apart.ours, 2)
    row["tflops"] = cubes(routine) * n**3 / row["streamed"] / 1e12
    return row


def one_by_one(call: Callable[[], Any], aim: float) -> Row:
    """Seconds of each call from the first on, and the share that `aim` is of their least and of their mean.

    Memory of earlier calls is given back before; each result is gone before the next call.
    """
    pyblasgpu.release_memory()
    calls = [host_clock(call) for _ in range(CALLS)]
    least, later = min(calls), mean(calls[1:])
    return {
        "calls": [round(each, 5) for each in calls],
        "least": least,
        "mean": later,  # of the calls after the first
        "of_aim_least": aim / least,
        "of_aim_mean": aim / later,
    }


#: Constants of the engine: module, name, other values, and whether they matter for page-locked memory.
CONSTANTS = (
    (tile_size, "WANTED", (1024, 4096), True),
    (tiled_plan, "HELD_OUTPUT", (0,), True),
    (tile_size, "LINE", (1 << 30,), True),
    (executor, "AHEAD", (12, 48), True),
    (host_traffic, "THREADS", (4, 16), False),
    (host_traffic, "PIECE", (2 << 20, 32 << 20), False),
)


def variations(problem: HostProblem, names: Sequence[str]) -> Rows:
    """Rows of a problem with other constants of the engine."""
    is_pageable = not all(each[3] for each in CONSTANTS if each[1] in names)
    pageable = problem.pageable() if problem.n <= 8192 and is_pageable else None
    for module, name, values, is_direct in CONSTANTS:
        variant = problem if is_direct else pageable
        if name not in names or variant is None:
            continue
        for value in values:
            with streaming(), patch.object(module, name, value):
                row = {"routine": problem.routine, "dtype": problem.letter, "n": problem.n, name: value}
                yield {**row, "streamed" if is_direct else "streamed_pageable": seconds(variant.streamed, 3)}


def tile_shapes(problem: HostProblem, shapes: Sequence[str]) -> Rows:
    """Rows of a problem with tiles of other shapes: those of ``routine:m,n,k`` that name the routine."""
    for shape in shapes:
        routine, _, orders = shape.partition(":")
        if routine != problem.routine:
            continue
        tiles = tuple(map(int, orders.split(",")))
        with streaming(), patch.object(tile_size, "tile_orders", lambda *_, tiles=tiles: tiles):
            row = {"routine": routine, "dtype": problem.letter, "n": problem.n, "tiles": orders}
            yield {**row, "streamed": seconds(problem.streamed, 5)}


def registering() -> dict[str, float]:
    """Seconds to lock the pages of a GiB that is in use, and to copy it by NumPy."""
    array = np.ones(GIB // 8)
    target = np.ones(GIB // 8)
    start = time.perf_counter()
    with page_locked(array) as held:
        middle = time.perf_counter()
        is_locked = held.is_locked
    end = time.perf_counter()
    return {
        "locked": is_locked,
        "register": middle - start,
        "unregister": end - middle,
        "copy_one_thread": seconds(partial(np.copyto, target, array)),
    }


def factors(n: int, arrays: list[np.ndarray], options: Namespace) -> Rows:
    """Cholesky and LU factors of page-locked memory and of other memory, by tiles and whole."""
    HostProblem("gemm", "d", arrays).fill()
    locked, matrix = arrays[0], np.empty((n, n), order="F")
    copy_matrix(matrix, locked)
    np.fill_diagonal(matrix, 2 * n)
    calls = {
        "potrf": lambda a: pyblasgpu.lapack.potrf(a, 1, clean=0, overwrite_a=1),
        "getrf": lambda a: pyblasgpu.lapack.getrf(a, overwrite_a=1),
    }
    ways = [] if options.calls_only else [("", locked), ("_pageable", np.empty_like(matrix))]
    for routine in options.factored:
        call, rate = calls[routine], options.rate
        row: Row = {"routine": routine, "dtype": "d", "n": n}
        for ending, array in ways:
            for name, value in (("streamed", {routine: 0}), ("whole", {})):
                with deciding_by(streamed_factor_min_bytes=value):
                    copied = partial(copy_matrix, array, matrix)
                    row[name + ending] = seconds(partial(call, array), 3, copied)
        on_device, new = cupy.asarray(matrix, order="F"), getattr(pyblasgpu.lapack, routine)
        row["device"] = median_seconds(partial(new, on_device), device_clock(), repeats=3)
        row["aim"] = max(matrix.nbytes / rate["up"], row["device"])
        del on_device
        cupy.get_default_memory_pool().free_all_blocks()
        yield row | one_by_one(partial(new, matrix), row["aim"])


def allocating() -> float:
    """Seconds to take memory for tiles on the card and to give it back, as each streamed call does."""

    def run() -> None:
        address = memory.allocate(8 * GIB, 0, 0)
        memory.release(address, 0)
        memory.synchronize(0)

    with current_context(0):
        return seconds(run)


def facts(options: Namespace) -> Row:
    cupy.cuda.Device(0).use()
    itemsize = max(DTYPES[letter].itemsize for letter in options.letters)
    largest = max([n * n * itemsize for n in options.sizes] + [n * n * 8 for n in options.factors])
    options.pinned = Pinned(3, largest)  # for the rows too
    options.rate = rates(options.pinned.matrices("s", max(options.sizes)))
    return {
        **device_facts(options),
        "rates": options.rate,
        "registering_a_gib": registering(),
        "allocating_8_gib": allocating(),
        "threads": host_traffic.THREADS,
        "piece": host_traffic.PIECE,
        "line": tile_size.LINE,
    }


def rows(options: Namespace) -> Rows:
    pinned, xt = options.pinned, None if options.no_xt else Xt([0])
    for n in options.factors:
        yield from factors(n, pinned.matrices("d", n), options)
    for n in options.sizes:
        for letter in options.letters:
            for routine in options.routines:
                problem = HostProblem(routine, letter, pinned.matrices(letter, n))
                problem.fill()
                if options.calls_only:
                    yield calls_alone(problem, options.rate)
                    continue
                yield case(problem, options.rate, xt, pageable=n <= 16384 and not options.no_pageable)
                yield from tile_shapes(problem, options.tiles)
                if routine in ("gemm", "trsm") and not options.no_variations:
                    yield from variations(problem, options.constants)


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    """The calls one after the other, in milliseconds, and their share of the aim."""
    lines = [
        (
            *(row[name] for name in ("routine", "dtype", "n")),
            *(1e3 * row[name] for name in ("aim", "least", "mean")),
            *(row[name] for name in ("of_aim_least", "of_aim_mean")),
            " ".join(f"{1e3 * each:.0f}" for each in row["calls"]),
        )
        for row in rows
        if "calls" in row
    ]
    header = "routine | dtype | n | aim | least | mean | share | of the mean | calls"
    yield table("ordinary memory, new results, ms", header, lines)


STUDY = Study(
    "host_resident",
    __doc__,
    rows,
    {
        "letters": "ds",
        "sizes": (4096, 8192, 16384, 32768),
        "routines": Option(("gemm", "trsm", "trmm", "syrk"), ROUTINES),
        "no_xt": False,
        "factors": Option((), kind=int, help="orders of factors"),
        "factored": Option(("potrf", "getrf"), ("potrf", "getrf")),
        "no_pageable": False,
        "calls_only": Option(False, help="only calls on ordinary memory, one after the other"),
        "no_variations": False,
        "constants": tuple(name for _, name, *_ in CONSTANTS),
        "tiles": Option((), kind=str, help="as gemm:4096,1024,4096 or trsm:4096,1024"),
    },
    facts,
    key="rows",
    document=nested_document,
    summary=summary,
    seconds=100,
)

if __name__ == "__main__":
    main(STUDY)
