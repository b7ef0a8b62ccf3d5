"""Memory is strict: bounds, alignment and the life of allocations."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from simulated import device, once, run

from pyblasgpu.gpu.simulator import intrinsics as sim

cuda, real = sim.cuda, sim.types.float32


# --- pointers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [-1, 4, 100])
def test_index_out_of_bounds(index):
    _, memory = device(np.zeros(4))
    far = sim.offset(memory, index)
    for access in (
        lambda: memory[index],
        lambda: far[0],
        lambda: sim.store_global(memory, index, real(1), True),
    ):
        with pytest.raises(IndexError, match=r"index -?\d+ is out of bounds"):
            access()
    assert sim.offset(far, 2 - index)[0] == 0  # a pointer may stand anywhere, and come back


def test_vector_that_ends_outside():
    def kernel():
        _, memory = device(np.zeros(6))
        sim.load_global(4, False)(cuda.local.array(4, real), 0, memory, 4, True)

    with pytest.raises(IndexError, match="index 4"):
        once(kernel)


VECTORS = {
    "load_shared": lambda local, shared, memory, at: sim.load_shared(2)(local, 0, shared, at),
    "load_shared of several": lambda local, shared, memory, at: sim.load_shared(2, 2, 4)(
        local, 0, shared, at
    ),
    "store_shared": lambda local, shared, memory, at: sim.store_shared(2)(shared, at, local, 0),
    "load_global": lambda local, shared, memory, at: sim.load_global(2, True)(local, 0, memory, at, True),
    "store_global_vector": lambda local, shared, memory, at: sim.store_global_vector(2)(
        memory, at, local, 0, True
    ),
    "copy_async from": lambda local, shared, memory, at: sim.copy_async(8)(shared, 0, memory, at, 8),
    "copy_async to": lambda local, shared, memory, at: sim.copy_async(8)(shared, at, memory, 0, 8),
}


@pytest.mark.parametrize("access", VECTORS.values(), ids=VECTORS)
def test_vectors_are_aligned(access):
    def kernel(at):
        local = cuda.local.array(8, real)
        sim.fill(8)(local, real(0))
        shared = sim.shared_pointer(cuda.shared.array(0, real, alignment=16))
        access(local, shared, memory, at)

    _, memory = device(np.zeros(8))
    run(kernel, 2, threads=1, shared=64)
    with pytest.raises(sim.SimulatorError, match="misaligned: index 1"):
        run(kernel, 1, threads=1, shared=64)


def test_several_vectors_apart_from_each_other():
    """They are read where they are, within the array, and no other thread writes there meanwhile."""

    def kernel(at, writer, found):
        t, local = cuda.threadIdx.x, cuda.local.array(6, real)
        shared = sim.shared_pointer(cuda.shared.array(0, real, alignment=16))
        if t == 0:
            for i in range(16):
                shared[i] = real(i)
        cuda.syncthreads()
        sim.load_shared(2, 3, 4)(local, 0, shared, at)
        found[:] = [local[i] for i in range(6)]
        if t == writer:
            shared[7] = real(1)

    found = [0] * 6
    run(kernel, 2, -1, found, threads=2, shared=64)
    assert found == [2, 3, 6, 7, 10, 11]
    with pytest.raises(IndexError, match="index 16 is out of bounds"):
        run(kernel, 8, -1, found, threads=1, shared=64)
    run(kernel, 4, 1, found, threads=2, shared=64)
    with pytest.raises(sim.SimulatorError, match="race in shared memory: thread 1 writes element 7"):
        run(kernel, 2, 1, found, threads=2, shared=64)


def test_shared_arrays_are_aligned_as_asked_and_no_better():
    def kernel():
        sim.load_shared(4)(cuda.local.array(4, real), 0, cuda.shared.array(0, real), 0)

    with pytest.raises(sim.SimulatorError, match="misaligned"):
        once(kernel)


def test_alignment_is_that_of_the_address():
    base = np.zeros(64, np.float32)
    first = base[(-base.ctypes.data // 4) % 4 :]  # its address is a multiple of 16
    local = sim.Pointer(np.zeros(4, np.float32), 0)
    load = sim.load_global(4, False)
    load(local, 0, sim.resolve(sim.adopt(first), "float32"), 0, True)
    shifted = sim.resolve(sim.adopt(first[1:]), "float32")
    load(local, 0, shifted, 3, True)
    with pytest.raises(sim.SimulatorError, match="misaligned"):
        load(local, 0, shifted, 0, True)


def test_a_double_is_not_stored_as_a_single():
    _, memory = device(np.zeros(1))
    with pytest.raises(TypeError, match="float64 is written where float32"):
        sim.store_global(memory, 0, np.float64(1), True)


# --- device memory ---------------------------------------------------------------------------------------


def test_allocations_are_aligned_and_nan_and_end():
    address = sim.allocate(20)
    pointer = sim.resolve(address + 8, "float32")
    assert address % 256 == 0
    assert np.isnan([pointer[i] for i in range(-2, 3)]).all()
    for outside in (-3, 3):
        with pytest.raises(IndexError):
            pointer[outside]
    with pytest.raises(IndexError):
        sim.view(address + 8, 13)
    sim.view(address, 4).view(np.float32)[0] = 5
    assert pointer[-2] == 5
    sim.release(address)
    for use in (lambda: sim.resolve(address, "float32"), lambda: sim.view(address, 4)):
        with pytest.raises(IndexError, match="no allocation"):
            use()
    with pytest.raises(KeyError):
        sim.release(address)


def test_addresses_of_nothing():
    end = sim.allocate(8) + 8
    with pytest.raises(IndexError):
        sim.resolve(end, "float32")[0]  # the end may be formed, not read
    for address in (0, end + 1):
        with pytest.raises(IndexError, match="no allocation"):
            sim.resolve(address, "float32")
    with pytest.raises(IndexError):
        sim.resolve(sim.allocate(0), "float64")[0]


def test_an_address_between_two_reals():
    with pytest.raises(sim.SimulatorError, match="misaligned"):
        sim.resolve(sim.allocate(16) + 4, "float64")


def test_adopted_arrays_reach_their_base_and_no_further():
    base = np.arange(24, dtype=np.float64).reshape(4, 6)
    pointer = sim.resolve(sim.adopt(base[1:3, 2::2].T), "float64")
    assert [pointer[i] for i in (0, -8, 15)] == [8, 0, 23]
    sim.store_global(pointer, 0, np.float64(-1), True)
    assert base[1, 2] == -1
    with pytest.raises(IndexError):
        pointer[16]


def test_adopted_memory_may_start_between_two_reals():
    base = np.zeros(28, np.uint8)
    values = base[4:].view(np.float64) if base.ctypes.data % 8 else base[:24].view(np.float64)
    odd = np.frombuffer(memoryview(base)[4:], np.uint8)
    inside = odd.ctypes.data + -odd.ctypes.data % 8
    pointer = sim.resolve(sim.adopt(odd) + inside - odd.ctypes.data, "float64")
    values[:] = 1, 2, 3
    assert pointer[0] == values[(inside - values.ctypes.data) // 8]


def test_adopted_read_only_arrays_stay_so():
    base = np.zeros(4)
    base.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        sim.store_global(sim.resolve(sim.adopt(base), "float64"), 0, np.float64(1), True)


def test_adoption_ends_with_the_array():
    address = sim.adopt(np.zeros(1000))
    gc.collect()
    with pytest.raises(IndexError, match="no allocation"):
        sim.resolve(address, "float64")
