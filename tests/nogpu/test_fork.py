"""A process forked after CUDA was initialised: one clear error, and the CPU for host arrays."""

from __future__ import annotations

import os
import pickle
import warnings
from contextlib import suppress

import numpy as np
import pytest
from fake_device import Array

import pyblasgpu
from pyblasgpu import backend_status, plan_gemm
from pyblasgpu.errors import BackendUnavailable
from pyblasgpu.frontend.calls import call as calls
from pyblasgpu.gpu import device, kept_results, locked_arrays, memory

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

TOLD = r"CUDA was initialised before this process was forked.*'spawn'"
ONE = np.eye(8)


@pytest.fixture
def driver(driver, monkeypatch):
    """A driver that, as the real one, refuses everything in a forked process if it was initialised before."""
    monkeypatch.delenv("PYBLASGPU_BACKEND", raising=False)
    start, here, begun = driver.cuInit, os.getpid(), []

    def initialise(flags):
        if os.getpid() != here and begun:
            return (driver.result.CUDA_ERROR_NOT_INITIALIZED,)
        begun.append(True)
        return start(flags)

    monkeypatch.setattr(driver.real, "cuInit", initialise)
    driver.initialise = initialise
    return driver


def forked(work):
    """What ``work()`` returns in a forked process, or raises there."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are other threads, which hold no lock
        child = os.fork()
    if child == 0:
        with suppress(BaseException):
            try:
                outcome = (True, work())
            except Exception as problem:
                outcome = (False, problem)
            os.write(write, pickle.dumps(outcome))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    assert text, "the process ended before it told"
    fine, outcome = pickle.loads(text)  # noqa: S301 - from our own process
    if not fine:
        raise outcome
    return outcome


def used_by_us(driver):
    pyblasgpu.gemm(Array(ONE), Array(ONE))
    assert driver.launches


def used_by_another(driver):
    driver.initialise(0)


BY = pytest.mark.parametrize("begin", [used_by_us, used_by_another, lambda driver: backend_status()])


@BY
def test_host_arrays_run_on_the_cpu(driver, begin):
    begin(driver)

    def work():
        status = backend_status()
        return status, pyblasgpu.gemm(2 * ONE, ONE)

    (backend, reason), result = forked(work)
    assert backend == "cpu" and (result == 2 * ONE).all()
    with pytest.raises(BackendUnavailable, match=TOLD):
        raise BackendUnavailable(reason)
    assert backend_status().backend == "cuda", "the process itself goes on"


@BY
@pytest.mark.parametrize(
    "work",
    [
        lambda: backend_status("cuda"),
        lambda: pyblasgpu.gemm(ONE, ONE, backend="cuda"),
        lambda: pyblasgpu.gemm(Array(ONE), Array(ONE)),
        lambda: pyblasgpu.gemm(Array(ONE), Array(ONE), stream=0x5000),
        lambda: pyblasgpu.trsm(Array(ONE), Array(ONE), out=Array(ONE.copy())),
        lambda: plan_gemm(Array(ONE), Array(ONE), Array(ONE.copy())),
        lambda: pyblasgpu.explain("gemm", "d", 8, 8),
        lambda: device.current(),
        lambda: memory.allocate(64, 0, 0),
    ],
)
def test_whatever_needs_the_device_says_so(driver, begin, work):
    begin(driver)
    with pytest.raises(BackendUnavailable, match=TOLD):
        forked(work)
    pyblasgpu.gemm(Array(ONE), Array(ONE))  # in the process itself


def test_what_is_kept_for_repeated_calls_is_of_no_use(driver):
    a, b, out = Array(ONE), Array(ONE), Array(ONE.copy())
    plan = plan_gemm(a, b, out)
    for call in (lambda: pyblasgpu.gemm(a, b, out=out), lambda: plan(a, b, out)):
        call()
        call()
        with pytest.raises(BackendUnavailable, match=TOLD):
            forked(call)
        with pytest.raises(BackendUnavailable, match=TOLD):
            forked(lambda call=call: forked(call))
        call()


def test_what_was_made_before_ends_in_silence(driver, capfd):
    held = [plan_gemm(Array(ONE), Array(ONE), Array(ONE.copy())), memory.OwnedMemory(64, 0)]
    made = driver.made["cuMemFree"] + driver.made["cuGraphExecDestroy"]

    def work():
        held.clear()
        return driver.made["cuMemFree"] + driver.made["cuGraphExecDestroy"]

    assert forked(work) == made, "the driver was asked"
    assert capfd.readouterr().err == ""


def test_before_cuda_is_used_a_process_may_fork(driver):
    def work():
        pyblasgpu.gemm(Array(ONE), Array(ONE))
        return backend_status().backend, len(driver.launches)

    assert forked(work) == ("cuda", 1)


def test_there_is_no_device_then(driver):
    used_by_us(driver)
    assert device.count() == 2 and forked(device.count) == 0


@pytest.mark.usefixtures("small_tiles")
def test_results_in_kept_memory_are_there(fake_cards, monkeypatch):
    """Page-locked ones too; the process keeps no memory of its own."""
    monkeypatch.setattr(calls, "KEPT_FROM", 1)
    driver, a = fake_cards(), np.arange(900.0).reshape(30, 30)
    results = [pyblasgpu.gemm(a, a, devices=[0, 1]) for _ in range(3)]
    del results[:2]
    locked = pyblasgpu.gemm(a, a, devices=[0, 1])
    assert driver.calls["cuMemHostRegister"] == 1

    def work():
        same = [bool((each == a @ a).all()) for each in (locked, results[0])]
        results.clear()
        return same, kept_results.kept_results().held

    assert forked(work) == ([True, True], 0)


def test_arrays_that_are_locked(fake_cards, monkeypatch):
    """No pages are while the process forks: both processes have their own then."""
    monkeypatch.setattr(locked_arrays, "LEAST", 1)
    driver, a, b, out = fake_cards(), np.arange(900.0).reshape(30, 30).copy(), np.eye(30), np.empty((30, 30))
    counts = []
    for is_forked in (False, False, True, False):
        pyblasgpu.gemm(a, b, out=out, devices=[0, 1])
        if is_forked:
            assert forked(lambda: bool((out == a).all()))
        counts.append((driver.calls["cuMemHostRegister"], driver.calls["cuMemHostUnregister"]))
    assert counts == [(0, 0), (3, 0), (3, 3), (3, 3)]
    pyblasgpu.gemm(a, b, out=out, devices=[0, 1])
    np.testing.assert_array_equal(out, a)
    assert driver.calls["cuMemHostRegister"] == 6
