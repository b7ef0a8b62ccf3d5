"""The limits of a device: read from the driver, or looked up by name when the device is absent.

The driver reports the limits. It does not report the units in which registers and shared memory are
allocated; they depend on the compute capability (``cuda_occupancy.h`` of the CUDA toolkit). ``devices.json``
describes devices that are not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ..errors import BackendUnavailable
from ..package_files import package_file
from ..types import Dtype
from . import backend
from .driver import after_fork, load

__all__ = [
    "OLDEST",
    "Device",
    "count",
    "current",
    "described_by_driver",
    "here",
    "known",
    "named",
    "names",
    "present",
    "same_name",
    "simulated",
    "stand_in",
    "stand_ins",
]

#: Compute capability from which on kernels run: there are asynchronous copies (cp.async).
OLDEST = (8, 0)

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
    lanes_float32, lanes_float64 : int
        FMAs that a multiprocessor completes in a cycle.
    l2_bytes : int
        L2 cache.
    dram_bytes : float
        Bytes that DRAM gives to the whole device in a cycle of its multiprocessors; 0 if unknown.
    clock_mhz : float
        Cycles of a multiprocessor in a microsecond; 0 if unknown.
    ordinal : int
        The driver's number of the device.
    arch : str
        The architecture's name, 'sm_90'.
    has_async_copy : bool
        Whether cp.async exists.
    has_double_mma : bool
        Whether there are tensor cores for float64 that are worth using.
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
    lanes_float32: int = 128
    lanes_float64: int = 64
    l2_bytes: int = 0
    dram_bytes: float = 0.0
    clock_mhz: float = 0.0
    ordinal: int = 0
    arch: str = field(init=False, repr=False, compare=False)
    has_async_copy: bool = field(init=False, repr=False, compare=False)
    has_double_mma: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arch", f"sm_{self.cc[0]}{self.cc[1]}")
        object.__setattr__(self, "has_async_copy", self.cc >= OLDEST)
        object.__setattr__(self, "has_double_mma", self.cc >= (8, 0) and self.lanes_float64 >= 32)

    def fma_lanes(self, dtype: Dtype) -> int:
        """Real FMAs of `dtype` that a multiprocessor completes in a cycle."""
        return self.lanes_float32 if dtype.real == "float32" else self.lanes_float64

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


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    return json.loads(package_file("gpu", "devices.json").read_bytes())


def _architecture(cc: tuple[int, int]) -> dict[str, Any]:
    """Return the row of `devices.json` for a compute capability, or for the last one before it."""
    rows = _data()["architectures"]
    return max((row for row in rows if tuple(row["cc"]) <= cc), key=lambda row: row["cc"], default=rows[0])


def _units(cc: tuple[int, int]) -> dict[str, int]:
    """Return the allocation units, which the driver does not report."""
    row = _architecture(cc)
    return {
        "max_registers_per_thread": 63 if cc < (3, 5) else 255,
        "register_unit": 64 if cc < (3, 0) else 256,
        "shared_unit": 256 if (3, 0) <= cc < (8, 0) else 128,
        "partitions": 2 if cc < (3, 0) or cc == (6, 0) else 4,
        "lanes_float32": row["lanes_float32"],
        "lanes_float64": row["lanes_float64"],
    }


def names() -> list[str]:
    """The names that `known` answers to: families of architectures, cards, architectures."""
    rows = _data()["architectures"]
    families = dict.fromkeys(row["family"] for row in rows if _cards_of(row["family"]))
    return [*families, *_data()["cards"], *(f"sm_{row['cc'][0]}{row['cc'][1]}" for row in rows)]


def known(name: str) -> Device:
    """The description of a card by its name, short ('h200') or the driver's ('NVIDIA H200'), of the first
    card of a family ('fermi'), or of an architecture ('sm_90'); as `same_name` compares them.

    Raises
    ------
    ValueError
        For a name that is none of `names`.
    """
    card = _card(name)
    if card is not None:
        return _described(**card)
    for row in _data()["architectures"]:
        arch = f"sm_{row['cc'][0]}{row['cc'][1]}"
        if same_name(name, row["family"]) and _cards_of(row["family"]):
            return _described(**_data()["cards"][_cards_of(row["family"])[0]])
        if same_name(name, arch):
            return _described(arch, row["cc"], sm_count=80, l2_bytes=4 * MiB)
    raise ValueError(f"device {name!r} is none of {', '.join(names())}")


def _card(name: str) -> dict[str, Any] | None:
    """Return the entry of a card in `devices.json`, by its name, short or the driver's."""
    cards = _data()["cards"].items()
    return next((card for key, card in cards if same_name(name, key) or same_name(name, card["name"])), None)


def same_name(one: str, other: str) -> bool:
    """Whether two names are spellings of one: 'H200', 'NVIDIA H200', 'nvidia_h200'; 'RTX 5090', '5090'."""
    return _letters(one) == _letters(other)


def _letters(name: str) -> str:
    """Return the significant part of a device's name: no case, no punctuation, no maker's or series' name."""
    return re.sub(r"^(nvidia|geforce|tesla|rtx)+", "", re.sub(r"[^a-z0-9]+", "", name.lower()))


def named(text: str | None = None) -> Device:
    """The device that a person means by a number, or by a name in any spelling: the one that is here, or a
    description.

    Parameters
    ----------
    text : str, optional
        The number of a device, its name, or one that `known` answers to. Default: device 0. A number is a
        name ('5090') where it is one and there are not as many devices.

    Raises
    ------
    BackendUnavailable
        Where there is no device of that number.
    ValueError
        For a name that is neither that of a device here nor one of `names`.
    """
    number = _number(text)
    if text is None or number is not None:
        return current(number or 0)
    present = list(here())
    try:
        meant = known(text)
    except ValueError as unknown:
        card = next((device for device in present if same_name(text, device.name)), None)
        if card is None:
            others = "".join(f", {device.name}" for device in present)
            raise ValueError(f"{unknown}{others}, or a number") from None
        return card
    return next((device for device in present if same_name(meant.name, device.name)), meant)


def _number(text: str | None) -> int | None:
    """The number of a device that a text means; None of a name."""
    if text is None or not text.strip().isdecimal():
        return None
    number = int(text)
    if number >= count() and (_card(text) or any(same_name(text, card.name) for card in here())):
        return None
    return number


def present(text: str | None = None) -> Device:
    """The device that a person means, as of `named`, which must be here.

    Raises
    ------
    BackendUnavailable
        Where there is no device of that number.
    ValueError
        For the name of a device that is not here.
    """
    device = named(text)
    if text is not None and _number(text) is None and device not in here():
        there = "; ".join(f"{each.ordinal}: {each.name}" for each in here()) or "none"
        raise ValueError(f"device {text!r} is no number or name of a device that is here: {there}")
    return device


def _cards_of(family: str) -> list[str]:
    ccs = [row["cc"] for row in _data()["architectures"] if row["family"] == family]
    return [key for key, card in _data()["cards"].items() if card["cc"] in ccs]


def _described(
    name: str, cc: list[int], sm_count: int, l2_bytes: int, clock_mhz: int = 0, dram_gb_per_s: int = 0
) -> Device:
    row = _architecture((cc[0], cc[1]))
    return Device(
        name=name,
        cc=(cc[0], cc[1]),
        sm_count=sm_count,
        max_threads_per_block=1024,
        max_threads_per_sm=row["max_threads_per_sm"],
        max_blocks_per_sm=row["max_blocks_per_sm"],
        registers_per_sm=row["registers_per_sm"],
        registers_per_block=row["registers_per_sm"],
        shared_per_sm=row["shared_per_sm"],
        shared_per_block=row["shared_per_block"],
        shared_reserved=KiB if cc >= [8, 0] else 0,
        l2_bytes=l2_bytes,
        dram_bytes=dram_gb_per_s * 1000 / clock_mhz if clock_mhz else 0.0,
        clock_mhz=clock_mhz,
        **_units((cc[0], cc[1])),
    )


def here() -> Iterator[Device]:
    """The devices that are here, without those that cannot be used."""
    for ordinal in range(count()):
        with suppress(BackendUnavailable):
            yield current(ordinal)


def simulated() -> Device:
    """Numba's simulator, described as one multiprocessor of the newest device that it emulates."""
    return replace(known("sm_90"), name="Numba simulator", sm_count=1)


def count() -> int:
    """Return the number of devices, 0 without a driver."""
    if backend.SIMULATED:
        return 1
    try:
        return _call("cuDeviceGetCount")
    except BackendUnavailable:
        return 0


#: Descriptions of devices that are not here, by their numbers: below 0, but for what tests put in place.
stand_ins: dict[int, Device] = {}


def stand_in(device: Device) -> Device:
    """`device` if it is here, else a copy with a number by which `current` knows it.

    So a call on a device that is not here can be explained. Nothing runs there.
    """
    if device in here():
        return device
    for known_one in stand_ins.values():
        if replace(known_one, ordinal=device.ordinal) == device:
            return known_one
    ordinal = -1 - len(stand_ins)
    stand_ins[ordinal] = replace(device, ordinal=ordinal)
    return stand_ins[ordinal]


def current(ordinal: int = 0) -> Device:
    """Return the device of number `ordinal`, or its substitute; nothing is allocated on it.

    Raises
    ------
    BackendUnavailable
        See `described_by_driver`.
    """
    known_one = stand_ins.get(ordinal)
    return described_by_driver(ordinal) if known_one is None else known_one


@lru_cache
def described_by_driver(ordinal: int) -> Device:
    """Return the device of number `ordinal`, as the driver describes it.

    Raises
    ------
    BackendUnavailable
        Where there is no driver or no such device, or where it is older than `OLDEST`.
    """
    if backend.SIMULATED:
        return simulated()
    if not 0 <= ordinal < _call("cuDeviceGetCount"):
        raise BackendUnavailable(f"there is no CUDA device {ordinal}")
    handle = _call("cuDeviceGet", ordinal)
    attribute = load().CUdevice_attribute

    def ask(name: str) -> int:
        return _call("cuDeviceGetAttribute", getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), handle)

    name = _call("cuDeviceGetName", 256, handle).split(b"\0")[0].decode()
    cc = (ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR"))
    if cc < OLDEST:
        raise BackendUnavailable(
            f"device {ordinal}, {name}, has compute capability {cc[0]}.{cc[1]}; "
            f"{OLDEST[0]}.{OLDEST[1]} or higher is needed"
        )
    return Device(
        name=name,
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
        # two transfers a cycle of the memory's clock, which the driver gives in kHz like the other
        clock_mhz=ask("CLOCK_RATE") / 1000,
        dram_bytes=ask("GLOBAL_MEMORY_BUS_WIDTH") / 4 * ask("MEMORY_CLOCK_RATE") / max(ask("CLOCK_RATE"), 1),
        ordinal=ordinal,
        **_units(cc),
    )


after_fork(described_by_driver.cache_clear)  # what a forked process cannot use it does not have


def _call(function: str, *arguments):
    driver = load()
    status, value = getattr(driver, function)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise BackendUnavailable(f"{function}: {status.name}")
    return value
