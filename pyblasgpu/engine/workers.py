"""Threads that copy, for the time of one call.

Unlike those of `concurrent.futures` they take work while the process ends, when a call that was not waited
for may still be under way.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

__all__ = ["Workers"]

_Work = tuple[Future[None], Callable[..., object], tuple[Any, ...]]


class Workers:
    """Threads that run functions in the order of their submission.

    Parameters
    ----------
    count : int
    name : str
        Prefix of the threads' names.
    """

    def __init__(self, count: int, name: str):
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._count, self._name = count, name

    def submit(self, function: Callable[..., object], *arguments: Any) -> Future[None]:
        """Have a thread run ``function(*arguments)``; the future returns then, or raises its error."""
        future: Future[None] = Future()
        if len(self._threads) < self._count:
            thread = Thread(target=self._work, name=f"{self._name}-{len(self._threads)}")
            thread.start()  # where it cannot, nothing is queued
            self._threads.append(thread)
        self._queue.put((future, function, arguments))
        return future

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            future, function, arguments = work
            if future.set_running_or_notify_cancel():
                try:
                    function(*arguments)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)
            del work, future, function, arguments  # and the arrays with them

    def close(self) -> None:
        """Wait until all is done, and end the threads."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
