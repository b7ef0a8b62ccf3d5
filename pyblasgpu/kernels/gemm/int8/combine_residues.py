"""``combine_residues``: C := alpha c + beta C, c the integers that residues of ``gemm_int8`` represent, times
the scales of their rows and columns.

A block takes a part of a tile: one vector of residues of each thread. Tiles with a flag are left alone.
Of complex matrices P, Q and R are the products of real parts, of imaginary parts and of the sums of both:
P - Q is the real part of c, R - P - Q the imaginary part. Residues are subtracted, so both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ....types import Region
from ...common.kernel_config import KernelConfig
from ...common.parameters import parameters
from ...common.region import contains
from ...common.tile_schedule import tile_count
from ...common.tile_scheduler import tile_origins
from .config import VECTOR, GemmInt8
from .image import INVERSE, parts_of
from .moduli import ServesFactors, check_moduli, weights
from .product import is_flagged
from .tile_slots import tile_slots

__all__ = ["STEM", "CombineResidues", "source"]

STEM = "combine_residues"
PARAMETERS = parameters(
    "int32 pointer: residues",
    "pointer: of_a, of_b",
    "int32 pointer: flags",
    "pointer: c",
    "int32: m, n, options, rows_a, rows_b",
    "int64: ldc",
    "real: alpha, alpha_i, beta, beta_i",
)
MAGIC = 1.5 * 2.0**52  # added to what is below 2^51, it rounds to integers
REALS_HELD = 8  # of C, that a thread makes at a time


@dataclass(frozen=True)
class CombineResidues(ServesFactors, KernelConfig):
    """Config of one `combine_residues` kernel.

    Attributes
    ----------
    dtype : str
        'd' or 'z'.
    moduli : int
        Moduli, of which there are residues.
    BLK_M, BLK_N, PANEL : int
        Tile and panel of `gemm_int8`.
    """

    dtype: str = "d"
    moduli: int = 14
    BLK_M: int = 128
    BLK_N: int = 256
    PANEL: int = 128

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        check_moduli(self.dtype, self.moduli)
        require(self.BLK_M in (64, 128), "warpgroups", "BLK_M in (64, 128)", BLK_M=self.BLK_M)
        require(
            self.BLK_N % 32 == 0 and 32 <= self.BLK_N <= 256,
            "vectors",
            "BLK_N % 32 == 0 and 32 <= BLK_N <= 256",
            BLK_N=self.BLK_N,
        )

    @property
    def threads(self) -> int:
        return 2 * self.BLK_M

    @property
    def min_blocks(self) -> int:
        return 2

    @property
    def flags_of_tile(self) -> int:
        return self.threads // 32

    @property
    def vectors(self) -> int:
        return self.BLK_N // (2 * VECTOR)

    @property
    def held(self) -> int:
        """Elements of a vector that a thread makes at a time: two rows of some columns."""
        return REALS_HELD // self.dtype_facts.reals_per_element

    @property
    def loaded(self) -> int:
        """Moduli whose residues a thread loads at a time."""
        return -(-self.moduli // 2)

    def specialize(self, config: GemmInt8) -> Self:
        """Return the Config for the residues of a product by `config`."""
        return replace(self, moduli=config.moduli, BLK_M=config.BLK_M, BLK_N=config.BLK_N, PANEL=config.PANEL)

    def grid(self, m: int, n: int, region: Region = Region.ALL) -> int:
        return tile_count(self.BLK_M, self.BLK_N, m, n, region) * self.vectors


def source(config: CombineResidues) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    residues: int32 pointer, the residues
    of_a, of_b: pointer, the facts of A's rows and of B's columns by `row_scales`
    flags: int32 pointer, the flags of tiles
    c: pointer, C
    m, n: int32, rows and columns of C
    options: int32, triangle of C
    rows_a, rows_b: int32, rows of the arrays of facts
    ldc: int64, leading dimension of C (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x ``config.grid(m, n, region)``.
    """
    return KernelSource.of(config, PARAMETERS, partial(_build, config))


def _fraction(config: CombineResidues, number: int):
    """``fraction(words, i)``: of the i-th real that a thread makes 1 + r / 256 from its residue by a modulus,
    whose words are those of a `number`, or of a part of a complex number r / 256, above -2 and below 1, from
    those of three images.
    """
    int32, real, as_fraction = ptx.types.int32, ptx.types.float64, ptx.byte_as_fraction
    COMPLEX, WORDS = config.dtype_facts.is_complex, config.held // 4
    BEGIN = number * parts_of(config.dtype_facts) * WORDS

    @device_function
    def of_image(words, image, e):
        return as_fraction(words[BEGIN + image * WORDS + e // 4], int32(e % 4))

    @device_function
    def fraction(words, i):
        if COMPLEX:
            e = i // 2
            if i % 2 == 0:
                return of_image(words, 0, e) - of_image(words, 1, e)
            of_both = of_image(words, 0, e) + (of_image(words, 1, e) - real(1))
            return of_image(words, 2, e) - of_both
        return of_image(words, 0, i)

    return fraction


def _adder(weight: tuple[float, ...], fraction):
    """``add(0, words, firsts, seconds, thirds)``: the parts of w r, of all reals, to sums."""
    real, fma = ptx.types.float64, ptx.fma
    FIRST, SECOND, THIRD = weight

    @device_function
    def add_one(i, words, firsts, seconds, thirds):
        r = fraction(words, i)
        firsts[i] = fma(r, real(FIRST), firsts[i])
        seconds[i] = fma(r, real(SECOND), seconds[i])
        thirds[i] = fma(r, real(THIRD), thirds[i])

    return unrolled(REALS_HELD, add_one)


def _reducer(config: CombineResidues):
    """``reduce(0, firsts, seconds, thirds)``: to the nearest to zero of what differs by P, in `firsts`: parts
    are exact, and their sum rounded once.
    """
    real, fma, of = ptx.types.float64, ptx.fma, weights(config.moduli)
    INVERSE_P, (FIRST, SECOND, THIRD) = of.inverse, of.product

    @device_function
    def reduce(e, firsts, seconds, thirds):
        times = fma(firsts[e], real(INVERSE_P), real(MAGIC)) - real(MAGIC)
        first = fma(times, real(-FIRST), firsts[e])
        second = fma(times, real(-SECOND), seconds[e])
        upper = first + second
        part = upper - first
        lost = (first - (upper - part)) + (second - part)
        firsts[e] = upper + (lost + fma(times, real(-THIRD), thirds[e]))

    return unrolled(REALS_HELD, reduce)


def _combiner(config: CombineResidues):
    """``combine(residues, words, firsts, seconds, thirds, step)``: the integers of all that a thread makes at
    a time, to `firsts`; an image of residues is `step` words after the one before.
    """
    WORDS, MODULI, PARTS = config.held // 4, config.moduli, parts_of(config.dtype_facts)
    real, load_words, fill = ptx.types.float64, ptx.load_global(WORDS, False), ptx.fill(REALS_HELD)
    of, reduce_all, LOADED = weights(MODULI), _reducer(config), config.loaded
    BEGIN, BEGIN_2, BEGIN_3 = of.first if PARTS == 1 else (0.0, 0.0, 0.0)

    @device_function
    def load_image(i, residues, words, first, step):
        number, part = i // PARTS, i % PARTS
        load_words(words, i * WORDS, residues, (part * MODULI + first + number) * step, True)

    def of_some(first, count):
        load_all = unrolled(count * PARTS, load_image)
        adders = [_adder(of.parts[first + i], _fraction(config, i)) for i in range(count)]

        def of_modulus(add):
            @device_function
            def add_modulus(words, firsts, seconds, thirds):
                add(0, words, firsts, seconds, thirds)

            return add_modulus

        add_all = in_order([of_modulus(add) for add in adders])

        @device_function
        def add_some(residues, words, firsts, seconds, thirds, step):
            # all loads are under way before the first sum
            load_all(0, residues, words, first, step)
            add_all(words, firsts, seconds, thirds)

        return add_some

    add_all = in_order([of_some(first, min(LOADED, MODULI - first)) for first in range(0, MODULI, LOADED)])

    @device_function
    def combine(residues, words, firsts, seconds, thirds, step):
        fill(firsts, real(BEGIN))
        fill(seconds, real(BEGIN_2))
        fill(thirds, real(BEGIN_3))
        add_all(residues, words, firsts, seconds, thirds, step)
        reduce_all(0, firsts, seconds, thirds)

    return combine


def _writer(config: CombineResidues):
    """``read(0, c, old, ldc, place, of_b, scales, is_read)``: what C holds of all that a thread makes at a
    time, if it `is_read`, and the scales of its columns, all under way at once; ``write(0, c, values, old,
    ldc, place, scales, scale, scale_8, scalars)``. The first element is at `c`; its `place` are the rows and
    columns that are left, its row less its column, and the options, which select the region.
    """
    load, store, int32 = ptx.load_global(1, False), ptx.store_global, ptx.types.int32
    COMPLEX, REALS = config.dtype_facts.is_complex, config.dtype_facts.reals_per_element
    in_region = contains(None)

    @device_function
    def is_meant(row, col, place):
        rows, cols, shift, options = place
        return (rows > row) & (col < cols) & in_region(int32(row), int32(col), shift, options)

    @device_function
    def read_element(e, row, col, c, old, ldc, place, is_read):
        ok = is_read & is_meant(row, col, place)
        load(old, e * REALS, c, (col * ldc + row) * REALS, ok)
        if COMPLEX:
            load(old, e * REALS + 1, c, (col * ldc + row) * REALS + 1, ok)

    @device_function
    def read_column(j, c, old, ldc, place, of_b, scales, is_read):
        e, col = j // 2 * 4 + j % 2, int32(j // 2 * 8 + j % 2)
        load(scales, j, of_b, col, col < place[1])
        read_element(e, 0, col, c, old, ldc, place, is_read)
        read_element(e + 2, 8, col, c, old, ldc, place, is_read)

    @device_function
    def write_element(e, row, col, c, values, old, ldc, place, scale, scale_b, scalars):
        alpha, alpha_i, beta, beta_i = scalars
        at, ok = (col * ldc + row) * REALS, is_meant(row, col, place)
        if COMPLEX:
            re, im = values[2 * e] * scale * scale_b, values[2 * e + 1] * scale * scale_b
            old_re, old_im = old[2 * e], old[2 * e + 1]
            store(c, at, (alpha * re - alpha_i * im) + (beta * old_re - beta_i * old_im), ok)
            store(c, at + 1, (alpha * im + alpha_i * re) + (beta * old_im + beta_i * old_re), ok)
        else:
            store(c, at, alpha * (values[e] * scale * scale_b) + beta * old[e], ok)

    @device_function
    def write_column(j, c, values, old, ldc, place, scales, scale, scale_8, scalars):
        e, col = j // 2 * 4 + j % 2, int32(j // 2 * 8 + j % 2)
        write_element(e, 0, col, c, values, old, ldc, place, scale, scales[j], scalars)
        write_element(e + 2, 8, col, c, values, old, ldc, place, scale_8, scales[j], scalars)

    columns = config.held // 2
    return unrolled(columns, read_column), unrolled(columns, write_column)


def _build(config: CombineResidues):
    real, int32, int64, quotient = ptx.types.float64, ptx.types.int32, ptx.types.int64, ptx.quotient
    BLK_M, BLK_N, VECTORS, THREADS = config.BLK_M, config.BLK_N, config.vectors, config.threads
    TILE_WORDS, offset = config.BLK_M * config.BLK_N // 4, ptx.offset
    tile_origin, slot = tile_origins(BLK_M, BLK_N, None), tile_slots(BLK_M, BLK_N)
    flagged, combine, (read, write) = is_flagged(config), _combiner(config), _writer(config)
    grid_dependency_wait, REALS = ptx.grid_dependency_wait, config.dtype_facts.reals_per_element
    HELD, WORDS, COLUMNS = config.held, config.held // 4, config.held // 2
    ALL_WORDS = WORDS * parts_of(config.dtype_facts) * config.loaded

    def combine_residues(
        residues, of_a, of_b, flags, c, m, n, options, rows_a, rows_b, ldc, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the part of a tile
        t, block = int32(cuda.threadIdx.x), int32(cuda.blockIdx.x)
        tile = quotient(block, VECTORS)
        vector = int32(block - tile * VECTORS)
        down, across = quotient(int32(m + (BLK_M - 1)), BLK_M), quotient(int32(n + (BLK_N - 1)), BLK_N)
        row0, col0 = tile_origin(tile, down, across, options)
        tile = slot(row0, col0, m, n, options)
        row = int32(row0 + t // 32 * 16 + t % 32 // 4)
        col = int32(col0 + vector * (2 * VECTOR) + t % 4 * 2)
        firsts, seconds = cuda.local.array(REALS_HELD, real), cuda.local.array(REALS_HELD, real)
        thirds, old = cuda.local.array(REALS_HELD, real), cuda.local.array(REALS_HELD, real)
        scales = cuda.local.array(COLUMNS, real)
        words = cuda.local.array(ALL_WORDS, int32)
        reads_c, scalars = (beta != real(0)) | (beta_i != real(0)), (alpha, alpha_i, beta, beta_i)
        grid_dependency_wait()

        # (2) its integers, and C; a triangle's squares of tiles may reach beyond the last row and column
        if (row0 < m) & (col0 < n) and not flagged(flags, tile, t % 32):
            step = int64(quotient(int32(cuda.gridDim.x), VECTORS)) * TILE_WORDS
            mine = offset(residues, int64(tile) * TILE_WORDS + (vector * THREADS + t) * 4)
            scales_a, scales_b = offset(of_a, int64(INVERSE) * rows_a), offset(of_b, int64(INVERSE) * rows_b)
            scale, scale_8 = scales_a[min(row, m - 1)], scales_a[min(row + 8, m - 1)]
            for _ in range(VECTOR // HELD):
                here, of_cols = offset(c, (int64(col) * ldc + row) * REALS), offset(scales_b, int64(col))
                place = int32(m - row), int32(n - col), int32(row - col), options
                read(0, here, old, ldc, place, of_cols, scales, reads_c)
                combine(mine, words, firsts, seconds, thirds, step)
                write(0, here, firsts, old, ldc, place, scales, scale, scale_8, scalars)
                mine, col = offset(mine, WORDS), int32(col + 4 * COLUMNS)

    return combine_residues
