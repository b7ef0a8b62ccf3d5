"""The processor: its cores, caches, vector registers and clock, as far as the system reports them."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .backend import require

__all__ = ["Processor", "current"]

_SYSTEM = Path("/sys/devices/system/cpu/cpu0")
KiB = 1 << 10


@dataclass(frozen=True)
class Processor:
    """A processor, by what the choice of a Config depends on.

    Attributes
    ----------
    name : str
        The system's name of it.
    cores : int
        Cores that this process may use.
    l1_bytes, l2_bytes, l3_bytes : int
        Caches that a core reaches.
    vector_bytes : int
        Width of a vector register.
    vector_registers : int
        Vector registers of a core.
    clock_mhz : float
        Highest clock that the system reports; 0 if unknown.
    """

    name: str
    cores: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    vector_bytes: int
    vector_registers: int
    clock_mhz: float

    def lanes(self, real_size: int) -> int:
        """Reals of a vector register."""
        return self.vector_bytes // real_size


@lru_cache(maxsize=1)
def current() -> Processor:
    """The processor that this process runs on.

    Raises
    ------
    BackendUnavailable
        Where Numba cannot be imported, which knows the vector registers.
    """
    host, features = require().host_cpu()
    wide = bool(features.get("avx512f"))
    arm = platform.machine().lower() in ("aarch64", "arm64")
    caches = _caches()
    return Processor(
        name=_name() or host,
        cores=_cores(),
        l1_bytes=caches.get(1, 32 * KiB),
        l2_bytes=caches.get(2, 512 * KiB),
        l3_bytes=caches.get(3, caches.get(2, 4096 * KiB)),
        vector_bytes=64 if wide else 32 if features.get("avx") else 16,
        vector_registers=32 if wide or arm else 16,
        clock_mhz=_clock(),
    )


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not of Linux
        return os.cpu_count() or 1


def _cpuinfo(field: str) -> str:
    """The first value of a field of /proc/cpuinfo; '' where there is none."""
    with suppress(OSError):
        match = re.search(rf"^{field}\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        return match.group(1).strip() if match else ""
    return ""


def _name() -> str:
    return _cpuinfo("model name") or platform.processor()


def _clock() -> float:
    with suppress(OSError, ValueError):
        return int((_SYSTEM / "cpufreq" / "cpuinfo_max_freq").read_text()) / 1000
    with suppress(ValueError):
        return float(_cpuinfo("cpu MHz"))
    return 0.0


def _caches() -> dict[int, int]:
    """Bytes by level, of caches that hold data."""
    sizes = {}
    for folder in sorted(_SYSTEM.glob("cache/index*")):
        with suppress(OSError, ValueError):
            if (folder / "type").read_text().strip() != "Instruction":
                text = (folder / "size").read_text().strip()
                unit = {"K": KiB, "M": KiB**2}.get(text[-1:], 1)
                sizes[int((folder / "level").read_text())] = int(text.rstrip("KM")) * unit
    return sizes
