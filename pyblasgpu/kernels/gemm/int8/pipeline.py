"""Stages in the shared memory of ``gemm_int8``: who fills them, multiplies them, and waits."""

from __future__ import annotations

from ....gpu.backend import device_function, ptx, unrolled
from ..stage_ring import part_copier, releaser, stage_finder, stage_opener
from ..warpgroups import ROW
from .config import GemmInt8

__all__ = ["stage_loader", "tile_multiplier"]

STEP = 32  # bytes, and k, of an instruction


def stage_loader(config: GemmInt8):
    """``load_stages(i, a, b, rows_b, shared)``: the stages of A and of a part of B, a copy of A, some of B.

    `i` counts all stages of this block of threads.
    """
    int32, SIZE, BYTES_A, PART = ptx.types.int32, config.stage_bytes, config.bytes_a, config.columns * ROW
    CLUSTER, COPY_COLUMNS, COPIES = config.cluster, config.copy_columns, config.columns // config.copy_columns
    copy, rank_of = ptx.bulk_copy, ptx.cluster_rank
    open_stage, copy_part = stage_opener(config), part_copier(config)

    @device_function
    def load_columns(copy_columns, target, b, at, between, full):
        to = int32(target + copy_columns * (COPY_COLUMNS * ROW))
        copy_part(to, b, at + copy_columns * between, COPY_COLUMNS * ROW, full)

    load_all = unrolled(COPIES, load_columns)

    @device_function
    def load_stages(i, a, at_a, b, at_b, between, shared):
        target, full = open_stage(i, SIZE, shared)
        copy(target, a, at_a, int32(BYTES_A), full)
        part = int32(rank_of() * PART) if CLUSTER > 1 else int32(0)
        load_all(0, int32(target + BYTES_A + part), b, at_b, between, full)

    return load_stages


def tile_multiplier(config: GemmInt8):
    """``multiply_tile(i, stages, acc, shared, t)``: all stages of a tile; the sums are in `acc` after it. `i`
    counts all stages of this block of threads.
    """
    int32, N, SIZE, BYTES_A = ptx.types.int32, config.BLK_N, config.stage_bytes, config.bytes_a
    (stage_of, wait_for, _), fence, commit = stage_finder(config), ptx.warpgroup_fence, ptx.warpgroup_commit
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
    def multiply_tile(i, stages, acc, shared, t):
        lane, rows = t % 32, int32(t // 128 * 64 * ROW)
        last = int32(i + stages)
        stage, turn = stage_of(i)
        wait_for(stage, turn, shared)
        a, b = int32(shared + stage * SIZE + rows), int32(shared + stage * SIZE + BYTES_A)
        fence()
        start(acc, a, b)
        later_steps(1, acc, a, b)
        commit()
        i = int32(i + 1)
        while i < last:
            before = stage
            stage, turn = stage_of(i)
            wait_for(stage, turn, shared)
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
