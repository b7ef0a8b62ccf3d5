"""Memory of the simulator: bounds-checked pointers, access logs of shared memory, device allocations.

Addresses are those of the host memory that emulates the device's. So any integer a routine computes can be
looked up, and one that is nowhere is noticed.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from itertools import chain

import numpy as np
from greenlet import getcurrent as _running

from ...errors import PyblasgpuError
from ...operands import span

__all__ = [
    "WARP",
    "AccessLog",
    "Pointer",
    "SimulatorError",
    "adopt",
    "allocate",
    "poisoned",
    "release",
    "resolve",
    "view",
]

ALIGNMENT = 256  # bytes, of an allocation: that of the CUDA driver
WARP = 32  # lanes
POISON = 0xFF  # of every byte never written: NaN in both reals, -1 in integers


class SimulatorError(PyblasgpuError, RuntimeError):
    """A simulated kernel did what a GPU forbids or leaves undefined."""


def poisoned(nbytes: int) -> np.ndarray:
    """Fresh bytes that read as NaN."""
    return np.full(nbytes, POISON, np.uint8)


class AccessLog:
    """Record of the actors, threads or blocks, that read and wrote an array's `size` elements, unordered."""

    def __init__(self, size: int, memory: str, actor: str = "thread"):
        self.size, self.memory, self.actor = size, memory, actor
        self.reads: list[tuple[int, int, int]] = []  # actor, first element, count
        self.writes: list[tuple[int, int, int]] = []
        self.settled_reads: list[tuple[int, int, int]] = []
        self.settled_writes: list[tuple[int, int, int]] = []

    def settle(self, actors: range) -> None:
        """Order the past accesses of these actors, a warp, before their later ones; raise on a race within
        it.
        """
        theirs = AccessLog(self.size, self.memory, self.actor)
        theirs.reads, self.reads = _parted(self.reads, actors)
        theirs.writes, self.writes = _parted(self.writes, actors)
        self.settled_reads += theirs.reads
        self.settled_writes += theirs.writes
        theirs.close()

    def pass_on(self, log: AccessLog, actor: int, known: Mapping[int, int]) -> None:
        """Enter all of this in `log` as the accesses of one actor there; reads of what is `known` to have
        been written before, as the writer's.
        """
        for _, at, count in self.settled_reads + self.reads:
            if at in known:
                log.reads += [(known.get(i, actor), i, 1) for i in range(at, at + count)]
            else:
                log.reads.append((actor, at, count))
        log.writes += [(actor, at, count) for _, at, count in self.settled_writes + self.writes]

    def follow(self, log: AccessLog, actor: int, over: Mapping[int, int]) -> None:
        """Order the writes here after the reads in `log` that are known to be over. `over` has the number of
        an actor's first accesses that are; they become reads of `actor`, like the writes.
        """
        writes = self.settled_writes + self.writes
        if not over or not writes:
            return
        written = bytearray(self.size)
        for _, at, count in writes:
            written[at : at + count] = b"\1" * count
        for number, (who, at, count) in enumerate(log.reads[: max(over.values())]):
            if number < over.get(who, 0) and written.find(0, at, at + count) < 0:
                log.reads[number] = actor, at, count

    def written(self, actor: int) -> dict[int, int]:
        """The elements that `actor` has written, with its number."""
        return {i: actor for who, at, count in self.writes if who == actor for i in range(at, at + count)}

    def written_since(self, actor: int) -> set[int]:
        """Return the elements that `actor` has written since the last barrier, and its warp up to its last
        meeting.
        """
        warp = actor // WARP
        own = [(at, count) for who, at, count in self.writes if who == actor]
        settled = [(at, count) for who, at, count in self.settled_writes if who // WARP == warp]
        return {i for at, count in own + settled for i in range(at, at + count)}

    def take_accesses(self) -> tuple[list, ...]:
        """All accesses; the log is empty then."""
        accesses = self.reads, self.writes, self.settled_reads, self.settled_writes
        self.reads, self.writes, self.settled_reads, self.settled_writes = [], [], [], []
        return accesses

    def put_back(self, accesses: tuple[list, ...]) -> None:
        """The accesses that `take_accesses` gave."""
        self.reads, self.writes, self.settled_reads, self.settled_writes = accesses

    def close(self) -> None:
        """Forget the accesses, or raise where those of two actors meet and one of them writes."""
        reads, writes = self.reads, self.writes
        self.reads, self.writes = [], []
        if self.settled_reads or self.settled_writes:
            self._close_settled(reads, writes)
        if not writes:
            return
        elements, actors = _elements(writes)
        writer = np.full(self.size, -1)
        writer[elements] = actors
        read_elements, readers = _elements(reads)
        written_by = writer[read_elements]
        if (writer[elements] == actors).all() and ((written_by == readers) | (written_by < 0)).all():
            return
        first_writer, last_writer = _extreme_actors(writes, self.size)
        first, last = _extreme_actors(reads + writes, self.size)
        racing = np.flatnonzero((last_writer >= 0) & (first != last))
        if racing.size:
            i = racing[0]
            other = last[i] if first[i] == first_writer[i] else first[i]
            raise SimulatorError(
                f"race in {self.memory} memory: {self.actor} {first_writer[i]} writes element {i} and "
                f"{self.actor} {other} accesses it with no barrier between ({racing.size} elements race)"
            )

    def _close_settled(self, reads: list, writes: list) -> None:
        """Forget what is settled, or raise where it meets another warp's."""
        warps = AccessLog(self.size, self.memory, "warp")
        warps.reads = [(actor // WARP, at, count) for actor, at, count in self.settled_reads + reads]
        warps.writes = [(actor // WARP, at, count) for actor, at, count in self.settled_writes + writes]
        self.settled_reads, self.settled_writes = [], []
        warps.close()


def _parted(accesses: list, actors: range) -> tuple[list, list]:
    """Split accesses into those of `actors` and those of others."""
    return [a for a in accesses if a[0] in actors], [a for a in accesses if a[0] not in actors]


def _elements(accesses: list) -> tuple[np.ndarray, np.ndarray]:
    """The elements of accesses, one by one, and the actors that access them."""
    numbers = np.fromiter(chain.from_iterable(accesses), np.int64, 3 * len(accesses))
    actors, starts, counts = numbers.reshape(-1, 3).T
    if (counts == 1).all():
        return starts, actors
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + within, np.repeat(actors, counts)


def _extreme_actors(accesses, size: int):
    """Lowest and highest actor to access each element; those of an element untouched are inverted."""
    elements, owners = _elements(accesses)
    lowest, highest = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
    np.minimum.at(lowest, elements, owners)
    np.maximum.at(highest, elements, owners)
    return lowest, highest


class Pointer:
    """Address of element `start` of `array`, a one-dimensional block of memory.

    It may point anywhere; an access outside `array` raises IndexError, one that is not aligned
    SimulatorError. `phase` is the address of ``array[0]`` in elements. Accesses are entered in `log`, under
    the number of the running thread.
    """

    __slots__ = ("array", "dtype", "log", "phase", "size", "start")

    def __init__(self, array: np.ndarray, phase: int, start: int = 0, log: AccessLog | None = None):
        self.array, self.phase, self.start, self.log = array, phase, start, log
        self.size, self.dtype = array.size, array.dtype

    def offset(self, count: int) -> Pointer:
        """The pointer `count` elements further."""
        other = _new(Pointer)  # without `__init__`: kernels make many
        other.array, other.phase, other.log = self.array, self.phase, self.log
        other.start, other.size, other.dtype = self.start + count, self.size, self.dtype
        return other

    def checked(self, i: int, count: int, aligned: int = 1) -> int:
        """Return where in `array` elements i to i + count begin; `aligned` in elements."""
        at = self.start + i
        if at < 0 or at + count > self.size:
            raise IndexError(
                f"index {i} is out of bounds: its {count} elements are at {at} of {self.array.size}"
            )
        if aligned > 1 and (self.phase + at) % aligned:
            raise SimulatorError(f"misaligned: index {i} is no multiple of {aligned} elements in memory")
        return at

    def span(self, i: int, count: int, aligned: int = 1) -> slice:
        """Return the checked slice of `array` for elements i to i + count."""
        at = self.checked(i, count, aligned)
        return slice(at, at + count)

    def read(self, i: int, count: int, aligned: int = 1) -> np.ndarray:
        """Elements i to i + count."""
        at = self.start + i
        end = at + count
        if at < 0 or end > self.size or (aligned > 1 and (self.phase + at) % aligned):
            self.span(i, count, aligned)  # says what is wrong
        if self.log is not None:
            self.log.reads.append((_running().index, at, count))
        return self.array[at:end]

    def write(self, i: int, values, count: int = 1, aligned: int = 1) -> None:
        """Set elements i to i + count; a real of the other precision raises TypeError."""
        dtype = getattr(values, "dtype", None)
        if dtype is not self.dtype and dtype is not None and dtype != self.dtype:
            raise TypeError(f"index {i}: {values.dtype} is written where {self.array.dtype} is kept")
        at = self.start + i
        end = at + count
        if at < 0 or end > self.size or (aligned > 1 and (self.phase + at) % aligned):
            self.span(i, count, aligned)
        if self.log is not None:
            self.log.writes.append((_running().index, at, count))
        self.array[at:end] = values

    def load(self, i: int, source: Pointer, j: int, count: int) -> None:
        """``self.write(i, source.read(j, count, count), count)``, which is called where that is wrong."""
        to, at = self.start + i, source.start + j
        fits = 0 <= to <= self.size - count and 0 <= at <= source.size - count
        if not fits or (source.phase + at) % count or self.dtype is not source.dtype:
            self.write(i, source.read(j, count, count), count)
            return
        if source.log is not None:
            source.log.reads.append((_running().index, at, count))
        if self.log is not None:
            self.log.writes.append((_running().index, to, count))
        if count == 1:
            self.array[to] = source.array[at]
        else:
            self.array[to : to + count] = source.array[at : at + count]

    def gather(self, i: int, source: Pointer, j: int, width: int, count: int, step: int) -> bool:
        """Load `count` vectors of `width` elements that are `step` apart in `source`; False, and nothing is
        done, where that is wrong.
        """
        to, at = self.start + i, source.start + j
        end, past = to + width * count, at + step * (count - 1) + 1
        fits = min(to, at) >= 0 and end <= self.size and past + width - 1 <= source.size
        if not fits or (source.phase + at) % width or self.dtype is not source.dtype:
            return False
        if source.log is not None:
            thread = _running().index
            source.log.reads += [(thread, first, width) for first in range(at, past, step)]
        if self.log is not None:
            self.log.writes.append((_running().index, to, width * count))
        for column in range(width):
            self.array[to + column : end : width] = source.array[at + column : past + column : step]
        return True

    def __getitem__(self, i: int):
        at = self.start + i
        if not 0 <= at < self.size:
            self.span(i, 1)
        if self.log is not None:
            self.log.reads.append((_running().index, at, 1))
        return self.array[at]

    def __setitem__(self, i: int, value) -> None:
        at = self.start + i
        dtype = getattr(value, "dtype", None)
        if not 0 <= at < self.size or (dtype is not self.dtype and dtype is not None):
            self.write(i, value)  # which says what is wrong
            return
        if self.log is not None:
            self.log.writes.append((_running().index, at, 1))
        self.array[at] = value


_new = object.__new__
_allocations: dict[int, np.ndarray] = {}  # address -> bytes


def allocate(nbytes: int) -> int:
    """Address of `nbytes` fresh bytes, NaN throughout, aligned as the driver does."""
    padded = poisoned(nbytes + ALIGNMENT)
    skip = -padded.ctypes.data % ALIGNMENT
    address = padded.ctypes.data + skip
    _allocations[address] = padded[skip : skip + nbytes]
    return address


def release(address: int) -> None:
    """Free what `allocate` gave; any other address raises KeyError."""
    del _allocations[address]


def adopt(array: np.ndarray) -> int:
    """Let kernels reach the memory that `array` is a view of; the address of its first element.

    It stays known while the memory lives. A read-only array stays so.
    """
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    low, high = span(base.ctypes.data, base.shape, base.strides, base.itemsize)
    if low not in _allocations:
        # the registry must not keep the array alive, hence bytes that do not own it
        raw = memoryview((ctypes.c_uint8 * (high - low)).from_address(low))
        memory = np.frombuffer(raw, np.uint8)
        memory.flags.writeable = base.flags.writeable
        _allocations[low] = memory
        weakref.finalize(base, _allocations.pop, low, None).atexit = False
    return array.ctypes.data


def _find(address: int) -> tuple[np.ndarray, int]:
    """The allocation that contains `address`, or that ends there, and the distance from its start."""
    known = tuple(_allocations)  # a collection of garbage may take some out of the registry at any step
    start = max((start for start in known if start <= address), default=0)
    memory = _allocations.get(start)
    if memory is None or address > start + memory.size:
        raise IndexError(f"address {address:#x} is in no allocation")
    return memory, address - start


def resolve(address: int, real: str) -> Pointer:
    """The pointer to `real`, 'float32', 'float64' or 'int32', at `address`; it reaches what was allocated, no
    more.
    """
    memory, distance = _find(address)
    size = np.dtype(real).itemsize
    if address % size:
        raise SimulatorError(f"misaligned: address {address:#x} of a {real}")
    skip = distance % size
    nbytes = (memory.size - skip) // size * size
    array = memory[skip : skip + nbytes].view(real)
    return Pointer(array, (address - distance + skip) // size, distance // size)


def view(address: int, nbytes: int) -> np.ndarray:
    """The bytes at `address`, of one allocation."""
    memory, distance = _find(address)
    if distance + nbytes > memory.size:
        raise IndexError(f"{nbytes} bytes at {address:#x} end outside their allocation")
    return memory[distance : distance + nbytes]
