"""``pack_halves``: A and B of float32 as pairs of FP16 in the `image` s that ``gemm_wgmma`` reads.

The panels of A are first, and those of B follow them in the same image. Complex operands are packed as real
ones, see `operand_reader`. A block of threads takes a unit, rows of a block of a panel: it reads all of it,
finds the largest element of each row, shifts and splits the elements, and writes their part of the image. So
each element is read once. What the pairs cannot hold, Inf and NaN among it, sets the flag of the unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import KernelConfig
from ...common.options import TRIANGLE, UPPER
from ...common.parameters import parameters
from .image import (
    BLOCKS_K,
    GRAIN,
    LARGEST_HALF,
    LARGEST_SHIFTED,
    LO_SHIFT,
    MAX_EXPONENT,
    MIN_EXPONENT,
    STAGE_K,
    Image,
    unit_rows,
)
from .operand_reader import CHUNK, copier, reader, thread_coords, unit_finder

__all__ = ["STEM", "PackHalves", "source"]

STEM = "pack_halves"
PARAMETERS = parameters(
    "pointer: a, b, powers, d, scales",
    "int32 pointer: flags, any_flag",
    "int32: extent_a, extent_b, k, options_a, options_b, units_a, count",
    "int64: a_rs, a_ks, a_batch, b_rs, b_ks, b_batch",
    "real: least, least_i",
)
PAD = 4  # words added to a column of maxima, against bank conflicts
MAX_THREADS = {"s": 256, "c": 512}  # of a block; of complex numbers fewer would have too few registers


@dataclass(frozen=True)
class PackHalves(KernelConfig):
    """Config of one `pack_halves` kernel.

    Attributes
    ----------
    dtype : str
        's' or 'c'.
    BLK, BLK_K : int
        Rows of a panel, k of a block of it.
    threads : int
        Threads of a block, each of which splits `CHUNK` k of a row at a time.
    """

    dtype: str = "s"
    BLK: int = 128
    BLK_K: int = 64
    threads: int = 512

    STEM: ClassVar[str] = STEM
    RESIDENT: ClassVar[int] = 1024  # with more, registers do not hold what a thread reads

    def __post_init__(self):
        blk, blk_k, threads = self.BLK, self.BLK_K, self.threads
        require(self.dtype in ("s", "c"), "single", "dtype in (s, c)", dtype=self.dtype)
        require(blk >= 8 and blk % 8 == 0, "swizzle", "BLK >= 8 and BLK % 8 == 0", BLK=blk)
        require(
            blk_k >= STAGE_K and blk_k % STAGE_K == 0,
            "whole_stages",
            f"BLK_K >= {STAGE_K} and BLK_K % {STAGE_K} == 0",
            BLK_K=blk_k,
        )
        require(
            0 < threads <= 1024 and threads % 32 == 0,
            "whole_warps",
            "0 < threads <= 1024 and threads % 32 == 0",
            threads=threads,
        )
        require(
            threads % self.rows == 0 and threads % (blk_k // CHUNK) == 0 and self.chunks % threads == 0,
            "whole_chunks",
            "threads % rows == 0 and threads % (BLK_K / 8) == 0 and rows * BLK_K / 8 % threads == 0",
            rows=self.rows,
            BLK_K=blk_k,
            threads=threads,
        )

    @property
    def rows(self) -> int:
        """Rows of a unit."""
        return unit_rows(self.BLK, self.BLK_K)

    @property
    def chunks(self) -> int:
        """Chunks of a unit."""
        return self.rows * self.BLK_K // CHUNK

    @property
    def shared_bytes(self) -> int:
        """The image of a unit, the largest element of each chunk, and the powers of its k."""
        return 4 * (self.rows * self.BLK_K + self.BLK_K // CHUNK * (self.rows + PAD) + self.BLK_K)

    def specialize(self, blk: int, blk_k: int) -> Self:
        """Return the Config for panels of `blk` rows, and blocks of `blk_k` k."""
        threads = min(unit_rows(blk, blk_k) * blk_k // CHUNK, MAX_THREADS[self.dtype])
        return replace(self, BLK=blk, BLK_K=blk_k, threads=threads)

    def image(self, extent: int, k: int) -> Image:
        """The image of an operand of these extents."""
        return Image(self.BLK, self.BLK_K, extent, k)

    @property
    def variants(self) -> tuple[Self, ...]:
        return tuple(self.specialize(self.BLK, blk_k) for blk_k in BLOCKS_K)


def source(config: PackHalves) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: pointer, A and B
    powers: pointer, the powers of `equilibrate`
    d: pointer, the image, at a multiple of 16 bytes
    scales: pointer, the scales
    flags, any_flag: int32 pointer, the flags, and a word that becomes 1 with any of them
    extent_a, extent_b, k: int32, rows of A, columns of B, k of the real operands
    options_a, options_b: int32, see the notes
    units_a: int32, units of all matrices of A
    count: int32, powers for A; with none the word is not written
    a_rs, a_ks, a_batch: int64, strides of A along the extent, along k, to the next matrix (elements)
    b_rs, b_ks, b_batch: int64, strides of B along the extent, along k, to the next matrix (elements)
    least, least_i: real, parts of `image.least_element`

    Grid: x the units of all matrices.

    Notes
    -----
    The options are `BY_ROWS`, where neighbours along the extent are neighbours in memory; `CONJUGATE`; and
    the triangle of a real operand, whose rows are the extent.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _splitter():
    """``shift(x, power, scale, least)``: the product, and whether a pair holds an element of it, which may be
    zero; ``split(x, y)``: the pairs' hi and lo, of two elements each.
    """
    real, half_pair, lower_half, upper_half = ptx.types.float32, ptx.half_pair, ptx.lower_half, ptx.upper_half
    LO = 1 << LO_SHIFT

    @device_function
    def shift(x, power, scale, least):
        shifted = x * power * scale
        return shifted, (abs(shifted) >= least) | (x == real(0))

    @device_function
    def split(x, y):
        hi = half_pair(x, y)
        return hi, half_pair((x - lower_half(hi)) * real(LO), (y - upper_half(hi)) * real(LO))

    return shift, split


def _power_loader():
    """``load_powers(own, powers, chunk)``: the powers of a chunk's k from shared memory."""
    load_four = ptx.load_shared(4)

    @device_function
    def load_powers(own, powers, chunk):
        load_four(own, 0, powers, chunk * CHUNK)
        load_four(own, 4, powers, chunk * CHUNK + 4)

    return load_powers


def _writer(config: PackHalves):
    """``write(0, image, factors, powers, own, values, halves, bad, t, options, least)``: all chunks of a
    thread, split and swizzled, to shared memory; `bad[0]` becomes 1 where an element is not held.
    """
    coords, (shift, split), offset, quotient = thread_coords(config), _splitter(), ptx.offset, ptx.quotient
    CHUNKS, ROWS, STAGE_CHUNKS = config.chunks // config.threads, config.rows, STAGE_K // CHUNK
    store, load_powers = ptx.store_shared(4), _power_loader()

    @device_function
    def split_two(p, i, values, halves, bad, powers, scale, least):
        at = i * CHUNK + 2 * p
        x, kept = shift(values[at], powers[2 * p], scale, least)
        y, kept_next = shift(values[at + 1], powers[2 * p + 1], scale, least)
        halves[p], halves[p + 4] = split(x, y)
        bad[0] |= 0 if kept & kept_next else 1

    split_chunk = unrolled(CHUNK // 2, split_two)

    @device_function
    def write(i, image, factors, powers, own, values, halves, bad, t, options, least):
        row, chunk = coords(i, t, options)
        load_powers(own, powers, chunk)
        split_chunk(0, i, values, halves, bad, own, factors[row], least)
        stage, turn = quotient(chunk, STAGE_CHUNKS), row & 7
        line, within = offset(image, (stage * ROWS + row) * 32), chunk - stage * STAGE_CHUNKS
        store(line, (within ^ turn) * 4, halves, 0)
        store(line, ((within + STAGE_CHUNKS) ^ turn) * 4, halves, 4)

    return unrolled(CHUNKS, write)


def _measurer(config: PackHalves):
    """``note(0, maxima, powers, own, largest, values, t, options)``: the largest element, times its power, of
    each chunk to shared memory;
    ``settle(maxima, scales, bad, t)``: of each row the scale, and in the place of its first maximum what its
    elements are multiplied by.
    """
    coords, real, int32, exponent = thread_coords(config), ptx.types.float32, ptx.types.int32, ptx.exponent
    CHUNKS, LD, ACROSS = config.chunks // config.threads, config.rows + PAD, config.BLK_K // CHUNK
    power_of_two, ROWS, load_powers = ptx.power_of_two, config.rows, _power_loader()

    @device_function
    def compare(e, i, largest, powers, values):
        size = abs(values[i * CHUNK + e]) * powers[e]
        largest[0] = size if size > largest[0] else largest[0]

    compare_all = unrolled(CHUNK, compare)

    @device_function
    def note(i, maxima, powers, own, largest, values, t, options):
        row, chunk = coords(i, t, options)
        largest[0] = real(0)
        load_powers(own, powers, chunk)
        compare_all(0, i, largest, own, values)
        maxima[chunk * LD + row] = largest[0]

    @device_function
    def settle(maxima, scales, bad, t):
        if t < ROWS:
            largest = real(0)
            for chunk in range(ACROSS):
                size = maxima[chunk * LD + t]
                largest = size if size > largest else largest
            largest_exponent = exponent(largest)
            in_range = (largest_exponent >= MIN_EXPONENT) & (largest_exponent <= MAX_EXPONENT)
            bad[0] |= 0 if in_range | (largest == real(0)) else 1
            shift = int32(largest_exponent - LARGEST_SHIFTED if in_range else 0)
            if largest * power_of_two(int32(-shift)) > real(LARGEST_HALF):
                shift = int32(shift + 1)
            scales[t] = power_of_two(shift)
            maxima[t] = power_of_two(int32(-shift))

    return unrolled(CHUNKS, note), settle


def _reading_test():
    """``is_read(row, k, options)``: whether products by a triangle read the unit that begins there."""
    quotient = ptx.quotient

    @device_function
    def is_read(row, k, options):
        of_rows, of_k = quotient(row, GRAIN), quotient(k, GRAIN)
        within = of_k >= of_rows if options & UPPER else of_k <= of_rows
        return within | (options & TRIANGLE == 0)

    return is_read


def _build(config: PackHalves):
    real, int32, int64 = ptx.types.float32, ptx.types.int32, ptx.types.int64
    BLK, BLK_K, ROWS = config.BLK, config.BLK_K, config.rows
    COMPLEX, REALS = config.dtype == "c", config.dtype_facts.reals_per_element
    MAXIMA, THREADS = BLK_K // CHUNK * (ROWS + PAD), config.threads
    WORDS, VALUES = ROWS * BLK_K, config.chunks // config.threads * CHUNK
    offset, shared_pointer, quotient = ptx.offset, ptx.shared_pointer, ptx.quotient
    grid_dependency_wait, copy_all = ptx.grid_dependency_wait, copier(config, config.rows * config.BLK_K)
    read, write, (note, settle) = reader(config), _writer(config), _measurer(config)
    is_read, find, store_relaxed = _reading_test(), unit_finder(config), ptx.store_relaxed

    @device_function
    def stage_powers(powers, powers_of_k, depth, t):
        """Load the powers of the block's k into shared memory; 1 where there are none."""
        j = t
        while j < BLK_K:
            powers[j] = powers_of_k[j // REALS] if j < depth else real(1)
            j = int32(j + THREADS)

    @device_function
    def pack_unit(
        s,
        powers_of_k,
        d,
        scales,
        flags,
        rows,
        depth,
        shift,
        options,
        row_step,
        k_step,
        expanded,
        count,
        least,
    ):
        t, image = int32(cuda.threadIdx.x), shared_pointer(cuda.shared.array(0, real, alignment=16))
        values, halves = cuda.local.array(VALUES, real), cuda.local.array(CHUNK, real)
        own, vector = cuda.local.array(CHUNK, real), cuda.local.array(4, real)
        bad = cuda.local.array(1, int32)
        maxima, powers, bad[0] = offset(image, WORDS), offset(image, WORDS + MAXIMA), 0

        # (2) read it, and find the largest element of each row
        stage_powers(powers, powers_of_k, depth if count > 0 else 0, t)
        read(values, s, t, rows, depth, shift, row_step, k_step, options, expanded)
        cuda.syncthreads()
        note(0, maxima, powers, own, vector, values, t, options)
        cuda.syncthreads()
        settle(maxima, scales, bad, t)
        cuda.syncthreads()

        # (3) split it into shared memory, and write that as stored
        write(0, image, maxima, powers, own, values, halves, bad, t, options, least)
        failed = cuda.syncthreads_or(bad[0])
        if t == 0:
            flags[0] = int32(1 if failed else 0)
        copy_all(0, d, image, vector, t)
        return failed

    def pack_halves(
        a, b, powers, d, scales, flags, any_flag, extent_a, extent_b, k, options_a, options_b, units_a, count,
        a_rs, a_ks, a_batch, b_rs, b_ks, b_batch, least, least_i,
    ):  # fmt: skip
        # (1) the unit, of a block of a panel of a matrix of an operand
        unit = int32(cuda.blockIdx.x)
        block = quotient(unit, BLK // ROWS)
        part = (unit - block * (BLK // ROWS)) * ROWS
        d = offset(d, int64(block) * (BLK * BLK_K) + part * 32)
        scales, flags = offset(scales, int64(unit) * ROWS), offset(flags, int64(unit))
        grid_dependency_wait()
        is_a = unit < units_a
        s, extent, options = (a, extent_a, options_a) if is_a else (b, extent_b, options_b)
        rs, ks, batch = (a_rs, a_ks, a_batch) if is_a else (b_rs, b_ks, b_batch)
        expanded, own_unit = int32(1 if COMPLEX and is_a else 0), int32(unit if is_a else unit - units_a)
        s, row0, k0, rows, depth = find(s, own_unit, extent, k, rs, ks, batch, expanded)
        powers = offset(powers, k0 // REALS + (0 if is_a else count))
        if is_read(row0, k0, options):
            shift = int32(row0 - k0)
            failed = pack_unit(
                s, powers, d, scales, flags, rows, depth, shift, options, rs, ks, expanded, count, least
            )
            if failed and count > 0 and cuda.threadIdx.x == 0:
                store_relaxed(any_flag, 0, int32(1))

    return pack_halves
