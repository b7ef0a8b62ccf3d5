"""Steps of training Gaussian processes in PyTorch, GPyTorch and JAX, by this library and by theirs.

``python -m benchmarks.frameworks --out DIR [--parts steps operators ...] [--letters sd] [--seconds 150]``
prints milliseconds of a step, medians of the host's clock until the device has finished, of all ways in turn,
and ratios over the framework's own. Small steps are run several times between two readings of the clock.

- steps: a likelihood and its gradient by `inv_quad_logdet`, by plain operators and under `patch_torch`
- operators: host microseconds of a call of order 64 by each operator of PyTorch, recorded or not
- gradients: the same of a call and its gradients
- gpytorch: GPyTorch's exact step with `patch_torch` and without
- botorch: iterations of BoTorch's fit and samples of a posterior, in d, with `patch_torch` and without
- jax: the step under `jax.jit` by `pyblasgpu.jax` and by `jax.numpy`
- stacks: steps of many small matrices by PyTorch and JAX
- first: seconds to the first result of a fresh process

Parts whose library is not installed have a row that says so.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from benchmarks.first_call import START, seconds
from benchmarks.gaussian_steps import (
    BOTORCH,
    Way,
    botorch_ways,
    gpytorch_ways,
    jax_problem,
    jax_ways,
    torch_problem,
    torch_ways,
)
from benchmarks.operator_calls import N, gradient_calls, operator_calls
from benchmarks.study import (
    Namespace,
    Option,
    Row,
    Rows,
    Study,
    attempt,
    device_facts,
    host_facts,
    main,
    means,
)
from pyblasgpu.testing.clocks import host_clock
from pyblasgpu.types import DTYPES

try:
    import torch
except ImportError:  # rows say so
    torch = None

SIZES = (512, 1024, 2048, 4096, 8192, 16384)
LARGE = 2048  # from here on large steps have a mean of their own
POINTS = (2000, 5000, 10000)  # of GPyTorch's processes
STACKS = ((64, 256), (512, 64))  # matrices and their order
#: Runs before those that are timed: kernels are compiled, memory is new, and graphs are made of launches.
FIRST_RUNS = 5
PART_SECONDS, LEAST, MOST = 0.4, 3, 15  # of a case all ways together, and rounds
SHORT = 2e-3  # seconds of a step that is run several times
CALLS, ROUNDS = 30, 11  # of an operator; the device's queue holds the launches of all calls of a round
FIRST = 1000  # order of first steps
FAULTY = 100.0  # differences beyond are wrong, in units of n u as a rule

Call = Callable[[], Any]


# --------------------------------------------------------------------------------------------- the clock


def in_turn(ways: list[Way], wait: Callable[[Any], None]) -> list[float]:
    """Median seconds of each way, one after the other in each round; `wait` finishes a result."""

    def timed(way: Way, times: int) -> float:
        def run() -> None:
            for _ in range(times):
                result = way.run()
            wait(result)

        with way.around:
            return host_clock(run) / times

    for _ in range(FIRST_RUNS):
        once = [timed(way, 1) for way in ways]
    times = [max(1, min(10, int(SHORT / each))) for each in once]
    spent = sum(map(float.__mul__, once, map(float, times)))
    rounds = min(MOST, max(LEAST, int(PART_SECONDS / spent)))
    found = [[timed(*each) for each in zip(ways, times, strict=True)] for _ in range(rounds)]
    return [median(each) for each in zip(*found, strict=True)]


def compared(facts: Row, ways: list[Way], wait: Callable[[Any], None], unit: float) -> Rows:
    """A row for each way but the first, the framework's own; differences are in units of `unit`."""
    expected = ways[0].run()
    differences = []
    for way in ways[1:]:
        with way.around:
            apart = [float(_distance(x, y)) for x, y in zip(way.run(), expected, strict=True)]
        differences.append(float(np.max(apart)) / unit)
    del expected
    own, *others = in_turn(ways, wait)
    for way, taken, difference in zip(ways[1:], others, differences, strict=True):
        row = {**facts, "way": way.name, "ours_ms": 1e3 * taken, "own_ms": 1e3 * own, "ratio": own / taken}
        row["difference"] = difference
        yield row if row["difference"] <= FAULTY else {**row, "problem": "inaccurate"}


def _distance(x: Any, y: Any) -> Any:
    """The norm of a difference relative to the norm."""
    return ((x - y) ** 2).sum() ** 0.5 / (y**2).sum() ** 0.5


def cases(facts: Row, made: Callable[[], Rows]) -> Rows:
    """The rows of a case, or one of what went wrong."""
    try:
        yield from made()
    except Exception as problem:
        traceback.print_exc()
        yield {**facts, "problem": repr(problem)[:300]}
    gc.collect()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


# --------------------------------------------------------------------------------------------- the parts


def unit(letter: str, n: int) -> float:
    """n times the roundoff."""
    return n * (2.0**-24 if DTYPES[letter].name == "float32" else 2.0**-53)


def without(part: str, name: str) -> list[Row]:
    """A row where a library is not installed."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return [{"part": part, "skipped": f"{name} is not installed"}]
    return []


def torch_wait(_: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def torch_steps(options: Namespace) -> Rows:
    if missing := without("steps", "torch"):
        yield from missing
        return
    for n in options.sizes:
        for letter in options.letters:
            yield from _torch_step("steps", letter, n, 0, options.device)


def _torch_step(part: str, letter: str, n: int, count: int, device: str) -> Rows:
    facts = {"part": part, "by": "torch", "dtype": letter, "n": n, **({"count": count} if count else {})}

    def made() -> Rows:
        ways = torch_ways(*torch_problem(letter, n, device, count))
        yield from compared(facts, ways, torch_wait, unit(letter, n))

    yield from cases(facts, made)


def gpytorch_steps(options: Namespace) -> Rows:
    if missing := without("gpytorch", "torch") or without("gpytorch", "gpytorch"):
        yield from missing
        return
    for n in options.points:
        for letter in options.letters:
            facts = {"part": "gpytorch", "by": "gpytorch", "dtype": letter, "n": n}

            def made(letter: str = letter, n: int = n, facts: Row = facts) -> Rows:
                ways = gpytorch_ways(letter, n, options.device)
                yield from compared(facts, ways, torch_wait, unit(letter, n))

            yield from cases(facts, made)


def botorch_programs(options: Namespace) -> Rows:
    if missing := without("botorch", "torch") or without("botorch", "botorch"):
        yield from missing
        return
    for program, n in product(BOTORCH, options.points):
        facts = {"part": "botorch", "by": f"botorch {program}", "dtype": "d", "n": n}

        def made(program: str = program, n: int = n, facts: Row = facts) -> Rows:
            ways = botorch_ways(program, "d", n, options.device)
            # an optimizer's path, and factors of a covariance, amplify differences
            yield from compared(facts, ways, torch_wait, unit("d", 1) ** 0.5)

        yield from cases(facts, made)


def jax_steps(options: Namespace) -> Rows:
    if missing := without_jax("jax", options):
        yield from missing
        return
    for n in options.sizes:
        for letter in options.letters:
            yield from _jax_step("jax", letter, n, 0)


def without_jax(part: str, options: Namespace) -> list[Row]:
    """A row where JAX, or the device in JAX, is not there."""
    missing = without(part, "jax")
    if not missing and options.device == "cuda":
        from jax import default_backend

        if default_backend() != "gpu":
            return [{"part": part, "skipped": "jax has no CUDA device"}]
    return missing


def _jax_step(part: str, letter: str, n: int, count: int) -> Rows:
    facts = {"part": part, "by": "jax", "dtype": letter, "n": n, **({"count": count} if count else {})}

    def made() -> Rows:
        from jax import block_until_ready

        ways = list(jax_ways(*jax_problem(letter, n, count)))
        yield from compared(facts, ways, block_until_ready, unit(letter, n))

    yield from cases(facts, made)


def stacks(options: Namespace) -> Rows:
    without_torch, missing = without("stacks", "torch"), without_jax("stacks", options)
    yield from (*without_torch, *missing)
    for count, n in STACKS:
        for letter in options.letters:
            if not without_torch:
                yield from _torch_step("stacks", letter, n, count, options.device)
            if not missing:
                yield from _jax_step("stacks", letter, n, count)


def operators(options: Namespace) -> Rows:
    if missing := without("operators", "torch"):
        yield from missing
        return
    for letter in options.letters:
        for recorded in (False, True):
            for name, ours, own in operator_calls(letter, options.device, recorded):
                facts = {"part": "operators", "call": name, "dtype": letter, "n": N, "recorded": recorded}
                yield attempt(facts, _microseconds, ours, own)


def gradients(options: Namespace) -> Rows:
    if missing := without("gradients", "torch"):
        yield from missing
        return
    for letter in options.letters:
        for name, ours, own in gradient_calls(letter, options.device):
            facts = {"part": "gradients", "call": name, "dtype": letter, "n": N}
            yield attempt(facts, _microseconds, ours, own)


def _microseconds(ours: Call, own: Call) -> Row:
    """Host microseconds of a call, which is queued and not waited for."""

    def repeated(call: Call) -> float:
        def run() -> None:
            for _ in range(CALLS):
                call()

        torch_wait(None)
        return host_clock(run) / CALLS * 1e6

    for call in (ours, own):
        call()
    found = [(repeated(ours), repeated(own)) for _ in range(ROUNDS)]
    mine, theirs = (median(each) for each in zip(*found, strict=True))
    return {"ours_us": mine, "own_us": theirs, "ratio": theirs / mine}


TORCH_FIRST = """
import torch
from benchmarks.gaussian_steps import torch_problem, torch_ways
way = torch_ways(*torch_problem("s", ORDER, DEVICE))[PLACE]
def finish(call):
    float(call()[0])
call = way.run
"""
JAX_FIRST = """
from benchmarks.gaussian_steps import jax_problem, jax_ways
way = list(jax_ways(*jax_problem("s", ORDER)))[PLACE]
def finish(call):
    float(call()[0])
call = way.run
"""


def first(options: Namespace) -> Rows:
    begin = START.partition("import cupy")[0]
    for by, program in (("torch", TORCH_FIRST), ("jax", JAX_FIRST)):
        if missing := without("first", by) if by == "torch" else without_jax("first", options):
            yield from missing
            continue
        text = program.replace("ORDER", str(FIRST)).replace("DEVICE", repr(options.device))
        for place, way in enumerate((by, "inv_quad_logdet", "operators")):
            times = seconds(text.replace("PLACE", str(place)), 1, begin)
            yield {"part": "first", "by": by, "way": way, "dtype": "s", "n": FIRST, **times}


# -------------------------------------------------------------------------------------------- the study


def facts(options: Namespace) -> Row:
    described = device_facts(options) if options.device == "cuda" else host_facts()
    installed = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    wanted = ("torch", "gpytorch", "botorch", "jax", "jaxlib")
    return {**described, "frameworks": {name: installed.get(name) for name in wanted}}


def labelled(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows with a ratio, by what means are of."""
    for row in rows:
        if "ratio" not in row:
            continue
        if row["part"] == "operators":
            label = f"{row['dtype']} operators{', recorded' if row['recorded'] else ''}"
        elif row["part"] == "gradients":
            label = f"{row['dtype']} operators and their gradients"
        else:
            label = f"{row['dtype']} {row['part']} by {row['by']}: {row['way']}"
            if row["part"] in ("steps", "jax"):
                label += f", n {'>=' if row['n'] >= LARGE else '<'} {LARGE}"
        yield {**row, "label": label}


def summary(rows: list[Row], options: Namespace) -> Iterator[str]:
    yield from (f"{row['part']}: {row['skipped']}" for row in rows if "skipped" in row)
    yield from means(labelled(rows), by=("label",))


PARTS = {
    "steps": torch_steps,
    "operators": operators,
    "gradients": gradients,
    "gpytorch": gpytorch_steps,
    "botorch": botorch_programs,
    "jax": jax_steps,
    "stacks": stacks,
    "first": first,
}
STUDY = Study(
    "frameworks",
    __doc__,
    PARTS,
    {"letters": "sd", "sizes": SIZES, "points": POINTS, "device": Option("cuda", ("cuda", "cpu"))},
    facts,
    summary=summary,
    seconds=150,
)

if __name__ == "__main__":
    main(STUDY)
