"""Events of the driver: what one stream waits for on another, whether the device has reached it, and when.

The context of the streams' device is current.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import is_finalizing
from typing import Any

from .context import LEGACY_STREAM, current_context
from .driver import check, load
from .launch import is_captured

__all__ = ["LEGACY_STREAM", "Event", "Stopwatch", "follow", "is_captured", "record"]


class Event:
    """An event: all that was queued on a stream when `record` was called."""

    __slots__ = ("_destroy", "_handle")

    def __init__(self, handle: Any):
        self._handle, self._destroy = handle, load().cuEventDestroy

    def __del__(self, is_process_ending: Callable[[], bool] = is_finalizing) -> None:
        if not is_process_ending():  # then the driver may be gone; a `finalize` costs more than the event
            self._destroy(self._handle)

    def record(self, stream: int) -> None:
        """Be from now on what is queued on `stream`."""
        check(load().cuEventRecord(self._handle, stream), "cuEventRecord")

    def is_done(self) -> bool:
        """Whether the device has done it, or never will, because it failed."""
        driver = load()
        return driver.cuEventQuery(self._handle)[0] != driver.CUresult.CUDA_ERROR_NOT_READY

    def hold_back(self, stream: int) -> None:
        """Let what is queued on `stream` from now on wait for it."""
        check(load().cuStreamWaitEvent(stream, self._handle, 0), "cuStreamWaitEvent")

    def synchronize(self) -> None:
        """Wait for it on the host; errors are those of the work, which are reported elsewhere."""
        load().cuEventSynchronize(self._handle)

    def join(self) -> None:
        """Wait for it on the host; an error of the work is raised."""
        check(load().cuEventSynchronize(self._handle), "cuEventSynchronize")


def record(stream: int) -> Event:
    """The event of what is queued on `stream` now."""
    driver = load()
    untimed = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
    event = Event(check(driver.cuEventCreate(untimed), "cuEventCreate"))
    check(driver.cuEventRecord(event._handle, stream), "cuEventRecord")
    return event


def follow(stream: int, other: int) -> None:
    """Let `stream` wait for what is queued on `other`; where that fails, the host waits before it raises."""
    try:
        record(other).hold_back(stream)
    except BaseException:
        load().cuStreamSynchronize(other)
        raise


class Stopwatch:
    """Two events of a device that have times; the context need not be current."""

    def __init__(self, device: int):
        self._device = device
        with current_context(device):  # to which an event belongs
            self._start, self._stop = (Event(check(load().cuEventCreate(0), "cuEventCreate")) for _ in "ab")

    def seconds(self, run: Callable[[], object], stream: int = 0) -> float:
        """Seconds on `stream` from before what ``run()`` enqueues to after it."""
        self.enqueue(run, stream)
        return self.elapsed()

    def enqueue(self, run: Callable[[], object], stream: int = 0) -> None:
        """Call ``run()`` between the two events."""
        driver = load()
        with current_context(self._device):
            check(driver.cuEventRecord(self._start._handle, stream), "cuEventRecord")
            run()
            check(driver.cuEventRecord(self._stop._handle, stream), "cuEventRecord")

    def elapsed(self) -> float:
        """Seconds between the events, once the device has reached both."""
        with current_context(self._device):
            self._stop.join()
            events = self._start._handle, self._stop._handle
            return float(check(load().cuEventElapsedTime(*events), "cuEventElapsedTime")) / 1e3
