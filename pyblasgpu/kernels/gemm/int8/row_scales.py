"""``row_scales``: of each row of A, or column of B, the power of two that makes integers of it, and its
share of the product's error.

A block takes ROWS rows, all of k: sums of sizes and of squares, and the largest. The order of a sum depends
only on the operand's layout. A complex row is one of twice as many reals: both its parts have one scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import KernelConfig
from ...common.options import BY_ROWS
from ...common.parameters import parameters
from .image import DIGIT, INVERSE, SCALE, SIZE, UNIT
from .moduli import LARGEST, check_moduli, largest_square

__all__ = [
    "LD",
    "LOADS_IN_FLIGHT",
    "PARTIALS",
    "ROUNDED_UP",
    "ROWS",
    "STEM",
    "RowScales",
    "RowSums",
    "accumulator",
    "convict",
    "judge",
    "source",
]

STEM = "row_scales"
PARAMETERS = parameters(
    "pointer: a, b, of_a, of_b",
    "int32 pointer: verdicts",
    "int32: extent_a, extent_b, k, options_a, options_b, rows_a, judges",
    "int64: a_rs, a_ks, b_rs, b_ks",
)
ROWS = 32
PARTIALS = 32  # at most, whose sums of a row are added up
LD = ROWS + 1  # against bank conflicts
LOADS_IN_FLIGHT = 8  # loads of a thread under way
MAX_EXPONENT = 400  # of a row's largest element, either way: with others scales might leave float64
ROUNDED_UP = 1 + 2.0**-20  # for sums' roundings
DIGIT_BITS = 7
CUT = 1 - 2.0**-10  # what is cut to a digit is below 2^7 then, and below what it was before it was rounded


@dataclass(frozen=True)
class RowSums(KernelConfig):
    """Config of a kernel of blocks that add up ROWS rows each.

    Attributes
    ----------
    dtype : str
        'd' or 'z'.
    moduli : int
        Moduli, whose product bounds the norms of rows.
    threads : int
        Threads of a block.
    """

    dtype: str = "d"
    moduli: int = 14
    threads: int = 512

    SUMS: ClassVar[int] = 1  # of each row

    def __post_init__(self):
        check_moduli(self.dtype, self.moduli)
        require(
            self.threads % ROWS == 0 and 0 < self.threads <= ROWS * PARTIALS,
            "whole_warps",
            f"threads % {ROWS} == 0 and 0 < threads <= {ROWS * PARTIALS}",
            threads=self.threads,
        )

    @property
    def shared_bytes(self) -> int:
        """The sums of each part of a row."""
        return 8 * self.SUMS * PARTIALS * LD

    def grid(self, rows: int) -> int:
        """Blocks for `rows` rows, those of whole panels."""
        return -(-rows // ROWS)


@dataclass(frozen=True)
class RowScales(RowSums):
    """Config of one `row_scales` kernel: sums of sizes and of squares, and the largest."""

    STEM: ClassVar[str] = STEM
    SUMS: ClassVar[int] = 3


def source(config: RowScales) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: pointer, A and B
    of_a, of_b: pointer, the facts of each, `image.FACTS` arrays of the rows of its whole panels
    verdicts: int32 pointer, of `sample_pairs`: where all are 1, no row has a scale, and none is read
    extent_a, extent_b, k: int32, rows of A, columns of B, k
    options_a, options_b: int32, `BY_ROWS`: neighbours along the extent are so in memory
    rows_a: int32, rows of A's whole panels; none where B alone is read
    judges: int32, number of verdicts
    a_rs, a_ks, b_rs, b_ks: int64, strides of A along the extent and along k, of B (elements)

    Grid: x ``config.grid(rows of both)``.
    """
    return KernelSource.of(config, PARAMETERS, partial(_build, config))


def accumulator(config: KernelConfig):
    """``accumulate(sums, values, s, first, step, k, k_step)``: sums, of sizes and of squares, and the largest
    of the `k` reals of a row from `first` on, `step` apart; elements are `k_step` apart.
    """
    int32, int64, real = ptx.types.int32, ptx.types.int64, ptx.types.float64
    load_one, fma, REALS = ptx.load_global(1, False), ptx.fma, config.dtype_facts.reals_per_element

    @device_function
    def load(j, values, s, kk, step, k, k_step):
        at = int32(kk + j * step)
        load_one(values, j, s, int64(at // REALS) * k_step * REALS + at % REALS, at < k)

    @device_function
    def add(j, values, sums):
        size = abs(values[j])
        sums[0] += size
        sums[1] = fma(size, size, sums[1])
        sums[2] = size if size > sums[2] else sums[2]

    load_all, add_all = unrolled(LOADS_IN_FLIGHT, load), unrolled(LOADS_IN_FLIGHT, add)

    @device_function
    def accumulate(sums, values, s, first, step, k, k_step):
        sums[0], sums[1], sums[2] = real(0), real(0), real(0)
        kk = first
        while kk < k:
            load_all(0, values, s, kk, step, k, k_step)
            add_all(0, values, sums)
            kk = int32(kk + LOADS_IN_FLIGHT * step)

    return accumulate


def judge(moduli: int):
    """``judge_row(d, rows, size, square, largest, k)``: the facts of a row of `k` reals, the first to `d`,
    and each `rows` after the one before.
    """
    real, int32 = ptx.types.float64, ptx.types.int32
    exponent, power = ptx.double_exponent, ptx.double_power_of_two
    SQUARE = largest_square(moduli)
    SQUARE_EXPONENT, INFINITE = int(SQUARE).bit_length() - 1, float("inf")

    @device_function
    def shift_of(square, e):
        """The largest shift with which neither the row's norm nor an element is too large."""
        by_norm = int32((SQUARE_EXPONENT - exponent(square)) >> 1)
        if square * power(int32(2 * by_norm)) > real(SQUARE):
            by_norm = int32(by_norm - 1)
        return int32(min(by_norm, LARGEST - 1 - e))

    @device_function
    def judge_row(d, rows, size, square, largest, k):
        e = exponent(largest)
        scale, inverse, digit, unit, share = real(0), real(1), real(0), real(1), real(INFINITE)
        if largest == real(0):
            unit, share = real(0), size  # which may be NaN
        elif (e >= -MAX_EXPONENT) & (e <= MAX_EXPONENT):
            s = shift_of(square * real(ROUNDED_UP), e)
            scale, inverse = power(s), power(int32(-s))
            unit = power(int32(DIGIT_BITS - 1 - e - s))
            digit = unit * real(CUT)
            share = (size * scale * real(0.5) + real(k) * real(0.125)) * (unit * real(ROUNDED_UP))
        d[SCALE * rows], d[INVERSE * rows], d[DIGIT * rows] = scale, inverse, digit
        d[SIZE * rows], d[UNIT * rows] = share, unit

    return judge_row


def convict():
    """``hopeless(verdicts, judges, lane)``: whether there are verdicts, and all are 1; for a warp."""
    int32, first_lane = ptx.types.int32, ptx.first_lane

    @device_function
    def hopeless(verdicts, judges, lane):
        others, at = int32(0), lane
        while at < judges:
            others |= int32(verdicts[at] == 0)
            at = int32(at + 32)
        return judges > 0 and first_lane(others != 0) < 0

    return hopeless


def _build(config: RowScales):
    real, int32, int64 = ptx.types.float64, ptx.types.int32, ptx.types.int64
    WARPS, offset = config.threads // 32, ptx.offset
    shared_pointer, grid_dependency_wait = ptx.shared_pointer, ptx.grid_dependency_wait
    accumulate, judge_row, REALS = (
        accumulator(config),
        judge(config.moduli),
        config.dtype_facts.reals_per_element,
    )
    hopeless, INFINITE = convict(), float("inf")

    @device_function
    def keep(partials, sums, part, row):
        for which in range(3):
            partials[(which * PARTIALS + part) * LD + row] = sums[which]

    @device_function
    def add_up(partials, count, row):
        size, square, largest = real(0), real(0), real(0)
        for part in range(count):
            size += partials[part * LD + row]
            square += partials[(PARTIALS + part) * LD + row]
            own = partials[(2 * PARTIALS + part) * LD + row]
            largest = own if own > largest else largest
        return size, square, largest

    def row_scales(
        a, b, of_a, of_b, verdicts, extent_a, extent_b, k, options_a, options_b, rows_a, judges, a_rs, a_ks,
        b_rs, b_ks,
    ):  # fmt: skip
        t, row0 = int32(cuda.threadIdx.x), int32(cuda.blockIdx.x * ROWS)
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        sums, values = cuda.local.array(3, real), cuda.local.array(LOADS_IN_FLIGHT, real)
        warp, lane = int32(t // 32), int32(t % 32)
        is_a, rows_b = row0 < rows_a, int32(cuda.gridDim.x * ROWS - rows_a)
        s, d, extent, rows = (a, of_a, extent_a, rows_a) if is_a else (b, of_b, extent_b, rows_b)
        options, row_step, k_step = (options_a, a_rs, a_ks) if is_a else (options_b, b_rs, b_ks)
        row0, row_step, reals = int32(row0 if is_a else row0 - rows_a), row_step * REALS, int32(k * REALS)
        grid_dependency_wait()
        skips = hopeless(verdicts, judges, lane)
        extent = int32(0 if skips else extent)
        # (1) parts of rows, so that neighbours in memory go to neighbouring lanes; none beyond the extent
        if options & BY_ROWS:
            mine = offset(s, int64(row0 + lane) * row_step)
            accumulate(sums, values, mine, warp, WARPS, reals if row0 + lane < extent else 0, k_step)
            keep(partials, sums, warp, lane)
        else:
            row = warp
            while row < ROWS:
                mine = offset(s, int64(row0 + row) * row_step)
                accumulate(sums, values, mine, lane, 32, reals if row0 + row < extent else 0, k_step)
                keep(partials, sums, lane, row)
                row = int32(row + WARPS)
        cuda.syncthreads()

        # (2) their results
        if t < ROWS:
            count = WARPS if options & BY_ROWS else 32
            size, square, largest = add_up(partials, count, t)
            largest = real(INFINITE) if skips else largest
            judge_row(offset(d, int64(row0 + t)), int64(rows), size, square, largest, reals)

    return row_scales
