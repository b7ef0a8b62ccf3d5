"""``gemm_wgmma``: C := alpha A B + beta C of operands in `image` s, by wgmma of FP16 with sums in float32.

A product of pairs is three of FP16: hi hi in one accumulator, hi lo + lo hi, 2^11 times as large, in another.
After each block along k both are added up in float32, times the scales of the block's row and column: the
tensor core cuts its sums instead of rounding them, so few of them follow one another.

Blocks are persistent. One warp loads stages by bulk copies, mbarriers signal full and empty stages, and the
other warpgroups multiply 64 rows of the tile each. A tile whose operands have a flagged block is left to
``gemm_guarded``.
"""

from __future__ import annotations

from functools import partial

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ..stage_ring import barrier_maker, part_copier, releaser, stage_finder, stage_opener
from ..warpgroups import ROW
from .config import GemmWgmma
from .epilogue import epilogue
from .image import LO_SHIFT, STAGE_K
from .tiles import judge, pairs_of, tile_finder

__all__ = ["GemmWgmma", "source", "tile_scheduler_loop"]

PARAMETERS = parameters(
    "pointer: a, b, scales_a, scales_b",
    "int32 pointer: flags_a, flags_b",
    "pointer: c",
    "int32: m, n, k, options, tiles",
    "int64: step_a, step_b, ldc, stride_c",
    "real: alpha, alpha_i, beta, beta_i",
)
HALF_ROW = 64  # bytes: from hi to lo
STEP = 32  # bytes: k of an instruction


def source(config: GemmWgmma) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: pointer, the images of A and B
    scales_a, scales_b: pointer, their scales
    flags_a, flags_b: int32 pointer, their flags
    c: pointer, C
    m, n, k: int32, extents
    options: int32, rasterization, triangle of C, `ROW_PAIRS`, or which factor is a triangle
    tiles: int32, tiles of the batch
    step_a, step_b: int64, panels from one matrix of A, B to the next
    ldc, stride_c: int64, leading dimension and batch stride of C (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x as many blocks as the device holds.
    """
    build = partial(_build, config)
    return KernelSource.of(config, PARAMETERS, build, whole_program=True, cluster=config.cluster)


def _producer(config: GemmWgmma):
    """``load_stages(i, a, b, scales_a, scales_b, shared)``: the stages of a block, a copy each of A and B,
    and with the last the scales; `i` counts all stages of this block of threads.
    """
    int32, PER_BLOCK, quotient, copy = ptx.types.int32, config.stages_per_block, ptx.quotient, ptx.bulk_copy
    BLK_M, BLK_N, BYTES_A, BOTH = config.BLK_M, config.BLK_N, config.bytes_a, config.bytes_a + config.bytes_b
    CLUSTER, PART, rank_of = config.cluster, config.bytes_b // config.cluster, ptx.cluster_rank
    open_stage, copy_part = stage_opener(config), part_copier(config)

    def load_stage(j: int):
        LAST = j == PER_BLOCK - 1
        FROM, BYTES = j * config.PANEL * STAGE_K, BOTH + 4 * (BLK_M + BLK_N) if LAST else BOTH

        @device_function
        def load_stages(i, a, b, scales_a, scales_b, shared):
            target, full = open_stage(int32(i + j), BYTES, shared)
            copy(target, a, FROM, int32(BYTES_A), full)
            part = int32(rank_of() * PART) if CLUSTER > 1 else int32(0)
            copy_part(int32(target + BYTES_A + part), b, int32(FROM + quotient(part, 4)), PART, full)
            if LAST:
                copy(int32(target + BOTH), scales_a, 0, int32(4 * BLK_M), full)
                copy(int32(target + BOTH + 4 * BLK_M), scales_b, 0, int32(4 * BLK_N), full)

        return load_stages

    return in_order([load_stage(j) for j in range(PER_BLOCK)])


def _turns(config: GemmWgmma):
    """``acquire_turn(i, rows, shared)``: wait until the other warpgroup's products of a block are nearly
    over; ``release_turn(rows, shared, lane)``: those of this one are. Without turns they do nothing.
    """
    int32, TURNS, PER_BLOCK = ptx.types.int32, config.turns, config.stages_per_block
    ORDERED, ROWS, quotient = config.ordered, 64 * ROW, ptx.quotient
    wait, arrive = ptx.mbarrier_wait, ptx.mbarrier_arrive

    @device_function
    def acquire_turn(i, rows, shared):
        if ORDERED:
            second = quotient(rows, ROWS)
            wait(int32(shared + TURNS + second * 8), int32((quotient(i, PER_BLOCK) + (1 - second)) % 2))

    @device_function
    def release_turn(rows, shared, lane):
        if ORDERED and lane == 0:
            arrive(int32(shared + TURNS + (1 - quotient(rows, ROWS)) * 8))

    return acquire_turn, release_turn


def _multiplier(config: GemmWgmma):
    """``multiply(i, high, cross, rows, shared, lane)``: start the products of the stages of a block, and give
    back all stages but the last. `i` counts all stages of this block of threads, `rows` is the first row of
    the warpgroup, in bytes of a stage.
    """
    int32, STAGES, PER_BLOCK, N = ptx.types.int32, config.stages, config.stages_per_block, config.BLK_N
    SIZE, BYTES_A, (_, _, wait_full) = config.stage_bytes, config.bytes_a, stage_finder(config)
    acquire_turn, release_turn = _turns(config)
    fence, commit, release = ptx.warpgroup_fence, ptx.warpgroup_commit, releaser(config)
    start, go_on, wait_for_last = (
        ptx.warpgroup_mma(N, True),
        ptx.warpgroup_mma(N, False),
        ptx.warpgroup_wait(1),
    )

    def multiply_stage(j: int):
        FIRST, LAST = j == 0, j == PER_BLOCK - 1

        @device_function
        def multiply(i, high, cross, rows, shared, lane):
            stage = wait_full(int32(i + j), shared)
            if FIRST:
                acquire_turn(i, rows, shared)
            a = int32(shared + stage * SIZE + rows)
            b = int32(shared + stage * SIZE + BYTES_A)
            if FIRST:
                fence()
                start(cross, a, int32(b + HALF_ROW))
                go_on(cross, int32(a + HALF_ROW), b)
            else:
                go_on(cross, a, int32(b + HALF_ROW))
                go_on(cross, int32(a + HALF_ROW), b)
            go_on(cross, int32(a + STEP), int32(b + (HALF_ROW + STEP)))
            go_on(cross, int32(a + (HALF_ROW + STEP)), int32(b + STEP))
            if FIRST:
                start(high, a, b)
            else:
                go_on(high, a, b)
            go_on(high, int32(a + STEP), int32(b + STEP))
            commit()
            if not FIRST:
                wait_for_last()
                release(int32(stage - 1 if stage > 0 else STAGES - 1), shared, lane)
            if LAST:
                release_turn(rows, shared, lane)

        return multiply

    return in_order([multiply_stage(j) for j in range(PER_BLOCK)])


def _promoter(config: GemmWgmma):
    """``promote(0, total, high, cross, scale, scale_8, scales_b, t)``: total += (high + 2^-11 cross) times
    the scales of row and column.
    """
    real, fma, LO = ptx.types.float32, ptx.fma, 2.0**-LO_SHIFT
    load_two = ptx.load_shared(2)

    @device_function
    def promote(j, total, high, cross, columns, scale, scale_8, scales_b, t):
        load_two(columns, 0, scales_b, j * 8 + t % 4 * 2)
        for v in range(4):
            pair = fma(cross[4 * j + v], real(LO), high[4 * j + v])
            row_scale = scale if v < 2 else scale_8
            total[4 * j + v] = fma(pair, row_scale * columns[v % 2], total[4 * j + v])

    return unrolled(config.BLK_N // 8, promote)


def _consumer(config: GemmWgmma):
    """``multiply_tile(i, blocks, total, ..., t)``: all blocks of a tile, into `total`."""
    real, int32, offset = ptx.types.float32, ptx.types.int32, ptx.offset
    STAGES, PER_BLOCK, SUMS, quotient = config.stages, config.stages_per_block, config.sums, ptx.quotient
    SIZE, BOTH, BLK_M = config.stage_bytes, config.bytes_a + config.bytes_b, config.BLK_M
    multiply, promote, zero = _multiplier(config), _promoter(config), ptx.fill(SUMS)
    results, release, sync_warp = ptx.warpgroup_results(SUMS), releaser(config), ptx.sync_warp

    @device_function
    def multiply_tile(i, blocks, total, high, cross, columns, memory, shared, t):
        lane, row = t % 32, t // 32 * 16 + t % 32 // 4
        rows = int32(t // 128 * 64 * ROW)
        zero(total, real(0))
        for _ in range(blocks):
            multiply(i, high, cross, rows, shared, lane)
            results(cross)
            results(high)
            i = int32(i + PER_BLOCK)
            last = int32(i - 1 - quotient(int32(i - 1), STAGES) * STAGES)
            scales = offset(memory, (last * SIZE + BOTH) // 4)
            scale, scale_8 = scales[row], scales[row + 8]
            promote(0, total, high, cross, columns, scale, scale_8, offset(scales, BLK_M), t)
            sync_warp()  # all lanes have read the scales
            release(last, shared, lane)
        return i

    return multiply_tile


def tile_scheduler_loop(config: GemmWgmma, load_stages, multiply_tile, verdict, words: int, has_tiles=None):
    """``run(a, b, scales_a, scales_b, judged, c, ...)``: all of a block of threads. A block of a panel has
    `words` in an image; ``verdict(judged, firsts, count, lane)`` as `judge` has it. ``has_tiles(judged)``
    says, after the wait, whether there is anything to do.
    """
    real, int32, int64, quotient = ptx.types.float32, ptx.types.int32, ptx.types.int64, ptx.quotient
    BLK_K, PER_BLOCK = config.BLK_K, config.stages_per_block
    WORKERS, SUMS, PANEL = 128 * config.warpgroups, config.sums, config.PANEL
    TURNS, opaque, SOMETIMES = config.turns, ptx.opaque, has_tiles is not None
    CLUSTER, cluster_sync, write = config.cluster, ptx.cluster_sync, epilogue(config)
    align, offset, tile_of = ptx.align_shared(1024), ptx.offset, tile_finder(config)
    init, shared_address, pairs = ptx.mbarrier_init, ptx.shared_address, pairs_of()
    fewer = ptx.set_max_registers(config.FEW_REGISTERS, False)
    more = ptx.set_max_registers(config.MANY_REGISTERS, True)
    shared_pointer, grid_dependency_wait = ptx.shared_pointer, ptx.grid_dependency_wait

    @device_function
    def initialize_turns(shared):
        init(int32(shared + TURNS), int32(4))
        init(int32(shared + TURNS + 8), int32(4))

    make_barriers = barrier_maker(config, initialize_turns if config.ordered else None)

    @device_function
    def produce(
        a, b, scales_a, scales_b, judged, m, n, options, blocks, tiles, step_a, step_b, shared, t,
    ):  # fmt: skip
        i, tile = int32(0), quotient(int32(cuda.blockIdx.x), CLUSTER)
        while tile < tiles:
            # opaque: what is made of them outside of the loop would take registers all along
            of = opaque(m), opaque(n), opaque(options)
            met, row0, col0, _, firsts, count = tile_of(tile, tiles, *of, blocks, step_a, step_b)
            tile = int32(tile + quotient(int32(cuda.gridDim.x), CLUSTER))
            go, _ = verdict(judged, firsts, count, t % 32)
            first_a, _, first_b = firsts
            if met and go and t == WORKERS:
                row, col = row0 % PANEL, col0 % PANEL
                pa, pb = offset(a, first_a * words + row * 32), offset(b, first_b * words + col * 32)
                sa, sb = offset(scales_a, first_a * PANEL + row), offset(scales_b, first_b * PANEL + col)
                last = int32(i + count * PER_BLOCK)
                while i < last:
                    load_stages(i, pa, pb, sa, sb, shared)
                    i = opaque(int32(i + PER_BLOCK))  # a loop that is unrolled needs more registers
                    pa, pb = offset(pa, words), offset(pb, words)
                    sa, sb = offset(sa, PANEL), offset(sb, PANEL)

    @device_function
    def run(
        a, b, scales_a, scales_b, judged, c, m, n, k, options, tiles, step_a, step_b, ldc,
        stride_c, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        # (1) the mbarriers: of a stage that is full, that is empty
        t, blocks = int32(cuda.threadIdx.x), int32((k + (BLK_K - 1)) // BLK_K)
        memory = align(shared_pointer(cuda.shared.array(0, real, alignment=16)))
        shared = shared_address(memory)
        make_barriers(shared, t)
        grid_dependency_wait()
        if SOMETIMES:
            tiles = int32(tiles if has_tiles(judged) else 0)

        # (2) a warp loads the stages of all tiles
        if t >= WORKERS:
            fewer()
            if t < WORKERS + 32:
                produce(
                    a, b, scales_a, scales_b, judged, m, n, options, blocks, tiles, step_a, step_b, shared, t,
                )  # fmt: skip

        # (3) the others multiply them
        else:
            more()
            total, high = cuda.local.array(SUMS, real), cuda.local.array(SUMS, real)
            cross, columns = cuda.local.array(SUMS, real), cuda.local.array(2, real)
            i, tile = int32(0), quotient(int32(cuda.blockIdx.x), CLUSTER)
            while tile < tiles:
                met, row0, col0, matrix, firsts, count = tile_of(
                    tile, tiles, m, n, options, blocks, step_a, step_b
                )
                tile = int32(tile + quotient(int32(cuda.gridDim.x), CLUSTER))
                go, own = verdict(judged, firsts, count, t % 32)
                if met and go:
                    i = multiply_tile(i, count, total, high, cross, columns, memory, shared, t)
                    # opaque: what is made of it would take registers all along
                    u = opaque(t)
                    row, col = int32(row0 + u // 32 * 16 + u % 32 // 4), int32(col0 + u % 4 * 2)
                    here = offset(c, matrix * stride_c + int64(col) * ldc + row)
                    rows, cols = int32(m - row if own else 0), int32(n - col)
                    shift = (row >> pairs(options)) - col
                    write(here, total, high, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)
        if CLUSTER > 1:
            cluster_sync()  # no block ends that another one still reaches into

    return run


def _build(config: GemmWgmma):
    words = config.PANEL * config.BLK_K
    run = tile_scheduler_loop(config, _producer(config), _consumer(config), judge(config), words)

    def gemm_wgmma(
        a, b, scales_a, scales_b, flags_a, flags_b, c, m, n, k, options, tiles, step_a, step_b, ldc,
        stride_c, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        run(
            a, b, scales_a, scales_b, (flags_a, flags_b), c, m, n, k, options, tiles, step_a, step_b, ldc,
            stride_c, alpha, alpha_i, beta, beta_i,
        )  # fmt: skip

    return gemm_wgmma
