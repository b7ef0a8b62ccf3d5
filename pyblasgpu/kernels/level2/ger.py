"""``ger``: A := A + alpha x y', or of a triangle, + beta y x' too: updates of rank 1 and 2, one launch.

A is column-major. Every element of A that is meant is read once and written once; with `OVERWRITE` it is not
read. Whether x, y are conjugated, whether there is a second product, and which triangle is meant are chosen
at run time: of tiles on the diagonal a block writes real by real what belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import require_warps
from ..common.options import CONJUGATE, CONJUGATE_SECOND, HERMITIAN, OVERWRITE, RANK_2, TRIANGLE, UPPER
from ..common.parameters import parameters
from .config import VectorLoads

__all__ = [
    "Ger",
    "source",
]

REGISTERS = 8  # of addresses, counters and predicates, besides what `Ger.registers` counts
PARAMETERS = parameters(
    "pointer: x, y, a",
    "int32: m, n, bits",
    "int64: incx, incy, rs, cs, stride_x, stride_y, stride_a",
    "real: alpha, alpha_i, beta, beta_i",
)


@dataclass(frozen=True)
class Ger(VectorLoads):
    """Config of one `ger` kernel.

    Attributes
    ----------
    DIM_M, DIM_N : int
        Threads along rows and columns.
    THR_M, THR_N : int
        Rows and columns of a thread.
    """

    DIM_M: int = 32
    DIM_N: int = 4
    THR_M: int = 4
    THR_N: int = 4

    STEM: ClassVar[str] = "ger"
    RESIDENT: ClassVar[int] = 512
    stages: ClassVar[int] = 1
    reuse: ClassVar[float] = 1.0  # A is read once

    def __post_init__(self):
        super().__post_init__()
        require_warps(DIM_M=self.DIM_M, DIM_N=self.DIM_N)
        require(self.THR_M % self.VEC == 0, "vectors", "THR_M % VEC == 0", THR_M=self.THR_M, VEC=self.VEC)
        require(self.THR_N > 0, "columns", "THR_N > 0", THR_N=self.THR_N)

    @property
    def threads(self) -> int:
        return self.DIM_M * self.DIM_N

    @property
    def registers(self) -> int:
        """An estimate: what a thread holds of A, x and y."""
        facts, reals = self.dtype_facts, self.THR_M * self.THR_N + self.THR_M + self.THR_N
        return REGISTERS + reals * facts.reals_per_element * facts.real_size // 4

    @property
    def BLK_M(self) -> int:
        """Rows of a block."""
        return self.DIM_M * self.THR_M

    @property
    def BLK_N(self) -> int:
        """Columns of a block."""
        return self.DIM_N * self.THR_N

    @classmethod
    def defaults(cls, dtype: str, transposed: bool) -> tuple[Self, ...]:
        """Return the Configs where nothing was tuned."""
        return (cls(dtype, THR_M=4 if dtype == "s" else 2),)

    def grid(self, m: int, n: int) -> int:
        """Blocks of an update of all of A or a triangle; those beyond it have nothing to do."""
        return -(-m // self.BLK_M) * -(-n // self.BLK_N)

    @property
    def variants(self) -> tuple[Self, ...]:
        return tuple(dict.fromkeys((self, self.with_alignment(1))))


def source(config: Ger) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    x, y, a: pointer, x, y, A
    m, n: int32, rows and columns
    bits: int32, `CONJUGATE` x, `CONJUGATE_SECOND` y, `RANK_2`, `OVERWRITE`, bits of a triangle
    incx, incy: int64, strides of x and y (elements)
    rs, cs: int64, row and column stride of A (elements)
    stride_x, stride_y, stride_a: int64, batch strides (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha, and of beta, the factor of the second product

    Grid: x ``config.grid(m, n)``, z the batch. With loads of 16 bytes the row stride is 1, and vectors fit.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _coords(config: Ger) -> Any:
    """``coords(e)``: of element number e of a thread, its row and column, counted from the thread's first."""
    VEC, THR_M, STEP_M, STEP_N = config.VEC, config.THR_M, config.DIM_M * config.VEC, config.DIM_N

    @device_function
    def coords(e):
        return e % THR_M // VEC * STEP_M + e % VEC, e // THR_M * STEP_N

    return coords


def _fetcher(config: Ger) -> Any:
    """``fetch(0, held, here, inc, left, step)``: elements of x or y; `count` of them."""
    REALS, load = config.dtype_facts.reals_per_element, ptx.load_global(1, False)
    coords, THR_M = _coords(config), config.THR_M

    @device_function
    def fetch_row(i, held, here, inc, left):
        row, _ = coords(i)
        for part in range(REALS):
            load(held, i * REALS + part, here, row * inc * REALS + part, row < left)

    @device_function
    def fetch_column(j, held, here, inc, left):
        _, col = coords(j * THR_M)
        for part in range(REALS):
            load(held, j * REALS + part, here, col * inc * REALS + part, col < left)

    return unrolled(config.THR_M, fetch_row), unrolled(config.THR_N, fetch_column)


def _updater(config: Ger) -> Any:
    """``update(0, held, left, right, ...)``: held += the product of a row and a column."""
    facts, THR_M = config.dtype_facts, config.THR_M
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex

    @device_function
    def update(e, held, left, right):
        i, j = e % THR_M * REALS, e // THR_M * REALS
        if COMPLEX:
            held[e * REALS] += left[i] * right[j]
            held[e * REALS] -= left[i + 1] * right[j + 1]
            held[e * REALS + 1] += left[i] * right[j + 1]
            held[e * REALS + 1] += left[i + 1] * right[j]
        else:
            held[e] += left[i] * right[j]

    return unrolled(config.THR_M * config.THR_N, update)


def _scaler(config: Ger) -> Any:
    """``scale(0, right, sign, factor, factor_i)``: columns' factors conjugated and multiplied."""
    REALS, COMPLEX = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex

    @device_function
    def scale(j, right, sign, factor, factor_i):
        re = right[j * REALS]
        if COMPLEX:
            im = sign * right[j * REALS + 1]
            right[j * REALS] = factor * re - factor_i * im
            right[j * REALS + 1] = factor * im + factor_i * re
        else:
            right[j] = factor * re

    @device_function
    def conjugate(i, left, sign):
        if COMPLEX:
            left[i * REALS + 1] *= sign

    return unrolled(config.THR_N, scale), unrolled(config.THR_M, conjugate)


def _mover(config: Ger) -> Any:
    """``load``, ``store(0, held, here, rs, cs, rows, cols, reads)``: whole vectors of A;
    ``load_part``, ``store_part``: the elements that a triangle has, real by real.
    """
    facts, coords = config.dtype_facts, _coords(config)
    REALS, VEC, WIDTH, real = facts.reals_per_element, config.VEC, config.WIDTH, ptx.REALS[facts.real]
    read, write = ptx.load_global(WIDTH, False), ptx.store_global_vector(WIDTH)
    read_real, write_real, select = ptx.load_global(1, False), ptx.store_global_vector(1), ptx.select
    COMPLEX = facts.is_complex

    @device_function
    def load(v, held, here, rs, cs, rows, cols, reads):
        row, col = coords(v * VEC)
        for part in range(0, VEC * REALS, WIDTH):
            at = (row * rs + col * cs) * REALS + part
            read(held, v * VEC * REALS + part, here, at, (row < rows) & (col < cols) & reads)

    @device_function
    def store(v, held, here, rs, cs, rows, cols):
        row, col = coords(v * VEC)
        for part in range(0, VEC * REALS, WIDTH):
            at = (row * rs + col * cs) * REALS + part
            write(here, at, held, v * VEC * REALS + part, (row < rows) & (col < cols))

    @device_function
    def has(row, col, rows, cols, shift, upper):
        distance = row + shift - col
        return (row < rows) & (col < cols) & (distance <= 0 if upper else distance >= 0)

    @device_function
    def load_part(e, held, here, rs, cs, rows, cols, shift, upper, reads):
        row, col = coords(e)
        ok = has(row, col, rows, cols, shift, upper) & reads
        for part in range(REALS):
            read_real(held, e * REALS + part, here, (row * rs + col * cs) * REALS + part, ok)

    @device_function
    def store_part(e, held, here, rs, cs, rows, cols, shift, upper, hermitian):
        row, col = coords(e)
        ok = has(row, col, rows, cols, shift, upper)
        if COMPLEX:
            is_real = hermitian & (row + shift == col)
            held[e * REALS + 1] = select(is_real, real(0), held[e * REALS + 1])
        for part in range(REALS):
            write_real(here, (row * rs + col * cs) * REALS + part, held, e * REALS + part, ok)

    count = config.THR_M * config.THR_N
    return (
        unrolled(count // VEC, load),
        unrolled(count // VEC, store),
        unrolled(count, load_part),
        unrolled(count, store_part),
    )


def _build(config: Ger):
    facts, BLK_M, BLK_N, DIM_M, VEC = (
        config.dtype_facts,
        config.BLK_M,
        config.BLK_N,
        config.DIM_M,
        config.VEC,
    )
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]
    ROWS, COLS, HELD = config.THR_M * REALS, config.THR_N * REALS, config.THR_M * config.THR_N * REALS
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset
    grid_dependency_wait, quotient = ptx.grid_dependency_wait, ptx.quotient
    fetch_rows, fetch_columns = _fetcher(config)
    (scale, conjugate), update = _scaler(config), _updater(config)
    load, store, load_part, store_part = _mover(config)
    ROW, COL, SECOND, OVER = CONJUGATE, CONJUGATE_SECOND, RANK_2, OVERWRITE
    PART, UP, REAL = TRIANGLE, UPPER, HERMITIAN

    @device_function
    def multiply(held, left, right, x, y, incx, incy, rows, cols, bits, factor, factor_i):
        fetch_rows(0, left, x, incx, rows)
        fetch_columns(0, right, y, incy, cols)
        conjugate(0, left, real(-1 if bits & ROW else 1))
        scale(0, right, real(-1 if bits & COL else 1), factor, factor_i)
        update(0, held, left, right)

    def ger(
        x, y, a, m, n, bits, incx, incy, rs, cs, stride_x, stride_y, stride_a, alpha, alpha_i, beta, beta_i
    ):
        # (1) the tile of this block; rows and columns from this thread's first on
        t = int32(cuda.threadIdx.x & 1023)
        tiles_m = int32((m + BLK_M - 1) // BLK_M)
        tile_n = quotient(int32(cuda.blockIdx.x), tiles_m)
        row0, col0 = int32((cuda.blockIdx.x - tile_n * tiles_m) * BLK_M), int32(tile_n * BLK_N)
        row, col = int32(row0 + t % DIM_M * VEC), int32(col0 + t // DIM_M)
        rows, cols, shift, batch = int32(m - row), int32(n - col), int32(row - col), int64(cuda.blockIdx.z)
        upper, triangle = bits & UP != 0, bits & PART != 0
        is_beyond = row0 >= col0 + BLK_N if upper else row0 + BLK_M <= col0
        on_border = row0 + BLK_M > col0 if upper else row0 < col0 + BLK_N
        x, y = offset(x, batch * stride_x * REALS), offset(y, batch * stride_y * REALS)
        x_rows, x_cols = offset(x, row * int64(incx) * REALS), offset(x, col * int64(incx) * REALS)
        y_rows, y_cols = offset(y, row * int64(incy) * REALS), offset(y, col * int64(incy) * REALS)
        here, reads = (
            offset(a, (batch * stride_a + row * int64(rs) + col * int64(cs)) * REALS),
            bits & OVER == 0,
        )
        held, left, right = (
            cuda.local.array(HELD, real),
            cuda.local.array(ROWS, real),
            cuda.local.array(COLS, real),
        )

        # (2) A, and the products
        grid_dependency_wait()
        if triangle & is_beyond:
            return
        masked = triangle & on_border
        if masked:
            load_part(0, held, here, rs, cs, rows, cols, shift, upper, reads)
        else:
            load(0, held, here, rs, cs, rows, cols, reads)
        multiply(held, left, right, x_rows, y_cols, incx, incy, rows, cols, bits, alpha, alpha_i)
        if bits & SECOND:
            multiply(held, left, right, y_rows, x_cols, incy, incx, rows, cols, bits, beta, beta_i)
        if masked:
            store_part(0, held, here, rs, cs, rows, cols, shift, upper, bits & REAL != 0)
        else:
            store(0, held, here, rs, cs, rows, cols)

    return ger
