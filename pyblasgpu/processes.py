"""Processes that work next to this one: at low priority, and none the worse for one that dies."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from queue import Empty, Queue
from typing import Any

__all__ = ["Pool", "background_pool", "cores"]


def cores() -> int:
    """Processor cores that this process may use; a container or a batch system may grant a few of many."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Pool:
    """Processes that do jobs, each a tuple of arguments of one function.

    They yield to this process and to whoever is timing. A job is done once more, in a process of its own,
    where some job took the processes down.

    Parameters
    ----------
    work : callable
        ``work(*job)``; what it returns is the job's report.
    workers : int, optional
        Number of processes; by default one for each of `cores`.

    Attributes
    ----------
    pending : int
        Jobs that were submitted and are not reported yet.
    """

    def __init__(self, work: Callable[..., Any], workers: int | None = None):
        self.workers = workers or cores()
        self.pending = 0
        self._work, self._pool = work, _processes(self.workers)
        self._done: Queue[tuple[tuple, Future, bool]] = Queue()
        self._futures: dict[tuple, Future] = {}

    def submit(self, *job: Any) -> None:
        """Begin a job; what is pending already is reported once."""
        if job not in self._futures:
            self.pending += 1
            self._begin(job, is_retry=False)

    def finished(self, timeout: float | None = None) -> Iterator[tuple[tuple, Any]]:
        """Yield the jobs that are done and their reports, after at most `timeout` seconds for the first; a
        str reports that a job's process died.
        """
        wait = True
        while self.pending:
            try:
                job, future, is_retry = self._done.get(wait, timeout)
            except Empty:
                return
            if self._futures.get(job) is not future:
                continue  # dropped
            report = self._report(job, future, is_retry)
            if report is not None:
                wait = False
                del self._futures[job]
                self.pending -= 1
                yield job, report

    def drop(self) -> None:
        """Nobody waits any more for what is pending."""
        for future in self._futures.values():
            future.cancel()
        self._futures.clear()
        self.pending = 0

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self._pool)

    def _begin(self, job: tuple, is_retry: bool) -> None:
        try:
            future = self._alone(job) if is_retry else self._pool.submit(self._work, *job)
        except BrokenExecutor:
            self._pool = _processes(self.workers)
            future = self._pool.submit(self._work, *job)
        self._futures[job] = future
        future.add_done_callback(lambda done: self._done.put((job, done, is_retry)))

    def _alone(self, job: tuple) -> Future:
        """Run a job in a process of its own: some job took the others' down, and it may be this one."""
        pool = _processes(1)
        future = pool.submit(self._work, *job)
        pool.shutdown(wait=False)
        return future

    def _report(self, job: tuple, future: Future, is_retry: bool) -> Any:
        """Return a job's report; None where it is retried, because some job took the processes down."""
        try:
            return future.result()
        except BrokenExecutor:
            if is_retry:
                return "the compiler's process died"
            self._begin(job, is_retry=True)
            return None


@contextmanager
def background_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of `count` processes that yield to whoever is timing, and end with the block."""
    pool = _processes(count)
    try:
        yield pool
    finally:
        _stop(pool)


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_retire)


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes at once: the interpreter would wait at its exit for what nobody waits for here."""
    for process in list((pool._processes or {}).values()):  # from Python 3.14 on, pool.terminate_workers()
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def _retire() -> None:
    """Give way to whoever is timing; Ctrl-C is for the parent process, and without that this one ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):  # POSIX
        os.nice(10)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
