"""``pack_residues``: an operand as integers, their residues modulo each of the moduli, and their digits, in
the images that ``gemm_int8`` reads.

A block takes some rows of a stage of a panel. It reads each element once, and writes 16 bytes of each image a
thread, one for each of its k. Of complex elements it packs real parts, imaginary parts and their sums, one
after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import KernelConfig
from ...common.options import BY_ROWS, CONJUGATE
from ...common.parameters import parameters
from .image import DIGIT, SCALE, SIZE, STAGE_K, STAGE_WORDS_OF_ROW, Image, parts_of
from .moduli import MODULI, ServesFactors, check_moduli

__all__ = ["STEM", "PackResidues", "source"]

STEM = "pack_residues"
PARAMETERS = parameters(
    "pointer: a, b, of_a, of_b",
    "int32 pointer: image_a, image_b",
    "int32: extent_a, extent_b, k, options_a, options_b, units_a, rows_a, rows_b, stages, begin, first",
    "int64: a_rs, a_ks, b_rs, b_ks",
)
CHUNK = 16  # k, and bytes of an image, of a thread
CHUNKS = STAGE_K // CHUNK
#: Elements of a chunk and of a row in shared memory, against bank conflicts.
CHUNK_LD, ROW_LD = CHUNK + 1, CHUNKS * (CHUNK + 1) + 1
#: Threads of a multiprocessor: with more, registers do not hold what a thread has.
RESIDENT = {"d": 640, "z": 512}
MAGIC = 1.5 * 2.0**52  # added to what is below 2^51, it rounds to integers


@dataclass(frozen=True)
class PackResidues(ServesFactors, KernelConfig):
    """Config of one `pack_residues` kernel.

    Attributes
    ----------
    dtype : str
        'd' or 'z'.
    moduli : int
        Number of moduli.
    BLK : int
        Rows of a panel.
    rows : int
        Rows of a block.
    sample : int
        Chunks of a stage of which one has digits.
    """

    dtype: str = "d"
    moduli: int = 14
    BLK: int = 128
    rows: int = 16
    sample: int = 8

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        check_moduli(self.dtype, self.moduli)
        require(
            self.rows % 8 == 0 and 0 < self.rows <= 128 and self.BLK % self.rows == 0,
            "whole_units",
            "rows % 8 == 0 and 0 < rows <= 128 and BLK % rows == 0",
            rows=self.rows,
            BLK=self.BLK,
        )

        require(
            self.sample in (1, 2, 4, 8),
            "sample",
            "sample in (1, 2, 4, 8)",
            sample=self.sample,
        )

    @property
    def threads(self) -> int:
        return self.rows * CHUNKS

    @property
    def min_blocks(self) -> int:
        return max(RESIDENT[self.dtype] // self.threads, 1)

    @property
    def shared_bytes(self) -> int:
        """The elements of a block."""
        return self.dtype_facts.itemsize * self.rows * ROW_LD

    @property
    def images(self) -> int:
        """Images of residues."""
        return self.moduli * parts_of(self.dtype_facts)

    def image(self, extent: int, k: int) -> Image:
        """The image of an operand of these extents."""
        return Image(self.BLK, extent, k)

    def grid(self, image: Image) -> int:
        return image.panels * image.stages * (self.BLK // self.rows)


def source(config: PackResidues) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: pointer, A and B
    of_a, of_b: pointer, the facts of each by `row_scales`
    image_a, image_b: int32 pointer, the images, at a multiple of 16 bytes
    extent_a, extent_b, k: int32, rows of A, columns of B, k
    options_a, options_b: int32, `BY_ROWS`: neighbours along the extent are so in memory; `CONJUGATE`
    units_a: int32, blocks of threads for A; none where B alone is packed
    rows_a, rows_b: int32, rows of the images, of whole panels
    stages: int32, stages of the images
    begin, first: int32, rows of whole panels and stages of the images before those that are written
    a_rs, a_ks, b_rs, b_ks: int64, strides of A along the extent and along k, of B (elements)

    Grid: x ``config.grid(image)`` of both.
    """
    return KernelSource.of(config, PARAMETERS, partial(_build, config))


def _stager(config: PackResidues):
    """``stage(0, shared, values, s, rows, depth, row_step, k_step, options, t)``: the elements of a block to
    shared memory, zeros beyond the `rows` and the `depth` that are left; real parts, then imaginary ones.
    """
    int32, ROWS, THREADS = ptx.types.int32, config.rows, config.threads
    load_one, REALS, PART = ptx.load_global(1, False), config.dtype_facts.reals_per_element, ROWS * ROW_LD

    @device_function
    def coords(i, t, options):
        """Row, k and part of a real: neighbours in memory go to neighbouring lanes."""
        at = int32(i * THREADS + t)
        element, part = int32(at // REALS), int32(at % REALS)
        if options & BY_ROWS:
            return int32(element % ROWS), int32(element // ROWS), part
        return int32(element // STAGE_K), int32(element % STAGE_K), part

    @device_function
    def load(i, first, values, s, rows, depth, row_step, k_step, options, t):
        row, kk, part = coords(int32(first + i), t, options)
        at = (row * row_step + kk * k_step) * REALS + part
        load_one(values, i, s, at, (row < rows) & (kk < depth))

    @device_function
    def keep(i, first, shared, values, options, t):
        row, kk, part = coords(int32(first + i), t, options)
        shared[part * PART + row * ROW_LD + kk // CHUNK * CHUNK_LD + kk % CHUNK] = values[i]

    load_all, keep_all = unrolled(CHUNK, load), unrolled(CHUNK, keep)

    @device_function
    def stage(turn, shared, values, s, rows, depth, row_step, k_step, options, t):
        load_all(0, turn * CHUNK, values, s, rows, depth, row_step, k_step, options, t)
        keep_all(0, turn * CHUNK, shared, values, options, t)

    return unrolled(REALS, stage)


def _integer_maker(config: PackResidues):
    """``make(0, shared, at, x, lows, scale, scale_i, part)``: the integers of a chunk, and their lowest bits;
    of a complex one those of real parts, imaginary parts or sums. ``make_sizes(0, shared, at, x, scale,
    scale_i)``: of each element the larger part.
    """
    real, int32, fma, low_word = ptx.types.float64, ptx.types.int32, ptx.fma, ptx.low_word
    COMPLEX, PART = config.dtype_facts.is_complex, config.rows * ROW_LD
    LOWEST = 255  # the bits of a sum that decide its residues, so that it stays an int32

    @device_function
    def to_integer(i, shared, at, x, lows, scale, scale_i, part):
        if COMPLEX:
            # a scale of 0 leaves a part out
            of_re = fma(shared[at + i], scale if part != 1 else real(0), real(MAGIC))
            of_im = fma(shared[PART + at + i], scale_i if part != 0 else real(0), real(MAGIC))
            x[i] = (of_re - real(MAGIC)) + (of_im - real(MAGIC))
            lows[i] = int32((low_word(of_re) & LOWEST) + (low_word(of_im) & LOWEST))
        else:
            shifted = fma(shared[at + i], scale, real(MAGIC))
            x[i], lows[i] = shifted - real(MAGIC), low_word(shifted)

    @device_function
    def to_size(i, shared, at, x, scale, scale_i):
        if COMPLEX:
            re = abs(fma(shared[at + i], scale, real(MAGIC)) - real(MAGIC))
            im = abs(fma(shared[PART + at + i], scale_i, real(MAGIC)) - real(MAGIC))
            x[i] = re if re > im else im

    return unrolled(CHUNK, to_integer), unrolled(CHUNK, to_size)


def _residues(p: int):
    """``write(d, at, x, lows, words)``: residues modulo `p` of a chunk, whose integers are `x`, their lowest
    32 bits `lows`.
    """
    real, fma, low_word, low_bytes = ptx.types.float64, ptx.fma, ptx.low_word, ptx.low_bytes
    INVERSE, PLAIN, store, int64 = 1.0 / p, p == 256, ptx.store_global_vector(4), ptx.types.int64

    @device_function
    def residue(x, low):
        """Return the residue in the lowest byte: the lowest bits of the quotient decide it."""
        if PLAIN:
            return int64(low)
        return int64(low) - int64(low_word(fma(x, real(INVERSE), real(MAGIC)))) * p

    @device_function
    def four(j, x, lows, words):
        i = 4 * j
        words[j] = low_bytes(
            residue(x[i], lows[i]),
            residue(x[i + 1], lows[i + 1]),
            residue(x[i + 2], lows[i + 2]),
            residue(x[i + 3], lows[i + 3]),
        )

    all_fours = unrolled(CHUNK // 4, four)

    @device_function
    def write(d, at, x, lows, words):
        all_fours(0, x, lows, words)
        store(d, at, words, 0, True)

    return write


def _digits(config: PackResidues):
    """``write(d, row, row_in_panel, panel, stage, stages, chunk, x, words, digit)``: the digits of a chunk in
    the sample, those of sizes, rounded down, to their image; and after the last stage zeros next to them.
    """
    real, int32, int64, fma = ptx.types.float64, ptx.types.int32, ptx.types.int64, ptx.fma
    low_bytes, store, zero, quotient = ptx.low_bytes, ptx.store_global_vector(4), ptx.fill(4), ptx.quotient
    SAMPLE, SHARE, BLK = config.sample, CHUNKS // config.sample, config.BLK

    @device_function
    def digit_of(x, digit):
        """Return the digit in the lowest byte."""
        return fma(abs(x), digit, real(-0.5)) + real(MAGIC)

    @device_function
    def four(j, x, words, digit):
        i = 4 * j
        words[j] = low_bytes(
            digit_of(x[i], digit),
            digit_of(x[i + 1], digit),
            digit_of(x[i + 2], digit),
            digit_of(x[i + 3], digit),
        )

    all_fours = unrolled(CHUNK // 4, four)

    @device_function
    def write(d, row, panel, stage, stages, chunk, x, words, digit):
        turn = int32(stage % SAMPLE)
        line = (
            int64(panel * quotient(int32(stages + (SAMPLE - 1)), SAMPLE) + quotient(stage, SAMPLE)) * BLK
            + row
        )
        if chunk % SAMPLE == turn:
            all_fours(0, x, words, digit)
            to = int32(turn * SHARE + chunk // SAMPLE)
            store(d, line * STAGE_WORDS_OF_ROW + (to ^ row % 8) * 4, words, 0, True)
        if (stage == stages - 1) & (chunk >= (turn + 1) * SHARE):
            zero(words, int32(0))
            store(d, line * STAGE_WORDS_OF_ROW + (chunk ^ row % 8) * 4, words, 0, True)

    return write


def _rows_of_use(config: PackResidues):
    """``serve(facts, rows, lane)``: whether any row of a block has a share of the error that is a number:
    all tiles with others are left to FMAs; for a warp.
    """
    int32, int64, real, offset = ptx.types.int32, ptx.types.int64, ptx.types.float64, ptx.offset
    ROWS, INFINITE, first_lane = config.rows, float("inf"), ptx.first_lane

    @device_function
    def serve(facts, rows, lane):
        found, sizes = int32(0), offset(facts, SIZE * rows)
        for row in range(lane, ROWS, 32):
            found |= int32(sizes[int64(row)] < real(INFINITE))
        return first_lane(found != 0) >= 0

    return serve


def _build(config: PackResidues):
    real, int32, int64, quotient = ptx.types.float64, ptx.types.int32, ptx.types.int64, ptx.quotient
    BLK, ROWS, UNITS, offset = config.BLK, config.rows, config.BLK // config.rows, ptx.offset
    shared_pointer, grid_dependency_wait = ptx.shared_pointer, ptx.grid_dependency_wait
    stage_elements, (to_integers, to_sizes) = _stager(config), _integer_maker(config)
    serve = _rows_of_use(config)
    write_digits, PLANES, PARTS = _digits(config), config.moduli, parts_of(config.dtype_facts)
    REALS = config.dtype_facts.reals_per_element

    def of_plane(number, write):
        @device_function
        def write_plane(d, plane_words, x, lows, words):
            write(d, number * plane_words, x, lows, words)

        return write_plane

    write_all = in_order([of_plane(i, _residues(p)) for i, p in enumerate(MODULI[:PLANES])])

    def pack_residues(
        a, b, of_a, of_b, image_a, image_b, extent_a, extent_b, k, options_a, options_b, units_a, rows_a,
        rows_b, stages, begin, first, a_rs, a_ks, b_rs, b_ks,
    ):  # fmt: skip
        # (1) the rows of a stage of a panel of an operand
        t, unit = int32(cuda.threadIdx.x), int32(cuda.blockIdx.x)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        x, lows = cuda.local.array(CHUNK, real), cuda.local.array(CHUNK, int32)
        words = cuda.local.array(4, int32)
        is_a = unit < units_a
        s, facts, d, extent = (a, of_a, image_a, extent_a) if is_a else (b, of_b, image_b, extent_b)
        options, row_step, k_step = (options_a, a_rs, a_ks) if is_a else (options_b, b_rs, b_ks)
        unit = int32(unit if is_a else unit - units_a)
        part, block = int32(unit % UNITS), quotient(unit, UNITS)
        depth = int32((k + (STAGE_K - 1)) // STAGE_K)
        panel = quotient(block, depth)
        stage = int32(block - panel * depth)
        row0, k0 = int32(panel * BLK + part * ROWS), int32(stage * STAGE_K)
        rows_of_all = int64(rows_a if is_a else rows_b)
        grid_dependency_wait()
        if not serve(offset(facts, int64(row0)), rows_of_all, int32(t % 32)):
            return
        s = offset(s, (row0 * row_step + k0 * k_step) * REALS)
        stage_elements(0, shared, x, s, int32(extent - row0), int32(k - k0), row_step, k_step, options, t)
        cuda.syncthreads()

        # (2) a chunk of a row: its integers, and their residues
        row, chunk = int32(t // 32 * 4 + t % 4), int32(t % 32 // 4)
        own, at = offset(facts, int64(row0 + row)), int32(row * ROW_LD + chunk * CHUNK_LD)
        scale = own[SCALE * rows_of_all]
        scale_i = -scale if options & CONJUGATE else scale
        own_row, stage = int32(part * ROWS + row), int32(stage + first)
        panel = int32(panel + quotient(begin, BLK))
        line = (int64(panel) * stages + stage) * BLK + own_row
        line = offset(d, line * STAGE_WORDS_OF_ROW + (chunk ^ row % 8) * 4)
        plane_words = rows_of_all * stages * STAGE_WORDS_OF_ROW
        for part in range(PARTS):
            to_integers(0, shared, at, x, lows, scale, scale_i, part)
            write_all(offset(line, part * PLANES * plane_words), plane_words, x, lows, words)
        to_sizes(0, shared, at, x, scale, scale_i)
        digits = offset(d, PARTS * PLANES * plane_words)
        write_digits(digits, own_row, panel, stage, stages, chunk, x, words, own[DIGIT * rows_of_all])

    return pack_residues
