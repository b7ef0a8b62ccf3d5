"""How good the choice at run time is at extents at which nothing is tuned.

``python -m benchmarks.choice [--dtype s,d] [--variants NN] [--shapes MxNxK,...] [--top 8]`` times each
product as the library chooses to run it, then with the winner of every size class of every family, and with
the best by score of the space that ``tune --effort normal`` would make for these extents. Where k is cut, the
alternatives run uncut and cut. The kernels are compiled first, many at a time; ``--compile-only h200`` does
nothing else, and needs no GPU.

Times are those of calls (docs/measuring.md), or with ``--device-share`` the device's part of them. The chosen
one and the fastest alternatives are timed again, in turn, and these second readings are compared: the least
of many first ones is partly luck. Their results are checked; the exit code is 1 if one is outside its bound.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from pyblasgpu.bench import machine
from pyblasgpu.bench.command import RESULTS, extents, products, require_device, slug
from pyblasgpu.bench.progress import within
from pyblasgpu.database import FAMILIES
from pyblasgpu.dispatch.overrides import KernelChoice, override
from pyblasgpu.frontend.calls.call import routine
from pyblasgpu.gpu import device as devices
from pyblasgpu.gpu.device import Device, current
from pyblasgpu.options import (
    parse_device,
    parse_dtypes,
    parse_seconds,
    parse_shapes,
    parse_sizes,
    parse_variants,
)
from pyblasgpu.terminal import console, guarded
from pyblasgpu.testing.problems import Problem
from pyblasgpu.tuning.measure import Timer, Workload
from pyblasgpu.tuning.worker_bench import STREAM

from .alternatives import EFFORT, Case, cases_of, compile_kernels, extents_of, layout_of
from .kernels import named

SCHEMA = 1
LIMIT = 0.1  # of the best time: what the choice may lose
VARIANTS = ("NN", "NT", "TN", "TT")
FINALISTS, ROUNDS = 3, 2  # alternatives that are timed again, and how often
WIDTH = 170  # columns of a table that goes into a file or a pipe


# --------------------------------------------------------------------------------------------- measurement


class Share:
    """The device's part of a call, as the tuner times it."""

    def __init__(self, device: Device):
        self._timer, self._load = Timer(device, STREAM), Workload(device.ordinal, STREAM)

    def seconds(self, problem: Problem) -> float:
        """Seconds of one call, run as the overrides of the moment say."""
        work = self._load.products(routine("gemm"), problem.dtype, layout_of(problem), extents_of(problem))
        return self._timer(work)

    def close(self) -> None:
        """Give the memory back; raises `SpoiledMemory` where something was written beside an operand."""
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
            return (
                self._share.seconds(self._case.problem) if self._share else self.rotation.seconds(self._call)
            )

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


def measure(case: Case, stand: Any) -> dict[str, Any]:
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

    return {
        "dtype": case.problem.dtype.letter,
        "variant": case.problem.variant,
        "m": m,
        "n": n,
        "k": k,
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


def facts_of(run: KernelChoice) -> dict[str, Any]:
    stem = run.config.STEM
    parameters = FAMILIES[stem].parameters_of(run.config)
    facts = {
        "kernel": short_name(run),
        "origin": run.origin,
        "splits": run.splits,
        "packed": run.config.packed,
    }
    return facts | {"parameters": parameters}


def short_name(run: KernelChoice) -> str:
    """Family, tile, stages, and the slices of k if there are several; whether operands are packed."""
    cut = f", k/{run.splits}" if run.splits > 1 else ""
    packed = ", packed" if run.config.packed else ""
    return f"{named(run.config)}, {run.config.stages} stages{cut}{packed}"


# ------------------------------------------------------------------------------------------------ the tables


class Summary(NamedTuple):
    """Products, and of their losses the mean, the worst, and the number beyond `LIMIT`."""

    products: int
    mean: float
    worst: float
    beyond: int


def summaries(records: Sequence[dict[str, Any]]) -> dict[str, Summary]:
    """By dtype, and of all."""
    groups: dict[str, list[float]] = {}
    for record in records:
        for name in (record["dtype"], "all"):
            groups.setdefault(name, []).append(record["loss"])
    return {
        name: Summary(len(losses), mean(losses), max(losses), sum(loss > LIMIT for loss in losses))
        for name, losses in sorted(groups.items(), key=lambda group: group[0] == "all")
    }


def show(records: Sequence[dict[str, Any]], console: Console) -> None:
    """Print a row a product, then the summaries."""
    table = Table(
        "call",
        "m, n, k",
        "chosen",
        "TFLOP/s",
        "best",
        "from",
        "TFLOP/s",
        "loss, %",
        title="the choice against its alternatives",
    )
    for record in records:
        call, best = f"{record['dtype']}gemm {record['variant']}", record["best"]
        source = "chosen" if best == record["chosen"] else best["origin"].rpartition(", ")[-1]
        table.add_row(
            call,
            extents(record),
            record["chosen"]["kernel"],
            f"{record['tflops']:.2f}",
            best["kernel"],
            source,
            f"{record['best_tflops']:.2f}",
            f"{100 * record['loss']:.1f}",
            style="bold" if record["loss"] > LIMIT else None,
        )
    console.print(table)
    table = Table("dtype", "products", "mean loss, %", "worst, %", f"beyond {LIMIT:.0%}")
    for name, summary in summaries(records).items():
        table.add_row(
            name,
            str(summary.products),
            f"{100 * summary.mean:.1f}",
            f"{100 * summary.worst:.1f}",
            str(summary.beyond),
        )
    console.print(table)


# --------------------------------------------------------------------------------------------------- command


def problems_of(options: argparse.Namespace) -> list[Problem]:
    """The products that `options` ask for."""
    problems = list(products(options.dtype, options.variants, options.shapes))
    for problem in problems:
        if 1 in extents_of(problem):
            raise ValueError(f"shapes: {extents_of(problem)} has a vector, which has no layout of its own")
    return problems


def main(options: argparse.Namespace) -> int:
    """Run what `options` ask for; 1 if a result is outside its error bound."""
    if options.top < 0:
        raise ValueError(f"--top {options.top} is negative")
    if not options.compile_only:
        require_device()
    device = devices.named(options.compile_only) if options.compile_only else current()
    cases = compile_kernels(cases_of(problems_of(options), options.top, options.splits, device), device)
    if options.compile_only:
        return 0
    share = Share(device) if options.device_share else None
    document: dict[str, Any] = {
        "schema": SCHEMA,
        **machine.describe(device, None),
        "limit": LIMIT,
        "top": options.top,
        "effort": EFFORT,
        "clock": "device share" if share else "calls",
        "results": [],
    }
    out = options.out or RESULTS / slug(device.name) / f"{document['date'][:10]}-choice.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    for letter in options.dtype:
        of_dtype = [case for case in cases if case.problem.dtype.letter == letter]
        for case in within(options.budget, of_dtype, f"{letter}gemm", "products"):
            document["results"].append(measure(case, Stand(case, share)))
            # after every product: a run that is cut short keeps what it has
            out.write_text(json.dumps(document) + "\n")
    if share:
        share.close()
    show(document["results"], console(WIDTH))
    print(f"results in {out}", file=sys.stderr)
    return 0 if all(record["error_over_bound"] <= 1 for record in document["results"]) else 1


def _variants(text: str) -> tuple[str, ...]:
    variants = parse_variants(text)
    for variant in variants:
        if variant not in VARIANTS:
            raise argparse.ArgumentTypeError(f"{variant!r} is none of {', '.join(VARIANTS)}")
    return variants


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice", description=__doc__.splitlines()[0])
    add: Callable = parser.add_argument
    add("--dtype", type=parse_dtypes, default="s,d", metavar="T,T,...", help="(%(default)s)")
    add("--variants", type=_variants, default="NN", metavar="V,V,...", help="NN, NT, TN, TT (%(default)s)")
    add(
        "--shapes",
        type=parse_shapes,
        default="between",
        metavar="MxNxK,...|between",
        help="products of these extents, or a list of `pyblasgpu bench` by name (%(default)s)",
    )
    add("--top", type=int, default=8, metavar="N", help="the best of the space by score (%(default)s)")
    add(
        "--splits",
        type=parse_sizes,
        default=(),
        metavar="S,S,...",
        help="alternatives with k in so many slices too",
    )
    add("--device-share", action="store_true", help="time the device's part of a call, without the host's")
    add(
        "--budget",
        type=parse_seconds,
        default=60.0,
        metavar="S",
        help="seconds of timing a dtype (%(default)s)",
    )
    add("--out", type=Path, metavar="FILE", help="where the results go as JSON (by device)")
    add(
        "--compile-only", type=parse_device, metavar="DEVICE", help="compile for a known device, time nothing"
    )
    return parser


if __name__ == "__main__":
    sys.exit(guarded(["benchmarks.choice"], lambda: main(parser().parse_args())))
