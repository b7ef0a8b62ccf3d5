"""Launches in the simulator: all blocks of a grid, and the ``cuda`` module that kernels see in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule

from ..garbage import uncollected
from .block import Block, Launch, check_shared, current_thread
from .memory import AccessLog, Pointer, SimulatorError, poisoned
from .thread_order import random

__all__ = ["Integer", "cuda", "launch"]

MAX_THREADS = 1024  # a block
MAX_GRID = (2**31 - 1, 65535, 65535)
SHARED_LIMIT = 227 * 1024  # bytes a block may use, compute capability 9.0


class Integer:
    """An integer type: the dtype of an array, or a checked cast.

    Numba computes in int64 whatever the width of the operands, so the cast gives a Python int.
    """

    def __init__(self, name: str):
        self.dtype = np.dtype(name)
        self.lowest, self.highest = int(np.iinfo(name).min), int(np.iinfo(name).max)

    def __call__(self, value) -> int:
        if type(value) is int and self.lowest <= value <= self.highest:
            return value
        value = int(value)
        if not self.lowest <= value <= self.highest:
            raise OverflowError(f"{value} does not fit {self.dtype}")
        return value


def _dtype(type_) -> np.dtype:
    return type_.dtype if isinstance(type_, Integer) else np.dtype(type_)


@cache
def _unwritten(count: int, dtype: np.dtype) -> np.ndarray:
    return poisoned(count * dtype.itemsize).view(dtype)


class _Shared:
    def array(self, shape: int, dtype, alignment: int | None = None) -> Pointer:
        thread, dtype = current_thread(), _dtype(dtype)
        return thread.block.shared_array(thread, shape, dtype, alignment or dtype.itemsize)


class _Local:
    def array(self, shape: int, dtype, alignment: int | None = None) -> Pointer:
        if shape < 1:
            raise SimulatorError(f"local array of {shape} elements")
        dtype = _dtype(dtype)
        array = _unwritten(shape, dtype).copy()
        return Pointer(array, (alignment or dtype.itemsize) // dtype.itemsize)


class _Cuda:
    """The name ``cuda`` of the kernel files: our threads and memory; the rest is Numba's simulated module of
    the launch that is running.
    """

    shared, local = _Shared(), _Local()

    def __getattr__(self, name: str):
        return getattr(current_thread().block.launch.cuda, name)

    @property
    def threadIdx(self) -> Dim3:
        return current_thread().thread_idx

    @property
    def blockIdx(self) -> Dim3:
        return current_thread().block.index

    def syncthreads(self) -> None:
        current_thread().wait()

    def syncthreads_and(self, value) -> bool:
        return all(current_thread().wait(bool(value)))

    def syncthreads_or(self, value) -> bool:
        return any(current_thread().wait(bool(value)))


cuda = _Cuda()


def launch(
    function,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared_bytes: int,
    arguments: tuple,
    shared_limit: int = SHARED_LIMIT,
    cluster: int = 1,
) -> None:
    """Run a kernel function to its end.

    Parameters
    ----------
    function : callable
        The function that a kernel's factory returns.
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
    cluster : int
        Blocks of a cluster, along x.

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
    check_shared(shared_bytes, shared_limit)
    if grid[0] % cluster:
        raise SimulatorError(f"grid {grid} is not of whole clusters of {cluster} blocks")
    arguments, logs = _watched(arguments)
    module = FakeCUDAModule(grid, (threads, 1, 1), 0)
    facts = Launch(
        function, arguments, module, threads, shared_bytes, shared_limit, logs, {}, {}, cluster=cluster
    )
    indices = list(enumerate(np.ndindex(grid)))
    random.shuffle(indices)
    # the collector would walk through the logs of accesses again and again
    with np.errstate(all="ignore"), uncollected():
        blocks = (Block(facts, number, Dim3(*index)).run() for number, index in indices)
        facts.hub.call(lambda: _run_all(facts, blocks))
    for _, by_block in logs:
        by_block.close()


def _run_all(launch: Launch, blocks: Iterable[Iterator[None]]) -> None:
    """Run the blocks to their ends: one after the other, but those that wait for others again and again, in
    another order each time.
    """
    waiting = [block for block in blocks if _waits(block)]
    while waiting:
        random.shuffle(waiting)
        before = launch.events
        left = [block for block in waiting if _waits(block)]
        if len(left) == len(waiting) and launch.events == before:
            raise SimulatorError(f"deadlock: {len(left)} blocks wait for flags that nobody sets")
        waiting = left


def _waits(block: Iterator[None]) -> bool:
    return next(block, block) is None


def _watched(arguments: tuple) -> tuple[tuple, list[tuple[AccessLog, AccessLog]]]:
    """The arguments with logs at their pointers, one pair for those into the same memory, by type."""
    logs: dict[tuple[int, str], tuple[AccessLog, AccessLog]] = {}

    def watch(argument):
        if not isinstance(argument, Pointer):
            return argument
        array = argument.array
        pair = AccessLog(array.size, "device"), AccessLog(array.size, "device", "block")
        by_thread, _ = logs.setdefault((array.ctypes.data, array.dtype.str), pair)
        return Pointer(array, argument.phase, argument.start, by_thread)

    return tuple(watch(argument) for argument in arguments), list(logs.values())
