"""What `trsm_leaf` and `trmm_leaf` share: a sweep over one panel of columns of B, in place.

T is lower triangular (n x n), B has n rows. A block of threads owns BLK_N columns of B for the whole
kernel, so that blocks need not wait for each other. It walks the block rows of B, BLK_M high; at each it
forms  acc = sum over the block columns k to the left of the diagonal of T[i,k] B[k]  by the GEMM stencil,
and then works on the diagonal block T[i,i] with one thread a column, whose part of B stays in registers.

Both strides of T and B are free and may be negative: transposition, the right side and upper triangles
(read backwards) are views.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..errors import require
from ..gpu.backend import cuda, device_function, ptx, unrolled
from ..gpu.compile import KernelSource
from ..types import DTYPES, Dtype

PARAMETERS = "pp ii qqqq qq rr".replace(" ", "")


@dataclass(frozen=True)
class TrianglePanel:
    """Config of a leaf kernel.

    Attributes
    ----------
    dtype : str
        's', 'd', 'c' or 'z'.
    BLK_M, BLK_N, BLK_K : int
        Rows of a diagonal block, columns of B a block of threads owns, depth of a stripe.
    DIM_X, DIM_Y, SLICES : int
        Threads along M, N, and along the depth of a stripe: each slice sums its own part of the depth, and
        the slices' sums are added in order. They hide the latency that few columns leave bare.
    VEC_M, VEC_N : int
        Adjacent rows, columns of a thread: the width of its loads from shared memory.
    UNROLL : int
        Steps along k that are unrolled.
    stages : int
        Stripes in the shared-memory ring, at least 2.
    min_blocks : int
        Blocks a multiprocessor must be able to hold.
    """

    dtype: str
    BLK_M: int
    BLK_N: int
    BLK_K: int
    DIM_X: int
    DIM_Y: int
    SLICES: int = 1
    VEC_M: int = 1
    VEC_N: int = 1
    UNROLL: int = 8
    stages: int = 2
    min_blocks: int = 1

    def __post_init__(self):
        m, n, k, x, y, threads = self.BLK_M, self.BLK_N, self.BLK_K, self.DIM_X, self.DIM_Y, self.threads
        size = self.dtype_facts.itemsize
        require(
            threads <= 1024,
            "max_threads",
            "DIM_X * DIM_Y * SLICES <= 1024",
            DIM_X=x,
            DIM_Y=y,
            SLICES=self.SLICES,
        )
        require(x * y % 32 == 0, "whole_warps", "DIM_X * DIM_Y % 32 == 0", DIM_X=x, DIM_Y=y)
        require(
            m % (x * self.VEC_M) == 0,
            "tile_m",
            "BLK_M % (DIM_X * VEC_M) == 0",
            BLK_M=m,
            DIM_X=x,
            VEC_M=self.VEC_M,
        )
        require(
            n % (y * self.VEC_N) == 0,
            "tile_n",
            "BLK_N % (DIM_Y * VEC_N) == 0",
            BLK_N=n,
            DIM_Y=y,
            VEC_N=self.VEC_N,
        )
        require(k % (self.SLICES * self.UNROLL) == 0, "unroll", "BLK_K % (SLICES * UNROLL) == 0",
                BLK_K=k, SLICES=self.SLICES, UNROLL=self.UNROLL)  # fmt: skip
        require((self.SLICES - 1) * m * n <= self.stages * self.stage_elements, "sums_fit_ring",
                "(SLICES - 1) * BLK_M * BLK_N <= elements of the ring",
                SLICES=self.SLICES, BLK_M=m, BLK_N=n, ring=self.stages * self.stage_elements)  # fmt: skip
        require(self.stages >= 2, "stages", "stages >= 2", stages=self.stages)
        require(n <= threads and m <= threads, "column_threads", "max(BLK_M, BLK_N) <= threads",
                BLK_M=m, BLK_N=n, threads=threads)  # fmt: skip
        for name, vector in (("VEC_M", self.VEC_M), ("VEC_N", self.VEC_N)):
            require(vector * size in (4, 8, 16), "fragment_bytes", f"{name} * itemsize in (4, 8, 16)",
                    vector=vector, itemsize=size)  # fmt: skip

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y * self.SLICES

    @property
    def THR_M(self) -> int:
        return self.BLK_M // self.DIM_X

    @property
    def THR_N(self) -> int:
        return self.BLK_N // self.DIM_Y

    @property
    def row_of_panel(self) -> int:
        """Elements from one row of the panel to the next in shared memory (odd, against conflicts)."""
        return self.BLK_N + 1

    @property
    def lead_t(self) -> int:
        """Elements from one k to the next in a stripe of T, padded against bank conflicts."""
        return self.BLK_M + self.VEC_M

    @property
    def lead_x(self) -> int:
        """Elements from one k to the next in a stripe of B."""
        return self.BLK_N + self.VEC_N

    @property
    def stage_elements(self) -> int:
        return (self.lead_t + self.lead_x) * self.BLK_K

    @property
    def shared_elements(self) -> int:
        """The ring, the diagonal block, the inverse of its diagonal, the panel."""
        ring = self.stages * self.stage_elements
        return ring + self.BLK_M * self.BLK_M + self.BLK_M + self.BLK_M * self.row_of_panel

    @property
    def shared_bytes(self) -> int:
        return -(-self.shared_elements * self.dtype_facts.itemsize // 16) * 16

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: the stencil's tile, or a column of the panel."""
        tile = self.THR_M * self.THR_N + self.THR_M + self.THR_N
        return max(tile, self.BLK_M) * self.dtype_facts.itemsize // 4

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded in the innermost loop."""
        ratio = self.THR_M * self.THR_N / (self.THR_M + self.THR_N)
        return 2 * ratio if self.dtype_facts.is_complex else ratio

    def grid(self, columns: int) -> int:
        """Blocks along x for `columns` columns of B."""
        return -(-columns // self.BLK_N)


@dataclass(frozen=True)
class Variant:
    """What specialises a leaf kernel beside its Config.

    Attributes
    ----------
    unit : bool
        The diagonal is one and is not read.
    conj : bool
        T is meant conjugated.
    t_by_rows, b_by_rows : bool
        Whether neighbours in memory are neighbouring rows of T, of B (else columns).
    """

    unit: bool
    conj: bool
    t_by_rows: bool
    b_by_rows: bool


def panel_source(stem: str, config: TrianglePanel, variant: Variant, routine) -> KernelSource:
    """The kernel of `config` whose steps `routine` names (see `build_sweep`).

    The kernel's parameters are pointers to T and B; int32 n and columns of B; int64 row and column stride
    of T, of B, batch strides of T, B (elements); alpha (real, imaginary part). Grid: x
    ``config.grid(columns)``, z the batch.
    """
    return KernelSource(
        name=stem,
        config=config,
        flags=tuple(sorted(vars(variant).items())),
        real=config.dtype_facts.real,
        parameters=PARAMETERS,
        threads=config.threads,
        min_blocks=config.min_blocks,
        shared_bytes=config.shared_bytes,
        build=lambda: build_sweep(config, variant, *routine(config, variant)),
    )


def _block_copier(config, rows: int, cols: int, place_row: int, place_col: int, by_rows: bool, triangle=None):
    """``copy(shared, source, row_stride, col_stride, t, rows_left, cols_left)``, element by element.

    Element (i, j) of the source goes to ``i*place_row + j*place_col``; neighbouring threads take
    neighbours in memory. `triangle`, 'unit' or 'non-unit', leaves out what lies above the diagonal.
    """
    PARTS, SIZE, THREADS = config.dtype_facts.parts, config.dtype_facts.itemsize, config.threads
    int32, int64, copy = ptx.types.int32, ptx.types.int64, ptx.copy_async(SIZE)
    FAST = rows if by_rows else cols
    TRIANGLE, FIRST = triangle is not None, 1 if triangle == "unit" else 0
    TOTAL = rows * cols

    @device_function
    def start(shared, source, row_stride, col_stride, t, rows_left, cols_left):
        for first in range(0, TOTAL, THREADS):
            fast, slow = (t + first) % FAST, (t + first) // FAST
            i, j = (fast, slow) if by_rows else (slow, fast)
            ok = (i < rows_left) & (j < cols_left)
            if TRIANGLE:
                ok = ok & (i - j >= FIRST)
            place = (i * place_row + j * place_col) * PARTS
            if t + first < TOTAL:
                copy(
                    shared, place, source, (i * row_stride + j * col_stride) * PARTS, int32(SIZE if ok else 0)
                )

    return start


def _panel_writer(config, by_rows: bool):
    """``write(b, panel, row_stride, col_stride, t, rows, cols)``: the panel back to B."""
    PARTS, THREADS, ROW = (
        config.dtype_facts.parts,
        config.threads,
        config.row_of_panel * config.dtype_facts.parts,
    )
    FAST, TOTAL = (config.BLK_M if by_rows else config.BLK_N), config.BLK_M * config.BLK_N
    store = ptx.store_global

    @device_function
    def write(b, panel, row_stride, col_stride, t, rows, cols):
        for first in range(0, TOTAL, THREADS):
            fast, slow = (t + first) % FAST, (t + first) // FAST
            i, j = (fast, slow) if by_rows else (slow, fast)
            ok = (i < rows) & (j < cols) & (t + first < TOTAL)
            at = (i * row_stride + j * col_stride) * PARTS
            for part in range(PARTS):
                store(b, at + part, panel[(i * ROW + j * PARTS if t + first < TOTAL else 0) + part], ok)

    return write


def build_sweep(config: TrianglePanel, variant: Variant, descending: bool, before, combine, solve):
    """The kernel function.

    `descending` walks the block rows from the last to the first. Then, at each block row,
    ``before(column, ...)`` works on a column of the panel ahead of the combination (TRMM's diagonal
    product), ``combine(panel element, accumulated, alpha)`` joins the two, ``solve(column, ...)`` works
    on a column after it (TRSM's substitution).
    """
    facts = config.dtype_facts
    real, PARTS = ptx.REALS[facts.real], facts.parts
    int64, offset = ptx.types.int64, ptx.offset
    BLK_M, BLK_N, BLK_K = config.BLK_M, config.BLK_N, config.BLK_K
    UNROLL, STAGES = config.UNROLL, config.stages
    DIM_X, DIM_Y, VEC_M, VEC_N = config.DIM_X, config.DIM_Y, config.VEC_M, config.VEC_N
    THR_M, THR_N, ROW = config.THR_M, config.THR_N, config.row_of_panel * PARTS
    ACC, FRAG_A, FRAG_B, COLUMN = THR_M * THR_N * PARTS, THR_M * PARTS, THR_N * PARTS, BLK_M * PARTS
    LEAD_T, LEAD_X = config.lead_t * PARTS, config.lead_x * PARTS
    B_STRIPE, STAGE = LEAD_T * BLK_K, config.stage_elements * PARTS
    SLICES, PLACES, DEPTH = config.SLICES, DIM_X * DIM_Y, BLK_K // config.SLICES
    DIAGONAL = STAGES * STAGE
    INVERSE = DIAGONAL + BLK_M * BLK_M * PARTS
    PANEL = INVERSE + BLK_M * PARTS

    triangle = "unit" if variant.unit else "non-unit"
    copy_t = _block_copier(config, BLK_M, BLK_K, 1, config.lead_t, variant.t_by_rows)
    copy_x = _block_copier(config, BLK_K, BLK_N, config.lead_x, 1, variant.b_by_rows)
    copy_diagonal = _block_copier(config, BLK_M, BLK_M, 1, BLK_M, variant.t_by_rows, triangle)
    copy_panel = _block_copier(config, BLK_M, BLK_N, config.row_of_panel, 1, variant.b_by_rows)
    write_panel = _panel_writer(config, variant.b_by_rows)
    load_t = ptx.load_shared(VEC_M * PARTS, THR_M // VEC_M, DIM_X * VEC_M * PARTS)
    load_x = ptx.load_shared(VEC_N * PARTS, THR_N // VEC_N, DIM_Y * VEC_N * PARTS)
    rank1 = ptx.rank1_update(THR_M, THR_N, PARTS, variant.conj, False)
    zero, commit, wait, wait_all = (
        ptx.fill(ACC),
        ptx.commit_async,
        ptx.wait_async(STAGES - 2),
        ptx.wait_async(0),
    )
    shared_pointer = ptx.shared_pointer

    @device_function
    def multiply_step(kk, acc, rt, rx, pt, px):
        load_t(rt, 0, pt, kk * LEAD_T)
        load_x(rx, 0, px, kk * LEAD_X)
        rank1(acc, rt, rx)

    multiply_steps = unrolled(UNROLL, multiply_step)

    @device_function
    def multiply(acc, rt, rx, pt, px):
        for kk in range(0, DEPTH, UNROLL):
            multiply_steps(kk, acc, rt, rx, pt, px)

    @device_function
    def add_slices(acc, ring, slice, place):
        if SLICES > 1:
            if slice > 0:
                for x in range(ACC):
                    ring[((slice - 1) * ACC + x) * PLACES + place] = acc[x]
            cuda.syncthreads()
            if slice == 0:
                for other in range(SLICES - 1):
                    for x in range(ACC):
                        acc[x] += ring[(other * ACC + x) * PLACES + place]

    @device_function
    def combine_column(j, panel, acc, tx, ty, alpha, alpha_i):
        col = (j // VEC_N) * (DIM_Y * VEC_N) + ty * VEC_N + j % VEC_N
        for i in range(THR_M):
            row = (i // VEC_M) * (DIM_X * VEC_M) + tx * VEC_M + i % VEC_M
            combine(panel, row * ROW + col * PARTS, acc, (j * THR_M + i) * PARTS, alpha, alpha_i)

    combine_columns = unrolled(THR_N, combine_column)

    @device_function
    def start_stripe(ring, s, t_row, b, t_rs, t_cs, b_rs, b_cs, t, rows, cols, depth):
        k = s * BLK_K
        if k < depth:
            stage = offset(ring, s % STAGES * STAGE)
            copy_t(stage, offset(t_row, k * t_cs * PARTS), t_rs, t_cs, t, rows, depth - k)
            copy_x(offset(stage, B_STRIPE), offset(b, k * b_rs * PARTS), b_rs, b_cs, t, depth - k, cols)
        commit()

    def triangle_sweep(tri, b, n, r, t_rs, t_cs, b_rs, b_cs, stride_t, stride_b, alpha, alpha_i):
        # (1) the columns of this block, the place of this thread
        t = cuda.threadIdx.x
        slice, place = t // PLACES, t % PLACES
        tx, ty = place % DIM_X, place // DIM_X
        col0 = cuda.blockIdx.x * BLK_N
        cols, batch = r - col0, int64(cuda.blockIdx.z)
        tri = offset(tri, batch * stride_t * PARTS)
        b = offset(b, (batch * stride_b + col0 * b_cs) * PARTS)
        ring = shared_pointer(cuda.shared.array(0, real, alignment=16))
        diagonal, inverse, panel = offset(ring, DIAGONAL), offset(ring, INVERSE), offset(ring, PANEL)
        acc, column = cuda.local.array(ACC, real), cuda.local.array(COLUMN, real)
        rt, rx = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)

        blocks = (n + BLK_M - 1) // BLK_M
        for step in range(blocks):
            row0 = int64(blocks - 1 - step if descending else step) * BLK_M
            rows, stripes = n - row0, (row0 + BLK_K - 1) // BLK_K
            t_row, b_row = offset(tri, row0 * t_rs * PARTS), offset(b, row0 * b_rs * PARTS)

            # (2) the panel and the diagonal block set out for shared memory
            copy_panel(panel, b_row, b_rs, b_cs, t, rows, cols)
            copy_diagonal(diagonal, offset(t_row, row0 * t_cs * PARTS), t_rs, t_cs, t, rows, rows)

            # (3) acc := T[i, :i] B[:i]
            zero(acc, real(0))
            for s in range(STAGES - 1):
                start_stripe(ring, s, t_row, b, t_rs, t_cs, b_rs, b_cs, t, rows, cols, row0)
            for s in range(stripes):
                wait()
                cuda.syncthreads()
                start_stripe(ring, s + STAGES - 1, t_row, b, t_rs, t_cs, b_rs, b_cs, t, rows, cols, row0)
                stage = offset(ring, s % STAGES * STAGE)
                multiply(
                    acc,
                    rt,
                    rx,
                    offset(stage, slice * DEPTH * LEAD_T + tx * VEC_M * PARTS),
                    offset(stage, B_STRIPE + slice * DEPTH * LEAD_X + ty * VEC_N * PARTS),
                )
            wait_all()
            cuda.syncthreads()

            # (4) the diagonal block, a thread a column, before and after the two parts are joined
            before(column, offset(panel, t * PARTS), diagonal, inverse, t, rows)
            add_slices(acc, ring, slice, place)
            if slice == 0:
                combine_columns(0, panel, acc, tx, ty, alpha, alpha_i)
            cuda.syncthreads()
            solve(column, offset(panel, t * PARTS), diagonal, inverse, t, rows)

            # (5) the panel goes back to B
            write_panel(b_row, panel, b_rs, b_cs, t, rows, cols)
            cuda.syncthreads()

    return triangle_sweep


def column_reader(config: TrianglePanel):
    """``read(column, panel)``: a column of the panel into registers."""
    PARTS, BLK_M, ROW = config.dtype_facts.parts, config.BLK_M, config.row_of_panel * config.dtype_facts.parts

    @device_function
    def read(column, panel):
        for i in range(BLK_M):
            for part in range(PARTS):
                column[i * PARTS + part] = panel[i * ROW + part]

    return read


def column_writer(config: TrianglePanel):
    """``write(column, panel)``: registers back into a column of the panel."""
    PARTS, BLK_M, ROW = config.dtype_facts.parts, config.BLK_M, config.row_of_panel * config.dtype_facts.parts

    @device_function
    def write(column, panel):
        for i in range(BLK_M):
            for part in range(PARTS):
                panel[i * ROW + part] = column[i * PARTS + part]

    return write
