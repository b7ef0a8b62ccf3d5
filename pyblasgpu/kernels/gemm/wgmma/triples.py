"""``gemm_triples``: C := alpha A B + beta C of elements as three BF16 numbers each, where FP16 cannot hold
them.

A product of triples is six of BF16: that of the largest parts in one accumulator, those of five more pairs of
parts in another. What is left out is 2^-26 of it. BF16 has the exponents of float32, so nothing is scaled.

It computes the tiles that `gemm_wgmma` leaves and triples hold. Where there are none it returns at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ..stage_ring import part_copier, releaser, stage_finder, stage_opener
from ..warpgroups import ROW
from .config import GemmWgmma
from .image import unit_rows
from .product import tile_scheduler_loop
from .tiles import is_servable

__all__ = ["PARTS", "STEM", "TRIPLE_STAGE_K", "GemmTriples", "source"]

STEM = "gemm_triples"
PARAMETERS = parameters(
    "pointer: a, b",
    "int32 pointer: pairs_a, pairs_b, triples_a, triples_b, any_flag",
    "pointer: c",
    "int32: m, n, k, options, tiles, flags",
    "int64: step_a, step_b, ldc, stride_c",
    "real: alpha, alpha_i, beta, beta_i",
)
PARTS = 3
TRIPLE_STAGE_K = 64  # k of a stage: 128 bytes of each part of a row
STEP = 32  # bytes: k of an instruction
#: Parts of A and of B whose products the second accumulator sums, the smallest first.
CROSS = (0, 2), (2, 0), (1, 1), (0, 1), (1, 0)


@dataclass(frozen=True)
class GemmTriples(GemmWgmma):
    """Config of one `gemm_triples` kernel: that of a `GemmWgmma`, with stages of `TRIPLE_STAGE_K` k."""

    BLK_K: int = 256
    stages: int = 2

    STEM: ClassVar[str] = STEM
    #: Sums need fewer registers without scales, and flags of two kinds more.
    FEW_REGISTERS: ClassVar[int] = 56
    MANY_REGISTERS: ClassVar[int] = 224

    def __post_init__(self):
        super().__post_init__()
        require(
            self.BLK_K % TRIPLE_STAGE_K == 0,
            "whole_triple_stages",
            f"BLK_K % {TRIPLE_STAGE_K} == 0",
            BLK_K=self.BLK_K,
        )
        require(not self.ordered, "no_turns", "not ordered", ordered=self.ordered)

    @property
    def variants(self) -> Iterator[Self]:
        yield self

    @property
    def stages_per_block(self) -> int:
        return self.BLK_K // TRIPLE_STAGE_K

    @property
    def bytes_a(self) -> int:
        return PARTS * self.BLK_M * ROW

    @property
    def bytes_b(self) -> int:
        return PARTS * self.BLK_N * ROW

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: A and B, part after part."""
        return self.bytes_a + self.bytes_b


def source(config: GemmTriples) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, b: pointer, the images of A and B
    pairs_a, pairs_b: int32 pointer, the flags of pairs
    triples_a, triples_b: int32 pointer, the flags of triples
    any_flag: int32 pointer, the word that says whether any flag of pairs is set
    c: pointer, C
    m, n, k: int32, extents
    options: int32, rasterization
    tiles: int32, tiles of the batch
    flags: int32, flags of pairs of a panel
    step_a, step_b: int64, panels from one matrix of A, B to the next
    ldc, stride_c: int64, leading dimension and batch stride of C (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x as many blocks as the device holds.
    """
    build = partial(_build, config)
    return KernelSource.of(config, PARAMETERS, build, whole_program=True, cluster=config.cluster)


def _producer(config: GemmTriples):
    """``load_stages(i, a, b, ...)``: the stages of a block, a copy for each part of A and of B."""
    int32, PER_BLOCK, quotient, copy = ptx.types.int32, config.stages_per_block, ptx.quotient, ptx.bulk_copy
    BYTES_A, BYTES_B, PLANE = config.BLK_M * ROW, config.BLK_N * ROW, config.PANEL * ROW // 4
    SIZE, OF_A, rank_of = config.stage_bytes, config.bytes_a, ptx.cluster_rank
    CLUSTER, PART = config.cluster, BYTES_B // config.cluster
    open_stage, copy_to_cluster = stage_opener(config), part_copier(config)

    def load_stage(j: int):
        @device_function
        def copy_part(p, a, b, target, full):
            at = int32((PARTS * j + p) * PLANE)
            copy(int32(target + p * BYTES_A), a, at, int32(BYTES_A), full)
            part = int32(rank_of() * PART) if CLUSTER > 1 else int32(0)
            to = int32(target + OF_A + p * BYTES_B)
            copy_to_cluster(int32(to + part), b, int32(at + quotient(part, 4)), PART, full)

        copy_parts = unrolled(PARTS, copy_part)

        @device_function
        def load_stages(i, a, b, scales_a, scales_b, shared):
            target, full = open_stage(int32(i + j), SIZE, shared)
            copy_parts(0, a, b, target, full)

        return load_stages

    return in_order([load_stage(j) for j in range(PER_BLOCK)])


def _multiplier(config: GemmTriples):
    """``multiply(i, high, cross, rows, shared, lane)``: start the products of the stages of a block, and give
    back all stages but the last, as those of pairs.
    """
    int32, STAGES, PER_BLOCK, N = ptx.types.int32, config.stages, config.stages_per_block, config.BLK_N
    SIZE, OF_A, (_, _, wait_full) = config.stage_bytes, config.bytes_a, stage_finder(config)
    PLANE_A, PLANE_B, STEPS = config.BLK_M * ROW, config.BLK_N * ROW, ROW // STEP
    fence, commit, release = ptx.warpgroup_fence, ptx.warpgroup_commit, releaser(config)
    start, go_on, wait_for_last = (
        ptx.warpgroup_mma(N, True, bfloat=True),
        ptx.warpgroup_mma(N, False, bfloat=True),
        ptx.warpgroup_wait(1),
    )

    def product_of(which: int, parts: tuple[int, int], is_first: bool):
        AT_A, AT_B = (part * plane for part, plane in zip(parts, (PLANE_A, PLANE_B), strict=True))
        HIGH, multiply = which == 0, start if is_first else go_on

        @device_function
        def one(high, cross, a, b, step):
            if HIGH:
                multiply(high, int32(a + AT_A + step), int32(b + AT_B + step))
            else:
                multiply(cross, int32(a + AT_A + step), int32(b + AT_B + step))

        return one

    def multiply_stage(j: int):
        FIRST = j == 0

        def step_of(s: int):
            STEP_AT, BEGINS = s * STEP, FIRST and s == 0
            products = [product_of(1, parts, BEGINS and parts == CROSS[0]) for parts in CROSS]
            all_products = in_order([*products, product_of(0, (0, 0), BEGINS)])

            @device_function
            def multiply_step(high, cross, a, b):
                all_products(high, cross, a, b, int32(STEP_AT))

            return multiply_step

        multiply_steps = in_order([step_of(s) for s in range(STEPS)])

        @device_function
        def multiply(i, high, cross, rows, shared, lane):
            stage = wait_full(int32(i + j), shared)
            a = int32(shared + stage * SIZE + rows)
            b = int32(shared + stage * SIZE + OF_A)
            if FIRST:
                fence()
            multiply_steps(high, cross, a, b)
            commit()
            if not FIRST:
                wait_for_last()
                release(int32(stage - 1 if stage > 0 else STAGES - 1), shared, lane)

        return multiply

    return in_order([multiply_stage(j) for j in range(PER_BLOCK)])


def _consumer(config: GemmTriples):
    """``multiply_tile(i, blocks, total, ..., t)``: all blocks of a tile, into `total`."""
    real, int32, quotient, SUMS = ptx.types.float32, ptx.types.int32, ptx.quotient, config.sums
    STAGES, PER_BLOCK = config.stages, config.stages_per_block
    multiply, zero, results = _multiplier(config), ptx.fill(SUMS), ptx.warpgroup_results(SUMS)
    release, sync_warp = releaser(config), ptx.sync_warp

    @device_function
    def promote(e, total, high, cross):
        total[e] += high[e] + cross[e]

    promote_all = unrolled(SUMS, promote)

    @device_function
    def multiply_tile(i, blocks, total, high, cross, columns, memory, shared, t):
        lane, rows = t % 32, int32(t // 128 * 64 * ROW)
        zero(total, real(0))
        for _ in range(blocks):
            multiply(i, high, cross, rows, shared, lane)
            results(cross)
            results(high)
            i = int32(i + PER_BLOCK)
            last = int32(i - 1 - quotient(int32(i - 1), STAGES) * STAGES)
            sync_warp()
            release(last, shared, lane)
            promote_all(0, total, high, cross)
        return i

    return multiply_tile


def _judge(config: GemmTriples):
    """``verdict(judged, firsts, count, lane)``: whether the cluster multiplies its tiles, and whether this
    block's is one that pairs do not serve and triples do; `judged` are the word of all flags, the flags of
    pairs, of triples, those of pairs of a panel, and blocks of k.
    """
    servable, quotient, CLUSTER = is_servable(), ptx.quotient, config.cluster
    UNITS = config.PANEL // unit_rows(config.PANEL, config.BLK_K)

    @device_function
    def is_mine(judged, first_a, first_b, count, lane):
        _, pairs_a, pairs_b, triples_a, triples_b, flags, blocks = judged
        at_a, at_b = quotient(first_a, blocks) * flags, quotient(first_b, blocks) * flags
        by_pairs = servable(pairs_a, at_a, pairs_b, at_b, flags, lane)
        return (not by_pairs) & servable(
            triples_a, first_a * UNITS, triples_b, first_b * UNITS, count * UNITS, lane
        )

    @device_function
    def verdict(judged, firsts, count, lane):
        first_a, other_a, first_b = firsts
        own = is_mine(judged, first_a, first_b, count, lane)
        if CLUSTER > 1:
            return own | is_mine(judged, other_a, first_b, count, lane), own
        return own, own

    return verdict


def _build(config: GemmTriples):
    int32, BLK_K, words = ptx.types.int32, config.BLK_K, config.PANEL * config.BLK_K * PARTS // 2

    @device_function
    def has_tiles(judged):
        return judged[0][0] != 0

    run = tile_scheduler_loop(config, _producer(config), _consumer(config), _judge(config), words, has_tiles)

    def gemm_triples(
        a, b, pairs_a, pairs_b, triples_a, triples_b, any_flag, c, m, n, k, options, tiles, flags, step_a,
        step_b, ldc, stride_c, alpha, alpha_i, beta, beta_i,
    ):  # fmt: skip
        blocks = int32((k + (BLK_K - 1)) // BLK_K)
        judged = any_flag, pairs_a, pairs_b, triples_a, triples_b, flags, blocks
        run(
            a, b, a, b, judged, c, m, n, k, options, tiles, step_a, step_b, ldc, stride_c, alpha, alpha_i,
            beta, beta_i,
        )  # fmt: skip

    return gemm_triples
