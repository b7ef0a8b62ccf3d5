"""Large host arrays that threads copy to a device and back, on a driver that records every access."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from fake_cards_install import holds_nothing

from pyblasgpu import lapack
from pyblasgpu.engine import whole_arrays
from pyblasgpu.frontend.backend_status import preferred_backend
from pyblasgpu.frontend.calls import staging
from pyblasgpu.gpu import memory, page_locked, readback
from pyblasgpu.gpu.context import current_context


@pytest.fixture
def round_trip(fake_cards, monkeypatch):
    """``run(driver, array, out)`` copies an array to a card and back; pieces are small, buffers few."""
    monkeypatch.setattr(whole_arrays, "PIECE", 40)

    def run(driver, array, out):
        with current_context(0):
            stream = driver.add_stream(0)
            address = memory.allocate(array.nbytes, 0, stream)
            try:
                whole_arrays.to_device(address, array.ravel("K"), stream)
                whole_arrays.to_host(out.ravel("K"), address, stream)
            finally:
                memory.release(address, stream)

    return run


@pytest.mark.parametrize("limit", [40, 1 << 20])
@pytest.mark.parametrize("shape", [(1,), (5,), (7, 11), (40, 30)])
def test_copies(fake_cards, monkeypatch, round_trip, shape, limit):
    """Whatever is done when, with one buffer in each direction or many."""
    array, driver = np.arange(np.prod(shape), dtype="d").reshape(shape, order="F"), fake_cards(seed=limit)
    array.flags.writeable = False
    for use in ("up", "down"):
        pool = page_locked.PinnedPool(limit=limit)
        monkeypatch.setitem(page_locked.shared_pools, use, pool)
    out = np.full_like(array, np.nan)
    round_trip(driver, array, out)
    np.testing.assert_array_equal(out, array)
    assert not driver.pageable
    copies = driver.calls["cuMemcpyHtoDAsync"]
    assert copies == driver.calls["cuMemcpyDtoHAsync"] == -(-array.nbytes // 40)
    assert holds_nothing(driver)


def test_page_locked_arrays_are_copied_at_once(fake_cards, round_trip):
    driver = fake_cards()
    array, out = (driver.lock_pages(np.arange(100.0) + x) for x in range(2))
    round_trip(driver, array, out)
    np.testing.assert_array_equal(out, array)
    assert driver.calls["cuMemcpyHtoDAsync"] == driver.calls["cuMemcpyDtoHAsync"] == 1


@pytest.mark.parametrize("number", [0, 7, 24])
@pytest.mark.parametrize(
    "name",
    [
        *("cuMemHostAlloc", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"),
        *("cuEventCreate", "cuEventSynchronize"),
    ],
)
def test_each_function_of_the_driver_fails_once(fake_cards, round_trip, name, number):
    """The array that is read stays, nothing is held, and the next copy is like any other."""
    driver, array = fake_cards(seed=number), np.arange(200.0)
    driver.failing[name] = [number], driver.real.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    out = np.full_like(array, np.nan)
    try:
        round_trip(driver, array, out)
    except MemoryError as error:
        assert name in str(error)
    else:
        np.testing.assert_array_equal(out, array)
    driver.failing.clear()
    np.testing.assert_array_equal(array, np.arange(200.0))
    assert holds_nothing(driver)
    round_trip(driver, array, out)
    np.testing.assert_array_equal(out, array)


def test_memory_of_the_host_that_kernels_write(fake_cards):
    """It is page-locked, of the thread, and stays until the next use; else there is none."""
    driver = fake_cards()
    numbers, address = readback.place_to_write(8, 0)
    assert len(numbers) == 8 and address == numbers.ctypes.data
    looks = driver.calls["cuCtxGetCurrent"]
    assert np.shares_memory(readback.place_to_write(4, 0)[0], numbers)
    assert driver.calls["cuCtxGetCurrent"] == looks  # no context for what is kept
    with current_context(0):
        assert np.shares_memory(readback.room(4), numbers)
    assert readback.place_to_write(readback.MOST + 1, 0) is None
    readback.release()
    driver.failing["cuMemHostAlloc"] = [driver.calls["cuMemHostAlloc"]], driver.real.CUresult(2)
    assert readback.place_to_write(8, 0) is None


def test_large_arrays_of_calls_that_are_whole(fake, monkeypatch):
    """Both ways, and no small ones."""
    copied, (_, there) = [], fake
    for name in ("to_device", "to_host"):

        def copy(*arguments, name=name):
            copied.extend((name, each.nbytes) for each in arguments if isinstance(each, np.ndarray))
            getattr(there, name)(*arguments)

        monkeypatch.setattr(whole_arrays, name, copy)
    monkeypatch.setattr(staging, "BY_THREADS_FROM", 200)
    a = np.eye(6) + 1
    with preferred_backend("cuda"):
        factors, pivots, info = lapack.dgetrf(a)
    expected = scipy.linalg.lapack.dgetrf(a)
    np.testing.assert_allclose(factors, expected[0])
    np.testing.assert_array_equal(pivots, expected[1])
    assert not info and copied == [("to_device", 288), ("to_host", 288)]
