"""Launch kernels with raw pointers: a packed argument block and one driver call."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from functools import lru_cache

from . import backend, memory
from .compile import KernelSource, compile_source

__all__ = ["Kernel", "kernel"]

_STATIC_LIMIT = 48 * 1024  # bytes of dynamic shared memory that need no opt-in
_FORMAT = {"p": "Q", "i": "i", "q": "q", "float32": "f", "float64": "d"}

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

    def launch(
        self,
        grid: tuple[int, int, int],
        stream: int,
        pointers: Sequence[int],
        integers: tuple[int, ...],
        reals: tuple[float, ...],
    ) -> None:
        """Enqueue the kernel; addresses, integers and reals stand in the order of `source.parameters`."""
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
        self._run = driver.cuLaunchKernel
        self._threads = (source.threads, 1, 1, source.shared_bytes)
        self._arguments = _Arguments(source.parameters, source.real)
        self._blocks: list[_Block] = []  # not in use; a thread that finds none makes one

    def launch(self, grid, stream, pointers, integers, reals):
        memory.use(self.device)
        arguments = self._arguments
        try:
            block = self._blocks.pop()
        except IndexError:
            block = _Block(arguments)
        arguments.pack_pointers(block.values, 0, *pointers)
        # of a repeated launch these are the same objects
        if block.integers is not integers:
            arguments.pack_integers(block.values, arguments.integers_at, *integers)
            block.integers = integers
        if block.reals is not reals:
            arguments.pack_reals(block.values, arguments.reals_at, *reals)
            block.reals = reals
        # the driver copies the arguments during the call
        (error,) = self._run(self._function, *grid, *self._threads, _handle(stream), block.address, 0)
        self._blocks.append(block)
        if error:
            memory.check((error,), f"launch of {self.source.name}")


class _Arguments:
    """How the arguments of a kernel lie in memory: pointers, integers, reals, each part packed by itself."""

    def __init__(self, parameters: str, real: str):
        parts = re.fullmatch("(p*)([iq]*)(r*)", parameters)
        assert parts, "parameters are pointers, integers, reals, in this order"
        codes = "".join(_FORMAT.get(code, _FORMAT[real]) for code in parameters)
        self.offsets = _offsets("@" + codes)
        self.size = struct.calcsize("@" + codes)
        first, second = parts.end(1), parts.end(2)
        # each part begins at a place that its members' alignment divides, so it is packed as by itself
        self.pack_pointers = struct.Struct("@" + codes[:first]).pack_into
        self.pack_integers = struct.Struct("@" + codes[first:second]).pack_into
        self.pack_reals = struct.Struct("@" + codes[second:]).pack_into
        places = [*self.offsets, self.size]
        self.integers_at, self.reals_at = places[first], places[second]


class _Block:
    """Memory for the arguments of one launch, and what it holds now."""

    __slots__ = ("_pointers", "address", "integers", "reals", "values")

    integers: tuple[int, ...] | None
    reals: tuple[float, ...] | None

    def __init__(self, arguments: _Arguments):
        self.values = ctypes.create_string_buffer(arguments.size)
        self.integers = self.reals = None
        base = ctypes.addressof(self.values)
        self._pointers = (ctypes.c_void_p * len(arguments.offsets))(
            *(base + place for place in arguments.offsets)
        )
        self.address = ctypes.addressof(self._pointers)


@lru_cache(maxsize=1024)
def _handle(stream: int):
    """The driver's object for the address of a stream; making one costs a tenth of a launch."""
    from cuda.bindings import driver

    return driver.CUstream(stream)


class _Simulated(Kernel):
    def __init__(self, source: KernelSource):
        super().__init__(source)
        self._function = source.build()

    def launch(self, grid, stream, pointers, integers, reals):
        from . import simulator

        source = self.source
        resolved = tuple(
            _simulated_argument(code, value, source.real)
            for code, value in zip(source.parameters, (*pointers, *integers, *reals), strict=True)
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
