"""The intrinsics of `bulk_copy` in Python: copies that arrive at any time, and mbarriers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .async_proxy import AsyncProxy, Barrier, merge
from .block import current_thread
from .memory import Pointer, SimulatorError

__all__ = [
    "align_shared",
    "bulk_copy",
    "bulk_copy_multicast",
    "cluster_rank",
    "cluster_sync",
    "mbarrier_arrive",
    "mbarrier_arrive_at",
    "mbarrier_expect",
    "mbarrier_init",
    "mbarrier_init_fence",
    "mbarrier_wait",
    "shared_address",
    "store_async",
]


def align_shared(unit: int):
    """``aligned(pointer)``: the pointer, moved on to the next multiple of `unit` bytes."""

    def aligned(pointer: Pointer) -> Pointer:
        size = pointer.array.itemsize
        return pointer.offset(-((pointer.phase + pointer.start) * size) % unit // size)

    return aligned


def shared_address(pointer: Pointer) -> int:
    """The shared address of what a pointer into dynamic shared memory points at."""
    return current_thread().block.proxy.address_of(pointer)


def mbarrier_init(barrier: int, count: int) -> None:
    """Make the mbarrier at a shared address: a phase of it is over after `count` arrivals."""
    thread = current_thread()
    proxy = thread.block.proxy
    proxy.span(barrier, 8)
    if barrier % 8 or count < 1 or barrier in proxy.barriers:
        raise SimulatorError(f"mbarrier of {count} arrivals at {barrier:#x}, where one may be already")
    proxy.barriers[barrier] = Barrier(count, thread.index, proxy.interval, proxy.cluster.syncs)


def mbarrier_init_fence() -> None:
    """Let bulk copies know the mbarriers that this thread has made."""
    thread = current_thread()
    for barrier in thread.block.proxy.barriers.values():
        barrier.fenced |= barrier.maker == thread.index


def mbarrier_arrive(barrier: int) -> None:
    """Arrive: who waits for the phase knows to be over what this thread has done."""
    _arrive(barrier, 0)


def mbarrier_arrive_at(barrier: int, rank: int) -> None:
    """Arrive at the mbarrier of the block with this rank in the cluster."""
    _arrive(barrier, 0, _of_rank(rank))


def mbarrier_expect(barrier: int, nbytes: int) -> None:
    """Arrive, and have the phase wait for `nbytes` of bulk copies as well."""
    if nbytes < 1:
        raise SimulatorError(f"an mbarrier expects {nbytes} bytes")
    _arrive(barrier, nbytes)


def _of_rank(rank: int) -> AsyncProxy:
    proxy = current_thread().block.proxy.cluster.proxies.get(rank)
    if proxy is None:
        raise SimulatorError(f"no block of rank {rank} in the cluster has begun, or is there")
    return proxy


def _arrive(address: int, nbytes: int, other: AsyncProxy | None = None) -> None:
    thread = current_thread()
    proxy = other or thread.block.proxy
    barrier = proxy.barrier(address, thread)
    if barrier.missing == 0:
        raise SimulatorError(f"more than {barrier.count} arrivals in a phase of an mbarrier")
    barrier.missing -= 1
    barrier.nbytes += nbytes
    merge(barrier.clock, thread.clock)
    barrier.advance()
    thread.block.launch.events += 1


def mbarrier_wait(barrier: int, parity: int) -> None:
    """Wait until the phase of this parity is over: the first one has 0. Before it, 1 is over already."""
    if parity not in (0, 1):
        raise SimulatorError(f"a phase of parity {parity}")
    thread = current_thread()
    proxy = thread.block.proxy
    while True:
        state = proxy.barrier(barrier, thread)
        proxy.let_copies_come()
        if state.phase % 2 != parity:
            merge(thread.clock, state.over)
            for message in state.received:
                thread.block.receive(message)
            return
        thread.stall()


def bulk_copy(target: int, source: Pointer, i: int, nbytes: int, barrier: int) -> None:
    """Begin to copy `nbytes` from ``source[i]`` on to a shared address; the mbarrier counts them."""
    _copy(target, source, i, nbytes, barrier, [current_thread().block.proxy])


def bulk_copy_multicast(target: int, source: Pointer, i: int, nbytes: int, barrier: int, mask: int) -> None:
    """Copy like `bulk_copy` to all blocks of the cluster whose bit is in `mask`, with an mbarrier in each."""
    ranks = [rank for rank in range(16) if mask >> rank & 1]
    _copy(target, source, i, nbytes, barrier, [_of_rank(rank) for rank in ranks])


def _copy(target: int, source: Pointer, i: int, nbytes: int, barrier: int, proxies: list[AsyncProxy]) -> None:
    if target % 16 or nbytes % 16 or nbytes < 16:
        raise SimulatorError(f"misaligned: a bulk copy of {nbytes} bytes to shared address {target:#x}")
    thread, size = current_thread(), source.array.itemsize
    values = source.read(i, nbytes // size, 16 // size)
    for proxy in proxies:
        proxy.start_copy(thread, target, values.view(np.uint8), barrier)


def store_async(target: int, value: Any, barrier: int, rank: int) -> None:
    """Begin to write a real or an int32 to a shared address of the block with this rank in the cluster.

    Who waits for it knows to be over what this block has read up to its last barrier, as by `send_real`.
    """
    raw = np.int32(value) if isinstance(value, int) else np.asarray(value)
    if target % raw.itemsize:
        raise SimulatorError(f"misaligned: {raw.itemsize} bytes to shared address {target:#x}")
    thread, values = current_thread(), raw.reshape(1).view(np.uint8)
    _of_rank(rank).start_copy(thread, target, values, barrier, thread.block.message(written=False))


def cluster_rank() -> int:
    """The rank of this block in its cluster."""
    return current_thread().block.proxy.rank


def cluster_sync() -> None:
    """Wait for all threads of the cluster, which must all get here."""
    thread = current_thread()
    thread.block.proxy.meet_cluster(thread)
