"""SGEMM on tensor cores against cuBLAS's SGEMM and our own by FMAs: times with packing, and errors.

    python -m benchmarks.gemm_tensor --out DIR [--seconds 55] [--kinds sgemm,cgemm,ranks,...]

Medians by CUDA events over copies of the operands that exceed L2, in one process. `parts` times packing,
product and the guard by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from statistics import median
from typing import Any
from unittest import mock

import cupy
import numpy as np

import pyblasgpu
from benchmarks.arrays import normal
from benchmarks.study import Namespace, Row, Rows, Study, device_facts, main
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.gpu import launch
from pyblasgpu.gpu.events import Stopwatch
from pyblasgpu.routines import launch_list
from pyblasgpu.testing.clocks import device_clock, median_seconds, medians_in_turn
from pyblasgpu.testing.cublas import load
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES

ORDERS = (512, 768, 1024, 1536, 2048, 4096, 8192, 16384)
COMPLEX_ORDERS = (1024, 2048, 4096, 8192, 16384)
PART_ORDERS, ERROR_ORDERS = (1024, 2048, 4096, 8192, 16384), (1024, 4096, 8192)
RANKS = ((8192, 8192, 128), (8192, 8192, 256), (8192, 8192, 512), (16384, 128, 8192), (4096, 4096, 16384))
#: TFLOP/s that GEMMul8 has published for a GH200, with moduli for results as accurate as those of the type.
PUBLISHED: dict[str, dict[int, float]] = {
    "d": {1024: 7.7, 2048: 24.4, 4096: 52.2, 8192: 66.7, 16384: 82.5, 32768: 90.8},
    "c": {2048: 61, 4096: 149, 8192: 188, 16384: 228},
    "z": {8192: 92, 16384: 113},
}
PASSES = 5
L2 = 2  # times that the operands of a pass exceed it

Kind = Callable[[Namespace], Iterable[Row]]


class Operands:
    """Copies of A, B and C, used in turn."""

    def __init__(self, letter: str, m: int, n: int, k: int):
        size = DTYPES[letter].itemsize * (m * k + k * n + m * n)
        enough = max(2, -(-L2 * cupy.cuda.Device().attributes["L2CacheSize"] // size))
        count = min(enough, max(1, int(0.4 * cupy.cuda.Device().mem_info[0]) // size), 32)
        extents = (m, k), (k, n), (m, n)
        self.sets = [
            [normal(letter, *each, seed) for seed, each in enumerate(extents, 1)] for _ in range(count)
        ]

    def seconds(self, run: Callable[..., Any], passes: int | None = None, untimed: int = 1) -> float:
        """The median of a call."""
        return self.in_turn({"": run}, passes, untimed)[""]

    def in_turn(
        self, runs: Mapping[str, Callable[..., Any]], passes: int | None = None, untimed: int = 1
    ) -> dict[str, float]:
        """The median of a call of each, a pass of each in turn."""
        rounds = 1 if self.sets[0][2].size > 5000**2 else 4

        def pass_of(run: Callable[..., Any]) -> Callable[[], None]:
            def one_pass() -> None:
                for _ in range(rounds):
                    for operands in self.sets:
                        run(*operands)

            return one_pass

        made = {name: pass_of(run) for name, run in runs.items()}
        taken = medians_in_turn(made, device_clock(), repeats=passes or PASSES, untimed=untimed)
        return {name: seconds / len(self.sets) / rounds for name, seconds in taken.items()}


def tensor(a: Any, b: Any, c: Any) -> None:
    pyblasgpu.gemm(a, b, out=c, method="tensor")


def by_fma(a: Any, b: Any, c: Any) -> None:
    pyblasgpu.gemm(a, b, out=c)


def vendor(routine: str = "gemm") -> Callable[[Any, Any, Any], None]:
    """cuBLAS's product, on the current stream."""
    library = load()
    library.set_stream(cupy.cuda.get_current_stream().ptr)
    return lambda a, b, c: getattr(library, routine)(1.0, a, b, 0.0, c)


def vendors(letter: str) -> dict[str, Callable[[Any, Any, Any], None]]:
    """cuBLAS's ways to a product: of complex matrices also three real products."""
    three = {"cublas_3m": vendor("gemm3m")} if DTYPES[letter].is_complex else {}
    return {"cublas": vendor(), **three}


def compared(letter: str, m: int, n: int, k: int, around: AbstractContextManager[Any] | None = None) -> Row:
    """Seconds of each way in turn, all in a context, TFLOP/s and the ratios, to the vendor's best way."""
    operands, work = Operands(letter, m, n, k), DTYPES[letter].flops_per_fma * m * n * k / 1e12
    theirs = vendors(letter)
    with around or nullcontext():
        seconds = operands.in_turn({**theirs, "fma": by_fma, "ours": tensor})
    ours = seconds.pop("ours")
    rates = {"tflops": work / ours, **{f"{way}_tflops": work / spent for way, spent in seconds.items()}}
    best = min(seconds[way] for way in theirs)
    ratios = {"ratio": best / ours, "ratio_to_fma": seconds["fma"] / ours}
    published = PUBLISHED.get(letter, {}).get(n)
    if published and m == n == k:
        ratios["ratio_to_published"] = work / ours / published
    return {"m": m, "n": n, "k": k, "seconds": ours, **seconds, **rates, **ratios}


def sgemm() -> Rows:
    return (compared("s", n, n, n) for n in ORDERS)


def cgemm() -> Rows:
    """Rows of complex64: times, and the error of the result over the bound, of parts, of a real product."""
    for n in COMPLEX_ORDERS:
        case = compared("c", n, n, n)
        a, b, c = (normal("c", n, n, seed) for seed in (1, 2, 3))
        tensor(a, b, c)
        rows = cupy.arange(0, n, n // 128)
        left = cupy.concatenate((a[rows].real, -a[rows].imag), 1)
        right = cupy.concatenate((b.real, b.imag))
        yield {**case, "units": worst(left, right, c[rows].real)[0]}


def ranks() -> Rows:
    return (compared("s", *extents) for extents in RANKS)


def parts() -> Rows:
    """Seconds of each launch of a call by itself, of the host, and of a plan."""
    for n in PART_ORDERS:
        operands = Operands("s", n, n, n)
        spent: dict[str, list[float]] = {}
        for call in launches_of([each for _ in range(PASSES) for each in operands.sets[:4]]):
            for name, seconds in call:
                spent.setdefault(name, []).append(seconds)
        a, b, c = operands.sets[0]
        plan = pyblasgpu.plan_gemm(a, b, c, method="tensor")

        def call_once(a: Any = a, b: Any = b, c: Any = c) -> None:
            tensor(a, b, c)

        def call_plan(*_: Any, plan: Any = plan, first: Any = (a, b, c)) -> None:
            plan(*first)

        host = median_seconds(call_once, prepare=cupy.cuda.Device().synchronize, repeats=19)
        each = {name: median(times) for name, times in spent.items()}
        yield {"n": n, "parts": each, "host": host, "plan": operands.seconds(call_plan)}


def seconds_of(run: Callable[..., Any], *operands: Any) -> float:
    """Seconds of one call, between events."""
    return Stopwatch(0).seconds(lambda: run(*operands))


def forget() -> None:
    """Lists of launches hold the kernels' methods."""
    launch_list.cache.clear()
    call_cache.clear()


def launches_of(operands: Sequence[Sequence[cupy.ndarray]]) -> list[list[tuple[str, float]]]:
    """Kernels and seconds of the launches of a call on each of these, with events between them."""
    spent: list[list[tuple[str, Stopwatch]]] = []
    original = launch.LoadedKernel.launch

    @wraps(original)
    def timed(self: launch.LoadedKernel, *arguments: Any, **options: Any) -> None:
        spent[-1].append((self.source.name, Stopwatch(0)))
        spent[-1][-1][1].enqueue(lambda: original(self, *arguments, **options))

    forget()
    try:
        with mock.patch.object(launch.LoadedKernel, "launch", timed):
            for each in operands:
                spent.append([])
                tensor(*each)
    finally:
        forget()
    cupy.cuda.Device().synchronize()
    return [[(name, watch.elapsed()) for name, watch in call] for call in spent]


def worst(a: cupy.ndarray, b: cupy.ndarray, c: cupy.ndarray) -> tuple[float, float]:
    """Largest error over u |A||B|, and over the bound (k + 2) u |A||B|, of 512 rows at most."""
    rows = cupy.arange(0, a.shape[0], max(a.shape[0] // 512, 1))
    wide, right = a[rows].astype(np.float64), b.astype(np.float64)
    error = abs(c[rows] - wide @ right)
    sizes = abs(wide) @ abs(right)
    scaled = float(cupy.max(cupy.where(sizes > 0, error / cupy.where(sizes > 0, sizes, 1), 0))) * 2**24
    return scaled, scaled / (a.shape[1] + 2)


def hard(n: int) -> Iterator[tuple[str, cupy.ndarray, cupy.ndarray]]:
    """Kinds of data, with their operands."""
    a, b, rng = normal("s", n, n, 1), normal("s", n, n, 2), cupy.random.RandomState(3)
    grade = cupy.float32(2) ** rng.randint(-12, 13, n).astype(np.float32)
    yield "normal", a, b
    yield "uniform", cupy.abs(a) % 1, cupy.abs(b) % 1
    yield "graded_12", a * grade, b / grade[:, None]
    yield "rows_of_any_size", a * (grade**2)[:, None], b
    yield "wide", ((rng.random_sample((n, n)) - 0.5) * cupy.exp(4 * a)).astype(np.float32), b
    yield "exponentials", cupy.exp(-a * a), cupy.exp(-b * b)
    few = cupy.where(rng.random_sample((n, n)) < 1 / n**2, a * cupy.float32(1e-15), a)
    yield "one_tiny", few, b


def errors() -> Rows:
    """Errors on kinds of data against cuBLAS's, and seconds, which show how much FMAs had to do."""
    theirs = vendor()
    for n in ERROR_ORDERS:
        for kind, a, b in hard(n):
            a, b = cupy.asfortranarray(a), cupy.asfortranarray(b)
            c = cupy.empty((n, n), np.float32, order="F")
            tensor(a, b, c)
            units, over_bound = worst(a, b, c)
            row = {"n": n, "data": kind, "units": units, "over_bound": over_bound}
            row["seconds"] = median([seconds_of(tensor, a, b, c) for _ in range(PASSES)])
            theirs(a, b, c)
            row["cublas_units"], row["cublas_over_bound"] = worst(a, b, c)
            yield row


def study(name: str, about: str | None, *kinds: Callable[[], Rows], **names: Callable[[], Rows]) -> Study:
    """A study of several kinds of cases, below the crossover too."""
    every = {**{kind.__name__: kind for kind in kinds}, **names}

    def rows_of(kind: Callable[[], Rows]) -> Kind:
        def rows(options: Namespace) -> Rows:
            with deciding_by(fp16_min_extent=0, fp16_min_work=0):
                yield from kind()

        return rows

    made = {kind: rows_of(rows) for kind, rows in every.items()}
    return Study(name, about, made, {}, lambda options: device_facts(options, load()), seconds=55)


STUDY = study("gemm_tensor", __doc__, sgemm, cgemm, errors, ranks, parts)

if __name__ == "__main__":
    main(STUDY)
