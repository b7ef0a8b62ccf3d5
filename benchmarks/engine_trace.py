"""Where the time of a streamed call goes: every copy and leaf, when it was enqueued, started and ended.

    python -m benchmarks.engine_trace --out DIR [--sizes 4096 8192] [--letters ds] [--routines gemm trsm syrk]
                                      [--devices 0] [--pageable]

A row for each case, with the seconds of calls that nothing watches and the trace of one that is watched.
`gaps` of a stream are milliseconds in which it did nothing between its first start and its last end. Either
the host had not enqueued the next thing (`host`), or that waited for another stream (`waits`). `events` are
[device, stream, what, bytes, enqueued, start, end], in milliseconds from the call's beginning.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple
from unittest.mock import patch

import cupy
import numpy as np

from benchmarks.host_problems import (
    ROUTINES,
    HostProblem,
    copy_matrix,
    nested_document,
    pinned_for,
    streaming,
)
from benchmarks.several_cards import factor
from benchmarks.study import Namespace, Option, Row, Rows, Study, device_facts, main
from pyblasgpu.engine import executor, host_traffic, leaves, uploads
from pyblasgpu.gpu import memory
from pyblasgpu.gpu.context import current_context, current_device
from pyblasgpu.gpu.driver import check, load
from pyblasgpu.testing.clocks import host_clock

__all__ = ["Trace", "traced"]


class _Span(NamedTuple):
    """Something on a stream, between two events of the driver."""

    device: int
    stream: str
    what: str
    nbytes: int
    enqueued: float
    start: Any
    end: Any


class Trace:
    """Context manager: what the engine puts on the streams of `devices` in the block.

    Attributes
    ----------
    host : list of list
        What the host did that takes time: name, begin and seconds.
    """

    def __init__(self, devices: Sequence[int]):
        self.devices = devices
        self.host: list[list[Any]] = []
        self._spans: list[_Span] = []
        self._bases: dict[int, tuple[Any, float]] = {}
        self._stack = ExitStack()
        self._collecting = 0.0

    def __enter__(self) -> Trace:
        for device in self.devices:
            with current_context(device):
                base = _recorded(0)
                check(load().cuEventSynchronize(base), "cuEventSynchronize")
                self._bases[device] = base, time.perf_counter()
        watched = [
            (leaves, "enqueue_leaf", self._on_stream("compute", lambda leaf, *_: (leaf.routine, 0))),
            (host_traffic, "copy_up", self._on_stream("up", _copied)),
            (uploads, "copy_up", self._on_stream("up", _copied)),
            (host_traffic, "copy_down", self._on_stream("down", _copied)),
            (executor, "copy_peer", self._on_stream("peer", _copied)),
            (memory, "allocate", self._on_host("allocate")),
            (memory, "release", self._on_host("release")),
        ]
        for module, name, wrap in watched:
            self._stack.enter_context(patch.object(module, name, wrap(getattr(module, name))))
        gc.callbacks.append(self._on_collection)
        self.begin = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.begin
        gc.callbacks.remove(self._on_collection)
        self._stack.close()

    def _on_stream(self, stream: str, describe: Callable[..., tuple[str, int]]) -> Callable[..., Any]:
        def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> None:
                what, nbytes = describe(*arguments)
                enqueued, start = time.perf_counter(), _recorded(arguments[-1])
                function(*arguments)
                end = _recorded(arguments[-1])
                self._spans.append(_Span(current_device(), stream, what, nbytes, enqueued, start, end))

            return call

        return wrap

    def _on_host(self, name: str) -> Callable[..., Any]:
        def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                begin = time.perf_counter()
                try:
                    return function(*arguments)
                finally:
                    self.host.append([name, begin - self.begin, time.perf_counter() - begin])

            return call

        return wrap

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.perf_counter()
        else:
            took = time.perf_counter() - self._collecting
            self.host.append([f"collect {info['generation']}", self._collecting - self.begin, took])

    def events(self) -> list[list[Any]]:
        """What was enqueued, in milliseconds; nothing of it is under way."""
        rows = []
        for span in self._spans:
            with current_context(span.device):
                base, at = self._bases[span.device]
                times = [_milliseconds(base, event) + 1e3 * (at - self.begin) for event in span[-2:]]
            enqueued = 1e3 * (span.enqueued - self.begin)
            rows.append([*span[:4], *(round(each, 4) for each in (enqueued, *times))])
        return sorted(rows, key=lambda row: row[4])


def _recorded(stream: int) -> Any:
    driver = load()
    event = check(driver.cuEventCreate(0), "cuEventCreate")
    check(driver.cuEventRecord(event, stream), "cuEventRecord")
    return event


def _milliseconds(start: Any, end: Any) -> float:
    return float(check(load().cuEventElapsedTime(start, end), "cuEventElapsedTime"))


def _copied(target: Any, source: Any, stream: int) -> tuple[str, int]:
    return "copy", source.width * source.lines


def gaps(events: list[list[Any]]) -> dict[str, dict[str, float]]:
    """By device and stream: busy and idle milliseconds, first start, last end."""
    streams = defaultdict(list)
    for row in events:
        streams[f"{row[0]} {row[1]}"].append(row[4:])
    by_stream = {}
    for name, rows in streams.items():
        rows.sort(key=lambda row: row[1])
        idle = {"host": 0.0, "waits": 0.0}
        for (_, _, before), (enqueued, start, _) in pairwise(rows):
            late = min(max(enqueued - before, 0), max(start - before, 0))
            idle["host"] += late
            idle["waits"] += max(start - before, 0) - late
        busy = sum(end - start for _, start, end in rows)
        by_stream[name] = {
            "busy": busy,
            **idle,
            "first": rows[0][1],
            "last": rows[-1][2],
            "count": len(rows),
        }
    return {name: {key: round(x, 3) for key, x in each.items()} for name, each in sorted(by_stream.items())}


def traced(problem: HostProblem, devices: Sequence[int], repeats: int = 5) -> dict[str, Any]:
    """Seconds of calls, and the trace of one."""
    run: Callable[[], Any] = partial(problem.streamed, **({"devices": devices} if len(devices) > 1 else {}))
    prepare: Callable[[], Any] = dict
    if problem.routine == "potrf":
        run, prepare = partial(factor, "potrf", problem.c, len(devices)), partial(_definite, problem)
    seconds = []
    for _ in range(repeats + 1):
        prepare()
        seconds.append(round(host_clock(run), 5))
    prepare()
    with Trace(devices) as trace:
        run()
    events = trace.events()
    return {
        "routine": problem.routine,
        "dtype": problem.letter,
        "n": problem.n,
        "devices": list(devices),
        "seconds": seconds,
        "traced": round(trace.seconds, 5),
        "gaps": gaps(events),
        "host": [[name, round(1e3 * at, 3), round(1e3 * took, 3)] for name, at, took in trace.host],
        "events": events,
    }


def _definite(problem: HostProblem) -> None:
    """Put a matrix into c that has a Cholesky factor."""
    copy_matrix(problem.c, problem.b)
    np.fill_diagonal(problem.c, 2 * problem.n)


def rows(options: Namespace) -> Rows:
    cupy.cuda.Device(options.devices[0]).use()
    pinned = pinned_for(options)
    for n in options.sizes:
        for letter in options.letters:
            for routine in options.routines:
                problem = HostProblem(routine, letter, pinned.matrices(letter, n))
                problem.fill()
                with streaming():
                    row = traced(problem.pageable() if options.pageable else problem, options.devices)
                yield row


def summary(rows: list[Row], options: Namespace) -> Iterator[str]:
    """All but the events, and what took the host long."""
    for row in rows:
        shown = {name: x for name, x in row.items() if name not in ("events", "host")}
        yield f"{shown} {[each for each in row['host'] if each[2] > 0.3]}"


STUDY = Study(
    "engine_trace",
    __doc__,
    rows,
    {
        "letters": "ds",
        "sizes": (4096, 8192),
        "devices": (0,),
        "routines": Option(("gemm", "trsm", "syrk"), (*ROUTINES, "potrf")),
        "pageable": False,
    },
    lambda options: {**device_facts(options), "pageable": options.pageable},
    key="rows",
    document=nested_document,
    summary=summary,
    prints_rows=False,
)

if __name__ == "__main__":
    main(STUDY)
