"""The persistent GEMM kernel: each block computes many tiles, and waits once for a first k-tile.

The pipeline goes on from one work tile to the next (`tile_schedule`): the k-tiles of the next are on
their way while this one is multiplied and written, so a work tile costs no start. All else is as in the
ordinary kernel, and taken from `mainloop`.

Of a parted tile the block with its beginning, the *owner*, writes C. The blocks after it, whose runs begin
within the tile, leave their accumulators in scratch and set a flag, at the beginning of their runs; the owner
reaches the tile at the end of its own, and adds them up in the order of k. Runs are counted from the last
block of the grid, so a block waits only for such as the device starts before it.
"""

from __future__ import annotations

from types import SimpleNamespace

from ...gpu.backend import by_constant, cuda, device_function, ptx, unrolled
from ..common.options import PREFETCH_C
from ..common.tile_iterators import tile_iterator
from ..common.tile_scheduler import tile_coords, work_tiles
from .config import GemmConfig
from .epilogue import c_prefetcher, epilogue, reals_read
from .mainloop import mainloop
from .product import Product
from .slice_sums import sum_completer

__all__ = ["build"]


def _opaque(config: GemmConfig):
    """`opaque` where registers are short, as C is prefetched; else the identity."""
    return ptx.opaque if _is_short(config) else device_function(_itself)


def _is_short(config: GemmConfig) -> bool:
    return config.prefetches_c and not config.has_few_registers


def _itself(value):
    return value


def _counter(config: GemmConfig):
    """``next_of(number)``: one more, in 32 bits where registers are short."""
    integer = ptx.types.int32 if _is_short(config) else ptx.types.int64

    @device_function
    def next_of(number):
        return integer(number + 1)

    return next_of


def _pointers(config: GemmConfig, triangular: bool):
    """``begin(number, tile, first, count, ...)``: where a work tile begins; ``follow(load_state, ...)``:
    where the one after it does; ``advance(load_state, ...)``: where the next k-tile begins, of this work tile
    or of the next.

    All return what is `load_state` of the loads: pointers into A and B; rows, columns and depth from there
    on, no depth where nothing is left; k-tiles left of the work tile, and its number.
    """
    REALS = config.dtype_facts.reals_per_element
    iterator_a, iterator_b = tile_iterator(config.smem_tile_a), tile_iterator(config.smem_tile_b)
    begin_a, begin_b, next_a, next_b = iterator_a.begin, iterator_b.begin, iterator_a.step, iterator_b.step
    BLK_K, int32, int64, offset = config.BLK_K, ptx.types.int32, ptx.types.int64, ptx.offset
    opaque, opaque_if_short, quotient, work_tile_of = ptx.opaque, _opaque(config), ptx.quotient, work_tiles()
    locate = tile_coords(config.BLK_M, config.BLK_N, triangular)

    @device_function
    def begin(number, tile, first, count, a, b, m, n, k, options, lda, ldb, stride_a, stride_b):
        row0, col0, matrix = locate(tile, m, n, options)
        k0 = int64(first) * BLK_K
        at_a = matrix * stride_a + begin_a(row0, k0, lda)
        at_b = matrix * stride_b + begin_b(col0, k0, ldb)
        depth = int32(k - first * BLK_K if count > 0 else 0)
        left = int32(m - row0), int32(n - col0), depth, int32(count), int32(number)
        return (offset(a, at_a * REALS), offset(b, at_b * REALS), *left)

    @device_function
    def follow(load_state, block, a, b, m, n, k, options, schedule, lda, ldb, stride_a, stride_b):
        _, _, _, _, _, _, number = load_state
        # what is made of them alone would take registers
        m, n = opaque_if_short(int32(m)), opaque_if_short(int32(n))
        tile, first, count = work_tile_of(
            number + 1, opaque(block), quotient(k + (BLK_K - 1), BLK_K), schedule
        )
        return begin(number + 1, tile, first, count, a, b, m, n, k, options, lda, ldb, stride_a, stride_b)

    @device_function
    def advance(load_state, block, a, b, m, n, k, options, schedule, lda, ldb, stride_a, stride_b):
        pa, pb, rows, cols, depth, left, number = load_state
        if left == 1:
            return follow(load_state, block, a, b, m, n, k, options, schedule, lda, ldb, stride_a, stride_b)
        pa = offset(pa, next_a(lda) * REALS)
        pb = offset(pb, next_b(ldb) * REALS)
        return pa, pb, rows, cols, int32(depth - BLK_K), int32(left - 1), number

    return begin, follow, advance


def _k_tiles(config: GemmConfig):
    """``operands(load_state, params, tile)`` and ``advance(load_state, params, tile)`` of `mainloop`, within
    a work tile.
    """
    REALS, BLK_K = config.dtype_facts.reals_per_element, config.BLK_K
    int32, offset = ptx.types.int32, ptx.offset
    next_a, next_b = tile_iterator(config.smem_tile_a).step, tile_iterator(config.smem_tile_b).step

    @device_function
    def operands(load_state, params, tile):
        pa, pb, depth = load_state
        _, _, lda, ldb = params
        rows, cols = tile
        return pa, pb, lda, ldb, rows, cols, depth

    @device_function
    def advance(load_state, params, tile):
        pa, pb, depth = load_state
        _, _, lda, ldb = params
        return offset(pa, next_a(lda) * REALS), offset(pb, next_b(ldb) * REALS), int32(depth - BLK_K)

    return operands, advance


def _partial_tiles(config: GemmConfig):
    """``leave(acc, partial, t)``: a block's accumulators to its slot in scratch, the first real of all
    threads, then the second; ``add(acc, partials, t, first, last)``: those of these blocks, in their order.
    """
    facts, THREADS = config.dtype_facts, config.slice_threads
    PARTIAL, ACC = (
        config.BLK_M * config.BLK_N * facts.reals_per_element,
        config.THR_M * config.THR_N * facts.reals_per_element,
    )
    GROUP, TOGETHER = config.fixup_loads
    LOADS = GROUP * TOGETHER
    real, int32, int64, offset = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64, ptx.offset
    read, store = ptx.load_global(1, False), ptx.store_global

    @device_function
    def leave_real(x, acc, mine):
        store(mine, x * THREADS, acc[x], True)

    @device_function
    def fetch_real(x, got, slot, mine):
        read(got, slot + x, mine, x * THREADS, True)

    @device_function
    def add_real(x, acc, got, first, slot):
        acc[first + x] += got[slot + x]

    fetch_group, add_group = unrolled(GROUP, fetch_real), unrolled(GROUP, add_real)

    @device_function
    def fetch_one(x, got, mine):
        fetch_group(0, got, x * GROUP, offset(mine, x * PARTIAL))

    @device_function
    def add_one(x, acc, got, first):
        add_group(0, acc, got, first, x * GROUP)

    def adder(partials: int):
        fetch, add_up = unrolled(partials, fetch_one), unrolled(partials, add_one)

        @device_function
        def add_groups(g, acc, got, mine):
            fetch(0, got, offset(mine, g * (GROUP * THREADS)))
            add_up(0, acc, got, g * GROUP)

        return unrolled(ACC // GROUP, add_groups)

    leave_all, add_several, add_single = unrolled(ACC, leave_real), adder(TOGETHER), adder(1)

    @device_function
    def leave(acc, partial, t):
        leave_all(0, acc, offset(partial, t))

    @device_function
    def add(acc, partials, t, first, last):
        got, other = cuda.local.array(LOADS, real), int32(first)
        while other <= last:
            mine = offset(partials, int64(other) * PARTIAL + t)
            if TOGETHER > 1 and other + TOGETHER <= last + 1:
                add_several(0, acc, got, mine)
                other = int32(other + TOGETHER)
            else:
                add_single(0, acc, got, mine)
                other = int32(other + 1)

    return leave, add


def _finisher(config: GemmConfig, product: Product, triangular: bool):
    """``finish(...)``: what is done with the sum of a work tile, `count` k-tiles of a tile from the `first`
    on.

    A work tile within a tile of C, of which a block has one at most, goes to the block's slot in scratch. One
    that begins its tile is added up with the others of it, and goes to C as alpha acc + beta C.
    """
    REALS, THREADS = config.dtype_facts.reals_per_element, config.threads
    PARTIAL = config.BLK_M * config.BLK_N * REALS
    int32, int64, offset = ptx.types.int32, ptx.types.int64, ptx.offset
    opaque, set_flag_release, try_take_flag = ptx.opaque, ptx.set_flag_release, ptx.try_take_flag
    opaque_if_short = _opaque(config)
    SLICES, GROUP = config.SLICES_K, config.slice_threads
    locate = tile_coords(config.BLK_M, config.BLK_N, triangular)
    write, (leave, add) = epilogue(config, product, triangular), _partial_tiles(config)

    @device_function
    def finish(
        acc, old, t, block, tile, first, count, k_tiles, schedule, c, partials, flags, m, n, options, ldc,
        stride_c, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        _, _, k_iters_per_block, remainder = schedule
        # addresses made of what is known before would take registers all the time
        block, t = opaque(block), opaque(int32(t))
        m, n, ldc = opaque_if_short(m), opaque_if_short(n), opaque_if_short(ldc)
        has_sums = SLICES == 1 or t < GROUP
        if first > 0:
            if has_sums:
                leave(acc, offset(partials, int64(block) * PARTIAL), t)
            cuda.syncthreads()
            if t == 0:
                set_flag_release(flags, block)
        else:
            last = int32(block)
            while count < k_tiles:
                last = int32(last + 1)
                count = int32(count + k_iters_per_block + (1 if last < remainder else 0))
            if last > block:
                other = int32(block + 1 + t)
                while other <= last:
                    if try_take_flag(flags, other):
                        other = int32(other + THREADS)
                cuda.syncthreads()
                if has_sums:
                    add(acc, partials, t, block + 1, last)
            row0, col0, matrix = locate(tile, m, n, options)
            into = offset(c, (matrix * stride_c + col0 * ldc + row0) * REALS)
            rows, cols = int32(m - row0), int32(n - col0)
            if has_sums:
                write(into, acc, old, ldc, t, rows, cols, row0 - col0, options, alpha, alpha_i, beta, beta_i)

    return finish


def _c_prefetcher(config: GemmConfig, triangular: bool):
    """``prefetch(number, block, t, ...)``: `c_prefetcher` of the tile that this work tile begins."""
    REALS, int32, offset, opaque = (
        config.dtype_facts.reals_per_element,
        ptx.types.int32,
        ptx.offset,
        ptx.opaque,
    )
    locate, prefetch_tile = tile_coords(config.BLK_M, config.BLK_N, triangular), c_prefetcher(config)
    work_tile_of = work_tiles()

    @device_function
    def prefetch(number, block, t, k_tiles, schedule, c, m, n, options, ldc, stride_c, beta, beta_i):
        if options & PREFETCH_C != 0:
            tile, first, _ = work_tile_of(number, opaque(block), opaque(k_tiles), schedule)
            if first == 0:
                m, n = opaque(int32(m)), opaque(int32(n))
                row0, col0, matrix = locate(tile, m, n, options)
                begin = offset(c, (col0 * ldc + row0 + matrix * stride_c) * REALS)
                prefetch_tile(
                    begin, ldc, opaque(int32(t)), int32(m - row0), int32(n - col0), options, beta, beta_i
                )

    return prefetch


def _scheduler_loop(config: GemmConfig, product: Product, triangular: bool) -> SimpleNamespace:
    """``compute(vectors, block, t, shared, ...)``: all work tiles of a block; ``is_aligned`` and `ONE_WAY` of
    `load_stage`.
    """
    real, int32, quotient = ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.quotient
    BLK_K, STAGES, PREFETCH = config.BLK_K, config.stages, config.prefetch
    ACC, FRAG_A, FRAG_B = config.sums, product.fragment_a, product.fragment_b
    OLD = max(reals_read(config, run, triangular) for run in (0, product.run))
    NEXT_A, NEXT_B = (FRAG_A, FRAG_B) if PREFETCH else (1, 1)
    STAGE, complete = config.stage_reals, sum_completer(config, product)

    load, zero = product.load, ptx.fill(ACC)
    loop = mainloop(config, product, *_k_tiles(config))
    start, run_mainloop = loop.start, loop.run
    (begin, follow, advance), work_tile_of = _pointers(config, triangular), work_tiles()
    finish, prefetch_c = _finisher(config, product, triangular), _c_prefetcher(config, triangular)
    wait = ptx.wait_async(max(STAGES - 2, 0))
    offset, opaque_if_short, grid_dependency_wait = ptx.offset, _opaque(config), ptx.grid_dependency_wait
    PREFETCHES_C, next_of = config.prefetches_c, _counter(config)

    @device_function
    def compute(
        vectors, block, t, shared, a, b, c, partials, flags, m, n, k, options, schedule, lda, ldb, ldc,
        stride_a, stride_b, stride_c, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the first work tile of this block
        k_tiles = quotient(k + (BLK_K - 1), BLK_K)
        tile, first, left = work_tile_of(0, block, k_tiles, schedule)
        load_state = begin(0, tile, first, left, a, b, m, n, k, options, lda, ldb, stride_a, stride_b)

        # (2) registers
        acc, old = cuda.local.array(ACC, real), cuda.local.array(OLD, real)
        ra, rb = cuda.local.array(FRAG_A, real), cuda.local.array(FRAG_B, real)
        ra_next, rb_next = cuda.local.array(NEXT_A, real), cuda.local.array(NEXT_B, real)

        # (3) prologue: the first k-tiles
        grid_dependency_wait()
        for stage in range(STAGES - 1):
            pa, pb, rows, cols, depth, _, _ = load_state
            into = offset(shared, stage * STAGE)
            start(vectors, into, old, old, pa, pb, lda, ldb, t, rows, cols, depth)
            load_state = advance(
                load_state, block, a, b, m, n, k, options, schedule, lda, ldb, stride_a, stride_b
            )
        if PREFETCH:
            wait()
            cuda.syncthreads()
            load(0, ra, rb, shared, a, b, lda, ldb, t, 0, 0, 0)

        registers, number, reading = (acc, ra, rb, ra_next, rb_next, old), int32(0), int32(0)
        while left > 0:
            # (4) body: start to load a later k-tile, multiply the present one. The loop ends where the loads
            # go on to the next work tile: what finds it, within, would spoil the order
            if PREFETCHES_C:
                prefetch_c(number, block, t, k_tiles, schedule, c, m, n, options, ldc, stride_c, beta, beta_i)
            zero(acc, real(0))
            while left > 0:
                pa, pb, rows, cols, depth, more, which = load_state
                together = min(left, more) if more > 0 else left
                params, tile = (a, b, lda, ldb), (rows, cols)
                (pa, pb, depth), reading = run_mainloop(
                    vectors, together, (pa, pb, depth), reading, shared, registers, params, tile, t
                )
                left = int32(left - together)
                if more == together:
                    load_state = follow(
                        load_state, block, a, b, m, n, k, options, schedule, lda, ldb, stride_a, stride_b
                    )
                else:
                    load_state = pa, pb, rows, cols, depth, int32(more - together), which

            # (5) C := alpha acc + beta C, or acc to scratch; the next work tile
            complete(acc, offset(shared, STAGES * STAGE), t)
            tile, first, count = work_tile_of(number, opaque_if_short(block), k_tiles, schedule)
            finish(
                acc, old, t, block, tile, first, count, k_tiles, schedule, c, partials, flags, m, n, options,
                ldc, stride_c, alpha, alpha_i, beta, beta_i,
            )  # fmt: skip
            number = next_of(number)
            _, _, left = work_tile_of(number, opaque_if_short(block), k_tiles, schedule)

    return SimpleNamespace(compute=compute, is_aligned=loop.is_aligned, ONE_WAY=loop.ONE_WAY)


def build(config: GemmConfig, product: Product, triangular: bool = False):
    """The kernel's function; of C it knows all tiles, or if `triangular` those that a triangle meets."""
    real, int32, shared_pointer = ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.shared_pointer
    loop = _scheduler_loop(config, product, triangular)
    is_aligned, compute = loop.is_aligned, loop.compute
    if config.is_full:  # all that follows is ordered for one way to load
        compute = by_constant(compute, loop.ONE_WAY)

    def gemm(
        a, b, c, partials, flags, m, n, k, options, tiles, full_waves, k_iters_per_block, remainder, lda, ldb,
        ldc, stride_a, stride_b, stride_c, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        t, block = cuda.threadIdx.x, int32(cuda.gridDim.x - 1 - cuda.blockIdx.x)
        schedule = tiles, full_waves, k_iters_per_block, remainder
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        vectors = is_aligned(a, b, lda | stride_a, ldb | stride_b)  # so are all matrices of a batch
        compute(
            vectors, block, t, shared, a, b, c, partials, flags, m, n, k, options, schedule, lda, ldb, ldc,
            stride_a, stride_b, stride_c, alpha, alpha_i, beta, beta_i,
        )  # fmt: skip

    gemm.__name__ = gemm.__qualname__ = config.STEM  # what a profiler shows
    return gemm
