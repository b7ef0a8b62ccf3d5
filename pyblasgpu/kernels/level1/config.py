"""What the Configs of Level 1 have in common: threads, and elements of a thread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...errors import require
from ...types import DTYPES, Dtype

__all__ = ["ACCESS", "VectorConfig"]

ACCESS = 16  # bytes of one access, where elements are neighbours and aligned
RESIDENT = 1024  # threads of a multiprocessor, which all wait for memory


@dataclass(frozen=True, kw_only=True)
class VectorConfig:
    """Config of a kernel that goes over vectors.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    DIM : int
        Threads of a block.
    UNROLL : int
        Accesses of 16 bytes that a thread has under way, of each vector.
    """

    dtype: str
    DIM: int = 256
    UNROLL: int = 1

    def __post_init__(self):
        require(self.DIM <= 1024, "max_threads", "DIM <= 1024", DIM=self.DIM)
        require(self.DIM % 32 == 0, "whole_warps", "DIM % 32 == 0", DIM=self.DIM)
        require(1 <= self.UNROLL <= 16, "unroll", "1 <= UNROLL <= 16", UNROLL=self.UNROLL)

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def VEC(self) -> int:
        """Elements of one access."""
        return ACCESS // self.dtype_facts.itemsize

    @property
    def threads(self) -> int:
        return self.DIM

    @property
    def min_blocks(self) -> int:
        return max(RESIDENT // self.DIM, 1)

    @property
    def per_thread(self) -> int:
        """Elements that a thread has in registers, of each vector."""
        return self.UNROLL * self.VEC

    @property
    def TILE(self) -> int:
        """Elements of a vector that a block takes at a time."""
        return self.DIM * self.per_thread

    def tiles(self, n: int) -> int:
        """Tiles of a vector of `n` elements."""
        return -(-n // self.TILE)
