"""``combine_residues``: C := alpha c + beta C, c the integers that residues of ``gemm_int8`` tell, times the
scales of their rows and columns.

A block takes a part of a tile: one vector of residues of each thread. Tiles with a flag are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.compile import KernelSource
from ....types import DTYPES, Dtype
from .config import VECTOR, GemmInt8
from .image import INVERSE
from .moduli import check_moduli, weights
from .product import is_flagged

__all__ = ["STEM", "CombineResidues", "source"]

STEM = "combine_residues"
PARAMETERS = "wppwp ii q rrrr".replace(" ", "")
MAGIC = 1.5 * 2.0**52  # added to what is below 2^51, it rounds to integers
HALF = VECTOR // 2  # residues of a vector that a thread holds at a time: two rows of some columns
COLUMNS = HALF // 2  # of C of them


@dataclass(frozen=True)
class CombineResidues:
    """Config of one `combine_residues` kernel.

    Attributes
    ----------
    dtype : str
        'd'.
    moduli : int
        Moduli, of which there are residues.
    BLK_M, BLK_N, PANEL : int
        As `gemm_int8` has them.
    """

    dtype: str = "d"
    moduli: int = 14
    BLK_M: int = 128
    BLK_N: int = 256
    PANEL: int = 128

    STEM: ClassVar[str] = STEM
    shared_bytes: ClassVar[int] = 0

    def __post_init__(self):
        check_moduli(self.dtype, self.moduli)
        require(self.BLK_M in (64, 128), "warpgroups", "BLK_M in (64, 128)", BLK_M=self.BLK_M)
        require(
            self.BLK_N % 32 == 0 and 32 <= self.BLK_N <= 256,
            "vectors",
            "BLK_N % 32 == 0 and 32 <= BLK_N <= 256",
            BLK_N=self.BLK_N,
        )

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        return 2 * self.BLK_M

    @property
    def flags_of_tile(self) -> int:
        return self.threads // 32

    @property
    def vectors(self) -> int:
        return self.BLK_N // (2 * VECTOR)

    def serving(self, config: GemmInt8) -> Self:
        """The same Config after a product."""
        return replace(self, moduli=config.moduli, BLK_M=config.BLK_M, BLK_N=config.BLK_N, PANEL=config.PANEL)

    def grid(self, m: int, n: int) -> int:
        return -(-m // self.BLK_M) * -(-n // self.BLK_N) * self.vectors


def source(config: CombineResidues) -> KernelSource:
    """The kernel of `config`.

    Its parameters are pointers to the residues, to what `row_scales` has found of A and of B, to the flags of
    tiles, and to C; int32 m, n; int64 leading stride of C (elements); alpha and beta (real, imaginary part).
    Grid: x ``config.grid(m, n)``.
    """
    return KernelSource.of(config, PARAMETERS, partial(_build, config), min_blocks=2)


def _adder(weight: tuple[float, ...]):
    """``add(0, words, firsts, seconds, thirds)``: the parts of w r, of half a vector of r, to sums."""
    real, int32, fma, as_fraction = ptx.types.float64, ptx.types.int32, ptx.fma, ptx.byte_as_fraction
    FIRST, SECOND, THIRD = weight

    @device_function
    def add_one(e, words, firsts, seconds, thirds):
        r = as_fraction(words[e // 4], int32(e % 4))
        firsts[e] = fma(r, real(FIRST), firsts[e])
        seconds[e] = fma(r, real(SECOND), seconds[e])
        thirds[e] = fma(r, real(THIRD), thirds[e])

    return unrolled(HALF, add_one)


def _combiner(config: CombineResidues):
    """``combine(residues, words, firsts, seconds, thirds, step)``: the integers of half a vector of a thread,
    to `firsts`; residues of a modulus are `step` words after those of the one before.
    """
    real, fma, load_two, fill = ptx.types.float64, ptx.fma, ptx.load_global(2, False), ptx.fill(HALF)
    of = weights(config.moduli)
    INVERSE_P, (FIRST, SECOND, THIRD), (BEGIN, BEGIN_2, BEGIN_3) = of.inverse, of.product, of.first

    def of_modulus(number, add):
        @device_function
        def add_modulus(residues, words, firsts, seconds, thirds, step):
            load_two(words, 0, residues, number * step, True)
            add(0, words, firsts, seconds, thirds)

        return add_modulus

    add_all = in_order([of_modulus(i, _adder(weight)) for i, weight in enumerate(of.parts)])

    @device_function
    def reduce(e, firsts, seconds, thirds):
        """To the nearest to zero of what differs by P: parts are exact, and their sum rounded once."""
        times = fma(firsts[e], real(INVERSE_P), real(MAGIC)) - real(MAGIC)
        first = fma(times, real(-FIRST), firsts[e])
        second = fma(times, real(-SECOND), seconds[e])
        upper = first + second
        part = upper - first
        lost = (first - (upper - part)) + (second - part)
        firsts[e] = upper + (lost + fma(times, real(-THIRD), thirds[e]))

    reduce_all = unrolled(HALF, reduce)

    @device_function
    def combine(residues, words, firsts, seconds, thirds, step):
        fill(firsts, real(BEGIN))
        fill(seconds, real(BEGIN_2))
        fill(thirds, real(BEGIN_3))
        add_all(residues, words, firsts, seconds, thirds, step)
        reduce_all(0, firsts, seconds, thirds)

    return combine


def _writer():
    """``read(0, c, old, ldc, rows, cols, of_b, scales, is_read)``: what C holds of half a vector, if it
    `is_read`, and the scales of its columns, all under way at once; ``write(0, c, found, old, ldc, rows,
    cols, scales, scale, scale_8, alpha, beta)``. The first element is at `c`, `rows` and `cols` from the end.
    """
    load, store = ptx.load_global(1, False), ptx.store_global

    @device_function
    def read_column(j, c, old, ldc, rows, cols, of_b, scales, is_read):
        e, col = j // 2 * 4 + j % 2, j // 2 * 8 + j % 2
        load(scales, j, of_b, col, col < cols)
        load(old, e, c, col * ldc, is_read & (rows > 0) & (col < cols))
        load(old, e + 2, c, col * ldc + 8, is_read & (rows > 8) & (col < cols))

    @device_function
    def write_column(j, c, found, old, ldc, rows, cols, scales, scale, scale_8, alpha, beta):
        e, col = j // 2 * 4 + j % 2, j // 2 * 8 + j % 2
        value = alpha * (found[e] * scale * scales[j]) + beta * old[e]
        value_8 = alpha * (found[e + 2] * scale_8 * scales[j]) + beta * old[e + 2]
        store(c, col * ldc, value, (rows > 0) & (col < cols))
        store(c, col * ldc + 8, value_8, (rows > 8) & (col < cols))

    return unrolled(COLUMNS, read_column), unrolled(COLUMNS, write_column)


def _build(config: CombineResidues):
    real, int32, int64, quotient = ptx.types.float64, ptx.types.int32, ptx.types.int64, ptx.quotient
    BLK_M, BLK_N, PANEL, VECTORS = config.BLK_M, config.BLK_N, config.PANEL, config.vectors
    THREADS, WORDS, offset = config.threads, config.BLK_M * config.BLK_N // 4, ptx.offset
    flagged, combine, (read, write) = is_flagged(config), _combiner(config), _writer()
    grid_dependency_wait = ptx.grid_dependency_wait

    @device_function
    def rows_of(extent):
        return int64(quotient(int32(extent + (PANEL - 1)), PANEL)) * PANEL

    def combine_residues(residues, of_a, of_b, flags, c, m, n, ldc, alpha, alpha_i, beta, beta_i):
        # (1) the part of a tile
        t, block = int32(cuda.threadIdx.x), int32(cuda.blockIdx.x)
        tile = quotient(block, VECTORS)
        vector, across = int32(block - tile * VECTORS), quotient(int32(n + (BLK_N - 1)), BLK_N)
        down = quotient(tile, across)
        row = int32(down * BLK_M + t // 32 * 16 + t % 32 // 4)
        col = int32((tile - down * across) * BLK_N + vector * (4 * 2 * COLUMNS) + t % 4 * 2)
        firsts, seconds = cuda.local.array(HALF, real), cuda.local.array(HALF, real)
        thirds, old = cuda.local.array(HALF, real), cuda.local.array(HALF, real)
        scales = cuda.local.array(COLUMNS, real)
        words = cuda.local.array(2, int32)
        grid_dependency_wait()

        # (2) its integers, and C
        if not flagged(flags, tile, t % 32):
            step = int64(quotient(int32(cuda.gridDim.x), VECTORS)) * WORDS
            mine = offset(residues, int64(tile) * WORDS + (vector * THREADS + t) * 4)
            scales_a, scales_b = offset(of_a, INVERSE * rows_of(m)), offset(of_b, INVERSE * rows_of(n))
            scale, scale_8 = scales_a[min(row, m - 1)], scales_a[min(row + 8, m - 1)]
            for _ in range(2):
                combine(mine, words, firsts, seconds, thirds, step)
                here, of_cols = offset(c, int64(col) * ldc + row), offset(scales_b, int64(col))
                rows, cols = int32(m - row), int32(n - col)
                read(0, here, old, ldc, rows, cols, of_cols, scales, beta != real(0))
                write(0, here, firsts, old, ldc, rows, cols, scales, scale, scale_8, alpha, beta)
                mine, col = offset(mine, 2), int32(col + 4 * COLUMNS)

    return combine_residues
