"""Streams and events that are none: queues that run in adversarial order, and vector clocks of them."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Clock", "FakeStreams", "join"]

Clock = dict[int, int]


@dataclass
class _Operation:
    """An entry of a stream: an action, a wait for an event, or an event."""

    name: str
    action: Callable[[], object] | None = None
    event: int = 0
    is_wait: bool = False


@dataclass
class _Event:
    device: int
    stream: int = 0
    is_done: bool = True
    clock: Clock = field(default_factory=dict)


class FakeStreams:
    """The driver's functions of streams and events.

    Parameters
    ----------
    seed : int
        Seed of the order in which streams run.
    eagerness : float
        Probability that something runs that nobody waits for.

    Attributes
    ----------
    real : module
        Module with the types of the driver.
    known : dict of int to int
        Operations that any thread of the host has waited for, as a clock.
    """

    def __init__(self, seed: int, eagerness: float):
        from cuda.bindings import driver

        self.real: Any = driver
        self._random, self._eagerness = random.Random(seed), eagerness
        self._local = threading.local()
        self._queues: dict[int, deque[_Operation]] = {}
        self._stream_devices: dict[int, int] = {}
        self._clocks: dict[int, Clock] = {}
        self.known: Clock = {}
        self._events: dict[int, _Event] = {}
        self._handles = 0x1000

    @property
    def current(self) -> int:
        """The device that is current on this thread; -1 where none is."""
        return getattr(self._local, "device", -1)

    @current.setter
    def current(self, device: int) -> None:
        self._local.device = device

    def _handle(self) -> int:
        self._handles += 0x10
        return self._handles

    def cuStreamCreateWithPriority(self, flags: Any, priority: int) -> Any:
        return self.real.CUstream(self.add_stream(self.current))

    def add_stream(self, device: int) -> int:
        """A new stream of a device."""
        handle = self._handle()
        self._queues[handle], self._clocks[handle] = deque(), {}
        self._stream_devices[handle] = device
        return handle

    def device_of(self, stream: int) -> int:
        """The device to which a stream belongs."""
        return self._stream_devices[int(stream)]

    def cuStreamDestroy(self, stream: Any) -> None:
        pass

    def cuEventCreate(self, flags: Any) -> Any:
        handle = self._handle()
        self._events[handle] = _Event(self.current)
        return self.real.CUevent(handle)

    def cuEventDestroy(self, event: Any) -> None:
        pass  # what waits for it still does

    def cuEventRecord(self, event: Any, stream: int) -> Any:
        known = self._events[int(event)]
        if self._stream_devices[int(stream)] != known.device:
            return self.real.CUresult.CUDA_ERROR_INVALID_HANDLE
        known.stream, known.is_done = int(stream), False
        known.clock = self.tick(int(stream))
        self._enqueue(int(stream), _Operation("event", event=int(event)))
        return None

    def cuStreamWaitEvent(self, stream: int, event: Any, flags: int) -> None:
        clock = self._clocks[int(stream)]
        join(clock, self._events[int(event)].clock)
        self._enqueue(int(stream), _Operation("wait", event=int(event), is_wait=True))

    def cuEventQuery(self, event: Any) -> Any:
        self._run_some()
        known = self._events[int(event)]
        if known.is_done:
            self._learn(known.clock)
            return None
        return self.real.CUresult.CUDA_ERROR_NOT_READY

    def cuEventSynchronize(self, event: Any) -> None:
        self._complete(int(event))
        self._learn(self._events[int(event)].clock)

    def cuStreamSynchronize(self, stream: int) -> None:
        while self._queues[int(stream)]:
            self._run_next(int(stream))
        self._learn(dict(self._clocks[int(stream)]))

    def cuCtxSynchronize(self) -> None:
        for stream, device in list(self._stream_devices.items()):
            if device == self.current:
                self.cuStreamSynchronize(stream)

    def tick(self, stream: int) -> Clock:
        """Return the clock of the next entry of a stream: all that precedes it."""
        clock = self._clocks[stream]
        clock[stream] = clock.get(stream, 0) + 1
        join(clock, self._thread_clock)
        return dict(clock)

    @property
    def _thread_clock(self) -> Clock:
        if not hasattr(self._local, "clock"):
            self._local.clock = {}
        clock: Clock = self._local.clock
        return clock

    def _learn(self, clock: Clock) -> None:
        """This thread has waited."""
        join(self._thread_clock, clock)
        join(self.known, clock)

    def enqueue(self, stream: int, name: str, action: Callable[[], object]) -> None:
        """Enqueue an action."""
        self._enqueue(stream, _Operation(name, action))

    def _enqueue(self, stream: int, operation: _Operation) -> None:
        self._queues[stream].append(operation)
        self._run_some()

    def _run_some(self) -> None:
        """Run what nobody waits for, at random."""
        while self._random.random() < self._eagerness:
            ready = [stream for stream, queue in self._queues.items() if queue and self._can_run(queue[0])]
            if not ready:
                return
            self._run_next(self._random.choice(ready))

    def _can_run(self, operation: _Operation) -> bool:
        return not operation.is_wait or self._events[operation.event].is_done

    def _run_next(self, stream: int) -> None:
        """Run the next of a stream, after what it waits for."""
        operation = self._queues[stream][0]
        if operation.is_wait:
            self._complete(operation.event)
        self._queues[stream].popleft()
        if operation.action is not None:
            operation.action()
        elif not operation.is_wait:
            self._events[operation.event].is_done = True

    def _complete(self, event: int) -> None:
        """Run nothing but what an event needs."""
        known = self._events[event]
        while not known.is_done:
            self._run_next(known.stream)


def join(clock: Clock, other: Clock) -> None:
    """Let a clock know what another one knows."""
    for stream, count in other.items():
        if clock.get(stream, 0) < count:
            clock[stream] = count
