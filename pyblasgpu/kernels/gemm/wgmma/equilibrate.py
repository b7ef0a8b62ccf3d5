"""``equilibrate``: a power of two for each k, by which A is multiplied and B divided before they are packed.

A product stays what it is. Data that are graded along k, as A D and D^-1 B, are within the range of pairs
then. Which powers they are matters to no result: a few rows of A and columns of B tell the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.compile import KernelSource
from ....types import DTYPES, Dtype

__all__ = ["STEM", "Equilibrate", "source"]

STEM = "equilibrate"
PARAMETERS = "ppp iii qq qq".replace(" ", "")
KNOWN = 100  # exponents beyond this, either way, tell nothing
LEAST_RATIO = 6  # bits by which A and B differ at least where they are changed
MOST_SHIFT = 60


@dataclass(frozen=True)
class Equilibrate:
    """Config of one `equilibrate` kernel.

    Attributes
    ----------
    dtype : str
        's' or 'c'.
    BLK_K : int
        k of a block.
    PLACES, RUN : int
        Places, spread over the extent, at which rows are read, and how many neighbours at each.
    """

    dtype: str = "s"
    BLK_K: int = 32
    PLACES: int = 8
    RUN: int = 8

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(self.dtype in ("s", "c"), "single", "dtype in (s, c)", dtype=self.dtype)
        require(
            0 < self.threads <= 1024 and self.threads % 32 == 0,
            "whole_warps",
            "0 < BLK_K * PLACES <= 1024 and BLK_K * PLACES % 32 == 0",
            BLK_K=self.BLK_K,
            PLACES=self.PLACES,
        )

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        return self.BLK_K * self.PLACES

    @property
    def shared_bytes(self) -> int:
        """What each thread has found, of A and of B."""
        return 4 * 2 * self.threads

    def grid(self, k: int) -> int:
        return -(-k // self.BLK_K)


def source(config: Equilibrate) -> KernelSource:
    """The kernel of `config`.

    Its parameters are pointers to A, B and the powers: `k` for A, and after them `k` for B, their inverses;
    int32 rows of A, columns of B, k; int64 strides of A along its rows, along k, and those of B along its
    columns, along k (elements). Grid: x ``config.grid(k)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _sampler(config: Equilibrate):
    """``largest_at(s, extent, place, step)``: the largest real of the rows that are read at a place of S."""
    real, int64, quotient = ptx.types.float32, ptx.types.int64, ptx.quotient
    PLACES, RUN, REALS = config.PLACES, config.RUN, config.dtype_facts.reals_per_element

    @device_function
    def largest_at(s, extent, place, step):
        first, largest = quotient(extent, PLACES) * place, real(0)
        for j in range(RUN):
            if first + j < extent:
                for part in range(REALS):
                    size = abs(s[int64(first + j) * step * REALS + part])
                    largest = size if size > largest else largest
        return largest

    return largest_at


def _build(config: Equilibrate):
    real, int32, int64 = ptx.types.float32, ptx.types.int32, ptx.types.int64
    BLK_K, PLACES, THREADS = config.BLK_K, config.PLACES, config.threads
    REALS, largest_at = config.dtype_facts.reals_per_element, _sampler(config)
    offset, shared_pointer, exponent = ptx.offset, ptx.shared_pointer, ptx.exponent
    power_of_two, grid_dependency_wait = ptx.power_of_two, ptx.grid_dependency_wait

    @device_function
    def exponent_of(found, t):
        """That of the largest that all places have found at a k."""
        largest = real(0)
        for place in range(PLACES):
            size = found[place * BLK_K + t]
            largest = size if size > largest else largest
        return exponent(largest)

    def equilibrate(a, b, d, m, n, k, a_rs, a_ks, b_cs, b_ks):
        t = int32(cuda.threadIdx.x)
        kk, place = int32(cuda.blockIdx.x * BLK_K + t % BLK_K), int32(t // BLK_K)
        found = shared_pointer(cuda.shared.array(0, real, alignment=16))
        grid_dependency_wait()
        if kk < k:
            found[t] = largest_at(offset(a, int64(kk) * a_ks * REALS), m, place, a_rs)
            found[THREADS + t] = largest_at(offset(b, int64(kk) * b_ks * REALS), n, place, b_cs)
        cuda.syncthreads()
        if (place == 0) & (kk < k):
            of_a, of_b = exponent_of(found, t), exponent_of(offset(found, THREADS), t)
            known = (abs(of_a) <= KNOWN) & (abs(of_b) <= KNOWN) & (abs(of_b - of_a) >= LEAST_RATIO)
            shift = int32(max(min((of_b - of_a) >> 1, MOST_SHIFT), -MOST_SHIFT) if known else 0)
            d[kk] = power_of_two(shift)
            d[k + kk] = power_of_two(int32(-shift))

    return equilibrate
