"""Bulk copies and wgmma of a simulated block, which run asynchronously, and the threads' knowledge of them.

A *clock* says how much of what others do is known to be over: by event, how many of its kind. Threads pass
theirs on at barriers and mbarriers. A copy may write where the one who starts it knows all reads to be over;
a product may read where each of its threads knows the copy to be over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from .memory import WARP, Pointer, SimulatorError
from .thread_order import gives_way

__all__ = ["AsyncProxy", "Barrier", "Clock", "Cluster", "Known", "Message", "merge"]

Clock = dict[tuple[str, int, int], int]  # by kind, block, and warp or address
Event = TypeVar("Event")

#: For each device array, in the order of the launch's logs: the block that wrote an element, if known; and
#: for each block how many entries of the log of reads are known to be over.
Known = list[dict[int, int]]


@dataclass(frozen=True, slots=True)
class Message:
    written: Known
    over: Known


class _Thread(Protocol):
    """A thread, as the proxy knows it."""

    block: Any
    index: int
    clock: Clock

    def stall(self) -> None: ...


class _Block(Protocol):
    """A block, as the proxy knows it."""

    launch: Any
    number: int
    index: Any
    dynamic: np.ndarray
    shared: Any
    threads: Any

    def message(self, written: bool) -> Message: ...

    def receive(self, message: Message) -> None: ...


def merge(clock: dict[Event, int], other: Mapping[Event, int]) -> None:
    """Let `clock` know what `other` does."""
    for event, count in other.items():
        if count > clock.get(event, 0):
            clock[event] = count


@dataclass
class Barrier:
    """An mbarrier: arrivals and bytes that its phase still waits for, and what is known once it is over."""

    count: int
    maker: int
    interval: int  # of the block's barriers, in which it was made
    syncs: int  # of the cluster, before it was made
    fenced: bool = False
    missing: int = 0
    nbytes: int = 0
    phase: int = 0
    copies: int = 0  # that were ever started for it
    clock: Clock = field(default_factory=dict)
    over: Clock = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)  # from other blocks, in this phase
    received: list[Message] = field(default_factory=list)  # in those before

    def __post_init__(self):
        self.missing = self.count

    def advance(self) -> None:
        """Go on to the next phase where nothing is missing in this one."""
        if self.missing == 0 and self.nbytes == 0:
            self.phase, self.missing, self.over = self.phase + 1, self.count, dict(self.clock)
            self.messages, self.received = [], self.messages


@dataclass
class Cluster:
    """The blocks of a cluster, and how many of their threads wait for the others."""

    proxies: dict[int, AsyncProxy] = field(default_factory=dict)  # by rank
    waiting: int = 0
    syncs: int = 0
    clock: Clock = field(default_factory=dict)
    over: Clock = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)  # by block, of those that wait
    received: list[Message] = field(default_factory=list)  # at the last meeting


@dataclass(eq=False)
class _Copy:
    barrier: Barrier
    key: tuple[str, int, int]
    number: int
    to: slice
    values: np.ndarray
    knows: Clock
    messages: list[Message]
    is_over: bool = False


@dataclass(frozen=True)
class _Read:
    """A read, over for whoever knows `number` of an event; `by_threads`: up to the block's next barrier."""

    event: tuple[str, int, int]
    number: int
    at: slice
    by_threads: bool = False


class AsyncProxy:
    """The asynchronous side of a block; shared addresses are those that its dynamic memory has."""

    def __init__(self, block: _Block):
        self.block, self.interval = block, 0
        self.barriers: dict[int, Barrier] = {}
        self.copies: list[_Copy] = []  # the last to write somewhere, or under way
        self.reads: list[_Read] = []
        self.settled: dict[int, int] = {}  # reads of a log that are listed in `reads`
        self.warps: dict[int, object] = {}  # by number, what its products are doing
        self.origin: int | None = None
        self.is_over = False
        self.received = 0  # meetings of the cluster
        size, (x, y, z) = block.launch.cluster, (block.index.x, block.index.y, block.index.z)
        self.rank = x % size
        self.cluster = block.launch.clusters.setdefault((x // size, y, z), Cluster())
        self.cluster.proxies[self.rank] = self

    def address_of(self, pointer: Pointer) -> int:
        """The shared address of a pointer into dynamic shared memory."""
        if pointer.array.base is not self.block.dynamic and pointer.array is not self.block.dynamic:
            raise SimulatorError("a shared address of what is not dynamic shared memory")
        self.origin = pointer.phase * pointer.array.itemsize
        return self.origin + pointer.start * pointer.array.itemsize

    def span(self, address: int, nbytes: int) -> slice:
        """Return the slice of the block's dynamic memory with `nbytes` at a shared address."""
        if self.origin is None:
            raise SimulatorError("a shared address that nobody has asked for")
        at = address - self.origin
        if at < 0 or at + nbytes > self.block.dynamic.size:
            raise IndexError(f"{nbytes} bytes at {at} of {self.block.dynamic.size} of shared memory")
        return slice(at, at + nbytes)

    def barrier(self, address: int, thread: _Thread) -> Barrier:
        """The mbarrier at a shared address, as `thread` may use it."""
        if self.is_over:
            raise SimulatorError("a block of the cluster has ended that another one still reaches into")
        state = self.barriers.get(address)
        if state is None:
            raise SimulatorError(f"no mbarrier was made at shared address {address:#x}")
        if thread.block is not self.block and state.syncs == self.cluster.syncs:
            raise SimulatorError("an mbarrier is used that the cluster does not know yet: no cluster_sync")
        if state.maker != thread.index and state.interval == self.interval:
            raise SimulatorError("an mbarrier is used that the block does not know yet: no barrier between")
        return state

    def start_copy(
        self, thread: _Thread, address: int, values: np.ndarray, at: int, *messages: Message
    ) -> None:
        """Begin to copy `values`, bytes, to a shared address, for the mbarrier at `at`; whoever waits there
        receives the `messages`.
        """
        barrier = self.barrier(at, thread)
        if not barrier.fenced:
            raise SimulatorError("a bulk copy for an mbarrier that was made without mbarrier_init_fence")
        to = self.span(address, values.size)
        self._check_overwritten(thread, to)
        self.copies = [c for c in self.copies if not c.is_over or not _within(c.to, to)]
        barrier.copies += 1
        self.block.dynamic[to] = 0xFF  # what is there until it is over, nobody knows
        key = "copies", self.block.number, at
        self.copies.append(
            _Copy(barrier, key, barrier.copies, to, values.copy(), dict(thread.clock), list(messages))
        )
        self.block.launch.events += 1

    def _check_overwritten(self, thread: _Thread, to: slice) -> None:
        for read in self.reads:
            if _meet(read.at, to) and thread.clock.get(read.event, 0) < read.number:
                raise SimulatorError(
                    f"a bulk copy overwrites {to.start}..{to.stop} of shared memory, which warp "
                    f"{read.event[2]} or a product of it may still read"
                )
        self.reads = [read for read in self.reads if not _within(read.at, to)]
        if any(not copy.is_over and _meet(copy.to, to) for copy in self.copies):
            raise SimulatorError("a bulk copy overwrites what another one is bringing")
        for array, log in self.block.shared.values():
            size = array.itemsize
            for who, first, count in log.reads:
                own = who == thread.index and thread.block is self.block
                if not own and _meet(slice(first * size, (first + count) * size), to):
                    raise SimulatorError(f"a bulk copy overwrites what thread {who} may still read")

    def let_copies_come(self) -> None:
        """Some copies are over, as chance has it."""
        for copy in self.copies:
            if not copy.is_over and gives_way():
                copy.is_over = True
                self.block.dynamic[copy.to] = copy.values
                barrier = copy.barrier
                barrier.nbytes -= copy.values.size
                merge(barrier.clock, {**copy.knows, copy.key: copy.number})
                barrier.messages += copy.messages
                barrier.advance()
                self.block.launch.events += 1

    def read_by_products(self, threads: Sequence[_Thread], warp: int, number: int, address: int, nbytes: int):
        """Bytes that product `number` of a warp reads; it goes on to read them until it is waited for."""
        at = self.span(address, nbytes)
        for copy in self.copies:
            if _meet(copy.to, at) and any(thread.clock.get(copy.key, 0) < copy.number for thread in threads):
                raise SimulatorError(
                    f"a product of warp {warp} reads {at.start}..{at.stop} of shared memory, where a bulk "
                    "copy is not known to be over"
                )
        self.reads.append(_Read(("warp", self.block.number, warp), number, at))
        return self.block.dynamic[at]

    def pass_barrier(self) -> None:
        """All threads of the block were at a barrier."""
        self.interval += 1
        self.settled.clear()  # their logs begin anew
        if self.barriers:
            _share(self.block.threads)
            self.reads = [read for read in self.reads if not read.by_threads]

    def settle(self, thread: _Thread) -> None:
        """The lanes of the thread's warp have met: what they read before is over for who learns of it."""
        if not self.barriers:
            return
        warp = thread.index // WARP
        lanes = self.block.threads[warp * WARP : (warp + 1) * WARP]
        meetings = thread.clock.get(("meetings", self.block.number, warp), 0) + 1
        for array, log in self.block.shared.values():
            size, known = array.itemsize, self.settled.get(id(log), 0)
            for at, count in {(at, count) for _, at, count in log.settled_reads[known:]}:
                span = slice(at * size, (at + count) * size)
                self.reads.append(_Read(("meetings", self.block.number, warp), meetings, span, True))
            self.settled[id(log)] = len(log.settled_reads)
        _share(lanes)
        for lane in lanes:
            lane.clock["meetings", self.block.number, warp] = meetings

    def meet_cluster(self, thread: _Thread) -> None:
        """Wait for all threads of the cluster; what each knows, all know then. Of device memory it is what
        the first one of each block knows to be read and written.
        """
        cluster, launch, block = self.cluster, self.block.launch, self.block
        number = cluster.syncs
        cluster.waiting += 1
        if block.number not in cluster.messages:
            cluster.messages[block.number] = block.message(written=True)
        merge(cluster.clock, thread.clock)
        launch.events += 1
        if cluster.waiting == launch.cluster * launch.threads:
            cluster.syncs, cluster.waiting, cluster.over = number + 1, 0, dict(cluster.clock)
            cluster.received, cluster.messages = list(cluster.messages.values()), {}
            for proxy in cluster.proxies.values():
                proxy.interval += 1
        while cluster.syncs == number:
            thread.stall()
        merge(thread.clock, cluster.over)
        if self.received < cluster.syncs:
            self.received = cluster.syncs
            for message in cluster.received:
                block.receive(message)

    def close(self) -> None:
        """The block ends: raise where anything is still under way."""
        self.is_over = True
        if any(not copy.is_over for copy in self.copies):
            raise SimulatorError("a block ends while bulk copies are under way")
        if any(getattr(warp, "pending", ()) for warp in self.warps.values()):
            raise SimulatorError("a block ends while products are under way")


def _share(threads: Sequence[_Thread]) -> None:
    """All of these threads know what each knows."""
    everything: Clock = {}
    for thread in threads:
        merge(everything, thread.clock)
    for thread in threads:
        merge(thread.clock, everything)


def _meet(one: slice, other: slice) -> bool:
    return one.start < other.stop and other.start < one.stop


def _within(one: slice, other: slice) -> bool:
    return other.start <= one.start and one.stop <= other.stop
