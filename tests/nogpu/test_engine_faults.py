"""What goes wrong on the way, Ctrl-C, cancelling: nothing is under way afterwards, what is final is told."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import weakref
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from fake_cards_install import holds_nothing
from threads import at_once
from tiled_runs import KINDS, problem

import pyblasgpu
from pyblasgpu.engine import executor, host_traffic, workers
from pyblasgpu.engine.run import Controls
from pyblasgpu.errors import CallCancelled, TileReport
from pyblasgpu.frontend.handle import Handle
from pyblasgpu.terminal import ProgressBar
from pyblasgpu.testing.leaves_on_host import enqueue_on


def assert_told(p, error: BaseException, driver) -> TileReport:
    """What the error says is final holds the result, what is untouched what was there; nothing is held."""
    report, output, before = error.tiles, p.arrays[p.output], p.before
    assert str(report) in error.__notes__
    rest = np.ones(output.shape, bool)
    for region in report.final:
        np.testing.assert_array_equal(output[region], p.expected[region])
        rest[region] = False
    for region in report.partial:
        rest[region] = False
    np.testing.assert_array_equal(output[rest], before[rest])
    assert holds_nothing(driver)
    return report


def failing_at(driver, number, error):
    """Leaves of which one is not enqueued, but raises."""
    enqueue, numbers = enqueue_on(driver), count()

    def run(leaf, operands, stream):
        if next(numbers) == number:
            raise error
        enqueue(leaf, operands, stream)

    return run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [0, 7, 20])
@pytest.mark.parametrize("locked", ["", "abc"])
def test_a_leaf_that_fails(fake_cards, kind, number, locked):
    p, driver = problem(kind, size=2), fake_cards(seed=number)
    p.before = p.arrays[p.output].copy()
    with pytest.raises(KeyboardInterrupt) as caught:
        enqueue = failing_at(driver, number, KeyboardInterrupt())
        p.run(driver, (0, 1), slots=5, locked=locked, enqueue=enqueue)
    report = assert_told(p, caught.value, driver)
    assert report.routine == p.tasks.routine and len(report.final) < report.total
    # and the next call is like any other
    again = problem(kind, size=2)
    again.run(driver, (0, 1))
    again.check()


@pytest.mark.parametrize(
    "name",
    [
        *("cuMemAllocFromPoolAsync", "cuMemHostAlloc", "cuEventCreate", "cuEventSynchronize"),
        *("cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"),
    ],
)
@pytest.mark.parametrize("number", range(0, 12, 3))
@pytest.mark.parametrize("piece", [1 << 20, 100])
def test_each_function_of_the_driver_fails_once(fake_cards, monkeypatch, name, number, piece):
    monkeypatch.setattr(host_traffic, "PIECE", piece)
    p, driver = problem("trsm", size=2), fake_cards(seed=number)
    p.before = p.arrays[p.output].copy()
    status = driver.real.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    driver.failing[name] = [number], status
    try:
        p.run(driver, (0, 1, 2), slots=5)
    except MemoryError as error:
        assert name in str(error)
        if hasattr(error, "tiles"):
            assert_told(p, error, driver)
        else:
            np.testing.assert_array_equal(p.arrays[p.output], p.before)
    else:
        p.check()
    driver.failing.clear()
    assert holds_nothing(driver)
    again = problem("trsm", size=2)
    again.run(driver, (0, 1, 2))
    again.check()


def test_a_thread_that_does_not_start(monkeypatch):
    begun = workers.Workers(2, "test")
    first = begun.submit(lambda: None)
    ran = []
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="no thread"):
        patch.setattr(workers.Thread, "start", failing_start)
        begun.submit(ran.append, 1)
    begun.submit(ran.append, 2)
    begun.close()
    assert first.done() and ran == [2]


def failing_start(thread):
    raise RuntimeError("no thread")


def test_a_call_whose_threads_do_not_start(fake_cards, monkeypatch):
    p, driver, start, numbers = problem("gemm", size=2), fake_cards(), workers.Thread.start, count()
    p.before = p.arrays["c"].copy()

    def fails_later(thread):
        if next(numbers) == 1:
            failing_start(thread)
        start(thread)

    monkeypatch.setattr(host_traffic, "PIECE", 100)
    monkeypatch.setattr(workers.Thread, "start", fails_later)
    with pytest.raises(RuntimeError, match="no thread") as caught:
        p.run(driver)
    assert_told(p, caught.value, driver)


def test_a_card_without_memory(fake_cards):
    driver = fake_cards(nbytes=1000)
    p = problem("gemm", size=2)
    before = p.arrays["c"].copy()
    with pytest.raises(MemoryError, match="cuMemAllocFromPoolAsync"):
        p.run(driver, (0, 1))
    np.testing.assert_array_equal(p.arrays["c"], before)
    assert holds_nothing(driver)


def test_cancelling(fake_cards, monkeypatch):
    monkeypatch.setattr(executor, "IN_FLIGHT", 2)
    p, driver, polls = problem("gemm", size=2), fake_cards(), count()
    p.before = p.arrays["c"].copy()
    counts = []
    controls = Controls(lambda: next(polls) > 30, lambda done, total: counts.append((done, total)))
    with pytest.raises(CallCancelled, match="gemm: cancelled") as caught:
        p.run(driver, (0,), controls=controls)
    report = assert_told(p, caught.value, driver)
    assert report.final and len(report.final) < report.total
    assert "tiles of the output" in str(report) and "attribute `tiles`" in str(report)
    assert counts == sorted(counts) and counts[-1][0] > 20


def operands():
    rng = np.random.default_rng(1)
    return rng.normal(size=(40, 40)), rng.normal(size=(40, 40))


def test_a_call_that_does_not_block(fake_cards, small_tiles):
    fake_cards()
    a, b = operands()
    counts = []
    handle = pyblasgpu.gemm(
        a, b, devices=[0, 1], blocking=False, progress=lambda done, total: counts.append((done, total))
    )
    assert isinstance(handle, Handle)
    np.testing.assert_allclose(handle.wait(60), a @ b, rtol=1e-12)
    assert handle.done() and handle.progress == counts[-1] == (125, 125)
    assert not handle.cancel() and repr(handle) == "<gemm: ended>"
    assert handle.wait() is handle.wait()


def test_a_call_that_is_cancelled(fake_cards, small_tiles):
    fake_cards()
    a, b = operands()
    begun, go = threading.Event(), threading.Event()

    def hold(done, total):
        begun.set()
        go.wait(60)

    out = np.full_like(a, np.nan)
    handle = pyblasgpu.gemm(a, b, out=out, devices=[0], max_device_memory=8192, blocking=False, progress=hold)
    assert begun.wait(60) and not handle.done() and "of 125 tasks done" in repr(handle)
    with pytest.raises(TimeoutError, match="gemm has not ended"):
        handle.wait(0.01)
    assert handle.cancel()
    go.set()
    with pytest.raises(CallCancelled) as caught:
        handle.wait(60)
    final = np.zeros(out.shape, bool)
    for region in caught.value.tiles.final:
        final[region] = True
    np.testing.assert_array_equal(np.isfinite(out), final)


def test_a_call_that_is_cancelled_before_it_begins(monkeypatch):
    class Late(threading.Thread):
        def start(self):
            begin = self._args[0]
            begin.__self__.cancel()
            super().start()

    monkeypatch.setattr(threading, "Thread", Late)
    begun = []
    handle = Handle("gemm", lambda is_cancelled, report: begun.append(1))
    with pytest.raises(CallCancelled, match="gemm: cancelled before it began; nothing was w") as caught:
        handle.wait(60)
    assert not begun and handle.done()
    assert caught.value.tiles == TileReport("gemm", (), (), 0)


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_that_has_ended_keeps_none_of_its_arrays(fails):
    array = np.ones(3)
    held = weakref.ref(array)

    def work(is_cancelled, report, array=array):
        assert not fails, "as it must"
        return array.sum()

    handle = Handle("gemm", work)
    del array, work
    with pytest.raises(AssertionError, match="as it must") if fails else nullcontext():
        assert handle.wait(60) == 3
    if fails:
        handle._error.__traceback__ = None  # which holds frames, and they the array
    assert held() is None


def test_on_the_processor_too(small_tiles):
    a, b = operands()
    handle = pyblasgpu.gemm(a, b, blocking=False, backend="cpu")
    np.testing.assert_allclose(handle.wait(60), a @ b, rtol=1e-12)
    with pytest.raises(ValueError, match="gemm: op"):
        pyblasgpu.gemm(a, b[:3], blocking=False, backend="cpu")


def test_an_error_of_a_call_that_does_not_block(fake_cards, small_tiles):
    driver = fake_cards()
    driver.failing["cuMemHostAlloc"] = [0], driver.real.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    a, b = operands()
    handle = pyblasgpu.gemm(a, b, devices=[0, 1], blocking=False)
    with pytest.raises(MemoryError, match="cuMemHostAlloc"):
        handle.wait(60)


def test_a_bar_on_a_terminal(fake_cards, small_tiles, capsys, monkeypatch):
    fake_cards()
    a, b = operands()
    pyblasgpu.gemm(a, b, devices=[0, 1], progress=True)
    assert "gemm" in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("pyblasgpu.frontend.handle.LATE", 600)
    pyblasgpu.gemm(a, b, devices=[0, 1])
    assert not capsys.readouterr().err  # it is over before
    monkeypatch.setattr("pyblasgpu.frontend.handle.LATE", 0)
    pyblasgpu.gemm(a, b, devices=[0, 1], progress=False)
    assert not capsys.readouterr().err
    bars, enter = [], ProgressBar.__enter__
    monkeypatch.setattr(ProgressBar, "__enter__", lambda bar: bars.append(bar) or enter(bar))
    pyblasgpu.gemm(a, b, devices=[0, 1])
    assert "gemm" in capsys.readouterr().err and len(bars) == 1


@pytest.mark.parametrize("routine", ["potrf", "getrf"])
def test_a_bar_of_a_factor_on_a_terminal(fake_cards, small_tiles, capsys, monkeypatch, routine):
    fake_cards()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("pyblasgpu.frontend.handle.LATE", 0)
    with pyblasgpu.use_devices([0, 1]):
        getattr(pyblasgpu.lapack, routine)(np.eye(40))
    assert routine in capsys.readouterr().err


@pytest.mark.parametrize("stderr", [None, io.StringIO()])
def test_no_terminal(fake_cards, small_tiles, monkeypatch, stderr):
    """A daemon has none, and what was closed cannot be asked."""
    fake_cards()
    if stderr is not None:
        stderr.close()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr("pyblasgpu.frontend.handle.LATE", 0)
    a, b = operands()
    np.testing.assert_allclose(pyblasgpu.gemm(a, b, devices=[0, 1]), a @ b)


def test_progress_that_calls_by_tiles(fake_cards, small_tiles):
    fake_cards()
    a, b = operands()
    with pytest.raises(RuntimeError, match="progress callback"):
        pyblasgpu.gemm(a, b, devices=[0, 1], progress=lambda *_: pyblasgpu.gemm(a, b, devices=[1, 2]))
    np.testing.assert_allclose(pyblasgpu.gemm(a, b, devices=[0, 1]), a @ b)


def test_many_threads_on_two_cards(fake_cards, small_tiles):
    """Results have the same bits, however calls meet."""
    driver = fake_cards(seed=4)
    a, b = (array[:24, :24] for array in operands())
    expected = pyblasgpu.gemm(a, b, devices=[0, 1])

    def call(number):
        devices = ([0, 1], [1, 0], [0], [1])[number % 4]
        actual = pyblasgpu.gemm(a, b, devices=devices, max_device_memory=1 << 13)
        return (actual == expected).all()

    assert all(at_once(call, [*zip(range(16))])) and holds_nothing(driver)


PROGRAM = """
import sys, threading
sys.path[:0] = {paths}
import numpy as np
import fake_cards_install
import pyblasgpu
from pyblasgpu.engine import tile_size
from pyblasgpu.testing.fake_cards import FakeDriver

class Patch:
    setattr = staticmethod(setattr)

fake_cards_install.install(Patch, FakeDriver(devices=2))
for name in ("UNIT", "SMALLEST", "WANTED", "LARGEST"):
    setattr(tile_size, name, 8)
main = threading.main_thread()

def progress(done, total):
    main.join(0.02)  # the process ends meanwhile
    if done == total:
        print(done, total, main.is_alive())

pyblasgpu.gemm(np.ones((40, 40)), np.ones((40, 40)), devices=[0, 1], blocking=False, progress=progress)
"""


def test_a_process_that_ends_waits_for_its_calls():
    paths = [str(Path(__file__).parents[number]) for number in (1, 2)]
    run = [sys.executable, "-c", PROGRAM.format(paths=paths)]
    ended = subprocess.run(run, capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout.split() == ["125", "125", "False"] and not ended.stderr
