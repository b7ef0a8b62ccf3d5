"""What few Configs cost: calls of this package against those of another checkout, in turns on one device.

``python -m benchmarks.catalogue_loss --old DIR [--out DIR] [--budget 150]`` starts a process of each. Both
compile what their calls need, many kernels at a time; then each case is timed by both in turns, short ones
more often. A kernel that waits is enqueued before what is timed, so that the host does not count.
Reported are the geometric mean and the least of old / new seconds, by list. ``--list`` names some lists
alone. The file has the Configs of products, too, for `tuning/gather_calls.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any
from unittest import mock

HERE = Path(__file__).parents[1]
DTYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}
MEAN, LEAST = 0.985, 0.93  # what is aimed at
PASSES = 3
ROUNDS = ((20e-6, 8), (200e-6, 4), (math.inf, 2))  # of cases that take less than so many seconds
LARGE = 4 << 30  # bytes that a process keeps between cases
LONG = 0.02  # seconds of a pass that is not run more often than it must be
HOST = 30_000  # nanoseconds of the host a call
WAIT = """
extern "C" __global__ void wait(long long nanoseconds) {
    long long now, begun;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begun < nanoseconds);
}
"""

Case = dict[str, Any]


def _case(
    routine: str, dtype: str, flags: str, *extents: int, name: str = "", pad: int = 0, shift: int = 0
) -> Case:
    case = {"list": name or routine, "routine": routine, "dtype": dtype, "flags": flags}
    return {**case, "extents": [*extents], "pad": pad, "shift": shift}


def squares() -> Iterator[Case]:
    """The orders of the tables."""
    for dtype in DTYPES:
        for flags in ("NN", "NT", "TN", "TT"):
            for n in (256, 512, 1024, 2048, 4096, 8192):
                yield _case("gemm", dtype, flags, n, n, n, name="squares")


def awkward() -> Iterator[Case]:
    """Long, thin and odd ones."""
    from pyblasgpu.bench.command import SHAPES

    shapes = [*SHAPES["awkward"], *SHAPES["between"]]
    yield from (_case("gemm", dtype, "NN", *shape, name="awkward") for dtype in DTYPES for shape in shapes)


def cliffs() -> Iterator[Case]:
    """Squares of any order, as they come, with an odd leading stride, and misaligned."""
    chance = random.Random(1)
    for dtype in DTYPES:
        for number in range(45):
            n = chance.randint(24, 600) if number % 2 else chance.randint(600, 4200)
            flags = chance.choice(["NN", "NT", "TN", "TT"])
            pad, shift = ((0, 0), (1 + n % 2, 0), (-n % 4, 1))[number % 3]
            yield _case("gemm", dtype, flags, n, n, n, name="cliffs", pad=pad, shift=shift)


def triangular() -> Iterator[Case]:
    """TRSM and TRMM, mostly T on the left."""
    for dtype in DTYPES:
        for routine in ("trsm", "trmm"):
            for order in (256, 1024, 2048, 4096):
                for rhs in sorted({32, 512, order}):
                    yield _case(routine, dtype, "LLN", order, rhs)
            for flags in ("LUN", "LLT", "RUN", "RLT", "RUT"):
                yield _case(routine, dtype, flags, 1024, 1024)


def level3() -> Iterator[Case]:
    """The symmetric routines."""
    for dtype in DTYPES:
        names = ["symm", "syrk", "syr2k", *(("hemm", "herk", "her2k") if dtype in "cz" else ())]
        for routine in names:
            for n in (512, 2048, 4096):
                for flags in ("LN", "UT") if "r" in routine[:3] else ("LN",):
                    letter = "C" if routine in ("herk", "her2k") and flags[1] == "T" else flags[1]
                    yield _case(routine, dtype, flags[0] + letter, n, n, name="level3")


def batches() -> Iterator[Case]:
    """Batches of small products, and of small triangles with few and many columns."""
    for dtype in DTYPES:
        for n, count in ((8, 20000), (16, 10000), (32, 5000), (64, 2000), (128, 500), (256, 200)):
            yield {**_case("gemm", dtype, "NN", n, n, n, name="batches"), "batch": count}
        for order, rhs, count in (
            (8, 8, 20000),
            (8, 64, 5000),
            (16, 16, 10000),
            (16, 128, 2000),
            (32, 64, 2000),
        ):
            yield {**_case("trsm", dtype, "LLN", order, rhs, name="batches"), "batch": count}


LISTS = {rows.__name__: rows for rows in (squares, awkward, cliffs, triangular, level3, batches)}


class Calls:
    """Makes, times and collects calls of the package that this process imports."""

    def __init__(self) -> None:
        import cupy

        import pyblasgpu

        self._cupy, self._package = cupy, pyblasgpu
        self._wait = cupy.RawKernel(WAIT, "wait")
        self._l2 = cupy.cuda.Device().attributes["L2CacheSize"]
        self._sets: list[tuple] = []
        self._case: Case | None = None

    def kernels(self, cases: list[Case]) -> dict[str, Any]:
        """Compile what these need, on all cores: the count, the Configs of products, the architecture."""
        from pyblasgpu.gpu.device import current
        from pyblasgpu.kernels.compile_ahead import compile_missing
        from pyblasgpu.routines.launch_list import LaunchList

        sources: dict = {}
        products: list[dict[str, Any]] = []

        def collect(launches: LaunchList, *scalars: complex) -> Callable[..., None]:
            launched = [entry.source for entry in launches.entries]
            sources.update(dict.fromkeys(launched))
            products[-1].update({str(each): each for each in filter(None, map(_product, launched))})
            return lambda bases, stream: None

        with mock.patch.object(LaunchList, "bound", collect):
            for case in cases:
                products.append({})
                self._call(case, self._arrays(case, random_values=False))
        compile_missing(sources, current(0).cc)
        configs = [list(of_case.values()) for of_case in products]
        return {"count": len(sources), "products": configs, "arch": current(0).arch}

    def seconds(self, case: Case) -> float:
        """The median over passes; a pass is a call on each of several copies of the arrays."""
        if case != self._case:
            self._sets, self._case = [], None
            if self._cupy.get_default_memory_pool().total_bytes() > LARGE:
                self._cupy.get_default_memory_pool().free_all_blocks()
            self._sets = [self._arrays(case)]
            size = sum(x.nbytes for x in self._sets[0])
            for _ in range(max(2, min(-(-2 * self._l2 // size), 64)) - 1):
                self._sets.append(self._arrays(case))
            self._case = case
            self._pass(case)
        first = self._pass(case)
        if first * len(self._sets) > LONG:
            return first
        return median([first, *(self._pass(case) for _ in range(PASSES - 1))])

    def _pass(self, case: Case) -> float:
        cupy = self._cupy
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        cupy.cuda.Device().synchronize()
        self._wait((1,), (1,), (len(self._sets) * HOST,))  # the host enqueues meanwhile
        start.record()
        for arrays in self._sets:
            self._call(case, arrays)
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(start, end) / 1e3 / len(self._sets)

    def _matrix(self, case: Case, rows: int, cols: int, random_values: bool) -> Any:
        cupy, dtype = self._cupy, self._cupy.dtype(DTYPES[case["dtype"]])
        lead, shift, batch = rows + case["pad"], case["shift"], case.get("batch", 1)
        size = batch * lead * cols + shift
        if random_values:
            real = cupy.dtype("float32" if case["dtype"] in "sc" else "float64")
            count = size * (dtype.itemsize // real.itemsize)
            flat = cupy.random.standard_normal(count).astype(real).view(dtype)
        else:
            flat = cupy.empty(size, dtype)
        matrices = flat[shift:].reshape(batch, cols, lead).swapaxes(1, 2)[:, :rows]
        return matrices if "batch" in case else matrices[0]

    def _arrays(self, case: Case, random_values: bool = True) -> tuple:
        flags, extents = case["flags"], case["extents"]

        def matrix(rows: int, cols: int) -> Any:
            return self._matrix(case, rows, cols, random_values)

        if case["routine"] == "gemm":
            m, n, k = extents
            a = matrix(m, k) if flags[0] == "N" else matrix(k, m)
            b = matrix(k, n) if flags[1] == "N" else matrix(n, k)
            return a, b, matrix(m, n)
        n, other = extents
        if case["routine"] in ("trsm", "trmm"):
            t = matrix(n, n)
            t *= 0.1 / n  # neither grows nor shrinks what is solved with it, or multiplied by it
            t += self._cupy.eye(n, dtype=t.dtype)
            return t, matrix(n, other) if flags[0] == "L" else matrix(other, n)
        return matrix(n, n), matrix(n, n), matrix(n, n)

    def _call(self, case: Case, arrays: tuple) -> None:
        flags, routine = case["flags"], case["routine"]
        call = getattr(self._package, routine)
        if routine == "gemm":
            call(*arrays[:2], trans_a=flags[0], trans_b=flags[1], out=arrays[2])
        elif routine in ("trsm", "trmm"):
            t, b = arrays
            call(t, b, side=flags[0], lower=flags[1] == "L", trans=flags[2], out=b)
        else:
            inputs = arrays[:1] if routine in ("syrk", "herk") else arrays[:2]
            trans = {} if routine in ("symm", "hemm") else {"trans": flags[1]}
            call(*inputs, lower=flags[0] == "L", **trans, out=arrays[2])


def _product(source: Any) -> tuple[str, str, dict[str, Any]] | None:
    """Family, layout and parameters of a kernel of products of all of C or of a triangle; else None."""
    config, flags = source.config, dict(source.flags)
    if not hasattr(config, "BLK_K") or not hasattr(config, "layout") or flags.get("triangle"):
        return None
    left_out = ("dtype", "trans_a", "trans_b")
    return config.STEM, config.layout, {k: v for k, v in asdict(config).items() if k not in left_out}


def serve() -> None:
    """Answer requests on standard input, a line of JSON each, until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    calls = Calls()
    for line in sys.stdin:
        name, argument = json.loads(line)
        try:
            answer = getattr(calls, name)(argument)
        except Exception as problem:
            answer = f"{type(problem).__name__}: {problem}"
        print(json.dumps(answer), file=answers, flush=True)


class Side:
    """The process of a checkout."""

    def __init__(self, checkout: Path):
        checkout = checkout.resolve()  # PYTHONPATH is read where the process starts
        path = os.pathsep.join([str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=checkout
        )

    def send(self, name: str, argument: Any) -> None:
        assert self._process.stdin
        print(json.dumps([name, argument]), file=self._process.stdin, flush=True)

    def receive(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the benchmark has died")
        return json.loads(line)

    def ask(self, name: str, argument: Any) -> Any:
        self.send(name, argument)
        return self.receive()

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(30)


def facts(options: argparse.Namespace) -> dict[str, Any]:
    """How many kernels each side has; the cases with the Configs of products are for the rows."""
    if options.old is None:
        raise ValueError("--old names the other checkout")
    cases = [case for name in options.list for case in LISTS[name]()]
    random.Random(0).shuffle(cases)  # a budget that ends leaves some of all lists
    needed, begun = [], time.monotonic()
    for checkout in (options.old, HERE):  # one after the other: each takes all cores
        side = Side(checkout)  # which ends: the calls that it has cached launch nothing
        needed.append(side.ask("kernels", cases))
        side.close()
        print(f"{needed[-1]['count']} kernels, {time.monotonic() - begun:.0f} s", flush=True)
    products = ({"old": a, "new": b} for a, b in zip(*(each["products"] for each in needed), strict=True))
    options.cases = list(zip(cases, products, strict=True))
    return {"kernels": [each["count"] for each in needed], "arch": needed[-1]["arch"]}


def rows(options: argparse.Namespace) -> Iterator[Case]:
    """Each case, timed by both in turns."""
    from pyblasgpu.bench.progress import within

    old, new = Side(options.old), Side(HERE)
    for case, products in within(options.budget, options.cases, "calls", "cases"):
        yield {**case, **_timed(case, old, new), "products": products}
    for side in (old, new):
        side.close()


def _timed(case: Case, old: Side, new: Side) -> Case:
    times: dict[str, list[float]] = {"old": [], "new": []}
    rounds, done = 1, 0
    while done < rounds:
        sides = [("old", old), ("new", new)]
        for name, side in sides if done % 2 == 0 else reversed(sides):
            seconds = side.ask("seconds", case)
            if isinstance(seconds, str):
                return {"problem": f"{name}: {seconds}"}
            times[name].append(seconds)
        done += 1
        shortest = min(map(min, times.values()))
        rounds = next(count for most, count in ROUNDS if shortest < most)
    least = {name: min(taken) for name, taken in times.items()}
    return {**least, "ratio": least["old"] / least["new"]}


def by_list(results: list[Case]) -> dict[str, list[Case]]:
    """The cases of each list that ran."""
    lists: dict[str, list[Case]] = {}
    for result in results:
        if "problem" not in result:
            lists.setdefault(result["list"], []).append(result)
    return dict(sorted(lists.items()))


def summary(results: list[Case], options: argparse.Namespace) -> Iterator[str]:
    """Lines of each list, and what failed."""
    yield from (f"ERROR {result}" for result in results if "problem" in result)
    for name, cases in by_list(results).items():
        ratios = [result["ratio"] for result in cases]
        by_dtype = " ".join(
            f"{x} {geometric_mean(r['ratio'] for r in cases if r['dtype'] == x):.3f}"
            for x in DTYPES
            if any(r["dtype"] == x for r in cases)
        )
        below = sum(ratio < LEAST for ratio in ratios)
        mean = f"mean {geometric_mean(ratios):.4f}, least {min(ratios):.3f}, {below} below {LEAST}"
        yield f"{name}: {len(cases)} cases, {mean}: {by_dtype}"
        for worst in sorted(cases, key=lambda result: result["ratio"])[:6]:
            what = " ".join(
                str(worst.get(each, "")) for each in ("flags", "extents", "pad", "shift", "batch")
            )
            times = f"{1e6 * worst['old']:.1f} -> {1e6 * worst['new']:.1f} us"
            yield f"    {worst['ratio']:.3f} {worst['dtype']}{worst['routine']} {what} {times}"


def fails(results: list[Case]) -> bool:
    """Whether a call failed, or a list loses more than it may."""
    lists = [[result["ratio"] for result in cases] for cases in by_list(results).values()]
    loses = any(not geometric_mean(ratios) >= MEAN or min(ratios) < LEAST for ratios in lists)
    return loses or any("problem" in result for result in results)


def study() -> Any:
    """The study; the other checkout's process does without, since it may have none."""
    from benchmarks.study import Option, Study

    return Study(
        "catalogue_loss",
        __doc__,
        rows,
        {
            "old": Option(None, kind=Path, help="the other checkout"),
            "list": Option(tuple(LISTS), LISTS, help="some lists alone"),
            "budget": Option(150.0, help="seconds of timing (%(default)s)"),
        },
        facts,
        summary=summary,
        seconds=None,
        fails=fails,
        folder=Path(),
        prints_rows=False,
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        from benchmarks.study import main

        main(study())
