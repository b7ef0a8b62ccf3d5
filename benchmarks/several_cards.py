"""Level 3 on several cards of one host beside one card: matrices in page-locked memory and on the first card.

    python -m benchmarks.several_cards --out DIR [--seconds 100] [--sizes 16384 32768] [--cards 1 2]
                                       [--vendor]

Wall-clock medians; a row is written after each case. `speedup` is against one card of the same kind of call.
`cublas` has upload, cuBLAS on one card, and download.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import pyblasgpu
from benchmarks.host_problems import ROUTINES, HostProblem, Pinned, copy_matrix, flops, seconds, write
from pyblasgpu.engine import cards as cards_of_engine
from pyblasgpu.gpu.transfers import can_access
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES

GIB = 1 << 30
REPEATS = 5


def on_host(problem: HostProblem, cards: list[int]) -> list[dict[str, Any]]:
    """Seconds from host memory to host memory on the first one, two, ... cards."""
    rows, one, base = [], None, None
    few = min(problem.n, 16384)
    part = HostProblem(problem.routine, problem.letter, [x[:few, :few] for x in _arrays(problem)])
    part.streamed(devices=range(max(cards)))  # contexts and kernels of all cards
    for count in cards:
        took = seconds(partial(problem.streamed, devices=range(count)), REPEATS)
        actual = problem.sample()
        base, one = (actual, took) if base is None else (base, one)
        rows.append(_row(problem, "host", count, took, one, float(abs(actual - base).max())))
    return rows


def _arrays(problem: HostProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return problem.a, problem.b, problem.c


def on_a_card(problem: HostProblem, cards: list[int]) -> list[dict[str, Any]]:
    """Seconds of matrices on the first card."""
    matrices = [cupy.asarray(x, order="F") for x in _arrays(problem)]
    rows, one, base = [], None, None
    for count in cards:
        apart = HostProblem(problem.routine, problem.letter, matrices)
        options: dict[str, Any] = {"devices": range(count)} if count > 1 else {}

        def run(apart: HostProblem = apart, options: dict[str, Any] = options) -> None:
            apart.ours(**options)
            cupy.cuda.runtime.deviceSynchronize()

        took = seconds(run, REPEATS)
        actual = apart.c.ravel(order="K")[:: max(1, apart.c.size // 1000)].get()
        base, one = (actual, took) if base is None else (base, one)
        finite = np.isfinite(actual) & np.isfinite(base)
        rows.append(_row(problem, "card", count, took, one, float(abs(actual - base)[finite].max())))
    return rows


def by_vendor(problem: HostProblem) -> list[dict[str, Any]]:
    """Seconds of upload, cuBLAS and download on one card, where it holds the matrices."""
    if 3 * problem.a.nbytes > 0.9 * cupy.cuda.Device().mem_info[0]:
        return []
    took = seconds(problem.vendor(), 1)
    cupy.get_default_memory_pool().free_all_blocks()
    return [_row(problem, "cublas", 1, took, None, 0.0)]


def _row(
    problem: HostProblem, where: str, count: int, took: float, one: float | None, difference: float
) -> dict[str, Any]:
    return {
        "routine": problem.routine,
        "dtype": problem.letter,
        "n": problem.n,
        "where": where,
        "cards": count,
        "seconds": took,
        "tflops": flops(problem.routine, problem.n) / took / 1e12,
        "speedup": one / took if one else 1.0,
        "difference": difference,
    }


def factors(
    routine: str, letter: str, n: int, arrays: list[np.ndarray], cards: list[int]
) -> list[dict[str, Any]]:
    """Cholesky or LU factors in host memory."""
    problem = HostProblem(routine, letter, arrays)
    rows, one = [], None
    for count in cards:

        def prepare() -> None:
            copy_matrix(problem.c, problem.b)

        def run(count: int = count) -> None:
            factor(routine, problem.c, count)

        took = seconds(run, REPEATS, prepare)
        one = one or took
        rows.append(_row(problem, "host", count, took, one, 0.0))
    return rows


def factors_on_a_card(
    routine: str, letter: str, n: int, arrays: list[np.ndarray], cards: list[int]
) -> list[dict[str, Any]]:
    """Cholesky or LU factors of a matrix on the first card."""
    problem = HostProblem(routine, letter, arrays)
    source = cupy.asarray(problem.b, order="F")
    target = cupy.empty_like(source)
    rows, one = [], None
    for count in cards:

        def prepare() -> None:
            target[...] = source
            cupy.cuda.runtime.deviceSynchronize()

        def run(count: int = count) -> None:
            factor(routine, target, count)
            cupy.cuda.runtime.deviceSynchronize()

        took = seconds(run, REPEATS, prepare)
        one = one or took
        rows.append(_row(problem, "card", count, took, one, 0.0))
    return rows


def factor(routine: str, array: Any, count: int) -> None:
    """Factor a matrix in place by so many cards, by tiles if it is in host memory."""
    streamed = deciding_by(streamed_factor_min_bytes={routine: 0})
    with streamed, pyblasgpu.use_devices(range(count)):
        if routine == "potrf":
            info = pyblasgpu.lapack.potrf(array, 1, clean=0, overwrite_a=1)[1]
        else:
            info = pyblasgpu.lapack.getrf(array, overwrite_a=1)[2]
    assert int(info) == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--letters", default="ds")
    parser.add_argument("--sizes", type=int, nargs="+", default=(16384, 32768))
    parser.add_argument("--cards", type=int, nargs="+", default=None)
    parser.add_argument("--where", nargs="+", default=("host", "card"), choices=("host", "card"))
    parser.add_argument(
        "--routines",
        nargs="+",
        default=("gemm", "syrk", "trsm", "trmm", "potrf", "getrf"),
        choices=(*ROUTINES, "potrf", "getrf"),
    )
    parser.add_argument("--vendor", action="store_true", help="beside cuBLAS on one card")
    parser.add_argument("--kept", type=int, help="GiB of tile memory that a card keeps between calls")
    options = parser.parse_args()
    if options.kept is not None:
        cards_of_engine.KEPT, cards_of_engine.KEPT_SHARE = options.kept * GIB, 1
    end = time.perf_counter() + options.seconds
    present = cupy.cuda.runtime.getDeviceCount()
    cards = [count for count in options.cards or (1, 2, 4, 8) if count <= present]
    about = {
        "cards": present,
        "kept": cards_of_engine.KEPT,
        "peers": all(can_access(0, other) for other in range(present)),
    }
    print(about, flush=True)
    for card in range(max(cards)):  # a context made later would map all page-locked memory first
        cupy.cuda.Device(card).use()
        cupy.zeros(1)
    cupy.cuda.Device(0).use()
    largest = max(options.sizes) ** 2 * max(DTYPES[letter].itemsize for letter in options.letters)
    pinned = Pinned(3, largest)
    rows: list[dict[str, Any]] = []
    for n in options.sizes:
        for letter in options.letters:
            for routine in options.routines:
                if time.perf_counter() > end:
                    return
                measurements = measured(routine, letter, n, pinned, cards, options.where)
                if options.vendor and routine in ROUTINES:
                    measurements += by_vendor(HostProblem(routine, letter, pinned.matrices(letter, n)))
                for row in measurements:
                    print({k: round(x, 4) if isinstance(x, float) else x for k, x in row.items()}, flush=True)
                rows += measurements
                write(options.out, "several_cards", about, rows)


def measured(
    routine: str, letter: str, n: int, pinned: Pinned, cards: list[int], where: tuple[str, ...]
) -> list[dict[str, Any]]:
    """All rows of a case."""
    arrays = pinned.matrices(letter, n)
    problem = HostProblem(routine, letter, arrays)
    problem.fill()
    is_small = 3 * n * n * DTYPES[letter].itemsize < 60 * GIB
    if routine in ("potrf", "getrf"):
        np.fill_diagonal(problem.b, 2 * n)
        case = routine, letter, n, arrays, cards
        rows = factors(*case) if "host" in where else []
        if "card" in where and is_small:
            rows += factors_on_a_card(*case)
            cupy.get_default_memory_pool().free_all_blocks()
        return rows
    rows = on_host(problem, cards) if "host" in where else []
    if "card" in where and is_small:
        rows += on_a_card(problem, cards)
        cupy.get_default_memory_pool().free_all_blocks()
    return rows


if __name__ == "__main__":
    main()
