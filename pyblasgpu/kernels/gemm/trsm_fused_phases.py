"""The phases of the fused TRSM (`trsm_fused`): right-hand sides in another matrix are copied, what others
solve is waited for and multiplied, then the k-tiles on the diagonal are solved.
"""

from __future__ import annotations

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...types import Triangle
from ..common.tile_iterators import l2_prefetcher, tile_iterator
from .config import GemmConfig
from .diagonal_solve import diagonal_solver
from .mainloop import mma_k_block
from .product import Product

__all__ = [
    "diagonal_block_solver",
    "flag_poller",
    "k_tile_solver",
    "pipeline_filler",
    "prefetcher",
    "solved_multiplier",
    "tile_copier",
]

SPAN = 32  # unknowns between two counts
COPIED = 64  # bytes of B that a thread loads before it stores any


def tile_copier(config: GemmConfig):
    """``copy(b, c, ldb, ldc, t, rows, cols, adds, factor, factor_i)``: the tile that begins at `b`, to `c`;
    if it `adds`, `factor` times that is added to what is there.
    """
    facts, BLK_M, THREADS = config.dtype_facts, config.BLK_M, config.threads
    REALS, COMPLEX, EACH = facts.reals_per_element, facts.is_complex, -(-BLK_M * config.BLK_N // THREADS)
    MANY = min(COPIED // facts.itemsize, EACH)
    VALUES = MANY * REALS
    real, read, store = ptx.REALS[facts.real], ptx.load_global(REALS, False), ptx.store_global_vector(REALS)
    int32, int64, quotient = ptx.types.int32, ptx.types.int64, ptx.quotient

    @device_function
    def place(number, ld, t, rows, cols):
        element = int32(number * THREADS + t)
        col = quotient(element, BLK_M)
        row = int32(element - col * BLK_M)
        return (int64(col) * ld + row) * REALS, (row < rows) & (col < cols) & (number < EACH)

    @device_function
    def fetch(i, first, values, x, ld, t, rows, cols):
        at, ok = place(first + i, ld, t, rows, cols)
        read(values, i * REALS, x, at, ok)

    @device_function
    def add(i, values, old, factor, factor_i):
        x = i * REALS
        if COMPLEX:
            re, im = values[x], values[x + 1]
            values[x] = factor * re - factor_i * im + old[x]
            values[x + 1] = factor * im + factor_i * re + old[x + 1]
        else:
            values[x] = factor * values[x] + old[x]

    @device_function
    def put(i, first, values, c, ldc, t, rows, cols):
        at, ok = place(first + i, ldc, t, rows, cols)
        store(c, at, values, i * REALS, ok)

    fetch_all, add_all, put_all = unrolled(MANY, fetch), unrolled(MANY, add), unrolled(MANY, put)

    @device_function
    def copy(b, c, ldb, ldc, t, rows, cols, adds, factor, factor_i):
        values, old = cuda.local.array(VALUES, real), cuda.local.array(VALUES, real)
        first = int32(0)
        while first < EACH:
            fetch_all(0, first, values, b, ldb, t, rows, cols)
            if adds:
                fetch_all(0, first, old, c, ldc, t, rows, cols)
                add_all(0, values, old, factor, factor_i)
            put_all(0, first, values, c, ldc, t, rows, cols)
            first = int32(first + MANY)

    return copy


def flag_poller(config: GemmConfig):
    """``poll_flag(flags, flag, passed, waits, board, t)``: how many k-tiles are solved, as all threads read
    on the `board`; it `waits` until they are more than those that were `passed`.

    One thread polls: many polls of one flag delay its write.
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


def pipeline_filler(config: GemmConfig, start, advance, operands):
    """``fill_pipeline(vectors, empty, ready, load_state, ...)``: begin to load those k-tiles that are `ready`
    into the stages that are `empty`, the last ones before the one that is read next; what is ahead then, and
    how many stages are empty still.

    Each stage counts as begun, so that one is in memory once the usual number was begun after it.
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


def prefetcher(config: GemmConfig, triangle: Triangle):
    """``prefetch(params, first, other, own, order, others, t)``: prefetch a tile's `own` k-tiles into L2."""
    REALS, BLK_K = config.dtype_facts.reals_per_element, config.BLK_K
    smem_tiles = (config.smem_tile_a, config.smem_tile_b)[:: 1 if triangle.on_left else -1]
    begin_t, begin_c = (tile_iterator(smem_tile).begin for smem_tile in smem_tiles)
    ask_t, ask_c = (l2_prefetcher(smem_tile, config.threads) for smem_tile in smem_tiles)
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset

    @device_function
    def prefetch(params, first, other, own, order, others, t):
        tri, c, ldt, ldc = params
        for k in range(first, first + own * BLK_K, BLK_K):
            t_there = offset(tri, begin_t(int64(first), int64(k), ldt) * REALS)
            c_there = offset(c, begin_c(int64(other), int64(k), ldc) * REALS)
            ask_t(t_there, ldt, t, int32(order - first), int32(order - k))
            ask_c(c_there, ldc, t, int32(others - other), int32(order - k))

    return prefetch


def solved_multiplier(
    config: GemmConfig, product: Product, triangle: Triangle, loop, fill_pipeline, poll_flag
):
    """``multiply_solved(vectors, registers, ...)``: phase (4), the k-tiles that others solve. While what is
    next is not solved, it multiplies without loading more.

    `left` k-tiles are to be multiplied, and `ready` ones solved; `empty` stages wait for what is not.
    """
    STAGES, STAGE, PREFETCH = config.stages, config.stage_reals, config.prefetch
    ask_t = l2_prefetcher(config.smem_tile_a if triangle.on_left else config.smem_tile_b, config.threads)
    load, run_mainloop, wait = product.load, loop.run, ptx.wait_async(STAGES - 2)
    int32, offset = ptx.types.int32, ptx.offset

    @device_function
    def multiply_solved(
        vectors, registers, load_state, reading, ready, empty, left, flags, flag, board, shared, params,
        tile, depth, t,
    ):  # fmt: skip
        tri, c, ldt, ldc = params
        step, own, k_tiles, rows, cols = tile
        _, ra, rb, _, _, old = registers
        count = left
        is_dry = True  # no stage has been waited for
        while left > 0 or empty > 0:
            if ready <= load_state[4] and load_state[4] < count:
                ask_t(load_state[0], ldt, t, depth, load_state[3])
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
            here = step, own, int32(0 if drains else k_tiles), rows, cols
            after, reading = run_mainloop(
                vectors, k_iters, load_state, reading, shared, registers, params, here, t
            )
            if not drains:
                load_state = after
            left = int32(left - k_iters)
        return load_state, reading

    return multiply_solved


def k_tile_solver(config: GemmConfig, product: Product, triangle: Triangle, conj: bool):
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


def diagonal_block_solver(
    config: GemmConfig, product: Product, triangle: Triangle, loop, pointers, solve_k_tile
):
    """``solve_diagonal_block(vectors, registers, ...)``: phase (5), the `own` k-tiles of a tile: each is
    solved, written, and multiplied into what is left.
    """
    REALS, BLK_K = config.dtype_facts.reals_per_element, config.BLK_K
    STAGES, STAGE = config.stages, config.stage_reals
    OF_A, OTHER = triangle.on_left, config.offset_b
    ROW = (config.smem_tile_a if OF_A else config.smem_tile_b).step * REALS
    _, advance, _, operands = pointers
    start, multiply, wait = loop.start, mma_k_block(config, product), ptx.wait_async(STAGES - 2)
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset

    @device_function
    def solve_diagonal_block(
        vectors, registers, substituted, load_state, reading, shared, params, tile, prepared, t, row0, col0,
        order, sides, scale, safe, unit, down, flags, flag,
    ):  # fmt: skip
        tri, c, ldt, ldc = params
        _, own, k_tiles, rows, cols = tile
        acc, ra, rb, _, _, old = registers
        column, value = substituted
        alpha, alpha_i = scale
        done, base = int32(0), int32(0 if down else (own - 1) * BLK_K)
        while done < own:
            wait()
            cuda.syncthreads()
            here = offset(shared, reading * STAGE)
            into = offset(shared, (reading - 1 if reading > 0 else STAGES - 1) * STAGE)
            pa, pb, lda, ldb, depth = operands(load_state, k_tiles, ldc)
            start(vectors, into, old, old, pa, pb, lda, ldb, t, rows, cols, depth)
            load_state = advance(load_state, params, tile)
            reading = int32(reading + 1 if reading < STAGES - 1 else 0)

            t_tile, panel = (here, offset(here, OTHER)) if OF_A else (offset(here, OTHER), here)
            matrix, extent = offset(t_tile, base * ROW), int32(min(order - base, BLK_K))
            at = col0 * ldc + int64(row0 + base) if OF_A else (col0 + base) * ldc + int64(row0)
            solve_k_tile(
                acc, column, value, panel, matrix, prepared, offset(c, at * REALS), ldc, t, base, extent,
                sides, alpha, alpha_i, safe, unit, down, flags, flag, int32(k_tiles - own), done,
            )  # fmt: skip
            if done < own - 1:
                multiply(acc, ra, rb, here, tri, c, ldt, ldc, t, 0, 0, 0)
            done, base = int32(done + 1), int32(base + BLK_K if down else base - BLK_K)

    return solve_diagonal_block
