"""Base of the Configs of level 2: how a thread loads elements of A."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import Self

from ...errors import require
from ...types import DTYPES, Dtype

__all__ = ["LOAD", "WARP", "VectorLoads", "require_threads"]

LOAD = 16  # bytes of the widest load
WARP = 32
MAX_THREADS = 1024


@dataclass(frozen=True)
class VectorLoads:
    """Loads of A.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    BYTES : int
        Bytes of one load: 16, or those of a real, which serve any alignment and any strides.
    """

    dtype: str
    BYTES: int = LOAD

    def __post_init__(self):
        require(
            self.BYTES in (LOAD, self.dtype_facts.real_size),
            "load",
            "BYTES in (16, bytes of a real)",
            BYTES=self.BYTES,
        )

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def WIDTH(self) -> int:
        """Reals of one load."""
        return self.BYTES // self.dtype_facts.real_size

    @property
    def VEC(self) -> int:
        """Neighbouring elements that a thread loads at once, or one, real by real."""
        return max(self.BYTES // self.dtype_facts.itemsize, 1)

    def with_alignment(self, alignment: int) -> Self:
        """Return the Config for columns of A whose starts and lengths are multiples of `alignment` bytes."""
        return self if gcd(alignment, LOAD) >= self.BYTES else replace(self, BYTES=self.dtype_facts.real_size)


def require_threads(threads: int, **dimensions: int) -> None:
    """Raise `ConfigError` unless a block may have `threads` threads."""
    rule = f"{' * '.join(dimensions)} % 32 == 0 and {' * '.join(dimensions)} <= 1024"
    require(threads % WARP == 0 and 0 < threads <= MAX_THREADS, "threads", rule, **dimensions)
