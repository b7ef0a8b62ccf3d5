"""Device memory for staging and workspace: stream-ordered, from a pool of our own.

Default streams are those of the current context (`context.current_context`): functions that are not given a
device are called while it is current.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from weakref import finalize

import numpy as np

from ..errors import PyblasgpuError
from . import backend, events
from .context import current_context
from .driver import DeviceError, check, load

__all__ = [
    "DeviceError",
    "OwnedMemory",
    "allocate",
    "begin_to_host",
    "check",
    "clear",
    "copy",
    "current_context",
    "release",
    "reserves",
    "synchronize",
    "to_device",
    "to_host",
    "trim",
]

#: Part of the device's memory up to which freed workspace stays with us: to take it from the driver anew,
#: after each wait, costs milliseconds a GiB.
KEPT_PART = 32

#: Functions that free spare memory: each takes a device's number when an allocation fails there, and returns
#: the number of bytes it freed.
reserves: list[Callable[[int], int]] = []


if backend.SIMULATED:
    from .simulator.intrinsics import allocate as _allocate
    from .simulator.intrinsics import release as _release
    from .simulator.intrinsics import view as _view

    def allocate(nbytes: int, device: int, stream: int) -> int:
        """Address of `nbytes` fresh bytes on `device`, in order of `stream`."""
        return _allocate(nbytes)

    def release(address: int, stream: int) -> None:
        """Give memory back once `stream` has reached this point."""
        _release(address)

    def to_device(address: int, array: np.ndarray, stream: int) -> None:
        """Copy a contiguous host array to the device."""
        _view(address, array.nbytes)[:] = array.reshape(-1, order="A").view(np.uint8)

    def to_host(array: np.ndarray, address: int, stream: int) -> None:
        """Copy from the device into a contiguous host array, and wait for it."""
        array.reshape(-1, order="A").view(np.uint8)[:] = _view(address, array.nbytes)

    def begin_to_host(array: np.ndarray, address: int, stream: int) -> Any:
        """Begin `to_host`, and return what to join."""
        to_host(array, address, stream)
        return SimpleNamespace(join=lambda: None)

    def copy(target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within the device."""
        _view(target, nbytes)[:] = _view(source, nbytes)

    def clear(address: int, nbytes: int, stream: int) -> None:
        """Set bytes to 0."""
        _view(address, nbytes)[:] = 0

    def synchronize(stream: int) -> None:
        """Wait for everything on `stream`."""

    def trim(device: int) -> None:
        """Give the driver what our pool keeps unused."""

    def _reserve(nbytes: int, device: int) -> int:
        return _allocate(nbytes)

    def _give_back(address: int, device: int) -> None:
        _release(address)

else:

    def allocate(nbytes: int, device: int, stream: int) -> int:
        """Address of `nbytes` fresh bytes on `device`, in order of `stream`."""
        return _with_reserves(_from_pool, nbytes, device, stream)

    def _with_reserves(take: Callable[..., int], nbytes: int, device: int, *stream: int) -> int:
        """Allocate by `take`; where there is no memory, free the reserves and try once more."""
        try:
            return take(nbytes, device, *stream)
        except MemoryError:
            for give_back in reserves:
                give_back(device)
            trim(device)
        return take(nbytes, device, *stream)

    def _from_pool(nbytes: int, device: int, stream: int) -> int:
        with current_context(device):
            allocated = load().cuMemAllocFromPoolAsync(nbytes, memory_pool(device), stream)
            return int(check(allocated, "cuMemAllocFromPoolAsync"))

    @lru_cache
    def memory_pool(device: int):
        """Our own pool of memory: the driver's takes back what is free whenever anybody waits."""
        driver = load()
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = device
        pool = check(driver.cuMemPoolCreate(properties), "cuMemPoolCreate")
        threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        _free, total = check(driver.cuMemGetInfo(), "cuMemGetInfo")
        kept = driver.cuuint64_t(total // KEPT_PART)
        set_attribute = driver.cuMemPoolSetAttribute(pool, threshold, kept)
        check(set_attribute, "cuMemPoolSetAttribute")
        return pool

    def trim(device: int) -> None:
        """Give the driver what our pool keeps unused, for other libraries; errors are ignored."""
        with suppress(PyblasgpuError, MemoryError), current_context(device):
            check(load().cuMemPoolTrimTo(memory_pool(device), 0), "cuMemPoolTrimTo")

    def release(address: int, stream: int) -> None:
        """Give memory back once `stream` has reached this point."""
        check(load().cuMemFreeAsync(address, stream), "cuMemFreeAsync")

    def to_device(address: int, array: np.ndarray, stream: int) -> None:
        """Copy a contiguous host array to the device; returns when the host array is free again."""
        check(load().cuMemcpyHtoDAsync(address, array.ctypes.data, array.nbytes, stream), "cuMemcpyHtoDAsync")

    def to_host(array: np.ndarray, address: int, stream: int) -> None:
        """Copy from the device into a contiguous host array, and wait for it."""
        check(load().cuMemcpyDtoHAsync(array.ctypes.data, address, array.nbytes, stream), "cuMemcpyDtoHAsync")
        synchronize(stream)

    def begin_to_host(array: np.ndarray, address: int, stream: int) -> Any:
        """Begin to copy from the device into a contiguous host array; the event returned is its end."""
        check(load().cuMemcpyDtoHAsync(array.ctypes.data, address, array.nbytes, stream), "cuMemcpyDtoHAsync")
        return events.record(stream)

    def copy(target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within the device."""
        check(load().cuMemcpyDtoDAsync(target, source, nbytes, stream), "cuMemcpyDtoDAsync")

    def clear(address: int, nbytes: int, stream: int) -> None:
        """Set bytes to 0."""
        check(load().cuMemsetD8Async(address, 0, nbytes, stream), "cuMemsetD8Async")

    def synchronize(stream: int) -> None:
        """Wait for everything on `stream`."""
        check(load().cuStreamSynchronize(stream), "cuStreamSynchronize")

    def _reserve(nbytes: int, device: int) -> int:
        return _with_reserves(_from_driver, nbytes, device)

    def _from_driver(nbytes: int, device: int) -> int:
        with current_context(device):
            return int(check(load().cuMemAlloc(nbytes), "cuMemAlloc"))

    def _give_back(address: int, device: int) -> None:
        # in a forked process it is not ours, on a device that is lost nobody's
        with suppress(PyblasgpuError), current_context(device):
            load().cuMemFree(address)


class OwnedMemory:
    """Device memory that is held as long as this object, for work on any stream.

    Giving it back waits for the device, unlike `release`, which needs to know on which stream the work is.

    Attributes
    ----------
    address : int
    """

    def __init__(self, nbytes: int, device: int):
        self.address = _reserve(nbytes, device)
        finalize(self, _give_back, self.address, device).atexit = False
