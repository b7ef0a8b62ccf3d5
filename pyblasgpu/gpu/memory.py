"""Device memory for staging and workspace: stream-ordered, from a pool of our own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from weakref import finalize

import numpy as np

from ..errors import PyblasgpuError
from . import backend

__all__ = [
    "DeviceError",
    "Room",
    "allocate",
    "check",
    "clear",
    "copy",
    "release",
    "synchronize",
    "to_device",
    "to_host",
    "use",
]


KEPT = 64 << 20  # bytes of freed workspace that stay with us


class DeviceError(PyblasgpuError, RuntimeError):
    """A CUDA driver call failed; the message names the call and the driver's reason."""


def check(result, call: str):
    """The values of a cuda.bindings `result`, or the error in it as an exception."""
    error, *values = result
    if error:
        from cuda.bindings import driver

        name = error.name
        text = driver.cuGetErrorString(error)[1]
        reason = text.decode() if isinstance(text, bytes) else text
        if error == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise MemoryError(f"{call}: {reason}")
        raise DeviceError(f"{call}: {name}: {reason}")
    return values[0] if len(values) == 1 else values


if backend.SIMULATED:
    from .simulator import allocate as _allocate
    from .simulator import release as _release
    from .simulator import view as _view

    def use(device: int) -> None:
        """Make `device` current on this thread."""

    def allocate(nbytes: int, device: int, stream: int) -> int:
        """Address of `nbytes` fresh bytes on `device`, in order of `stream`."""
        return _allocate(nbytes)

    def release(address: int, stream: int) -> None:
        """Give memory back once `stream` has come so far."""
        _release(address)

    def to_device(address: int, array: np.ndarray, stream: int) -> None:
        """Copy a contiguous host array to the device."""
        _view(address, array.nbytes)[:] = array.reshape(-1, order="A").view(np.uint8)

    def to_host(array: np.ndarray, address: int, stream: int) -> None:
        """Copy from the device into a contiguous host array, and wait for it."""
        array.reshape(-1, order="A").view(np.uint8)[:] = _view(address, array.nbytes)

    def copy(target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within the device."""
        _view(target, nbytes)[:] = _view(source, nbytes)

    def clear(address: int, nbytes: int, stream: int) -> None:
        """Set bytes to 0."""
        _view(address, nbytes)[:] = 0

    def synchronize(stream: int) -> None:
        """Wait for everything on `stream`."""

    def _reserve(nbytes: int, device: int) -> int:
        return _allocate(nbytes)

    _give_back = _release

else:
    _primary: dict[int, Any] = {}
    _get_current: Any = None

    def use(device: int) -> None:
        """Make `device` current on this thread."""
        context = _primary.get(device) or _retain(device)
        if _get_current()[1] != context:
            from cuda.bindings import driver

            check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")

    def _retain(device: int):
        """The primary context of `device`, the one that other libraries use too."""
        global _get_current
        from cuda.bindings import driver

        check(driver.cuInit(0), "cuInit")
        context = check(driver.cuDevicePrimaryCtxRetain(device), "cuDevicePrimaryCtxRetain")
        _get_current = driver.cuCtxGetCurrent
        _primary[device] = context
        return context

    def allocate(nbytes: int, device: int, stream: int) -> int:
        """Address of `nbytes` fresh bytes on `device`, in order of `stream`."""
        from cuda.bindings import driver

        use(device)
        pool = _pool(device)
        return int(check(driver.cuMemAllocFromPoolAsync(nbytes, pool, stream), "cuMemAllocFromPoolAsync"))

    @lru_cache
    def _pool(device: int):
        """Our own pool of memory: the driver's takes back what is free whenever anybody waits."""
        from cuda.bindings import driver

        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = device
        pool = check(driver.cuMemPoolCreate(properties), "cuMemPoolCreate")
        threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        set_attribute = driver.cuMemPoolSetAttribute(pool, threshold, driver.cuuint64_t(KEPT))
        check(set_attribute, "cuMemPoolSetAttribute")
        return pool

    def release(address: int, stream: int) -> None:
        """Give memory back once `stream` has come so far."""
        from cuda.bindings import driver

        check(driver.cuMemFreeAsync(address, stream), "cuMemFreeAsync")

    def to_device(address: int, array: np.ndarray, stream: int) -> None:
        """Copy a contiguous host array to the device; returns when the host array is free again."""
        from cuda.bindings import driver

        check(driver.cuMemcpyHtoDAsync(address, array.ctypes.data, array.nbytes, stream), "cuMemcpyHtoDAsync")

    def to_host(array: np.ndarray, address: int, stream: int) -> None:
        """Copy from the device into a contiguous host array, and wait for it."""
        from cuda.bindings import driver

        check(driver.cuMemcpyDtoHAsync(array.ctypes.data, address, array.nbytes, stream), "cuMemcpyDtoHAsync")
        synchronize(stream)

    def copy(target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within the device."""
        from cuda.bindings import driver

        check(driver.cuMemcpyDtoDAsync(target, source, nbytes, stream), "cuMemcpyDtoDAsync")

    def clear(address: int, nbytes: int, stream: int) -> None:
        """Set bytes to 0."""
        from cuda.bindings import driver

        check(driver.cuMemsetD8Async(address, 0, nbytes, stream), "cuMemsetD8Async")

    def synchronize(stream: int) -> None:
        """Wait for everything on `stream`."""
        from cuda.bindings import driver

        check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize")

    def _reserve(nbytes: int, device: int) -> int:
        from cuda.bindings import driver

        use(device)
        return int(check(driver.cuMemAlloc(nbytes), "cuMemAlloc"))

    def _give_back(address: int) -> None:
        from cuda.bindings import driver

        driver.cuMemFree(address)


class Room:
    """Device memory that is held as long as this object, for work on any stream.

    Giving it back waits for the device, unlike `release`, which needs to know on which stream the work is.

    Attributes
    ----------
    address : int
    """

    def __init__(self, nbytes: int, device: int):
        self.address = _reserve(nbytes, device)
        finalize(self, _give_back, self.address).atexit = False
