"""Streams of our own, and copies between the host, a device and another device that overlap with kernels.

The context of the stream's device is current in each of these functions.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple
from weakref import finalize

from ..errors import PyblasgpuError
from . import memory
from .context import current_context, primary_contexts, retain_primary_context
from .driver import check, load

__all__ = [
    "Block",
    "MemoryBytes",
    "Stream",
    "can_access",
    "clear_block",
    "copy_down",
    "copy_peer",
    "copy_up",
    "enabled_peers",
    "enable_peer_access",
    "memory_bytes",
]

_HIGH, _NORMAL = -1, 0  # priorities of streams


class Stream:
    """A stream of a device, held as long as this object.

    Attributes
    ----------
    device : int
    handle : int
    """

    def __init__(self, device: int, urgent: bool = False):
        self.device = device
        driver = load()
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        with current_context(device):
            made = driver.cuStreamCreateWithPriority(flags, _HIGH if urgent else _NORMAL)
            stream = check(made, "cuStreamCreateWithPriority")
        self.handle = int(stream)
        finalize(self, _destroy_stream, driver, stream).atexit = False


def _destroy_stream(driver: Any, stream: Any) -> None:
    """Give up a stream, which ends when its work is done; in a forked process it is not ours."""
    with suppress(PyblasgpuError):
        if load() is driver:
            driver.cuStreamDestroy(stream)


class Block:
    """A matrix in memory as copies take it: `lines` lines of `width` bytes, `pitch` bytes apart.

    Attributes
    ----------
    address, width, lines, pitch : int
    device : int
        -1 is the host.
    """

    __slots__ = ("address", "device", "lines", "pitch", "width")

    def __init__(self, address: int, width: int, lines: int, pitch: int, device: int):
        self.address, self.width, self.lines, self.pitch = address, width, lines, pitch
        self.device = device

    @property
    def is_whole(self) -> bool:
        """Whether the lines follow each other without a gap."""
        return self.lines == 1 or self.pitch == self.width

    def lines_from(self, first: int, count: int) -> Block:
        """`count` of its lines."""
        return Block(self.address + first * self.pitch, self.width, count, self.pitch, self.device)


def copy_up(target: Block, source: Block, stream: int) -> None:
    """Copy from page-locked memory of the host to a device."""
    _copy_whole_or_lines("cuMemcpyHtoDAsync", target, source, stream)


def copy_down(target: Block, source: Block, stream: int) -> None:
    """Copy from a device to page-locked memory of the host."""
    _copy_whole_or_lines("cuMemcpyDtoHAsync", target, source, stream)


def _copy_whole_or_lines(function: str, target: Block, source: Block, stream: int) -> None:
    if target.is_whole and source.is_whole:
        nbytes = source.width * source.lines
        check(getattr(load(), function)(target.address, source.address, nbytes, stream), function)
    else:
        _copy_lines(target, source, stream)


def _copy_lines(target: Block, source: Block, stream: int) -> None:
    driver = load()
    copy = driver.CUDA_MEMCPY2D()
    host, there = driver.CUmemorytype.CU_MEMORYTYPE_HOST, driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    if source.device < 0:
        copy.srcMemoryType, copy.srcHost = host, source.address
    else:
        copy.srcMemoryType, copy.srcDevice = there, driver.CUdeviceptr(source.address)
    if target.device < 0:
        copy.dstMemoryType, copy.dstHost = host, target.address
    else:
        copy.dstMemoryType, copy.dstDevice = there, driver.CUdeviceptr(target.address)
    copy.srcPitch, copy.dstPitch = source.pitch, target.pitch
    copy.WidthInBytes, copy.Height = source.width, source.lines
    check(driver.cuMemcpy2DAsync(copy, stream), "cuMemcpy2DAsync")


def copy_peer(target: Block, source: Block, stream: int) -> None:
    """Copy between devices, or within one."""
    driver = load()
    there, here = _context(target.device), _context(source.device)
    if target.is_whole and source.is_whole:
        nbytes = source.width * source.lines
        copied = driver.cuMemcpyPeerAsync(target.address, there, source.address, here, nbytes, stream)
        check(copied, "cuMemcpyPeerAsync")
        return
    copy, kind = driver.CUDA_MEMCPY3D_PEER(), driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.srcMemoryType, copy.dstMemoryType = kind, kind
    copy.srcDevice, copy.dstDevice = driver.CUdeviceptr(source.address), driver.CUdeviceptr(target.address)
    copy.srcContext, copy.dstContext = here, there
    copy.srcPitch, copy.dstPitch = source.pitch, target.pitch
    copy.srcHeight = copy.dstHeight = source.lines
    copy.WidthInBytes, copy.Height, copy.Depth = source.width, source.lines, 1
    check(driver.cuMemcpy3DPeerAsync(copy, stream), "cuMemcpy3DPeerAsync")


def clear_block(block: Block, stream: int) -> None:
    """Set what is in the memory of a device to 0."""
    where = block.address, block.pitch, 0, block.width, block.lines
    check(load().cuMemsetD2D8Async(*where, stream), "cuMemsetD2D8Async")


def _context(device: int) -> Any:
    return primary_contexts.get(device) or retain_primary_context(device)


def can_access(device: int, other: int) -> bool:
    """Whether `device` reads the memory of `other` without the host between."""
    return device == other or bool(
        check(load().cuDeviceCanAccessPeer(device, other), "cuDeviceCanAccessPeer")
    )


#: Pairs of devices of which the first one reads the other's memory.
enabled_peers: set[tuple[int, int]] = set()


def enable_peer_access(device: int, other: int) -> bool:
    """Let `device` read the memory of `other`, where it can; copies without it go by way of the host."""
    if device == other or (device, other) in enabled_peers:
        return True
    if not can_access(device, other):
        return False
    driver = load()
    with current_context(device):
        (error,) = driver.cuCtxEnablePeerAccess(_context(other), 0)
    if error and error != driver.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
        check((error,), "cuCtxEnablePeerAccess")
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = device
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    check(driver.cuMemPoolSetAccess(memory.memory_pool(other), [access], 1), "cuMemPoolSetAccess")
    enabled_peers.add((device, other))
    return True


class MemoryBytes(NamedTuple):
    """Bytes of memory of a device."""

    free: int
    total: int


def memory_bytes(device: int) -> MemoryBytes:
    """Return the bytes of memory of `device`, and those that are free."""
    with current_context(device):
        free, total = check(load().cuMemGetInfo(), "cuMemGetInfo")
    return MemoryBytes(int(free), int(total))
