"""Ring of stages in shared memory, which a producer warp fills by bulk copies and warpgroups multiply.

Each stage has two mbarriers: that it is full, and that it is empty. Stages are counted through all tiles of a
block of threads: stage `i` is number ``i % stages`` of the ring, in its turn ``i // stages``.
"""

from __future__ import annotations

from ...gpu.backend import cuda, device_function, ptx
from .warpgroups import WarpgroupConfig

__all__ = ["barrier_maker", "part_copier", "releaser", "stage_finder", "stage_opener"]


def barrier_maker(config: WarpgroupConfig, initialize_others=None):
    """``make(shared, t)``: the mbarriers, and those of ``initialize_others(shared)``."""
    int32, STAGES, BARRIERS = ptx.types.int32, config.stages, config.barriers
    ARRIVALS, CLUSTER, cluster_sync = 4 * config.warpgroups * config.cluster, config.cluster, ptx.cluster_sync
    init, init_fence, HAS_OTHERS = ptx.mbarrier_init, ptx.mbarrier_init_fence, initialize_others is not None

    @device_function
    def make(shared, t):
        if t == 0:
            for stage in range(STAGES):
                init(int32(shared + BARRIERS + stage * 16), int32(1))
                init(int32(shared + BARRIERS + stage * 16 + 8), int32(ARRIVALS))
            if HAS_OTHERS:
                initialize_others(shared)
            init_fence()
        if CLUSTER > 1:
            cluster_sync()
        else:
            cuda.syncthreads()

    return make


def stage_opener(config: WarpgroupConfig):
    """``open_stage(i, size, shared)``: wait until stage `i` is empty, and expect `size` bytes there.

    Returns where it begins, and its mbarrier.
    """
    int32, STAGES, SIZE, BARRIERS = ptx.types.int32, config.stages, config.stage_bytes, config.barriers
    wait, expect, quotient = ptx.mbarrier_wait, ptx.mbarrier_expect, ptx.quotient

    @device_function
    def open_stage(i, size, shared):
        turn = quotient(i, STAGES)
        stage = int32(i - turn * STAGES)
        target, full = int32(shared + stage * SIZE), int32(shared + BARRIERS + stage * 16)
        wait(int32(full + 8), int32(turn % 2 ^ 1))
        expect(full, int32(size))
        return target, full

    return open_stage


def stage_finder(config: WarpgroupConfig):
    """``stage_of(i)``: number in the ring and turn of stage `i`; ``wait_for(stage, turn, shared)``: wait till
    it is full; ``wait_full(i, shared)``: both, and the number.
    """
    int32, STAGES, BARRIERS = ptx.types.int32, config.stages, config.barriers
    wait, quotient = ptx.mbarrier_wait, ptx.quotient

    @device_function
    def stage_of(i):
        turn = quotient(i, STAGES)
        return int32(i - turn * STAGES), turn

    @device_function
    def wait_for(stage, turn, shared):
        wait(int32(shared + BARRIERS + stage * 16), int32(turn % 2))

    @device_function
    def wait_full(i, shared):
        turn = quotient(i, STAGES)  # written out: calls of the two above order instructions otherwise
        stage = int32(i - turn * STAGES)
        wait(int32(shared + BARRIERS + stage * 16), int32(turn % 2))
        return stage

    return stage_of, wait_for, wait_full


def part_copier(config: WarpgroupConfig):
    """``copy_part(target, source, at, size, full)``: copy `size` bytes to this block, or to its cluster."""
    int32, CLUSTER, EVERYONE = ptx.types.int32, config.cluster, 2**config.cluster - 1
    copy, multicast = ptx.bulk_copy, ptx.bulk_copy_multicast

    @device_function
    def copy_part(target, source, at, size, full):
        if CLUSTER > 1:
            multicast(target, source, at, int32(size), full, int32(EVERYONE))
        else:
            copy(target, source, at, int32(size), full)

    return copy_part


def releaser(config: WarpgroupConfig):
    """``release(stage, shared, lane)``: a warp signals to all blocks of a cluster that a stage is empty."""
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
