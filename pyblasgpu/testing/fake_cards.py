"""A CUDA driver that is none: cards whose streams run in adversarial order and whose races are seen.

What is enqueued runs as late as it may, when the host waits for it, or in random order before. Every access
to memory carries a vector clock, so that two of them that nothing orders are a race, whatever happened.
Device memory is host memory, NaN where nothing was written and after it is freed.
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..gpu.device import known
from .fake_memory import Access, Memory, RaceError
from .fake_streams import Clock, FakeStreams, join

__all__ = ["FakeDriver"]

#: Functions of the driver that give nothing but their status.
_WITHOUT_VALUE = frozenset(
    """
    cuCtxSetCurrent cuCtxSynchronize cuStreamDestroy cuEventDestroy cuEventRecord cuEventQuery
    cuEventSynchronize cuStreamWaitEvent cuStreamSynchronize cuMemFree cuMemFreeAsync cuMemFreeHost
    cuMemHostRegister cuMemHostUnregister cuMemPoolSetAttribute cuMemPoolSetAccess cuMemPoolTrimTo
    cuCtxEnablePeerAccess cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpy2DAsync cuMemcpyPeerAsync
    cuMemcpy3DPeerAsync cuMemsetD8Async cuMemsetD2D8Async
    """.split()  # noqa: SIM905 - words are read more easily than strings
)


#: Functions that need no current context.
_WITHOUT_CONTEXT = frozenset(
    """
    cuCtxSetCurrent cuCtxGetCurrent cuDevicePrimaryCtxRetain cuDeviceGetCount cuDeviceGet cuDeviceGetName
    cuDeviceGetAttribute cuDeviceCanAccessPeer cuGetErrorString cuStreamDestroy cuEventDestroy cuMemPoolCreate
    cuMemPoolSetAttribute cuMemPoolSetAccess cuMemPoolTrimTo
    """.split()  # noqa: SIM905
)
#: Attributes of a device by the driver's names.
_ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": "sm_count",
    "MAX_THREADS_PER_BLOCK": "max_threads_per_block",
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": "shared_per_block",
    "WARP_SIZE": "warp_size",
}


#: Bytes for which accesses are kept together.
_PART = 128


class FakeDriver(FakeStreams):
    """A fake of `cuda.bindings.driver`; what is not here is taken from there.

    Parameters
    ----------
    devices : int
    seed, eagerness
        See `FakeStreams`.
    nbytes : int
        Memory of a device.
    has_peers : bool
        Whether devices reach each other's memory.

    Attributes
    ----------
    calls : Counter
        Number of calls of each function.
    failing : dict of str to list of int and status
        Calls, counted from 0, that fail, by function, and their status.
    taken : dict of int to int
        Bytes that are allocated on each device.
    pooled : Counter
        Bytes on each device that are free in its pool, and for nobody else.
    copied : Counter
        Bytes that were copied, by (source, target); -1 is the host.
    pageable : int
        Copies of memory of the host whose pages are not locked, for which the host waits.
    """

    def __init__(
        self,
        devices: int = 8,
        seed: int = 0,
        eagerness: float = 0.3,
        nbytes: int = 1 << 28,
        has_peers: bool = True,
    ):
        super().__init__(seed, eagerness)
        self.card = known("h100")
        self.devices, self.nbytes, self.has_peers = devices, nbytes, has_peers
        self.calls: Counter[str] = Counter()
        self.failing: dict[str, tuple[list[int], Any]] = {}
        self.taken: dict[int, int] = dict.fromkeys(range(devices), 0)
        self.pooled: Counter[int] = Counter()
        self.copied: Counter[tuple[int, int]] = Counter()
        self.pageable = 0
        self._lock = threading.RLock()
        self._memories: dict[int, Memory] = {}
        self._starts: list[int] = []
        self._locked: list[tuple[int, int]] = []  # pages of the caller's

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __getattribute__(self, name: str) -> Any:
        attribute = object.__getattribute__(self, name)
        return self._called(name, attribute) if name.startswith("cu") and name != "current" else attribute

    def _called(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            with self._lock:
                number = self.calls[name]
                self.calls[name] += 1
                numbers, status = self.failing.get(name, ((), None))
                if self.current < 0 and name not in _WITHOUT_CONTEXT:
                    numbers, status = [number], self.real.CUresult.CUDA_ERROR_INVALID_CONTEXT
                if number in numbers:
                    return (status,) if name in _WITHOUT_VALUE else (status, None)
                try:
                    value = function(*arguments)
                except _Refused as refused:
                    return (refused.args[0], None)
            if name in _WITHOUT_VALUE:
                return (self.real.CUresult.CUDA_SUCCESS if value is None else value,)
            return (self.real.CUresult.CUDA_SUCCESS, value)

        return call

    # ----------------------------------------------------------------------------- contexts and devices

    def cuCtxGetCurrent(self) -> Any:
        return self._context(self.current)

    def cuCtxSetCurrent(self, context: Any) -> None:
        self.current = int(context) - 0x100 if int(context) else -1

    def cuDevicePrimaryCtxRetain(self, device: int) -> Any:
        return self._context(device)

    def _context(self, device: int) -> Any:
        return self.real.CUcontext(0x100 + device if device >= 0 else 0)

    def cuDeviceGetCount(self) -> int:
        return self.devices

    def cuDeviceGet(self, ordinal: int) -> int:
        return ordinal

    def cuDeviceGetName(self, size: int, device: int) -> bytes:
        return self.card.name.encode().ljust(size, b"\0")

    def cuDeviceGetAttribute(self, attribute: Any, device: int) -> int:
        name = attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        if name.startswith("COMPUTE_CAPABILITY"):
            return self.card.cc[name.endswith("MINOR")]
        return int(getattr(self.card, _ATTRIBUTES.get(name, ""), 1))

    def cuDeviceCanAccessPeer(self, device: int, other: int) -> int:
        return int(self.has_peers)

    def cuCtxEnablePeerAccess(self, context: Any, flags: int) -> None:
        assert self.has_peers

    def cuMemGetInfo(self) -> tuple[int, int]:
        return self.nbytes - self.taken[self.current], self.nbytes

    def cuGetErrorString(self, status: Any) -> bytes:
        return bytes(status.name.lower(), "ascii")

    def launch(
        self, stream: int, name: str, accesses: Iterable[Access], action: Callable[[], object]
    ) -> None:
        """Enqueue what a kernel would do."""
        with self._lock:
            self._act(stream, name, accesses, action)

    def _act(self, stream: int, name: str, accesses: Iterable[Access], action: Callable[[], object]) -> None:
        stream = int(stream)
        assert self.device_of(stream) == self.current, f"{name}: the stream is of another context"
        clock = self.tick(stream)
        for access in accesses:
            self._check(access, stream, clock, name)
        self.enqueue(stream, name, action)

    # ------------------------------------------------------------------------------------------- memory

    def _check(self, access: Access, stream: int, clock: Clock, name: str) -> None:
        """Raise `RaceError` where an earlier access is not before this one."""
        first, end, is_write = access
        memory = self._memory_of(first)
        if memory is None:
            return
        assert end <= memory.end, f"{name} reaches beyond its memory"
        if memory.device < 0:
            # a thread that has waited may have informed another one
            clock = dict(clock)
            join(clock, self.known)
        for part in range(first // _PART, (end - 1) // _PART + 1):
            left = [(access, stream, clock[stream], name)]
            for old in memory.past.get(part, ()):
                (lo, hi, was_write), by, count, old_name = old
                is_before = clock.get(by, 0) >= count
                if lo < end and first < hi and (is_write or was_write) and not is_before:
                    raise RaceError(f"{name} and {old_name} on device {memory.device}: nothing orders them")
                if not (is_before and is_write and first <= lo and hi <= end):
                    left.append(old)
            memory.past[part] = left

    def _memory_of(self, address: int) -> Memory | None:
        index = bisect_right(self._starts, address) - 1
        memory = self._memories[self._starts[index]] if index >= 0 else None
        return memory if memory is not None and address < memory.end else None

    def _new_memory(self, nbytes: int, device: int) -> int:
        buffer = np.full(nbytes + 256, 0xFF, np.uint8)
        start = -buffer.ctypes.data % 256
        memory = Memory(buffer[start : start + nbytes], device)
        self._memories[memory.first] = memory
        insort(self._starts, memory.first)
        return memory.first

    def cuMemPoolCreate(self, properties: Any) -> Any:
        return self.real.CUmemoryPool(0x900 + properties.location.id)

    def cuMemPoolSetAttribute(self, *_: Any) -> None:
        pass

    def cuMemPoolSetAccess(self, pool: Any, descriptions: Sequence[Any], count: int) -> None:
        pass

    def cuMemPoolTrimTo(self, pool: Any, kept: int) -> None:
        device = int(pool) - 0x900
        self.pooled[device] = min(self.pooled[device], kept)

    def cuMemAlloc(self, nbytes: int) -> int:
        device = self.current
        if self.taken[device] + self.pooled[device] + nbytes > self.nbytes:
            raise _Refused(self.real.CUresult.CUDA_ERROR_OUT_OF_MEMORY)
        self.taken[device] += nbytes
        return self._new_memory(nbytes, device)

    def cuMemFree(self, address: int) -> None:
        memory = self._memories[int(address)]
        self.taken[memory.device] -= memory.buffer.nbytes

    def cuMemAllocFromPoolAsync(self, nbytes: int, pool: Any, stream: int) -> Any:
        device = int(pool) - 0x900
        assert device == self.current
        if self.taken[device] + nbytes > self.nbytes:
            raise _Refused(self.real.CUresult.CUDA_ERROR_OUT_OF_MEMORY)
        self.taken[device] += nbytes
        self.pooled[device] = max(0, self.pooled[device] - nbytes)
        address = self._new_memory(nbytes, device)
        # what uses it elsewhere must follow the allocation
        self._act(stream, "allocation", [Access(address, address + nbytes, True)], lambda: None)
        return address

    def cuMemFreeAsync(self, address: int, stream: int) -> None:
        memory = self._memories[int(address)]
        self.taken[memory.device] -= memory.buffer.nbytes
        self.pooled[memory.device] += memory.buffer.nbytes
        access = Access(memory.first, memory.end, True)
        self._act(stream, "release", [access], lambda: memory.buffer.fill(0xFF))

    def cuMemHostAlloc(self, nbytes: int, flags: int) -> int:
        return self._new_memory(nbytes, -1)

    def cuMemFreeHost(self, address: int) -> None:
        pass  # the driver waits for what is under way; here it stays until all is over

    def cuMemHostRegister(self, address: int, nbytes: int, flags: int) -> None:
        self._locked.append((address, address + nbytes))

    def cuMemHostUnregister(self, address: int) -> None:
        self._locked = [each for each in self._locked if each[0] != address]

    def lock_pages(self, array: np.ndarray) -> np.ndarray:
        """Let the pages of an array be locked."""
        base = array if array.base is None else array.base
        self._locked.append((base.ctypes.data, base.ctypes.data + base.nbytes))
        return array

    def cuPointerGetAttribute(self, attribute: Any, address: int) -> Any:
        memory = self._memory_of(address)
        if memory is not None or any(first <= address < end for first, end in self._locked):
            return 2 if memory is not None and memory.device >= 0 else 1
        raise _Refused(self.real.CUresult.CUDA_ERROR_INVALID_VALUE)

    def add_array(self, array: np.ndarray, device: int) -> int:
        """Device memory that holds `array`, its elements in the order of memory; the address."""
        flat = array.ravel(order="K")
        address = self._new_memory(flat.nbytes, device)
        ctypes.memmove(address, flat.ctypes.data, flat.nbytes)
        return address

    # ------------------------------------------------------------------------------------------- copies

    def cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self._copy("upload", (int(target), 0), (int(source), 0), nbytes, 1, stream, (-1, self.current))

    def cuMemcpyDtoHAsync(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self._copy("download", (int(target), 0), (int(source), 0), nbytes, 1, stream, (self.current, -1))

    def cuMemcpyPeerAsync(
        self, target: int, there: Any, source: int, here: Any, nbytes: int, stream: int
    ) -> None:
        way = int(here) - 0x100, int(there) - 0x100
        self._copy("peer copy", (int(target), 0), (int(source), 0), nbytes, 1, stream, way)

    def cuMemcpy2DAsync(self, copy: Any, stream: int) -> None:
        host = self.real.CUmemorytype.CU_MEMORYTYPE_HOST
        is_up = copy.srcMemoryType == host
        source = copy.srcHost if is_up else int(copy.srcDevice)
        target = int(copy.dstDevice) if is_up else copy.dstHost
        way = (-1, self.current) if is_up else (self.current, -1)
        blocks = (target, copy.dstPitch), (source, copy.srcPitch)
        name = "upload of lines" if is_up else "download of lines"
        self._copy(name, *blocks, copy.WidthInBytes, copy.Height, stream, way)

    def cuMemcpy3DPeerAsync(self, copy: Any, stream: int) -> None:
        way = int(copy.srcContext) - 0x100, int(copy.dstContext) - 0x100
        blocks = (int(copy.dstDevice), copy.dstPitch), (int(copy.srcDevice), copy.srcPitch)
        self._copy("peer copy of lines", *blocks, copy.WidthInBytes, copy.Height, stream, way)

    def cuMemsetD8Async(self, address: int, value: int, nbytes: int, stream: int) -> None:
        access = Access(int(address), int(address) + nbytes, True)
        self._act(stream, "fill", [access], lambda: ctypes.memset(int(address), value, nbytes))

    def cuMemsetD2D8Async(
        self, address: int, pitch: int, value: int, width: int, lines: int, stream: int
    ) -> None:
        firsts = [int(address) + line * pitch for line in range(lines)]

        def fill() -> None:
            for first in firsts:
                ctypes.memset(first, value, width)

        self._act(stream, "fill", [Access(first, first + width, True) for first in firsts], fill)

    def _copy(
        self,
        name: str,
        target: tuple[int, int],
        source: tuple[int, int],
        width: int,
        lines: int,
        stream: int,
        way: tuple[int, int],
    ) -> None:
        pairs = [(target[0] + i * target[1], source[0] + i * source[1]) for i in range(lines)]
        accesses = [Access(first, first + width, True) for first, _ in pairs]
        accesses += [Access(first, first + width, False) for _, first in pairs]
        is_locked = all(
            self._is_there(access[0], device)
            for access, device in zip((accesses[0], accesses[lines]), way[::-1], strict=True)
        )
        self.copied[way] += width * lines

        def act() -> None:
            for there, here in pairs:
                ctypes.memmove(there, here, width)

        self._act(stream, name, accesses, act)
        if not is_locked:
            self.pageable += 1
            self.cuStreamSynchronize(stream)

    def _is_there(self, address: int, device: int) -> bool:
        """Whether pages of the host are locked; memory of a device must be."""
        memory = self._memory_of(address)
        if device < 0:
            return memory is not None or any(first <= address < end for first, end in self._locked)
        assert memory is not None and memory.device == device, f"not memory of device {device}"
        return True


class _Refused(Exception):
    """A status that the driver gives."""
