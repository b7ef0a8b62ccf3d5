"""What a device can hold: asked of the driver, or looked up by name when the device is not there.

The driver tells the limits; the units in which it hands out registers and shared memory it does not
tell, they go by compute capability (``cuda_occupancy.h`` of the CUDA toolkit).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..errors import BackendUnavailable
from . import backend

__all__ = ["Device", "count", "current", "known", "names", "simulated"]

KiB = 1 << 10
MiB = 1 << 20


@dataclass(frozen=True)
class Device:
    """A device, by what the choice and the tuning of kernels depend on.

    Attributes
    ----------
    name : str
        The driver's name of it.
    cc : (int, int)
        Compute capability.
    sm_count : int
        Multiprocessors.
    max_threads_per_block, max_threads_per_sm, max_blocks_per_sm : int
        Limits of residence.
    registers_per_sm, registers_per_block, max_registers_per_thread : int
        32-bit registers.
    shared_per_sm, shared_per_block : int
        Bytes of shared memory; of a block, the most it can opt in to.
    shared_reserved : int
        Bytes that the system takes for each block.
    warp_size : int
        Threads of a warp.
    register_unit, shared_unit : int
        Registers are given to a warp, shared memory to a block, in multiples of this.
    partitions : int
        Parts of a multiprocessor; a warp lives in one, with that part's registers.
    l2_bytes : int
        L2 cache.
    ordinal : int
        The driver's number of the device.
    """

    name: str
    cc: tuple[int, int]
    sm_count: int
    max_threads_per_block: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    registers_per_sm: int
    registers_per_block: int
    max_registers_per_thread: int
    shared_per_sm: int
    shared_per_block: int
    shared_reserved: int
    warp_size: int = 32
    register_unit: int = 256
    shared_unit: int = 128
    partitions: int = 4
    l2_bytes: int = 0
    ordinal: int = 0

    @property
    def arch(self) -> str:
        """The architecture's name, 'sm_90'."""
        return f"sm_{self.cc[0]}{self.cc[1]}"

    @property
    def has_async_copy(self) -> bool:
        """Whether cp.async exists."""
        return self.cc >= (8, 0)

    def occupancy(self, threads: int, registers: int, shared_bytes: int) -> int:
        """Blocks that a multiprocessor holds at once; 0 where the device refuses the launch.

        Parameters
        ----------
        threads : int
            Threads of a block.
        registers : int
            32-bit registers of a thread.
        shared_bytes : int
            Shared memory of a block, static and dynamic.
        """
        if threads > self.max_threads_per_block or shared_bytes > self.shared_per_block:
            return 0
        warps = -(-threads // self.warp_size)
        shared = _round_up(shared_bytes + self.shared_reserved, self.shared_unit)
        limits = [
            self.max_blocks_per_sm,
            self.max_threads_per_sm // (warps * self.warp_size),
            self._blocks_by_registers(warps, registers),
        ]
        if shared:
            limits.append(self.shared_per_sm // shared)
        return min(limits)

    def _blocks_by_registers(self, warps: int, registers: int) -> int:
        if registers == 0:
            return self.max_blocks_per_sm
        a_warp = _round_up(registers * self.warp_size, self.register_unit)
        # the launch check counts as if every partition held equally many warps
        checked = a_warp * _round_up(warps, self.partitions)
        if registers > self.max_registers_per_thread or checked > self.registers_per_block:
            return 0
        warps_per_partition = self.registers_per_sm // self.partitions // a_warp
        return warps_per_partition * self.partitions // warps


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _units(cc: tuple[int, int]) -> dict[str, int]:
    """What the driver does not tell."""
    return {
        "max_registers_per_thread": 63 if cc < (3, 5) else 255,
        "register_unit": 64 if cc < (3, 0) else 256,
        "shared_unit": 256 if (3, 0) <= cc < (8, 0) else 128,
        "partitions": 2 if cc < (3, 0) or cc == (6, 0) else 4,
    }


# compute capability: threads, blocks, registers, KiB of shared memory of a multiprocessor; KiB of a block
# (CUDA C++ Programming Guide, technical specifications per compute capability)
_LIMITS = {
    (2, 0): (1536, 8, 32768, 48, 48),
    (3, 5): (2048, 16, 65536, 48, 48),
    (5, 2): (2048, 32, 65536, 96, 48),
    (6, 0): (2048, 32, 65536, 64, 48),
    (6, 1): (2048, 32, 65536, 96, 48),
    (7, 0): (2048, 32, 65536, 96, 96),
    (7, 5): (1024, 16, 65536, 64, 64),
    (8, 0): (2048, 32, 65536, 164, 163),
    (8, 6): (1536, 16, 65536, 100, 99),
    (8, 9): (1536, 24, 65536, 100, 99),
    (9, 0): (2048, 32, 65536, 228, 227),
    (10, 0): (2048, 32, 65536, 228, 227),
    (12, 0): (1536, 24, 65536, 100, 99),
}

# short name: the driver's name, compute capability, multiprocessors, MiB of L2
_KNOWN = {
    "fermi": ("Tesla S2050", (2, 0), 14, 0.75),
    "kepler": ("Tesla K40c", (3, 5), 15, 1.5),
    "p100": ("Tesla P100-PCIE-16GB", (6, 0), 56, 4),
    "v100": ("Tesla V100-SXM2-16GB", (7, 0), 80, 6),
    "t4": ("Tesla T4", (7, 5), 40, 4),
    "a100": ("NVIDIA A100-SXM4-80GB", (8, 0), 108, 40),
    "rtx4090": ("NVIDIA GeForce RTX 4090", (8, 9), 128, 72),
    "h100": ("NVIDIA H100 80GB HBM3", (9, 0), 132, 50),
    "h200": ("NVIDIA H200", (9, 0), 132, 60),
    "b200": ("NVIDIA B200", (10, 0), 148, 126),
    "rtx5090": ("NVIDIA GeForce RTX 5090", (12, 0), 170, 96),
}


def names() -> list[str]:
    """The names that `known` answers to."""
    return [*_KNOWN, *(f"sm_{major}{minor}" for major, minor in _LIMITS)]


def known(name: str) -> Device:
    """The description of a device by its short name ('h200'), or of an architecture ('sm_90').

    Raises
    ------
    ValueError
        For a name that is none of `names`.
    """
    if name in _KNOWN:
        full, cc, sm_count, l2 = _KNOWN[name]
        return _described(full, cc, sm_count, int(l2 * MiB))
    for cc in _LIMITS:
        if name == f"sm_{cc[0]}{cc[1]}":
            return _described(name, cc, sm_count=80, l2_bytes=4 * MiB)
    raise ValueError(f"device {name!r} is none of {', '.join(names())}")


def _described(name: str, cc: tuple[int, int], sm_count: int, l2_bytes: int) -> Device:
    threads, blocks, registers, shared, shared_block = _LIMITS[cc]
    return Device(
        name=name,
        cc=cc,
        sm_count=sm_count,
        max_threads_per_block=1024,
        max_threads_per_sm=threads,
        max_blocks_per_sm=blocks,
        registers_per_sm=registers,
        registers_per_block=registers,
        shared_per_sm=shared * KiB,
        shared_per_block=shared_block * KiB,
        shared_reserved=KiB if cc >= (8, 0) else 0,
        l2_bytes=l2_bytes,
        **_units(cc),
    )


def simulated() -> Device:
    """Numba's simulator, described as one multiprocessor of the newest device that it stands in for."""
    return replace(known("sm_90"), name="Numba simulator", sm_count=1)


def count() -> int:
    """How many devices there are, without a driver none."""
    if backend.SIMULATED:
        return 1
    try:
        return _call("cuDeviceGetCount")
    except BackendUnavailable:
        return 0


@lru_cache
def current(ordinal: int = 0) -> Device:
    """The device of number `ordinal`, asked of the driver; nothing is allocated on it.

    Raises
    ------
    BackendUnavailable
        Where there is no driver or no such device.
    """
    if backend.SIMULATED:
        return simulated()
    if not 0 <= ordinal < _call("cuDeviceGetCount"):
        raise BackendUnavailable(f"there is no CUDA device {ordinal}")
    handle = _call("cuDeviceGet", ordinal)
    attribute = _driver().CUdevice_attribute

    def ask(name: str) -> int:
        return _call("cuDeviceGetAttribute", getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), handle)

    cc = (ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR"))
    return Device(
        name=_call("cuDeviceGetName", 256, handle).split(b"\0")[0].decode(),
        cc=cc,
        sm_count=ask("MULTIPROCESSOR_COUNT"),
        max_threads_per_block=ask("MAX_THREADS_PER_BLOCK"),
        max_threads_per_sm=ask("MAX_THREADS_PER_MULTIPROCESSOR"),
        max_blocks_per_sm=ask("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        registers_per_sm=ask("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        registers_per_block=ask("MAX_REGISTERS_PER_BLOCK"),
        shared_per_sm=ask("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        shared_per_block=ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        shared_reserved=ask("RESERVED_SHARED_MEMORY_PER_BLOCK"),
        warp_size=ask("WARP_SIZE"),
        l2_bytes=ask("L2_CACHE_SIZE"),
        ordinal=ordinal,
        **_units(cc),
    )


@lru_cache(maxsize=1)
def _load() -> tuple[Any, str]:
    """cuda.bindings.driver, initialised, and an empty reason; else None and the reason why not."""
    try:
        from cuda.bindings import driver

        (status,) = driver.cuInit(0)
    except (ImportError, RuntimeError, OSError) as missing:  # no package, or no driver library
        return None, f"the CUDA driver does not load: {missing}"
    if status != driver.CUresult.CUDA_SUCCESS:
        return None, f"the CUDA driver does not start: {status.name}"
    return driver, ""


def _driver():
    driver, reason = _load()
    if reason:
        raise BackendUnavailable(reason)
    return driver


def _call(function: str, *arguments):
    driver = _driver()
    status, value = getattr(driver, function)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise BackendUnavailable(f"{function}: {status.name}")
    return value
