"""The GEMM kernel that multiplies by a triangle, in place or not: TRMM in one launch.

    C (m x n, rows contiguous) := alpha * T * B, or alpha * B * T, where B may be C

A tile of C is a sum of products of tiles of T with the tiles of its *strip*, a column of tiles of B (a row of
them, where T is on the right), from the diagonal on. So the tiles of a strip have an order, the most work
first, in which each is read by itself and by those before it alone: their *levels*. A block goes along T away
from the diagonal, so that it reads first what shall be written first. By a flag it publishes how many levels
it has passed, and it writes its own tile when all blocks before it have passed that. A block waits only for
such as the device starts before it. With `OVERWRITE` C is not B: then no block waits.

The diagonal blocks of T are in a copy (`diagonal_blocks`), in which what is beyond the triangle is zero. Zero
times what is not finite would spoil rows that do not depend on it: where sums are not finite after the
diagonal block, they are made again without these products.
"""

from __future__ import annotations

from collections.abc import Callable

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...types import Triangle
from ..common.options import OVERWRITE, UPPER
from ..common.tile_iterators import tile_iterator
from ..common.tile_scheduler import rasterize
from .config import GemmConfig
from .epilogue import epilogue, reals_read
from .fused import tile_orders
from .mainloop import mainloop
from .product import Product

__all__ = ["alignment_of", "build", "operands_of", "operands_of_tile"]

#: Strips that run together at least, and rows (columns) of C: so a wave shares its tiles of T and of B
#: in L2, and has tiles of few levels, which do not wait for each other long.
STRIPS, WIDTH = 16, 2048
ALL_PASSED = 2**30  # levels: more than there are
SCARCE = 160  # registers of a product, by its Config, from which on there are none to spare
SPAN = 128  # of k between two flags: one for each small tile took products up to twice the time


def operands_of(triangle: Triangle):
    """``operands(load_state, count, ldb)``: what is `load_state` of the loads as the kernel's A and B, their
    leading dimensions, and their depth, none beyond `count` k-tiles.
    """
    OF_A, int32 = triangle.on_left, ptx.types.int32

    @device_function
    def operands(load_state, count, ldb):
        pt, pb, ld, depth, passed = load_state
        depth = int32(depth if passed < count else 0)
        if OF_A:
            return pt, pb, ld, ldb, depth
        return pb, pt, ldb, ld, depth

    return operands


def operands_of_tile(operands: Callable):
    """Return the device function that gives a tile's operands, for all of its k-tiles, as `mainloop` calls
    it.
    """

    @device_function
    def of_tile(load_state, params, tile):
        _, _, _, ld = params
        _, _, count, rows, cols = tile
        pa, pb, lda, ldb, depth = operands(load_state, count, ld)
        return pa, pb, lda, ldb, rows, cols, depth

    return of_tile


def alignment_of(triangle: Triangle, is_aligned: Callable):
    """``is_aligned(tri, b, ldt, ldb)`` of what is true of the kernel's A and B."""
    OF_A = triangle.on_left

    @device_function
    def both_are_aligned(tri, b, ldt, ldb):
        return is_aligned(tri, b, ldt, ldb) if OF_A else is_aligned(b, tri, ldb, ldt)

    return both_are_aligned


def _pointers(config: GemmConfig, triangle: Triangle):
    """``begin(...)``: pointers to the first k-tiles of a tile; ``advance(load_state, ...)``: to the next;
    ``operands(load_state, count, ldb)``: the same as the kernel's A and B, their leading dimensions, and
    their depth.

    ``go_on(load_state, ...)``: to the next, once the diagonal block is passed.

    They return what is `load_state` of the loads: pointers into T, or the copy of its diagonal blocks,
    and B; the leading dimension of the former; depth from there to the end of T; k-tiles that were passed, of
    the `count` of the tile. `own` of these are the diagonal block's.
    """
    REALS, BLK_K, OF_A = config.dtype_facts.reals_per_element, config.BLK_K, triangle.on_left
    smem_tile_t, smem_tile_b = (config.smem_tile_a, config.smem_tile_b)[:: 1 if OF_A else -1]
    iterator_t, iterator_b = tile_iterator(smem_tile_t), tile_iterator(smem_tile_b)
    begin_t, begin_b, next_t, next_b = iterator_t.begin, iterator_b.begin, iterator_t.step, iterator_b.step
    BLK, _ = tile_orders(config, triangle)
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset
    # where T begins is made within the loop only if registers are short, or FMAs need none of them: beside a
    # branch the compiler does not count `mma.sync` one by one, and waits for all of them
    is_late = config.registers >= SCARCE or not hasattr(config, "MMA_M")
    anew = ptx.opaque if is_late else int32

    @device_function
    def begin(blocks, b, first, other, nearest, order, ldb):
        k0, ld = int64(nearest) * BLK_K, int64(BLK)
        block = offset(blocks, (int64(first) * BLK + begin_t(int64(0), k0, ld)) * REALS)
        at_b = begin_b(int64(other), first + k0, ldb)
        return block, offset(b, at_b * REALS), ld, int32(order - first - nearest * BLK_K), int32(0)

    @device_function
    def go_on(load_state, params, tile):
        pt, pb, ld, depth, passed = load_state
        _, _, _, ldb = params
        (_, _, down), _, _, _, _ = tile
        step_t, step_b = next_t(ld) * REALS, next_b(ldb) * REALS
        pt, pb = offset(pt, -step_t if down else step_t), offset(pb, -step_b if down else step_b)
        return pt, pb, ld, int32(depth + BLK_K if down else depth - BLK_K), int32(passed + 1)

    @device_function
    def advance(load_state, params, tile):
        tri, _, ldt, _ = params
        (m, n, down), own, _, rows, cols = tile
        pt, pb, ld, depth, passed = go_on(load_state, params, tile)
        if passed == own:
            first = int64(m - anew(rows) if OF_A else n - anew(cols))
            pt, ld = offset(tri, begin_t(first, first + (-BLK_K if down else BLK), ldt) * REALS), ldt
        return pt, pb, ld, depth, passed

    return begin, advance, go_on, operands_of(triangle)


def _finisher(config: GemmConfig, product: Product, triangle: Triangle, run_mainloop):
    """``finish(vectors, ...)``: all that follows the diagonal block; `target` is C and its leading dimension.

    The start of the tile is computed anew from `rows` and `cols`: its parts need not be kept meanwhile.
    """
    BLK, FREE = tile_orders(config, triangle)
    PER, EVERY, THREADS = BLK // config.BLK_K, max(SPAN // BLK, 1), config.threads
    REALS = config.dtype_facts.reals_per_element
    real, int32 = ptx.REALS[config.dtype_facts.real], ptx.types.int32
    load_acquire, store_relaxed, offset = ptx.load_acquire, ptx.store_relaxed, ptx.offset
    opaque, quotient, OF_A = ptx.opaque, ptx.quotient, triangle.on_left
    write = epilogue(config, product)

    @device_function
    def finish(
        vectors, load_state, reading, shared, registers, params, tile, target, apart, t, flags, level, strip,
        alpha, alpha_i,
    ):  # fmt: skip
        acc, _, _, _, _, old = registers
        c, ldc = target
        (m, n, _), own, count, rows, cols = tile
        strips = quotient(opaque(n if OF_A else m) + (FREE - 1), FREE)

        # (5) level after level, or all at once; publish what was read
        passed, left = int32(level + 1), int32(count - own)
        together = int32(left if apart else PER)
        while left > 0:
            if t == 0 and (passed - level) % EVERY == 0:
                store_relaxed(flags, level * strips + strip, passed)
            load_state, reading = run_mainloop(
                vectors, min(left, together), load_state, reading, shared, registers, params, tile, t
            )
            passed, left = int32(passed + 1), int32(left - together)

        # (6) C := alpha acc, when those before this one have read what was there
        before = int32(level if apart else t)
        if t == 0:
            store_relaxed(flags, level * strips + strip, int32(ALL_PASSED))
        while before < level:
            if load_acquire(flags, before * strips + strip) > level:
                before = int32(before + THREADS)
        cuda.syncthreads()
        c = offset(c, ((n - opaque(cols)) * ldc + (m - opaque(rows))) * REALS)
        write(c, acc, old, ldc, t, rows, cols, 0, 0, alpha, alpha_i, real(0), real(0))

    return finish


def _non_finite_resolver(config: GemmConfig, product: Product, triangle: Triangle, conj: bool):
    """``is_non_finite(acc, probe_sum)``: whether a sum is not finite; ``recompute(acc, ...)``: the diagonal
    block's sums, of what is in the triangle alone.
    """
    facts, OF_A = config.dtype_facts, triangle.on_left
    REALS = facts.reals_per_element
    real, COMPLEX, THR_M = ptx.REALS[facts.real], facts.is_complex, config.THR_M
    int32, int64, opaque, offset = ptx.types.int32, ptx.types.int64, ptx.opaque, ptx.offset
    BLK, _ = tile_orders(config, triangle)
    K_MAJOR = (config.smem_tile_a if OF_A else config.smem_tile_b).k_major
    row_of, col_of, read = product.row, product.col, ptx.load_global(REALS, False)

    @device_function
    def probe(x, acc, probe_sum):
        probe_sum[0] += acc[x] * real(0)

    probe_all = unrolled(config.sums, probe)

    @device_function
    def is_non_finite(acc, probe_sum):
        probe_sum[0] = real(0)
        probe_all(0, acc, probe_sum)
        return int32(probe_sum[0] != probe_sum[0])

    ELEMENTS, select = config.sums // REALS, ptx.select

    @device_function
    def keep(x, acc, e, re, im):
        acc[x * REALS] = select(e == x, re, acc[x * REALS])
        if COMPLEX:
            acc[x * REALS + 1] = select(e == x, im, acc[x * REALS + 1])

    keep_all = unrolled(ELEMENTS, keep)

    @device_function
    def recompute(acc, x, y, blocks, params, tile, t):
        # an element after the other, by one text for all, from what is at hand: what is made beforehand would
        # take registers from the sums
        (m, n, down), _, _, rows, cols = tile
        _, b, _, ldb = params
        t, row0, col0 = opaque(int32(t)), int32(m - opaque(rows)), int32(n - opaque(cols))
        first, left = (row0, rows) if OF_A else (col0, cols)
        block, depth = offset(blocks, int64(first) * (BLK * REALS)), min(left, BLK)
        b, e = offset(b, (int64(col0) * ldb + row0) * REALS), int32(0)
        while e < ELEMENTS:
            row, col = row_of(e % THR_M, t), col_of(e // THR_M, t)
            here = int32(row if OF_A else col)
            k, last = (int32(0), here) if down else (here, int32(depth - 1))
            if row >= rows or col >= cols:
                last = int32(-1)
            re, im = real(0), real(0)
            while k <= last:
                read(x, 0, block, (here * BLK + k if K_MAJOR else k * BLK + here) * REALS, True)
                read(y, 0, b, (col * ldb + k if OF_A else k * ldb + row) * REALS, True)
                if COMPLEX:
                    imaginary = -x[1] if conj else x[1]
                    re += x[0] * y[0] - imaginary * y[1]
                    im += x[0] * y[1] + imaginary * y[0]
                else:
                    re += x[0] * y[0]
                k = opaque(int32(k + 1))  # the loop is not unrolled
            keep_all(0, acc, e, re, im)
            e = opaque(int32(e + 1))  # nor this one

    return is_non_finite, recompute


def build(config: GemmConfig, product: Product, triangle: Triangle, conj: bool):
    """The kernel's function; `conj`: T is meant conjugated. Its options select the triangle T."""
    facts = config.dtype_facts
    real, REALS, BLK_K, STAGES = ptx.REALS[facts.real], facts.reals_per_element, config.BLK_K, config.stages
    OF_A, PREFETCH = triangle.on_left, config.prefetch
    BLK, FREE = tile_orders(config, triangle)
    PER, STAGE = BLK // BLK_K, config.stage_reals
    ACC, FRAG_A, FRAG_B = config.sums, product.fragment_a, product.fragment_b
    OLD = max(reals_read(config, run) for run in (0, product.run))
    NEXT_A, NEXT_B = (FRAG_A, FRAG_B) if PREFETCH else (1, 1)

    load, zero, coords = product.load, ptx.fill(ACC), rasterize(max(STRIPS, WIDTH // FREE))
    begin, advance, go_on, operands = _pointers(config, triangle)
    loop, after = (mainloop(config, product, operands_of_tile(operands), to) for to in (advance, go_on))
    if config.has_many_sums:
        after = loop
    start, run_mainloop, is_aligned = loop.start, loop.run, alignment_of(triangle, loop.is_aligned)
    is_non_finite, recompute = _non_finite_resolver(config, product, triangle, conj)
    finish = _finisher(config, product, triangle, after.run)
    wait = ptx.wait_async(STAGES - 2)
    int32, quotient = ptx.types.int32, ptx.quotient
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait

    def gemm(tri, blocks, flags, b, c, m, n, options, ldt, ldb, ldc, alpha, alpha_i):
        # (1) the tile of this block: its level and its strip; its k-tiles, those of the diagonal block first
        t = cuda.threadIdx.x
        order, others = (m, n) if OF_A else (n, m)
        levels, strips = quotient(order + (BLK - 1), BLK), quotient(others + (FREE - 1), FREE)
        strip, level = coords(cuda.blockIdx.x, strips, levels)
        down, apart = (options & UPPER == 0) == OF_A, options & OVERWRITE != 0
        index = int32(levels - 1 - level if down else level)
        first, other = int32(index * BLK), int32(strip * FREE)
        row0, col0 = (first, other) if OF_A else (other, first)
        rows, cols = int32(m - row0), int32(n - col0)
        own = quotient(min(order - first, BLK) + (BLK_K - 1), BLK_K)
        count = own + index * PER if down else quotient(order - first + (BLK_K - 1), BLK_K)
        load_state = begin(blocks, b, first, other, own - 1 if down else 0, order, ldb)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        params, tile, target = (tri, b, ldt, ldb), ((m, n, down), own, count, rows, cols), (c, ldc)
        vectors = is_aligned(tri, b, ldt, ldb)  # the copy of the diagonal blocks always is

        # (2) zero the accumulators
        acc, old = cuda.local.array(ACC, real), cuda.local.array(OLD, real)
        ra, rb = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)
        ra_next, rb_next = cuda.local.array(NEXT_A, real), cuda.local.array(NEXT_B, real)
        x, y = cuda.local.array(REALS, real), cuda.local.array(REALS, real)
        registers = acc, ra, rb, ra_next, rb_next, old
        zero(acc, real(0))

        # (3) prologue: the first k-tiles
        grid_dependency_wait()
        for stage in range(STAGES - 1):
            pa, pb, ld_a, ld_b, depth = operands(load_state, count, ldb)
            into = offset(shared, stage * STAGE)
            start(vectors, into, old, old, pa, pb, ld_a, ld_b, t, rows, cols, depth)
            load_state = advance(load_state, params, tile)
        if PREFETCH:
            wait()
            cuda.syncthreads()
            load(0, ra, rb, shared, tri, b, ldt, ldb, t, 0, 0, 0)

        # (4) the diagonal block. What follows is there twice: next to what makes sums again, in one loop or
        # behind it, the compiler finds a worse order for it, which took 5 to 14 % longer
        load_state, reading = run_mainloop(
            vectors, own, load_state, int32(0), shared, registers, params, tile, t
        )
        non_finite = cuda.syncthreads_or(is_non_finite(acc, x)) != 0
        if non_finite:
            recompute(acc, x, y, blocks, params, tile, t)
            if PREFETCH:  # again, so that it need not be kept meanwhile
                load(0, ra, rb, offset(shared, reading * STAGE), tri, b, ldt, ldb, t, 0, 0, 0)
        if non_finite or not vectors:
            finish(False, load_state, reading, shared, registers, params, tile, target, apart, t, flags,
                   level, strip, alpha, alpha_i)  # fmt: skip
        else:
            finish(True, load_state, reading, shared, registers, params, tile, target, apart, t, flags,
                   level, strip, alpha, alpha_i)  # fmt: skip

    gemm.__name__ = gemm.__qualname__ = config.STEM  # what a profiler shows
    return gemm
