"""Base of all Configs: the dtype and what follows from it, threads, shared memory, variants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar, Self

from ...errors import require
from ...types import DTYPES, Dtype

__all__ = ["MAX_THREADS", "WARP", "BlockConfig", "KernelConfig", "require_warps"]

WARP = 32
MAX_THREADS = 1024  # of a block


@dataclass(frozen=True)
class KernelConfig:
    """Config of a kernel.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    """

    dtype: str

    #: Stem of the kernel family.
    STEM: ClassVar[str]
    #: Threads that a multiprocessor must be able to hold; 0: one block.
    RESIDENT: ClassVar[int] = 0

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        raise NotImplementedError

    @property
    def min_blocks(self) -> int:
        """Blocks that a multiprocessor must be able to hold."""
        return max(self.RESIDENT // self.threads, 1)

    @property
    def shared_elements(self) -> int:
        """Elements of shared memory."""
        return 0

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory, whole vectors."""
        return -(-self.shared_elements * self.dtype_facts.itemsize // 16) * 16

    @property
    def variants(self) -> Iterable[Self]:
        """The Configs that serve its calls."""
        return (self,)


@dataclass(frozen=True)
class BlockConfig(KernelConfig):
    """Config of a kernel by its threads.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'; of kernels that move reals, 's' or 'd'.
    DIM : int
        Threads of a block.
    """

    DIM: int = 256

    def __post_init__(self) -> None:
        require_warps(DIM=self.DIM)

    @property
    def threads(self) -> int:
        return self.DIM


def require_warps(**dimensions: int) -> None:
    """Raise `ConfigError` unless a block may have the product of `dimensions` as its number of threads."""
    threads, product = prod(dimensions.values()), " * ".join(dimensions)
    require(0 < threads <= MAX_THREADS, "max_threads", f"0 < {product} <= {MAX_THREADS}", **dimensions)
    require(threads % WARP == 0, "whole_warps", f"{product} % {WARP} == 0", **dimensions)
