"""The body of all GEMM kernels, except the innermost product.

    C (m x n, rows contiguous) := alpha * A (m x k) * B (k x n) + beta * C

A block computes a BLK_M x BLK_N tile of C; A and B pass in k-tiles BLK_K deep (`k_tile`). A family supplies a
`Product`, and `epilogue` writes C. All four dtypes are one text: memory is read as reals, one or two an
element.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ...gpu.backend import by_constant, cuda, device_function, ptx, unrolled
from ..common.region import intersects
from ..common.tile_iterators import tile_iterator
from ..common.tile_loaders import loaders
from ..common.tile_scheduler import tile_origins
from .config import GemmConfig
from .epilogue import epilogue, reals_read
from .load_stage import load_stage
from .product import Product
from .slice_sums import sum_completer

__all__ = ["build", "mainloop", "mma_k_block"]


def mma_k_block(config: GemmConfig, product: Product):
    """``multiply(acc, ra, rb, shared, a, b, ...)``: a k-tile, each step read just before it is needed."""
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
    """``multiply(acc, ra, rb, ra_next, rb_next, ...)``: the steps of a k-tile but the first and the last.

    It begins and ends with the next operands in the second set of registers.
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
    """``multiply(vectors, ...)`` of a kernel with stages: multiply the k-tile that is `here`, `start` one
    that is loaded later. With prefetching the first step of the k-tile that is `there`, the next, is read at
    the end.
    """
    load, update, PREFETCH = product.load, product.update, config.prefetch
    multiply, multiply_middle = mma_k_block(config, product), _middle(config, product)
    wait = ptx.wait_async(config.stages - 2)

    @device_function
    def multiply_stage(
        vectors, acc, ra, rb, ra_next, rb_next, here, there, into, staged_a, staged_b,
        src_a, src_b, src_rows, src_cols, src_depth, a, b, lda, ldb, t, rows, cols, depth,
    ):  # fmt: skip
        if PREFETCH:
            load(1, ra_next, rb_next, here, a, b, lda, ldb, t, rows, cols, depth)
            update(acc, ra, rb)
            start(
                vectors,
                into,
                staged_a,
                staged_b,
                src_a,
                src_b,
                lda,
                ldb,
                t,
                src_rows,
                src_cols,
                src_depth,
            )
            multiply_middle(0, acc, ra, rb, ra_next, rb_next, here, a, b, lda, ldb, t, rows, cols, depth)
            wait()
            cuda.syncthreads()
            load(0, ra, rb, there, a, b, lda, ldb, t, rows, cols, depth)
            update(acc, ra_next, rb_next)
        else:
            wait()
            cuda.syncthreads()
            start(
                vectors,
                into,
                staged_a,
                staged_b,
                src_a,
                src_b,
                lda,
                ldb,
                t,
                src_rows,
                src_cols,
                src_depth,
            )
            multiply(acc, ra, rb, here, a, b, lda, ldb, t, rows, cols, depth)

    return multiply_stage


def mainloop(config: GemmConfig, product: Product, operands: Callable, advance: Callable) -> SimpleNamespace:
    """``start(vectors, ...)``, ``is_aligned(a, b, lda, ldb)`` and `ONE_WAY` of `load_stage`; ``run(vectors,
    k_tiles, ...)``: multiply `k_tiles` k-tiles, while later ones are loaded.

    It returns the `load_state` then, and the stage that is read next. `params` begins with two of the
    kernel's pointers. ``operands(load_state, params, tile)`` returns what to load: pointers into A and B,
    their leading dimensions, rows, columns and depth. ``advance(load_state, params, tile)`` goes on by a
    k-tile.
    """
    STAGES, STAGE, int32, offset = config.stages, config.stage_reals, ptx.types.int32, ptx.offset
    load_a, load_b = (loaders(k_tile, STAGES, True) for k_tile in (config.smem_tile_a, config.smem_tile_b))
    stage = load_stage(config, load_a, load_b)
    multiply_stage, ONE_WAY = mainloop_step(config, product, stage.start), stage.ONE_WAY

    @device_function
    def loop(vectors, k_tiles, load_state, reading, shared, registers, params, tile, t):
        acc, ra, rb, ra_next, rb_next, old = registers
        a, b, _, _ = params
        for _ in range(k_tiles):
            here = offset(shared, reading * STAGE)
            into = offset(shared, (reading - 1 if reading > 0 else STAGES - 1) * STAGE)
            reading = int32(reading + 1 if reading < STAGES - 1 else 0)
            there = offset(shared, reading * STAGE)
            pa, pb, lda, ldb, rows, cols, depth = operands(load_state, params, tile)
            multiply_stage(
                vectors, acc, ra, rb, ra_next, rb_next, here, there, into, old, old,
                pa, pb, rows, cols, depth, a, b, lda, ldb, t, 0, 0, 0,
            )  # fmt: skip
            load_state = advance(load_state, params, tile)
        return load_state, reading

    @device_function
    def run(vectors, k_tiles, load_state, reading, shared, registers, params, tile, t):
        if ONE_WAY or vectors:
            return loop(True, k_tiles, load_state, reading, shared, registers, params, tile, t)
        return loop(False, k_tiles, load_state, reading, shared, registers, params, tile, t)

    return SimpleNamespace(start=stage.start, is_aligned=stage.is_aligned, ONE_WAY=ONE_WAY, run=run)


def _tile_loop(config: GemmConfig, product: Product) -> SimpleNamespace:
    """``run(vectors, registers, shared, a, b, rows, cols, depth, lda, ldb, t)``: the products of all k-tiles
    of a tile, from where A and B begin there; ``is_aligned`` and `ONE_WAY` of `load_stage`.
    """
    REALS, STAGE, STAGES = config.dtype_facts.reals_per_element, config.stage_reals, config.stages
    BLK_K, B_TILE, PREFETCH = config.BLK_K, config.offset_b, config.prefetch
    load, offset = product.load, ptx.offset
    load_a, load_b = (
        loaders(k_tile, STAGES, shared)
        for k_tile, shared in zip((config.smem_tile_a, config.smem_tile_b), config.shares, strict=True)
    )
    next_a, next_b = (tile_iterator(k_tile).step for k_tile in (config.smem_tile_a, config.smem_tile_b))
    finish_a, finish_b, multiply = load_a.finish, load_b.finish, mma_k_block(config, product)
    loads = load_stage(config, load_a, load_b)
    start, wait = loads.start, ptx.wait_async(max(STAGES - 2, 0))
    multiply_stage: Any = mainloop_step(config, product, start) if STAGES > 1 else None
    real, SUMS = ptx.REALS[config.dtype_facts.real], config.sums
    FREES = config.dtype_facts.real_size == 4 and not (loads.ONE_WAY or config.is_full)

    @device_function
    def run(vectors, registers, shared, a, b, rows, cols, depth, lda, ldb, t):
        # (3) prologue: the first k-tiles
        acc, ra, rb, ra_next, rb_next, staged_a, staged_b = registers
        k_tiles, step_a, step_b = (depth + BLK_K - 1) // BLK_K, next_a(lda) * REALS, next_b(ldb) * REALS
        src_a, src_b, src_depth = a, b, depth
        for stage in range(max(STAGES - 1, 1)):
            into = offset(shared, stage * STAGE)
            start(vectors, into, staged_a, staged_b, src_a, src_b, lda, ldb, t, rows, cols, src_depth)
            src_a, src_b, src_depth = offset(src_a, step_a), offset(src_b, step_b), src_depth - BLK_K
        if PREFETCH:
            wait()
            cuda.syncthreads()
            load(0, ra, rb, shared, a, b, lda, ldb, t, rows, cols, depth)

        # (4) body: start to load a later k-tile, multiply the present one
        reading = 0
        for k_tile in range(k_tiles):
            here = offset(shared, reading * STAGE)
            into = offset(shared, (reading - 1 if reading > 0 else STAGES - 1) * STAGE)
            reading = reading + 1 if reading < STAGES - 1 else 0
            if STAGES > 1:
                there = offset(shared, reading * STAGE)
                multiply_stage(
                    vectors, acc, ra, rb, ra_next, rb_next, here, there, into, staged_a, staged_b,
                    src_a, src_b, rows, cols, src_depth, a, b, lda, ldb, t, rows, cols, depth,
                )  # fmt: skip
            else:
                if k_tile > 0:
                    cuda.syncthreads()
                finish_a(shared, staged_a, t)
                finish_b(offset(shared, B_TILE), staged_b, t)
                cuda.syncthreads()
                start(vectors, into, staged_a, staged_b, src_a, src_b, lda, ldb, t, rows, cols, src_depth)
                multiply(acc, ra, rb, here, a, b, lda, ldb, t, rows, cols, depth)
            a, src_a = offset(a, step_a), offset(src_a, step_a)
            b, src_b = offset(b, step_b), offset(src_b, step_b)
            depth, src_depth = depth - BLK_K, src_depth - BLK_K

        # times one, so the compiler may keep these sums in other registers than those of the other loop
        if FREES and vectors:
            one = real(min(k_tiles, 1))
            for i in range(SUMS):
                acc[i] = acc[i] * one

    return SimpleNamespace(run=run, is_aligned=loads.is_aligned, ONE_WAY=loads.ONE_WAY)


def _tile(config: GemmConfig, product: Product, triangular: bool | None, waits: bool) -> SimpleNamespace:
    """``compute(vectors, a, b, c, rows, cols, depth, shift, options, lda, ldb, ldc, t, shared, ...)``: a tile
    of C, from where A, B and C begin there; ``is_aligned`` of `load_stage`.

    Both ways to load have a loop of their own, and the rest of the kernel in common, unless `is_full`.
    """
    real = ptx.REALS[config.dtype_facts.real]
    ACC, FRAG_A, FRAG_B = config.sums, product.fragment_a, product.fragment_b
    OLD = max(reals_read(config, run, triangular) for run in (0, product.run))
    NEXT_A, NEXT_B = (FRAG_A, FRAG_B) if config.prefetch else (1, 1)
    STAGED_A, STAGED_B = config.smem_tile_a.staged(config.threads), config.smem_tile_b.staged(config.threads)
    loop, complete, zero = _tile_loop(config, product), sum_completer(config, product), ptx.fill(ACC)
    multiply, write = loop.run, epilogue(config, product, triangular)
    if not config.is_full:
        multiply = by_constant(multiply, loop.ONE_WAY)
    SLICES, GROUP, grid_dependency_wait = config.SLICES_K, config.slice_threads, ptx.grid_dependency_wait

    @device_function
    def compute(
        vectors, a, b, c, rows, cols, depth, shift, options, lda, ldb, ldc, t, shared, alpha, alpha_i, beta,
        beta_i,
    ):  # fmt: skip
        # (2) zero the accumulators
        acc, old = cuda.local.array(ACC, real), cuda.local.array(OLD, real)
        ra, rb = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)
        ra_next, rb_next = cuda.local.array(NEXT_A, real), cuda.local.array(NEXT_B, real)
        staged_a, staged_b = cuda.local.array(STAGED_A, real), cuda.local.array(STAGED_B, real)
        zero(acc, real(0))

        # (3) and (4): the products of all k-tiles
        if waits:
            grid_dependency_wait()
        registers = acc, ra, rb, ra_next, rb_next, staged_a, staged_b
        multiply(vectors, registers, shared, a, b, rows, cols, depth, lda, ldb, t)

        # (5) C := alpha acc + beta C
        complete(acc, shared, t)
        if SLICES == 1 or t < GROUP:
            write(c, acc, old, ldc, t, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)

    if config.is_full:
        compute = by_constant(compute, loop.ONE_WAY)
    return SimpleNamespace(compute=compute, is_aligned=loop.is_aligned)


def build(config: GemmConfig, product: Product, triangular: bool | None = False, waits: bool = True):
    """The ordinary kernel's function: a block computes one tile of C, of those that a triangle meets if it is
    `triangular`, or if the options say so (None). `waits`: it waits for the launch before.
    """
    real, REALS = ptx.REALS[config.dtype_facts.real], config.dtype_facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    BLK_M, BLK_N = config.BLK_M, config.BLK_N
    begin_a, begin_b = tile_iterator(config.smem_tile_a).begin, tile_iterator(config.smem_tile_b).begin
    tile_origin, tile = tile_origins(BLK_M, BLK_N, triangular), _tile(config, product, triangular, waits)
    compute, is_aligned, meets = tile.compute, tile.is_aligned, intersects(BLK_M, BLK_N, triangular)

    def gemm(
        a, b, c, m, n, k, options, k_all, lda, ldb, ldc, stride_a, stride_b, stride_c, alpha, alpha_i, beta,
        beta_i,
    ):  # fmt: skip
        # (1) the tile of this block
        t = cuda.threadIdx.x
        tiles_m, tiles_n = (m + BLK_M - 1) // BLK_M, (n + BLK_N - 1) // BLK_N
        row0, col0 = tile_origin(cuda.blockIdx.x, tiles_m, tiles_n, options)
        rows, cols, shift, batch = m - row0, n - col0, row0 - col0, int64(cuda.blockIdx.z)
        depth = int32(min(int64(k), k_all - batch * k))
        if triangular is not False:  # squares of tiles have some of which nothing is computed
            depth = depth if meets(shift, options) and rows > 0 and cols > 0 else int32(0)
        a = offset(a, (batch * stride_a + begin_a(row0, int64(0), lda)) * REALS)
        b = offset(b, (batch * stride_b + begin_b(col0, int64(0), ldb)) * REALS)
        c = offset(c, (batch * stride_c + col0 * ldc + row0) * REALS)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        compute(
            is_aligned(a, b, lda, ldb), a, b, c, rows, cols, depth, shift, options, lda, ldb, ldc, t, shared,
            alpha, alpha_i, beta, beta_i,
        )  # fmt: skip

    gemm.__name__ = gemm.__qualname__ = config.STEM  # what a profiler shows
    return gemm
