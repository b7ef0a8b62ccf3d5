"""Bulk copies, mbarriers and wgmma in the simulator: what they do, and what a GPU leaves undefined."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from simulated import device, host, run

from pyblasgpu.gpu.simulator import intrinsics as sim
from pyblasgpu.gpu.simulator.warpgroup_mma import truncated_sum

cuda, real = sim.cuda, sim.types.float32

N = 16
ROWS_B = 64 * 128  # where B lies
BARRIER = ROWS_B + N * 128
BYTES = BARRIER


def image(rows: np.ndarray) -> np.ndarray:
    """Rows of 64 FP16, swizzled, as words."""
    chunks = rows.astype(np.float16).reshape(len(rows), 8, 8)
    at = np.arange(len(rows))[:, None]
    return np.ascontiguousarray(chunks[at, np.arange(8) ^ at % 8]).view(np.float32).ravel()


def kernel(
    waits=True,
    fence=True,
    commit=True,
    results=True,
    init_fence=True,
    barrier=True,
    again=False,
    arrivals=1,
    nbytes=BYTES,
    at=0,
    other=0,
    askew=0,
):
    """A product of four instructions, with a step left out or done otherwise."""
    align, start, go_on = sim.align_shared(1024), sim.warpgroup_mma(N, True), sim.warpgroup_mma(N, False)
    take = sim.warpgroup_results(N // 2)

    def multiply(operands, c):
        t = cuda.threadIdx.x
        memory = align(sim.shared_pointer(cuda.shared.array(0, real, alignment=16)))
        shared, acc = sim.shared_address(memory), cuda.local.array(N // 2, real)
        if t == 0:
            sim.mbarrier_init(shared + BARRIER, 1)
            if init_fence:
                sim.mbarrier_init_fence()
        if barrier:
            cuda.syncthreads()
        if t == 0:
            for _ in range(arrivals):
                sim.mbarrier_expect(shared + BARRIER, nbytes)
            sim.bulk_copy(shared + at, operands, 0, BYTES, shared + BARRIER)
        if waits:
            sim.mbarrier_wait(shared + BARRIER, 0)
        if fence:
            sim.warpgroup_fence()
        start(acc, shared + askew, shared + ROWS_B + (other if t >= 64 else 0))
        for step in range(1, 4):
            go_on(acc, shared + 32 * step, shared + ROWS_B + 32 * step)
        assert np.isnan(acc[0])
        if commit:
            sim.warpgroup_commit()
        if again and t == 0:
            sim.mbarrier_expect(shared + BARRIER, 1024)
            sim.bulk_copy(shared + 1024, operands, 0, 1024, shared + BARRIER)
        if results:
            take(acc)
            row, col = t // 32 * 16 + t % 32 // 4, t % 4 * 2
            for i in range(N // 2):
                c[(row + i % 4 // 2 * 8) * N + i // 4 * 8 + col + i % 2] = acc[i]

    return multiply


def launched(**changes) -> tuple[np.ndarray, np.ndarray]:
    """The product of small integers, and what it should be."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(-9, 10, (64, 64)), rng.integers(-9, 10, (N, 64))
    _, operands = device(np.zeros(BYTES // 4))
    operands.array[:] = np.concatenate([image(a), image(b)])
    address, c = device(np.full(64 * N, np.nan))
    run(kernel(**changes), operands, c, threads=128, shared=BYTES + 16 + 1024)
    return host(address, 64 * N).reshape(64, N), a @ b.T


def test_a_product_by_a_warpgroup():
    for seed in range(3):
        sim.reseed(seed)
        np.testing.assert_array_equal(*launched())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"waits": False}, "not known to be over"),
        ({"fence": False}, "without warpgroup_fence"),
        ({"commit": False}, "not closed"),
        ({"results": False}, "while products are under way"),
        ({"init_fence": False}, "without mbarrier_init_fence"),
        ({"barrier": False}, "does not know yet|no mbarrier was made"),
        ({"again": True}, "may still read"),
        ({"arrivals": 2}, "more than 1 arrivals"),
        ({"nbytes": BYTES + 16}, "deadlock"),
        ({"nbytes": BYTES - 16}, "deadlock"),
        ({"at": 8}, "misaligned"),
        ({"at": 1024}, "outside|of shared memory|no multiple"),
        ({"other": 1024}, "different addresses"),
        ({"askew": 16}, "misaligned"),
    ],
)
def test_what_a_gpu_leaves_undefined_is_caught(changes, message):
    with pytest.raises((sim.SimulatorError, IndexError), match=message):
        launched(**changes)


@pytest.mark.parametrize(("lane_waits", "raises"), [(True, False), (False, True)])
def test_a_stage_is_overwritten_once_all_lanes_have_read_it(lane_waits, raises):
    """Lanes read what a copy has brought; one tells the copier, after the others or not."""

    def relay(source, target):
        t = cuda.threadIdx.x
        memory = sim.shared_pointer(cuda.shared.array(0, real, alignment=16))
        full = sim.shared_address(memory) + 128
        if t == 0:
            sim.mbarrier_init(full, 1)
            sim.mbarrier_init(full + 8, 1)
            sim.mbarrier_init_fence()
        cuda.syncthreads()
        for turn in range(2):
            if t == 32:
                sim.mbarrier_wait(full + 8, turn ^ 1)
                sim.mbarrier_expect(full, 128)
                sim.bulk_copy(full - 128, source, turn * 32, 128, full)
            if t < 32:
                sim.mbarrier_wait(full, turn)
                target[turn * 32 + t] = memory[t]
                if lane_waits:
                    sim.sync_warp()
                if t == 0:
                    sim.mbarrier_arrive(full + 8)

    _, source = device(np.arange(64))
    address, target = device(np.zeros(64))
    with pytest.raises(sim.SimulatorError, match="may still read") if raises else nullcontext():
        for seed in range(5):
            sim.reseed(seed)
            run(relay, source, target, threads=64, shared=256)
    if not raises:
        np.testing.assert_array_equal(host(address, 64), np.arange(64))


def of_clusters(meets=True, waits=True, everyone=3):
    """Two blocks bring a half each, to both of them."""

    def kernel(source, target):
        t, rank = cuda.threadIdx.x, sim.cluster_rank()
        memory = sim.shared_pointer(cuda.shared.array(0, real, alignment=16))
        start = sim.shared_address(memory)
        if t == 0:
            sim.mbarrier_init(start + 256, 1)
            sim.mbarrier_init_fence()
        if meets:
            sim.cluster_sync()
        else:
            cuda.syncthreads()
        if t == 0:
            sim.mbarrier_expect(start + 256, 256)
            half = start + rank * 128
            sim.bulk_copy_multicast(half, source, rank * 32, 128, start + 256, everyone)
        if waits:
            sim.mbarrier_wait(start + 256, 0)
            target[cuda.blockIdx.x * 64 + t] = memory[t]
            target[cuda.blockIdx.x * 64 + t + 32] = memory[t + 32]
            sim.cluster_sync()

    return kernel


def launched_as_clusters(**changes) -> np.ndarray:
    _, source = device(np.arange(64))
    address, target = device(np.zeros(256))
    run(of_clusters(**changes), source, target, threads=32, shared=280, grid=(4, 1, 1), cluster=2)
    return host(address, 256)


def test_blocks_of_a_cluster_copy_for_one_another():
    for seed in range(5):
        sim.reseed(seed)
        np.testing.assert_array_equal(launched_as_clusters(), np.tile(np.arange(64), 4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"meets": False}, "no cluster_sync|no mbarrier was made|no block of rank|has ended"),
        ({"waits": False}, "has ended|under way|still reaches"),
        ({"everyone": 1}, "deadlock"),
        ({"everyone": 7}, "no block of rank 2"),
    ],
)
def test_what_clusters_must_not_do_is_caught(changes, message):
    with pytest.raises(sim.SimulatorError, match=message):
        launched_as_clusters(**changes)


def of_senders(nbytes=8, offset=0, meets=True):
    """Each block tells all others a real and a number."""

    def kernel(target):
        t, rank, size = cuda.threadIdx.x, sim.cluster_rank(), cuda.gridDim.x
        memory = sim.shared_pointer(cuda.shared.array(0, real, alignment=16))
        words = sim.shared_pointer(cuda.shared.array(0, sim.types.int32, alignment=16))
        start = sim.shared_address(memory)
        if t == 0:
            sim.mbarrier_init(start + 128, 1)
            sim.mbarrier_init_fence()
        if meets:
            sim.cluster_sync()
        if t == 0:
            sim.mbarrier_expect(start + 128, size * nbytes)
        if t < size:
            there = start + rank * 16 + offset
            sim.store_async(there, real(rank + 0.5), start + 128, t)
            sim.store_async(there + 8, 7 * rank, start + 128, t)
        sim.mbarrier_wait(start + 128, 0)
        if t < size:
            target[cuda.blockIdx.x * size + t] = memory[4 * t] + real(words[4 * t + 2])

    return kernel


def test_blocks_of_a_cluster_send_numbers():
    for seed in range(5):
        sim.reseed(seed)
        address, target = device(np.zeros(16))
        run(of_senders(), target, threads=32, shared=144, grid=(4, 1, 1), cluster=4)
        np.testing.assert_array_equal(host(address, 16), np.tile(np.arange(4) * 8 + 0.5, 4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nbytes": 9}, "deadlock"),
        ({"offset": 2}, "misaligned"),
        ({"meets": False}, "no cluster_sync|no mbarrier was made|no block of rank|does not know|nobody"),
    ],
)
def test_what_senders_must_not_do_is_caught(changes, message):
    _, target = device(np.zeros(16))
    with pytest.raises(sim.SimulatorError, match=message):
        for seed in range(5):
            sim.reseed(seed)
            run(of_senders(**changes), target, threads=32, shared=144, grid=(4, 1, 1), cluster=4)


def test_a_grid_is_of_whole_clusters():
    with pytest.raises(sim.SimulatorError, match="whole clusters of 2"):
        run(of_clusters(), threads=32, grid=(3, 1, 1), cluster=2)


def test_sums_are_cut_to_24_bits():
    """The tensor core does so: what is 2^-24 of the largest addend is lost, and no sum is rounded up."""
    before = np.array([[1, 1, -1]], np.float32)
    left = np.zeros((1, 16))
    left[0, :2] = 1
    right = np.zeros((3, 16))
    right[:, :2] = [[2.0**-24, 2.0**-24], [2.0**-23, 0], [2.0**-25, 2.0**-24]]
    expected = [[1, 1 + 2.0**-23, -1]]
    np.testing.assert_array_equal(truncated_sum(before, left, right), np.array(expected, np.float32))


@pytest.mark.parametrize("value", [0.1, 65519.0, 65520.0, 2.0**-25, 2.0**-24, -3.0])
def test_halves(value):
    x = np.float32(value)
    with np.errstate(over="ignore"):
        pair = sim.half_pair(x, -x)
        halves = [np.float16(x), np.float16(-x)]
    assert [sim.lower_half(pair), sim.upper_half(pair)] == halves
    assert np.asarray(pair).reshape(1).view(np.float16).tolist() == halves


def test_exponents():
    values = [1, 1.99, 2, -0.5, 0, 2.0**-130, np.inf, np.nan]
    assert [sim.exponent(np.float32(x)) for x in values] == [0, 0, 1, -1, -127, -127, 128, 128]
    assert sim.power_of_two(-126) == np.float32(2.0**-126)
    with pytest.raises(sim.SimulatorError):
        sim.power_of_two(-127)
