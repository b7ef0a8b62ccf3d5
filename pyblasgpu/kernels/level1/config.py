"""Base of the Configs of Level 1: threads, and elements of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ...errors import require
from ...types import Dtype
from ..common.kernel_config import BlockConfig
from ..common.options import PAIRS

__all__ = ["ACCESS", "VectorConfig", "extents"]

ACCESS = 16  # bytes of one access, where elements are neighbours and aligned


@dataclass(frozen=True, kw_only=True)
class VectorConfig(BlockConfig):
    """Config of a kernel that goes over vectors.

    Attributes
    ----------
    UNROLL : int
        Accesses of 16 bytes that a thread has under way, of each vector.
    """

    UNROLL: int = 1

    RESIDENT: ClassVar[int] = 1024  # which all wait for memory

    def __post_init__(self):
        super().__post_init__()
        require(1 <= self.UNROLL <= 16, "unroll", "1 <= UNROLL <= 16", UNROLL=self.UNROLL)

    @property
    def of_reals(self) -> Self:
        """The Config of the kernel that takes complex elements as pairs of reals."""
        letter = {"float32": "s", "float64": "d"}[self.dtype_facts.real]
        return self if self.dtype == letter else replace(self, dtype=letter)

    @property
    def VEC(self) -> int:
        """Elements of one access."""
        return ACCESS // self.dtype_facts.itemsize

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


def extents(
    dtype: Dtype, config: VectorConfig, n: int, increments: Sequence[int], batch_strides: Sequence[int]
) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    """The arguments by which a kernel of `config` receives vectors of `dtype`: elements, increments, batch
    strides, bits.
    """
    if dtype.is_complex and not config.dtype_facts.is_complex:
        return 2 * n, tuple(increments), tuple(2 * stride for stride in batch_strides), PAIRS
    return n, tuple(increments), tuple(batch_strides), 0
