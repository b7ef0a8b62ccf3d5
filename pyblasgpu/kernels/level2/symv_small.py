"""``symv_small``: y := alpha A x + beta y, A symmetric or Hermitian, one launch for small orders.

A block has a few neighbouring elements of y, and all terms of their sums. Terms in the triangle it reads as
rows of A, those beyond it, mirrored, as columns. So most elements are read twice, by two blocks, and stay in
the L2 cache in between. No block waits for another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import require_warps
from ..common.options import CONJUGATE, HERMITIAN, UPPER, VECTORS
from ..common.parameters import parameters
from .config import LOAD, WARP, VectorLoads
from .sums import writer

__all__ = ["SymvSmall", "source"]

PARAMETERS = parameters(
    "pointer: a, x, y",
    "int32: n, bits",
    "int64: rs, cs, incx, incy, stride_a, stride_x, stride_y",
    "real: alpha, alpha_i, beta, beta_i",
)

SECTOR = 32  # bytes of memory that are read together


@dataclass(frozen=True)
class SymvSmall(VectorLoads):
    """Config of one `symv_small` kernel.

    Attributes
    ----------
    WARPS : int
        Warps of a block.
    SECTORS : int
        Times 32 bytes, the outputs of a block.
    LOADS : int
        Vectors of rows that a thread has under way, and about as many of columns.
    """

    WARPS: int = 4
    SECTORS: int = 1
    LOADS: int = 8

    STEM: ClassVar[str] = "symv_small"
    RESIDENT: ClassVar[int] = 512

    def __post_init__(self):
        super().__post_init__()
        require(self.BYTES == LOAD, "vectors", "BYTES == 16", BYTES=self.BYTES)
        require_warps(WARP=WARP, WARPS=self.WARPS)
        require(
            self.SECTORS in (1, 2, 4) and self.threads >= self.BLK**2,
            "diagonal",
            "SECTORS in (1, 2, 4) and the outputs squared are at most 32 * WARPS",
            SECTORS=self.SECTORS,
            WARPS=self.WARPS,
        )
        require(
            self.LOADS > 0 and self.threads % self.DIM_O == 0,
            "loads",
            "LOADS > 0 and threads % DIM_O == 0",
            LOADS=self.LOADS,
            DIM_O=self.DIM_O,
        )

    @property
    def threads(self) -> int:
        return WARP * self.WARPS

    @property
    def BLK(self) -> int:
        """Outputs of a block."""
        return self.SECTORS * SECTOR // self.dtype_facts.itemsize

    @property
    def DIM_O(self) -> int:
        """Threads along the outputs, where rows are read."""
        return self.BLK // self.VEC

    @property
    def DIM_R(self) -> int:
        """Threads along the terms, where rows are read."""
        return self.threads // self.DIM_O

    @property
    def COL_LOADS(self) -> int:
        """Vectors of terms that a thread loads at a time of each output, where columns are read."""
        return max(self.LOADS // self.BLK, 1)

    @property
    def shared_bytes(self) -> int:
        """A line of sums of each warp, and the products of the diagonal tile."""
        return (self.WARPS * self.BLK + self.BLK**2) * self.dtype_facts.itemsize

    def grid(self, n: int) -> int:
        """Blocks of a matrix of order n."""
        return -(-n // self.BLK)


def source(config: SymvSmall) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, x, y: pointer, A, x, y
    n: int32, order
    bits: int32, `CONJUGATE`, `HERMITIAN`, `UPPER`; `VECTORS`, without which A is loaded real by real
    rs, cs: int64, row and column stride of A, any without `VECTORS` (elements)
    incx, incy, stride_a, stride_x, stride_y: int64, strides of x and y, batch strides (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta; with beta = 0 y is not read

    Grid: x ``config.grid(n)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _row_fetcher(config: SymvSmall, wide: bool) -> tuple[Any, Any]:
    """``fetch(0, a, here, rs, cs, k, end, left)``: up to `left` neighbouring rows of columns `DIM_R` apart,
    up to column `end`; zeros beyond. ``fetch_x(0, x, there, inc, k, end)``: the elements of x for them.
    """
    REALS, VEC, DIM_R = config.dtype_facts.reals_per_element, config.VEC, config.DIM_R
    WIDTH, SIZE = config.WIDTH if wide else 1, VEC * REALS
    load, load_real = ptx.load_global(WIDTH, False), ptx.load_global(1, False)

    @device_function
    def fetch(u, a, here, rs, cs, k, end, left):
        for e in range(0, SIZE, WIDTH):
            at, ok = (e // REALS * rs + u * DIM_R * cs) * REALS + e % REALS, k + u * DIM_R < end
            load(a, u * SIZE + e, here, at, ok & (e // REALS < left))

    @device_function
    def fetch_x(u, x, there, inc, k, end):
        for part in range(REALS):
            load_real(x, u * REALS + part, there, u * DIM_R * inc * REALS + part, k + u * DIM_R < end)

    return unrolled(config.LOADS, fetch), unrolled(config.LOADS, fetch_x)


def _col_fetcher(config: SymvSmall, wide: bool) -> tuple[Any, Any]:
    """``fetch(0, a, here, rs, cs, k, end, left)``: neighbouring rows, up to `end`, of each of `left` columns;
    zeros beyond. ``fetch_x(0, x, there, inc, k, end)``: the elements of x for them.
    """
    REALS, VEC, BLK = config.dtype_facts.reals_per_element, config.VEC, config.BLK
    STEP, COUNT, WIDTH, SIZE = (
        config.threads * VEC,
        config.COL_LOADS,
        config.WIDTH if wide else 1,
        VEC * REALS,
    )
    load, load_real = ptx.load_global(WIDTH, False), ptx.load_global(1, False)

    @device_function
    def fetch(i, a, here, rs, cs, k, end, left):
        u, o = i // BLK, i % BLK
        for e in range(0, SIZE, WIDTH):
            at = ((u * STEP + e // REALS) * rs + o * cs) * REALS + e % REALS
            load(a, i * SIZE + e, here, at, (o < left) & (k + u * STEP + e // REALS < end))

    @device_function
    def fetch_x(i, x, there, inc, k, end):
        more = i // VEC * STEP + i % VEC
        for part in range(REALS):
            load_real(x, i * REALS + part, there, more * inc * REALS + part, k + more < end)

    return unrolled(COUNT * BLK, fetch), unrolled(COUNT * VEC, fetch_x)


def _multiplier(config: SymvSmall, by_rows: bool) -> Any:
    """``multiply(0, acc, a, x, sign)``: acc += a x, of what a thread has of rows, or of columns."""
    facts, VEC, BLK, BY_ROWS = config.dtype_facts, config.VEC, config.BLK, by_rows
    COMPLEX = facts.is_complex

    @device_function
    def multiply(i, acc, a, x, sign):
        u, v = i // VEC, i % VEC
        o, k = (v, u) if BY_ROWS else (u % BLK, u // BLK * VEC + v)
        if COMPLEX:
            re, im = a[2 * i], sign * a[2 * i + 1]
            acc[2 * o] += re * x[2 * k]
            acc[2 * o] -= im * x[2 * k + 1]
            acc[2 * o + 1] += re * x[2 * k + 1]
            acc[2 * o + 1] += im * x[2 * k]
        else:
            acc[o] += a[i] * x[k]

    return unrolled((config.LOADS if by_rows else config.COL_LOADS * BLK) * VEC, multiply)


def _diagonal(config: SymvSmall) -> Any:
    """``fetch(tile, x_tile, ...)``: of the tile on the diagonal, an element and that of x, a thread;
    ``keep(products, ...)``: their products in shared memory.
    """
    facts, BLK = config.dtype_facts, config.BLK
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    AREA, load, select = BLK * BLK, ptx.load_global(1, False), ptx.select

    @device_function
    def fetch(tile, x_tile, here, there, rs, cs, inc, t, left, upper):
        o, k = t // BLK, t % BLK
        ok = (t < AREA) & (o < left) & (k < left)
        row, col = (min(o, k), max(o, k)) if upper else (max(o, k), min(o, k))
        for part in range(REALS):
            load(tile, part, here, (row * rs + col * cs) * REALS + part, ok)
            load(x_tile, part, there, k * inc * REALS + part, ok)

    @device_function
    def keep(products, tile, x_tile, t, upper, hermitian, sign, mirror):
        o, k = t // BLK, t % BLK
        if t < AREA:
            if COMPLEX:
                stored = o <= k if upper else o >= k
                im = select(stored, sign, mirror) * tile[1]
                im = select((o == k) & hermitian, real(0), im)
                products[2 * t] = tile[0] * x_tile[0] - im * x_tile[1]
                products[2 * t + 1] = tile[0] * x_tile[1] + im * x_tile[0]
            else:
                products[t] = tile[0] * x_tile[0]

    return fetch, keep


def _lane_adder(config: SymvSmall) -> Any:
    """``add(sums, acc, row_acc, to, lane, warp)``: a warp's sums in its line of `sums`: of `acc`, which a
    lane has of all outputs, and of `row_acc`, which it has of vector `to` of them.
    """
    facts, VEC, BLK = config.dtype_facts, config.VEC, config.BLK
    REALS, real, select, shuffle = facts.reals_per_element, ptx.REALS[facts.real], ptx.select, ptx.shuffle
    HALF, int32 = WARP // 2, ptx.types.int32

    @device_function
    def join(o, acc, row_acc, to):
        for part in range(REALS):
            acc[o * REALS + part] += select(to == o // VEC, row_acc[o % VEC * REALS + part], real(0))

    @device_function
    def add_one(r, acc, other):
        acc[r] += shuffle(acc[r], other)

    @device_function
    def put(r, line, acc):
        line[r] = acc[r]

    offset, SIZE = ptx.offset, BLK * REALS
    join_all, add_all, put_all = unrolled(BLK, join), unrolled(SIZE, add_one), unrolled(SIZE, put)

    @device_function
    def add(sums, acc, row_acc, to, lane, warp):
        join_all(0, acc, row_acc, to)
        mask = int32(HALF)
        while mask > 0:
            add_all(0, acc, int32(lane ^ mask))
            mask = int32(mask // 2)
        if lane == 0:
            put_all(0, offset(sums, warp * SIZE), acc)

    return add


def _finisher(config: SymvSmall) -> Any:
    """``finish(sums, products, y, o, ...)``: the sums of output `o`, of all warps, then of the diagonal tile,
    go to y.
    """
    facts, WARPS, BLK = config.dtype_facts, config.WARPS, config.BLK
    REALS, COMPLEX, real, write = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        writer(facts),
    )

    @device_function
    def add_line(i, total, sums, o):
        for part in range(REALS):
            total[part] += sums[(i * BLK + o) * REALS + part]

    @device_function
    def add_product(k, total, products, o):
        for part in range(REALS):
            total[part] += products[(o * BLK + k) * REALS + part]

    add_lines, add_products, zero = unrolled(WARPS, add_line), unrolled(BLK, add_product), ptx.fill(REALS)

    @device_function
    def finish(sums, products, y, o, alpha, alpha_i, beta, beta_i):
        total, old = cuda.local.array(REALS, real), cuda.local.array(REALS, real)
        zero(total, real(0))
        add_lines(0, total, sums, o)
        add_products(0, total, products, o)
        im = total[1] if COMPLEX else total[0]
        reads = (beta != real(0)) | (beta_i != real(0))
        write(y, old, total[0], im, reads, alpha, alpha_i, beta, beta_i)

    return finish


def _runner(config: SymvSmall, wide: bool) -> Any:
    """``run(acc, row_acc, ...)``: the terms of a thread, of rows and of columns at a time."""
    facts, VEC, BLK, DIM_R, LOADS = config.dtype_facts, config.VEC, config.BLK, config.DIM_R, config.LOADS
    REALS, real, int32, offset = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32, ptx.offset
    ROWS, COLS = LOADS * VEC * REALS, config.COL_LOADS * BLK * VEC * REALS
    X_ROWS, X_COLS = LOADS * REALS, config.COL_LOADS * VEC * REALS
    ROW_STEP, COL_STEP = DIM_R * LOADS, config.threads * VEC * config.COL_LOADS
    WIDE, int64 = wide, ptx.types.int64
    (fetch_rows, fetch_row_x), (fetch_cols, fetch_col_x) = (
        _row_fetcher(config, wide),
        _col_fetcher(config, wide),
    )
    multiply_rows, multiply_cols = _multiplier(config, True), _multiplier(config, False)

    @device_function
    def run(
        acc, row_acc, rows, cols, x_rows, x_cols, rs, cs, inc, row_k, row_end, col_k, col_end, o, left, steps,
        sign, mirror,
    ):  # fmt: skip
        if WIDE:  # a constant needs no registers
            rs = int64(1)
        a, b = cuda.local.array(ROWS, real), cuda.local.array(COLS, real)
        x, z = cuda.local.array(X_ROWS, real), cuda.local.array(X_COLS, real)
        for _ in range(steps):
            fetch_rows(0, a, rows, rs, cs, row_k, row_end, left - o)
            fetch_cols(0, b, cols, rs, cs, col_k, col_end, left)
            fetch_row_x(0, x, x_rows, inc, row_k, row_end)
            fetch_col_x(0, z, x_cols, inc, col_k, col_end)
            multiply_rows(0, row_acc, a, x, sign)
            multiply_cols(0, acc, b, z, mirror)
            rows, x_rows = offset(rows, ROW_STEP * cs * REALS), offset(x_rows, ROW_STEP * inc * REALS)
            cols, x_cols = offset(cols, COL_STEP * rs * REALS), offset(x_cols, COL_STEP * inc * REALS)
            row_k, col_k = int32(row_k + ROW_STEP), int32(col_k + COL_STEP)

    return run


def _build(config: SymvSmall) -> Any:
    facts, BLK, VEC, DIM_O = config.dtype_facts, config.BLK, config.VEC, config.DIM_O
    REALS, real, SUMS = facts.reals_per_element, ptx.REALS[facts.real], config.WARPS * BLK
    OUTPUTS, ROW_OUTPUTS = BLK * REALS, VEC * REALS
    ROW_STEP, COL_STEP = config.DIM_R * config.LOADS, config.threads * VEC * config.COL_LOADS
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    wait, zero, zero_rows = ptx.grid_dependency_wait, ptx.fill(OUTPUTS), ptx.fill(ROW_OUTPUTS)
    run_wide, run_single = _runner(config, True), _runner(config, False)
    fetch_tile, keep_tile = _diagonal(config)
    add_lanes, finish = _lane_adder(config), _finisher(config)
    CONJ_A_, HERMITIAN_, UPPER_, VECTORS_ = CONJUGATE, HERMITIAN, UPPER, VECTORS

    def symv_small(
        a, x, y, n, bits, rs, cs, incx, incy, stride_a, stride_x, stride_y, alpha, alpha_i, beta, beta_i
    ):
        # (1) the outputs of this block; which terms it reads as rows, which as columns
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        to, tr, o0 = t % DIM_O, t // DIM_O, int32(cuda.blockIdx.x * BLK)
        upper, hermitian = bits & UPPER_ != 0, bits & HERMITIAN_ != 0
        sign = real(-1 if bits & CONJ_A_ else 1)
        mirror = -sign if hermitian else sign
        left, behind = int32(n - o0), min(int32(o0 + BLK), n)
        row_first, row_end = (behind, n) if upper else (int32(0), o0)
        col_first, col_end = (int32(0), o0) if upper else (behind, n)
        steps = int32(max((row_end - row_first + ROW_STEP - 1) // ROW_STEP,
                          (col_end - col_first + COL_STEP - 1) // COL_STEP))  # fmt: skip
        a, x = offset(a, batch * stride_a * REALS), offset(x, batch * stride_x * REALS)
        o, row_k, col_k = int32(o0 + to * VEC), int32(row_first + tr), int32(col_first + t * VEC)
        rows = offset(a, (o * int64(rs) + row_k * int64(cs)) * REALS)
        cols = offset(a, (col_k * int64(rs) + o0 * int64(cs)) * REALS)
        x_rows, x_cols = offset(x, row_k * int64(incx) * REALS), offset(x, col_k * int64(incx) * REALS)
        acc, row_acc = cuda.local.array(OUTPUTS, real), cuda.local.array(ROW_OUTPUTS, real)
        tile, x_tile = cuda.local.array(REALS, real), cuda.local.array(REALS, real)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))
        products = offset(sums, SUMS * REALS)
        zero(acc, real(0))
        zero_rows(row_acc, real(0))

        # (2) the terms of this thread, and the products of the diagonal tile
        wait()
        here, there = offset(a, o0 * int64(rs + cs) * REALS), offset(x, o0 * int64(incx) * REALS)
        fetch_tile(tile, x_tile, here, there, rs, cs, incx, t, left, upper)
        if bits & VECTORS_ != 0:
            run_wide(
                acc, row_acc, rows, cols, x_rows, x_cols, rs, cs, incx, row_k, row_end, col_k, col_end,
                to * VEC, left, steps, sign, mirror,
            )  # fmt: skip
        else:
            run_single(
                acc, row_acc, rows, cols, x_rows, x_cols, rs, cs, incx, row_k, row_end, col_k, col_end,
                to * VEC, left, steps, sign, mirror,
            )  # fmt: skip
        keep_tile(products, tile, x_tile, t, upper, hermitian, sign, mirror)

        # (3) the sums of lanes, then of warps
        add_lanes(sums, acc, row_acc, to, t % 32, t // 32)
        cuda.syncthreads()
        if t < min(left, BLK):
            there = offset(y, (batch * stride_y + (o0 + t) * int64(incy)) * REALS)
            finish(sums, products, there, t, alpha, alpha_i, beta, beta_i)

    return symv_small
