"""A CUDA driver that is none: several devices, a stack of contexts for each thread, streams and memory.

It stands in for the functions of cuda.bindings.driver. Like the driver it refuses a launch outside of the
function's context, and a stream of another one; device memory is host memory, and kernels compute nothing.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import fake_device
import numpy as np
import pytest

from pyblasgpu.frontend import backend_status as host_backend
from pyblasgpu.frontend.arrays import libraries
from pyblasgpu.frontend.calls import call_cache
from pyblasgpu.gpu import backend, context, device, launch, memory, workspace
from pyblasgpu.gpu.driver import DriverState
from pyblasgpu.kernels import compile_ahead

DEVICES = 2
COMPILED = SimpleNamespace(cubin=b"", entry="k", archive=None)
WITHOUT_VALUE = ("cuInit", "cuLaunchKernelEx", "cuMemsetD8Async")
ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": "max_threads_per_block",
    "MAX_THREADS_PER_MULTIPROCESSOR": "max_threads_per_sm",
    "MAX_BLOCKS_PER_MULTIPROCESSOR": "max_blocks_per_sm",
    "MAX_REGISTERS_PER_MULTIPROCESSOR": "registers_per_sm",
    "MAX_REGISTERS_PER_BLOCK": "registers_per_block",
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": "shared_per_sm",
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": "shared_per_block",
    "RESERVED_SHARED_MEMORY_PER_BLOCK": "shared_reserved",
    "MULTIPROCESSOR_COUNT": "sm_count",
    "WARP_SIZE": "warp_size",
    "L2_CACHE_SIZE": "l2_bytes",
}


class Driver:
    """The stand-in.

    Attributes
    ----------
    cards : list of Device
        What the devices are; the ordinal is the index.
    stack : list of int
        The devices whose contexts this thread has made current, the last one being so.
    streams : dict
        Handle of each stream -> its device.
    launches : list of (int, int)
        Device and stream of every launch, of graphs too, but for those that are captured.
    made : Counter
        How often each function of the driver was called.
    refused : dict
        Name of a function -> the error that its next calls give.
    """

    def __init__(self, monkeypatch, card: str = "h100"):
        self.real: Any = pytest.importorskip("cuda.bindings.driver")
        self.result = self.real.CUresult
        self.cards = [device.known(card)] * DEVICES
        self._local = threading.local()
        self.streams: dict[int, int] = {0x5000 + ordinal: ordinal for ordinal in range(DEVICES)}
        self.launches: list[tuple[int, int]] = []
        self.made: Counter[str] = Counter()
        self.refused: dict[str, Any] = {}
        self.pools: dict[int, int] = {}
        self.held: dict[int, tuple[np.ndarray, int, bool]] = {}
        self.functions: dict[int, int] = {}
        self.graphs: dict[int, int] = {}
        self.capturing: set[int] = set()
        for name in dir(self):
            if name.startswith("cu") and not name.startswith(("current", "cuda")):
                monkeypatch.setattr(self.real, name, self._counted(name))
        runtime = pytest.importorskip("cuda.bindings.runtime")
        monkeypatch.setattr(runtime, "cudaPointerGetAttributes", self.cudaPointerGetAttributes)
        self._forget(monkeypatch)

    @staticmethod
    def _forget(monkeypatch) -> None:
        """Nothing of another driver is remembered."""
        monkeypatch.setattr(DriverState, "driver", None)
        monkeypatch.setattr(DriverState, "reason", "")
        monkeypatch.setattr(context, "primary_contexts", {})
        monkeypatch.setattr(context, "get_current_context", None)
        monkeypatch.setattr(launch, "loaded_kernels", {})
        monkeypatch.setattr(compile_ahead, "ensure_compiled", lambda sources, ordinal: None)
        monkeypatch.setattr(launch, "compile_source", lambda *_: COMPILED)
        monkeypatch.setattr(workspace, "free_lists", {})
        monkeypatch.setattr("pyblasgpu.routines.launch_list.cache", {})
        monkeypatch.setattr(backend, "require", lambda: None)
        forget()

    def _counted(self, name: str):
        function = getattr(self, name)

        def call(*arguments):
            self.made[name] += 1
            error = self.refused.get(name, self.result.CUDA_SUCCESS)
            if error:
                return (error,) if name in WITHOUT_VALUE else (error, None)
            value = function(*arguments)
            return value if isinstance(value, tuple) else (self.result.CUDA_SUCCESS, value)

        return call

    # ------------------------------------------------------------------------------------------- contexts

    @property
    def stack(self) -> list[int]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        return self._local.stack

    @property
    def current(self) -> int | None:
        """The device whose context is current on this thread."""
        return self.stack[-1] if self.stack else None

    def begin(self, ordinal: int | None) -> None:
        """Make the context of a device the only one of this thread, or none."""
        self.stack[:] = [] if ordinal is None else [ordinal]

    def _context(self, ordinal: int | None):
        return self.real.CUcontext(0 if ordinal is None else 0x100 + ordinal)

    def cuInit(self, flags):
        return (self.result.CUDA_SUCCESS,)

    def cuDriverGetVersion(self):
        return 13000

    def cuCtxGetCurrent(self):
        return self._context(self.current)

    def cuCtxSetCurrent(self, handle):
        if self.stack:
            self.stack.pop()
        if int(handle):
            self.stack.append(int(handle) - 0x100)
        return (self.result.CUDA_SUCCESS,)

    def cuCtxPushCurrent(self, handle):
        self.stack.append(int(handle) - 0x100)
        return (self.result.CUDA_SUCCESS,)

    def cuCtxPopCurrent(self):
        return self._context(self.stack.pop())

    def cuCtxGetDevice(self):
        return self.current

    def cuDevicePrimaryCtxRetain(self, ordinal):
        return self._context(ordinal)

    def cuStreamGetCtx(self, stream):
        return self._context(self.streams[int(stream)])

    # -------------------------------------------------------------------------------------------- devices

    def cuDeviceGetCount(self):
        return len(self.cards)

    def cuDeviceGet(self, ordinal):
        return ordinal

    def cuDeviceGetName(self, size, ordinal):
        return self.cards[ordinal].name.encode().ljust(size, b"\0")

    def cuDeviceGetAttribute(self, attribute, ordinal):
        card, name = self.cards[ordinal], attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        if name.startswith("COMPUTE_CAPABILITY"):
            return card.cc[name.endswith("MINOR")]
        return getattr(card, ATTRIBUTES[name]) if name in ATTRIBUTES else 1

    # --------------------------------------------------------------------------------------------- memory

    def _stream_device(self, stream) -> int | None:
        return self.current if int(stream) <= context.THREAD_STREAM else self.streams[int(stream)]

    def _on(self, ordinal: int, stream) -> tuple:
        """What the driver says to work of a device on a stream."""
        if self.current is None:
            return (self.result.CUDA_ERROR_INVALID_CONTEXT,)
        if self._stream_device(stream) != ordinal or self.current != ordinal:
            return (self.result.CUDA_ERROR_INVALID_HANDLE,)
        return (self.result.CUDA_SUCCESS,)

    def cuMemGetInfo(self):
        return 0, 64 << 30, 80 << 30

    def cuMemPoolCreate(self, properties):
        self.pools[0x900 + properties.location.id] = properties.location.id
        return self.real.CUmemoryPool(0x900 + properties.location.id)

    def cuMemPoolSetAttribute(self, *_):
        return (self.result.CUDA_SUCCESS,)

    def cuMemPoolTrimTo(self, pool, kept):
        return self._on(self.pools[int(pool)], 0)

    def cuMemAllocFromPoolAsync(self, nbytes, pool, stream):
        ordinal = self.pools[int(pool)]
        (error,) = self._on(ordinal, stream)
        return (error, None) if error else self._allocated(nbytes, ordinal, pooled=True)

    def cuMemAlloc(self, nbytes):
        return self._allocated(nbytes, self.current)

    def _allocated(self, nbytes, ordinal, pooled=False):
        buffer = fake_device.aligned((nbytes,), np.uint8, 0)
        self.held[buffer.ctypes.data] = buffer, ordinal, pooled
        return buffer.ctypes.data

    def cuPointerGetAttribute(self, attribute, pointer):
        if self.current is None:
            return (self.result.CUDA_ERROR_INVALID_CONTEXT, None)
        if pointer not in self.held:
            return (self.result.CUDA_ERROR_INVALID_VALUE, None)
        _, ordinal, pooled = self.held[pointer]
        assert attribute.name == "CU_POINTER_ATTRIBUTE_CONTEXT"
        return self._context(None if pooled else ordinal)  # memory of a pool belongs to no context

    def cudaPointerGetAttributes(self, pointer):
        """Fail: the function is the runtime's, not the driver's."""
        return self.result.CUDA_SUCCESS, SimpleNamespace(device=self.held[pointer][1])

    def cuMemFree(self, address):
        if self.current is None:
            return (self.result.CUDA_ERROR_INVALID_CONTEXT,)
        del self.held[address]
        return (self.result.CUDA_SUCCESS,)

    def cuMemFreeAsync(self, address, stream):
        _, ordinal, _ = self.held.pop(address)
        return self._on(ordinal, stream)

    def cuMemcpyHtoDAsync(self, target, source, nbytes, stream):
        ctypes.memmove(int(target), int(source), nbytes)
        return self._on(self.current, stream)

    cuMemcpyDtoHAsync = cuMemcpyDtoDAsync = cuMemcpyHtoDAsync

    def cuMemsetD8Async(self, address, value, nbytes, stream):
        ctypes.memset(int(address), value, nbytes)
        return self._on(self.current, stream)

    def cuStreamSynchronize(self, stream):
        return self._on(self.current, stream)

    # ------------------------------------------------------------------------------------------- launches

    def cuLibraryLoadData(self, *_):
        return self.real.CUlibrary(1)

    def cuLibraryGetKernel(self, *_):
        return self.real.CUkernel(1)

    def cuKernelGetFunction(self, kernel):
        if self.current is None:
            return (self.result.CUDA_ERROR_INVALID_CONTEXT, None)
        handle = 0x7000 + len(self.functions)
        self.functions[handle] = self.current
        return self.real.CUfunction(handle)

    def cuFuncSetAttribute(self, *_):
        return (self.result.CUDA_SUCCESS,)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, *_):
        return 1

    def cuLaunchKernelEx(self, config, function, arguments, extra):
        return self._launched(self.functions[int(function)], config.hStream)

    def _launched(self, ordinal, stream):
        (error,) = self._on(ordinal, stream)
        if not error and int(stream) not in self.capturing:
            self.launches.append((ordinal, int(stream)))
        return (error,)

    def cuStreamCreate(self, flags):
        handle = 0x6000 + len(self.streams)
        self.streams[handle] = self.current
        return self.real.CUstream(handle)

    def cuStreamDestroy(self, stream):
        del self.streams[int(stream)]
        return (self.result.CUDA_SUCCESS,)

    def cuStreamBeginCapture(self, stream, mode):
        self.capturing.add(int(stream))
        return self._on(self.current, stream)

    def cuStreamEndCapture(self, stream):
        self.capturing.remove(int(stream))
        return "graph"

    def cuStreamIsCapturing(self, stream):
        (error,) = self._on(self._stream_device(stream), stream)
        assert not error
        return self.real.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE

    def cuGraphInstantiate(self, graph, flags):
        handle = 0x8000 + len(self.graphs)
        self.graphs[handle] = self.current
        return handle

    def cuGraphDestroy(self, graph):
        return (self.result.CUDA_SUCCESS,)

    def cuGraphExecDestroy(self, graph):
        if self.current is None:
            return (self.result.CUDA_ERROR_INVALID_CONTEXT,)
        self.graphs.pop(graph, None)  # of a test before this one, perhaps
        return (self.result.CUDA_SUCCESS,)

    def cuGraphLaunch(self, graph, stream):
        return self._launched(self.graphs[graph], stream)

    # --------------------------------------------------------------------------------------- and the rest

    def cuEventCreate(self, flags):
        return self.real.CUevent(0xE00 + self.current)

    def cuEventDestroy(self, event):
        return (self.result.CUDA_SUCCESS,)

    def cuEventRecord(self, event, stream):
        return self._on(int(event) - 0xE00, stream)

    def cuEventSynchronize(self, event):
        return (self.result.CUDA_SUCCESS,)

    def cuEventElapsedTime(self, start, stop):
        return 1.0

    def cuGetErrorString(self, error):
        return (self.result.CUDA_SUCCESS, error.name.lower().encode())


class _Device:
    """CuPy's; on leaving it does as the CUDA runtime does: it sets a device, where none was current too."""

    driver: Driver

    def __init__(self, ordinal):
        self.ordinal = ordinal

    def __enter__(self):
        self.before = self.driver.current or 0
        self.driver.begin(self.ordinal)

    def __exit__(self, *_):
        self.driver.begin(self.before)


def forget() -> None:
    """Nothing is kept that a driver has told."""
    for cached in (
        device.described_by_driver,
        memory.memory_pool,
        host_backend.why_no_device,
        libraries.module,
    ):
        cached.cache_clear()
    call_cache.clear()


def install(monkeypatch, card: str = "h100") -> Driver:
    """Put the stand-in in place, and a CuPy whose arrays are on its devices."""
    driver, cupy = Driver(monkeypatch, card), fake_device.cupy
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(cupy.cuda, "Device", type("Device", (_Device,), {"driver": driver}))
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda ordinal: SimpleNamespace(ptr=0))
    monkeypatch.setattr(
        cupy,
        "empty",
        lambda shape, dtype: fake_device.Array(fake_device.aligned(shape, dtype), driver.current),
    )
    return driver
