"""Launch kernels with raw pointers: a packed argument block and one driver call; or many kernels by one."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from math import inf
from typing import Any
from weakref import finalize

from ..errors import PyblasgpuError
from . import backend, context
from .build.archive import Archive
from .build.compile import WHOLE_ROWS, Compiled, KernelSource, compile_source
from .context import LEGACY_STREAM, current_context
from .driver import check, load

__all__ = ["EAGER", "Graph", "Kernel", "is_captured", "kernel"]

#: Compute capability and driver that have programmatic dependent launch (PDL), in a graph too.
PDL_CC, PDL_DRIVER = (9, 0), 12030
PDL_WAVES = 3  # of blocks, from which on it does not matter where the first ones start
EAGER = 2  # as `pdl` of a launch: with few blocks too
USE_NODE_PRIORITY = 8  # the driver's CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
_STATIC_LIMIT = 48 * 1024  # bytes of dynamic shared memory that need no opt-in
#: The driver's errors for machine code that is newer than itself, or of another architecture.
_REFUSALS = ("CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION")
_FORMAT = {"p": "Q", "w": "Q", "i": "i", "q": "q", "float32": "f", "float64": "d"}

#: Kernels that `kernel` has loaded in this process.
loaded_kernels: dict[tuple[KernelSource, int], Kernel] = {}


def kernel(source: KernelSource, device: int) -> Kernel:
    """The loaded kernel of `source` on `device`, made once.

    Raises
    ------
    CompileError, DeviceError
        When it cannot be compiled or loaded.
    """
    loaded = loaded_kernels.get((source, device))
    if loaded is None:
        loaded = loaded_kernels[source, device] = (
            _Simulated(source) if backend.SIMULATED else LoadedKernel(source, device)
        )
    return loaded


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
        pdl: int = False,
    ) -> None:
        """Enqueue the kernel; addresses, integers and reals are in the order of `source.parameters`.

        The context of its device is current (`context.make_current`), as it is for all launches of a call.
        With `pdl` (programmatic dependent launch) its blocks may start while the launch before it still runs;
        they wait for it in `ptx.grid_dependency_wait`. `EAGER` launches do with few blocks too, as those of a
        chain where each leaves most of the device idle.
        """
        raise NotImplementedError


class LoadedKernel(Kernel):
    """A kernel whose machine code is loaded into the primary context of a device."""

    def __init__(self, source: KernelSource, device: int):
        from .device import current

        super().__init__(source)
        facts = current(device)
        self.compiled = compile_source(source, facts.cc)
        with current_context(device):
            self._library, self._function = self._load_code(facts.cc)
            has_pdl = _supports_pdl(facts.cc)
            self._pdl_from_blocks = self._fewest_blocks_for_pdl(facts.sm_count) if has_pdl else inf
            self._eager_up_to_blocks = facts.sm_count if has_pdl else 0
        self.driver_launch = load().cuLaunchKernelEx
        self._arguments = ArgumentLayout(source.parameters, source.real)
        self.free_blocks: list[ArgumentBlock] = []  # not in use; a thread that finds none makes one

    def launch(self, grid, stream, pointers, integers, reals, pdl=False):
        arguments = self._arguments
        try:
            block = self.free_blocks.pop()
        except IndexError:
            block = ArgumentBlock(arguments, self._config())
        arguments.pack_pointers(block.values, 0, *pointers)
        # of a repeated launch these are the same objects
        if block.integers is not integers:
            arguments.pack_integers(block.values, arguments.integers_at, *integers)
            block.integers = integers
        if block.reals is not reals:
            arguments.pack_reals(block.values, arguments.reals_at, *reals)
            block.reals = reals
        if block.grid is not grid or block.stream != stream or block.pdl is not pdl:
            if self.source.cluster == WHOLE_ROWS and (block.grid is None or block.grid[0] != grid[0]):
                block.config.attrs = _attribute_list(False, grid[0])
            block.aim(grid, stream, pdl, attributes=self._attributes(grid, pdl))
        # the driver copies the arguments during the call
        (error,) = self.driver_launch(block.config, self._function, block.address, 0)
        self.free_blocks.append(block)
        if error:
            check((error,), f"launch of {self.source.name}")

    def _attributes(self, grid: tuple[int, int, int], pdl: int) -> int:
        """Return the number of a launch's attributes: cooperative or of clusters, where need be; PDL."""
        x, y, z = grid
        if self.source.cooperative:
            return int(x > 1)
        clusters = self.source.cluster > 1 or (self.source.cluster == WHOLE_ROWS and x > 1)
        starts_early = x * y * z >= self._pdl_from_blocks or x * y * z <= self._eager_up_to_blocks * (
            pdl == EAGER
        )
        return int(clusters) + int(bool(pdl) and starts_early)

    def _load_code(self, cc: tuple[int, int]) -> tuple[Any, Any]:
        """The library, which owns the code, and the kernel's function in the current context.

        Given the kernel itself, the driver would look the function up at every launch.
        """
        driver, shared = load(), self.source.shared_bytes
        loaded = _load_library(self.compiled)
        while self.compiled.archive is not None and loaded[0].name in _REFUSALS:
            self.compiled.archive.refuse(_why_refused(self.compiled.archive))
            self.compiled = compile_source(self.source, cc)
            loaded = _load_library(self.compiled)
        library, compiled = check(loaded, "cuLibraryLoadData"), self.compiled
        handle = check(driver.cuLibraryGetKernel(library, compiled.entry.encode()), "cuLibraryGetKernel")
        function = check(driver.cuKernelGetFunction(handle), "cuKernelGetFunction")
        if shared > _STATIC_LIMIT:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check(driver.cuFuncSetAttribute(function, attribute, shared), "cuFuncSetAttribute")
        if self.source.cluster == WHOLE_ROWS:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            check(driver.cuFuncSetAttribute(function, attribute, 1), "cuFuncSetAttribute")
        return library, function

    def _fewest_blocks_for_pdl(self, multiprocessors: int) -> int:
        """The smallest grid, in blocks, that is launched with PDL.

        Blocks that start early go where there is room, which is where blocks of the launch before have ended.
        There they would crowd, while other multiprocessors are idle later. They may where only one fits at a
        time, or where they load all multiprocessors alike.
        """
        from cuda.bindings import driver

        count = check(
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                self._function, self.source.threads, self.source.shared_bytes
            ),
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        )
        return 0 if count == 1 else PDL_WAVES * count * multiprocessors

    def _config(self):
        """The driver's description of a launch, but for its grid and stream."""
        from cuda.bindings import driver

        config = driver.CUlaunchConfig()
        config.blockDimX, config.blockDimY, config.blockDimZ = self.source.threads, 1, 1
        config.sharedMemBytes = self.source.shared_bytes
        config.attrs = _attribute_list(self.source.cooperative, max(self.source.cluster, 1))
        return config


@lru_cache(maxsize=64)
def _attribute_list(cooperative: bool, cluster: int) -> list[Any]:
    """The attributes that a launch may have, of which the first ones are its; `cluster`: blocks of one."""
    from cuda.bindings import driver

    own, pdl = driver.CUlaunchAttribute(), driver.CUlaunchAttribute()
    names = driver.CUlaunchAttributeID
    pdl.id = names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    pdl.value.programmaticStreamSerializationAllowed = 1
    if cooperative:
        own.id = names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        own.value.cooperative = 1
        return [own]
    if cluster == 1:
        return [pdl]
    own.id = names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    dims = own.value.clusterDim
    dims.x, dims.y, dims.z = cluster, 1, 1
    return [own, pdl]


def _load_library(compiled: Compiled) -> tuple[Any, Any]:
    """Load a cubin; return the driver's status and the library."""
    return load().cuLibraryLoadData(compiled.cubin, [], [], 0, [], [], 0)


def _why_refused(archive: Archive) -> str:
    version = check(load().cuDriverGetVersion(), "cuDriverGetVersion")
    linker = archive.toolchain.get("nvidia-nvjitlink", "an unknown version")
    return (
        f"holds kernels linked by nvJitLink {linker}, which the driver of CUDA {version // 1000}."
        f"{version % 1000 // 10} refuses,"
    )


def _supports_pdl(cc: tuple[int, int]) -> bool:
    from cuda.bindings import driver

    version = check(driver.cuDriverGetVersion(), "cuDriverGetVersion")
    return cc >= PDL_CC and version >= PDL_DRIVER


class ArgumentLayout:
    """Layout of a kernel's arguments in memory: pointers, integers, reals, each part packed by itself."""

    def __init__(self, parameters: str, real: str):
        parts = re.fullmatch("([pw]*)([iq]*)(r*)", parameters)
        assert parts, "parameters are pointers, integers, reals, in this order"
        codes = "".join(_FORMAT.get(code, _FORMAT[real]) for code in parameters)
        self.offsets = _offsets("@" + codes)
        self.size = struct.calcsize("@" + codes)
        first, second = parts.end(1), parts.end(2)
        # each part begins at an offset that its members' alignment divides, so it is packed as by itself
        self.pack_pointers = struct.Struct("@" + codes[:first]).pack_into
        self.pack_integers = struct.Struct("@" + codes[first:second]).pack_into
        self.pack_reals = struct.Struct("@" + codes[second:]).pack_into
        bounds = [*self.offsets, self.size]
        self.integers_at, self.reals_at = bounds[first], bounds[second]


class ArgumentBlock:
    """Memory for the arguments of one launch and its `config`, and what they hold now."""

    __slots__ = ("_pointers", "address", "config", "grid", "integers", "pdl", "reals", "stream", "values")

    integers: tuple[int, ...] | None
    reals: tuple[float, ...] | None
    grid: tuple[int, int, int] | None
    stream: int | None
    pdl: int | None

    def __init__(self, arguments: ArgumentLayout, config):
        self.config = config
        self.values = ctypes.create_string_buffer(arguments.size)
        self.integers = self.reals = self.grid = self.stream = self.pdl = None
        base = ctypes.addressof(self.values)
        self._pointers = (ctypes.c_void_p * len(arguments.offsets))(
            *(base + start for start in arguments.offsets)
        )
        self.address = ctypes.addressof(self._pointers)

    def aim(self, grid: tuple[int, int, int], stream: int, pdl: int, attributes: int) -> None:
        """Make the launch one of `grid` on `stream`, with the first `attributes` attributes."""
        config = self.config
        config.gridDimX, config.gridDimY, config.gridDimZ = self.grid = grid
        config.hStream, config.numAttrs = _handle(stream), attributes
        self.stream, self.pdl = stream, pdl


class Graph:
    """Launches that the driver enqueues as one, for less than a single launch costs the host.

    Parameters
    ----------
    enqueue : callable
        ``enqueue(stream)`` enqueues the launches, whose addresses and numbers stay; nothing runs then.
    device : int
    by_priority : bool
        Whether each launch has the priority of the stream that `enqueue` gives it to. Otherwise all have that
        of the stream of the graph.
    """

    def __init__(self, enqueue: Callable[[int], None], device: int, by_priority: bool = False):
        driver = load()
        self.device = device
        with current_context(device):
            graph = _captured(enqueue)
            flags = USE_NODE_PRIORITY if by_priority else 0
            runnable = check(driver.cuGraphInstantiate(graph, flags), "cuGraphInstantiate")
            check(driver.cuGraphDestroy(graph), "cuGraphDestroy")
        finalize(self, _destroy, runnable, device).atexit = False
        self.driver_launch = driver.cuGraphLaunch
        self._free: list[Any] = [runnable]  # empty while a thread is at it

    def launch(self, stream: int) -> bool:
        """Enqueue the launches on `stream`.

        False, and nothing done, while another thread does so, or where the stream itself is being captured:
        what is captured there should be the launches.
        """
        before = context.make_current(self.device)
        try:
            return self._launch(stream)
        finally:
            if before is not None:
                context.restore(before)

    def _launch(self, stream: int) -> bool:
        if is_captured(stream):
            return False
        try:
            runnable = self._free.pop()
        except IndexError:
            return False
        (error,) = self.driver_launch(runnable, _handle(stream))
        self._free.append(runnable)
        if error:
            check((error,), "cuGraphLaunch")
        return True


def _destroy(runnable: Any, device: int) -> None:
    """Give up a graph; a launch that is under way goes on without it."""
    # in a forked process it is not ours, on a device that is lost nobody's
    with suppress(PyblasgpuError), current_context(device):
        load().cuGraphExecDestroy(runnable)


def _captured(enqueue: Callable[[int], None]):
    """The driver's graph of what `enqueue` puts on a stream, made for it in the current context."""
    from cuda.bindings import driver

    apart = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
    stream = check(driver.cuStreamCreate(apart), "cuStreamCreate")
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    try:
        check(driver.cuStreamBeginCapture(stream, mode), "cuStreamBeginCapture")
        try:
            enqueue(int(stream))
        finally:
            ended = driver.cuStreamEndCapture(stream)
    finally:
        driver.cuStreamDestroy(stream)
    return check(ended, "cuStreamEndCapture")


def is_captured(stream: int) -> bool:
    """Whether what is enqueued on a stream becomes part of a graph, to be run later and often."""
    if stream <= LEGACY_STREAM:
        return False  # nor can it be
    driver = load()
    status = driver.cuStreamIsCapturing(_handle(stream))[1]
    return status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


@lru_cache(maxsize=1024)
def _handle(stream: int):
    """The driver's object for the address of a stream; making one costs a tenth of a launch."""
    from cuda.bindings import driver

    return driver.CUstream(stream)


class _Simulated(Kernel):
    def __init__(self, source: KernelSource):
        super().__init__(source)
        self._function = source.build()

    def launch(self, grid, stream, pointers, integers, reals, pdl=False):
        from .simulator import intrinsics as simulator

        source = self.source
        resolved = tuple(
            _simulated_argument(code, value, source.real)
            for code, value in zip(source.parameters, (*pointers, *integers, *reals), strict=True)
        )
        block, shared = (source.threads, 1, 1), source.shared_bytes
        simulator.launch(self._function, grid, block, shared, resolved, cluster=source.cluster or grid[0])


def _simulated_argument(code: str, value, real: str):
    from .simulator import intrinsics as simulator

    if code in "pw":
        return simulator.resolve(value, real if code == "p" else "int32")
    return _simulated_types(real)[code](value)


def _simulated_types(real: str) -> dict:
    """Return the types of a kernel's numbers: an integer that does not fit raises."""
    from .simulator.intrinsics import REALS, types

    return {"i": types.int32, "q": types.int64, "r": REALS[real]}


def _offsets(text: str) -> list[int]:
    """Byte offsets of the members of a struct format, native alignment."""
    return [struct.calcsize(text[: 1 + i]) - struct.calcsize("@" + text[i]) for i in range(1, len(text))]
