"""``gemm_int8``: the residues of A B modulo each of the moduli, by wgmma of INT8 with sums in int32.

Sums are exact: the epilogue reduces them to a byte. Of digits it computes a lower bound of ``|A| |B|``
instead, and flags the tiles in which the error of integers might exceed the bound. They are left to
``gemm_int8_guarded``.

Blocks are persistent, and take a tile of one modulus after the other. One warp brings stages by bulk copies,
full and empty stages are told by mbarriers, and the other warpgroups multiply 64 rows of the tile each.
"""

from __future__ import annotations

from functools import partial

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.compile import KernelSource
from ...common.tile_scheduler import tile_coords
from .config import ROW, GemmInt8
from .epilogue import residue_writer, tile_checker
from .image import STAGE_K

__all__ = ["GemmInt8", "is_flagged", "source"]

PARAMETERS = "wwppww iiiiiii".replace(" ", "")
STEP = 32  # bytes, and k, of an instruction


def source(config: GemmInt8) -> KernelSource:
    """The kernel of `config`.

    Its parameters are pointers to the images of A and B, to what `row_scales` has found of A and of B, to the
    flags of tiles, and to the residues of the product, at a multiple of 16 bytes; int32 m, n, k, options
    (rasterization), tiles that are numbered, and the first and the number of images to be multiplied. That of
    digits, after those of the moduli, sets the flags, which the others read. Grid: x as many as the device
    holds.
    """
    build = partial(_build, config)
    return KernelSource.of(config, PARAMETERS, build, whole_program=True, cluster=config.cluster)


def is_flagged(config):
    """``flagged(flags, tile, lane)``: whether any of a tile's flags is set; for a warp."""
    COUNT, int32, offset, first_lane = config.flags_of_tile, ptx.types.int32, ptx.offset, ptx.first_lane

    @device_function
    def flagged(flags, tile, lane):
        found = int32(0)
        if lane < COUNT:
            found = offset(flags, tile * COUNT)[lane]
        return first_lane(found != 0) >= 0

    return flagged


def _producer(config: GemmInt8):
    """``bring(i, a, b, rows_b, shared)``: the stages of A and of a part of B, one copy of A and one of each
    piece of B; `i` counts all stages of this block of threads.
    """
    int32, STAGES, quotient = ptx.types.int32, config.stages, ptx.quotient
    SIZE, BARRIERS, BYTES_A, BYTES = config.stage_bytes, config.barriers, config.bytes_a, config.stage_bytes
    CLUSTER, PIECE, PIECES = config.cluster, config.piece, config.columns // config.piece
    wait, expect, copy, rank_of = ptx.mbarrier_wait, ptx.mbarrier_expect, ptx.bulk_copy, ptx.cluster_rank
    multicast, EVERYONE, PART = ptx.bulk_copy_multicast, 2**config.cluster - 1, config.columns * ROW

    @device_function
    def bring_piece(piece, target, b, at, between, full):
        to = int32(target + piece * (PIECE * ROW))
        source = at + piece * between
        if CLUSTER > 1:
            multicast(to, b, source, int32(PIECE * ROW), full, int32(EVERYONE))
        else:
            copy(to, b, source, int32(PIECE * ROW), full)

    bring_pieces = unrolled(PIECES, bring_piece)

    @device_function
    def bring(i, a, at_a, b, at_b, between, shared):
        turn = quotient(i, STAGES)
        stage = int32(i - turn * STAGES)
        target, full = int32(shared + stage * SIZE), int32(shared + BARRIERS + stage * 16)
        wait(int32(full + 8), int32(turn % 2 ^ 1))
        expect(full, int32(BYTES))
        copy(target, a, at_a, int32(BYTES_A), full)
        part = int32(rank_of() * PART) if CLUSTER > 1 else int32(0)
        bring_pieces(0, int32(target + BYTES_A + part), b, at_b, between, full)

    return bring


def _releaser(config: GemmInt8):
    """``release(stage, shared, lane)``: a warp tells all that fill a stage that it is empty."""
    int32, CLUSTER, EMPTY = ptx.types.int32, config.cluster, config.barriers + 8
    arrive, arrive_at = ptx.mbarrier_arrive, ptx.mbarrier_arrive_at

    @device_function
    def release(stage, shared, lane):
        empty = int32(shared + EMPTY + stage * 16)
        if CLUSTER > 1:
            if lane < CLUSTER:
                arrive_at(empty, int32(lane))
        elif lane == 0:
            arrive(empty)

    return release


def _turns(config: GemmInt8):
    """``take_turn(number, stages, shared, t)``: wait until the first warpgroup has multiplied `lag` stages of
    a tile, the `number`-th of this block of threads; ``hand_over(done, stages, shared, t)``: it has
    multiplied `done` stages. Of tiles with few stages they do nothing: of these it might be two ahead.
    """
    int32, LAG, TURN, FEW = ptx.types.int32, config.lag, config.turn, 2 * config.stages
    wait, arrive = ptx.mbarrier_wait, ptx.mbarrier_arrive

    @device_function
    def take_turn(number, stages, shared, t):
        if LAG > 0 and stages >= FEW and t >= 128:
            wait(int32(shared + TURN), int32(number % 2))

    @device_function
    def hand_over(done, stages, shared, t):
        if LAG > 0 and done == LAG and stages >= FEW and t < 128 and t % 32 == 0:
            arrive(int32(shared + TURN))

    return take_turn, hand_over


def _consumer(config: GemmInt8):
    """``multiply_tile(i, number, stages, acc, shared, t)``: all stages of a tile; the sums are in `acc` after
    it. `i` and `number` count stages and tiles of this block of threads.
    """
    int32, STAGES, N, quotient = ptx.types.int32, config.stages, config.BLK_N, ptx.quotient
    SIZE, BARRIERS, BYTES_A = config.stage_bytes, config.barriers, config.bytes_a
    wait, fence, commit = ptx.mbarrier_wait, ptx.warpgroup_fence, ptx.warpgroup_commit
    start, go_on = ptx.warpgroup_mma(N, True, True), ptx.warpgroup_mma(N, False, True)
    wait_for_last, release, results = (
        ptx.warpgroup_wait(1),
        _releaser(config),
        ptx.warpgroup_results(config.sums),
    )

    take_turn, hand_over = _turns(config)

    @device_function
    def go_on_from(step, acc, a, b):
        go_on(acc, int32(a + step * STEP), int32(b + step * STEP))

    rest, whole = unrolled(ROW // STEP - 1, go_on_from), unrolled(ROW // STEP, go_on_from)

    @device_function
    def stage_of(i):
        turn = quotient(i, STAGES)
        return int32(i - turn * STAGES), turn

    @device_function
    def multiply_tile(i, number, stages, acc, shared, t):
        lane, rows = t % 32, int32(t // 128 * 64 * ROW)
        last = int32(i + stages)
        take_turn(number, stages, shared, t)
        stage, turn = stage_of(i)
        wait(int32(shared + BARRIERS + stage * 16), int32(turn % 2))
        a, b = int32(shared + stage * SIZE + rows), int32(shared + stage * SIZE + BYTES_A)
        fence()
        start(acc, a, b)
        rest(1, acc, a, b)
        commit()
        i = int32(i + 1)
        hand_over(1, stages, shared, t)
        while i < last:
            before = stage
            stage, turn = stage_of(i)
            wait(int32(shared + BARRIERS + stage * 16), int32(turn % 2))
            a, b = int32(shared + stage * SIZE + rows), int32(shared + stage * SIZE + BYTES_A)
            fence()
            whole(0, acc, a, b)
            commit()
            wait_for_last()
            release(before, shared, lane)
            i = int32(i + 1)
            hand_over(int32(i - last + stages), stages, shared, t)
        results(acc)
        release(stage, shared, lane)
        return i

    return multiply_tile


def _locator(config: GemmInt8):
    """``locate(work, m, n, options, tiles)``: the image of a piece of work, where this block's tile of C
    begins, the other block's, and whether they are there: their numbers among all tiles, or -1.
    """
    int32, quotient, CLUSTER = ptx.types.int32, ptx.quotient, config.cluster
    BLK_M, BLK_N, rank_of = config.BLK_M, config.BLK_N, ptx.cluster_rank
    coords = tile_coords(CLUSTER * BLK_M, BLK_N)

    @device_function
    def number(row, col, m, n):
        across = quotient(int32(n + (BLK_N - 1)), BLK_N)
        return int32(quotient(row, BLK_M) * across + quotient(col, BLK_N) if row < m else -1)

    @device_function
    def locate(work, m, n, options, tiles):
        image = quotient(work, tiles)
        row, col, _ = coords(int32(work - image * tiles), m, n, options)
        mine = int32(row + (rank_of() * BLK_M if CLUSTER > 1 else 0))
        other = int32(row + ((1 - rank_of()) * BLK_M if CLUSTER > 1 else 0))
        return image, mine, col, number(mine, col, m, n), number(other, col, m, n)

    return locate


def _build(config: GemmInt8):
    int32, int64, quotient = ptx.types.int32, ptx.types.int64, ptx.quotient
    BLK_M, BLK_N, PANEL, STAGES, SUMS = config.BLK_M, config.BLK_N, config.PANEL, config.stages, config.sums
    CLUSTER, WORKERS, WARPS = config.cluster, 128 * config.warpgroups, 4 * config.warpgroups
    BARRIERS, DIGITS, COLUMNS, PIECE = config.barriers, config.moduli, config.columns, config.piece
    SAMPLE, TURN = config.sample, config.turn
    WORDS, ROW_WORDS, opaque = PANEL * ROW // 4, ROW // 4, ptx.opaque
    bring, multiply_tile, locate = _producer(config), _consumer(config), _locator(config)
    flagged, write, check = is_flagged(config), residue_writer(config), tile_checker(config)
    cluster_sync, cluster_rank = ptx.cluster_sync, ptx.cluster_rank
    align, shared_pointer, shared_address = ptx.align_shared(1024), ptx.shared_pointer, ptx.shared_address
    init, init_fence, grid_dependency_wait = (
        ptx.mbarrier_init,
        ptx.mbarrier_init_fence,
        ptx.grid_dependency_wait,
    )
    fewer = ptx.set_max_registers(config.FEW_REGISTERS, False)
    more = ptx.set_max_registers(config.MANY_REGISTERS, True)

    @device_function
    def make_barriers(shared, t):
        if t == 0:
            for stage in range(STAGES):
                init(int32(shared + BARRIERS + stage * 16), int32(1))
                init(int32(shared + BARRIERS + stage * 16 + 8), int32(WARPS * CLUSTER))
            init(int32(shared + TURN), int32(4))
            init_fence()
        if CLUSTER > 1:
            cluster_sync()
        else:
            cuda.syncthreads()

    @device_function
    def verdict(flags, image, mine, other, lane):
        """Whether the cluster multiplies its tiles, and whether this block writes its own."""
        if image == DIGITS:
            return True, mine >= 0
        own = (mine >= 0) & (not flagged(flags, int32(max(mine, 0)), lane))
        if CLUSTER > 1:
            return own | ((other >= 0) & (not flagged(flags, int32(max(other, 0)), lane))), own
        return own, own

    @device_function
    def depth_of(image, stages):
        """Stages of an image."""
        return int32(quotient(int32(stages + (SAMPLE - 1)), SAMPLE) if image == DIGITS else stages)

    @device_function
    def panel_words(row, extent, stages):
        """Words of an image before the panel with a row; below the last one, that."""
        panel = quotient(int32(min(row, extent - 1)), PANEL)
        return int64(panel) * (stages * WORDS)

    @device_function
    def image_words(extent, stages):
        return int64(quotient(int32(extent + (PANEL - 1)), PANEL)) * (stages * WORDS)

    @device_function
    def produce(a, b, flags, m, n, options, tiles, first, images, stages, shared, t):
        i, work = int32(0), quotient(int32(cuda.blockIdx.x), CLUSTER)
        while work < tiles * images:
            # opaque: what is made of them outside of the loop would take registers all along
            image, row0, col0, mine, other = locate(work, opaque(m), opaque(n), options, tiles)
            image = int32(image + first)
            work = int32(work + quotient(int32(cuda.gridDim.x), CLUSTER))
            go, _ = verdict(flags, image, mine, other, t % 32)
            if go and t == WORKERS:
                depth = depth_of(image, stages)
                at_a = image * image_words(m, stages) + row0 % PANEL * ROW_WORDS
                at_a += panel_words(row0, m, depth)
                col = int32(col0 + (cluster_rank() * COLUMNS if CLUSTER > 1 else 0))
                at_b = image * image_words(n, stages)
                before = panel_words(col, n, depth)
                between = panel_words(int32(col + PIECE), n, depth) - before
                at_b += before + col % PANEL * ROW_WORDS
                last = int32(i + depth)
                while i < last:
                    bring(i, a, at_a, b, at_b, between, shared)
                    i = opaque(int32(i + 1))  # a loop that is unrolled needs more registers
                    at_a += WORDS
                    at_b += WORDS

    def gemm_int8(a, b, facts_a, facts_b, flags, residues, m, n, k, options, tiles, first, images):
        # (1) the mbarriers: of a stage that is full, that is empty
        t, stages = int32(cuda.threadIdx.x), int32((k + (STAGE_K - 1)) // STAGE_K)
        shared = shared_address(align(shared_pointer(cuda.shared.array(0, int32, alignment=16))))
        make_barriers(shared, t)
        grid_dependency_wait()

        # (2) a warp brings the stages of all tiles
        if t >= WORKERS:
            fewer()
            if t < WORKERS + 32:
                produce(a, b, flags, m, n, options, tiles, first, images, stages, shared, t)

        # (3) the others multiply them
        else:
            more()
            acc, words = cuda.local.array(SUMS, int32), cuda.local.array(4, int32)
            number = int32(0)
            i, work = int32(0), quotient(int32(cuda.blockIdx.x), CLUSTER)
            all_tiles = quotient(int32(m + (BLK_M - 1)), BLK_M) * quotient(int32(n + (BLK_N - 1)), BLK_N)
            while work < tiles * images:
                image, row0, col0, mine, other = locate(work, m, n, options, tiles)
                image = int32(image + first)
                work = int32(work + quotient(int32(cuda.gridDim.x), CLUSTER))
                go, own = verdict(flags, image, mine, other, t % 32)
                if go:
                    i = multiply_tile(i, number, depth_of(image, stages), acc, shared, t)
                    number = int32(number + 1)
                    if own and image == DIGITS:
                        check(flags, mine, acc, words, facts_a, facts_b, row0, col0, m, n, k, opaque(t))
                    elif own:
                        write(residues, image * int64(all_tiles) + mine, acc, words, image, opaque(t))
        if CLUSTER > 1:
            cluster_sync()  # no block ends that another one still reaches into

    return gemm_int8
