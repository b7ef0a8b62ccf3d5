"""Level 2 against cuBLAS: ``python -m benchmarks.level2 --out DIR``, and with ``--sweep`` other Configs too.

Calls run one after the other in a CUDA graph, on data that is used in turn, beyond twice the L2 cache; the
median of passes is by events. So what is timed is the device's part, of both libraries alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from ctypes import c_double, c_float, c_void_p
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from benchmarks.study import Namespace, Option, Row, Rows, Study, attempt, cupy, device_facts, main, means
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current
from pyblasgpu.gpu.workspace import OwnedWorkspace
from pyblasgpu.kernels.compile_ahead import compile_missing
from pyblasgpu.kernels.registry import family_of
from pyblasgpu.operands import Operand
from pyblasgpu.routine import extents
from pyblasgpu.routine_table import ROUTINES as TABLE
from pyblasgpu.routines.level2 import gemv, ger, symv, syr, trmv
from pyblasgpu.testing.clocks import device_clock, median_seconds
from pyblasgpu.testing.cublas import Cublas, load
from pyblasgpu.types import DTYPES, Diag, Dtype, Uplo

OBLONG = ((65536, 256), (256, 65536), (16384, 1024), (1024, 16384), (200000, 32), (32, 200000))
ROUTINES = ("gemv_n", "gemv_t", "symv", "ger", "syr", "trmv")
ROWS = {"gemv_n": "gemv", "gemv_t": "gemv"}  # of the table of routines, where names differ
MEMORY, MOST_MEMORY = 5 << 30, 9 << 30  # bytes of the data, of complex128 the second
COPIED = 1 << 30  # bytes of the copy that gives the rate
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
    def nbytes(self) -> int:
        """Bytes that have to be moved."""
        row = TABLE[ROWS.get(self.routine, self.routine)]
        return row.traffic(extents(self.m, self.n)) * self.dtype.itemsize

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
    """Call cuBLAS's routine on the same operands."""
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
        clock = device_clock(self.stream.ptr)
        return median_seconds(lambda: graph.launch(self.stream), clock, repeats=PASSES) / count


@cache
def copy_rate() -> float:
    """Bytes that a copy of the device reads and writes in a second."""
    source = cupy.zeros(COPIED // 4, cupy.float32)
    target = cupy.empty_like(source)
    return 2 * source.nbytes / median_seconds(lambda: cupy.copyto(target, source), device_clock())


def cases(letters: str, routines: Iterable[str], sizes: Iterable[int]) -> Iterator[Case]:
    for letter, routine in product(letters, routines):
        shapes = [(n, n) for n in sizes]
        if routine in ("gemv_n", "gemv_t", "ger"):
            shapes += OBLONG
        yield from (Case(routine, letter, m, n) for m, n in shapes)


#: Family -> parameters of the candidates for SYMV, by their names; the tuner has those of GEMV and GER.
CANDIDATES: dict[str, tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]] = {
    "symv_small": (
        ("WARPS", "SECTORS", "LOADS"),
        ((8, 1, 8), (8, 1, 4), (16, 1, 4), (4, 1, 8), (8, 2, 8), (8, 2, 4)),
    ),
    "symv": (
        ("WARPS", "THR_M", "THR_N"),
        ((16, 4, 4), (8, 4, 8), (4, 4, 8), (8, 4, 4), (8, 2, 4), (4, 2, 8), (8, 2, 8)),
    ),
}
FAMILY_OF = {"gemv_n": "gemv", "gemv_t": "gemv", "syr": "ger", "trmv": "gemv"}


def configs(routine: str, letter: str) -> list[Any]:
    """The candidates for a routine that break no rule."""
    candidates = []
    for family, (names, values) in CANDIDATES.items() if routine == "symv" else ():
        for each in values:
            with suppress(ValueError):
                made = family_of(family).config_class
                candidates.append(made(letter, **dict(zip(names, each, strict=True))))
    return candidates


def kernels(routine: str, letter: str, sweep: bool) -> list[Any]:
    """The kernels that calls of a routine run, those of candidates too."""
    family = family_of(FAMILY_OF.get(routine, routine))
    chosen = [family.fixed_config(letter)]
    if family.is_tuned:
        chosen = list(family.untuned(letter, "t" if routine == "gemv_t" else "n"))
    if sweep:
        chosen += configs(routine, letter)
    return [source for config in chosen for source in family_of(config.STEM).plain_sources(config)]


def seconds_with(bench: Bench, case: Case, config: Any) -> Row:
    with override(config.STEM, config) if config is not None else nullcontext():
        return {"seconds": float(f"{bench.ours(case):.4g}")}


def measured(bench: Bench, case: Case, rate: float, sweep: bool) -> Row:
    """Seconds of both, those of candidates too, and bytes a second over those of a copy."""
    row = seconds_with(bench, case, None)
    row["cublas_seconds"] = float(f"{bench.theirs(case):.4g}")
    row["copy_rate"] = round(case.nbytes / row["seconds"] / rate, 3)
    if sweep:
        candidates = configs(case.routine, case.letter)
        row["candidates"] = [attempt({"config": repr(c)}, seconds_with, bench, case, c) for c in candidates]
    return row


def facts(options: Namespace) -> Row:
    described = device_facts(options)
    return {**described, "copy_bytes_per_second": round(copy_rate())}


def rows(options: Namespace) -> Rows:
    names, rate = ["symv_small", "symv_sum", "copy_scaled", *options.routines], copy_rate()
    listed = (kernels(name, letter, options.sweep) for name, letter in product(names, options.letters))
    compile_missing(list(dict.fromkeys(source for sources in listed for source in sources)), current().cc)
    for letter in options.letters:
        bench = Bench(Data(DTYPES[letter], MOST_MEMORY if letter == "z" else MEMORY))
        for case in cases(letter, options.routines, options.sizes):
            row = {"routine": case.routine, "dtype": letter, "m": case.m, "n": case.n}
            yield attempt(row, measured, bench, case, rate, options.sweep)
        del bench


def summary(rows: list[Row], options: Namespace) -> Iterator[str]:
    timed = [{**row, "ratio": row["cublas_seconds"] / row["seconds"]} for row in rows if "seconds" in row]
    return means(timed)


STUDY = Study(
    "level2",
    __doc__,
    rows,
    {
        "letters": "sdcz",
        "routines": Option(ROUTINES, ROUTINES),
        "sizes": (256, 512, 1024, 2048, 4096, 8192, 16384),
        "sweep": Option(False, help="other Configs of symv too"),
    },
    facts,
    summary=summary,
    seconds=240,
)

if __name__ == "__main__":
    main(STUDY)
