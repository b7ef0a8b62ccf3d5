"""Arrays on a device that is current or is not: what was current stays, a stream belongs to its device.

Where only one device is there, the tests of the second are skipped.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
import pytest

import pyblasgpu
from pyblasgpu.frontend.arrays.streams import stream_pointer
from pyblasgpu.frontend.calls import call as frontend_call
from pyblasgpu.gpu import context, device, memory
from pyblasgpu.gpu.driver import check, load
from pyblasgpu.testing.reference import integers
from pyblasgpu.tuning.worker_bench import Bench, Job, Timing
from pyblasgpu.types import DTYPES

from .running import NAN, cupy, same

D = DTYPES["d"]
TWO = pytest.mark.skipif(device.count() < 2, reason="there is one device")
CARDS = pytest.mark.parametrize("card", [0, pytest.param(1, marks=TWO)])
#: The device that is current on the calling thread.
BEFORE = pytest.mark.parametrize("before", [None, 0, pytest.param(1, marks=TWO)])


class CuPy:
    @staticmethod
    def put(array, card):
        with cupy.cuda.Device(card):
            return cupy.asarray(array)

    @staticmethod
    def get(array, card):
        with cupy.cuda.Device(card):
            return array.get()

    @staticmethod
    def stream(card):
        with cupy.cuda.Device(card):
            return cupy.cuda.Stream(non_blocking=True)

    @staticmethod
    def where(array):
        return array.data.device_id


class Torch:
    @staticmethod
    def put(array, card):
        torch = pytest.importorskip("torch")
        moved = torch.as_tensor(np.ascontiguousarray(array.T), device=torch.device("cuda", card))
        return moved.mT

    @staticmethod
    def get(tensor, card):
        return tensor.cpu().numpy()

    @staticmethod
    def stream(card):
        return pytest.importorskip("torch").cuda.Stream(device=card)

    @staticmethod
    def where(tensor):
        return tensor.get_device()


class Numba:
    @staticmethod
    def put(array, card):
        cuda = pytest.importorskip("numba.cuda")
        with cuda.gpus[card]:
            return cuda.to_device(array)

    @staticmethod
    def get(array, card):
        with pytest.importorskip("numba.cuda").gpus[card]:
            return array.copy_to_host()

    @staticmethod
    def stream(card):
        cuda = pytest.importorskip("numba.cuda")
        with cuda.gpus[card]:
            return cuda.stream()

    @staticmethod
    def where(array):
        return context.pointer_device(array.__cuda_array_interface__["data"][0])


LIBRARIES = pytest.mark.parametrize("library", [CuPy, Torch, Numba], ids=lambda library: library.__name__)
PLANNED = pytest.mark.parametrize("library", [CuPy, Torch], ids=lambda library: library.__name__)


def current() -> int:
    """The address of the current context, 0 where there is none."""
    return int(check(load().cuCtxGetCurrent(), "cuCtxGetCurrent"))


def unchanged(before, work):
    """What ``work()`` returns or raises on a new thread; `before` is current there, and still is then."""
    state: dict = {}

    def run():
        if before is not None:
            check(load().cuCtxSetCurrent(context.retain_primary_context(before)), "cuCtxSetCurrent")
        state["begun"] = current()
        try:
            state["result"] = work()
        except BaseException as problem:
            state["problem"] = problem
        state["ended"] = current()
        if before is not None:
            state["device"] = cupy.cuda.runtime.getDevice()
            torch = sys.modules.get("torch")
            state["torch"] = torch.cuda.current_device() if torch else before

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert state["ended"] == state["begun"] and (state["begun"] == 0) == (before is None)
    if before is not None:
        assert state["device"] == state["torch"] == before
    if "problem" in state:
        raise state["problem"]
    return state["result"]


def synchronize(card: int) -> None:
    with cupy.cuda.Device(card) as chosen:
        chosen.synchronize()


def operands(m=65, n=33, k=31):
    rng = np.random.default_rng(3)
    a, b = (np.asfortranarray(integers(rng, shape, D)) for shape in ((m, k), (k, n)))
    t = np.asfortranarray(np.tril(integers(rng, (m, m), D, 1), -1) + np.eye(m))
    return a, b, t


# ------------------------------------------------------------------------------------------------ results


@LIBRARIES
@CARDS
@BEFORE
def test_calls(library, card, before):
    a, b, t = operands()
    left, right, triangle = (library.put(x, card) for x in (a, b, t))
    product = unchanged(before, lambda: pyblasgpu.gemm(left, right))
    multiplied = unchanged(before, lambda: pyblasgpu.trmm(triangle, product, lower=True))
    solved = unchanged(before, lambda: pyblasgpu.trsm(triangle, multiplied, lower=True))
    synchronize(card)
    for actual, expected in ((product, a @ b), (multiplied, t @ (a @ b)), (solved, a @ b)):
        assert library.where(actual) == card
        same(library.get(actual, card), expected, library.__name__)


@LIBRARIES
@CARDS
@BEFORE
def test_calls_that_are_repeated(library, card, before):
    """With operands that are read in place, and with others, which take a workspace."""
    a, b, t = operands()
    for left, right in ((a, b), (a.repeat(2, 0).repeat(2, 1), b.repeat(2, 0).repeat(2, 1))):
        halves = left.shape != a.shape
        x, y = (library.put(each, card) for each in (left, right))
        if halves:
            x, y = x[::2, ::2], y[::2, ::2]
        out = library.put(np.full((a.shape[0], b.shape[1]), NAN, order="F"), card)
        triangle = library.put(t, card)

        def call(x=x, y=y, out=out, triangle=triangle):
            for _ in range(3):
                pyblasgpu.gemm(x, y, out=out)
                pyblasgpu.trsm(triangle, out, lower=True, out=out)
                pyblasgpu.trmm(triangle, out, lower=True, out=out)

        unchanged(before, call)
        unchanged(before, call)
        synchronize(card)
        same(library.get(out, card), a @ b, f"{library.__name__}, halves: {halves}")


@PLANNED
@CARDS
@BEFORE
@pytest.mark.parametrize("packed", [False, True])
def test_plans(library, card, before, packed):
    a, b, _ = operands()
    if packed:
        first = [library.put(x.repeat(2, 0).repeat(2, 1), card)[::2, ::2] for x in (a, b)]
        others = [library.put(x.repeat(2, 0).repeat(2, 1), card)[::2, ::2] for x in (2 * a, b)]
    else:
        first, others = ([library.put(x, card) for x in (factor * a, b)] for factor in (1, 2))
    outs = [library.put(np.full((65, 33), NAN, order="F"), card) for _ in range(2)]
    plans = [unchanged(before, lambda: pyblasgpu.plan_gemm(first[0], first[1], outs[0]))]
    assert (plans[0].workspace > 0) == packed

    def call():
        for _ in range(2):
            plans[0](*first, outs[0])
            plans[0](*others, outs[1])

    unchanged(before, call)
    synchronize(card)
    for out, factor in zip(outs, (1, 2)):
        same(library.get(out, card), factor * (a @ b), library.__name__)
    unchanged(before, plans.clear)  # which gives its graph and its workspace back


@BEFORE
@pytest.mark.parametrize("stream", [None, 0, 1, 2])
def test_host_arrays_run_where_the_thread_is(monkeypatch, before, stream):
    a, b, _ = operands()
    devices, plain = set(), memory.allocate

    def allocate(nbytes, card, stream):
        devices.add(card)
        return plain(nbytes, card, stream)

    monkeypatch.setattr(memory, "allocate", allocate)
    actual = unchanged(before, lambda: pyblasgpu.gemm(a, b, backend="cuda", stream=stream))
    same(actual, a @ b, "staged")
    assert devices == {before or 0}


@BEFORE
@CARDS
def test_the_tuners_worker(before, card):
    def work():
        body = Bench(frontend_call.routine, card)
        return list(body(Job("gemm", "s", "nn", problems=(((256, 256, 256), 1.0),), verify=("odd",))))

    (answer,) = unchanged(before, work)
    assert isinstance(answer, Timing) and 0 < answer.seconds < 1


# ------------------------------------------------------------------------------------------------- errors


@LIBRARIES
@CARDS
@BEFORE
def test_errors(library, card, before):
    a, b, _ = operands()
    left, right, out = library.put(a, card), library.put(b, card), library.put(np.ones((65, 33)), card)
    for call in (
        lambda: pyblasgpu.gemm(left, left),
        lambda: pyblasgpu.gemm(left, right, out=right),
        lambda: pyblasgpu.gemm(left, right, trans_a=cast(Any, "X"), out=out),
        lambda: pyblasgpu.trsm(left, right),
    ):
        with pytest.raises(ValueError):
            unchanged(before, call)
    synchronize(card)
    same(library.get(out, card), np.ones((65, 33)), "out")


@CARDS
@BEFORE
def test_too_little_memory(card, before):
    with pytest.raises(MemoryError):
        unchanged(before, lambda: memory.OwnedMemory(1 << 46, card))
    with pytest.raises(MemoryError):
        unchanged(before, lambda: memory.allocate(1 << 46, card, 0))


@TWO
@LIBRARIES
def test_arrays_on_two_devices(library):
    a, b = (library.put(x, card) for card, x in enumerate(operands()[:2]))
    with pytest.raises(ValueError, match="gemm: a is on device 0 and b on device 1"):
        unchanged(0, lambda: pyblasgpu.gemm(a, b))


# ------------------------------------------------------------------------------------------------ streams


@LIBRARIES
@CARDS
@BEFORE
def test_a_stream_of_the_arrays_device(library, card, before):
    """It serves whatever is current, also where no context is."""
    a, b, t = operands()
    left, right, triangle = (library.put(x, card) for x in (a, b, t))
    out = library.put(np.full((65, 33), NAN, order="F"), card)
    stream = library.stream(card)
    synchronize(card)

    def call(queue):
        for _ in range(3):
            pyblasgpu.gemm(left, right, out=out, stream=queue)
            pyblasgpu.trmm(triangle, out, lower=True, out=out, stream=queue)
            pyblasgpu.trsm(triangle, out, lower=True, out=out, stream=queue)

    for queue in (stream, stream_pointer(stream)):
        unchanged(before, partial(call, queue))
        synchronize(card)
        same(library.get(out, card), a @ b, library.__name__)


@TWO
@LIBRARIES
@BEFORE
def test_a_stream_of_another_device(library, before):
    a, b, t = operands()
    left, right, triangle = (library.put(x, 1) for x in (a, b, t))
    values = np.ones((65, 33), order="F")
    out, wrong = library.put(values, 1), library.stream(0)
    calls = {
        "gemm": lambda stream: pyblasgpu.gemm(left, right, out=out, stream=stream),
        "trmm": lambda stream: pyblasgpu.trmm(triangle, out, lower=True, out=out, stream=stream),
        "trsm": lambda stream: pyblasgpu.trsm(triangle, out, lower=True, out=out, stream=stream),
    }
    if library is not Numba:
        plan = pyblasgpu.plan_gemm(left, right, out)
        calls["plan_gemm"] = lambda stream: plan(left, right, out, stream=stream)
    message = r"stream 0x\w+ belongs to device 0, and the arrays are on device 1"
    for (name, call), queue in product(calls.items(), (wrong, stream_pointer(wrong))):
        for _ in range(2):
            with pytest.raises(ValueError, match=f"{name}: {message}"):
                unchanged(before, partial(call, queue))
    for card in (0, 1):
        synchronize(card)
    same(library.get(out, 1), values, "out")


@TWO
def test_a_default_stream_object_of_another_device():
    torch = pytest.importorskip("torch")
    a, b, _ = operands()
    left, right = Torch.put(a, 1), Torch.put(b, 1)
    with pytest.raises(ValueError, match=r"gemm: stream 0x0 belongs to device 0, .* device 1"):
        pyblasgpu.gemm(left, right, stream=torch.cuda.default_stream(0))
    actual = unchanged(0, lambda: pyblasgpu.gemm(left, right, stream=torch.cuda.default_stream(1)))
    same(Torch.get(actual, 1), a @ b, "torch")


@TWO
@BEFORE
def test_host_arrays_run_on_the_device_of_their_stream(before):
    a, b, _ = operands()
    for card in (0, 1):
        stream = CuPy.stream(card)
        same(unchanged(before, partial(pyblasgpu.gemm, a, b, backend="cuda", stream=stream)), a @ b, card)
