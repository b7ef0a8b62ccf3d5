"""Calls on several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def at_once(work: Callable[..., Any], calls: Iterable[tuple]) -> list[Any]:
    """Results of ``work(*arguments)`` for each of `calls`, on a thread each; what one raises is raised here.

    All threads are there before the first call begins.
    """
    calls = list(calls)
    together = threading.Barrier(len(calls))

    def begin(arguments: tuple) -> Any:
        together.wait()
        return work(*arguments)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(begin, calls))
