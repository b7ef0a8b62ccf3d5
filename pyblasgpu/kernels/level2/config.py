"""Base of the Configs of level 2: how a thread loads elements of A."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Self

from ...errors import require
from ..common.kernel_config import WARP, KernelConfig

__all__ = ["LOAD", "WARP", "VectorLoads"]

LOAD = 16  # bytes of the widest load


@dataclass(frozen=True)
class VectorLoads(KernelConfig):
    """Loads of A.

    Attributes
    ----------
    BYTES : int
        Bytes of one load: 16, or those of a real, which serve any alignment and any strides.
    """

    BYTES: int = LOAD

    def __post_init__(self):
        require(
            self.BYTES in (LOAD, self.dtype_facts.real_size),
            "load",
            "BYTES in (16, bytes of a real)",
            BYTES=self.BYTES,
        )

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
