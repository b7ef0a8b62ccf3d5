"""The GEMM kernel that solves by a triangle, in place: TRSM in one launch.

    T X = alpha C, or X T = alpha C, by substitution; X overwrites C (m x n, rows contiguous)

A tile of X needs the tiles of its *strip*, a column of tiles (of a row of them, where T is on the right),
that are solved before it. It is one product all along: its sums with the k-tiles of T and of what is solved;
then come the k-tiles on the diagonal, each of which is solved in shared memory (`diagonal_solve`) before it
is multiplied like the others, into the rows that are left. What that adds to rows that are solved is of no
meaning.

A flag for each strip counts the k-tiles that are solved. A block asks for it before it loads what it had not
seen to be there, and has L2 bring what of T will meet that. While that is not solved it multiplies what was
loaded, and so has nothing but the last k-tile left to multiply when it comes; then it waits, only for blocks
that the device starts before it. The last block of a strip sets the flag back to 0.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from ...gpu.backend import cuda, device_function, ptx
from ...types import Triangle
from ..common.options import UNIT, UPPER
from ..common.smem_tile import l2_prefetcher, tile_iterator
from ..common.tile_scheduler import columns
from .config import GemmConfig
from .diagonal_solve import diagonal_solver
from .fused import APART, shared_reals, tile_orders
from .mainloop import mainloop, mma_k_block
from .product import Product
from .trmm_fused import alignment_of, operands_of, operands_of_tile

__all__ = ["build"]

#: Strips that run together at least, and bytes of C. Each group waits for its first levels anew, which
#: took up to 30 % where two would have been one; larger ones read C from memory too often.
STRIPS, BYTES = 16, 128 << 20
SPAN = 32  # unknowns between two counts


def _pointers(config: GemmConfig, triangle: Triangle):
    """``begin(...)``: pointers to the first k-tiles of a tile; ``advance(load_state, ...)``: to the next;
    ``operands(load_state, count, ldc)``: the same as the kernel's A and B, their leading dimensions, and
    their depth.

    ``steps(down, ldt, ldc)``: from a k-tile to the next, in reals of T and of C, and along the depth.

    The first two return what is `load_state` of the loads: pointers into T and C; the leading dimension of
    the former; depth from there to the end of T; k-tiles that were passed, of the `count` of the tile.
    """
    REALS, BLK_K, OF_A = config.dtype_facts.reals_per_element, config.BLK_K, triangle.on_left
    smem_tile_t, smem_tile_c = (config.smem_tile_a, config.smem_tile_b)[:: 1 if OF_A else -1]
    iterator_t, iterator_c = tile_iterator(smem_tile_t), tile_iterator(smem_tile_c)
    begin_t, begin_c, next_t, next_c = iterator_t.begin, iterator_c.begin, iterator_t.step, iterator_c.step
    int32, int64, offset, opaque = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.opaque

    @device_function
    def begin(tri, c, first, other, at, order, ldt, ldc):
        at = int64(at)
        at_t, at_c = begin_t(int64(first), at, ldt), begin_c(int64(other), at, ldc)
        return offset(tri, at_t * REALS), offset(c, at_c * REALS), ldt, int32(order - at), int32(0)

    @device_function
    def advance(load_state, params, tile):
        pt, pc, ld, depth, passed = load_state
        (step_t, step_c, step), _, _, _, _ = tile
        return offset(pt, step_t), offset(pc, step_c), ld, int32(depth - step), int32(passed + 1)

    @device_function
    def steps(down, ldt, ldc):
        # a factor is made once; a choice between two steps would be made anew in the loop
        sign = opaque(int32(1 if down else -1))
        return next_t(ldt) * REALS * int64(sign), next_c(ldc) * REALS * int64(sign), int32(BLK_K * sign)

    return begin, advance, steps, operands_of(triangle)


def _block_coords(config: GemmConfig, free: int):
    """``coords(i, strips, levels, order)``: strip and level of the i-th block, in equal groups of strips."""
    COLUMNS, coords_of = BYTES // (free * config.dtype_facts.itemsize), columns()
    int32, quotient = ptx.types.int32, ptx.quotient

    @device_function
    def coords(i, strips, levels, order):
        most = max(quotient(COLUMNS, order), STRIPS)
        groups = quotient(strips + (most - 1), most)
        return coords_of(i, strips, levels, int32(quotient(strips + (groups - 1), groups)))

    return coords


def _flag_poller(config: GemmConfig):
    """``poll_flag(flags, flag, passed, waits, board, t)``: how many k-tiles are solved, as all threads read
    on the `board`; it `waits` until they are more than those that were `passed`.

    One thread asks: many that ask for one flag keep who sets it waiting.
    """
    real, int32, load_acquire = ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.load_acquire

    @device_function
    def poll_flag(flags, flag, passed, waits, board, t):
        if t == 0:
            ready = load_acquire(flags, flag)
            while waits and ready <= passed:
                ready = load_acquire(flags, flag)
            board[0] = real(ready)
        cuda.syncthreads()
        ready = int32(board[0])
        cuda.syncthreads()
        return ready

    return poll_flag


def _pipeline_filler(config: GemmConfig, start, advance, operands):
    """``fill_pipeline(vectors, empty, ready, load_state, ...)``: begin to bring those k-tiles that are
    `ready` into the stages that are `empty`, the last ones before the one that is read next; what is ahead
    then, and how many stages are empty still.

    Each stage counts as begun, so that one is in memory when so many were begun after it, as always.
    """
    STAGES, STAGE, int32, offset = config.stages, config.stage_reals, ptx.types.int32, ptx.offset

    @device_function
    def fill_pipeline(vectors, empty, ready, load_state, reading, shared, params, tile, old, t):
        _, own, k_tiles, rows, cols = tile
        _, _, _, ldc = params
        most = int32(ready - load_state[4] if ready < k_tiles - own else STAGES)
        if most <= 0:
            return load_state, empty
        into = int32(reading + (STAGES - 1) - empty)
        for i in range(empty):
            into = int32(into if into < STAGES else into - STAGES)
            pa, pb, lda, ldb, depth = operands(load_state, k_tiles if i < most else int32(0), ldc)
            stage = offset(shared, into * STAGE)
            start(vectors, stage, old, old, pa, pb, lda, ldb, t, rows, cols, depth)
            if i < most:
                load_state = advance(load_state, params, tile)
            into = int32(into + 1)
        return load_state, int32(max(empty - most, 0))

    return fill_pipeline


def _k_tile_solver(config: GemmConfig, product: Product, triangle: Triangle, conj: bool):
    """``solve_k_tile(acc, ...)``: a k-tile on the diagonal, from the sums `acc` to C; and `diagonal_solve`.

    The flag counts the k-tiles before it.
    """
    facts = config.dtype_facts
    EVERY, ASIDE, int32 = max(SPAN // config.BLK_K, 1), config.threads - 32, ptx.types.int32
    on_diagonal = diagonal_solver(config, product, triangle, conj)
    TRIANGLE = on_diagonal.ld * facts.reals_per_element
    load_rhs, solve, write = on_diagonal.load_rhs, on_diagonal.solve, on_diagonal.write
    reload_rhs, solve_by_exact_division = on_diagonal.reload_rhs, on_diagonal.solve_by_exact_division
    offset, store_release = ptx.offset, ptx.store_release

    @device_function
    def solve_k_tile(
        acc, column, value, panel, matrix, prepared, c_here, ldc, t, base, extent, sides, alpha, alpha_i,
        safe, unit, down, flags, flag, count, done,
    ):  # fmt: skip
        load_rhs(0, acc, panel, prepared, t, base, extent, alpha, alpha_i, safe)
        cuda.syncthreads()
        if t == ASIDE and done > 0 and (count + done) % EVERY == 0:
            store_release(flags, flag, int32(count + done))
        non_finite = int32(0)
        if safe:
            non_finite = solve(panel, offset(prepared, base * TRIANGLE), column, t, down)
        else:
            solve_by_exact_division(panel, matrix, t, extent, unit, down)
        if cuda.syncthreads_or(non_finite):
            reload_rhs(c_here, panel, value, ldc, t, extent, sides)
            cuda.syncthreads()
            load_rhs(0, acc, panel, prepared, t, base, extent, alpha, alpha_i, False)
            cuda.syncthreads()
            solve_by_exact_division(panel, matrix, t, extent, unit, down)
            cuda.syncthreads()
        write(c_here, panel, ldc, t, extent, sides)

    return solve_k_tile, on_diagonal


def _tile(config: GemmConfig, product: Product, triangle: Triangle, conj: bool) -> SimpleNamespace:
    """``compute(vectors, down, unit, t, shared, ...)``: the tile of a block; ``is_aligned(tri, c, ldt,
    ldc)`` and `ONE_WAY` of `load_stage`. `conj`: T is meant conjugated.
    """
    facts = config.dtype_facts
    real, REALS, BLK_K, STAGES = ptx.REALS[facts.real], facts.reals_per_element, config.BLK_K, config.stages
    OF_A, PREFETCH = triangle.on_left, config.prefetch
    BLK, FREE = tile_orders(config, triangle)
    PER, STAGE, ALL_STAGES, OTHER = (
        BLK // BLK_K,
        config.stage_reals,
        STAGES * config.stage_reals,
        config.offset_b,
    )
    FLAG = APART // facts.real_size
    BOARD = ALL_STAGES + shared_reals(config, triangle)
    ACC, FRAG_A, FRAG_B = config.sums, product.fragment_a, product.fragment_b
    NEXT_A, NEXT_B = (FRAG_A, FRAG_B) if PREFETCH else (1, 1)

    load, zero, coords = product.load, ptx.fill(ACC), _block_coords(config, FREE)
    begin, advance, steps, operands = _pointers(config, triangle)
    loop = mainloop(config, product, operands_of_tile(operands), advance)
    start, run_mainloop = loop.start, loop.run
    poll_flag, fill_pipeline = _flag_poller(config), _pipeline_filler(config, start, advance, operands)
    solve_k_tile, on_diagonal = _k_tile_solver(config, product, triangle, conj)
    multiply, prepare = mma_k_block(config, product), on_diagonal.prepare
    COLUMN, VALUE = on_diagonal.registers, on_diagonal.values
    smem_tile_t, smem_tile_c = (config.smem_tile_a, config.smem_tile_b)[:: 1 if OF_A else -1]
    begin_t, begin_c = tile_iterator(smem_tile_t).begin, tile_iterator(smem_tile_c).begin
    ask_t, ask_c = (l2_prefetcher(smem_tile, config.threads) for smem_tile in (smem_tile_t, smem_tile_c))
    ROW = smem_tile_t.step * REALS
    wait, store_release = ptx.wait_async(STAGES - 2), ptx.store_release
    grid_dependency_wait = ptx.grid_dependency_wait
    int32, int64, quotient, offset = ptx.types.int32, ptx.types.int64, ptx.quotient, ptx.offset

    @device_function
    def compute(vectors, down, unit, t, shared, tri, c, flags, m, n, ldt, ldc, alpha, alpha_i):
        # (1) the tile of this block: its level and its strip; its own k-tiles, and how many come before them
        order, others = (m, n) if OF_A else (n, m)
        levels, strips = quotient(order + (BLK - 1), BLK), quotient(others + (FREE - 1), FREE)
        strip, level = coords(cuda.blockIdx.x, strips, levels, order)
        index = int32(level if down else levels - 1 - level)
        first, other = int32(index * BLK), int32(strip * FREE)
        row0, col0 = (first, other) if OF_A else (other, first)
        rows, cols = int32(m - row0), int32(n - col0)
        own = int32(quotient(min(order - first, BLK) + (BLK_K - 1), BLK_K))
        k_tiles = quotient(order + (BLK_K - 1), BLK_K)
        count = int32(index * PER if down else k_tiles - index * PER - own)
        load_state = begin(tri, c, first, other, 0 if down else (k_tiles - 1) * BLK_K, order, ldt, ldc)
        flag, board = int32(strip * FLAG), offset(shared, BOARD)
        params, tile = (tri, c, ldt, ldc), (steps(down, ldt, ldc), own, int32(count + own), rows, cols)

        # (2) zero the accumulators
        acc, old = cuda.local.array(ACC, real), cuda.local.array(1, real)
        ra, rb = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)
        ra_next, rb_next = cuda.local.array(NEXT_A, real), cuda.local.array(NEXT_B, real)
        column, value = cuda.local.array(COLUMN, real), cuda.local.array(VALUE, real)
        registers = acc, ra, rb, ra_next, rb_next, old
        zero(acc, real(0))

        # (3) prologue: what is solved already, and the triangles on the diagonal; L2 is asked for the rest of
        # the tile's own
        grid_dependency_wait()
        for k in range(first, first + own * BLK_K, BLK_K):
            t_there = offset(tri, begin_t(int64(first), int64(k), ldt) * REALS)
            c_there = offset(c, begin_c(int64(other), int64(k), ldc) * REALS)
            ask_t(t_there, ldt, t, int32(order - first), int32(order - k))
            ask_c(c_there, ldc, t, int32(others - other), int32(order - k))
        ready, reading, empty, left = int32(0), int32(0), int32(STAGES - 1), count
        if count > 0:
            ready = poll_flag(flags, flag, load_state[4], False, board, t)
        load_state, empty = fill_pipeline(
            vectors, empty, ready, load_state, reading, shared, params, tile, old, t
        )
        is_dry = True  # no stage has been waited for
        prepared, corner = (
            offset(shared, ALL_STAGES),
            offset(tri, begin_t(int64(first), int64(first), ldt) * REALS),
        )
        unsafe = prepare(prepared, value, corner, ldt, t, int32(order - first), unit, down)
        safe = cuda.syncthreads_or(unsafe) == 0

        # (4) body: load what is solved; multiply it, while what comes next is not solved without loading more
        while left > 0 or empty > 0:
            if ready <= load_state[4] and load_state[4] < count:
                ask_t(load_state[0], ldt, t, int32(order - first), load_state[3])
                ready = poll_flag(flags, flag, load_state[4], empty == STAGES - 1, board, t)
            is_dry = is_dry or empty == STAGES - 1
            load_state, empty = fill_pipeline(
                vectors, empty, ready, load_state, reading, shared, params, tile, old, t
            )
            if is_dry:
                if PREFETCH:
                    wait()
                    cuda.syncthreads()
                    load(0, ra, rb, offset(shared, reading * STAGE), tri, c, ldt, ldc, t, 0, 0, 0)
                is_dry = False
            k_iters, drains = left, load_state[4] >= ready and load_state[4] < count
            if drains:
                k_iters, empty = int32(1), int32(empty + 1)
            elif load_state[4] < count:
                k_iters = int32(ready - load_state[4])
            here = tile[0], own, int32(0 if drains else count + own), rows, cols
            after, reading = run_mainloop(
                vectors, k_iters, load_state, reading, shared, registers, params, here, t
            )
            if not drains:
                load_state = after
            left = int32(left - k_iters)

        # (5) the diagonal: solve a k-tile, write it, multiply it into what is left
        done, base = int32(0), int32(0 if down else (own - 1) * BLK_K)
        while done < own:
            wait()
            cuda.syncthreads()
            here = offset(shared, reading * STAGE)
            into = offset(shared, (reading - 1 if reading > 0 else STAGES - 1) * STAGE)
            pa, pb, lda, ldb, depth = operands(load_state, count + own, ldc)
            start(vectors, into, old, old, pa, pb, lda, ldb, t, rows, cols, depth)
            load_state = advance(load_state, params, tile)
            reading = int32(reading + 1 if reading < STAGES - 1 else 0)

            t_tile, panel = (here, offset(here, OTHER)) if OF_A else (offset(here, OTHER), here)
            matrix, extent = offset(t_tile, base * ROW), int32(min(order - first - base, BLK_K))
            at = col0 * ldc + int64(row0 + base) if OF_A else (col0 + base) * ldc + int64(row0)
            c_here, sides = offset(c, at * REALS), int32(others - other)
            solve_k_tile(
                acc, column, value, panel, matrix, prepared, c_here, ldc, t, base, extent, sides, alpha,
                alpha_i, safe, unit, down, flags, flag, count, done,
            )  # fmt: skip
            if done < own - 1:
                multiply(acc, ra, rb, here, tri, c, ldt, ldc, t, 0, 0, 0)
            done, base = int32(done + 1), int32(base + BLK_K if down else base - BLK_K)

        # (6) the tile is solved; who follows no one's wait leaves the flag as it was
        cuda.syncthreads()
        if t == 0:
            store_release(flags, flag, int32(count + own if level < levels - 1 else 0))

    is_aligned = alignment_of(triangle, loop.is_aligned)
    return SimpleNamespace(compute=compute, is_aligned=is_aligned, ONE_WAY=loop.ONE_WAY)


def _in_three_ways(compute: Callable, one_way: bool):
    """`compute`, once for each direction on aligned operands, and once for others: what goes by constants is
    shorter, and each level waits for the one before.
    """

    @device_function
    def compute_tile(vectors, down, unit, t, shared, tri, c, flags, m, n, ldt, ldc, alpha, alpha_i):
        if one_way or vectors:
            if down:
                compute(True, True, unit, t, shared, tri, c, flags, m, n, ldt, ldc, alpha, alpha_i)
            else:
                compute(True, False, unit, t, shared, tri, c, flags, m, n, ldt, ldc, alpha, alpha_i)
        else:
            compute(False, down, unit, t, shared, tri, c, flags, m, n, ldt, ldc, alpha, alpha_i)

    return compute_tile


def build(config: GemmConfig, product: Product, triangle: Triangle, conj: bool):
    """The kernel's function; `conj` says whether T is meant conjugated. Its options tell which triangle T
    is, and so whether the first unknowns are solved first, `down`.
    """
    real, shared_pointer, OF_A = ptx.REALS[config.dtype_facts.real], ptx.shared_pointer, triangle.on_left
    tile = _tile(config, product, triangle, conj)
    compute, is_aligned = tile.compute, tile.is_aligned
    if not config.has_many_sums:
        compute = _in_three_ways(compute, tile.ONE_WAY)

    def gemm(tri, c, flags, m, n, options, ldt, ldc, alpha, alpha_i):
        t, down, unit = cuda.threadIdx.x, (options & UPPER == 0) == OF_A, options & UNIT != 0
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        vectors = is_aligned(tri, c, ldt, ldc)
        compute(vectors, down, unit, t, shared, tri, c, flags, m, n, ldt, ldc, alpha, alpha_i)

    gemm.__name__ = gemm.__qualname__ = config.STEM  # what a profiler shows
    return gemm
