"""Launch kernels with raw pointers: a packed argument block and one driver call."""

from __future__ import annotations

import ctypes
import struct
import threading
from functools import lru_cache

from . import backend, memory
from .compile import KernelSource, compile_source

__all__ = ["Kernel", "kernel"]

_STATIC_LIMIT = 48 * 1024  # bytes of dynamic shared memory that need no opt-in
_FORMAT = {"p": "Q", "i": "i", "q": "q"}

_kernels: dict[tuple[KernelSource, int], Kernel] = {}


def kernel(source: KernelSource, device: int) -> Kernel:
    """The loaded kernel of `source` on `device`, made once.

    Raises
    ------
    CompileError, DeviceError
        When it cannot be compiled or loaded.
    """
    found = _kernels.get((source, device))
    if found is None:
        found = _kernels[source, device] = (
            _Simulated(source) if backend.SIMULATED else _Loaded(source, device)
        )
    return found


class Kernel:
    """A kernel on a device.

    Attributes
    ----------
    source : KernelSource
    """

    def __init__(self, source: KernelSource):
        self.source = source

    def launch(self, grid: tuple[int, int, int], stream: int, arguments: tuple) -> None:
        """Enqueue the kernel; `arguments` are addresses, ints and floats as `source.parameters` says."""
        raise NotImplementedError


class _Loaded(Kernel):
    def __init__(self, source: KernelSource, device: int):
        from cuda.bindings import driver

        from .device import current

        super().__init__(source)
        compiled = compile_source(source, current(device).cc)
        memory.use(device)
        self.device = device
        library = memory.check(
            driver.cuLibraryLoadData(compiled.cubin, [], [], 0, [], [], 0), "cuLibraryLoadData"
        )
        handle = memory.check(
            driver.cuLibraryGetKernel(library, compiled.entry.encode()), "cuLibraryGetKernel"
        )
        if source.shared_bytes > _STATIC_LIMIT:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            memory.check(
                driver.cuKernelSetAttribute(attribute, source.shared_bytes, handle, device),
                "cuKernelSetAttribute",
            )
        self.compiled = compiled
        self._library = library  # owns the code
        self._function = driver.CUfunction(int(handle))
        self._launch = driver.cuLaunchKernel
        self._block = (source.threads, 1, 1, source.shared_bytes)
        # one block of memory holds the arguments; the driver copies them during the call
        real = "f" if source.real == "float32" else "d"
        self._packer = struct.Struct("@" + "".join(_FORMAT.get(code, real) for code in source.parameters))
        self._values = ctypes.create_string_buffer(self._packer.size)
        base = ctypes.addressof(self._values)
        self._pointers = (ctypes.c_void_p * len(source.parameters))(
            *(base + place for place in _offsets(self._packer.format))
        )
        self._extra = ctypes.addressof(self._pointers)
        self._lock = threading.Lock()

    def launch(self, grid, stream, arguments):
        memory.use(self.device)
        with self._lock:
            self._packer.pack_into(self._values, 0, *arguments)
            (error,) = self._launch(self._function, *grid, *self._block, _handle(stream), self._extra, 0)
        if error:
            memory.check((error,), f"launch of {self.source.name}")


@lru_cache(maxsize=1024)
def _handle(stream: int):
    """The driver's object for the address of a stream; making one costs a tenth of a launch."""
    from cuda.bindings import driver

    return driver.CUstream(stream)


class _Simulated(Kernel):
    def __init__(self, source: KernelSource):
        super().__init__(source)
        self._function = source.build()

    def launch(self, grid, stream, arguments):
        from . import simulator

        source = self.source
        resolved = tuple(
            _simulated_argument(code, value, source.real)
            for code, value in zip(source.parameters, arguments, strict=True)
        )
        simulator.launch(self._function, grid, (source.threads, 1, 1), source.shared_bytes, resolved)


def _simulated_argument(code: str, value, real: str):
    from . import simulator

    if code == "p":
        return simulator.resolve(value, real)
    return _simulated_types(real)[code](value)


def _simulated_types(real: str) -> dict:
    """What a number becomes on its way into a kernel: an integer that does not fit raises."""
    from .simulator import REALS, types

    return {"i": types.int32, "q": types.int64, "r": REALS[real]}


def _offsets(text: str) -> list[int]:
    """Byte offsets of the members of a struct format, native alignment."""
    return [struct.calcsize(text[: 1 + i]) - struct.calcsize("@" + text[i]) for i in range(1, len(text))]
