"""Level 3 on several cards of one host against one card: page-locked matrices, and those of the first card.

    python -m benchmarks.several_cards --out DIR [--seconds 100] [--sizes 16384 32768] [--cards 1 2]
                                       [--vendor]

Wall-clock medians. `speedup` is against one card of the same kind of call. `cublas` has upload, cuBLAS on one
card, and download.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cupy
import numpy as np

import pyblasgpu
from benchmarks.host_problems import (
    ROUTINES,
    HostProblem,
    Pinned,
    copy_matrix,
    nested_document,
    pinned_for,
    seconds,
    streaming,
)
from benchmarks.study import Namespace, Option, Row, Rows, Study, cubes, device_facts, main
from pyblasgpu.engine import cards as cards_of_engine
from pyblasgpu.gpu.transfers import can_access

GIB = 1 << 30
REPEATS = 5
FACTORS = ("potrf", "getrf")


def measured(
    routine: str, letter: str, n: int, pinned: Pinned, cards: list[int], where: tuple[str, ...]
) -> list[Row]:
    """All rows of a case."""
    problem = HostProblem(routine, letter, pinned.matrices(letter, n))
    problem.fill()
    if routine in FACTORS:
        np.fill_diagonal(problem.b, 2 * n)
    with streaming():
        rows = list(on_host(problem, cards)) if "host" in where else []
        if "card" in where and 3 * problem.a.nbytes < 60 * GIB:
            rows += on_a_card(problem, cards)
            cupy.get_default_memory_pool().free_all_blocks()
    return rows


def on_host(problem: HostProblem, cards: list[int]) -> Rows:
    """Seconds from host memory to host memory on the first one, two, ... cards."""
    if problem.routine in FACTORS:
        run: Callable[[int], Any] = partial(factor, problem.routine, problem.c)
        return compared(problem, "host", cards, run, partial(copy_matrix, problem.c, problem.b))
    few = min(problem.n, 16384)
    part = HostProblem(problem.routine, problem.letter, [x[:few, :few] for x in problem.arrays])
    part.streamed(devices=range(max(cards)))  # contexts and kernels of all cards
    streamed = partial(_streamed, problem)
    return compared(problem, "host", cards, streamed, sample=problem.sample)


def _streamed(problem: HostProblem, count: int) -> None:
    problem.streamed(devices=range(count))


def on_a_card(problem: HostProblem, cards: list[int]) -> Rows:
    """Seconds of matrices on the first card."""
    apart = HostProblem(problem.routine, problem.letter, [cupy.asarray(x, order="F") for x in problem.arrays])

    def prepare() -> None:
        if problem.routine in FACTORS:
            apart.c[...] = apart.b
            cupy.cuda.runtime.deviceSynchronize()

    def run(count: int) -> None:
        if problem.routine in FACTORS:
            factor(problem.routine, apart.c, count)
        else:
            apart.ours(**({"devices": range(count)} if count > 1 else {}))
        cupy.cuda.runtime.deviceSynchronize()

    def sample() -> Any:
        return apart.c.ravel(order="K")[:: max(1, apart.c.size // 1000)].get()

    return compared(problem, "card", cards, run, prepare, None if problem.routine in FACTORS else sample)


def compared(
    problem: HostProblem,
    where: str,
    cards: list[int],
    run: Callable[[int], Any],
    prepare: Callable[[], Any] = lambda: None,
    sample: Callable[[], Any] | None = None,
) -> Rows:
    """Seconds of ``run(cards)``, and how far some entries are from those of the first number of cards."""
    one, base = None, None
    for count in cards:
        took, difference = seconds(partial(run, count), REPEATS, prepare), 0.0
        if sample:
            actual = sample()
            base = actual if base is None else base
            finite = np.isfinite(actual) & np.isfinite(base)
            difference = float(abs(actual - base)[finite].max())
        one = one or took
        yield _row(problem, where, count, took, one, difference)


def _row(problem: HostProblem, where: str, count: int, took: float, one: float, difference: float) -> Row:
    case = {
        "routine": problem.routine,
        "dtype": problem.letter,
        "n": problem.n,
        "where": where,
        "cards": count,
    }
    tflops = cubes(problem.routine) * problem.n**3 / took / 1e12
    return {**case, "seconds": took, "tflops": tflops, "speedup": one / took, "difference": difference}


def by_vendor(problem: HostProblem) -> Rows:
    """Seconds of upload, cuBLAS and download on one card, where it holds the matrices."""
    if 3 * problem.a.nbytes <= 0.9 * cupy.cuda.Device().mem_info[0]:
        took = seconds(problem.vendor(), 1)
        cupy.get_default_memory_pool().free_all_blocks()
        yield _row(problem, "cublas", 1, took, took, 0.0)


def factor(routine: str, array: Any, count: int) -> None:
    """Factor a matrix in place by this number of cards, by tiles if it is in host memory."""
    with streaming(), pyblasgpu.use_devices(range(count)):
        if routine == "potrf":
            info = pyblasgpu.lapack.potrf(array, 1, clean=0, overwrite_a=1)[1]
        else:
            info = pyblasgpu.lapack.getrf(array, overwrite_a=1)[2]
    assert int(info) == 0


def facts(options: Namespace) -> Row:
    if options.kept is not None:
        cards_of_engine.KEPT, cards_of_engine.KEPT_SHARE = options.kept * GIB, 1
    described, present = device_facts(options), cupy.cuda.runtime.getDeviceCount()
    peers = all(can_access(0, other) for other in range(present))
    return {**described, "cards": present, "kept": cards_of_engine.KEPT, "peers": peers}


def rows(options: Namespace) -> Iterator[Row]:
    present = cupy.cuda.runtime.getDeviceCount()
    cards = [count for count in options.cards if count <= present]
    for card in range(max(cards)):  # a context made later would map all page-locked memory first
        cupy.cuda.Device(card).use()
        cupy.zeros(1)
    cupy.cuda.Device(0).use()
    pinned = pinned_for(options)
    for n in options.sizes:
        for letter in options.letters:
            for routine in options.routines:
                yield from measured(routine, letter, n, pinned, cards, options.where)
                if options.vendor and routine in ROUTINES:
                    yield from by_vendor(HostProblem(routine, letter, pinned.matrices(letter, n)))


STUDY = Study(
    "several_cards",
    __doc__,
    rows,
    {
        "letters": "ds",
        "sizes": (16384, 32768),
        "cards": (1, 2, 4, 8),
        "where": Option(("host", "card"), ("host", "card")),
        "routines": Option(("gemm", "syrk", "trsm", "trmm", *FACTORS), (*ROUTINES, *FACTORS)),
        "vendor": Option(False, help="against cuBLAS on one card"),
        "kept": Option(None, kind=int, help="GiB of tile memory that a card keeps between calls"),
    },
    facts,
    key="rows",
    document=nested_document,
    seconds=100,
)

if __name__ == "__main__":
    main(STUDY)
