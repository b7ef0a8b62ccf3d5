"""``trmm_small``: C := alpha * T * B for a stack of small lower triangles, several matrices a block.

The triangles may also be the blocks on the diagonal of larger ones, each times its rows of B. A block has
them and some columns of each B in shared memory, so C may be B. A triangle is packed there: its columns in
groups of as many as a thread's tile has rows, each from the group's first row on. A thread computes a tile of
C, group after group. In the last one, on the diagonal, products with what is above the diagonal are left out,
not made with a zero: a NaN in B reaches only what depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...errors import require
from ...gpu.backend import cuda, device_function, in_order, ptx
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import BlockConfig
from ..common.options import CONJUGATE, UNIT
from ..common.parameters import parameters

__all__ = ["STEM", "Arrangement", "TrmmSmall", "source"]

STEM = "trmm_small"
PARAMETERS = parameters(
    "pointer: tri, b, c",
    "int32: n, r, options, order, blocks, log_n, log_width, matrices, count",
    "int64: t_rs, t_cs, b_rs, b_cs, c_rs, c_cs, stride_t, stride_b, stride_c",
    "real: alpha, alpha_i",
)
VECTOR = 16  # bytes of a load from shared memory


class Arrangement(NamedTuple):
    """Arrangement of a stack over blocks of threads.

    Attributes
    ----------
    order, blocks : int
        Rows of a triangle, and how many there are on the diagonal of a matrix; the last one may have fewer.
    log_n : int
        Logarithm of `order`, rounded up to a power of two and to a tile.
    log_width : int
        Logarithm of the columns of each B that a block has.
    matrices : int
        Triangles of a block of threads.
    """

    order: int
    blocks: int
    log_n: int
    log_width: int
    matrices: int

    def grid(self, columns: int, count: int) -> int:
        """Blocks for `count` matrices of this number of columns."""
        return -(-columns >> self.log_width) * -(-count * self.blocks // self.matrices)


@dataclass(frozen=True)
class TrmmSmall(BlockConfig):
    """Config of one `trmm_small` kernel.

    Attributes
    ----------
    DIM : int
        Threads of a block; a power of two.
    ORDER : int
        The largest order of a triangle.
    """

    DIM: int = 128
    ORDER: int = 64

    STEM: ClassVar[str] = STEM
    RESIDENT: ClassVar[int] = 768

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.ORDER <= self.DIM, "order", "0 < ORDER <= DIM", ORDER=self.ORDER, DIM=self.DIM)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a thread's tile: powers of two, and whole vectors."""
        size = self.dtype_facts.itemsize
        return 4 if size <= 8 else 2, max(VECTOR // size, 2)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: its tile, fragments, and addresses."""
        rows, columns = self.tile
        return (rows * columns + rows + columns) * self.dtype_facts.itemsize // 4 + 48

    @property
    def vector(self) -> int:
        """Elements of a vector; as many are between two rows of B in shared memory."""
        return VECTOR // self.dtype_facts.itemsize

    @property
    def shared_elements(self) -> int:
        """Room for a triangle of the largest order with 64 columns of float32, else with 32."""
        return self.matrix_elements(self.ORDER, 64 if self.dtype_facts.itemsize == 4 else 32)

    def matrix_elements(self, order: int, width: int) -> int:
        """Elements of a packed triangle, and of `width` columns of B."""
        rows, _ = self.tile
        groups = -(-order // rows)
        return rows**2 * groups * (groups + 1) // 2 + groups * rows * (width + self.vector)

    def arrangement(self, order: int, columns: int) -> Arrangement:
        """The arrangement of triangles of `order` rows with this number of columns."""
        rows, most = self.tile
        blocks, order = -(-order // self.ORDER), min(order, self.ORDER)
        log_n, width = max(order - 1, rows - 1).bit_length(), 1 << max(columns - 1, most - 1).bit_length()
        while width > self.DIM or self.matrix_elements(order, width) > self.shared_elements:
            width //= 2
        tiles = (1 << log_n) // rows * (width // most)
        matrices = min(self.DIM // tiles, self.shared_elements // self.matrix_elements(order, width))
        matrices = 1 if blocks > 1 else max(matrices, 1)
        return Arrangement(order, blocks, log_n, width.bit_length() - 1, matrices)


def source(config: TrmmSmall, conj: bool = False, t_by_rows: bool = False) -> KernelSource:
    """The one kernel of `config`, for any T.

    Kernel parameters
    -----------------
    tri, b, c: pointer, T, B and C
    n, r: int32, order of T, columns of B
    options: int32, whether T is conjugated, whether its diagonal is one and not read (`options`)
    order, blocks, log_n, log_width, matrices: int32, the `Arrangement`
    count: int32, matrices of the stack
    t_rs, t_cs, b_rs, b_cs, c_rs, c_cs: int64, row and column stride of T, B, C (elements)
    stride_t, stride_b, stride_c: int64, batch strides (elements)
    alpha, alpha_i: real, parts of alpha

    Grid: x ``config.arrangement(n, r).grid(r, count)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _triangle_loader(config: TrmmSmall):
    """``load(shared, tri, t_rs, t_cs, stride, t, n, height, log_n, matrices, size, first)``: the packed
    triangles of a block, neighbours in memory by neighbouring threads. A thread stays in its row, or column.
    """
    facts, DIM, (ROWS, _) = config.dtype_facts, config.DIM, config.tile
    REALS, SIZE = facts.reals_per_element, facts.itemsize
    int32, copy, offset = ptx.types.int32, ptx.copy_async(SIZE), ptx.offset

    @device_function
    def start_of(j, height):
        group = int32(j & -ROWS)
        above = int32(((group * (group - ROWS)) >> 1) + group)
        return int32(group * height - above + (j - group) * (height - group))

    @device_function
    def load(shared, tri, t_rs, t_cs, stride, t, n, height, log_n, matrices, size, first):
        by_columns, mask, step = abs(t_rs) <= abs(t_cs), int32((1 << log_n) - 1), int32(DIM >> log_n)
        fast_stride, slow_stride = (t_rs, t_cs) if by_columns else (t_cs, t_rs)
        fast, row = int32(t & mask), int32(t >> log_n)
        tri = offset(tri, fast * fast_stride * REALS)
        start = int32(fast if by_columns else start_of(fast, height))
        while fast < n and row < matrices << log_n:
            slow, matrix = int32(row & mask), int32(row >> log_n)
            i, j = (fast, slow) if by_columns else (slow, fast)
            if i < n and i - j >= first:
                at = int32(matrix * size + start + (start_of(slow, height) if by_columns else slow))
                there = (matrix * stride + slow * slow_stride) * REALS
                copy(shared, int32(at * REALS), tri, there, int32(SIZE))
            row = int32(row + step)

    return load


def _column_loader(config: TrmmSmall):
    """``load(shared, b, b_rs, b_cs, stride, t, n, cols, ld, log_n, log_width, matrices, size, vectors)``: the
    columns of B of a block, by rows, likewise; rows by whole `vectors` where these are aligned.
    """
    facts, DIM, EACH = config.dtype_facts, config.DIM, config.vector
    REALS, SIZE, LOG_EACH = facts.reals_per_element, facts.itemsize, config.vector.bit_length() - 1
    int32, offset = ptx.types.int32, ptx.offset
    copy, copy_vector = ptx.copy_async(SIZE), ptx.copy_async(VECTOR)

    @device_function
    def load(shared, b, b_rs, b_cs, stride, t, n, cols, ld, log_n, log_width, matrices, size, vectors):
        by_columns, log_each = abs(b_rs) <= abs(b_cs), int32(LOG_EACH if vectors else 0)
        log_fast, log_slow = (log_n, log_width) if by_columns else (int32(log_width - log_each), log_n)
        fast_end, slow_end = (n, cols) if by_columns else (cols, n)
        fast_stride, slow_stride = (b_rs, b_cs) if by_columns else (b_cs, b_rs)
        to_fast, to_slow = (ld, int32(1)) if by_columns else (int32(1), ld)
        fast, row = int32((t & ((1 << log_fast) - 1)) << log_each), int32(t >> log_fast)
        b, start, step = offset(b, fast * fast_stride * REALS), int32(fast * to_fast), int32(DIM >> log_fast)
        while fast < fast_end and row < matrices << log_slow:
            slow, matrix = int32(row & ((1 << log_slow) - 1)), int32(row >> log_slow)
            if slow < slow_end:
                at = int32((matrix * size + start + slow * to_slow) * REALS)
                there = (matrix * stride + slow * slow_stride) * REALS
                if vectors and EACH > 1:
                    copy_vector(shared, at, b, there, int32(VECTOR))
                else:
                    copy(shared, at, b, there, int32(SIZE))
            row = int32(row + step)

    return load


def _multiplier(config: TrmmSmall):
    """``multiply(acc, rt, rx, pt, px, groups, height, ld, sign, unit)``: a tile's sums. `pt` is the tile's
    first row in the packed triangle, which has `groups` groups of columns before the diagonal.
    """
    facts, (ROWS, COLUMNS) = config.dtype_facts, config.tile
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    COMPLEX, WIDTH = facts.is_complex, VECTOR // facts.real_size
    load_t = ptx.load_shared(WIDTH, ROWS * REALS // WIDTH, WIDTH)
    load_x = ptx.load_shared(WIDTH, COLUMNS * REALS // WIDTH, WIDTH)
    rank1, int32, offset, select = (
        ptx.rank1_update(ROWS, COLUMNS, REALS),
        ptx.types.int32,
        ptx.offset,
        ptx.select,
    )

    @device_function
    def load(rt, rx, pt, px, sign):
        load_t(rt, 0, pt, 0)
        load_x(rx, 0, px, 0)
        if COMPLEX:
            for i in range(ROWS):
                rt[2 * i + 1] = sign * rt[2 * i + 1]

    def diagonal_step(k: int):
        @device_function
        def step(acc, rt, rx, pt, px, height, ld, sign, unit):
            load(rt, rx, offset(pt, k * height * REALS), offset(px, k * ld * REALS), sign)
            rt[k * REALS] = select(unit, real(1), rt[k * REALS])
            if COMPLEX:
                rt[k * REALS + 1] = select(unit, real(0), rt[k * REALS + 1])
            for j in range(COLUMNS):
                for i in range(k, ROWS):
                    x, a, b = (j * ROWS + i) * REALS, i * REALS, j * REALS
                    if COMPLEX:
                        acc[x] += rt[a] * rx[b] - rt[a + 1] * rx[b + 1]
                        acc[x + 1] += rt[a] * rx[b + 1] + rt[a + 1] * rx[b]
                    else:
                        acc[x] += rt[a] * rx[b]

        return step

    multiply_diagonal = in_order([diagonal_step(k) for k in range(ROWS)])

    @device_function
    def multiply(acc, rt, rx, pt, px, groups, height, ld, sign, unit):
        group = int32(0)
        while group < groups:
            for _ in range(ROWS):
                load(rt, rx, pt, px, sign)
                rank1(acc, rt, rx)
                pt, px = offset(pt, height * REALS), offset(px, ld * REALS)
            pt = offset(pt, -ROWS * REALS)
            group, height = int32(group + 1), int32(height - ROWS)
        multiply_diagonal(acc, rt, rx, pt, px, height, ld, sign, unit)

    return multiply


def _writer(config: TrmmSmall):
    """``write(c, acc, values, c_rs, c_cs, i0, j0, n, cols, alpha, alpha_i, vectors)``: a tile, times alpha,
    from row `i0` and column `j0` on; rows by whole `vectors`.
    """
    facts, (ROWS, COLUMNS) = config.dtype_facts, config.tile
    COMPLEX, REALS, WIDTH = facts.is_complex, facts.reals_per_element, VECTOR // facts.real_size
    store, store_vector = ptx.store_global, ptx.store_global_vector(WIDTH)

    @device_function
    def write(c, acc, values, c_rs, c_cs, i0, j0, n, cols, alpha, alpha_i, vectors):
        for i in range(ROWS):
            for j in range(COLUMNS):
                x, at = (j * ROWS + i) * REALS, j * REALS
                values[at] = alpha * acc[x]
                if COMPLEX:
                    values[at] = alpha * acc[x] - alpha_i * acc[x + 1]
                    values[at + 1] = alpha * acc[x + 1] + alpha_i * acc[x]
            there = ((i0 + i) * c_rs + j0 * c_cs) * REALS
            if vectors:
                for x in range(0, COLUMNS * REALS, WIDTH):
                    store_vector(c, there + x, values, x, (i0 + i < n) & (j0 + x // REALS < cols))
            else:
                for j in range(COLUMNS):
                    for part in range(REALS):
                        ok = (i0 + i < n) & (j0 + j < cols)
                        store(c, there + j * c_cs * REALS + part, values[j * REALS + part], ok)

    return write


def _build(config: TrmmSmall):
    facts, (ROWS, COLUMNS), PAD, DIM = config.dtype_facts, config.tile, config.vector, config.DIM
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    LOG_ROWS, LOG_COLUMNS = ROWS.bit_length() - 1, COLUMNS.bit_length() - 1
    ACC, FRAG_T, FRAG_X = ROWS * COLUMNS * REALS, ROWS * REALS, COLUMNS * REALS
    int32, int64, offset, quotient = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.quotient
    shared_pointer, grid_dependency_wait = ptx.shared_pointer, ptx.grid_dependency_wait
    commit, wait_all, zero = ptx.commit_async, ptx.wait_async(0), ptx.fill(ACC)
    load_triangles, load_columns = _triangle_loader(config), _column_loader(config)
    multiply, write, EACH = _multiplier(config), _writer(config), config.vector
    is_aligned = ptx.is_aligned(VECTOR // facts.real_size)

    @device_function
    def has_vectors(x, row_stride, col_stride, stride, r):
        return is_aligned(x) & (col_stride == 1) & ((row_stride | stride | r) & (EACH - 1) == 0)

    def trmm_small(
        tri, b, c, n, r, options, order, blocks, log_n, log_width, matrices, count, t_rs, t_cs, b_rs, b_cs,
        c_rs, c_cs, stride_t, stride_b, stride_c, alpha, alpha_i,
    ):  # fmt: skip
        # (1) the matrices of this block, and its columns of each
        t = int32(cuda.threadIdx.x & 1023)  # the mask shows the compiler that it is not negative
        width, chunks = int32(1 << log_width), int32((r + (1 << log_width) - 1) >> log_width)
        number = int32(quotient(cuda.blockIdx.x, chunks))
        col0, first = int32((cuda.blockIdx.x - number * chunks) << log_width), int64(number) * matrices
        row0, unit = int64(0), options & UNIT != 0
        if blocks > 1:  # a block has one triangle
            first = int64(quotient(number, blocks))
            row0 = (number - first * blocks) * order
            n, count = int32(min(n - row0, order)), int32(first + 1)
        here, cols = int32(min(count - first, matrices)), int32(min(r - col0, width))
        tri = offset(tri, (first * stride_t + row0 * (t_rs + t_cs)) * REALS)
        b = offset(b, (first * stride_b + row0 * b_rs + col0 * b_cs) * REALS)
        c = offset(c, (first * stride_c + row0 * c_rs + col0 * c_cs) * REALS)
        sign = real(-1) if options & CONJUGATE else real(1)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))

        # (2) both to shared memory: of each matrix the triangle, then the columns
        height, ld = int32((n + (ROWS - 1)) & -ROWS), int32(width + PAD)
        groups = int32(height >> LOG_ROWS)
        packed = int32((groups * (groups + 1) >> 1) * (ROWS * ROWS))
        size = int32(packed + height * ld)
        grid_dependency_wait()
        load_triangles(shared, tri, t_rs, t_cs, stride_t, t, n, height, log_n, here, size, 1 if unit else 0)
        columns = offset(shared, packed * REALS)
        load_columns(
            columns, b, b_rs, b_cs, stride_b, t, n, cols, ld, log_n, log_width, here, size,
            has_vectors(b, b_rs, b_cs, stride_b, r),
        )  # fmt: skip
        commit()
        wait_all()
        cuda.syncthreads()

        # (3) a tile of C after the other; neighbours in memory by neighbouring threads
        acc, rt, rx = (
            cuda.local.array(ACC, real), cuda.local.array(FRAG_T, real), cuda.local.array(FRAG_X, real)
        )  # fmt: skip
        values, vectors = cuda.local.array(FRAG_X, real), has_vectors(c, c_rs, c_cs, stride_c, r)
        by_columns = abs(c_rs) <= abs(c_cs)
        log_i, log_j = int32(log_n - LOG_ROWS), int32(log_width - LOG_COLUMNS)
        log_fast = log_i if by_columns else log_j
        e = int32(t)
        while e < here << (log_i + log_j):
            matrix, tile = int32(e >> (log_i + log_j)), int32(e & ((1 << (log_i + log_j)) - 1))
            fast, slow = int32(tile & ((1 << log_fast) - 1)), int32(tile >> log_fast)
            ti, tj = (fast, slow) if by_columns else (slow, fast)
            i0, j0 = int32(ti << LOG_ROWS), int32(tj << LOG_COLUMNS)
            if i0 < n and j0 < cols:
                zero(acc, real(0))
                pt = offset(shared, (matrix * size + i0) * REALS)
                px = offset(columns, (matrix * size + j0) * REALS)
                multiply(acc, rt, rx, pt, px, ti, height, ld, sign, unit)
                to = offset(c, matrix * stride_c * REALS)
                write(to, acc, values, c_rs, c_cs, i0, j0, n, cols, alpha, alpha_i, vectors)
            e = int32(e + DIM)

    return trmm_small
