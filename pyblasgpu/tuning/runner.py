"""What everything that is timed in a run goes through: the worker, the device's state, the journal."""

from __future__ import annotations

from typing import Any, Protocol

from ..database import FAMILIES
from ..types import DTYPES
from .clock_monitor import Health
from .measure import flops
from .results import Record
from .signals import Interrupts
from .sweep_log import Journal, Search
from .worker import DONE, Lost
from .worker_bench import Failed, Job, Timed

__all__ = ["Bencher", "Lab"]

TICK = 0.2  # seconds between two looks at the worker, or at the compilers while nothing else happens


class Bencher(Protocol):
    """What runs jobs: a `Worker` whose body is a `Bench`."""

    busy: bool

    def send(self, job: Any, patience: float | None = None) -> None: ...

    def receive(self, timeout: float) -> Any: ...


class Lab:
    """Runs jobs to their end and keeps what they found.

    Parameters
    ----------
    worker : Bencher
    journal : Journal
    health : Health
    interrupts : Interrupts
        Heeded while a job runs.
    """

    def __init__(self, worker: Bencher, journal: Journal, health: Health, interrupts: Interrupts):
        self.worker, self.journal, self.health, self.interrupts = worker, journal, health, interrupts

    def finish(self, job: Job, patience: float | None = None) -> tuple[list[float], Failed | Lost | None]:
        """Run a job: the times of its places, as far as it came, and how it failed."""
        self.worker.send(job, patience)
        times: list[float] = []
        failure: Failed | Lost | None = None
        while self.worker.busy:
            self.interrupts.heed()
            answer = self.worker.receive(TICK)
            if isinstance(answer, Timed):
                times.append(answer.seconds)
            elif answer not in (None, DONE):
                failure = failure or answer
        return times, failure

    def add_time(
        self,
        key: Search,
        size: str,
        parameters: dict[str, int],
        extents: tuple[int, ...],
        seconds: float,
        outcome: str = "ok",
    ) -> Record:
        """Append a time to the journal, with its rate and the state of the device."""
        stem, dtype, _ = key
        routine = FAMILIES[stem].routine if stem in FAMILIES else stem
        rate = flops(routine, DTYPES[dtype], extents) / seconds / 1e12
        return self.journal.add(key, size, parameters, extents=extents, seconds=seconds, tflops=rate,
                                outcome=outcome, state=self.health.state())  # fmt: skip
