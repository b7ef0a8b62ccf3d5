"""A sweep over one panel of columns of B, in place: all of `trmm_leaf`, and part of the leaves of TRSM.

T is lower triangular (n x n), B has n rows. A block of threads owns BLK_N columns of B for the whole
kernel, so that blocks need not wait for each other. It computes the block rows of B, BLK_M high; at each it
sums T[i, k] B[k] over the columns k of T to the left by the GEMM stencil, k-tile by k-tile.

Both strides of T and B are free and may be negative: transposition, the right side and upper triangles
(read backwards) are views.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from .coalesced_index import coalesced_index
from .kernel_config import KernelConfig


@dataclass(frozen=True)
class TrianglePanel(KernelConfig):
    """Config of a leaf kernel.

    Attributes
    ----------
    BLK_M, BLK_N, BLK_K : int
        Rows of a diagonal block, columns of B a block of threads owns, depth of a k-tile.
    DIM_X, DIM_Y, SLICED_K : int
        Threads along M, N, and along the depth of a k-tile: each slice sums its own part of the depth, and
        the slices' sums are added in order. They hide the latency that few columns leave bare.
    VEC_M, VEC_N : int
        Adjacent rows, columns of a thread: the width of its loads from shared memory.
    UNROLL : int
        Steps along k that are unrolled.
    stages : int
        Stages in shared memory, at least 2.
    min_blocks : int
        Blocks a multiprocessor must be able to hold.
    """

    BLK_M: int
    BLK_N: int
    BLK_K: int
    DIM_X: int
    DIM_Y: int
    SLICED_K: int = 1
    VEC_M: int = 1
    VEC_N: int = 1
    UNROLL: int = 8
    stages: int = 2
    min_blocks: int = 1

    ORDER: ClassVar[int] = 2**31 - 1  # of the largest triangle

    def __post_init__(self):
        m, n, k, x, y, threads = self.BLK_M, self.BLK_N, self.BLK_K, self.DIM_X, self.DIM_Y, self.threads
        size = self.dtype_facts.itemsize
        require(
            threads <= 1024,
            "max_threads",
            "DIM_X * DIM_Y * SLICED_K <= 1024",
            DIM_X=x,
            DIM_Y=y,
            SLICED_K=self.SLICED_K,
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
        require(
            k % (self.SLICED_K * self.UNROLL) == 0,
            "unroll",
            "BLK_K % (SLICED_K * UNROLL) == 0",
            BLK_K=k,
            SLICED_K=self.SLICED_K,
            UNROLL=self.UNROLL,
        )
        for name, vector in (("VEC_M", self.VEC_M), ("VEC_N", self.VEC_N)):
            require(
                vector * size in (4, 8, 16),
                "fragment_bytes",
                f"{name} * itemsize in (4, 8, 16)",
                vector=vector,
                itemsize=size,
            )

    @property
    def threads(self) -> int:
        return self.DIM_X * self.DIM_Y * self.SLICED_K

    @property
    def THR_M(self) -> int:
        return self.BLK_M // self.DIM_X

    @property
    def THR_N(self) -> int:
        return self.BLK_N // self.DIM_Y

    @property
    def ld_t(self) -> int:
        """Elements from one k to the next in a k-tile of T, padded against bank conflicts."""
        return self.BLK_M + self.VEC_M

    @property
    def ld_x(self) -> int:
        """Elements from one k to the next in a k-tile of B."""
        return self.BLK_N + self.VEC_N

    @property
    def stage_elements(self) -> int:
        return (self.ld_t + self.ld_x) * self.BLK_K

    @property
    def ring_elements(self) -> int:
        return self.stages * self.stage_elements

    @property
    def sum_elements(self) -> int:
        """Elements of the sums that all slices but the first pass on."""
        return (self.SLICED_K - 1) * self.BLK_M * self.BLK_N

    @property
    def tile_elements(self) -> int:
        """Elements of the stencil that a thread keeps."""
        return self.THR_M * self.THR_N + self.THR_M + self.THR_N

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded in the innermost loop."""
        return self.dtype_facts.reuse(self.THR_M, self.THR_N)

    def grid(self, columns: int) -> int:
        """Blocks along x for `columns` columns of B."""
        return -(-columns // self.BLK_N)


def block_copier(
    config,
    rows: int,
    cols: int,
    row_step: int,
    col_step: int,
    triangular: bool = False,
    unrolls: bool = True,
):
    """``copy(shared, source, row_stride, col_stride, t, rows_left, cols_left, shift, first)``,
    asynchronously.

    Element (i, j) of the source goes to ``i*row_step + j*col_step``; neighbouring threads take neighbours in
    memory. Of what is `triangular`, elements with ``i + shift - j < first`` are zeros and not read: what is
    above the diagonal, and for 1 the diagonal. A copier that `unrolls` takes fewer instructions, and
    registers for many addresses at once.
    """
    REALS, SIZE = config.dtype_facts.reals_per_element, config.dtype_facts.itemsize
    int32, copy, opaque = ptx.types.int32, ptx.copy_async(SIZE), ptx.opaque

    def copier(by_rows: bool):
        over = coalesced_index(rows, cols, config.threads, by_rows)
        COUNT, coords, has, following, at_first = (
            over.count,
            over.coords,
            over.has,
            over.following,
            over.first,
        )

        @device_function
        def start(shared, source, row_stride, col_stride, t, rows_left, cols_left, shift, first):
            at = at_first(t, row_stride, col_stride)
            for k in range(COUNT if unrolls else opaque(int32(COUNT))):
                i, j = coords(t, k)
                ok = (i < rows_left) & (j < cols_left)
                if triangular:
                    ok = ok & (i + shift - j >= first)
                if has(t, k):
                    to = (i * row_step + j * col_step) * REALS
                    copy(shared, to, source, at * REALS, int32(SIZE if ok else 0))
                at = following(at, t, k, row_stride, col_stride)

        return start

    if rows == cols:
        return _square_copier(config, rows, row_step, col_step, triangular, unrolls)
    along_rows, along_cols = copier(True), copier(False)

    @device_function
    def start(shared, source, row_stride, col_stride, t, rows_left, cols_left, shift, first):
        if abs(row_stride) <= abs(col_stride):
            along_rows(shared, source, row_stride, col_stride, t, rows_left, cols_left, shift, first)
        else:
            along_cols(shared, source, row_stride, col_stride, t, rows_left, cols_left, shift, first)

    return start


def _square_copier(config, order: int, row_step: int, col_step: int, triangular: bool, unrolls: bool):
    """Return the copier of a square: one loop, in which rows and columns change places."""
    REALS, SIZE = config.dtype_facts.reals_per_element, config.dtype_facts.itemsize
    int32, copy, opaque = ptx.types.int32, ptx.copy_async(SIZE), ptx.opaque
    over = coalesced_index(order, order, config.threads, True)
    COUNT, coords, has, following, at_first = over.count, over.coords, over.has, over.following, over.first

    @device_function
    def start(shared, source, row_stride, col_stride, t, rows_left, cols_left, shift, first):
        by_rows = abs(row_stride) <= abs(col_stride)
        fast_stride, slow_stride = (row_stride, col_stride) if by_rows else (col_stride, row_stride)
        at = at_first(t, fast_stride, slow_stride)
        for k in range(COUNT if unrolls else opaque(int32(COUNT))):
            fast, slow = coords(t, k)
            i, j = (fast, slow) if by_rows else (slow, fast)
            ok = (i < rows_left) & (j < cols_left)
            if triangular:
                ok = ok & (i + shift - j >= first)
            if has(t, k):
                to = (i * row_step + j * col_step) * REALS
                copy(shared, to, source, at * REALS, int32(SIZE if ok else 0))
            at = following(at, t, k, fast_stride, slow_stride)

    return start


def step_multiplier(config: TrianglePanel, conj: bool):
    """``step(kk, acc, rt, rx, pt, px)``: one k of a k-tile, by the thread's fragments `rt` and `rx`."""
    REALS, VEC_M, VEC_N = config.dtype_facts.reals_per_element, config.VEC_M, config.VEC_N
    LD_T, LD_X = config.ld_t * REALS, config.ld_x * REALS
    load_t = ptx.load_shared(VEC_M * REALS, config.THR_M // VEC_M, config.DIM_X * VEC_M * REALS)
    load_x = ptx.load_shared(VEC_N * REALS, config.THR_N // VEC_N, config.DIM_Y * VEC_N * REALS)
    rank1 = ptx.rank1_update(config.THR_M, config.THR_N, REALS, conj, False)

    @device_function
    def step(kk, acc, rt, rx, pt, px):
        load_t(rt, 0, pt, kk * LD_T)
        load_x(rx, 0, px, kk * LD_X)
        rank1(acc, rt, rx)

    return step


def k_tile_multiplier(config: TrianglePanel, conj: bool):
    """``multiply(acc, rt, rx, pt, px)``: a slice's part of a k-tile."""
    DEPTH, UNROLL = config.BLK_K // config.SLICED_K, config.UNROLL
    steps = unrolled(UNROLL, step_multiplier(config, conj))

    @device_function
    def multiply(acc, rt, rx, pt, px):
        for kk in range(0, DEPTH, UNROLL):
            steps(kk, acc, rt, rx, pt, px)

    return multiply


def slice_adder(config: TrianglePanel):
    """``add(acc, sums, slice, thread)``: the first slice's `acc` becomes the sum of all, in order."""
    SLICED_K, SLICE_THREADS = config.SLICED_K, config.DIM_X * config.DIM_Y
    ACC = config.THR_M * config.THR_N * config.dtype_facts.reals_per_element

    @device_function
    def add(acc, sums, slice, thread):
        if SLICED_K > 1:
            if slice > 0:
                for x in range(ACC):
                    sums[((slice - 1) * ACC + x) * SLICE_THREADS + thread] = acc[x]
            cuda.syncthreads()
            if slice == 0:
                for other in range(SLICED_K - 1):
                    for x in range(ACC):
                        acc[x] += sums[(other * ACC + x) * SLICE_THREADS + thread]

    return add


def tile_visitor(config: TrianglePanel, visit):
    """``visit_all(0, ..., tx, ty)``: ``visit(row, col, x, ...)`` for every element of the thread's tile.

    `x` is the offset of the element's first real in the accumulators; further arguments are passed on
    unchanged.
    """
    THR_M, VEC_M, VEC_N = config.THR_M, config.VEC_M, config.VEC_N
    REALS = config.dtype_facts.reals_per_element
    DIM_X, DIM_Y = config.DIM_X, config.DIM_Y

    @device_function
    def column(j, tx, ty, acc, target, row_stride, col_stride, rows, cols, alpha, alpha_i):
        col = (j // VEC_N) * (DIM_Y * VEC_N) + ty * VEC_N + j % VEC_N
        for i in range(THR_M):
            row = (i // VEC_M) * (DIM_X * VEC_M) + tx * VEC_M + i % VEC_M
            at = (row * row_stride + col * col_stride) * REALS
            visit(target, at, acc, (j * THR_M + i) * REALS, (row < rows) & (col < cols), alpha, alpha_i)

    return unrolled(config.THR_N, column)
