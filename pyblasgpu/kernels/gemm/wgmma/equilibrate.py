"""``equilibrate``: a power of two for each k, by which A is multiplied and B divided before they are packed.

A product stays what it is. Data that are graded along k, as A D and D^-1 B, are within the range of pairs
then. The choice of powers affects no result: a few rows of A and columns of B give the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import KernelConfig
from ...common.parameters import parameters

__all__ = ["STEM", "Equilibrate", "source"]

STEM = "equilibrate"
PARAMETERS = parameters(
    "pointer: a, b, d",
    "int32: m, n, k",
    "int64: a_rs, a_ks, b_cs, b_ks",
)
KNOWN = 100  # exponents beyond this, either way, do not count
MIN_RATIO = 6  # bits by which A and B differ at least where they are changed
MAX_SHIFT = 60


@dataclass(frozen=True)
class Equilibrate(KernelConfig):
    """Config of one `equilibrate` kernel.

    Attributes
    ----------
    dtype : str
        's' or 'c'.
    BLK_K : int
        k of a block.
    SAMPLES, RUN : int
        Samples, spread over the extent, at which rows are read, and how many neighbours at each.
    """

    dtype: str = "s"
    BLK_K: int = 32
    SAMPLES: int = 8
    RUN: int = 8

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(self.dtype in ("s", "c"), "single", "dtype in (s, c)", dtype=self.dtype)
        require(
            0 < self.threads <= 1024 and self.threads % 32 == 0,
            "whole_warps",
            "0 < BLK_K * SAMPLES <= 1024 and BLK_K * SAMPLES % 32 == 0",
            BLK_K=self.BLK_K,
            SAMPLES=self.SAMPLES,
        )
        require(
            self.RUN >= 1 and self.SAMPLES >= 1,
            "rows",
            "RUN >= 1 and SAMPLES >= 1",
            RUN=self.RUN,
            SAMPLES=self.SAMPLES,
        )

    @property
    def threads(self) -> int:
        return self.BLK_K * self.SAMPLES

    @property
    def shared_bytes(self) -> int:
        """Bytes of each thread's largest elements, of A and of B."""
        return 4 * 2 * self.threads

    def grid(self, k: int) -> int:
        return -(-k // self.BLK_K)


def source(config: Equilibrate) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: pointer, A and B
    d: pointer, the powers: `k` for A, `k` for B, their inverses, and a word that becomes 0: no flag is set
    m, n, k: int32, rows of A, columns of B, k
    a_rs, a_ks: int64, strides of A along its rows, along k (elements)
    b_cs, b_ks: int64, strides of B along its columns, along k (elements)

    Grid: x ``config.grid(k)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _sampler(config: Equilibrate):
    """``read(0, values, s, first, extent, step)``: the rows from `first` on that are read at a sample of S,
    zeros beyond the `extent`; ``largest_of(values, largest)``: their largest. All are under way at once.
    """
    RUN, REALS, load_one = config.RUN, config.dtype_facts.reals_per_element, ptx.load_global(1, False)
    real, int64 = ptx.types.float32, ptx.types.int64

    @device_function
    def read_row(j, values, s, first, extent, step):
        for part in range(REALS):
            load_one(values, j * REALS + part, s, int64(first + j) * step * REALS + part, first + j < extent)

    @device_function
    def compare(j, values, largest):
        size = abs(values[j])
        largest[0] = size if size > largest[0] else largest[0]

    compare_all = unrolled(RUN * REALS, compare)

    @device_function
    def largest_of(values, largest):
        largest[0] = real(0)
        compare_all(0, values, largest)
        return largest[0]

    return unrolled(RUN, read_row), largest_of


def _build(config: Equilibrate):
    real, int32, int64 = ptx.types.float32, ptx.types.int32, ptx.types.int64
    BLK_K, SAMPLES, THREADS = config.BLK_K, config.SAMPLES, config.threads
    REALS, COUNT = config.dtype_facts.reals_per_element, config.RUN * config.dtype_facts.reals_per_element
    (read, largest_of), quotient = _sampler(config), ptx.quotient
    offset, shared_pointer, exponent = ptx.offset, ptx.shared_pointer, ptx.exponent
    power_of_two, grid_dependency_wait = ptx.power_of_two, ptx.grid_dependency_wait

    @device_function
    def exponent_of(sizes, t):
        """Return the exponent of the largest element that all samples have found at a k."""
        largest = real(0)
        for sample in range(SAMPLES):
            size = sizes[sample * BLK_K + t]
            largest = size if size > largest else largest
        return exponent(largest)

    def equilibrate(a, b, d, m, n, k, a_rs, a_ks, b_cs, b_ks):
        t = int32(cuda.threadIdx.x)
        kk, sample = int32(cuda.blockIdx.x * BLK_K + t % BLK_K), int32(t // BLK_K)
        sizes = shared_pointer(cuda.shared.array(0, real, alignment=16))
        of_a, of_b = cuda.local.array(COUNT, real), cuda.local.array(COUNT, real)
        largest = cuda.local.array(1, real)
        grid_dependency_wait()
        if (cuda.blockIdx.x == 0) & (t == 0):
            d[int64(2) * k] = real(0)
        if kk < k:
            first_a, first_b = quotient(m, SAMPLES) * sample, quotient(n, SAMPLES) * sample
            read(0, of_a, offset(a, int64(kk) * a_ks * REALS), first_a, m, a_rs)
            read(0, of_b, offset(b, int64(kk) * b_ks * REALS), first_b, n, b_cs)
            sizes[t] = largest_of(of_a, largest)
            sizes[THREADS + t] = largest_of(of_b, largest)
        cuda.syncthreads()
        if (sample == 0) & (kk < k):
            e_a, e_b = exponent_of(sizes, t), exponent_of(offset(sizes, THREADS), t)
            known = (abs(e_a) <= KNOWN) & (abs(e_b) <= KNOWN) & (abs(e_b - e_a) >= MIN_RATIO)
            shift = int32(max(min((e_b - e_a) >> 1, MAX_SHIFT), -MAX_SHIFT) if known else 0)
            d[kk] = power_of_two(shift)
            d[k + kk] = power_of_two(int32(-shift))

    return equilibrate
