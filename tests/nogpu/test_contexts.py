"""The context that is current comes back: after every entry, results and errors, on every thread."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from fake_device import Array

import pyblasgpu
from pyblasgpu import plan_gemm, plan_trsm
from pyblasgpu.errors import OverlapError
from pyblasgpu.gpu import context, device, memory, workspace
from pyblasgpu.gpu.driver import DeviceError
from pyblasgpu.tuning import measure, worker_bench
from pyblasgpu.tuning.worker_bench import Bench, Job, Timing
from pyblasgpu.types import DTYPES

D = DTYPES["d"]
THERE = 1  # the device of the arrays
BEFORE = pytest.mark.parametrize("before", [None, 0, THERE], ids=["none", "other", "same"])


@pytest.fixture
def restored(driver, before):
    """The context `before` is current, and afterwards that one is, or the test fails."""
    driver.begin(before)
    yield driver
    assert driver.stack == ([] if before is None else [before])


def square(n=40, order="F", device=THERE) -> Array:
    return Array(np.zeros((n, n), order=order), device)


def strided(n=40, device=THERE) -> Array:
    """A view that no kernel reads in place, so that it is packed into a workspace."""
    return Array(np.zeros((2 * n, 2 * n))[::2, ::2], device)


def stack() -> Array:
    return Array(np.zeros((3, 8, 8)), THERE)


def single() -> Array:
    return Array(np.zeros((40, 40), "f4"), THERE)


# ------------------------------------------------------------------------------------------------ entries

CALLS = {
    "gemm": lambda: pyblasgpu.gemm(square(), square()),
    "gemm with out": lambda: pyblasgpu.gemm(square(), square(), out=square(), beta=1),
    "packed gemm": lambda: pyblasgpu.gemm(strided(), strided(), out=strided()),
    "cast gemm": lambda: pyblasgpu.gemm(square(), Array(np.zeros((40, 40), "f4"), THERE)),
    "batched gemm": lambda: pyblasgpu.gemm(Array(np.zeros((5, 9, 8)), THERE), Array(np.zeros((8, 7)), THERE)),
    "zero gemm": lambda: pyblasgpu.gemm(square(), square(), alpha=0),
    "trmm": lambda: pyblasgpu.trmm(square(), square()),
    "trsm": lambda: pyblasgpu.trsm(square(), square(), out=square()),
    "recursive trsm": lambda: pyblasgpu.trsm(square(700), square(700, order="C")),
    "few columns": lambda: pyblasgpu.trsm(square(700), Array(np.zeros((700, 1)), THERE)),
    "symm": lambda: pyblasgpu.symm(square(), square()),
    "syr2k": lambda: pyblasgpu.syr2k(square(), square()),
    "matmul": lambda: pyblasgpu.linalg.matmul(square(), square()),
    "matmul of stacks": lambda: pyblasgpu.linalg.matmul(stack(), stack(), order="F"),
    "matmul with a cast": lambda: pyblasgpu.linalg.matmul(square(), square(), out=single(), casting="unsafe"),
    "solve_triangular": lambda: pyblasgpu.linalg.solve_triangular(square(), square()),
    "dgemm": lambda: pyblasgpu.blas.dgemm(1.0, square(), square()),
}


@BEFORE
@pytest.mark.parametrize("call", CALLS)
def test_calls(restored, call):
    result = CALLS[call]()
    assert result.device_id == THERE
    assert restored.launches and {ordinal for ordinal, _ in restored.launches} == {THERE}


@BEFORE
@pytest.mark.parametrize("place", [square, strided])
def test_calls_that_are_repeated(restored, place):
    a, b, out = place(), place(), place()
    for _ in range(4):
        pyblasgpu.gemm(a, b, out=out)
        pyblasgpu.trsm(a, b, out=b)
    assert {ordinal for ordinal, _ in restored.launches} == {THERE}


@BEFORE
@pytest.mark.parametrize("place", [square, strided])
@pytest.mark.parametrize("plan_of", [plan_gemm, plan_trsm])
def test_plans(restored, plan_of, place):
    arrays = place(), place(), place()
    plan = plan_of(*arrays)
    for _ in range(2):
        plan(*arrays)
        plan(place(), place(), place())
    assert {ordinal for ordinal, _ in restored.launches} == {THERE} and len(restored.launches) >= 4
    assert restored.graphs
    del plan
    assert not restored.graphs and all(ordinal == THERE for _, ordinal, _ in restored.held.values())


@BEFORE
def test_a_plan_ends_on_a_thread_without_a_context(restored):
    plans = [plan_gemm(strided(), strided(), strided())]
    assert plans[0].workspace and restored.held
    in_a_thread(plans.clear)
    assert not restored.graphs and not restored.held


def all_is_given_back(driver) -> bool:
    """Whether what is held of the device's memory is what streams keep."""
    kept = {
        room.address - workspace.ALL_FLAGS
        for free_list in workspace.free_lists.values()
        for room in free_list
    }
    return set(driver.held) == kept


def in_a_thread(work) -> None:
    failed = []

    def run():
        try:
            work()
        except BaseException as problem:
            failed.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failed


@pytest.mark.parametrize("call", ["gemm", "packed gemm", "cast gemm", "recursive trsm"])
def test_a_thread_has_no_context_afterwards(driver, call):
    driver.begin(0)
    stacks = []
    in_a_thread(lambda: (CALLS[call](), stacks.append(list(driver.stack))))
    assert stacks == [[]] and driver.stack == [0]


@BEFORE
def test_host_arrays_run_on_the_device_that_is_current(restored, before):
    a = np.zeros((40, 40))
    for _ in range(2):
        pyblasgpu.gemm(a, a, backend="cuda")
        pyblasgpu.trsm(a, a.copy(), out=a.copy(), backend="cuda")
    assert {ordinal for ordinal, _ in restored.launches} == {before or 0}
    assert all_is_given_back(restored)


@BEFORE
def test_host_arrays_run_on_the_device_of_their_stream(restored):
    pyblasgpu.gemm(np.zeros((8, 8)), np.zeros((8, 8)), backend="cuda", stream=0x5001)
    assert set(restored.launches) == {(1, 0x5001)} and all_is_given_back(restored)


@BEFORE
def test_explain_touches_no_context(restored):
    assert pyblasgpu.explain("trsm", "d", 700, 300, device=THERE)
    assert restored.made["cuCtxSetCurrent"] == restored.made["cuDevicePrimaryCtxRetain"] == 0


@BEFORE
def test_memory_and_workspace(restored):
    held = workspace.OwnedWorkspace(1000, THERE), memory.OwnedMemory(1000, THERE)
    assert {ordinal for _, ordinal, _ in restored.held.values()} == {THERE}
    del held
    assert not restored.held


@BEFORE
def test_the_tuners_worker(restored, monkeypatch):
    monkeypatch.setattr(measure, "LONG_ENOUGH", 1e-6)
    monkeypatch.setattr(measure, "MOST_FLUSHES", 1)
    monkeypatch.setattr(worker_bench, "verify", lambda *_: None)
    monkeypatch.setattr(worker_bench, "load_cublas", lambda: SimpleNamespace(set_stream=lambda stream: None))
    routines = pyblasgpu.frontend.calls.call.routine
    body = Bench(routines, THERE)
    job = Job("gemm", "d", "nn", problems=(((40, 40, 40), 1.0),))
    (timed,) = list(body(job))
    assert isinstance(timed, Timing) and {ordinal for ordinal, _ in restored.launches} == {THERE}


@BEFORE
def test_what_is_verified(restored):
    from pyblasgpu.tuning.verify import WrongResult, verify

    with pytest.raises(WrongResult):  # of kernels that compute nothing
        verify(pyblasgpu.frontend.calls.call.routine("gemm"), "gemm", D, "nn", THERE, 0)
    assert restored.launches and all_is_given_back(restored)


# ----------------------------------------------------------------------------------------------- errors


@BEFORE
def test_errors_of_arguments(restored):
    a, b, out = square(), square(), square()
    plan = plan_gemm(a, b, out)
    for error, call in (
        (ValueError, partial(pyblasgpu.gemm, a, square(41))),
        (OverlapError, partial(pyblasgpu.gemm, a, b, out=a)),
        (ValueError, partial(pyblasgpu.gemm, a, square(device=0))),
        (ValueError, partial(pyblasgpu.gemm, a, b, out=square(device=0))),
        (ValueError, partial(pyblasgpu.trsm, a, square(41))),
        (ValueError, partial(plan_gemm, a, b, square(41))),
        (ValueError, partial(plan, a, b, square(41))),
    ):
        with pytest.raises(error):
            call()


@BEFORE
@pytest.mark.parametrize(
    ("function", "code", "error"),
    [
        ("cuLaunchKernelEx", "CUDA_ERROR_LAUNCH_FAILED", DeviceError),
        ("cuMemAllocFromPoolAsync", "CUDA_ERROR_OUT_OF_MEMORY", MemoryError),
        ("cuMemsetD8Async", "CUDA_ERROR_LAUNCH_FAILED", DeviceError),
        ("cuLibraryLoadData", "CUDA_ERROR_NO_BINARY_FOR_GPU", DeviceError),
        ("cuGraphInstantiate", "CUDA_ERROR_OUT_OF_MEMORY", MemoryError),
        ("cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY", MemoryError),
    ],
)
def test_errors_of_the_driver(restored, function, code, error):
    restored.refused[function] = getattr(restored.result, code)
    a, b, out = strided(), strided(), strided()
    if function in ("cuGraphInstantiate", "cuMemAlloc"):
        calls = [partial(plan_gemm, a, b, out)]
    else:
        calls = [partial(pyblasgpu.gemm, a, b, out=out)] * 2
    for call in calls:
        with pytest.raises(error):
            call()
    restored.refused.clear()
    for _ in range(2):
        pyblasgpu.gemm(a, b, out=out)


@BEFORE
def test_a_repeated_call_that_fails(restored):
    a, b, out = square(), square(), square()
    pyblasgpu.gemm(a, b, out=out)
    restored.refused["cuLaunchKernelEx"] = restored.result.CUDA_ERROR_LAUNCH_FAILED
    for _ in range(2):
        with pytest.raises(DeviceError):
            pyblasgpu.gemm(a, b, out=out)


@pytest.mark.parametrize("before", [None, 0, 1])
def test_staging_that_fails(restored):
    restored.refused["cuLaunchKernelEx"] = restored.result.CUDA_ERROR_LAUNCH_FAILED
    out = np.ones((8, 8))
    with pytest.raises(DeviceError):
        pyblasgpu.gemm(np.zeros((8, 8)), np.zeros((8, 8)), out=out, backend="cuda")
    assert (out == 1).all() and not restored.held


# ------------------------------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("n", [40, 700])
def test_a_repeated_call_looks_once_and_changes_nothing(driver, n):
    """Also where it comes down to many launches."""
    driver.begin(THERE)
    t, b = square(n), square(n)
    plan = plan_trsm(t, b, b)
    for call in (lambda: pyblasgpu.trmm(t, b, out=b), lambda: plan(t, b, b)):
        call()
        call()
        driver.made.clear()
        call()
        assert driver.made["cuCtxGetCurrent"] == 1
        assert driver.made["cuCtxSetCurrent"] == driver.made["cuStreamGetCtx"] == 0


def test_elsewhere_a_call_changes_the_context_once_and_back(driver):
    driver.begin(0)
    t, b = square(700), square(700)
    for _ in range(2):
        pyblasgpu.trmm(t, b, out=b)
    driver.made.clear()
    pyblasgpu.trmm(t, b, out=b)
    assert driver.made["cuLaunchKernelEx"] >= 1 and driver.made["cuCtxSetCurrent"] == 2


# ------------------------------------------------------------------------------------------------ context


def test_which_device_is_current(driver):
    for begun, expected in ((None, 0), (0, 0), (1, 1)):
        driver.begin(begun)
        assert context.current_device() == expected and driver.current == begun
    assert device.current(1).ordinal == 1


@pytest.mark.parametrize("begun", [None, 0, 1])
def test_where_memory_lies(driver, begun):
    """Also that of a pool, which has no context."""
    room = memory.OwnedMemory(64, THERE)
    for pointer in (memory.allocate(64, THERE, 0), room.address):
        driver.begin(begun)
        assert context.pointer_device(pointer) == THERE and context.pointer_device(0) is None
        assert driver.current == begun
    del room  # while the driver is the fake one


def test_contexts_may_be_nested(driver):
    with context.current_context(0):
        with context.current_context(1):
            with context.current_context(1):
                assert driver.stack == [1]
            assert driver.stack == [1]
        assert driver.stack == [0]
    assert driver.stack == []
