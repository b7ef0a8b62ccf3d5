"""Memory of NumPy results: taken again when they are gone, page-locked then, within a limit."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest
from fake_cards_install import holds_nothing
from threads import at_once

import pyblasgpu
from pyblasgpu.frontend.backend_status import preferred_backend
from pyblasgpu.frontend.calls import call
from pyblasgpu.gpu import kept_results, locked_arrays
from pyblasgpu.gpu.kept_results import KeptResults

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("small_tiles")

CALLS = {
    "gemm": lambda a, b: pyblasgpu.gemm(a, b),
    "trsm": lambda a, b: pyblasgpu.trsm(np.eye(len(a)) + a * 0, b, lower=True),
    "dtrmm": lambda a, b: pyblasgpu.blas.dtrmm(2, a, b),
    "syrk": lambda a, b: pyblasgpu.syrk(a),
    "dpotrf": lambda a, b: pyblasgpu.lapack.dpotrf(square_of(a), lower=1)[0],
}


def square_of(a: np.ndarray) -> np.ndarray:
    """A matrix whose Cholesky factor has integers."""
    factor = np.tril(a, -1) + 16 * np.eye(len(a))
    return factor @ factor.T


@pytest.fixture
def driver(fake_cards, monkeypatch):
    """A driver whose results are all kept."""
    monkeypatch.setattr(call, "KEPT_FROM", 1)
    return fake_cards(seed=1)


def operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return tuple(np.asarray(rng.integers(-4, 5, (40, 40)), np.float64, order="F") for _ in "ab")


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("name", CALLS)
def test_the_second_use_is_page_locked(driver, name):
    """In a loop two arrays take turns; each has the right values, and views keep their memory."""
    a, b = operands()
    with preferred_backend("cpu"):
        expected, addresses = CALLS[name](a, b), []
    with pyblasgpu.use_devices([0, 1]):
        view = CALLS[name](a, b)[3:, ::2]
        for _ in range(5):
            x = CALLS[name](a, b)
            np.testing.assert_array_equal(x, expected)
            addresses.append(address(x))
    assert addresses[0] == addresses[2] == addresses[4] != addresses[1] == addresses[3]
    assert driver.calls["cuMemHostRegister"] == 2
    assert not driver.pageable or name == "dpotrf"  # its infos are few bytes
    np.testing.assert_array_equal(view, expected[3:, ::2])
    del x
    assert kept_results.kept_results().held and holds_nothing(driver)
    assert driver.calls["cuMemHostUnregister"] == 2


def test_pages_that_cannot_be_locked(driver):
    a, b = operands()
    driver.failing["cuMemHostRegister"] = range(9), driver.real.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    for _ in range(4):
        np.testing.assert_array_equal(pyblasgpu.gemm(a, b, devices=[0, 1]), a @ b)
    assert driver.calls["cuMemHostRegister"] == 1 and not driver.pageable
    assert holds_nothing(driver) and not driver.calls["cuMemHostUnregister"]


@pytest.mark.parametrize("backend", ["cpu", None])
def test_nothing_is_kept_without_a_card_or_of_small_results(fake_cards, backend):
    fake_cards()
    a, b = operands()
    devices = None if backend else [0, 1]
    np.testing.assert_array_equal(pyblasgpu.gemm(a, b, backend=backend, devices=devices), a @ b)
    assert not kept_results.kept_results().held


def test_limits():
    """What arrays use again counts, the oldest goes first, and sizes fit but for an eighth."""
    kept = KeptResults(8 * MIB)
    sizes = [5 * MIB, 2 * MIB, 4 * MIB]
    arrays = [kept.empty((size,), "uint8") for size in sizes]
    while arrays:
        del arrays[0]
    assert kept.held == 6 * MIB
    kept.empty((9 * MIB,), "uint8")
    assert kept.held == 6 * MIB
    array = kept.empty((MIB,), "float64")
    assert array.shape == (MIB,) and kept.held == 6 * MIB
    del array
    assert kept.held == 8 * MIB
    small = kept.empty((10,), "float64")
    kept.release()
    del small
    assert kept.held == 4096 and KeptResults(0).empty((MIB,), "int32").size == MIB
    again = kept.empty((4096,), "uint8")
    assert kept.held == 0
    kept.empty((8 * MIB,), "uint8")
    assert kept.held == 0, "with what is used again it would be too much"
    assert again.flags.writeable and again.ctypes.data % 4096 == 0


def test_threads_and_the_collector():
    """No two arrays share memory, and an array that goes while a thread is at it waits."""
    kept = KeptResults(64 * MIB)

    def work(number: int) -> None:
        for step in range(50):
            array = kept.empty((300 + step % 3, 1000), "float64")
            array[...] = number
            threading.Event().wait(1e-4)
            assert (array == number).all()

    at_once(work, [*zip(range(4))])
    array = kept.empty((1000,), "float64")
    with kept.lock:
        held = kept.held
        del array
        assert kept.held == held + 8192
    again = kept.empty((1000,), "float64")
    assert again.size == 1000 and kept.held == held, "it is the one that waited"


# -------------------------------------------------------------------------------------- the caller's arrays


@pytest.fixture
def used(driver, monkeypatch):
    """A driver, where the pages of small arrays are locked, too."""
    monkeypatch.setattr(locked_arrays, "LEAST", 1)
    return driver


def product(a, b, **options):
    np.testing.assert_array_equal(pyblasgpu.gemm(a, b, devices=[0, 1], **options), a @ b)


def test_arrays_are_locked_at_their_second_use(used):
    """Views of one array count for it, and its pages are unlocked before it is freed."""
    memory, b = np.zeros((40, 60), order="F"), operands()[1]
    memory[:, 10:50] = operands()[0]
    out = np.empty((40, 40), order="F")
    product(memory[:, 10:50], b, out=out)
    assert not used.calls["cuMemHostRegister"]
    product(memory[:, 10:50], b, out=out)
    assert used.calls["cuMemHostRegister"] == 3
    staged = used.calls["cuMemHostAlloc"]
    product(memory[:, 10:50].T[::1].T, b, out=out)
    assert used.calls["cuMemHostRegister"] == 3 and used.calls["cuMemHostAlloc"] == staged
    gone = weakref.ref(memory)
    del memory
    assert gone() is None and used.calls["cuMemHostUnregister"] == 1
    again = np.array(b)  # perhaps at the same place
    product(again, b)
    pyblasgpu.release_memory()
    assert used.calls["cuMemHostUnregister"] == 3
    before = used.calls["cuMemHostRegister"]
    product(again, b)
    assert used.calls["cuMemHostRegister"] == before, "its use is the first one again"


@pytest.mark.parametrize("owner", ["another library", "a file", "a small part"])
def test_arrays_that_are_never_locked(used, tmp_path, owner):
    a, b = operands()
    if owner == "another library":
        held = bytearray(a.tobytes())
        a = np.frombuffer(held).reshape(40, 40)
    elif owner == "a file":
        mapped = np.memmap(tmp_path / "a", np.float64, "w+", shape=a.shape)
        mapped[...] = a
        a = mapped
    else:
        a = np.zeros((200, 40))[:40]
    for _ in range(3):
        pyblasgpu.trmm(a, b, out=b, devices=[0, 1])
    assert used.calls["cuMemHostRegister"] == 1  # b


def test_an_array_that_is_resized_or_refused(used):
    a, b = np.ones((40, 40)), operands()[1]
    for _ in range(2):
        product(a, b)
    locked = used.calls["cuMemHostRegister"]
    with pytest.raises(ValueError, match="cannot resize"):
        a.resize((30, 40), refcheck=False)  # NumPy would move locked memory
    pyblasgpu.release_memory()
    a.resize((30, 40), refcheck=False)
    used.failing["cuMemHostRegister"] = range(locked, 99), used.real.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    for _ in range(3):
        product(a, b)
    assert used.calls["cuMemHostRegister"] > locked and not used.pageable
    a.resize((20, 40), refcheck=False)


def test_arrays_are_locked_within_the_limit(used, monkeypatch):
    monkeypatch.setenv("PYBLASGPU_HOST_MEMORY", str(40 * 40 * 8))
    kept_results.kept_results.cache_clear()
    (a, b), out = operands(), np.empty((40, 40))
    for _ in range(3):
        product(a, b, out=out)
    assert used.calls["cuMemHostRegister"] == 1


@pytest.mark.parametrize("text", ["-1", "1e9", "", "many"])
def test_the_limit_of_the_environment(driver, monkeypatch, text):
    monkeypatch.setenv("PYBLASGPU_HOST_MEMORY", text)
    a, b = operands()
    with pytest.raises(ValueError, match=r"PYBLASGPU_HOST_MEMORY=.* is no number of bytes"):
        pyblasgpu.gemm(a, b)
    monkeypatch.setenv("PYBLASGPU_HOST_MEMORY", "0")
    np.testing.assert_array_equal(pyblasgpu.gemm(a, b, devices=[0, 1]), a @ b)
    assert not kept_results.kept_results().held
