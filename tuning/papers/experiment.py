"""What the papers' experiments have in common: Configs and routines timed on the device that is here.

The parts are the tuner's: compilers in processes of their own, a worker that may die, cold caches, medians.
What was timed before, by `timings`, is not timed again.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pyblasgpu.bench.machine import peak
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.frontend.calls.call import routine as routine_of
from pyblasgpu.gpu.build.kernel_digest import digest_of_all
from pyblasgpu.gpu.device import Device, known
from pyblasgpu.processes import cores
from pyblasgpu.tuning.compile_pool import Compilers, judge
from pyblasgpu.tuning.measure import flops
from pyblasgpu.tuning.worker import DONE, Worker
from pyblasgpu.tuning.worker_bench import Bench, Job, Timing
from pyblasgpu.types import DTYPES
from tuning.papers.timings import FILE, Timings

__all__ = [
    "Experiment",
    "Extents",
    "Kernel",
    "Measured",
    "Rows",
    "from_timings",
    "on_device",
    "share_of_peak",
]

PATIENCE = 60.0  # seconds between two answers: a call may have to compile
QUICK = 20.0  # of a kernel that is compiled already
TICK = 0.5  # seconds from one look at the compilers to the next
WAIT = 60.0  # seconds before the clock starts, at most, for the first kernels
SPARE = 2  # cores that do not compile: of the worker, and of this process
Extents = tuple[int, ...]
#: A family's stem, and a Config.
Kernel = tuple[str, Any]
Rows = list[dict[str, Any]]
Item = TypeVar("Item")


class Measured(NamedTuple):
    """What came of a Config: 'ok' with the TFLOP/s at each problem, or why there are none."""

    config: Any
    outcome: str
    rates: dict[Extents, float]


class Experiment:
    """Times products and routines on a device until a moment.

    Parameters
    ----------
    device : Device
    compilers : Compilers
    worker : Worker
        Of a `Bench`.
    until : float
        The moment, of `clock`, from which on nothing is begun.
    clock : callable, optional
    timings : Timings, optional
        What was timed before; what is timed goes there too.
    """

    def __init__(
        self,
        device: Device,
        compilers: Any,
        worker: Any,
        until: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        timings: Timings | None = None,
    ):
        self.device, self.compilers, self.worker, self.until, self.clock = (
            device,
            compilers,
            worker,
            until,
            clock,
        )
        self.timings = Timings() if timings is None else timings
        self._reports: dict[Kernel, Any] = {}

    @property
    def is_over(self) -> bool:
        return self.clock() >= self.until

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """A block that has this share of the time that is left."""
        end, now = self.until, self.clock()
        self.until = now + share * max(end - now, 0.0)
        try:
            yield
        finally:
            self.until = end

    def in_turn(self, items: Sequence[Item], weights: Sequence[float] = ()) -> Iterator[Item]:
        """The items, each with its part of the time that is left: equal parts, or by weight."""
        weights = weights or [1.0] * len(items)
        for number, item in enumerate(items):
            with self.part(weights[number] / sum(weights[number:])):
                yield item

    # ------------------------------------------------------------------------------------------- kernels

    def begin(self, kernels: Iterable[Kernel], wait: bool = True) -> None:
        """Have all kernels compiled, in this order; come back when the device is ready, and, having waited,
        the first of them.
        """
        submitted = set()
        for kernel in kernels:
            if kernel not in submitted:
                submitted.add(kernel)
                self.compilers.submit(*kernel)
        self._ask(Job("gemm", "s", "nn", (), _asked((256, 256, 256))))  # the worker starts
        end, wanted = self.clock() + WAIT, min(len(submitted), self.compilers.workers)
        while wait and self.compilers.pending and len(self._reports) < wanted and self.clock() < end:
            self._reports.update(self.compilers.finished(TICK))

    def prepare(self, stem: str, configs: Iterable[Any]) -> None:
        """Have the Configs compiled, while others are timed."""
        for config in configs:
            if (stem, config) not in self._reports:
                self.compilers.submit(stem, config)

    def compiled(self, stem: str, configs: Sequence[Any]) -> list[Any]:
        """Return the Configs that compile well, as far as time goes."""
        self.prepare(stem, configs)
        while any((stem, config) not in self._reports for config in configs):
            if not self._collect():
                break
        reports = {config: self._reports.get((stem, config), "not compiled") for config in configs}
        return [
            config for config, report in reports.items() if judge(config, report, self.device).outcome == "ok"
        ]

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

    # -------------------------------------------------------------------------------------------- timing

    def times(
        self,
        stem: str,
        layout: str,
        configs: Iterable[Any],
        problems: Sequence[Extents],
    ) -> Iterator[Measured]:
        """Compile the Configs and time what comes out at once, what was timed before first.

        What is far behind the best is timed once or twice, not five times.
        """
        best: dict[Extents, float] = {}

        def timed(config: Any) -> Measured:
            seconds = [best.get(extents, math.inf) for extents in problems]
            measured = self.timed(stem, layout, config, problems, best=seconds)
            for extents, rate in measured.rates.items():
                seconds_now = _seconds("gemm", config.dtype, extents, rate)
                best[extents] = min(seconds_now, best.get(extents, math.inf))
            return measured

        waiting = dict.fromkeys(configs)
        for config in [config for config in waiting if self._is_known(stem, layout, config, problems)]:
            del waiting[config]
            yield timed(config)
        self.prepare(stem, waiting)
        while waiting:
            ready = [config for config in waiting if (stem, config) in self._reports]
            for config in ready:
                if self.is_over:
                    return
                del waiting[config]
                outcome = judge(config, self._reports[stem, config], self.device).outcome
                yield timed(config) if outcome == "ok" else Measured(config, outcome, {})
            if not ready and not self._collect():
                return

    def _is_known(self, stem: str, layout: str, config: Any, problems: Sequence[Extents]) -> bool:
        job = _product(stem, layout, config)
        rates = [self.timings.rate(job, extents) for extents in problems]
        return self.timings.failure(job) is not None or None not in rates

    def timed(
        self,
        stem: str,
        layout: str,
        config: Any,
        problems: Sequence[Extents],
        verify: bool = True,
        best: Sequence[float] = (),
    ) -> Measured:
        """A Config that compiles, checked first, on extents for which it is not given narrower loads."""
        job = _product(stem, layout, config)
        return self._run(job._replace(verify=("aligned",) if verify else ()), problems, config, best)

    def ours(
        self,
        dtype: str,
        layout: str,
        problems: Sequence[Extents],
        routine: str = "gemm",
        overrides: tuple[tuple[str, Any], ...] = (),
        repeat: int = 0,
    ) -> dict[Extents, float]:
        """TFLOP/s of a routine by the library's own choice, but for what is overridden.

        `repeat` numbers timings of one and the same.
        """
        return self._run(Job(routine, dtype, layout, overrides), problems, repeat=repeat).rates

    def vendor(
        self,
        dtype: str,
        layout: str,
        problems: Sequence[Extents],
        routine: str = "gemm",
        of: bool | str = True,
    ) -> dict[Extents, float]:
        """TFLOP/s of cuBLAS; none where it is not installed. `of`: another routine than that of this name."""
        return self._run(Job(routine, dtype, layout, vendor=of), problems).rates

    def remembered(self, job: Job, extents: Extents, measure: Callable[[], float]) -> float | None:
        """TFLOP/s that this process measures itself; None where time is over before, or where it fails, which
        a line on stderr says.
        """
        rate = self.timings.rate(job, extents)
        if rate is None and not self.is_over:
            try:
                rate = measure()
            except (PyblasgpuError, MemoryError, NotImplementedError, RuntimeError) as problem:
                print(f"{job.dtype}{job.routine} {extents} {job.overrides}: {problem}", file=sys.stderr)
            else:
                self.timings.record(job, extents, rate)
        return rate

    def _run(
        self,
        job: Job,
        problems: Sequence[Extents],
        config: Any = None,
        best: Sequence[float] = (),
        repeat: int = 0,
    ) -> Measured:
        """Problem by problem, those that time is left for; the first is checked as the job says."""
        rates: dict[Extents, float] = {}
        outcome = self.timings.failure(job) or "ok"
        for number, extents in enumerate(problems):
            rate = self.timings.rate(job, extents, repeat)
            if rate is None and outcome == "ok" and not self.is_over:
                asked = job._replace(problems=_asked(extents, best[number] if best else math.inf))
                seconds, outcome = self._ask(asked, PATIENCE if config is None else QUICK)
                if seconds is not None and outcome == "ok":
                    rate = flops(job.routine, DTYPES[job.dtype], extents) / seconds / 1e12
                    self.timings.record(job, extents, rate, repeat)
                    job = job._replace(verify=())
                elif outcome not in ("ok", "absent"):
                    self.timings.record_failure(job, outcome)
            if rate is not None:
                rates[extents] = rate
        return Measured(config, outcome, rates if outcome == "ok" else {})

    def _ask(self, job: Job, patience: float = PATIENCE) -> tuple[float | None, str]:
        """Seconds of the job's one problem, and its outcome."""
        seconds, outcome = None, "ok"
        self.worker.send(job, patience)
        while self.worker.busy:
            answer = self.worker.receive(patience)
            if isinstance(answer, Timing):
                seconds = answer.seconds
            elif answer not in (None, DONE):
                outcome = answer.outcome
        return seconds, outcome


def _product(stem: str, layout: str, config: Any) -> Job:
    return Job("gemm", config.dtype, layout, ((stem, config),))


def _asked(extents: Extents, best: float = math.inf) -> tuple[tuple[Extents, float], ...]:
    return ((extents, best),)


def _seconds(routine: str, dtype: str, extents: Extents, tflops: float) -> float:
    return flops(routine, DTYPES[dtype], extents) / tflops / 1e12


@contextmanager
def on_device(
    device: Device,
    seconds: float | None,
    kernels: Iterable[Kernel] = (),
    folder: Path | None = None,
    wait: bool = True,
) -> Iterator[Experiment]:
    """An experiment on a device that is here, for so many seconds from when the first kernels are ready.

    Parameters
    ----------
    device : Device
    seconds : float or None
    kernels : iterable of (str, Config)
        What will be timed, in this order: compiled at once on all cores.
    folder : Path, optional
        Where timings are kept, and found.
    wait : bool
        Whether the time begins when the first kernels are ready, else when the device is.
    """
    timings = Timings(folder and folder / FILE, device.name, digest_of_all()[:12])
    workers = max(cores() - SPARE, 1)
    with Compilers(device.cc, workers) as compilers, Worker(Bench, (routine_of, device.ordinal)) as worker:
        run = Experiment(device, compilers, worker, timings=timings)
        run.begin(kernels, wait)
        run.until = time.monotonic() + seconds if seconds else math.inf
        yield run


class _Nobody:
    """Compilers and worker where nothing is to be compiled or timed."""

    pending, workers, busy = 0, 1, False

    def submit(self, stem: str, config: Any) -> None:
        """Nothing comes of it."""


def from_timings(folder: Path) -> Experiment:
    """An experiment that has the timings of a folder, and no device: its time is over."""
    timings = Timings.last_of(folder / FILE)
    return Experiment(known(timings.device), _Nobody(), _Nobody(), -math.inf, timings=timings)


def share_of_peak(device: Device, dtype: str, tflops: float) -> float | None:
    """Part of the peak of the FMA units at the highest clock; None where the clock is not known."""
    highest = peak(device).get(DTYPES[dtype].real)
    return tflops / highest if highest else None
