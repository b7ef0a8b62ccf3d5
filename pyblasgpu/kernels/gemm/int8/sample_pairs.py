"""``sample_pairs``: whether integers serve none of some small tiles of C, before anything is packed.

Each of BLOCKS blocks takes EDGE rows of A and EDGE columns of B, and of k a part. It finds their facts as
`row_scales` does, and all of their products of sizes. Its verdict is 1 where the check of a tile with them
would set a flag. Where all verdicts are 1, `row_scales` leaves the whole product to FMAs. What is decided
changes times alone: each way keeps the bound.
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
from .image import FACTS, SCALE, SIZE, UNIT
from .moduli import check_moduli
from .row_scales import judge

__all__ = ["BLOCKS", "STEM", "SamplePairs", "source"]

STEM = "sample_pairs"
PARAMETERS = parameters(
    "pointer: a, b",
    "int32 pointer: verdicts",
    "int32: m, n, k, options_a, options_b",
    "int64: a_rs, a_ks, b_rs, b_ks",
)
BLOCKS = 64  # tiles that are sampled
SCATTER = 37  # places from the columns of a block to those of the next one, modulo BLOCKS
EDGE = 8  # rows and columns of a tile
ROWS = 2 * EDGE
DEPTH = 128  # k that are read at a time
LD = ROWS + 1  # against bank conflicts
SLICES = 16  # of these k, for sums of each row
TILE = 4  # rows and columns of a thread
PAIR_SLICES = ROWS * SLICES * TILE**2 // EDGE**2  # of these k, for sums of each pair
ROUNDED_DOWN = 1 - 2.0**-5  # what sums lose where each size is cut to a digit


@dataclass(frozen=True)
class SamplePairs(KernelConfig):
    """Config of one `sample_pairs` kernel.

    Attributes
    ----------
    dtype : str
        'd'.
    moduli : int
        Number of moduli.
    sample : int
        Chunks of a stage of which one has digits.
    every : int
        Parts of k of which one is read.
    """

    dtype: str = "d"
    moduli: int = 14
    sample: int = 8
    every: int = 8

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        check_moduli(self.dtype, self.moduli)
        require(self.every > 0 and self.sample > 0, "parts", "every > 0 and sample > 0", every=self.every)

    @property
    def threads(self) -> int:
        return ROWS * SLICES

    @property
    def shared_bytes(self) -> int:
        """Elements, later sums of all threads: of rows, and of pairs; facts of rows."""
        return 8 * max(DEPTH * LD, _SUMS + _PAIRS + FACTS * ROWS)


_SUMS, _PAIRS = 3 * SLICES * ROWS, PAIR_SLICES * EDGE**2


def source(config: SamplePairs) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: pointer, A and B
    verdicts: int32 pointer, one for each block
    m, n, k: int32, rows of A, columns of B, k
    options_a, options_b: int32, `BY_ROWS`: neighbours along the extent are so in memory
    a_rs, a_ks, b_rs, b_ks: int64, strides of A along the extent and along k, of B (elements)

    Grid: x `BLOCKS`.
    """
    return KernelSource.of(config, PARAMETERS, partial(_build, config))


def _stager(config: SamplePairs):
    """``load(0, values, s, row_step, k_step, options, rows, depth, t)``: elements of an operand, and
    ``keep(0, values, shared, options, t)``: their sizes in shared memory.
    """
    THREADS, int32 = config.threads, ptx.types.int32
    load_one, COUNT = ptx.load_global(1, False), EDGE * DEPTH // config.threads

    @device_function
    def coords(i, t, options):
        """Row and k: neighbours in memory go to neighbouring lanes."""
        at = int32(i * THREADS + t)
        if options & BY_ROWS:
            return int32(at % EDGE), int32(at // EDGE)
        return int32(at // DEPTH), int32(at % DEPTH)

    @device_function
    def load(i, values, s, row_step, k_step, options, rows, depth, t):
        row, kk = coords(i, t, options)
        load_one(values, i, s, row * row_step + kk * k_step, (row < rows) & (kk < depth))

    @device_function
    def keep(i, values, shared, options, t):
        row, kk = coords(i, t, options)
        shared[kk * LD + row] = abs(values[i])

    return unrolled(COUNT, load), unrolled(COUNT, keep), COUNT


def _summer():
    """``add(shared, sums, acc, t)``: the elements in shared memory to a thread's sums of a row, of sizes and
    of squares, and its largest, and to those of its pairs.
    """
    fma, int32, SPAN, OWN = ptx.fma, ptx.types.int32, DEPTH // SLICES, DEPTH // PAIR_SLICES

    @device_function
    def add_size(i, shared, sums, row, part):
        size = shared[(part * SPAN + i) * LD + row]
        sums[0] += size
        sums[1] = fma(size, size, sums[1])
        sums[2] = size if size > sums[2] else sums[2]

    @device_function
    def add_pair(p, x, acc):
        acc[p] = fma(x[p % TILE], x[TILE + p // TILE], acc[p])

    sizes, pairs = unrolled(SPAN, add_size), unrolled(TILE * TILE, add_pair)

    @device_function
    def add(shared, sums, acc, x, t):
        sizes(0, shared, sums, int32(t % ROWS), int32(t // ROWS))
        left, right = int32(t % 2 * TILE), int32(EDGE + t // 2 % 2 * TILE)
        for i in range(OWN):
            at = int32((t // 4 * OWN + i) * LD)
            for v in range(TILE):
                x[v], x[TILE + v] = shared[at + left + v], shared[at + right + v]
            pairs(0, x, acc)

    return add


def _settler(config: SamplePairs):
    """``settle(shared, sums, acc, k, ratio, t)``: whether the check would flag a pair of this thread."""
    real, int32, int64, offset = ptx.types.float64, ptx.types.int32, ptx.types.int64, ptx.offset
    judge_row, OF_ROWS = judge(config.moduli), _SUMS + _PAIRS
    U, SHARE = 2.0**-53, ROUNDED_DOWN / config.sample

    @device_function
    def keep_pair(p, shared, acc, t):
        row, col = int32(t % 2 * TILE + p % TILE), int32(t // 2 % 2 * TILE + p // TILE)
        shared[_SUMS + (t // 4 * EDGE + col) * EDGE + row] = acc[p]

    keep_pairs = unrolled(TILE * TILE, keep_pair)

    @device_function
    def keep(shared, sums, acc, t):
        for which in range(3):
            shared[which * SLICES * ROWS + t] = sums[which]
        keep_pairs(0, shared, acc, t)

    @device_function
    def settle_row(shared, k, ratio, row):
        size, square, largest = real(0), real(0), real(0)
        for part in range(SLICES):
            size += shared[part * ROWS + row]
            square += shared[(SLICES + part) * ROWS + row]
            own = shared[(2 * SLICES + part) * ROWS + row]
            largest = own if own > largest else largest
        judge_row(offset(shared, OF_ROWS + row), int64(ROWS), size * ratio, square * ratio, largest, k)

    @device_function
    def is_bad(shared, k, ratio, t):
        total, i, j = real(0), int32(t % EDGE), int32(t // EDGE)
        for part in range(PAIR_SLICES):
            total += shared[_SUMS + part * EDGE * EDGE + t]
        of_row, of_col = offset(shared, OF_ROWS + i), offset(shared, OF_ROWS + EDGE + j)
        unit, unit_of_col = of_row[UNIT * ROWS], of_col[UNIT * ROWS]
        digits = total * (of_row[SCALE * ROWS] * unit) * (of_col[SCALE * ROWS] * unit_of_col)
        loss = of_row[SIZE * ROWS] * unit_of_col + unit * of_col[SIZE * ROWS]
        return not loss <= real(k - 2) * real(U) * (digits * (ratio * real(SHARE)))

    @device_function
    def settle(shared, sums, acc, k, ratio, t):
        cuda.syncthreads()
        keep(shared, sums, acc, t)
        cuda.syncthreads()
        if t < ROWS:
            settle_row(shared, k, ratio, t)
        cuda.syncthreads()
        return t < EDGE * EDGE and is_bad(shared, k, ratio, t)

    return settle


def _build(config: SamplePairs):
    real, int32, int64 = ptx.types.float64, ptx.types.int32, ptx.types.int64
    offset, quotient, first_lane = ptx.offset, ptx.quotient, ptx.first_lane
    shared_pointer, grid_dependency_wait, zero = ptx.shared_pointer, ptx.grid_dependency_wait, ptx.fill(3)
    (load, keep, COUNT), add, settle = _stager(config), _summer(), _settler(config)
    STEP, PAIRS, BOTH, zero_pairs = DEPTH * config.every, TILE * TILE, 2 * TILE, ptx.fill(TILE * TILE)

    @device_function
    def begin_of(place, extent):
        """The first of EDGE rows: places are evenly distributed."""
        return int32(int64(max(extent - EDGE, 0)) * place // (BLOCKS - 1))

    @device_function
    def votes(bad, t):
        """Whether a pair of the first warps is bad, in the flag of each."""
        return int32(first_lane(bad) >= 0)

    def sample_pairs(a, b, verdicts, m, n, k, options_a, options_b, a_rs, a_ks, b_rs, b_ks):
        t, block = int32(cuda.threadIdx.x), int32(cuda.blockIdx.x)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        left, right, x = (
            cuda.local.array(COUNT, real),
            cuda.local.array(COUNT, real),
            cuda.local.array(BOTH, real),
        )
        sums, acc = cuda.local.array(3, real), cuda.local.array(PAIRS, real)
        row, col = begin_of(block, m), begin_of(int32(block * SCATTER % BLOCKS), n)
        a, b = offset(a, int64(row) * a_rs), offset(b, int64(col) * b_rs)
        rows, cols = int32(m - row), int32(n - col)
        zero(sums, real(0))
        zero_pairs(acc, real(0))
        grid_dependency_wait()

        # (1) sums of the sampled parts of k; the next one is loaded meanwhile
        kk = int32(0)
        load(0, left, a, a_rs, a_ks, options_a, rows, k, t)
        load(0, right, b, b_rs, b_ks, options_b, cols, k, t)
        while kk < k:
            cuda.syncthreads()
            keep(0, left, shared, options_a, t)
            keep(0, right, offset(shared, EDGE), options_b, t)
            cuda.syncthreads()
            kk = int32(kk + STEP)
            if kk < k:
                load(0, left, offset(a, kk * a_ks), a_rs, a_ks, options_a, rows, int32(k - kk), t)
                load(0, right, offset(b, kk * b_ks), b_rs, b_ks, options_b, cols, int32(k - kk), t)
            add(shared, sums, acc, x, t)

        # (2) the verdict
        parts = quotient(int32(k + (STEP - 1)), STEP)
        read = int32((parts - 1) * DEPTH + min(k - (parts - 1) * STEP, DEPTH))
        bad = settle(shared, sums, acc, k, real(k) / real(read), t)
        any_bad = votes(bad, t)
        cuda.syncthreads()
        if t % 32 == 0:
            shared[t // 32] = real(any_bad)
        cuda.syncthreads()
        if t == 0:
            verdicts[block] = int32(shared[0] + shared[1] > real(0))

    return sample_pairs
