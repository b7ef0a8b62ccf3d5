"""What the papers' experiments have in common: Configs timed on the device that is here, and what is written.

The parts are the tuner's: compilers in processes of their own, a worker that may die, cold caches, medians.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pyblasgpu.bench.machine import peak
from pyblasgpu.errors import lacking
from pyblasgpu.frontend.call import routine as routine_of
from pyblasgpu.gpu.device import Device
from pyblasgpu.options import parse_duration
from pyblasgpu.tuning.compile_pool import Compilers, judge
from pyblasgpu.tuning.measure import flops
from pyblasgpu.tuning.prune import candidates
from pyblasgpu.tuning.worker import DONE, Worker
from pyblasgpu.tuning.worker_bench import Bench, Job, Timing
from pyblasgpu.types import DTYPES

__all__ = [
    "Experiment",
    "Extents",
    "Measured",
    "Rows",
    "add_options",
    "draw",
    "names_in",
    "on_device",
    "share_of_peak",
    "write",
]

PATIENCE = 30.0  # seconds between two answers
TICK = 0.5  # seconds from one look at the compilers to the next
Extents = tuple[int, ...]
Rows = list[dict[str, Any]]


class Measured(NamedTuple):
    """What came of a Config: 'ok' with the TFLOP/s at each problem, or why there are none."""

    config: Any
    outcome: str
    rates: dict[Extents, float]


class Experiment:
    """Times products on a device until a moment.

    Parameters
    ----------
    device : Device
    compilers : Compilers
    worker : Worker
        Of a `Bench`.
    until : float
        The moment, of `clock`, from which on nothing is begun.
    clock : callable, optional
    """

    def __init__(
        self,
        device: Device,
        compilers: Any,
        worker: Any,
        until: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.device, self.compilers, self.worker, self.until, self.clock = (
            device, compilers, worker, until, clock,
        )  # fmt: skip
        self._reports: dict[tuple[str, Any], Any] = {}

    @property
    def is_over(self) -> bool:
        return self.clock() >= self.until

    def in_turn(self, items: Sequence[Any]) -> Iterator[Any]:
        """The items, each with an equal part of the time that is left."""
        end = self.until
        for left, item in zip(range(len(items), 0, -1), items, strict=True):
            now = self.clock()
            self.until = now + max(end - now, 0.0) / left
            yield item
        self.until = end

    def prepare(self, stem: str, configs: Iterable[Any]) -> None:
        """Have the Configs compiled, while others are timed."""
        for config in configs:
            if (stem, config) not in self._reports:
                self.compilers.submit(stem, config)

    def compiled(self, stem: str, configs: Sequence[Any]) -> list[Any]:
        """Those of the Configs that compile well, as far as time goes."""
        self.prepare(stem, configs)
        while any((stem, config) not in self._reports for config in configs):
            if not self._collect():
                break
        reports = {config: self._reports.get((stem, config), "not compiled") for config in configs}
        return [
            config for config, report in reports.items() if judge(config, report, self.device).outcome == "ok"
        ]

    def times(
        self, stem: str, layout: str, configs: Iterable[Any], problems: Sequence[Extents], verify: bool = True
    ) -> Iterator[Measured]:
        """Compile the Configs, and time what comes out at once; in the order in which they are compiled."""
        waiting = dict.fromkeys(configs)
        self.prepare(stem, waiting)
        while waiting:
            ready = [config for config in waiting if (stem, config) in self._reports]
            for config in ready:
                if self.is_over:
                    return
                del waiting[config]
                outcome = judge(config, self._reports[stem, config], self.device).outcome
                yield (
                    self.timed(stem, layout, config, problems, verify)
                    if outcome == "ok"
                    else Measured(config, outcome, {})
                )
            if not ready and not self._collect():
                return

    def _collect(self) -> bool:
        """Take what is compiled by now, and wait for the first; False where time is over before."""
        while self.compilers.pending:
            if self.is_over:
                return False
            found = dict(self.compilers.finished(TICK))
            self._reports.update(found)
            if found:
                return True
        return False

    def timed(
        self, stem: str, layout: str, config: Any, problems: Sequence[Extents], verify: bool = True
    ) -> Measured:
        """A Config that compiles, checked first, on extents for which it is not given narrower loads."""
        job = Job(
            "gemm", config.dtype, layout, ((stem, config),), _asked(problems), ("aligned",) if verify else ()
        )
        return self._run(job, problems, config)

    def ours(
        self,
        dtype: str,
        layout: str,
        problems: Sequence[Extents],
        routine: str = "gemm",
        overrides: tuple[tuple[str, Any], ...] = (),
    ) -> dict[Extents, float]:
        """TFLOP/s of a routine by the library's own choice, but for what is overridden."""
        return self._run(Job(routine, dtype, layout, overrides, _asked(problems)), problems, None).rates

    def vendor(
        self,
        dtype: str,
        layout: str,
        problems: Sequence[Extents],
        routine: str = "gemm",
        of: bool | str = True,
    ) -> dict[Extents, float]:
        """TFLOP/s of cuBLAS; none where it is not installed. `of`: another routine than that of this name."""
        job = Job(routine, dtype, layout, (), _asked(problems), vendor=of)
        return self._run(job, problems, None).rates

    def _run(self, job: Job, problems: Sequence[Extents], config: Any) -> Measured:
        self.worker.send(job, PATIENCE)
        rates, outcome = {}, "ok"
        while self.worker.busy:
            answer = self.worker.receive(PATIENCE)
            if isinstance(answer, Timing):
                extents = problems[answer.number]
                rates[extents] = flops(job.routine, DTYPES[job.dtype], extents) / answer.seconds / 1e12
            elif answer not in (None, DONE):
                outcome = answer.outcome
        return Measured(config, outcome, rates if outcome == "ok" else {})


def _asked(problems: Sequence[Extents]) -> tuple[tuple[Extents, float], ...]:
    return tuple((extents, math.inf) for extents in problems)


@contextmanager
def on_device(device: Device, seconds: float | None) -> Iterator[Experiment]:
    """An experiment on a device that is here, for so many seconds from when its processes are ready."""
    with Compilers(device.cc) as compilers, Worker(Bench, (routine_of, device.ordinal)) as worker:
        _begin(compilers, worker, device)
        until = time.monotonic() + seconds if seconds else math.inf
        yield Experiment(device, compilers, worker, until)


def _begin(compilers: Compilers, worker: Worker, device: Device) -> None:
    """Have the processes started: a kernel for each compiler, and the library's choice timed."""
    configs = candidates("gemm_simt", "s", "nn", device, "quick").left
    for config in configs[: compilers.workers]:
        compilers.submit("gemm_simt", config)
    run = Experiment(device, compilers, worker)
    run.ours("s", "nn", [(256, 256, 256)])
    while compilers.pending:
        for _ in compilers.finished():
            pass


def share_of_peak(device: Device, dtype: str, tflops: float) -> float | None:
    """Part of the peak of the FMA units at the highest clock; None where the clock is not known."""
    highest = peak(device).get(DTYPES[dtype].real)
    return tflops / highest if highest else None


def add_options(parser: argparse.ArgumentParser, seconds: str) -> None:
    """The options of every experiment: what it is for, where results go, for how long it runs."""
    parser.add_argument(
        "--seconds", type=parse_duration, default=seconds, metavar="TIME", help="(%(default)s)"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="also write JSON, table and figure there")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")


def names_in(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Parses names that are separated by commas."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def write(folder: Path | None, name: str, results: Any, table: str = "") -> None:
    """``name.json``, and the table as ``name.txt``."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    if table:
        (folder / f"{name}.txt").write_text(table)


def draw(
    folder: Path | None,
    name: str,
    title: str,
    curves: dict[str, Sequence[tuple[float, float]]],
    labels: tuple[str, str] = ("n", "TFLOP/s"),
) -> None:
    """``name.svg``: a line for each curve; where Matplotlib lacks, a line on stderr says so."""
    if folder is None:
        return
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        print(f"no figure: {lacking(missing, 'plot')}", file=sys.stderr)
        return
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for label, points in curves.items():
        if points:
            axes.plot(*zip(*points, strict=True), marker=".", label=label)
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1], ylim=(0, None))
    axes.legend(fontsize="small")
    figure.savefig(folder / f"{name}.svg")
