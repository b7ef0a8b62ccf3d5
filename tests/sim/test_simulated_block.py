"""Blocks are strict: divergence, races, limits and memory never written are caught by name."""

from __future__ import annotations

import gc
import time
from contextlib import nullcontext

import numpy as np
import pytest
from simulated import THREADS, device, host, once, run
from threads import at_once

from pyblasgpu.gpu.simulator import intrinsics as sim

cuda, real = sim.cuda, sim.types.float32


# --- threads and blocks ----------------------------------------------------------------------------------


def test_threads_and_blocks_cover_the_grid_in_another_order_each_seed():
    def kernel(order):
        assert cuda.gridDim.y == 2 and cuda.blockDim.x == THREADS
        order.append((cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z, cuda.threadIdx.x))

    orders = []
    for seed in (0, 0, 1):
        sim.reseed(seed)
        orders.append([])
        run(kernel, orders[-1], grid=(2, 2, 2))
    assert sorted(orders[0]) == list(np.ndindex(2, 2, 2, THREADS))
    assert orders[0] == orders[1] != orders[2]
    blocks, threads = orders[0][::THREADS], [t for *_, t in orders[0][:THREADS]]
    assert [block[:3] for block in blocks] != list(np.ndindex(2, 2, 2))
    assert threads != sorted(threads)


@pytest.mark.parametrize(
    "threads, grid", [(1025, (1, 1, 1)), (0, (1, 1, 1)), (1, (1, 65536, 1)), (1, (0, 1, 1))]
)
def test_launch_limits(threads, grid):
    with pytest.raises(sim.SimulatorError, match=r"threads a block|grid"):
        run(lambda: None, threads=threads, grid=grid)


def test_blocks_lie_along_x():
    with pytest.raises(sim.SimulatorError, match="threads a block"):
        sim.launch(lambda: None, (1, 1, 1), (16, 2, 1), 0, ())


def test_an_error_names_thread_and_block():
    def kernel():
        if cuda.threadIdx.x == 3 and cuda.blockIdx.x == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        run(kernel, grid=(2, 1, 1))
    assert caught.value.__notes__ == ["in thread 3 of block (1, 0, 0)"]


def test_launches_of_several_host_threads_do_not_meet():
    def kernel(out, scale):
        shared = cuda.shared.array(0, real)
        t = cuda.threadIdx.x
        shared[t] = real(t) * scale
        cuda.syncthreads()
        out[t] = shared[THREADS - 1 - t]

    def body(scale):
        address, pointer = device(np.zeros(THREADS))
        for _ in range(20):
            run(kernel, pointer, real(scale), shared=4 * THREADS)
        return host(address, THREADS)

    for scale, result in enumerate(at_once(body, [(1,), (2,), (3,)]), 1):
        assert np.array_equal(result, scale * np.arange(THREADS)[::-1])


# --- barriers --------------------------------------------------------------------------------------------


def test_barrier_that_some_threads_skip_raises():
    def kernel():
        if cuda.threadIdx.x < 5:
            cuda.syncthreads()

    with pytest.raises(sim.SimulatorError, match=r"divergence .* 5 of 32 threads wait at test_sim\w+\.py:\d"):
        run(kernel)


def test_barriers_on_two_lines_raise():
    def kernel():
        if cuda.threadIdx.x < 5:
            cuda.syncthreads()
        else:
            cuda.syncthreads()

    with pytest.raises(sim.SimulatorError, match="divergence"):
        run(kernel)


def test_votes_belong_to_one_barrier():
    def kernel(seen):
        t = cuda.threadIdx.x
        for bar in range(4):
            seen.append((bar, cuda.syncthreads_and(t >= bar), cuda.syncthreads_or(t < bar)))

    seen = []
    run(kernel, seen)
    assert set(seen) == {(0, True, False), (1, False, True), (2, False, True), (3, False, True)}


# --- shared and local memory -----------------------------------------------------------------------------


def _reverse(barrier: bool):
    def kernel(out):
        shared = sim.shared_pointer(cuda.shared.array(THREADS, real, alignment=16))
        t = cuda.threadIdx.x
        shared[t] = real(t)
        if barrier:
            cuda.syncthreads()
        out[t] = shared[THREADS - 1 - t]

    return kernel


def test_data_cross_a_barrier():
    address, out = device(np.zeros(THREADS))
    run(_reverse(True), out)
    assert np.array_equal(host(address, THREADS), np.arange(THREADS)[::-1])


def test_missing_barrier_is_a_race():
    _, out = device(np.zeros(THREADS))
    with pytest.raises(sim.SimulatorError, match="race in shared memory"):
        run(_reverse(False), out)


@pytest.mark.parametrize("second", ["read", "write"])
def test_race_of_an_access_with_the_write_of_the_previous_round(second):
    def kernel():
        shared = cuda.shared.array(4, real)
        t = cuda.threadIdx.x
        if t == 0:
            shared[2] = real(1)
        cuda.syncthreads()
        if t == 1:
            shared[2] = real(2)
        if t == 0 and second == "read":
            assert shared[2] > 0
        if t == 0 and second == "write":
            shared[2] = real(2)

    with pytest.raises(sim.SimulatorError, match=r"thread 1 writes element 2|thread 0 writes element 2"):
        run(kernel)


def test_race_of_threads_in_device_memory():
    def kernel(source, out, barrier):
        t = cuda.threadIdx.x
        out[t] = source[t]
        if barrier:
            cuda.syncthreads()
        out[THREADS + t] = out[t ^ 1]

    _, source = device(np.ones(THREADS))
    _, out = device(np.zeros(2 * THREADS))
    run(kernel, source, out, True)
    with pytest.raises(sim.SimulatorError, match="race in device memory: thread"):
        run(kernel, source, out, False)


def test_blocks_that_share_what_one_writes_race_in_any_order():
    def kernel(source, out, step):
        block = cuda.blockIdx.x
        out[block] = source[block + step]

    _, memory = device(np.zeros(8))
    for step in (0, 4):
        run(kernel, memory, memory, step, threads=1, grid=(4, 1, 1))
    with pytest.raises(sim.SimulatorError, match="race in device memory: block 1 writes element 1"):
        run(kernel, memory, memory, 1, threads=1, grid=(4, 1, 1))


def _pass_on_in_a_warp(syncs: bool, distance: int):
    def kernel():
        t, shared = sim.cuda.threadIdx.x, sim.cuda.shared.array(64, sim.types.float32)
        shared[t] = np.float32(t)
        if syncs:
            sim.sync_warp()
        _ = shared[(t + distance) % 64]

    return kernel


def test_a_warp_that_is_synchronised_reads_what_its_lanes_wrote():
    def kernel():
        t, shared = sim.cuda.threadIdx.x, sim.cuda.shared.array(64, sim.types.float32)
        shared[t] = np.float32(t)
        sim.sync_warp()
        assert shared[t ^ 1] == t ^ 1
        sim.sync_warp()
        shared[t ^ 1] = np.float32(0)

    run(kernel, threads=64)


@pytest.mark.parametrize("syncs, distance, actor", [(False, 1, "thread"), (True, 32, "warp")])
def test_without_it_or_between_warps_that_is_a_race(syncs, distance, actor):
    with pytest.raises(sim.SimulatorError, match=f"race in shared memory: {actor}"):
        run(_pass_on_in_a_warp(syncs, distance), threads=64)


def test_a_warp_of_which_not_all_synchronise_is_an_error():
    def kernel():
        if sim.cuda.threadIdx.x < 16:
            sim.sync_warp()

    with pytest.raises(sim.SimulatorError, match=r"warp divergence .* 16 of 32 lanes"):
        run(kernel)


def test_many_readers_and_a_thread_with_itself_are_no_race():
    def kernel():
        shared = cuda.shared.array(THREADS + 1, real)
        t = cuda.threadIdx.x
        shared[t] = real(1)
        shared[t] += real(1)
        if t == 0:
            shared[THREADS] = real(3)
        cuda.syncthreads()
        assert shared[THREADS] == 3 and shared[t] == 2

    run(kernel)


@pytest.mark.parametrize("dynamic", [True, False])
def test_shared_memory_is_nan_for_every_block(dynamic):
    def kernel():
        shared = cuda.shared.array(0 if dynamic else THREADS, real)
        t = cuda.threadIdx.x
        assert np.isnan(shared[t])
        cuda.syncthreads()
        shared[t] = real(1)

    run(kernel, grid=(3, 1, 1), shared=4 * THREADS)


def test_two_static_arrays_of_one_line_are_two():
    def make(count):
        return lambda: cuda.shared.array(count, real)

    def kernel():
        a, b, c = (allocate() for allocate in makers)
        a[0], b[0], c[0] = real(1), real(2), real(3)
        assert (a[0], b[0], c[0]) == (1, 2, 3)
        with pytest.raises(IndexError):
            a[4]

    makers = [make(4), make(8), make(8)]
    run(kernel, threads=1)


def test_shared_memory_limit_counts_both_kinds():
    def kernel():
        cuda.shared.array(256, real)

    run(kernel, shared=1024, shared_limit=2048)
    with pytest.raises(sim.SimulatorError, match="2052 bytes of shared memory a block, of 2048"):
        run(kernel, shared=1028, shared_limit=2048)
    with pytest.raises(sim.SimulatorError, match="shared memory"):
        run(lambda: None, shared=227 * 1024 + 4)


def test_local_memory_is_a_threads_own_and_nan():
    def kernel():
        local = cuda.local.array(2, real)
        assert np.isnan(local[0]) and np.isnan(local[1])
        local[1] = real(cuda.threadIdx.x)
        cuda.syncthreads()
        assert local[1] == cuda.threadIdx.x

    run(kernel)


# --- speed -----------------------------------------------------------------------------------------------


def test_many_barriers_are_cheap():
    """Numba's own simulator takes over a minute for this; the limit leaves room for a busy machine."""

    def kernel():
        for _ in range(100):
            cuda.syncthreads()

    start = time.perf_counter()
    run(kernel, threads=256)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("error", [None, ValueError])
def test_the_collector_of_cycles_is_as_before_a_launch(enabled, error):
    def kernel():
        assert not gc.isenabled()
        if error:
            raise error

    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with nullcontext() if error is None else pytest.raises(error):
            once(kernel)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
