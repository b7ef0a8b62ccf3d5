"""How good the choice at run time is at extents at which nothing is tuned.

``python -m benchmarks.choice [--dtype s,d] [--variants NN] [--shapes MxNxK,...] [--top 8]`` times each
product as the library chooses to run it, then with the winner of every size class of every family, and with
the best by score of the space that ``tune --effort normal`` would make for these extents. Where k is cut, the
alternatives run uncut and cut. The kernels are compiled first, many at a time; ``--compile-only h200`` does
nothing else, and needs no GPU.

Times are those of calls (docs/measuring.md), or with ``--device-share`` the device's part of them. The chosen
one and the fastest alternatives are timed again, in turn, and these second readings are compared. The least
of many first ones is partly luck. Their results are checked; the exit code is 1 if one is outside its bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.alternatives import EFFORT, Case, cases_of, compile_kernels, extents_of, layout_of
from benchmarks.kernels import COMPILE_ONLY, device_of, kept_facts, named
from benchmarks.study import Namespace, Option, Row, Rows, Study, main, table
from pyblasgpu.bench.command import extents, products
from pyblasgpu.bench.progress import within
from pyblasgpu.database import FAMILIES
from pyblasgpu.dispatch.overrides import KernelChoice, override
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu.device import Device
from pyblasgpu.options import parse_seconds, parse_shapes
from pyblasgpu.testing.problems import Problem
from pyblasgpu.tuning.measure import Timer, Workload
from pyblasgpu.tuning.worker_bench import STREAM

LIMIT = 0.1  # of the best time: what the choice may lose
VARIANTS = ("NN", "NT", "TN", "TT")
FINALISTS, ROUNDS = 3, 2  # alternatives that are timed again, and how often


class Share:
    """The device's part of a call, as the tuner times it."""

    def __init__(self, device: Device):
        self._timer, self._load = Timer(device, STREAM), Workload(device.ordinal, STREAM)

    def seconds(self, problem: Problem) -> float:
        """Seconds of one call, run as the overrides of the moment say."""
        work = self._load.products(routine("gemm"), problem.dtype, layout_of(problem), extents_of(problem))
        return self._timer(work)

    def close(self) -> None:
        """Give the memory back; raises `SpoiledMemory` where something was written next to an operand."""
        self._load.check()
        self._load.release()


class Stand:
    """One product's arrays on the device: runs it in any way, says how long that takes and how wrong it is.

    Parameters
    ----------
    case : Case
    share : Share or None
        What is timed: None for whole calls.
    """

    def __init__(self, case: Case, share: Share | None):
        from pyblasgpu.bench.timing import Rotation

        self._case, self._share = case, share
        self._inputs = case.problem.data()
        self.rotation = Rotation(self._inputs)

    def seconds(self, run: KernelChoice) -> float:
        """Seconds of a call."""
        with self._forced(run):
            share, problem = self._share, self._case.problem
            return share.seconds(problem) if share else self.rotation.seconds(self._call)

    def error(self, run: KernelChoice) -> float:
        """The largest sampled error over its bound."""
        self.rotation.restore()
        with self._forced(run):
            self._call(self.rotation.sets[-1])
        return self._case.problem.error(self._inputs, self.rotation.sets[-1].out.get(order="A"))

    def _call(self, x: Any) -> None:
        self._case.problem.ours(x, "cuda")

    @contextmanager
    def _forced(self, run: KernelChoice) -> Iterator[None]:
        """The chosen one runs by itself."""
        if run == self._case.chosen:
            yield
            return
        with override("splits", run.splits), override(run.config.STEM, run.config):
            yield


def measure(case: Case, stand: Any) -> Row:
    """The record of one product; `stand` is a `Stand` of it."""
    first = {run: stand.seconds(run) for run in (case.chosen, *case.alternatives)}
    finalists = [case.chosen, *sorted(case.alternatives, key=first.__getitem__)[:FINALISTS]]
    seconds = dict.fromkeys(finalists, math.inf)
    for _ in range(ROUNDS):
        for run in finalists:
            seconds[run] = min(seconds[run], stand.seconds(run))
    best = min(finalists, key=seconds.__getitem__)
    m, n, k = extents_of(case.problem)

    def rate(seconds: float) -> float:
        return round(case.problem.flops / seconds / 1e12, 4)

    row = {"dtype": case.problem.dtype.letter, "variant": case.problem.variant, "m": m, "n": n, "k": k}
    return {
        **row,
        "tflops": rate(seconds[case.chosen]),
        "best_tflops": rate(seconds[best]),
        "loss": round(seconds[case.chosen] / seconds[best] - 1, 4),
        "error_over_bound": max(stand.error(run) for run in finalists),
        "chosen": facts_of(case.chosen),
        "best": facts_of(best),
        "first_tflops": [
            {"kernel": short_name(run), "origin": run.origin, "tflops": rate(first[run])}
            for run in sorted(first, key=first.__getitem__)
        ],
    }


def facts_of(run: KernelChoice) -> Row:
    facts = {
        "kernel": short_name(run),
        "origin": run.origin,
        "splits": run.splits,
        "packed": run.config.packed,
    }
    return {**facts, "parameters": FAMILIES[run.config.STEM].parameters_of(run.config)}


def short_name(run: KernelChoice) -> str:
    """Family, tile, stages, and the slices of k if there are several; whether operands are packed."""
    cut = f", k/{run.splits}" if run.splits > 1 else ""
    packed = ", packed" if run.config.packed else ""
    return f"{named(run.config)}, {run.config.stages} stages{cut}{packed}"


class Summary(NamedTuple):
    """Products, and of their losses the mean, the worst, and the number beyond `LIMIT`."""

    products: int
    mean: float
    worst: float
    beyond: int


def summaries(records: Sequence[Row]) -> dict[str, Summary]:
    """By dtype, and of all."""
    groups: dict[str, list[float]] = {}
    for record in records:
        for name in (record["dtype"], "all"):
            groups.setdefault(name, []).append(record["loss"])
    return {
        name: Summary(len(losses), mean(losses), max(losses), sum(loss > LIMIT for loss in losses))
        for name, losses in sorted(groups.items(), key=lambda group: group[0] == "all")
    }


def summary(rows: list[Row], options: Namespace) -> Iterator[Any]:
    """A row a product, then the summaries."""
    lines = []
    for row in rows:
        best, percent = row["best"], f"{100 * row['loss']:.1f}" + "!" * (row["loss"] > LIMIT)
        source = "chosen" if best == row["chosen"] else best["origin"].rpartition(", ")[-1]
        chosen = f"{row['dtype']}gemm {row['variant']}", extents(row), row["chosen"]["kernel"], row["tflops"]
        lines.append((*chosen, best["kernel"], source, row["best_tflops"], percent))
    heads = "call | m, n, k | chosen | TFLOP/s | best | from | TFLOP/s | loss, %"
    yield table("the choice against its alternatives", heads, lines)
    totals = [
        (name, each.products, f"{100 * each.mean:.1f}", f"{100 * each.worst:.1f}", each.beyond)
        for name, each in summaries(rows).items()
    ]
    yield table("", f"dtype | products | mean loss, % | worst, % | beyond {LIMIT:.0%}", totals)


def problems_of(options: Namespace) -> list[Problem]:
    """The products that `options` name."""
    problems = list(products(options.letters, options.variants, options.shapes))
    for problem in problems:
        if 1 in extents_of(problem):
            raise ValueError(f"shapes: {extents_of(problem)} has a vector, which has no layout of its own")
    return problems


def rows(options: Namespace) -> Rows:
    device = device_of(options)
    cases = compile_kernels(cases_of(problems_of(options), options.top, options.splits, device), device)
    if options.compile_only:
        return
    share = Share(device) if options.device_share else None
    for letter in options.letters:
        of_dtype = [case for case in cases if case.problem.dtype.letter == letter]
        for case in within(options.budget, of_dtype, f"{letter}gemm", "products"):
            yield measure(case, Stand(case, share))
    if share:
        share.close()


def facts(options: Namespace) -> Row:
    if options.top < 0:
        raise ValueError(f"--top {options.top} is negative")
    clock = "device share" if options.device_share else "calls"
    return kept_facts(options) | {"limit": LIMIT, "top": options.top, "effort": EFFORT, "clock": clock}


STUDY = Study(
    "choice",
    __doc__,
    rows,
    {
        "letters": "sd",
        "variants": Option(("NN",), VARIANTS),
        "shapes": Option(
            "between", kind=parse_shapes, help="MxNxK,..., or a list of `pyblasgpu bench` by name"
        ),
        "top": Option(8, help="the best of the space by score (%(default)s)"),
        "splits": Option((), kind=int, help="alternatives with k in this number of slices too"),
        "device_share": Option(False, help="time the device's part of a call, without the host's"),
        "budget": Option(60.0, kind=parse_seconds, help="seconds of timing a dtype (%(default)s)"),
        "compile_only": COMPILE_ONLY,
    },
    facts,
    summary=summary,
    seconds=None,
    fails=lambda rows: any(row["error_over_bound"] > 1 for row in rows),
    is_kept=True,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
