"""``pivot_scales``: of each row of a Cholesky factor the power of two that makes integers of it, from the
diagonal of A; and which rows have left what that allows.

Squares of a row of L add up to a_ii, so no element is beyond its root. A row whose squares exceed a_ii has no
positive pivot, and its integers may mean another number: it becomes NaN, and so does its pivot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ....gpu.backend import cuda, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from .image import DIGIT, INVERSE, SCALE, SIZE, UNIT
from .moduli import OF_ROOTS, bits_of_roots
from .row_scales import LD, LOADS_IN_FLIGHT, ROUNDED_UP, ROWS, RowSums, accumulator

__all__ = ["STEM", "PivotScales", "source"]

STEM = "pivot_scales"
PARAMETERS = parameters(
    "pointer: a, facts",
    "int32: m, n, rows",
    "int64: a_rs, a_cs",
)
ALLOWED = 1 + 2.0**-22  # times a_ii: more than roundings of squares, and less than scales leave room for
#: Facts of a row that here are the sum of its squares, and what it may be.
SQUARES, MOST = SIZE, UNIT


@dataclass(frozen=True)
class PivotScales(RowSums):
    """Config of one `pivot_scales` kernel."""

    moduli: int = OF_ROOTS
    threads: int = 256

    STEM: ClassVar[str] = STEM

    @property
    def bits(self) -> int:
        """Bits of integers, which float64 holds, and whose sums of products the moduli hold."""
        return bits_of_roots(self.moduli)


def source(config: PivotScales) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a: pointer, elements of the diagonal of A, or a block of columns of L
    facts: pointer, `image.FACTS` arrays of rows
    m, n: int32, rows and columns of A; without columns the facts begin
    rows: int32, rows of an array of facts
    a_rs, a_cs: int64, strides of A (elements)

    Grid: x ``config.grid(m)``.
    """
    return KernelSource.of(config, PARAMETERS, partial(_build, config))


def _build(config: PivotScales):
    real, int32, int64 = ptx.types.float64, ptx.types.int32, ptx.types.int64
    WARPS, BITS, REALS, NAN = (
        config.threads // 32,
        config.bits,
        config.dtype_facts.reals_per_element,
        float("nan"),
    )
    exponent, power, offset = ptx.double_exponent, ptx.double_power_of_two, ptx.offset
    shared_pointer, grid_dependency_wait = ptx.shared_pointer, ptx.grid_dependency_wait
    accumulate = accumulator(config)

    def pivot_scales(a, facts, m, n, rows, a_rs, a_cs):
        t, row0 = int32(cuda.threadIdx.x), int32(cuda.blockIdx.x * ROWS)
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        sums, values = cuda.local.array(3, real), cuda.local.array(LOADS_IN_FLIGHT, real)
        warp, row = int32(t // 32), int32(row0 + t % 32)
        own, step = offset(facts, int64(row)), int64(rows)
        grid_dependency_wait()
        # (1) squares of parts of rows
        mine = offset(a, int64(row) * a_rs * REALS)
        accumulate(sums, values, mine, warp, WARPS, n * REALS if row < m else 0, a_cs)
        partials[warp * LD + t % 32] = sums[1]
        cuda.syncthreads()

        # (2) the facts of rows: in the beginning from a_ii, whose root is below 2^((e + 2) // 2)
        if t < ROWS and row < m:
            if n == 0:
                pivot = mine[0]
                s = int32(BITS - ((exponent(pivot * real(ROUNDED_UP)) + 2) >> 1))
                positive = pivot > real(0)
                own[SCALE * step] = power(s) if positive else real(0)
                own[INVERSE * step] = power(int32(-s)) if positive else real(NAN)
                own[DIGIT * step], own[SQUARES * step], own[MOST * step] = (
                    real(0),
                    real(0),
                    pivot * real(ALLOWED),
                )
            else:
                total = own[SQUARES * step]
                for part in range(WARPS):
                    total += partials[part * LD + t]
                own[SQUARES * step] = total
                if not total <= own[MOST * step]:
                    own[INVERSE * step] = real(NAN)

    return pivot_scales
