"""Blocks of simulated threads, and the ``cuda`` module that kernels see in them.

Numba's simulator gives a block operating-system threads, run in order, and hands its shared memory to
the next block. Here a thread is a greenlet; between two barriers the threads run in random order, blocks
too; shared memory begins as NaN; and what a GPU punishes by hanging or by wrong results raises
`SimulatorError`: barriers that not all threads reach, races, too many threads, too much shared memory.
"""

from __future__ import annotations

import contextvars
import itertools
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import greenlet
import numpy as np
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule

from .memory import WARP, AccessLog, Pointer, SimulatorError, poisoned

__all__ = ["Integer", "cuda", "current_thread", "gives_way", "launch", "reseed"]

MAX_THREADS = 1024  # a block
MAX_GRID = (2**31 - 1, 65535, 65535)
SHARED_LIMIT = 227 * 1024  # bytes a block may use, compute capability 9.0

_random = random.Random(0)


def reseed(seed: int) -> None:
    """Choose the order of threads and blocks anew."""
    _random.seed(seed)


def gives_way() -> bool:
    """Whether a block lets others run, as chance has it."""
    return _random.random() < 0.5


class Integer:
    """An integer type: the dtype of an array, or a checked cast.

    Numba computes in int64 whatever the width of the operands, so the cast gives a Python int.
    """

    def __init__(self, name: str):
        self.dtype = np.dtype(name)
        self.lowest, self.highest = int(np.iinfo(name).min), int(np.iinfo(name).max)

    def __call__(self, value) -> int:
        value = int(value)
        if not self.lowest <= value <= self.highest:
            raise OverflowError(f"{value} does not fit {self.dtype}")
        return value


class Thread(greenlet.greenlet):
    """One thread of a block, and the asynchronous copies it has under way."""

    def __init__(self, block: Block, index: int):
        super().__init__()
        self.block, self.index, self.place = block, index, Dim3(index, 0, 0)
        self.gr_context = contextvars.copy_context()  # NumPy keeps its error state there
        self.barrier: tuple[str, int] | None = None  # file and line where it waits
        self.vote = False  # what it brings to that barrier
        self.meeting: _Meeting | None = None  # where it waits for the other lanes of its warp
        self.stalled = False  # until another block is further
        self.found: dict[int, float] = {}  # what flags were when it last looked, by their places
        self.static_arrays = 0
        self.copies: list = []  # not yet committed
        self.groups: list[list] = []

    def run(self):
        self.block.launch.function(*self.block.launch.arguments)

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
        """Give way until all lanes of the warp are here; one does `together` with what all brought."""
        self.meeting = _Meeting(self._line(), brought, together)
        self.parent.switch()

    def _line(self) -> tuple[str, int]:
        """The kernel's file and line; a frame reckons its line anew each time, which takes long."""
        kernel = sys._getframe(3)
        lines, at = self.block.launch.lines, (id(kernel.f_code), kernel.f_lasti)
        if at not in lines:
            lines[at] = kernel.f_code.co_filename, kernel.f_lineno
        return lines[at]


@dataclass(frozen=True, slots=True)
class _Meeting:
    place: tuple[str, int]  # file and line
    brought: object
    together: Callable[[list], None]


def current_thread() -> Thread:
    """The thread of the kernel that is running."""
    return greenlet.getcurrent()


@dataclass
class _Launch:
    """What the blocks of a launch have in common; of each device array, its logs by thread and by block."""

    function: Callable
    arguments: tuple
    cuda: FakeCUDAModule
    threads: int
    shared_bytes: int
    shared_limit: int
    logs: list[tuple[AccessLog, AccessLog]]
    news: dict[tuple[int, int], _News]  # by the flag that was set for it
    lines: dict[tuple[int, int], tuple[str, int]]  # by code and instruction: a kernel keeps its code
    events: int = 0  # what happened to flags


#: Of each device array, in the order of the launch's logs, the block that wrote an element, if that is known;
#: and of each block how many entries of the log of reads are known to be over.
Known = list[dict[int, int]]


@dataclass(frozen=True, slots=True)
class _News:
    written: Known
    over: Known


class Block:
    """One block: its threads and its shared memory."""

    def __init__(self, launch: _Launch, number: int, index: Dim3):
        self.launch, self.number, self.index = launch, number, index
        self.shared: dict[tuple[int, int, np.dtype], tuple[np.ndarray, AccessLog]] = {}
        self.static_bytes = 0
        self.dynamic = poisoned(launch.shared_bytes)
        self.threads = [Thread(self, t) for t in range(launch.threads)]
        self.votes: list[bool] = []
        self.known: Known = [{} for _ in launch.logs]
        self.over: Known = [{} for _ in launch.logs]

    def run(self) -> Iterator[None]:
        """Run to the end; yields where it can only go on when another block is further."""
        running = list(self.threads)
        while running:
            _random.shuffle(running)
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
            running = waiting

    def _hold_meetings(self) -> None:
        """Let the threads that wait for their warp go on, until none does, or another of it for a block."""
        first = range(0, len(self.threads), WARP)
        warps = [self.threads[start : start + WARP] for start in first]
        while any(self._met(lanes) for lanes in warps):
            pass

    def _met(self, lanes: list[Thread]) -> bool:
        """Whether a warp met, and went on."""
        meetings = [lane.meeting for lane in lanes if lane.meeting]
        if not meetings or any(lane.stalled for lane in lanes):
            return False
        places = sorted({meeting.place for meeting in meetings})
        if len(places) > 1 or len(meetings) < WARP:
            lines = ", ".join(f"{Path(file).name}:{line}" for file, line in places)
            raise SimulatorError(
                f"warp divergence in block {self.index}: {len(meetings)} of {WARP} lanes are at {lines}"
            )
        meetings[0].together([meeting.brought for meeting in meetings])
        for lane in _random.sample(lanes, WARP):
            lane.resume()
        return True

    def settle(self, thread: Thread) -> None:
        """What the warp of `thread` did so far comes before what its lanes do next."""
        start = thread.index // WARP * WARP
        logs = [by_thread for by_thread, _ in self.launch.logs] + [log for _, log in self.shared.values()]
        for log in logs:
            log.settle(range(start, start + WARP))

    @contextmanager
    def _logs_put_aside(self) -> Iterator[None]:
        """The logs by thread are those of another block meanwhile."""
        kept = [by_thread.taken() for by_thread, _ in self.launch.logs]
        yield
        for (by_thread, _), accesses in zip(self.launch.logs, kept, strict=True):
            by_thread.put_back(accesses)

    def publish(self, flag: Pointer, written: bool = True) -> None:
        """Whoever finds `flag` set knows to be read what this block has read, up to the last barrier; and, if
        `written`, to be written what it has written, or learnt of.
        """
        self.launch.events += 1
        logs = [by_block for _, by_block in self.launch.logs]
        self.launch.news[_place(flag)] = _News(
            [
                {**known, **log.written(self.number)} if written else {}
                for known, log in zip(self.known, logs, strict=True)
            ],
            [{**over, self.number: len(log.reads)} for over, log in zip(self.over, logs, strict=True)],
        )

    def learn(self, flag: Pointer, once: bool) -> None:
        """What others had written or read when they set `flag` comes before what this block does next; with
        `once` no other block learns it there.
        """
        place, news = _place(flag), self.launch.news
        if place in news:
            told = news.pop(place) if once else news[place]
            for known, new in zip(self.known, told.written, strict=True):
                known.update(new)
            for over, new in zip(self.over, told.over, strict=True):
                over.update((block, max(count, over.get(block, 0))) for block, count in new.items())

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
        """The block's array that `thread` means: a thread's calls are told apart by their order."""
        key = (0, 0, dtype)
        if count > 0:
            thread.static_arrays += 1
            key = (thread.static_arrays, count, dtype)
        if key not in self.shared:
            memory = self._static(count * dtype.itemsize) if count > 0 else self.dynamic
            whole = memory.size // dtype.itemsize * dtype.itemsize
            array = memory[:whole].view(dtype)
            self.shared[key] = array, AccessLog(array.size, "shared")
        array, log = self.shared[key]
        # aligned as was asked for and no better
        return Pointer(array, alignment // dtype.itemsize, log=log)

    def _static(self, nbytes: int) -> np.ndarray:
        self.static_bytes += nbytes
        _check_shared(self.static_bytes + self.launch.shared_bytes, self.launch.shared_limit)
        return poisoned(nbytes)


def _place(flag: Pointer) -> tuple[int, int]:
    return flag.array.ctypes.data, flag.start


def _check_shared(nbytes: int, limit: int) -> None:
    if nbytes > limit:
        raise SimulatorError(f"{nbytes} bytes of shared memory a block, of {limit}")


def _dtype(type_) -> np.dtype:
    return type_.dtype if isinstance(type_, Integer) else np.dtype(type_)


class _Shared:
    def array(self, shape: int, dtype, alignment: int | None = None) -> Pointer:
        thread, dtype = current_thread(), _dtype(dtype)
        return thread.block.shared_array(thread, shape, dtype, alignment or dtype.itemsize)


class _Local:
    def array(self, shape: int, dtype, alignment: int | None = None) -> Pointer:
        if shape < 1:
            raise SimulatorError(f"local array of {shape} elements")
        dtype = _dtype(dtype)
        array = poisoned(shape * dtype.itemsize).view(dtype)
        return Pointer(array, (alignment or dtype.itemsize) // dtype.itemsize)


class _Module(FakeCUDAModule):
    """Numba's simulated module, with our threads and memory."""

    def __init__(self, grid: tuple[int, int, int], threads: int):
        super().__init__(grid, (threads, 1, 1), 0)
        self._shared, self._local = _Shared(), _Local()

    @property
    def threadIdx(self) -> Dim3:
        return current_thread().place

    @property
    def blockIdx(self) -> Dim3:
        return current_thread().block.index

    @property
    def laneid(self) -> int:
        return current_thread().index % WARP

    def syncthreads(self) -> None:
        current_thread().wait()

    def syncthreads_and(self, value) -> bool:
        return all(current_thread().wait(bool(value)))

    def syncthreads_or(self, value) -> bool:
        return any(current_thread().wait(bool(value)))

    def syncthreads_count(self, value) -> int:
        return sum(current_thread().wait(bool(value)))


class _Cuda:
    """The name ``cuda`` of the kernel files: the module of the launch that is running."""

    def __getattr__(self, name: str):
        return getattr(current_thread().block.launch.cuda, name)


cuda = _Cuda()


def launch(
    function,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int,
    arguments: tuple,
    shared_limit: int = SHARED_LIMIT,
) -> None:
    """Run a kernel function to its end.

    Parameters
    ----------
    function : callable
        What a kernel's factory returns.
    grid : tuple of int
        Blocks along x, y, z.
    block : tuple of int
        Threads of a block, all along x.
    shared_bytes : int
        Dynamic shared memory of a block.
    arguments : tuple
        Numbers and `Pointer` s, reals already in the kernel's precision.
    shared_limit : int
        Bytes of shared memory that a block may use.

    Raises
    ------
    SimulatorError
        When the launch exceeds a limit, or the kernel does what a GPU leaves undefined.
    IndexError
        When it reaches outside an allocation. What is raised in a thread carries a note that names it.
    """
    threads = block[0]
    if not 1 <= threads <= MAX_THREADS or tuple(block) != (threads, 1, 1):
        raise SimulatorError(f"{block} threads a block, of up to {MAX_THREADS} along x")
    if not all(1 <= extent <= limit for extent, limit in zip(grid, MAX_GRID, strict=True)):
        raise SimulatorError(f"grid {grid} is not within (1, 1, 1) and {MAX_GRID}")
    _check_shared(shared_bytes, shared_limit)
    arguments, logs = _watched(arguments)
    facts = _Launch(
        function, arguments, _Module(grid, threads), threads, shared_bytes, shared_limit, logs, {}, {}
    )
    places = list(enumerate(np.ndindex(grid)))
    _random.shuffle(places)
    with np.errstate(all="ignore"):
        _run_all(facts, (Block(facts, number, Dim3(*place)).run() for number, place in places))
    for _, by_block in logs:
        by_block.close()


def _run_all(launch: _Launch, blocks: Iterable[Iterator[None]]) -> None:
    """Run the blocks to their ends: one after the other, but those that wait for others again and again, in
    another order each time.
    """
    waiting = [block for block in blocks if _waits(block)]
    while waiting:
        _random.shuffle(waiting)
        before = launch.events
        left = [block for block in waiting if _waits(block)]
        if len(left) == len(waiting) and launch.events == before:
            raise SimulatorError(f"deadlock: {len(left)} blocks wait for flags that nobody sets")
        waiting = left


def _waits(block: Iterator[None]) -> bool:
    return next(block, block) is None


def _watched(arguments: tuple) -> tuple[tuple, list[tuple[AccessLog, AccessLog]]]:
    """The arguments with logs at their pointers, one pair of logs for those into the same memory."""
    logs: dict[int, tuple[AccessLog, AccessLog]] = {}

    def watch(argument):
        if not isinstance(argument, Pointer):
            return argument
        array = argument.array
        pair = AccessLog(array.size, "device"), AccessLog(array.size, "device", "block")
        by_thread, _ = logs.setdefault(array.ctypes.data, pair)
        return Pointer(array, argument.phase, argument.start, by_thread)

    return tuple(watch(argument) for argument in arguments), list(logs.values())
