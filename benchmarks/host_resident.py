"""Host matrices streamed through a card, beside upload + cuBLAS + download, and beside cublasXt.

    python -m benchmarks.host_resident --out DIR [--seconds 100] [--letters ds] [--sizes 4096 8192 ...]

Wall-clock medians; every call waits for its result in host memory. `aim` is the larger of the transfer at the
measured rate of page-locked memory and of what cuBLAS takes on the device. A row is written after each case.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cupy
import numpy as np

import pyblasgpu
from benchmarks.host_problems import (
    KINDS,
    ROUTINES,
    HostProblem,
    Pinned,
    Xt,
    copy_matrix,
    flops,
    moved,
    rates,
    seconds,
    write,
)
from pyblasgpu.engine import executor, host_traffic, tile_size
from pyblasgpu.frontend.calls import tiled_plan
from pyblasgpu.gpu import memory
from pyblasgpu.gpu.context import current_context
from pyblasgpu.gpu.page_locked import page_locked
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES

SIZES = (4096, 8192, 16384, 32768)
GIB = 1 << 30


def case(problem: HostProblem, rate: dict[str, float], xt: Xt | None, pageable: bool) -> dict[str, Any]:
    """One problem in every way."""
    routine, letter, n = problem.routine, problem.letter, problem.n
    itemsize = DTYPES[letter].itemsize
    nbytes = 3 * n * n * itemsize
    row: dict[str, Any] = {"routine": routine, "dtype": letter, "n": n}
    row["streamed"] = seconds(problem.streamed, 5 if n <= 8192 else 3)
    actual = problem.sample()
    up, down = moved(routine, n, itemsize)
    row["transfer"] = max(up / rate["up"], down / rate["down"])
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
        row["streamed_pageable"] = seconds(apart.streamed)
        if nbytes < 60 * GIB:
            with deciding_by(streamed_min_bytes=inf):
                row["whole_pageable"] = seconds(apart.ours, 2)
    row["tflops"] = flops(routine, n) / row["streamed"] / 1e12
    return row


#: Constants of the engine: module, name, other values, and whether they matter for page-locked memory.
CONSTANTS = (
    (tile_size, "WANTED", (1024, 4096), True),
    (tiled_plan, "HELD_OUTPUT", (0,), True),
    (tile_size, "LINE", (1 << 30,), True),
    (executor, "AHEAD", (12, 48), True),
    (host_traffic, "THREADS", (4, 16), False),
    (host_traffic, "PIECE", (2 << 20, 32 << 20), False),
)


def variations(problem: HostProblem, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The same with other constants of the engine."""
    is_pageable = not all(each[3] for each in CONSTANTS if each[1] in names)
    pageable = problem.pageable() if problem.n <= 8192 and is_pageable else None
    for module, name, values, is_direct in CONSTANTS:
        variant = problem if is_direct else pageable
        if name not in names or variant is None:
            continue
        for value in values:
            with patch.object(module, name, value):
                row = {"routine": problem.routine, "dtype": problem.letter, "n": problem.n, name: value}
                yield {**row, "streamed" if is_direct else "streamed_pageable": seconds(variant.streamed, 3)}


def tile_shapes(problem: HostProblem, shapes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The same with tiles of other shapes: those of ``routine:m,n,k`` that name the routine."""
    for shape in shapes:
        routine, _, orders = shape.partition(":")
        if routine != problem.routine:
            continue
        tiles = tuple(map(int, orders.split(",")))
        with patch.object(tile_size, "tile_orders", lambda *_, tiles=tiles: tiles):
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


def factors(n: int, locked: np.ndarray) -> Iterator[dict[str, Any]]:
    """Cholesky and LU factors of page-locked memory and of other memory, by tiles and whole."""
    rng = np.random.default_rng(0)
    matrix = np.asfortranarray(rng.uniform(-1, 1, n * n).reshape(n, n))
    np.fill_diagonal(matrix, 2 * n)
    calls = {
        "potrf": lambda a: pyblasgpu.lapack.potrf(a, 1, clean=0, overwrite_a=1),
        "getrf": lambda a: pyblasgpu.lapack.getrf(a, overwrite_a=1),
    }
    for routine, call in calls.items():
        row: dict[str, Any] = {"routine": routine, "dtype": "d", "n": n}
        for ending, array in (("", locked), ("_pageable", np.empty_like(matrix))):
            for name, value in (("streamed", {routine: 0}), ("whole", {})):
                with deciding_by(streamed_factor_min_bytes=value):
                    copied = partial(copy_matrix, array, matrix)
                    row[name + ending] = seconds(partial(call, array), 3, copied)
        yield row


def allocating() -> float:
    """Seconds to take memory for tiles on the card and to give it back, as each streamed call does."""

    def run() -> None:
        address = memory.allocate(8 * GIB, 0, 0)
        memory.release(address, 0)
        memory.synchronize(0)

    with current_context(0):
        return seconds(run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--letters", default="ds")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--routines", nargs="+", default=("gemm", "trsm", "trmm", "syrk"), choices=ROUTINES)
    parser.add_argument("--no-xt", action="store_true")
    parser.add_argument("--factors", type=int, nargs="*", default=(), help="orders of factors")
    parser.add_argument("--no-pageable", action="store_true")
    parser.add_argument("--no-variations", action="store_true")
    parser.add_argument("--constants", nargs="+", default=[each[1] for each in CONSTANTS])
    parser.add_argument("--tiles", nargs="+", default=(), help="as gemm:4096,1024,4096 or trsm:4096,1024")
    parser.add_argument("--line", type=int, default=tile_size.LINE, help="bytes, as `tile_size.LINE`")
    parser.add_argument("--memory", default="shared", choices=tuple(KINDS), help="of the host")
    options = parser.parse_args()
    tile_size.LINE = options.line
    end = time.perf_counter() + options.seconds
    cupy.cuda.Device(0).use()
    itemsize = max(DTYPES[letter].itemsize for letter in options.letters)
    largest = max([n * n * itemsize for n in options.sizes] + [n * n * 8 for n in options.factors])
    pinned = Pinned(3, largest, options.memory)
    rate = rates(pinned.matrices("s", max(options.sizes)))
    about = {
        "rates": rate,
        "registering_a_gib": registering(),
        "allocating_8_gib": allocating(),
        "threads": host_traffic.THREADS,
        "piece": host_traffic.PIECE,
        "line": options.line,
        "memory": options.memory,
    }
    print(about, flush=True)
    xt = None if options.no_xt else Xt([0])
    rows: list[dict[str, Any]] = []

    def add(row: dict[str, Any]) -> None:
        rows.append(row)
        print({key: round(x, 4) if isinstance(x, float) else x for key, x in row.items()}, flush=True)
        write(options.out, "host_resident", about, rows)

    for n in options.factors:
        for row in factors(n, pinned.matrices("d", n)[0]):
            add(row)
    for n in options.sizes:
        for letter in options.letters:
            for routine in options.routines:
                if time.perf_counter() > end:
                    return
                problem = HostProblem(routine, letter, pinned.matrices(letter, n))
                problem.fill()
                add(case(problem, rate, xt, pageable=n <= 16384 and not options.no_pageable))
                for row in tile_shapes(problem, options.tiles):
                    add(row)
                if routine in ("gemm", "trsm") and not options.no_variations:
                    for row in variations(problem, options.constants):
                        add(row)


if __name__ == "__main__":
    main()
