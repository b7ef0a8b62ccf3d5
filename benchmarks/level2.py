"""Level 2 beside cuBLAS: ``python -m benchmarks.level2 --out DIR``, and with ``--sweep`` other Configs too.

Calls run one after the other in a CUDA graph, on data that is used in turn, beyond twice the L2 cache; the
median of passes is by events. So what is timed is the device's part, of both libraries alike.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from ctypes import c_double, c_float, c_void_p
from datetime import date
from itertools import product
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import cupy

from pyblasgpu.bench.machine import commit
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current
from pyblasgpu.gpu.workspace import OwnedWorkspace
from pyblasgpu.kernels.compile_ahead import compile_missing
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.operands import Operand
from pyblasgpu.routines import gemv, ger, symv, syr, trmv
from pyblasgpu.testing.cublas import Cublas, load
from pyblasgpu.types import DTYPES, Diag, Dtype, Uplo

SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
OBLONG = ((65536, 256), (256, 65536), (16384, 1024), (1024, 16384), (200000, 32), (32, 200000))
ROUTINES = ("gemv_n", "gemv_t", "symv", "ger", "syr", "trmv")
MEMORY, MOST_MEMORY = 5 << 30, 9 << 30  # bytes of the data, of complex128 the second
COPIED = 1 << 30  # bytes whose copy tells the rate
PASSES, LEAST_CALLS, MOST_CALLS = 5, 4, 200


class Case(NamedTuple):
    """One call: m by n of a dtype."""

    routine: str
    letter: str
    m: int
    n: int

    @property
    def dtype(self) -> Dtype:
        return DTYPES[self.letter]

    @property
    def nbytes(self) -> float:
        """Bytes that have to be moved."""
        half = self.routine in ("symv", "syr", "trmv")
        elements = self.m * self.n / (2 if half else 1) * (2 if self.routine in ("ger", "syr") else 1)
        return (elements + 2 * self.m + self.n) * self.dtype.itemsize

    @property
    def stride(self) -> int:
        """Bytes from the data of one call to that of the next."""
        return -(-(self.m * self.n + 2 * (self.m + self.n) + 256) * self.dtype.itemsize // 256) * 256


class Data:
    """Random numbers of one dtype, which calls take their arrays from."""

    def __init__(self, dtype: Dtype, nbytes: int):
        count = nbytes // dtype.real_size
        self.memory = cupy.random.default_rng(1).standard_normal(count, dtype=dtype.real)
        self.memory *= 2.0**-8

    def operands(self, case: Case, number: int) -> tuple[Operand, Operand, Operand]:
        """A, a vector of n and one of m elements, each at a multiple of 256 bytes."""
        m, n, size = case.m, case.n, case.dtype.itemsize
        start = self.memory.data.ptr + number * case.stride
        x = start + -(-m * n * size // 256) * 256
        y = x + -(-n * size // 256) * 256
        a = Operand(start, m, n, 1, m, case.dtype)
        return a, Operand(x, n, 1, 1, n, case.dtype), Operand(y, m, 1, 1, m, case.dtype)


def ours(case: Case, a: Operand, x: Operand, y: Operand) -> tuple[Any, tuple[Operand, ...], tuple[Any, ...]]:
    """The launch list, the operands that it runs on, alpha and beta."""
    if case.routine == "gemv_n":
        return gemv.launch_list(0.5, a, x, 0, y), (a, x, y), (0.5, 0)
    if case.routine == "gemv_t":
        return gemv.launch_list(0.5, a.T, y, 0, x), (a.T, y, x), (0.5, 0)
    if case.routine == "symv":
        launches = symv.launch_list(0.5, a, x, 0, y, uplo=Uplo.LOWER, hermitian=case.dtype.is_complex)
        return launches, (a, x, y), (0.5, 0)
    if case.routine == "ger":
        return ger.launch_list(0.5, y, x, a), (y, x, a), (0.5, 0)
    if case.routine == "syr":
        launches = syr.launch_list(0.5, x, a, uplo=Uplo.LOWER, hermitian=case.dtype.is_complex)
        return launches, (x, a), (0.5, 0)
    return trmv.launch_list(a, x, uplo=Uplo.LOWER, diag=Diag.NON_UNIT), (a, x), (1, 0)


def theirs(library: Cublas, case: Case, a: Operand, x: Operand, y: Operand) -> None:
    """The same by cuBLAS."""
    m, n, dtype = case.m, case.n, case.dtype
    real: Any = c_float if dtype.real_size == 4 else c_double
    alpha, beta = ((real * 2)(value, 0) for value in (0.5, 0))
    memory, first, second = (c_void_p(operand.pointer) for operand in (a, x, y))
    if case.routine in ("gemv_n", "gemv_t"):
        code, vectors = (0, (first, second)) if case.routine == "gemv_n" else (1, (second, first))
        library.call("gemv", dtype, code, m, n, alpha, memory, m, vectors[0], 1, beta, vectors[1], 1)
    elif case.routine == "symv":
        name = "hemv" if dtype.is_complex else "symv"
        library.call(name, dtype, 0, n, alpha, memory, n, first, 1, beta, second, 1)
    elif case.routine == "ger":
        name = "geru" if dtype.is_complex else "ger"
        library.call(name, dtype, m, n, alpha, second, 1, first, 1, memory, m)
    elif case.routine == "syr":
        name = "her" if dtype.is_complex else "syr"
        library.call(name, dtype, 0, n, alpha, first, 1, memory, n)
    else:
        library.call("trmv", dtype, 0, 0, 0, n, memory, n, first, 1)


class Bench:
    """Times calls on one stream of the device.

    Parameters
    ----------
    data : Data
    """

    def __init__(self, data: Data):
        self.data, self.stream = data, cupy.cuda.Stream(non_blocking=True)
        self.library, self.workspace = load(), OwnedWorkspace(256 << 20, cupy.cuda.Device().id)
        self.library.set_stream(self.stream.ptr)
        self.twice_l2 = 2 * cupy.cuda.Device().attributes["L2CacheSize"]

    def calls(self, case: Case) -> int:
        most = min(MOST_CALLS, self.data.memory.nbytes // case.stride)
        return max(1, min(most, max(LEAST_CALLS, -(-self.twice_l2 // case.stride))))

    def ours(self, case: Case) -> float:
        """Seconds of a call of ours."""
        calls = [ours(case, *self.data.operands(case, number)) for number in range(self.calls(case))]
        launches, _, scalars = calls[0]
        enqueue = launches.bound_at(self.workspace.address, *scalars)
        runs = [[operand.pointer for operand in operands] for _, operands, _ in calls]
        return self._seconds(lambda: [enqueue(bases, self.stream.ptr) for bases in runs], len(runs))

    def theirs(self, case: Case) -> float:
        """Seconds of a call of cuBLAS's."""
        runs = [self.data.operands(case, number) for number in range(self.calls(case))]

        def enqueue() -> None:
            for run in runs:
                theirs(self.library, case, *run)

        return self._seconds(enqueue, len(runs))

    def _seconds(self, enqueue: Callable[[], Any], count: int) -> float:
        enqueue()
        self.stream.synchronize()
        with self.stream:
            self.stream.begin_capture()
            enqueue()
            graph = self.stream.end_capture()
        times = []
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        for _ in range(1 + PASSES):
            start.record(self.stream)
            graph.launch(self.stream)
            end.record(self.stream)
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(start, end) / 1e3 / count)
        return median(times[1:])


def copy_rate() -> float:
    """Bytes that a copy of the device reads and writes in a second."""
    source = cupy.zeros(COPIED // 4, cupy.float32)
    target, times = cupy.empty_like(source), []
    for _ in range(6):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        cupy.copyto(target, source)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return 2 * source.nbytes / median(times[1:])


def cases(letters: str, routines: Iterable[str], sizes: Iterable[int]) -> Iterator[Case]:
    for letter, routine in product(letters, routines):
        shapes = [(n, n) for n in sizes]
        if routine in ("gemv_n", "gemv_t", "ger"):
            shapes += OBLONG
        yield from (Case(routine, letter, m, n) for m, n in shapes)


#: Routine -> parameters of the candidates, by their names.
CANDIDATES: dict[str, tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]] = {
    "symv_small": (
        ("WARPS", "SECTORS", "LOADS"),
        ((8, 1, 8), (8, 1, 4), (16, 1, 4), (4, 1, 8), (8, 2, 8), (8, 2, 4)),
    ),
    "gemv_n": (
        ("WARPS", "DIM_R", "THR_O", "THR_R"),
        (*((16, dim, 4, 4) for dim in (4, 16, 32, 64, 128)), *((8, dim, 4, 4) for dim in (8, 32, 64, 128))),
    ),
    "gemv_t": (
        ("WARPS", "DIM_R", "THR_O", "THR_R"),
        (
            *((16, dim, 2, 4) for dim in (8, 32, 64, 128, 256, 512)),
            *((8, dim, 2, 4) for dim in (4, 16, 64, 128, 256)),
        ),
    ),
    "symv": (
        ("WARPS", "THR_M", "THR_N"),
        ((16, 4, 4), (8, 4, 8), (4, 4, 8), (8, 4, 4), (8, 2, 4), (4, 2, 8), (8, 2, 8)),
    ),
    "ger": (
        ("DIM_M", "DIM_N", "THR_M", "THR_N"),
        ((32, 4, 4, 2), (32, 8, 4, 4), (32, 4, 2, 4), (32, 8, 4, 2)),
    ),
}
FAMILY_OF = {
    "gemv_n": "gemv",
    "gemv_t": "gemv",
    "symv": "symv",
    "ger": "ger",
    "syr": "ger",
    "trmv": "gemv",
}
#: Whose candidates a routine takes.
LIKE = {"syr": "ger", "trmv": "gemv_n"}


def configs(routine: str, letter: str) -> list[Any]:
    """The candidates for a routine that break no rule."""
    fixed = {"transposed": True} if routine == "gemv_t" else {}
    candidates = []
    for which in ("symv", "symv_small") if routine == "symv" else (LIKE.get(routine, routine),):
        names, values = CANDIDATES[which]
        made = family_of(FAMILY_OF.get(which, which)).config_class
        for each in values:
            with suppress(ValueError):
                candidates.append(made(letter, **fixed, **dict(zip(names, each, strict=True))))
    return candidates


def kernels(routine: str, letter: str, sweep: bool) -> list[Any]:
    """The kernels that calls of a routine run, those of candidates too."""
    family = family_of(FAMILY_OF.get(routine, routine))
    chosen = [family.fixed_config(letter)]
    if family.is_tuned:
        layout = "t" if routine == "gemv_t" else "n"
        chosen = list(family.untuned(letter, layout))
    if sweep and routine in FAMILY_OF:
        chosen += configs(routine, letter)
    each_config = (family_of(config.STEM).plain_sources(config) for config in chosen)
    return list(dict.fromkeys(source for sources in each_config for source in sources))


def measure(bench: Bench, case: Case, config: Any = None) -> dict[str, Any]:
    """One row."""
    row: dict[str, Any] = {**case._asdict(), "bytes": case.nbytes}
    try:
        with override(config.STEM, config) if config is not None else nullcontext():
            row["ours"] = bench.ours(case)
            row["config"] = repr(config) if config is not None else "default"
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dtype", default="sdcz")
    parser.add_argument("--routine", nargs="*", default=ROUTINES, choices=ROUTINES)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--seconds", type=float, default=240, help="after which nothing more is timed")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    begin, device, rate = time.monotonic(), current(), copy_rate()
    names = ["symv_small", "symv_sum", "copy_scaled", *options.routine]
    sources = [
        source
        for name, letter in product(names, options.dtype)
        for source in kernels(name, letter, options.sweep)
    ]
    sources = list(dict.fromkeys(sources))
    compile_missing(sources, device.cc)
    print(f"{len(sources)} kernels after {time.monotonic() - begin:.0f} s; copy rate {rate / 1e9:.0f} GB/s")
    rows: list[dict[str, Any]] = []
    for letter in options.dtype:
        bench = Bench(Data(DTYPES[letter], MOST_MEMORY if letter == "z" else MEMORY))
        for case in cases(letter, options.routine, options.sizes):
            if time.monotonic() - begin > options.seconds:
                break
            measurements = [measure(bench, case)]
            if options.sweep:
                measurements += [measure(bench, case, config) for config in configs(case.routine, letter)]
            seconds = bench.theirs(case)
            rows += [{**row, "cublas": seconds} for row in measurements]
            best = min(
                (row for row in measurements if "ours" in row), key=lambda row: row["ours"], default=None
            )
            show(case, measurements[0], best, seconds, rate)
        del bench
        result = {"device": device.name, "copy_rate": rate, "rows": rows}
        (options.out / f"level2{'-sweep' if options.sweep else ''}.json").write_text(
            json.dumps(result, indent=0)
        )
    (options.out / "level2-results.json").write_text(json.dumps(results_of(device, rate, rows), indent=0))
    for routine, letter in product(options.routine, options.dtype):
        ratios = [
            row["cublas"] / row["ours"]
            for row in rows
            if (row["routine"], row["letter"], row.get("config")) == (routine, letter, "default")
        ]
        if ratios:
            print(f"{letter}{routine}: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    return 0


def results_of(device: Any, rate: float, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The times of the Configs that serve, as `benchmarks/results` keeps them."""
    results = [
        {
            "routine": row["routine"],
            "dtype": row["letter"],
            "m": row["m"],
            "n": row["n"],
            "seconds": float(f"{row['ours']:.4g}"),
            "cublas_seconds": float(f"{row['cublas']:.4g}"),
            "copy_rate": round(row["bytes"] / row["ours"] / rate, 3),
        }
        for row in rows
        if row.get("config") == "default"
    ]
    made = {"device": device.name, "date": date.today().isoformat(), "commit": commit()}
    return {**made, "copy_bytes_per_second": round(rate), "results": results}


def show(case: Case, row: dict[str, Any], best: dict[str, Any] | None, seconds: float, rate: float) -> None:
    name = f"{case.letter}{case.routine} {case.m} x {case.n}"
    if "error" in row or best is None:
        print(name, row.get("error"))
        return
    used = case.nbytes / row["ours"] / rate
    text = f"{name}: {row['ours'] * 1e6:.1f} us, {used:.2f} of the copy rate, cuBLAS {seconds * 1e6:.1f} us"
    print(f"{text}, ratio {seconds / row['ours']:.2f}, best {seconds / best['ours']:.2f} {best['config']}")


if __name__ == "__main__":
    sys.exit(main())
