"""Run jobs on the worker and log their times with the state of the device."""

from __future__ import annotations

from typing import Any, Protocol

from ..database import TUNED
from ..types import DTYPES
from .clock_monitor import ClockMonitor
from .measure import flops
from .results import Record
from .signals import Interrupts
from .sweep_log import SearchKey, SweepLog
from .worker import DONE, Lost
from .worker_bench import Failed, Job, Timing

__all__ = ["WorkerLike", "Runner"]

TICK = 0.2  # seconds between two looks at the worker, or at the compilers while nothing else happens


class WorkerLike(Protocol):
    """Runner of jobs: a `Worker` whose body is a `Bench`."""

    busy: bool

    def send(self, job: Any, patience: float | None = None) -> None: ...

    def receive(self, timeout: float) -> Any: ...


class Runner:
    """Runs jobs to their end and logs their times.

    Parameters
    ----------
    worker : WorkerLike
    log : SweepLog
    monitor : ClockMonitor
    interrupts : Interrupts
        Checked while a job runs.
    """

    def __init__(self, worker: WorkerLike, log: SweepLog, monitor: ClockMonitor, interrupts: Interrupts):
        self.worker, self.log, self.monitor, self.interrupts = worker, log, monitor, interrupts

    def finish(self, job: Job, patience: float | None = None) -> tuple[list[float], Failed | Lost | None]:
        """Run a job: the times of its problems, up to its failure, and how it failed."""
        self.worker.send(job, patience)
        times: list[float] = []
        failure: Failed | Lost | None = None
        while self.worker.busy:
            self.interrupts.check()
            answer = self.worker.receive(TICK)
            if isinstance(answer, Timing):
                times.append(answer.seconds)
            elif answer not in (None, DONE):
                failure = failure or answer
        return times, failure

    def add_time(
        self,
        key: SearchKey,
        size: str,
        parameters: dict[str, int],
        extents: tuple[int, ...],
        seconds: float,
        outcome: str = "ok",
        routine: str | None = None,
    ) -> Record:
        """Append a time to the log, with its rate and the state of the device."""
        stem, dtype, _ = key
        routine = routine or (TUNED[stem].routine if stem in TUNED else stem)
        rate = flops(routine, DTYPES[dtype], extents) / seconds / 1e12
        return self.log.add(
            key,
            size,
            parameters,
            extents=extents,
            seconds=seconds,
            tflops=rate,
            outcome=outcome,
            state=self.monitor.state(),
        )
