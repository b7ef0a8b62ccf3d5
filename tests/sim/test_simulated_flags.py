"""Blocks that wait for each other by flags: orders, deadlocks and races are caught by name."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from simulated import device, host, run

from pyblasgpu.gpu.simulator import intrinsics as sim

cuda, real = sim.cuda, sim.types.float32

BLOCKS = 5


def relay(signals=True, waits=True):
    """Each block but the first hands on what the one before has left, and one more."""

    def kernel(values, flags):
        block = cuda.gridDim.x - 1 - cuda.blockIdx.x
        if block > 0 and waits:
            if cuda.threadIdx.x == 0:
                while not sim.try_take_flag(flags, block - 1):
                    pass
            cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            values[block] = values[block - 1] + real(1) if block > 0 else real(1)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0 and signals:
            sim.set_flag_release(flags, block)

    return kernel


def test_blocks_wait_for_flags_whatever_runs_first():
    for seed in range(20):
        sim.reseed(seed)
        (address, values), (_, flags) = device(np.zeros(BLOCKS)), device(np.zeros(BLOCKS))
        run(relay(), values, flags, grid=(BLOCKS, 1, 1))
        np.testing.assert_array_equal(host(address, BLOCKS), range(1, BLOCKS + 1))
        assert flags.array.view(np.int32).tolist() == [0, 0, 0, 0, 1]  # who has received one clears it


def test_flags_that_nobody_sets_are_a_deadlock():
    (_, values), (_, flags) = device(np.zeros(BLOCKS)), device(np.zeros(BLOCKS))
    with pytest.raises(sim.SimulatorError, match="deadlock: 4 blocks wait"):
        run(relay(signals=False), values, flags, grid=(BLOCKS, 1, 1))


def test_what_another_block_has_written_is_a_race_but_for_its_flag():
    (_, values), (_, flags) = device(np.zeros(BLOCKS)), device(np.zeros(BLOCKS))
    with pytest.raises(sim.SimulatorError, match="race in device memory: block"):
        run(relay(waits=False), values, flags, grid=(BLOCKS, 1, 1))


@pytest.mark.parametrize(("reading", "raises"), [(0, False), (1, True)])
def test_a_flag_tells_nothing_of_what_is_written_after_it(reading, raises):
    def kernel(values, flags):
        if cuda.blockIdx.x == 0:
            values[0] = real(1)
            cuda.syncthreads()
            sim.set_flag_release(flags, 0)
            values[1] = real(2)
        else:
            while not sim.try_take_flag(flags, 0):
                pass
            assert values[reading] == reading + 1

    (_, values), (_, flags) = device(np.zeros(2)), device(np.zeros(1))
    with pytest.raises(sim.SimulatorError, match="race") if raises else nullcontext():
        run(kernel, values, flags, threads=1, grid=(2, 1, 1))


@pytest.mark.parametrize(
    ("reads_again", "waits", "raises"), [(False, True, False), (False, False, True), (True, True, True)]
)
def test_what_is_read_before_a_flag_may_be_written_after_it(reads_again, waits, raises):
    def kernel(values, flags):
        if cuda.blockIdx.x == 0:
            assert values[0] == 7
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                sim.store_relaxed(flags, 0, 1)
            if reads_again:
                values[0]
        else:
            while waits and not sim.load_acquire(flags, 0):
                pass
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                values[0] = real(1)

    (_, values), (_, flags) = device(np.full(1, 7.0)), device(np.zeros(1))
    sim.reseed(3)  # an order in which the reader comes first
    with pytest.raises((sim.SimulatorError, AssertionError)) if raises else nullcontext():
        run(kernel, values, flags, threads=2, grid=(2, 1, 1))


def chain(releases=True, waits=True, store=sim.store_release):
    """Blocks numbered as they start: each hands on what the one before has left, and one more."""

    def kernel(values, flags):
        block = sim.atomic_add(flags, 0, 1)
        done = 0
        while waits and done < block:
            done = sim.load_acquire(flags, 1)
        values[block] = values[block - 1] + real(1) if block > 0 else real(1)
        cuda.syncthreads()
        last = block == cuda.gridDim.x - 1
        if last:
            sim.store_release(flags, 0, 0)
        if releases:
            store(flags, 1, 0 if last else block + 1)

    return kernel


def test_numbered_blocks_wait_for_those_before_them_whatever_goes_on_first():
    for seed in range(20):
        sim.reseed(seed)
        (address, values), (_, flags) = device(np.zeros(BLOCKS)), device(np.zeros(2))
        run(chain(), values, flags, threads=1, grid=(BLOCKS, 1, 1))
        np.testing.assert_array_equal(host(address, BLOCKS), range(1, BLOCKS + 1))
        assert flags.array.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"releases": False}, "deadlock: 4 blocks wait"),
        ({"waits": False}, "race in device memory: block"),
        ({"store": sim.store_relaxed}, "race in device memory: block"),
    ],
)
def test_numbers_alone_order_nothing(changes, error):
    (_, values), (_, flags) = device(np.zeros(BLOCKS)), device(np.zeros(2))
    with pytest.raises(sim.SimulatorError, match=error):
        run(chain(**changes), values, flags, threads=1, grid=(BLOCKS, 1, 1))


def test_blocks_with_numbers_really_wait():
    """Not each runs to its end before the next has begun."""
    blocks = []

    def kernel(flags):
        block = sim.atomic_add(flags, 0, 1)
        blocks.append(block)

    orders = set()
    for seed in range(100):
        sim.reseed(seed)
        blocks.clear()
        run(kernel, device(np.zeros(1))[1], threads=1, grid=(3, 1, 1))
        orders.add(tuple(blocks))
    assert len(orders) == 6
