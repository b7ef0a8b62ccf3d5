"""Blocks of simulated threads, their shared memory, and what one block knows of another.

Numba's simulator gives a block operating-system threads, run in order, and hands its shared memory to
the next block. Here a thread is a greenlet; between two barriers the threads run in random order, blocks
too; shared memory begins as NaN; and what a GPU punishes by hanging or by wrong results raises
`SimulatorError`: barriers that not all threads reach, races, too many threads, too much shared memory.
"""

from __future__ import annotations

import contextvars
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import greenlet
import numpy as np
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule

from .async_proxy import AsyncProxy, Clock, Cluster, Known, Message, merge
from .memory import WARP, AccessLog, Pointer, SimulatorError, poisoned
from .thread_order import random

__all__ = ["Block", "Launch", "Thread", "check_shared", "current_thread"]


class Thread(greenlet.greenlet):
    """One thread of a block, and the asynchronous copies it has under way.

    A greenlet that has run begins anew in another block: to start one takes longer than most threads run.
    """

    def begin(self, block: Block, index: int) -> None:
        """Become a thread of `block`."""
        self.block, self.index, self.thread_idx = block, index, _thread_idx(index)
        self.barrier: tuple[str, int] | None = None  # file and line where it waits
        self.vote = False  # what it passes to that barrier
        self.meeting: _Meeting | None = None  # where it waits for the other lanes of its warp
        self.stalled = False  # until another block is further
        self.static_arrays = 0
        self.gr_context = contextvars.copy_context()  # NumPy keeps its error state there
        self.last_flags: dict[int, float] = {}  # by index, what flags were when it last read them
        self.copies: list = []  # not yet committed
        self.groups: list[list] = []
        self.clock: Clock = {}

    def run(self):
        while True:
            self.block.launch.function(*self.block.launch.arguments)
            self.parent.switch()

    def resume(self) -> None:
        """Run to the next barrier, or meeting of the warp, or to the end."""
        self.barrier, self.meeting, self.stalled = None, None, False
        try:
            self.switch()
        except Exception as error:
            error.add_note(f"in thread {self.index} of block {self.block.index}")
            raise

    def wait(self, vote: bool = False) -> list[bool]:
        """Give way until the other threads are at the kernel's barrier too; what they all voted."""
        self.barrier, self.vote = self._line(), vote
        self.parent.switch()
        return self.block.votes

    def stall(self) -> None:
        """Give way to other blocks."""
        self.stalled = True
        self.parent.switch()

    def meet(self, brought, together: Callable[[list], None]) -> None:
        """Give way until all lanes of the warp are here; one does `together` with what all passed."""
        self.meeting = _Meeting(self._line(), brought, together)
        self.parent.switch()

    def _line(self) -> tuple[str, int]:
        """The kernel's file and line; a frame computes its line anew each time, which takes long."""
        kernel = sys._getframe(3)
        lines, at = self.block.launch.lines, (id(kernel.f_code), kernel.f_lasti)
        if at not in lines:
            lines[at] = kernel.f_code.co_filename, kernel.f_lineno
        return lines[at]


class Hub(greenlet.greenlet):
    """Runs launches of one thread of the system, all at one depth of the stack, and keeps their threads.

    A greenlet is begun at the depth of its parent: where this one is deeper later, each switch copies the
    part of the stack between.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ended: list[Thread] = []  # whose kernels have returned
        self._job: Callable[[], object] | None = None
        self._error: BaseException | None = None

    def call(self, job: Callable[[], object]) -> None:
        """Run `job`, which launches blocks."""
        self.parent, self.gr_context = greenlet.getcurrent(), contextvars.copy_context()
        self._job = job
        self.switch()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def run(self) -> None:
        while True:
            try:
                assert self._job
                self._job()
            except BaseException as error:
                self._error = error
            self._job = None
            self.parent.switch()

    def begin(self, block: Block, count: int) -> list[Thread]:
        """Return the threads of a block."""
        kept = max(0, len(self._ended) - count)
        threads = self._ended[kept:]
        del self._ended[kept:]
        threads += [Thread(parent=self) for _ in range(count - len(threads))]
        for index, thread in enumerate(threads):
            thread.begin(block, index)
        return threads

    def end(self, threads: list[Thread]) -> None:
        """Keep the threads of a block that is over."""
        for thread in threads:
            del thread.block  # and the memory that it has
        self._ended += threads[: MOST_KEPT - len(self._ended)]


MOST_KEPT = 4096  # threads


class _Hubs(threading.local):
    """The hub of each thread of the system: greenlets stay in one."""

    def __init__(self) -> None:
        self.hub = Hub()


_HUBS = _Hubs()


@cache
def _thread_idx(index: int) -> Dim3:
    return Dim3(index, 0, 0)


@dataclass(slots=True)  # a frozen one takes long to make
class _Meeting:
    line: tuple[str, int]  # and the file before it
    brought: object
    together: Callable[[list], None]


def current_thread() -> Thread:
    """The thread of the kernel that is running."""
    return greenlet.getcurrent()


@dataclass
class Launch:
    """State shared by the blocks of a launch; `logs` has each device array's log by thread and by block."""

    function: Callable
    arguments: tuple
    cuda: FakeCUDAModule
    threads: int
    shared_bytes: int
    shared_limit: int
    logs: list[tuple[AccessLog, AccessLog]]
    messages: dict[tuple[int, int], Message]  # by the flag that was set for it
    lines: dict[tuple[int, int], tuple[str, int]]  # by code and instruction: a kernel keeps its code
    events: int = 0  # what happened to flags
    hub: Hub = field(default_factory=lambda: _HUBS.hub)
    cluster: int = 1  # blocks of a cluster
    clusters: dict[tuple[int, int, int], Cluster] = field(default_factory=dict)


class Block:
    """One block: its threads and its shared memory."""

    def __init__(self, launch: Launch, number: int, index: Dim3):
        self.launch, self.number, self.index = launch, number, index
        self.shared: dict[tuple[int, int, np.dtype], tuple[np.ndarray, AccessLog]] = {}
        self.static_bytes = 0
        self.dynamic = poisoned(launch.shared_bytes)
        self.threads = launch.hub.begin(self, launch.threads)
        self.votes: list[bool] = []
        self.known: Known = [{} for _ in launch.logs]
        self.over: Known = [{} for _ in launch.logs]
        self.proxy = AsyncProxy(self)

    def run(self) -> Iterator[None]:
        """Run to the end; yields where it can only go on when another block is further."""
        running = list(self.threads)
        while running:
            random.shuffle(running)
            for thread in running:
                thread.resume()
            self._hold_meetings()
            while stalled := [thread for thread in running if thread.stalled]:
                with self._logs_put_aside():
                    yield
                for thread in stalled:
                    thread.resume()
                self._hold_meetings()
            waiting = [thread for thread in running if thread.barrier]
            barriers = sorted({thread.barrier for thread in running if thread.barrier})
            if len(barriers) > 1 or (waiting and len(waiting) < len(self.threads)):
                lines = ", ".join(f"{Path(file).name}:{line}" for file, line in barriers)
                raise SimulatorError(
                    f"barrier divergence in block {self.index}: {len(waiting)} of {len(self.threads)} "
                    f"threads wait at {lines}"
                )
            self._close_logs()
            self.votes = [thread.vote for thread in self.threads]
            self.proxy.pass_barrier()
            running = waiting
        self.proxy.close()
        self.launch.hub.end(self.threads)

    def _hold_meetings(self) -> None:
        """Let the threads that wait for their warp go on, until none does, or another of it for a block."""
        if not any(thread.meeting for thread in self.threads):
            return
        first = range(0, len(self.threads), WARP)
        warps = [self.threads[start : start + WARP] for start in first]
        while any(self._met(lanes) for lanes in warps):
            pass

    def _met(self, lanes: list[Thread]) -> bool:
        """Whether a warp met, and went on."""
        meetings = [lane.meeting for lane in lanes if lane.meeting]
        if not meetings or any(lane.stalled for lane in lanes):
            return False
        met_at = sorted({meeting.line for meeting in meetings})
        if len(met_at) > 1 or len(meetings) < WARP:
            lines = ", ".join(f"{Path(file).name}:{line}" for file, line in met_at)
            raise SimulatorError(
                f"warp divergence in block {self.index}: {len(meetings)} of {WARP} lanes are at {lines}"
            )
        meetings[0].together([meeting.brought for meeting in meetings])
        for lane in random.sample(lanes, WARP):
            lane.resume()
        return True

    def settle(self, thread: Thread) -> None:
        """Order the past accesses of `thread`'s warp before the later ones of its lanes."""
        start = thread.index // WARP * WARP
        logs = [by_thread for by_thread, _ in self.launch.logs] + [log for _, log in self.shared.values()]
        for log in logs:
            log.settle(range(start, start + WARP))
        self.proxy.settle(thread)

    @contextmanager
    def _logs_put_aside(self) -> Iterator[None]:
        """The logs by thread are those of another block meanwhile."""
        kept = [by_thread.take_accesses() for by_thread, _ in self.launch.logs]
        yield
        for (by_thread, _), accesses in zip(self.launch.logs, kept, strict=True):
            by_thread.put_back(accesses)

    def publish(self, flag: Pointer, written: bool = True) -> None:
        """Whoever finds `flag` set knows to be read what this block has read, up to the last barrier; and, if
        `written`, to be written what it has written up to there, the running thread and its warp since, and
        what it has learnt of.
        """
        self.launch.events += 1
        self.launch.messages[_flag_key(flag)] = self.message(written)

    def message(self, written: bool) -> Message:
        """Return the message that this block passes to others."""
        logs = [by_block for _, by_block in self.launch.logs]
        return Message(
            [self._written(which) if written else {} for which in range(len(logs))],
            [{**over, self.number: len(log.reads)} for over, log in zip(self.over, logs, strict=True)],
        )

    def _written(self, which: int) -> dict[int, int]:
        """Return a device array's elements known to the running thread as written, with their blocks."""
        by_thread, by_block = self.launch.logs[which]
        since = by_thread.written_since(current_thread().index)
        return {**self.known[which], **by_block.written(self.number), **dict.fromkeys(since, self.number)}

    def learn(self, flag: Pointer, once: bool) -> None:
        """Order other blocks' accesses before they set `flag` before this block's later ones; with `once` no
        other block learns of them there.
        """
        key, messages = _flag_key(flag), self.launch.messages
        if key in messages:
            self.receive(messages.pop(key) if once else messages[key])

    def receive(self, message: Message) -> None:
        """Order another block's accesses in a message before this block's later ones."""
        for known, new in zip(self.known, message.written, strict=True):
            known.update(new)
        for over, new in zip(self.over, message.over, strict=True):
            merge(over, new)

    def _close_logs(self) -> None:
        for known, over, (by_thread, by_block) in zip(self.known, self.over, self.launch.logs, strict=True):
            by_thread.follow(by_block, self.number, over)
            by_thread.pass_on(by_block, self.number, known)
            by_thread.close()
        for _, log in self.shared.values():
            log.close()
        for thread in self.threads:
            for copy in itertools.chain(thread.copies, *thread.groups):
                copy.enter()

    def shared_array(self, thread: Thread, count: int, dtype: np.dtype, alignment: int) -> Pointer:
        """The block's array that `thread` means: a thread's calls are distinguished by their order."""
        key = (0, 0, dtype)
        if count > 0:
            thread.static_arrays += 1
            key = (thread.static_arrays, count, dtype)
        if key not in self.shared:
            memory = self._static(count * dtype.itemsize) if count > 0 else self.dynamic
            nbytes = memory.size // dtype.itemsize * dtype.itemsize
            array = memory[:nbytes].view(dtype)
            self.shared[key] = array, AccessLog(array.size, "shared")
        array, log = self.shared[key]
        # aligned as requested and no better
        return Pointer(array, alignment // dtype.itemsize, log=log)

    def _static(self, nbytes: int) -> np.ndarray:
        self.static_bytes += nbytes
        check_shared(self.static_bytes + self.launch.shared_bytes, self.launch.shared_limit)
        return poisoned(nbytes)


def _flag_key(flag: Pointer) -> tuple[int, int]:
    return flag.array.ctypes.data, flag.start


def check_shared(nbytes: int, limit: int) -> None:
    if nbytes > limit:
        raise SimulatorError(f"{nbytes} bytes of shared memory a block, of {limit}")
