"""Stages in the shared memory of ``gemm_int8``: who fills them, multiplies them, and waits."""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ..warpgroups import ROW, releaser
from .config import GemmInt8

__all__ = ["barrier_maker", "stage_loader", "tile_multiplier"]

STEP = 32  # bytes, and k, of an instruction


def barrier_maker(config: GemmInt8):
    """``make(shared, t)``: the mbarriers, of a stage that is full, that is empty."""
    int32, STAGES, BARRIERS = ptx.types.int32, config.stages, config.barriers
    ARRIVALS, CLUSTER, cluster_sync = 4 * config.warpgroups * config.cluster, config.cluster, ptx.cluster_sync
    init, init_fence = ptx.mbarrier_init, ptx.mbarrier_init_fence

    @device_function
    def make(shared, t):
        if t == 0:
            for stage in range(STAGES):
                init(int32(shared + BARRIERS + stage * 16), int32(1))
                init(int32(shared + BARRIERS + stage * 16 + 8), int32(ARRIVALS))
            init_fence()
        if CLUSTER > 1:
            cluster_sync()
        else:
            cuda.syncthreads()

    return make


def stage_loader(config: GemmInt8):
    """``load_stages(i, a, b, rows_b, shared)``: the stages of A and of a part of B, a copy of A, some of B.

    `i` counts all stages of this block of threads.
    """
    int32, STAGES, quotient = ptx.types.int32, config.stages, ptx.quotient
    SIZE, BARRIERS, BYTES_A, BYTES = config.stage_bytes, config.barriers, config.bytes_a, config.stage_bytes
    CLUSTER, COPY_COLUMNS, COPIES = config.cluster, config.copy_columns, config.columns // config.copy_columns
    wait, expect, copy, rank_of = ptx.mbarrier_wait, ptx.mbarrier_expect, ptx.bulk_copy, ptx.cluster_rank
    multicast, EVERYONE, PART = ptx.bulk_copy_multicast, 2**config.cluster - 1, config.columns * ROW

    @device_function
    def load_columns(copy_columns, target, b, at, between, full):
        to = int32(target + copy_columns * (COPY_COLUMNS * ROW))
        source = at + copy_columns * between
        if CLUSTER > 1:
            multicast(to, b, source, int32(COPY_COLUMNS * ROW), full, int32(EVERYONE))
        else:
            copy(to, b, source, int32(COPY_COLUMNS * ROW), full)

    load_all = unrolled(COPIES, load_columns)

    @device_function
    def load_stages(i, a, at_a, b, at_b, between, shared):
        turn = quotient(i, STAGES)
        stage = int32(i - turn * STAGES)
        target, full = int32(shared + stage * SIZE), int32(shared + BARRIERS + stage * 16)
        wait(int32(full + 8), int32(turn % 2 ^ 1))
        expect(full, int32(BYTES))
        copy(target, a, at_a, int32(BYTES_A), full)
        part = int32(rank_of() * PART) if CLUSTER > 1 else int32(0)
        load_all(0, int32(target + BYTES_A + part), b, at_b, between, full)

    return load_stages


def tile_multiplier(config: GemmInt8):
    """``multiply_tile(i, stages, acc, shared, t)``: all stages of a tile; the sums are in `acc` after it. `i`
    counts all stages of this block of threads.
    """
    int32, STAGES, N, quotient = ptx.types.int32, config.stages, config.BLK_N, ptx.quotient
    SIZE, BARRIERS, BYTES_A = config.stage_bytes, config.barriers, config.bytes_a
    wait, fence, commit = ptx.mbarrier_wait, ptx.warpgroup_fence, ptx.warpgroup_commit
    start, go_on = ptx.warpgroup_mma(N, True, True), ptx.warpgroup_mma(N, False, True)
    wait_for_last, release, results = (
        ptx.warpgroup_wait(1),
        releaser(config),
        ptx.warpgroup_results(config.sums),
    )

    @device_function
    def go_on_from(step, acc, a, b):
        go_on(acc, int32(a + step * STEP), int32(b + step * STEP))

    later_steps, all_steps = unrolled(ROW // STEP - 1, go_on_from), unrolled(ROW // STEP, go_on_from)

    @device_function
    def stage_of(i):
        turn = quotient(i, STAGES)
        return int32(i - turn * STAGES), turn

    @device_function
    def multiply_tile(i, stages, acc, shared, t):
        lane, rows = t % 32, int32(t // 128 * 64 * ROW)
        last = int32(i + stages)
        stage, turn = stage_of(i)
        wait(int32(shared + BARRIERS + stage * 16), int32(turn % 2))
        a, b = int32(shared + stage * SIZE + rows), int32(shared + stage * SIZE + BYTES_A)
        fence()
        start(acc, a, b)
        later_steps(1, acc, a, b)
        commit()
        i = int32(i + 1)
        while i < last:
            before = stage
            stage, turn = stage_of(i)
            wait(int32(shared + BARRIERS + stage * 16), int32(turn % 2))
            a, b = int32(shared + stage * SIZE + rows), int32(shared + stage * SIZE + BYTES_A)
            fence()
            all_steps(0, acc, a, b)
            commit()
            wait_for_last()
            release(before, shared, lane)
            i = int32(i + 1)
        results(acc)
        release(stage, shared, lane)
        return i

    return multiply_tile
