"""``copy_scaled``: D := alpha * op(S), any strides on both sides; with D = S it scales in place.

Packs operands without a unit stride, unpacks results, scales C when a product vanishes, and fills with
zeros (alpha = 0 reads nothing). Of a square it can do a triangle alone: then nothing of the other one is read
or written. Complex numbers that are aligned as reals alone are accessed real by real.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.compile import KernelSource
from ...types import DTYPES, Dtype
from ..common.options import CONJUGATE, HERMITIAN, MIRRORED, ZERO
from ..common.region import contains, intersects

STEM = "copy_scaled"
SMALL = 32  # rows and columns of small matrices
RESIDENT = 1024  # threads of a multiprocessor, which all wait for memory
PARAMETERS = "pp iii qqqq qq rr".replace(" ", "")


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
        require(
            m % x == 0 and n % y == 0,
            "tile",
            "BLK_M % DIM_X == 0 and BLK_N % DIM_Y == 0",
            BLK_M=m,
            BLK_N=n,
            DIM_X=x,
            DIM_Y=y,
        )
        require(
            m % y == 0 and n % x == 0,
            "tile_turned",
            "BLK_M % DIM_Y == 0 and BLK_N % DIM_X == 0",
            BLK_M=m,
            BLK_N=n,
            DIM_X=x,
            DIM_Y=y,
        )
        require(
            x * y % m == 0 and x * y % n == 0,
            "whole_lines",
            "DIM_X * DIM_Y % BLK_M == 0 and DIM_X * DIM_Y % BLK_N == 0",
            BLK_M=m,
            BLK_N=n,
            DIM_X=x,
            DIM_Y=y,
        )

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y

    def specialize(self, rows: int, cols: int, batch: int) -> CopyScaled:
        """The Config for a batch: blocks of two warps, many of which a multiprocessor holds, where matrices
        are small.
        """
        if batch == 1 or max(rows, cols) > SMALL:
            return self
        return replace(self, BLK_M=16, BLK_N=16, DIM_X=16, DIM_Y=4)

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


def source(config: CopyScaled) -> KernelSource:
    """The kernel of `config`, for matrices by rows and by columns, which it tells by their strides.

    Returns
    -------
    KernelSource
        Its parameters are pointers to S, D; int32 rows, columns and options; int64 row and column stride of
        S, of D, batch strides of S, D (elements); alpha (real, imaginary part). Grid: x ``config.grid(rows,
        cols)``, z the batch.

    Notes
    -----
    The options (`kernels.common.options`) are a region, with whose Hermitian diagonal alpha is real; whether
    S is conjugated; whether D is filled with zeros, and S not read; and whether D is mirrored: above the
    diagonal it becomes what it is below, conjugated in a Hermitian one; the region is a lower triangle then.
    """
    min_blocks = max(RESIDENT // config.threads, 1)
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), min_blocks=min_blocks)


def plain_sources(config: CopyScaled) -> Iterator[KernelSource]:
    """All kernels of a Config."""
    yield source(config)
    yield source(config.specialize(SMALL, SMALL, 2))


def _element_index(config: CopyScaled, by_rows: bool):
    """Which elements a thread has: neighbours in memory, rows or columns, have neighbouring threads.

    Returns ``first(t, row_stride, col_stride)``: row, column and offset of the first one of thread `t`, and
    by how much the next one is further; and by how many rows, and columns.
    """
    FAST, REALS = (config.BLK_M if by_rows else config.BLK_N), config.dtype_facts.reals_per_element
    STEP = config.threads // FAST
    ROWS, COLS = (0, STEP) if by_rows else (STEP, 0)

    @device_function
    def first(t, row_stride, col_stride):
        i, j = (t % FAST, t // FAST) if by_rows else (t // FAST, t % FAST)
        step = STEP * (col_stride if by_rows else row_stride)
        return i, j, (i * row_stride + j * col_stride) * REALS, step * REALS

    return first, ROWS, COLS


def _reader(config: CopyScaled, by_rows: bool, wanted, width: int):
    """``read(s, values, t, ...)``: a thread's elements of S, `width` reals at a time, zeros for others.

    All of them are asked for before any is used.
    """
    REALS, load = config.dtype_facts.reals_per_element, ptx.load_global(width, False)
    first, ROWS, COLS = _element_index(config, by_rows)

    @device_function
    def read_one(x, values, s, at, step, i, j, rows, cols, shift, options):
        ok = wanted(i + x * ROWS, j + x * COLS, rows, cols, shift, options)
        for part in range(0, REALS, width):
            load(values, x * REALS + part, s, at + x * step + part, ok)

    read_all = unrolled(config.per_thread, read_one)

    @device_function
    def read(s, values, t, row_stride, col_stride, rows, cols, shift, options):
        i, j, at, step = first(t, row_stride, col_stride)
        read_all(0, values, s, at, step, i, j, rows, cols, shift, options)

    return read


def _scaler(config: CopyScaled, by_rows: bool):
    """``scale(tile, values, t, shift, options, alpha, alpha_i)``: what was read, times alpha, to the tile."""
    facts = config.dtype_facts
    REALS, ROW = facts.reals_per_element, (config.BLK_N + 1) * facts.reals_per_element
    real, COMPLEX = ptx.REALS[facts.real], facts.is_complex
    first, ROWS, COLS = _element_index(config, by_rows)

    @device_function
    def scale_one(x, tile, values, i, j, shift, options, sign, alpha, alpha_i):
        to, re = (i + x * ROWS) * ROW + (j + x * COLS) * REALS, values[x * REALS]
        if not COMPLEX:
            tile[to] = alpha * re
        elif (options & HERMITIAN != 0) & (i + x * ROWS + shift == j + x * COLS):
            tile[to], tile[to + 1] = alpha * re, real(0)
        else:
            im = sign * values[x * REALS + 1]
            scaled, scaled_i = alpha * re, alpha * im
            if alpha_i != real(0):  # else NaN and Inf stay in their parts
                scaled, scaled_i = scaled - alpha_i * im, scaled_i + alpha_i * re
            tile[to], tile[to + 1] = scaled, scaled_i

    scale_all = unrolled(config.per_thread, scale_one)

    @device_function
    def scale(tile, values, t, shift, options, alpha, alpha_i):
        i, j, _, _ = first(t, ROW, 1)
        sign = real(-1) if options & CONJUGATE else real(1)
        scale_all(0, tile, values, i, j, shift, options, sign, alpha, alpha_i)

    return scale


def _writer(config: CopyScaled, by_rows: bool, wanted, width: int, mirrored: bool = False):
    """``write(d, tile, values, t, ...)``: a thread's elements of D, `width` reals at a time, or zeros.

    `mirrored` ones lie across the diagonal, conjugated if they are Hermitian.
    """
    facts = config.dtype_facts
    REALS, ROW = facts.reals_per_element, (config.BLK_N + 1) * facts.reals_per_element
    real, COMPLEX, store = ptx.REALS[facts.real], facts.is_complex, ptx.store_global_vector(width)
    first, ROWS, COLS = _element_index(config, by_rows != mirrored)

    @device_function
    def write_one(x, d, tile, values, at, step, i, j, rows, cols, shift, options):
        row, col = i + x * ROWS, j + x * COLS
        ok = wanted(row, col, rows, cols, shift, options)
        if mirrored:
            ok = ok & (row + shift > col)
        for part in range(REALS):
            values[part] = real(0) if options & ZERO else tile[row * ROW + col * REALS + part]
        if COMPLEX and mirrored and options & HERMITIAN:
            values[1] = -values[1]
        for part in range(0, REALS, width):
            store(d, at + x * step + part, values, part, ok)

    write_all = unrolled(config.per_thread, write_one)

    @device_function
    def write(d, tile, values, t, row_stride, col_stride, rows, cols, shift, options):
        if mirrored:
            row_stride, col_stride = col_stride, row_stride
        i, j, at, step = first(t, row_stride, col_stride)
        write_all(0, d, tile, values, at, step, i, j, rows, cols, shift, options)

    return write


def _wanted():
    """``wanted(i, j, rows, cols, shift, options)``: whether an element of a tile is to be copied."""
    in_region = contains()

    @device_function
    def wanted(i, j, rows, cols, shift, options):
        return (i < rows) & (j < cols) & in_region(i, j, shift, options)

    return wanted


def _steps(config: CopyScaled, by_rows: bool) -> SimpleNamespace:
    """``fetch(tile, values, s, ...)``: a tile of S, times alpha; ``put(d, across, tile, values, ...)``: to D,
    of matrices `by_rows` or by columns.
    """
    # complex numbers at once, or real by real where they lie so
    REALS, wanted = config.dtype_facts.reals_per_element, _wanted()
    read, read_parts = (_reader(config, by_rows, wanted, width) for width in (REALS, 1))
    write, write_parts = (_writer(config, by_rows, wanted, width) for width in (REALS, 1))
    mirror, scale = _writer(config, by_rows, wanted, 1, mirrored=True), _scaler(config, by_rows)
    is_whole = ptx.is_aligned(REALS)

    @device_function
    def fetch(tile, values, s, t, row_stride, col_stride, rows, cols, shift, options, alpha, alpha_i):
        if is_whole(s):
            read(s, values, t, row_stride, col_stride, rows, cols, shift, options)
        else:
            read_parts(s, values, t, row_stride, col_stride, rows, cols, shift, options)
        scale(tile, values, t, shift, options, alpha, alpha_i)

    @device_function
    def put(d, across, tile, values, t, row_stride, col_stride, rows, cols, shift, options):
        if is_whole(d):
            write(d, tile, values, t, row_stride, col_stride, rows, cols, shift, options)
        else:
            write_parts(d, tile, values, t, row_stride, col_stride, rows, cols, shift, options)
        if options & MIRRORED:
            mirror(across, tile, values, t, row_stride, col_stride, rows, cols, shift, options)

    return SimpleNamespace(fetch=fetch, put=put)


def _build(config: CopyScaled):
    facts = config.dtype_facts
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    BLK_M, BLK_N, VALUES = config.BLK_M, config.BLK_N, config.per_thread * REALS
    is_met, by_rows, by_cols = intersects(BLK_M, BLK_N), _steps(config, True), _steps(config, False)
    fetch_by_rows, fetch_by_cols, put_by_rows, put_by_cols = (
        by_rows.fetch,
        by_cols.fetch,
        by_rows.put,
        by_cols.put,
    )

    def copy_scaled(s, d, m, n, options, s_rs, s_cs, d_rs, d_cs, stride_s, stride_d, alpha, alpha_i):
        # (1) the tile of this block
        t = cuda.threadIdx.x
        tiles_m = (m + BLK_M - 1) // BLK_M
        row0, col0 = int64(cuda.blockIdx.x % tiles_m) * BLK_M, int64(cuda.blockIdx.x // tiles_m) * BLK_N
        batch, rows, cols, shift = int64(cuda.blockIdx.z), m - row0, n - col0, row0 - col0
        grid_dependency_wait()  # also without work: the next launch relies on all before this one being over
        if not is_met(shift, options):
            return
        d = offset(d, batch * stride_d * REALS)
        tile = shared_pointer(cuda.shared.array(0, real, alignment=16))
        values = cuda.local.array(VALUES, real)

        # (2) read it in the order of S, (3) write it in the order of D
        if options & ZERO == 0:
            s = offset(s, (batch * stride_s + row0 * s_rs + col0 * s_cs) * REALS)
            if abs(s_rs) <= abs(s_cs):
                fetch_by_rows(tile, values, s, t, s_rs, s_cs, rows, cols, shift, options, alpha, alpha_i)
            else:
                fetch_by_cols(tile, values, s, t, s_rs, s_cs, rows, cols, shift, options, alpha, alpha_i)
            cuda.syncthreads()
        there = offset(d, (row0 * d_rs + col0 * d_cs) * REALS)
        across = offset(d, (col0 * d_rs + row0 * d_cs) * REALS)
        if abs(d_rs) <= abs(d_cs):
            put_by_rows(there, across, tile, values, t, d_rs, d_cs, rows, cols, shift, options)
        else:
            put_by_cols(there, across, tile, values, t, d_rs, d_cs, rows, cols, shift, options)

    return copy_scaled
