"""The GEMM kernel that solves by a triangle, in place or not: TRSM in one launch.

    T X = alpha C, or X T = alpha C, by substitution; X overwrites C (m x n, rows contiguous)

A tile of X needs the tiles of its *strip*, a column of tiles (of a row of them, where T is on the right),
that are solved before it. It is one product all along: its sums with the k-tiles of T and of what is solved;
then the k-tiles on the diagonal, each of which is solved in shared memory (`diagonal_solve`) before it is
multiplied like the others, into the rows that are left. What that adds to rows that are solved is of no
meaning.

A flag for each strip counts the k-tiles that are solved. A block polls it before it loads k-tiles that it has
not seen solved, and prefetches their part of T into L2. While that is not solved it multiplies what was
loaded, and so has nothing but the last k-tile left to multiply when that is solved; then it waits, only for
blocks that the device starts before it. The last block of a strip sets the flag back to 0.

With `OVERWRITE` the right-hand sides are in another matrix B. A block copies its tile to C before all else,
while it would wait for others, so C reads and writes are those of a solution in place. With `READS_Y` too it
adds a multiple of B to C.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from ...gpu.backend import cuda, device_function, ptx
from ...types import Triangle
from ..common.options import OVERWRITE, READS_Y, UNIT, UPPER
from ..common.tile_iterators import tile_iterator
from ..common.tile_scheduler import columns
from .config import GemmConfig
from .fused import FLAG_STRIDE, shared_reals, tile_orders
from .mainloop import mainloop
from .product import Product
from .trmm_fused import alignment_of, operands_of, operands_of_tile
from .trsm_fused_phases import (
    diagonal_block_solver,
    flag_poller,
    k_tile_solver,
    pipeline_filler,
    prefetcher,
    solved_multiplier,
    tile_copier,
)

__all__ = ["build"]

#: Strips that run together at least, and bytes of C. Each group waits for its first levels anew, which
#: took up to 30 % where two would have been one; larger ones read C from memory too often.
STRIPS, BYTES = 16, 128 << 20


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


def _tile(config: GemmConfig, product: Product, triangle: Triangle, conj: bool) -> SimpleNamespace:
    """``compute(vectors, down, unit, t, shared, ...)``: the tile of a block; ``is_aligned(tri, c, ldt,
    ldc)`` and `ONE_WAY` of `load_stage`. `conj`: T is meant conjugated.
    """
    facts = config.dtype_facts
    real, REALS, BLK_K, STAGES = ptx.REALS[facts.real], facts.reals_per_element, config.BLK_K, config.stages
    OF_A, (BLK, FREE) = triangle.on_left, tile_orders(config, triangle)
    PER, ALL_STAGES, FLAG = BLK // BLK_K, STAGES * config.stage_reals, FLAG_STRIDE // facts.real_size
    BOARD = ALL_STAGES + shared_reals(config, triangle)
    ACC, FRAG_A, FRAG_B = config.sums, product.fragment_a, product.fragment_b
    NEXT_A, NEXT_B = (FRAG_A, FRAG_B) if config.prefetch else (1, 1)

    zero, coords, pointers = ptx.fill(ACC), _block_coords(config, FREE), _pointers(config, triangle)
    begin, advance, steps, operands = pointers
    loop = mainloop(config, product, operands_of_tile(operands), advance)
    poll_flag, fill_pipeline = flag_poller(config), pipeline_filler(config, loop.start, advance, operands)
    solve_k_tile, on_diagonal = k_tile_solver(config, product, triangle, conj)
    COLUMN, VALUE, prepare = on_diagonal.registers, on_diagonal.values, on_diagonal.prepare
    prefetch = prefetcher(config, triangle)
    multiply_solved = solved_multiplier(config, product, triangle, loop, fill_pipeline, poll_flag)
    solve_diagonal_block = diagonal_block_solver(config, product, triangle, loop, pointers, solve_k_tile)
    begin_t = tile_iterator(config.smem_tile_a if OF_A else config.smem_tile_b).begin
    store_release, grid_dependency_wait = ptx.store_release, ptx.grid_dependency_wait
    int32, int64, quotient, offset = ptx.types.int32, ptx.types.int64, ptx.quotient, ptx.offset

    @device_function
    def compute(vectors, down, unit, t, shared, tri, c, flags, m, n, ldt, ldc, alpha, alpha_i):
        # (1) the tile of this block: its level and its strip; its own k-tiles, and how many precede them
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

        # (3) prologue: what is solved already, and the triangles on the diagonal; L2 prefetches the rest of
        # the tile's own
        grid_dependency_wait()
        prefetch(params, first, other, own, order, others, t)
        ready, reading, empty = int32(0), int32(0), int32(STAGES - 1)
        if count > 0:
            ready = poll_flag(flags, flag, load_state[4], False, board, t)
        load_state, empty = fill_pipeline(
            vectors, empty, ready, load_state, reading, shared, params, tile, old, t
        )
        prepared = offset(shared, ALL_STAGES)
        corner = offset(tri, begin_t(int64(first), int64(first), ldt) * REALS)
        unsafe = prepare(prepared, value, corner, ldt, t, int32(order - first), unit, down)
        safe = cuda.syncthreads_or(unsafe) == 0

        # (4) body: load what is solved; multiply it, while the next one is not solved without loading more
        load_state, reading = multiply_solved(
            vectors, registers, load_state, reading, ready, empty, count, flags, flag, board, shared, params,
            tile, int32(order - first), t,
        )  # fmt: skip

        # (5) the diagonal: solve a k-tile, write it, multiply it into what is left
        solve_diagonal_block(
            vectors, registers, (column, value), load_state, reading, shared, params, tile, prepared, t,
            row0, col0, int32(order - first), int32(others - other), (alpha, alpha_i), safe, unit, down,
            flags, flag,
        )  # fmt: skip

        # (6) the tile is solved; who follows no one's wait leaves the flag as it was
        cuda.syncthreads()
        if t == 0:
            store_release(flags, flag, int32(count + own if level < levels - 1 else 0))

    is_aligned = alignment_of(triangle, loop.is_aligned)
    return SimpleNamespace(compute=compute, is_aligned=is_aligned, ONE_WAY=loop.ONE_WAY)


def _tile_of_b(config: GemmConfig, triangle: Triangle):
    """``copy(b, c, m, n, down, adds, ldb, ldc, t, factor, factor_i)``: `tile_copier` of this block's tile."""
    OF_A, REALS, (BLK, FREE) = (
        triangle.on_left,
        config.dtype_facts.reals_per_element,
        tile_orders(config, triangle),
    )
    coords, copy_tile = _block_coords(config, FREE), tile_copier(config)
    int32, int64, quotient, offset = ptx.types.int32, ptx.types.int64, ptx.quotient, ptx.offset

    @device_function
    def copy(b, c, m, n, down, adds, ldb, ldc, t, factor, factor_i):
        order, others = (m, n) if OF_A else (n, m)
        levels, strips = quotient(order + (BLK - 1), BLK), quotient(others + (FREE - 1), FREE)
        strip, level = coords(cuda.blockIdx.x, strips, levels, order)
        first, other = int32((level if down else levels - 1 - level) * BLK), int32(strip * FREE)
        row0, col0 = (first, other) if OF_A else (other, first)
        b_here = offset(b, (int64(col0) * ldb + row0) * REALS)
        c_here = offset(c, (int64(col0) * ldc + row0) * REALS)
        copy_tile(b_here, c_here, ldb, ldc, t, int32(m - row0), int32(n - col0), adds, factor, factor_i)

    return copy


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
    """The kernel's function; `conj` says whether T is meant conjugated. Its options select which triangle T
    is, and so whether the first unknowns are solved first, `down`.
    """
    real, shared_pointer, OF_A = ptx.REALS[config.dtype_facts.real], ptx.shared_pointer, triangle.on_left
    tile = _tile(config, product, triangle, conj)
    compute, is_aligned, copy = tile.compute, tile.is_aligned, _tile_of_b(config, triangle)
    grid_dependency_wait = ptx.grid_dependency_wait
    if not config.has_many_sums:
        compute = _in_three_ways(compute, tile.ONE_WAY)

    def gemm(tri, b, c, flags, m, n, options, ldt, ldb, ldc, alpha, alpha_i, factor, factor_i):
        t, down, unit = cuda.threadIdx.x, (options & UPPER == 0) == OF_A, options & UNIT != 0
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        if options & OVERWRITE != 0:
            grid_dependency_wait()
            copy(b, c, m, n, down, options & READS_Y != 0, ldb, ldc, t, factor, factor_i)
            cuda.syncthreads()
        vectors = is_aligned(tri, c, ldt, ldc)
        compute(vectors, down, unit, t, shared, tri, c, flags, m, n, ldt, ldc, alpha, alpha_i)

    gemm.__name__ = gemm.__qualname__ = config.STEM  # what a profiler shows
    return gemm
