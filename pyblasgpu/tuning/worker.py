"""A process that runs jobs one at a time, and is replaced when it dies or hangs.

The job's answers arrive one by one through a pipe of our own. So what a job had measured before it took the
process down is not lost. Only these two processes write to the pipe.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from ..errors import PyblasgpuError

__all__ = ["DONE", "DeviceLost", "Lost", "Worker"]

PATIENCE = 20.0  # seconds between two answers
START = 180.0  # seconds until a new process is ready: imports, a context on a machine of many devices
STOP = 5.0  # seconds that a process gets to end by itself

#: The job has been run to its end.
DONE = "done"
_READY = "ready"


class DeviceLost(Exception):
    """Raised by a body after its last answer: nothing runs in this process any more."""


@dataclass(frozen=True)
class Lost:
    """The job took its process down.

    Attributes
    ----------
    outcome : {'crash', 'hang'}
    detail : str
    """

    outcome: str
    detail: str


@dataclass(frozen=True)
class _Unusable:
    reason: str


class Worker:
    """Runs the jobs of a body in a process of its own.

    Parameters
    ----------
    make : callable
        ``make(*arguments)``, called in the process, gives the body; ``body(job)`` yields answers. All of
        these must be picklable.
    arguments : tuple
    patience : float
        Seconds between two answers, after which the process counts as hung and is killed.

    Attributes
    ----------
    process : Process or None
        The process; None before the first job, and where it was ended.
    busy : bool
        Whether a job is running.
    replaced : int
        Number of times that the process died or hung.
    """

    def __init__(
        self,
        make: Callable[..., Callable[[Any], Iterator[Any]]],
        arguments: tuple = (),
        patience: float = PATIENCE,
    ):
        self._make, self._arguments, self._patience = make, arguments, patience
        self._context = get_context("spawn")
        self.process: Any = None
        self._pipe: Connection | None = None
        self._due, self._limit = 0.0, patience
        self.busy = False
        self.replaced = 0

    def send(self, job: Any, patience: float | None = None) -> None:
        """Begin `job`, with a patience of its own if given; the one before it must have ended.

        Raises
        ------
        PyblasgpuError
            Where a new process is needed and cannot be made ready.
        """
        assert not self.busy, "one job at a time"
        if self.process is None:
            self._start()
        assert self._pipe is not None
        self._limit = patience or self._patience
        self.busy, self._due = True, time.monotonic() + self._limit
        with suppress(OSError):  # it has died meanwhile; `receive` finds out why
            self._pipe.send(job)

    def receive(self, timeout: float) -> Any:
        """The next answer of the job, `DONE`, or how it was `Lost`; None where `timeout` seconds pass."""
        assert self.busy and self._pipe is not None, "a job is running"
        left = self._due - time.monotonic()
        try:
            if not self._pipe.poll(max(0.0, min(timeout, left))):
                return self._lose("hang", f"no answer for {self._limit:g} s") if left <= timeout else None
            answer = self._pipe.recv()
        except (EOFError, OSError):
            self.process.join(STOP)
            return self._lose("crash", f"the process ended with code {self.process.exitcode}")
        self._due = time.monotonic() + self._limit
        if answer == DONE:
            self.busy = False
        return answer

    def close(self) -> None:
        """End the process."""
        if self.process is None:
            return
        assert self._pipe is not None
        self._pipe.close()  # which a waiting process takes as the end
        self.process.join(0 if self.busy else STOP)
        self._kill()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        self.process = self._context.Process(
            target=_serve, args=(theirs, self._make, self._arguments), daemon=True
        )
        self.process.start()
        theirs.close()
        try:
            first = self._pipe.recv() if self._pipe.poll(START) else _Unusable(f"not ready after {START:g} s")
        except (EOFError, OSError):
            self.process.join(STOP)
            first = _Unusable(f"it ended with code {self.process.exitcode}")
        except KeyboardInterrupt:
            self._kill()
            raise
        if isinstance(first, _Unusable):
            self._kill()
            raise PyblasgpuError(f"the process that runs candidates cannot start: {first.reason}")

    def _lose(self, outcome: str, detail: str) -> Lost:
        self._kill()
        self.replaced += 1
        return Lost(outcome, detail)

    def _kill(self) -> None:
        assert self._pipe is not None
        self.process.kill()
        self.process.join(STOP)
        self._pipe.close()
        self.process, self.busy = None, False


def _serve(pipe: Connection, make: Callable, arguments: tuple) -> None:
    """The process: jobs in, answers out, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent process
    try:
        body = make(*arguments)
    except Exception as problem:
        pipe.send(_Unusable(f"{type(problem).__name__}: {problem}"))
        return
    pipe.send(_READY)
    try:
        while True:
            job = pipe.recv()
            for answer in body(job):
                pipe.send(answer)
            pipe.send(DONE)
    except (EOFError, OSError, DeviceLost):
        return
