"""``copy_scaled``: D := alpha * op(S), any strides on both sides; with D = S it scales in place.

Packs operands without a unit stride, unpacks results, scales C when a product vanishes, and fills with
zeros (alpha = 0 reads nothing). Of a square it can do a triangle alone: then nothing of the other one is read
or written. Complex numbers that are aligned as reals alone are accessed real by real.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..errors import require
from ..gpu.backend import cuda, device_function, ptx, unrolled
from ..gpu.compile import KernelSource
from ..types import DTYPES, Dtype
from .part import check_part, inside, is_hermitian, met

STEM = "copy_scaled"
RESIDENT = 1024  # threads of a multiprocessor, which all wait for memory
PARAMETERS = "pp ii qqqq qq rr".replace(" ", "")


@dataclass(frozen=True)
class CopyScaled:
    """Config of one `copy_scaled` kernel.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    BLK_M, BLK_N : int
        Elements a block of threads copies, along rows and columns.
    DIM_X, DIM_Y : int
        Threads along rows, columns.
    """

    dtype: str
    BLK_M: int = 32
    BLK_N: int = 32
    DIM_X: int = 32
    DIM_Y: int = 8

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        m, n, x, y = self.BLK_M, self.BLK_N, self.DIM_X, self.DIM_Y
        require(self.threads <= 1024, "max_threads", "DIM_X * DIM_Y <= 1024", DIM_X=x, DIM_Y=y)
        require(self.threads % 32 == 0, "whole_warps", "DIM_X * DIM_Y % 32 == 0", DIM_X=x, DIM_Y=y)
        require(m % x == 0 and n % y == 0, "tile", "BLK_M % DIM_X == 0 and BLK_N % DIM_Y == 0",
                BLK_M=m, BLK_N=n, DIM_X=x, DIM_Y=y)  # fmt: skip
        require(m % y == 0 and n % x == 0, "tile_turned", "BLK_M % DIM_Y == 0 and BLK_N % DIM_X == 0",
                BLK_M=m, BLK_N=n, DIM_X=x, DIM_Y=y)  # fmt: skip

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y

    @property
    def per_thread(self) -> int:
        """Elements that a thread copies."""
        return self.BLK_M * self.BLK_N // self.threads

    @property
    def shared_bytes(self) -> int:
        """A tile, its rows padded by one element against bank conflicts."""
        return self.BLK_M * (self.BLK_N + 1) * self.dtype_facts.itemsize

    def grid(self, rows: int, cols: int) -> int:
        """Blocks along x for `rows` by `cols` elements."""
        return -(-rows // self.BLK_M) * -(-cols // self.BLK_N)


def source(
    config: CopyScaled,
    conj: bool,
    zero: bool,
    read_by_rows: bool,
    write_by_rows: bool,
    part: str = "all",
    mirrored: bool = False,
) -> KernelSource:
    """The kernel of `config`.

    Parameters
    ----------
    config : CopyScaled
    conj : bool
        Conjugate what is read.
    zero : bool
        alpha is zero: S is not read.
    read_by_rows, write_by_rows : bool
        Whether neighbours in S's, D's memory are neighbouring rows (else columns).
    part : str
        One of `part.PARTS`. With a Hermitian one alpha is real.
    mirrored : bool
        Above the diagonal D becomes what it is below, conjugated in a Hermitian one; `part` is 'lower' or
        'hermitian'.

    Returns
    -------
    KernelSource
        Its parameters are pointers to S, D; int32 rows, columns; int64 row and column stride of S, of D,
        batch strides of S, D (elements); alpha (real, imaginary part). Grid: x ``config.grid(rows,
        cols)``, z the batch.
    """
    check_part(part)
    if mirrored:
        check_part(part, ("lower", "hermitian"))
    flags = (("conj", conj), ("mirrored", mirrored), ("part", part), ("read_by_rows", read_by_rows),
             ("write_by_rows", write_by_rows), ("zero", zero))  # fmt: skip
    return KernelSource(
        name=STEM,
        config=config,
        flags=flags,
        real=config.dtype_facts.real,
        parameters=PARAMETERS,
        threads=config.threads,
        min_blocks=max(RESIDENT // config.threads, 1),
        shared_bytes=config.shared_bytes,
        build=lambda: _build(config, conj, zero, read_by_rows, write_by_rows, part, mirrored),
    )


def _places(config: CopyScaled, by_rows: bool):
    """``place(x, t)``: row and column in the tile of element `x` of thread `t`; neighbours in memory, rows or
    columns, have neighbouring threads.
    """
    FAST, THREADS = (config.BLK_M if by_rows else config.BLK_N), config.threads

    @device_function
    def place(x, t):
        fast, slow = (t + x * THREADS) % FAST, (t + x * THREADS) // FAST
        return (fast, slow) if by_rows else (slow, fast)

    return place


def _reader(config: CopyScaled, by_rows: bool, wanted, width: int):
    """``read(0, values, s, ...)``: a thread's elements of S, `width` reals at a time, zeros for others.

    All of them are asked for before any is used.
    """
    PARTS, place, load = config.dtype_facts.parts, _places(config, by_rows), ptx.load_global(width, False)

    @device_function
    def read(x, values, s, row_stride, col_stride, t, rows, cols, shift):
        i, j = place(x, t)
        ok, at = wanted(i, j, rows, cols, shift), (i * row_stride + j * col_stride) * PARTS
        for part in range(0, PARTS, width):
            load(values, x * PARTS + part, s, at + part, ok)

    return unrolled(config.per_thread, read)


def _scaler(config: CopyScaled, by_rows: bool, conj: bool, real_diagonal: bool):
    """``scale(0, tile, values, t, shift, alpha, alpha_i)``: what was read, times alpha, into the tile."""
    facts = config.dtype_facts
    PARTS, ROW, place = facts.parts, (config.BLK_N + 1) * facts.parts, _places(config, by_rows)
    real, COMPLEX, SIGN = ptx.REALS[facts.real], facts.is_complex, -1 if conj else 1

    @device_function
    def scale(x, tile, values, t, shift, alpha, alpha_i):
        i, j = place(x, t)
        to, re = i * ROW + j * PARTS, values[x * PARTS]
        if not COMPLEX:
            tile[to] = alpha * re
        elif real_diagonal and i + shift == j:
            tile[to], tile[to + 1] = alpha * re, real(0)
        else:
            im = real(SIGN) * values[x * PARTS + 1]
            tile[to], tile[to + 1] = alpha * re - alpha_i * im, alpha * im + alpha_i * re

    return unrolled(config.per_thread, scale)


def _writer(
    config: CopyScaled, by_rows: bool, wanted, width: int, zero: bool, sign: int, mirrored: bool = False
):
    """``write(0, d, tile, values, ...)``: a thread's elements of D, `width` reals at a time, zeros if `zero`.

    `mirrored` ones lie across the diagonal, their imaginary parts times `sign`.
    """
    facts = config.dtype_facts
    PARTS, ROW, place = facts.parts, (config.BLK_N + 1) * facts.parts, _places(config, by_rows != mirrored)
    real, COMPLEX, store = ptx.REALS[facts.real], facts.is_complex, ptx.store_global_vector(width)

    @device_function
    def write(x, d, tile, values, row_stride, col_stride, t, rows, cols, shift):
        i, j = place(x, t)
        ok, at = wanted(i, j, rows, cols, shift), (i * row_stride + j * col_stride) * PARTS
        if mirrored:
            ok, at = ok & (i + shift > j), (j * row_stride + i * col_stride) * PARTS
        for part in range(PARTS):
            values[part] = real(0) if zero else tile[i * ROW + j * PARTS + part]
        if COMPLEX and sign < 0:
            values[1] = -values[1]
        for part in range(0, PARTS, width):
            store(d, at + part, values, part, ok)

    return unrolled(config.per_thread, write)


def _build(
    config: CopyScaled,
    conj: bool,
    zero: bool,
    read_by_rows: bool,
    write_by_rows: bool,
    part: str,
    mirrored: bool,
):
    facts = config.dtype_facts
    real, PARTS = ptx.REALS[facts.real], facts.parts
    int64, offset, shared_pointer, in_turn = ptx.types.int64, ptx.offset, ptx.shared_pointer, ptx.in_turn
    is_whole = ptx.is_aligned(PARTS)
    BLK_M, BLK_N, VALUES = config.BLK_M, config.BLK_N, config.per_thread * PARTS
    REAL_DIAGONAL, is_met, of_part = is_hermitian(part), met(part, BLK_M, BLK_N), inside(part)

    @device_function
    def wanted(i, j, rows, cols, shift):
        return (i < rows) & (j < cols) & of_part(i, j, shift)

    # complex numbers at once, or real by real where they lie so
    read, read_parts = (_reader(config, read_by_rows, wanted, width) for width in (PARTS, 1))
    write, write_parts = (_writer(config, write_by_rows, wanted, width, zero, 1) for width in (PARTS, 1))
    mirror = _writer(config, write_by_rows, wanted, 1, zero, -1 if REAL_DIAGONAL else 1, mirrored=True)
    scale = _scaler(config, read_by_rows, conj, REAL_DIAGONAL)

    def copy_scaled(s, d, m, n, s_rs, s_cs, d_rs, d_cs, stride_s, stride_d, alpha, alpha_i):
        # (1) the tile of this block
        t = cuda.threadIdx.x
        tiles_m = (m + BLK_M - 1) // BLK_M
        row0, col0 = int64(cuda.blockIdx.x % tiles_m) * BLK_M, int64(cuda.blockIdx.x // tiles_m) * BLK_N
        batch, rows, cols, shift = int64(cuda.blockIdx.z), m - row0, n - col0, row0 - col0
        in_turn()  # also where nothing is to do: the next launch takes it that all before this one are over
        if not is_met(shift):
            return
        d = offset(d, batch * stride_d * PARTS)
        tile = shared_pointer(cuda.shared.array(0, real, alignment=16))
        values = cuda.local.array(VALUES, real)

        # (2) read it in the order of S, (3) write it in the order of D
        if not zero:
            s = offset(s, (batch * stride_s + row0 * s_rs + col0 * s_cs) * PARTS)
            if is_whole(s):
                read(0, values, s, s_rs, s_cs, t, rows, cols, shift)
            else:
                read_parts(0, values, s, s_rs, s_cs, t, rows, cols, shift)
            scale(0, tile, values, t, shift, alpha, alpha_i)
            cuda.syncthreads()
        there = offset(d, (row0 * d_rs + col0 * d_cs) * PARTS)
        if is_whole(d):
            write(0, there, tile, values, d_rs, d_cs, t, rows, cols, shift)
        else:
            write_parts(0, there, tile, values, d_rs, d_cs, t, rows, cols, shift)
        if mirrored:
            across = offset(d, (col0 * d_rs + row0 * d_cs) * PARTS)
            mirror(0, across, tile, values, d_rs, d_cs, t, rows, cols, shift)

    return copy_scaled
