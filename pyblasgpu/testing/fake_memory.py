"""Memory of the fake cards, and what has accessed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

__all__ = ["Access", "Memory", "RaceError"]


class RaceError(AssertionError):
    """Two accesses to memory that nothing orders."""


class Access(NamedTuple):
    """Bytes that something reads or writes."""

    first: int
    end: int
    is_write: bool


@dataclass
class Memory:
    """Memory of a device or of the host, and who accessed its parts: access, stream, count, name."""

    buffer: np.ndarray
    device: int  # -1 is the host
    past: dict[int, list[tuple[Access, int, int, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.first = int(self.buffer.ctypes.data)
        self.end = self.first + self.buffer.nbytes
