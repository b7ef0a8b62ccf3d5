"""``gemm_int8``: the residues of A B modulo each of the moduli, by wgmma of INT8 with sums in int32; of
complex matrices those of the products of their parts, see `image`.

Sums are exact: the epilogue reduces them to a byte. Of digits it computes a lower bound of ``|A| |B|``
instead, and flags the tiles in which the error of integers might exceed the bound. They are left to
``gemm_int8_guarded``.

Blocks are persistent, and take a tile of one modulus after the other. One warp loads stages by bulk copies,
mbarriers signal full and empty stages, and the other warpgroups multiply 64 rows of the tile each.
"""

from __future__ import annotations

from functools import partial

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ...common.tile_scheduler import tile_origins
from ..stage_ring import barrier_maker
from ..warpgroups import ROW
from .config import GemmInt8
from .epilogue import residue_writer, tile_checker
from .image import STAGE_K
from .pipeline import stage_loader, tile_multiplier
from .row_scales import convict
from .tile_slots import tile_slots

__all__ = ["GemmInt8", "is_flagged", "source"]

PARAMETERS = parameters(
    "int32 pointer: a, b",
    "pointer: facts_a, facts_b",
    "int32 pointer: flags, residues, verdicts",
    "int32: m, n, k, options, tiles, first, images",
    "int32: slots, begin_a, begin_b, rows_a, rows_b, stages, judges",
)


def source(config: GemmInt8) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: int32 pointer, the images of A and B
    facts_a, facts_b: pointer, the facts of A's rows and of B's columns by `row_scales`
    flags: int32 pointer, the flags of tiles
    residues: int32 pointer, the residues of the product, at a multiple of 16 bytes
    verdicts: int32 pointer, of `sample_pairs`: where all are 1, all tiles have flags, and none is multiplied
    m, n, k: int32, extents
    options: int32, rasterization, triangle of C
    tiles: int32, numbered tiles
    first, images: int32, the first image to multiply, and their number
    slots: int32, tiles of C that are kept (`tile_slots`)
    begin_a, begin_b: int32, rows of the images of A, of B, before those that are meant: whole panels
    rows_a, rows_b: int32, rows of whole panels of the images
    stages: int32, stages of the images; those of k are the first
    judges: int32, number of verdicts

    Grid: x as many blocks as the device holds. The image of digits, after those of the moduli, sets the
    flags, which the others read.
    """
    build = partial(_build, config)
    return KernelSource.of(config, PARAMETERS, build, whole_program=True, cluster=config.cluster)


def is_flagged(config):
    """``flagged(flags, tile, lane)``: whether any of a tile's flags is set; for a warp."""
    COUNT, int32, offset, first_lane = config.flags_of_tile, ptx.types.int32, ptx.offset, ptx.first_lane

    @device_function
    def flagged(flags, tile, lane):
        flag = int32(0)
        if lane < COUNT:
            flag = offset(flags, tile * COUNT)[lane]
        return first_lane(flag != 0) >= 0

    return flagged


def _locator(config: GemmInt8):
    """``locate(work, m, n, options, tiles)``: the image of a work tile, where this block's tile of C
    begins, the other block's, and whether they are there: their slots, or -1.
    """
    int32, quotient, CLUSTER = ptx.types.int32, ptx.quotient, config.cluster
    BLK_M, BLK_N, rank_of = config.BLK_M, config.BLK_N, ptx.cluster_rank
    HEIGHT, slot = CLUSTER * config.BLK_M, tile_slots(BLK_M, BLK_N)
    coords = tile_origins(HEIGHT, BLK_N, None)

    @device_function
    def number(row, col, m, n, options):
        return slot(row, col, m, n, options) if (row < m) & (col < n) else int32(-1)

    @device_function
    def locate(work, m, n, options, tiles):
        image = quotient(work, tiles)
        down, across = quotient(int32(m + (HEIGHT - 1)), HEIGHT), quotient(int32(n + (BLK_N - 1)), BLK_N)
        row, col = coords(int32(work - image * tiles), down, across, options)
        mine = int32(row + (rank_of() * BLK_M if CLUSTER > 1 else 0))
        other = int32(row + ((1 - rank_of()) * BLK_M if CLUSTER > 1 else 0))
        return image, mine, col, number(mine, col, m, n, options), number(other, col, m, n, options)

    return locate


def _verdict(config: GemmInt8):
    """``verdict(flags, image, mine, other, lane)``: whether the cluster multiplies its tiles, and whether
    this block writes its own; for a warp.
    """
    int32, DIGITS, CLUSTER, flagged = ptx.types.int32, config.images, config.cluster, is_flagged(config)

    @device_function
    def verdict(flags, image, mine, other, lane):
        if image == DIGITS:
            return True, mine >= 0
        own = (mine >= 0) & (not flagged(flags, int32(max(mine, 0)), lane))
        if CLUSTER > 1:
            return own | ((other >= 0) & (not flagged(flags, int32(max(other, 0)), lane))), own
        return own, own

    return verdict


def _depth(config: GemmInt8):
    """``depth_of(image, stages)``: stages of an image, where those of moduli have `stages`."""
    int32, quotient, DIGITS, SAMPLE = ptx.types.int32, ptx.quotient, config.images, config.sample

    @device_function
    def depth_of(image, stages):
        return int32(quotient(int32(stages + (SAMPLE - 1)), SAMPLE) if image == DIGITS else stages)

    return depth_of


def _finder(config: GemmInt8):
    """``find(image, row, extent, begin, rows, stages, depth)``: where in the images of an operand, of `rows`
    rows, the first stage of a row is, in words, and how far from it that of `copy_columns` rows below; beyond
    the last panel is that. The image has `depth` stages, those of moduli `stages`.
    """
    int32, int64, quotient, PANEL = ptx.types.int32, ptx.types.int64, ptx.quotient, config.PANEL
    WORDS, ROW_WORDS, COPY_COLUMNS = PANEL * ROW // 4, ROW // 4, config.copy_columns

    @device_function
    def panel_words(row, extent, begin, depth):
        panel = quotient(int32(begin + min(row, extent - 1)), PANEL)
        return int64(panel) * (depth * WORDS)

    @device_function
    def find(image, row, extent, begin, rows, stages, depth):
        before = panel_words(row, extent, begin, depth)
        between = panel_words(int32(row + COPY_COLUMNS), extent, begin, depth) - before
        return image * int64(rows) * (stages * ROW_WORDS) + before + row % PANEL * ROW_WORDS, between

    return find


def _producer(config: GemmInt8):
    """``produce(a, b, flags, m, n, options, tiles, first, images, stages, places, shared, t)``: the stages of
    all tiles of this block of threads; for a warp. `places` are where operands begin in their images, rows of
    these, and their stages.
    """
    int32, quotient, opaque, CLUSTER = ptx.types.int32, ptx.quotient, ptx.opaque, config.cluster
    load_stages, locate, verdict = stage_loader(config), _locator(config), _verdict(config)
    depth_of, find, cluster_rank = _depth(config), _finder(config), ptx.cluster_rank
    WORKERS, COLUMNS, WORDS = 128 * config.warpgroups, config.columns, config.PANEL * ROW // 4

    @device_function
    def produce(a, b, flags, m, n, options, tiles, first, images, stages, places, shared, t):
        begin_a, begin_b, rows_a, rows_b, all_stages = places
        i, work = int32(0), quotient(int32(cuda.blockIdx.x), CLUSTER)
        while work < tiles * images:
            # opaque: what is made of them outside of the loop would take registers all along
            image, row0, col0, mine, other = locate(work, opaque(m), opaque(n), opaque(options), tiles)
            image = int32(image + first)
            work = int32(work + quotient(int32(cuda.gridDim.x), CLUSTER))
            go, _ = verdict(flags, image, mine, other, t % 32)
            if go and t == WORKERS:
                depth, col = depth_of(image, stages), col0
                if CLUSTER > 1:
                    col = int32(col0 + cluster_rank() * COLUMNS)
                of_image = depth_of(image, all_stages)
                at_a, _ = find(image, row0, m, begin_a, rows_a, all_stages, of_image)
                at_b, between = find(image, col, n, begin_b, rows_b, all_stages, of_image)
                last = int32(i + depth)
                while i < last:
                    load_stages(i, a, at_a, b, at_b, between, shared)
                    i = opaque(int32(i + 1))  # a loop that is unrolled needs more registers
                    at_a += WORDS
                    at_b += WORDS

    return produce


def _consumer(config: GemmInt8):
    """``consume(facts_a, facts_b, flags, residues, m, n, k, options, tiles, first, images, slots, rows_a,
    rows_b, stages, shared, t)``: multiply all tiles of this block of threads; for the warpgroups that do.
    """
    int32, int64, quotient, opaque = ptx.types.int32, ptx.types.int64, ptx.quotient, ptx.opaque
    SUMS, CLUSTER, DIGITS = config.sums, config.cluster, config.images
    multiply_tile, locate, verdict = tile_multiplier(config), _locator(config), _verdict(config)
    write, check, depth_of = residue_writer(config), tile_checker(config), _depth(config)

    @device_function
    def consume(
        facts_a, facts_b, flags, residues, m, n, k, options, tiles, first, images, slots, rows_a, rows_b,
        stages, shared, t,
    ):  # fmt: skip
        acc, words = cuda.local.array(SUMS, int32), cuda.local.array(4, int32)
        i, work = int32(0), quotient(int32(cuda.blockIdx.x), CLUSTER)
        while work < tiles * images:
            image, row0, col0, mine, other = locate(work, m, n, options, tiles)
            image = int32(image + first)
            work = int32(work + quotient(int32(cuda.gridDim.x), CLUSTER))
            go, own = verdict(flags, image, mine, other, t % 32)
            if go:
                i = multiply_tile(i, depth_of(image, stages), acc, shared, t)
                if own and image == DIGITS:
                    u = opaque(t)
                    check(flags, mine, acc, words, facts_a, facts_b, row0, col0, m, n, k, rows_a, rows_b, u)
                elif own:
                    write(residues, image * int64(slots) + mine, acc, words, image, opaque(t))

    return consume


def _accuser(config: GemmInt8):
    """``flag_all(flags, slots, t)``: flags of all tiles, by all blocks."""
    int32, COUNT, THREADS = ptx.types.int32, config.flags_of_tile, config.threads

    @device_function
    def flag_all(flags, slots, t):
        i = int32(cuda.blockIdx.x * THREADS + t)
        while i < slots * COUNT:
            flags[i] = int32(1)
            i = int32(i + cuda.gridDim.x * THREADS)

    return flag_all


def _build(config: GemmInt8):
    int32, CLUSTER, WORKERS = ptx.types.int32, config.cluster, 128 * config.warpgroups
    hopeless, flag_all, DIGITS = convict(), _accuser(config), config.images
    make_barriers, produce, consume = barrier_maker(config), _producer(config), _consumer(config)
    align, shared_pointer, shared_address = ptx.align_shared(1024), ptx.shared_pointer, ptx.shared_address
    cluster_sync, grid_dependency_wait = ptx.cluster_sync, ptx.grid_dependency_wait
    fewer = ptx.set_max_registers(config.FEW_REGISTERS, False)
    more = ptx.set_max_registers(config.MANY_REGISTERS, True)

    def gemm_int8(
        a, b, facts_a, facts_b, flags, residues, verdicts, m, n, k, options, tiles, first, images, slots,
        begin_a, begin_b, rows_a, rows_b, stages, judges,
    ):  # fmt: skip
        # (1) the mbarriers
        t, depth = int32(cuda.threadIdx.x), int32((k + (STAGE_K - 1)) // STAGE_K)
        shared = shared_address(align(shared_pointer(cuda.shared.array(0, int32, alignment=16))))
        make_barriers(shared, t)
        grid_dependency_wait()
        if hopeless(verdicts, judges, int32(t % 32)):
            if first == DIGITS:
                flag_all(flags, slots, t)
            images = int32(0)

        # (2) a warp loads the stages of all tiles
        if t >= WORKERS:
            fewer()
            if t < WORKERS + 32:
                places = begin_a, begin_b, rows_a, rows_b, stages
                produce(a, b, flags, m, n, options, tiles, first, images, depth, places, shared, t)

        # (3) the others multiply them
        else:
            more()
            consume(
                facts_a, facts_b, flags, residues, m, n, k, options, tiles, first, images, slots, rows_a,
                rows_b, depth, shared, t,
            )  # fmt: skip
        if CLUSTER > 1:
            cluster_sync()  # no block ends that another one still reaches into

    return gemm_int8
