"""SGEMM on tensor cores beside cuBLAS's SGEMM and our own by FMAs: times with packing, and errors.

    python -m benchmarks.gemm_tensor --out DIR [--seconds 55] [--kinds sgemm,cgemm,ranks,...]

Medians by CUDA events over copies of the operands that exceed L2, in one process. The file is written after
each case. `parts` times packing, product and the guard by themselves, `configs` other Configs in turn.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import cupy
import numpy as np

import pyblasgpu
from pyblasgpu.bench import machine
from pyblasgpu.dispatch import tensor as dispatch
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.gpu import launch
from pyblasgpu.gpu.device import current
from pyblasgpu.kernels.compile_ahead import ensure_compiled
from pyblasgpu.kernels.gemm.wgmma import product
from pyblasgpu.kernels.gemm.wgmma.config import GemmWgmma
from pyblasgpu.kernels.gemm.wgmma.image import block_of
from pyblasgpu.routines import launch_list
from pyblasgpu.testing.cublas import load
from pyblasgpu.testing.policies import deciding_by

ORDERS = (512, 768, 1024, 1536, 2048, 4096, 8192, 16384)
COMPLEX_ORDERS = (1024, 2048, 4096, 8192)
PART_ORDERS, ERROR_ORDERS = (1024, 2048, 4096, 8192, 16384), (1024, 4096, 8192)
RANKS = ((8192, 8192, 128), (8192, 8192, 256), (8192, 8192, 512), (16384, 128, 8192), (4096, 4096, 16384))
#: By n: fields of Configs that are timed in turn, with the default among them.
LARGE: tuple[dict[str, Any], ...] = (
    {"BLK_K": 256},
    *({"BLK_K": blk_k, "ordered": ordered} for blk_k in (64, 128) for ordered in (False, True)),
)
SMALL: tuple[dict[str, Any], ...] = tuple(
    {"BLK_N": cols, "cluster": cluster} for cols in (64, 128) for cluster in (1, 2)
)
CONFIGS = {16384: LARGE, 8192: LARGE, 4096: LARGE, 2048: SMALL + LARGE, 1024: SMALL, 1536: SMALL}
PASSES = 5
Cases = Iterator[dict[str, Any]]
Maker = Callable[[int, int, int], cupy.ndarray]  # from rows, columns and a seed
L2 = 2  # times that the operands of a pass exceed it


def normal(rows: int, cols: int, seed: int) -> cupy.ndarray:
    made = cupy.random.RandomState(seed).standard_normal((cols, rows), dtype=np.float32)
    return made.T  # column-major


def complex_normal(rows: int, cols: int, seed: int) -> cupy.ndarray:
    return normal(2 * rows, cols, seed).T.view(np.complex64).T


class Operands:
    """Copies of A, B and C, used in turn."""

    def __init__(self, m: int, n: int, k: int, make: Maker = normal):
        size = make(1, 1, 1).nbytes * (m * k + k * n + m * n)
        enough = max(2, -(-L2 * cupy.cuda.Device().attributes["L2CacheSize"] // size))
        fitting = max(1, int(0.4 * cupy.cuda.Device().mem_info[0]) // size)
        self.sets = [(make(m, k, 1), make(k, n, 2), make(m, n, 3)) for _ in range(min(enough, fitting, 32))]

    def seconds(self, run: Callable[[Any, Any, Any], Any]) -> float:
        """The median of a call."""
        return median([self.seconds_of_pass(run) for _ in range(PASSES + 1)][1:])

    def seconds_of_pass(self, run: Callable[[Any, Any, Any], Any]) -> float:
        rounds = 1 if self.sets[0][2].size > 5000**2 else 4
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(rounds):
            for operands in self.sets:
                run(*operands)
        stop.record()
        stop.synchronize()
        return cupy.cuda.get_elapsed_time(start, stop) / 1e3 / len(self.sets) / rounds


def tensor(a: Any, b: Any, c: Any) -> None:
    pyblasgpu.gemm(a, b, out=c, method="tensor")


def by_fma(a: Any, b: Any, c: Any) -> None:
    pyblasgpu.gemm(a, b, out=c)


def compared(m: int, n: int, k: int, make: Maker = normal) -> dict[str, Any]:
    """Seconds of all three, TFLOP/s and the ratio to cuBLAS."""
    operands, vendor = Operands(m, n, k, make), load()
    vendor.set_stream(cupy.cuda.get_current_stream().ptr)
    ours = operands.seconds(tensor)
    theirs = operands.seconds(lambda a, b, c: vendor.gemm(1.0, a, b, 0.0, c))
    fma = operands.seconds(by_fma)
    work = (2 if make is normal else 8) * m * n * k / 1e12
    return {
        "m": m,
        "n": n,
        "k": k,
        "seconds": ours,
        "cublas": theirs,
        "fma": fma,
        "tflops": work / ours,
        "cublas_tflops": work / theirs,
        "fma_tflops": work / fma,
        "ratio": theirs / ours,
        "ratio_to_fma": fma / ours,
    }


def sgemm() -> Iterator[dict[str, Any]]:
    return (compared(n, n, n) for n in ORDERS)


def cgemm() -> Iterator[dict[str, Any]]:
    """Of complex64: times, and the error of the result over the bound, of parts, of a real product."""
    for n in COMPLEX_ORDERS:
        case = compared(n, n, n, complex_normal)
        a, b, c = (complex_normal(n, n, seed) for seed in (1, 2, 3))
        tensor(a, b, c)
        rows = cupy.arange(0, n, n // 128)
        left = cupy.concatenate((a[rows].real, -a[rows].imag), 1)
        right = cupy.concatenate((b.real, b.imag))
        yield {**case, "units": worst(left, right, c[rows].real)[0]}


def ranks() -> Iterator[dict[str, Any]]:
    return (compared(*extents) for extents in RANKS)


def parts() -> Iterator[dict[str, Any]]:
    """Seconds of each launch of a call by itself, of the host, and of a plan."""
    for n in PART_ORDERS:
        operands = Operands(n, n, n)
        each = launches(operands)
        a, b, c = operands.sets[0]
        plan = pyblasgpu.plan_gemm(a, b, c, method="tensor")
        host = host_seconds(tensor, a, b, c)
        planned = operands.seconds(lambda *_, plan=plan, first=operands.sets[0]: plan(*first))
        yield {"n": n, "parts": each, "host": host, "plan": planned}


def seconds_of(run: Callable, *operands: Any) -> float:
    """Of one call, between events."""
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    run(*operands)
    stop.record()
    stop.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, stop)) / 1e3


def host_seconds(run: Callable, *operands: Any) -> float:
    """What a call takes the host, with nothing to wait for."""
    times = []
    for _ in range(20):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        run(*operands)
        times.append(time.perf_counter() - begin)
    return median(times[1:])


def configs() -> Iterator[dict[str, Any]]:
    """Seconds of a call with other Configs, a pass of each in turn."""
    fields_of: list[dict[str, Any]] = [
        {"BLK_K": block_of(n), **fields} for n, each in CONFIGS.items() for fields in each
    ]
    ensure_compiled([product.source(GemmWgmma(**fields)) for fields in fields_of], cupy.cuda.Device().id)
    for n, all_fields in CONFIGS.items():
        yield from in_turn(Operands(n, n, n), all_fields, configured)


def in_turn(
    operands: Operands,
    all_fields: Sequence[dict[str, Any]],
    configured: Callable[..., AbstractContextManager[None]],
) -> Iterator[dict[str, Any]]:
    """Seconds of a call on square matrices with each of these Configs, a pass of each in turn."""
    n = operands.sets[0][0].shape[0]
    times: list[list[float]] = [[] for _ in all_fields]
    for _ in range(PASSES):
        for fields, mine in zip(all_fields, times, strict=True):
            with configured(**fields):
                tensor(*operands.sets[0])
                mine.append(operands.seconds_of_pass(tensor))
    for fields, mine in zip(all_fields, times, strict=True):
        yield {"n": n, **fields, "seconds": median(mine), "tflops": 2 * n**3 / 1e12 / median(mine)}


@contextmanager
def configured(**fields: Any) -> Iterator[None]:
    """With this Config, and its BLK_K if that is among the fields."""
    forget()
    blk_k_of = (lambda k: fields["BLK_K"]) if "BLK_K" in fields else block_of
    try:
        with mock.patch.object(dispatch, "block_of", blk_k_of), override("gemm_wgmma", GemmWgmma(**fields)):
            yield
    finally:
        forget()


def forget() -> None:
    """Lists of launches hold the kernels' methods."""
    launch_list.cache.clear()
    call_cache.clear()


def launches(operands: Operands) -> dict[str, float]:
    """Seconds of the launches of a call, by kernel."""
    spent: dict[str, list[float]] = {}
    for call in launches_of([each for _ in range(PASSES) for each in operands.sets[:4]]):
        for name, seconds in call:
            spent.setdefault(name, []).append(seconds)
    return {name: median(times) for name, times in spent.items()}


def launches_of(operands: Sequence[Sequence[cupy.ndarray]]) -> list[list[tuple[str, float]]]:
    """Kernels and seconds of the launches of a call on each of these, with events between them."""
    spent: list[list[tuple[str, Any, Any]]] = []
    original = launch.LoadedKernel.launch

    def timed(self: launch.LoadedKernel, *arguments: Any, **options: Any) -> None:
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        original(self, *arguments, **options)
        stop.record()
        spent[-1].append((self.source.name, start, stop))

    forget()
    try:
        with mock.patch.object(launch.LoadedKernel, "launch", timed):
            for each in operands:
                spent.append([])
                tensor(*each)
    finally:
        forget()
    cupy.cuda.Device().synchronize()
    return [
        [(name, cupy.cuda.get_elapsed_time(start, stop) / 1e3) for name, start, stop in call]
        for call in spent
    ]


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
    a, b, rng = normal(n, n, 1), normal(n, n, 2), cupy.random.RandomState(3)
    grade = cupy.float32(2) ** rng.randint(-12, 13, n).astype(np.float32)
    yield "normal", a, b
    yield "uniform", cupy.abs(a) % 1, cupy.abs(b) % 1
    yield "graded_12", a * grade, b / grade[:, None]
    yield "rows_of_any_size", a * (grade**2)[:, None], b
    yield "wide", ((rng.random_sample((n, n)) - 0.5) * cupy.exp(4 * a)).astype(np.float32), b
    yield "exponentials", cupy.exp(-a * a), cupy.exp(-b * b)
    few = cupy.where(rng.random_sample((n, n)) < 1 / n**2, a * cupy.float32(1e-15), a)
    yield "one_tiny", few, b


def errors() -> Iterator[dict[str, Any]]:
    """Errors on kinds of data beside cuBLAS's, and seconds, which tell how much FMAs had to do."""
    vendor = load()
    vendor.set_stream(cupy.cuda.get_current_stream().ptr)
    for n in ERROR_ORDERS:
        for kind, a, b in hard(n):
            a, b = cupy.asfortranarray(a), cupy.asfortranarray(b)
            c = cupy.empty((n, n), np.float32, order="F")
            tensor(a, b, c)
            ours = worst(a, b, c)
            times = [seconds_of(tensor, a, b, c) for _ in range(PASSES)]
            vendor.gemm(1.0, a, b, 0.0, c)
            theirs = worst(a, b, c)
            yield {
                "n": n,
                "data": kind,
                "units": ours[0],
                "over_bound": ours[1],
                "cublas_units": theirs[0],
                "cublas_over_bound": theirs[1],
                "seconds": median(times),
            }


KINDS = {"sgemm": sgemm, "cgemm": cgemm, "errors": errors, "ranks": ranks, "parts": parts, "configs": configs}


def main() -> None:
    with deciding_by(fp16_min_extent=0, fp16_min_work=0):  # below the crossover too
        write_kinds("gemm_tensor", KINDS, __doc__)


def write_kinds(
    name: str, kinds: dict[str, Callable[[], Iterator[dict[str, Any]]]], about: str | None
) -> None:
    """Run the kinds of cases that the command line names, and write the file after each case."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=55)
    parser.add_argument("--kinds", default=",".join(kinds))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = machine.describe(current(), load())
    begin = time.monotonic()
    for kind in options.kinds.split(","):
        for case in kinds[kind]():
            document.setdefault(kind, []).append(case)
            (options.out / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
            print(kind, case, flush=True)
            if time.monotonic() - begin > options.seconds:
                return


if __name__ == "__main__":
    main()
