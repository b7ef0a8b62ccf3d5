"""What the GEMM kernels have in common: all but the innermost product.

    C (m x n, rows contiguous) := alpha * A (m x k) * B (k x n) + beta * C

A block computes a BLK_M x BLK_N tile of C; A and B pass in stripes BLK_K deep (`stripe`). A family brings a
`Product`: how a thread multiplies a stripe into its accumulators, and which elements of the tile are its.
All four dtypes are one text: memory is read as reals, `parts` of them an element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ..common.options import CONJUGATE, HERMITIAN
from ..common.region import contains, contains_tile
from ..common.smem_tile import loaders, tile_iterator
from ..common.tile_scheduler import tile_origins
from .config import GemmConfig
from .load_stage import load_stage

__all__ = ["Product", "build", "mma_k_block", "reals_read", "mainloop", "epilogue"]

READ_AHEAD = 16  # reals of C that a thread reads before it writes any
READ_AHEAD_PERSISTENT = 8


@dataclass(frozen=True)
class Product:
    """What a family brings to the body.

    Attributes
    ----------
    load : device function
        ``load(step, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth)``: what thread `t` multiplies in
        a step, from the stripes in shared memory, or from A and B.
    update : device function
        ``update(acc, ra, rb)``: one step.
    unroll : int
        Steps that are unrolled where there is no prefetching.
    row, col : device function
        ``row(i, t)``, ``col(j, t)``: where in the tile the i-th row, the j-th column of thread `t` stands.
    fragment_a, fragment_b : int
        Reals of the register arrays `ra` and `rb`.
    run : int
        Rows that follow one another in every `run` rows of a thread.
    combine : device function, optional
        ``combine(0, acc)``: makes a thread's elements of its sums, where these are not they.
    """

    load: Callable
    update: Callable
    unroll: int
    row: Callable
    col: Callable
    fragment_a: int
    fragment_b: int
    run: int
    combine: Any = None


def epilogue(config: GemmConfig, product: Product, triangular: bool = False):
    """``write(...)``: C := alpha acc + beta C, of the tile that begins at `c`; without beta C is not read.
    `options` tell which triangle of C is meant, if the kernel is `triangular`, and whether acc is conjugated.

    What lies beyond `rows` and `cols`, or the triangle, is left alone. A tile that is whole is
    written without asking for each element, by vectors where C is aligned for them.
    """
    BLK_M, BLK_N, RUN, PARTS = config.BLK_M, config.BLK_N, product.run, config.dtype_facts.reals_per_element
    real, aligned = ptx.REALS[config.dtype_facts.real], ptx.is_aligned(RUN * PARTS)
    overwrite, update = (_writer(config, product, reads_c, RUN, triangular) for reads_c in (False, True))
    overwrite_edge, update_edge = (
        _writer(config, product, reads_c, 0, triangular) for reads_c in (False, True)
    )
    is_covered = contains_tile(BLK_M, BLK_N, triangular)

    @device_function
    def write(c, acc, old, ldc, t, rows, cols, shift, options, alpha, alpha_i, beta, beta_i):
        # alpha conj(acc) is the sum of other products with the same alpha: the sign goes with alpha
        sign = real(-1) if options & CONJUGATE else real(1)
        scalars = alpha, alpha_i, sign * alpha, sign * alpha_i, beta, beta_i
        # the branches stand outside the unrolled columns
        reads_c = (beta != real(0)) | (beta_i != real(0))
        if rows >= BLK_M and cols >= BLK_N and is_covered(shift, options) and aligned(c) and ldc % RUN == 0:
            if reads_c:
                update(0, c, acc, old, ldc, t, rows, cols, shift, options, scalars)
            else:
                overwrite(0, c, acc, old, ldc, t, rows, cols, shift, options, scalars)
        elif reads_c:
            update_edge(0, c, acc, old, ldc, t, rows, cols, shift, options, scalars)
        else:
            overwrite_edge(0, c, acc, old, ldc, t, rows, cols, shift, options, scalars)

    return write


def reals_read(config: GemmConfig, run: int, triangular: bool = False) -> int:
    """Reals of C that a thread reads, `run` rows at a time, before it writes any of them; 0: one, at edges.

    A store keeps the loads after it from beginning before it, since it may be what they read. A persistent
    block has fewer registers for them, as it holds the first fragments of the next tile; at edges, and in
    masks of a triangle, there are none to spare.
    """
    width = max(run, 1) * config.dtype_facts.reals_per_element
    ahead = READ_AHEAD_PERSISTENT if config.persistent else READ_AHEAD
    if run == 0 and (config.persistent or triangular):
        ahead = width
    most, vectors = max(ahead // width, 1), config.THR_M * config.THR_N // max(run, 1)
    return width * next(count for count in range(min(most, vectors), 0, -1) if vectors % count == 0)


def _writer(config: GemmConfig, product: Product, reads_c: bool, run: int, triangular: bool):
    """``write(0, ...)``: all of the thread, `run` rows of a column at a time; 0: one, and none beyond the
    edges or the triangle.
    """
    PARTS, THR_M, RUN = config.dtype_facts.reals_per_element, config.THR_M, max(run, 1)
    EDGE, COMPLEX, WIDTH = run == 0, config.dtype_facts.is_complex, RUN * PARTS
    MAY_BE_REAL, in_region = EDGE and COMPLEX and triangular, contains(triangular)
    VECTORS, TOGETHER = THR_M // RUN, reals_read(config, run, triangular) // WIDTH if reads_c else 1
    int64, real = ptx.types.int64, ptx.REALS[config.dtype_facts.real]
    row_of, col_of = product.row, product.col
    read, store = ptx.load_global(WIDTH, False), ptx.store_global_vector(WIDTH)

    @device_function
    def place(vector, t):
        return row_of(vector % VECTORS * RUN, t), col_of(vector // VECTORS, t)

    @device_function
    def is_there(row, col, rows, cols, shift, options):
        return (row < rows) & (col < cols) & in_region(row, col, shift, options) if EDGE else True

    @device_function
    def is_real(row, col, shift, options):
        """Whether it is on a Hermitian diagonal."""
        return (options & HERMITIAN != 0) & (row + shift == col) if MAY_BE_REAL else False

    @device_function
    def fetch(i, first, c, old, ldc, t, rows, cols, shift, options):
        row, col = place(first + i, t)
        ok = is_there(row, col, rows, cols, shift, options)
        read(old, i * WIDTH, c, (int64(col) * ldc + row) * PARTS, ok)
        if MAY_BE_REAL and is_real(row, col, shift, options):
            old[i * WIDTH + 1] = real(0)

    @device_function
    def scale(i, x, y, acc, old, scalars):
        alpha, alpha_i, signed, signed_i, beta, beta_i = scalars
        x, y = x + i * PARTS, y + i * PARTS
        if COMPLEX:
            re = alpha * acc[x] - signed_i * acc[x + 1]
            im = signed * acc[x + 1] + alpha_i * acc[x]
            if reads_c:
                re += beta * old[y] - beta_i * old[y + 1]
                im += beta * old[y + 1] + beta_i * old[y]
            acc[x], acc[x + 1] = re, im
        else:
            re = alpha * acc[x]
            if reads_c:
                re += beta * old[y]
            acc[x] = re

    scale_run = unrolled(RUN, scale)

    @device_function
    def put(i, first, c, acc, old, ldc, t, rows, cols, shift, options, scalars):
        row, col = place(first + i, t)
        x = (first + i) * WIDTH
        scale_run(0, x, i * WIDTH, acc, old, scalars)
        if MAY_BE_REAL and is_real(row, col, shift, options):
            acc[x + 1] = real(0)
        store(c, (int64(col) * ldc + row) * PARTS, acc, x, is_there(row, col, rows, cols, shift, options))

    fetch_all, put_all = unrolled(TOGETHER, fetch), unrolled(TOGETHER, put)

    @device_function
    def write(group, c, acc, old, ldc, t, rows, cols, shift, options, scalars):
        first = group * TOGETHER
        if reads_c:
            fetch_all(0, first, c, old, ldc, t, rows, cols, shift, options)
        put_all(0, first, c, acc, old, ldc, t, rows, cols, shift, options, scalars)

    return unrolled(VECTORS * config.THR_N // TOGETHER, write)


def mma_k_block(config: GemmConfig, product: Product):
    """``multiply(acc, ra, rb, shared, a, b, ...)``: a stripe, each step read just before it is needed."""
    load, update, STEPS, UNROLL = product.load, product.update, config.steps, product.unroll

    @device_function
    def multiply_step(step, acc, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth):
        load(step, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth)
        update(acc, ra, rb)

    multiply_steps = unrolled(UNROLL, multiply_step)

    @device_function
    def multiply(acc, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth):
        for step in range(0, STEPS, UNROLL):
            multiply_steps(step, acc, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth)

    return multiply


def _middle(config: GemmConfig, product: Product):
    """``multiply(acc, ra, rb, ra_next, rb_next, ...)``: the steps of a stripe but the first and the last.

    It begins and ends with what comes next in the second set of registers.
    """
    load, update = product.load, product.update

    @device_function
    def pair(i, acc, ra, rb, ra_next, rb_next, shared, a, b, lda, ldb, t, rows, cols, depth):
        load(2 * i + 2, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth)
        update(acc, ra_next, rb_next)
        load(2 * i + 3, ra_next, rb_next, shared, a, b, lda, ldb, t, rows, cols, depth)
        update(acc, ra, rb)

    return unrolled(config.steps // 2 - 1, pair)


def mainloop_step(config: GemmConfig, product: Product, start: Callable):
    """``multiply(...)`` of a kernel with stages: multiply the stripe that is `here`, `start` one that comes
    later. With prefetching the first step of the stripe that is `there`, the next, is read at the end.
    """
    load, update, PREFETCH = product.load, product.update, config.prefetch
    multiply, multiply_middle = mma_k_block(config, product), _middle(config, product)
    wait = ptx.wait_async(config.stages - 2)

    @device_function
    def multiply_stage(
        acc, ra, rb, ra_next, rb_next, here, there, into, staged_a, staged_b,
        ahead_a, ahead_b, ahead_rows, ahead_cols, ahead, a, b, lda, ldb, t, rows, cols, depth,
    ):  # fmt: skip
        if PREFETCH:
            load(1, ra_next, rb_next, here, a, b, lda, ldb, t, rows, cols, depth)
            update(acc, ra, rb)
            start(into, staged_a, staged_b, ahead_a, ahead_b, lda, ldb, t, ahead_rows, ahead_cols, ahead)
            multiply_middle(0, acc, ra, rb, ra_next, rb_next, here, a, b, lda, ldb, t, rows, cols, depth)
            wait()
            cuda.syncthreads()
            load(0, ra, rb, there, a, b, lda, ldb, t, rows, cols, depth)
            update(acc, ra_next, rb_next)
        else:
            wait()
            cuda.syncthreads()
            start(into, staged_a, staged_b, ahead_a, ahead_b, lda, ldb, t, ahead_rows, ahead_cols, ahead)
            multiply(acc, ra, rb, here, a, b, lda, ldb, t, rows, cols, depth)

    return multiply_stage


def mainloop(config: GemmConfig, product: Product, operands: Callable, advance: Callable):
    """``start(...)``: begin to load a stage; ``run_mainloop(stripes, ...)``: multiply so many stripes, while
    later ones are loaded.

    `run_mainloop` returns what is `ahead` of the loads then, and the stage that is read next. `given` begins
    with two of the kernel's pointers. ``operands(ahead, given, tile)`` tells what to load: pointers into A
    and B, their leading strides, rows, columns and depth. ``advance(ahead, given, tile)`` goes on by a
    stripe.
    """
    STAGES, STAGE, int32, offset = config.stages, config.stage_reals, ptx.types.int32, ptx.offset
    load_a, load_b = (loaders(stripe, STAGES, True) for stripe in (config.stripe_a, config.stripe_b))
    start = load_stage(config, load_a, load_b)
    multiply_stage = mainloop_step(config, product, start)

    @device_function
    def run_mainloop(stripes, ahead, reading, shared, registers, given, tile, t):
        acc, ra, rb, ra_next, rb_next, old = registers
        a, b, _, _ = given
        for _ in range(stripes):
            here = offset(shared, reading * STAGE)
            into = offset(shared, (reading - 1 if reading > 0 else STAGES - 1) * STAGE)
            reading = int32(reading + 1 if reading < STAGES - 1 else 0)
            there = offset(shared, reading * STAGE)
            pa, pb, lda, ldb, rows, cols, depth = operands(ahead, given, tile)
            multiply_stage(
                acc, ra, rb, ra_next, rb_next, here, there, into, old, old,
                pa, pb, rows, cols, depth, a, b, lda, ldb, t, 0, 0, 0,
            )  # fmt: skip
            ahead = advance(ahead, given, tile)
        return ahead, reading

    return start, run_mainloop


def build(config: GemmConfig, product: Product, triangular: bool = False, waits: bool = True):
    """The ordinary kernel's function: a block computes one tile of C, of those that a triangle meets if it is
    `triangular`. `waits`: it waits for the launch before.
    """
    facts = config.dtype_facts
    real, PARTS = ptx.REALS[facts.real], facts.reals_per_element
    int32, int64 = ptx.types.int32, ptx.types.int64
    BLK_M, BLK_N, BLK_K, STAGES = config.BLK_M, config.BLK_N, config.BLK_K, config.stages
    PREFETCH = config.prefetch
    ACC, FRAG_A, FRAG_B = config.sums, product.fragment_a, product.fragment_b
    COMBINED, combine = product.combine is not None, product.combine
    OLD = max(reals_read(config, run, triangular) for run in (0, product.run))
    NEXT_A, NEXT_B = (FRAG_A, FRAG_B) if PREFETCH else (1, 1)
    SHARE_A, SHARE_B = config.shares
    B_STRIPE, STAGE = config.place_b, config.stage_reals
    STAGED_A, STAGED_B = config.stripe_a.staged(config.threads), config.stripe_b.staged(config.threads)

    load_a = loaders(config.stripe_a, STAGES, SHARE_A)
    load_b = loaders(config.stripe_b, STAGES, SHARE_B)
    iterator_a, iterator_b = tile_iterator(config.stripe_a), tile_iterator(config.stripe_b)
    begin_a, begin_b, next_a, next_b = iterator_a.begin, iterator_b.begin, iterator_a.step, iterator_b.step
    start, finish_a, finish_b = load_stage(config, load_a, load_b), load_a.finish, load_b.finish
    load, multiply, zero = product.load, mma_k_block(config, product), ptx.fill(ACC)
    multiply_stage: Any = mainloop_step(config, product, start) if STAGES > 1 else None
    place = tile_origins(BLK_M, BLK_N, triangular)
    write = epilogue(config, product, triangular)
    wait = ptx.wait_async(max(STAGES - 2, 0))
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait

    def gemm(
        a, b, c, m, n, k, options, lda, ldb, ldc, stride_a, stride_b, stride_c, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the tile of this block
        t = cuda.threadIdx.x
        tiles_m, tiles_n = (m + BLK_M - 1) // BLK_M, (n + BLK_N - 1) // BLK_N
        row0, col0 = place(cuda.blockIdx.x, tiles_m, tiles_n, options)
        rows, cols, depth, shift = m - row0, n - col0, int32(k), row0 - col0
        batch = int64(cuda.blockIdx.z)
        a = offset(a, (batch * stride_a + begin_a(row0, int64(0), lda)) * PARTS)
        b = offset(b, (batch * stride_b + begin_b(col0, int64(0), ldb)) * PARTS)
        c = offset(c, (batch * stride_c + col0 * ldc + row0) * PARTS)
        step_a, step_b = next_a(lda) * PARTS, next_b(ldb) * PARTS
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))

        # (2) zero the accumulators
        acc, old = cuda.local.array(ACC, real), cuda.local.array(OLD, real)
        ra, rb = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)
        ra_next, rb_next = cuda.local.array(NEXT_A, real), cuda.local.array(NEXT_B, real)
        staged_a, staged_b = cuda.local.array(STAGED_A, real), cuda.local.array(STAGED_B, real)
        zero(acc, real(0))

        # (3) prologue: the first stripes
        if waits:
            grid_dependency_wait()
        stripes = (k + BLK_K - 1) // BLK_K
        ahead_a, ahead_b, ahead = a, b, depth
        for stage in range(max(STAGES - 1, 1)):
            into = offset(shared, stage * STAGE)
            start(into, staged_a, staged_b, ahead_a, ahead_b, lda, ldb, t, rows, cols, ahead)
            ahead_a, ahead_b, ahead = offset(ahead_a, step_a), offset(ahead_b, step_b), ahead - BLK_K
        if PREFETCH:
            wait()
            cuda.syncthreads()
            load(0, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth)

        # (4) body: start a stripe that comes later, multiply the present one
        reading = 0
        for stripe in range(stripes):
            here = offset(shared, reading * STAGE)
            into = offset(shared, (reading - 1 if reading > 0 else STAGES - 1) * STAGE)
            reading = reading + 1 if reading < STAGES - 1 else 0
            if STAGES > 1:
                there = offset(shared, reading * STAGE)
                multiply_stage(
                    acc, ra, rb, ra_next, rb_next, here, there, into, staged_a, staged_b,
                    ahead_a, ahead_b, rows, cols, ahead, a, b, lda, ldb, t, rows, cols, depth,
                )  # fmt: skip
            else:
                if stripe > 0:
                    cuda.syncthreads()
                finish_a(shared, staged_a, t)
                finish_b(offset(shared, B_STRIPE), staged_b, t)
                cuda.syncthreads()
                start(into, staged_a, staged_b, ahead_a, ahead_b, lda, ldb, t, rows, cols, ahead)
                multiply(acc, ra, rb, here, a, b, lda, ldb, t, rows, cols, depth)
            a, ahead_a = offset(a, step_a), offset(ahead_a, step_a)
            b, ahead_b = offset(b, step_b), offset(ahead_b, step_b)
            depth, ahead = depth - BLK_K, ahead - BLK_K

        # (5) C := alpha acc + beta C
        if COMBINED:
            combine(0, acc)
        write(c, acc, old, ldc, t, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)

    gemm.__name__ = gemm.__qualname__ = config.STEM  # what a profiler shows
    return gemm
