"""Host matrices streamed through a part of a card's memory: results, memory of every kind, faults."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from engine_on_device import CALLS, every, factor_error, fresh, matrices, pinned_like
from threads import at_once

import pyblasgpu
from pyblasgpu import lapack
from pyblasgpu.engine import tile_size, triangles, whole_arrays
from pyblasgpu.errors import CallCancelled
from pyblasgpu.frontend.calls import staging
from pyblasgpu.gpu import locked_arrays
from pyblasgpu.gpu.context import current_context
from pyblasgpu.gpu.page_locked import is_page_locked
from pyblasgpu.types import DTYPES

from .running import cupy

MIB = 1 << 20
#: Bytes that tiles may take: a few of order 256.
LITTLE = 6 * MIB
pytestmark = pytest.mark.usefixtures("small_tiles")


@pytest.mark.parametrize("name, letter", every("sdz"))
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("pinned", [False, True])
def test_results(name, letter, order, pinned):
    x = matrices(letter, 1111, 777, order)
    operands = fresh(x)
    if pinned:
        operands = type(x)(*(pinned_like(cupy, each) for each in operands))
    result = CALLS[name].run(operands, max_device_memory=LITTLE)
    assert CALLS[name].error(x, result) <= 1


@pytest.mark.parametrize("letter", "sz")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("lower", [False, True])
def test_the_other_triangle_of_page_locked_memory(monkeypatch, letter, order, lower):
    """It is not read, and stays; what is overwritten is not read either. A tile has six strips."""
    monkeypatch.setattr(triangles, "STRIP", 48)
    x = matrices(letter, 1111, 777, order)
    x = type(x)(*(pinned_like(cupy, each) for each in x))
    needed = np.tri(1111, dtype=bool) if lower else np.tri(1111, dtype=bool).T
    tolerance = 1e4 * np.finfo(x.a.dtype).eps
    x.c[needed] = np.nan
    expected = np.where(needed, x.a @ x.a.conj().T, x.c)
    pyblasgpu.herk(x.a, lower=lower, out=x.c, max_device_memory=LITTLE)
    np.testing.assert_allclose(x.c, expected, atol=777 * tolerance)
    full = np.where(needed, x.t, 0)
    x.t[~needed] = np.nan
    for name, result in (("trmm", full @ x.a), ("trsm", np.linalg.solve(full, x.a))):
        actual = getattr(pyblasgpu, name)(x.t, x.a, lower=lower, max_device_memory=LITTLE)
        np.testing.assert_allclose(actual, result, atol=tolerance)


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("lower", [0, 1])
def test_a_factor(decide_by, letter, lower):
    decide_by(streamed_factor_min_bytes=dict.fromkeys(("potrf", "potrs", "getrf"), 1))
    dtype, n = DTYPES[letter], 1111
    g = matrices(letter, n, n, "F").a
    a = np.asfortranarray(g @ g.conj().T + n * np.eye(n, dtype=dtype.name))
    factor, info = lapack.potrf(a, lower)
    assert info == 0
    assert factor_error(a, factor if lower else factor.conj().T, dtype) <= 4
    assert not np.tril(factor, -1).any() if not lower else not np.triu(factor, 1).any()
    a[700, 700] = -1
    assert lapack.potrf(a, lower)[1] == 701


@pytest.mark.parametrize("letter", "dc")
@pytest.mark.parametrize("lower", [0, 1])
def test_solutions_from_a_factor(letter, lower):
    n = 1111
    x = matrices(letter, n, 777, "F")
    a = np.asfortranarray(x.c @ x.c.conj().T + n * np.eye(n, dtype=x.c.dtype))
    with pyblasgpu.use_devices(max_device_memory=LITTLE):
        factor, solution, info = lapack.posv(a, x.a, lower)
    assert info == 0
    assert factor_error(a, factor if lower else factor.conj().T, DTYPES[letter]) <= 4
    residual = abs(a @ solution - x.a).max() / (abs(a).max() * abs(solution).max() * n)
    assert residual <= 4 * n * DTYPES[letter].unit_roundoff


@pytest.mark.parametrize("letter", "sdz")
@pytest.mark.parametrize("shape", [(1111, 1111), (2000, 777), (777, 2000)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_lu_factors(letter, shape, order):
    dtype, (m, n) = DTYPES[letter], shape
    a = matrices(letter, m, n, order).a
    with pyblasgpu.use_devices(max_device_memory=3 * shape[0] * 128 * dtype.itemsize):
        factors, piv, info = lapack.getrf(a)
    assert info == 0
    k = min(shape)
    lower, upper = np.tril(factors[:, :k], -1) + np.eye(shape[0], k), np.triu(factors[:k])
    product = lower @ upper
    for i in range(k)[::-1]:
        product[[i, piv[i]]] = product[[piv[i], i]]
    bound = k * dtype.unit_roundoff * abs(lower).max() * abs(upper).max() * k
    assert abs(product - a).max() <= bound and abs(lower).max() <= np.sqrt(2)


@pytest.mark.parametrize("memory", ["pageable", "pinned"])
def test_the_same_bits_each_time(memory):
    """With so little memory that tiles are evicted all the time: a missing dependency would show."""
    x = matrices("d", 2048, 2048, "F")
    if memory == "pinned":
        x = type(x)(*(pinned_like(cupy, each) for each in x))
    first = {name: call.run(fresh(x), max_device_memory=LITTLE).copy() for name, call in CALLS.items()}
    for _ in range(5):
        for name, call in CALLS.items():
            np.testing.assert_array_equal(call.run(fresh(x), max_device_memory=LITTLE), first[name])


def test_odd_strides_mapped_files_and_read_only_arrays(tmp_path):
    rng = np.random.default_rng(1)
    mapped = np.memmap(tmp_path / "a", np.float64, "w+", shape=(900, 1100))
    mapped[...] = rng.integers(-4, 5, mapped.shape)
    mapped.flush()
    a = np.memmap(tmp_path / "a", np.float64, "r", shape=(900, 1100))
    b = rng.integers(-4, 5, (2200, 1600)).astype(float)[::-2, ::2]
    b.flags.writeable = False
    out = np.full((900, 1600), np.nan)[:, ::-2]
    assert pyblasgpu.gemm(a, b, out=out, max_device_memory=LITTLE) is out
    np.testing.assert_array_equal(out, np.asarray(a) @ b)


def test_larger_than_the_default_pool_of_tiles(monkeypatch):
    """Large tiles too, and a limit that holds few of them."""
    monkeypatch.setattr(tile_size, "LARGEST", 2048)
    rng = np.random.default_rng(2)
    a, b = (np.asfortranarray(rng.integers(-2, 3, (5000, 5000)).astype(np.float32)) for _ in range(2))
    actual = pyblasgpu.gemm(a, b, max_device_memory=100 * MIB)
    np.testing.assert_array_equal(actual, a @ b)


class Stop(Exception):
    """Raised by a progress function."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop])
def test_interrupted(error):
    x = matrices("d", 2048, 2048, "C")
    out = np.full((2048, 2048), np.nan)

    def progress(done, total):
        if done > 100:
            raise error

    with pytest.raises(error) as caught:
        pyblasgpu.gemm(x.a, x.b, out=out, max_device_memory=LITTLE, progress=progress)
    report = caught.value.tiles
    whole = pyblasgpu.gemm(x.a, x.b, max_device_memory=LITTLE)
    rest = np.ones(out.shape, bool)
    for region in report.final:
        np.testing.assert_array_equal(out[region], whole[region])
        rest[region] = False
    assert 0 < len(report.final) < report.total == 64
    for region in report.partial:
        rest[region] = False
    assert np.isnan(out[rest]).all()


def test_without_blocking():
    x = matrices("d", 2048, 2048, "C")
    whole = pyblasgpu.gemm(x.a, x.b, max_device_memory=LITTLE)
    handle = pyblasgpu.gemm(x.a, x.b, max_device_memory=LITTLE, blocking=False)
    np.testing.assert_array_equal(handle.wait(60), whole)
    begun, cancelled = threading.Event(), threading.Event()

    def progress(done, total):
        begun.set()
        cancelled.wait(60)  # else a busy host may cancel what is done already

    handle = pyblasgpu.gemm(x.a, x.b, max_device_memory=LITTLE, blocking=False, progress=progress)
    begun.wait(60)
    handle.cancel()
    cancelled.set()
    with pytest.raises(CallCancelled):
        handle.wait(60)


def test_threads():
    x = matrices("s", 1024, 1024, "F")
    expected = pyblasgpu.gemm(x.a, x.b, max_device_memory=LITTLE)

    def call():
        actual = pyblasgpu.gemm(x.a, x.b, max_device_memory=LITTLE)
        return (actual == expected).all()

    assert all(at_once(call, [()] * 16))


def test_too_little_memory_is_told_first():
    x = matrices("d", 1000, 1000, "F")
    out = np.full((1000, 1000), np.nan)
    with pytest.raises(ValueError, match="bytes of device memory are too few"):
        pyblasgpu.gemm(x.a, x.b, out=out, max_device_memory=MIB)
    assert np.isnan(out).all()


@pytest.mark.parametrize("options", [{}, {"max_device_memory": LITTLE}], ids=["whole", "tiles"])
@pytest.mark.parametrize("name", ["gemm", "trsm", "potrf"])
def test_results_are_page_locked_from_the_second_use_on(name, options):
    """Arrays take turns in a loop; views keep their memory, and what is released is locked no longer."""
    x = matrices("d", 1111, 777, "F")
    spd = x.a @ x.a.T + 1111 * np.eye(1111)
    runs = {
        "gemm": lambda: pyblasgpu.gemm(x.a, x.a, trans_b="T", **options),
        "trsm": lambda: pyblasgpu.trsm(np.tril(spd), x.a, lower=True, **options),
        "potrf": lambda: lapack.dpotrf(spd, lower=1)[0],
    }
    expected, locked, spans = runs[name]().copy(), [], []
    view = runs[name]()[::2]
    for _ in range(5):
        result = runs[name]()
        np.testing.assert_array_equal(result, expected)
        spans.append((result.ctypes.data, result.nbytes))
        with current_context(0):
            locked.append(is_page_locked(*spans[-1]))
    assert all(locked[3:])
    np.testing.assert_array_equal(view, expected[::2])
    del result
    pyblasgpu.release_memory()
    with current_context(0):
        assert not any(is_page_locked(*span) for span in spans)


@pytest.mark.parametrize("name", ["gemm", "trsm", "syrk"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_page_locked_from_the_second_use_on(monkeypatch, name, order):
    """Results have the same bits, whatever is locked; changed elements are seen, and memory is freed."""
    monkeypatch.setattr(locked_arrays, "LEAST", 1)
    x = matrices("d", 1111, 777, order)
    locked, results = [], []
    for _ in range(3):
        operands = type(x)(*(each if each is x.a else each.copy("K") for each in x))
        results.append(CALLS[name].run(operands, max_device_memory=LITTLE).copy())
        with current_context(0):
            locked.append(is_page_locked(x.a.ctypes.data, x.a.nbytes))
    assert locked == [False, True, True]
    assert all(np.array_equal(each, results[0]) for each in results)
    x.a.ravel("K")[:] *= 2
    assert CALLS[name].error(x, CALLS[name].run(fresh(x), max_device_memory=LITTLE)) <= 1
    pyblasgpu.release_memory()
    with current_context(0):
        assert not is_page_locked(x.a.ctypes.data, x.a.nbytes)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("piece", [4096, 1 << 20])
def test_whole_arrays_are_copied_by_threads(monkeypatch, order, piece):
    """Factors, solutions and inverses as by the driver's copies, in new arrays and in place."""
    x = matrices("d", 1111, 777, order)
    square = np.asarray(x.a @ x.a.T + 1111 * np.eye(1111), order=order)
    right, before = np.asarray(x.a, order=order), square.copy()

    def results():
        own = square.copy(order="F")
        factors, pivots, info = lapack.dgetrf(own, overwrite_a=1)
        found = pyblasgpu.linalg.solve(square, right), pyblasgpu.linalg.inv(square), factors, pivots, info
        return (*found, *pyblasgpu.linalg.qr(right, mode="economic"))

    expected = results()
    monkeypatch.setattr(staging, "BY_THREADS_FROM", 0)
    monkeypatch.setattr(whole_arrays, "PIECE", piece)
    for actual, wanted in zip(results(), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
    np.testing.assert_array_equal(square, before)
