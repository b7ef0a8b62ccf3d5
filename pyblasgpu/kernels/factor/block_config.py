"""Base of Configs that have a dtype and a number of threads alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...errors import require
from ...types import DTYPES, Dtype

__all__ = ["BlockConfig"]


@dataclass(frozen=True)
class BlockConfig:
    """Config of a kernel by its threads.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'; of kernels that move reals, 's' or 'd'.
    DIM : int
        Threads of a block.
    """

    dtype: str
    DIM: int = 256

    def __post_init__(self) -> None:
        require(0 < self.DIM <= 1024, "max_threads", "0 < DIM <= 1024", DIM=self.DIM)
        require(self.DIM % 32 == 0, "whole_warps", "DIM % 32 == 0", DIM=self.DIM)

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        return self.DIM

    @property
    def min_blocks(self) -> int:
        return 1
