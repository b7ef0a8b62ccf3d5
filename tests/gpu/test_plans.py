"""Plans on a device: results, other arrays, streams, threads, and capture in CUDA graphs."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from threads import at_once

import pyblasgpu
from pyblasgpu.errors import OverlapError
from pyblasgpu.frontend.arrays.libraries import cupy_stream
from pyblasgpu.testing.cases import TriangularCase
from pyblasgpu.testing.reference import exact_triangular, integers, triangle
from pyblasgpu.types import DTYPES, Diag, Side, Trans, Uplo

from .running import NAN, Torch, cupy, flags, occupy, same

D = DTYPES["d"]
PLANS = {"trmm": pyblasgpu.plan_trmm, "trsm": pyblasgpu.plan_trsm}


def operands(letter: str = "d", seed: int = 0, m: int = 65, n: int = 33, k: int = 31):
    """Matrices of integers on the host, column-major."""
    rng = np.random.default_rng(seed)
    return [np.asfortranarray(integers(rng, shape, DTYPES[letter])) for shape in ((m, k), (k, n), (m, n))]


class CuPy:
    """What a test asks of CuPy."""

    put = staticmethod(lambda array: cupy.asarray(array, order="F"))
    get = staticmethod(cupy.asnumpy)

    @staticmethod
    def fill(array, values):
        array[...] = cupy.asarray(values)

    @staticmethod
    def stream():
        return cupy.cuda.Stream(non_blocking=True)

    @staticmethod
    @contextmanager
    def captured(stream):
        """Captures what its body enqueues; `replay` of what it yields runs it."""
        with stream:
            stream.begin_capture()
            made = SimpleNamespace()
            try:
                yield made
            finally:
                graph = stream.end_capture()
        made.replay = lambda: graph.launch(stream)


class PyTorch:
    put, get = staticmethod(Torch.put), staticmethod(Torch.get)

    @staticmethod
    def fill(array, values):
        array.copy_(Torch.put(np.ascontiguousarray(values)))

    @staticmethod
    def stream():
        return pytest.importorskip("torch").cuda.Stream()

    @staticmethod
    @contextmanager
    def captured(stream):
        torch = pytest.importorskip("torch")
        graph, made = torch.cuda.CUDAGraph(), SimpleNamespace()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            yield made

        def replay():
            with torch.cuda.stream(stream):
                graph.replay()

        made.replay = replay


LIBRARIES = pytest.mark.parametrize("library", [CuPy, PyTorch], ids=lambda library: library.__name__)


# ------------------------------------------------------------------------------------------------ results


@LIBRARIES
@pytest.mark.parametrize("letter", DTYPES)
def test_gemm_again_and_on_other_arrays(library, letter):
    a, b, c = operands(letter)
    first = [library.put(x) for x in (a, b, c)]
    plan = pyblasgpu.plan_gemm(*first, alpha=2, beta=-1)
    same(library.get(first[2]), c, "before the first run")
    expected = c
    for _ in range(3):
        expected = 2 * (a @ b) - expected
        assert plan(*first) is first[2]
        same(library.get(first[2]), expected, "the arrays it was made with")
    for seed in (1, 2):
        a, b, c = operands(letter, seed)
        others = [library.put(x) for x in (a, b, c)]
        plan(*others)
        same(library.get(others[2]), 2 * (a @ b) - c, "other arrays")


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("which", PLANS)
def test_triangles(which, in_place, letter):
    for m, options in (
        (65, {"trans": Trans.TRANS}),
        (300, {"uplo": Uplo.UPPER}),
        (65, {"side": Side.RIGHT, "diag": Diag.UNIT, "alpha": -2}),
    ):
        case = TriangularCase(DTYPES[letter], m, 33, **options)
        rng, plan = np.random.default_rng(m), None
        for _ in range(2):
            t, x = triangle(rng, case), integers(rng, (case.m, case.n), case.dtype)
            initial, expected = x, exact_triangular(case, t, x)
            if which == "trsm":
                initial = exact_triangular(case, t, x, alpha=1)
                expected = (case.alpha * x).astype(x.dtype)
            a, b = CuPy.put(t), CuPy.put(initial)
            out = b if in_place else cupy.full_like(b, NAN)
            plan = plan or PLANS[which](a, b, out, alpha=case.alpha, **flags(case))
            for _ in range(2):
                CuPy.fill(b, initial)
                assert plan(a, b, out) is out
                same(out.get(), expected, case)


@pytest.mark.parametrize("letter", "sz")
def test_the_bits_are_those_of_the_call(letter):
    rng = np.random.default_rng(3)
    x, y = (CuPy.put(rng.standard_normal((257, 257)).astype(DTYPES[letter].name)) for _ in range(2))
    called, planned = cupy.empty_like(x), cupy.empty_like(x)
    pyblasgpu.gemm(x, y, alpha=0.3, out=called, trans_b="T")
    plan = pyblasgpu.plan_gemm(x, y, planned, alpha=0.3, trans_b="T")
    plan(x, y, planned)
    assert called.get().tobytes() == planned.get().tobytes()


def test_strided_views_are_packed_in_the_plans_own_memory():
    wide = [cupy.zeros((2 * x.shape[0], 2 * x.shape[1])) for x in operands()]
    views = [x[::2, ::2] for x in wide]
    plan = pyblasgpu.plan_gemm(*views)
    assert plan.workspace > 0
    for seed in range(3):
        a, b, _ = operands(seed=seed)
        for view, values in zip(views, (a, b, NAN), strict=True):
            CuPy.fill(view, values)
        plan(*views)
        same(views[2].get(), a @ b, "views")
    assert not wide[2][1::2].any()


def test_stacks():
    rng = np.random.default_rng(4)
    a, b = integers(rng, (3, 1, 33, 31), D), integers(rng, (2, 31, 17), D)
    arrays = [cupy.asarray(a), cupy.asarray(b), cupy.full((3, 2, 33, 17), NAN)]
    pyblasgpu.plan_gemm(*arrays)(*arrays)
    same(arrays[2].get(), a @ b, "stack")


# ------------------------------------------------------------------------------------------------- misuse


@LIBRARIES
def test_arrays_that_do_not_fit(library):
    room = [library.put(np.asfortranarray(np.eye(64))) for _ in range(4)]
    a, b, out, other = (x[:48, :48] for x in room)
    plan = pyblasgpu.plan_gemm(a, b, out)
    for error, message, arrays in [
        (ValueError, "plan_gemm: a has shape", (room[0][:48, :47], b, out)),
        (ValueError, "plan_gemm: b has shape", (a, room[1][:40, :48], out)),
        (ValueError, "plan_gemm: out has shape", (a, b, library.put(np.eye(48)))),
        (ValueError, "float32", (a, library.put(np.eye(64, dtype="f4", order="F"))[:48, :48], out)),
        (ValueError, "b begins 8 bytes beyond", (a, room[1][1:49, :48], out)),
        (OverlapError, "shares memory with a", (a, b, a)),
        (OverlapError, "shares memory with b", (a, b, room[1][16:, 16:])),
        (TypeError, "out a NumPy array", (a, b, np.eye(48))),
        (TypeError, "numpy", (np.eye(48), np.eye(48), np.eye(48))),
    ]:
        with pytest.raises(error, match=message):
            plan(*arrays)
    for x in room:
        same(library.get(x), np.eye(64), "after errors")
    plan(a, b, other)
    same(library.get(other), np.eye(48), "other")


def test_no_plan_of_arrays_on_the_host():
    with pytest.raises(TypeError, match="not for NumPy arrays"):
        pyblasgpu.plan_gemm(np.eye(4), np.eye(4), np.eye(4))


def test_a_tensor_that_was_changed_in_place_is_another():
    torch = pytest.importorskip("torch")
    a, b, out = (torch.eye(48, dtype=torch.float64, device="cuda") for _ in range(3))
    plan = pyblasgpu.plan_gemm(a, b, out)
    b.set_(torch.full_like(b, 2.0))
    plan(a, b, out)
    assert (out == 2).all()
    a.resize_(24, 96)
    with pytest.raises(ValueError, match="a has shape"):
        plan(a, b, out)


# ---------------------------------------------------------------------------------------------- streams


@LIBRARIES
@pytest.mark.parametrize("known", [True, False], ids=["made with", "others"])
@pytest.mark.parametrize("how", ["argument", "current", "plan"])
def test_a_plan_runs_on_the_stream_and_does_not_wait(library, how, known):
    a, b, c = operands()
    stream = library.stream()
    late, right, out = (library.put(x) for x in (np.full_like(a, NAN), b, c))
    plan = pyblasgpu.plan_gemm(late, right, out, stream=stream if how == "plan" else None)
    plan(late, right, out, stream=0)
    if not known:
        late, right, out = (library.put(x) for x in (np.full_like(a, NAN), b, c))
    ready = library.put(a)
    cupy.cuda.Device().synchronize()
    done = cupy_stream(cupy.cuda, 0, getattr(stream, "ptr", None) or stream.cuda_stream)
    busy = occupy(stream)
    if library is CuPy:
        late.data.copy_from_device_async(ready.data, ready.nbytes, stream)
    else:
        with pytest.importorskip("torch").cuda.stream(stream):
            late.copy_(ready, non_blocking=True)
    if how == "argument":
        plan(late, right, out, stream=stream)
    elif how == "plan":
        plan(late, right, out)
    elif library is CuPy:
        with stream:
            plan(late, right, out)
    else:
        with pytest.importorskip("torch").cuda.stream(stream):
            plan(late, right, out)
    assert not done.done, "the call waited"
    done.synchronize()
    del busy
    same(library.get(out), a @ b, "late")


def test_a_plan_may_go_while_it_runs():
    a, b, c = operands()
    stream = CuPy.stream()
    arrays = [CuPy.put(x) for x in (a, b, np.full_like(c, NAN))]
    plan = pyblasgpu.plan_gemm(*arrays)
    cupy.cuda.Device().synchronize()
    busy = occupy(stream)
    plan(*arrays, stream=stream)
    del plan
    gc.collect()
    stream.synchronize()
    del busy
    same(arrays[2].get(), a @ b, "after the plan")


@pytest.mark.parametrize("strided", [False, True], ids=["plain", "packed"])
def test_threads_share_a_plan(strided):
    """Each has arrays and, without a workspace, a stream of its own; two have those of the plan."""
    step = 2 if strided else 1
    runs = []
    for seed in range(4):
        a, b, _ = operands(seed=seed)
        arrays = [cupy.zeros((step * x.shape[0], step * x.shape[1]), order="F") for x in operands()]
        views = [x[::step, ::step] for x in arrays]
        CuPy.fill(views[0], a)
        CuPy.fill(views[1], b)
        runs.append((views, a @ b))
    plan = pyblasgpu.plan_gemm(*runs[0][0])
    assert bool(plan.workspace) == strided
    cupy.cuda.Device().synchronize()
    together = CuPy.stream()

    def work(views, expected, stream):
        for _ in range(200):
            plan(*views, stream=stream)
        stream.synchronize()
        same(views[2].get(), expected, "a thread's")

    at_once(work, [(*run, together if strided else CuPy.stream()) for run in (*runs, runs[0])])


def test_a_thread_that_never_used_the_device():
    a, b, c = operands()
    arrays = [CuPy.put(x) for x in (a, b, c)]
    plan = pyblasgpu.plan_gemm(*arrays)
    cupy.cuda.Device().synchronize()
    stream = CuPy.stream()
    for handle in (0, 1, 2, stream.ptr):
        arrays[2].fill(NAN)
        cupy.cuda.Device().synchronize()
        thread = threading.Thread(target=plan, args=arrays, kwargs={"stream": handle})
        thread.start()
        thread.join()
        cupy.cuda.Device().synchronize()
        same(arrays[2].get(), a @ b, f"stream {handle}")


def test_on_another_device_than_the_current_one():
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one device")
    a, b, c = operands()
    with cupy.cuda.Device(1):
        arrays, stream = [CuPy.put(x) for x in (a, b, c)], CuPy.stream()
        others = [CuPy.put(x) for x in (a, b, c)]
        cupy.cuda.Device(1).synchronize()
    near = [CuPy.put(x) for x in (a, b, c)]
    pyblasgpu.gemm(*near[:2], out=near[2])
    plan = pyblasgpu.plan_gemm(*arrays)
    for chosen in (arrays, others):
        for handle in (stream, None):
            with cupy.cuda.Device(1):  # CuPy launches on the current device
                chosen[2].fill(NAN)
            cupy.cuda.Device(1).synchronize()
            plan(*chosen, stream=handle)
            cupy.cuda.Device(1).synchronize()
            same(cupy.asnumpy(chosen[2]), a @ b, f"stream {handle}")


# ------------------------------------------------------------------------------------------------- capture


@LIBRARIES
@pytest.mark.parametrize("kind", ["made with", "others", "packed"])
def test_capture_in_a_graph(library, kind):
    a, b, c = operands()
    if kind == "packed":
        first = [library.put(np.kron(x, np.ones((2, 2))))[::2, ::2] for x in (a, b, c)]
    else:
        first = [library.put(x) for x in (a, b, c)]
    plan = pyblasgpu.plan_gemm(*first, alpha=2)
    assert (plan.workspace > 0) == (kind == "packed")
    arrays = [library.put(x) for x in (a, b, c)] if kind == "others" else first
    library.fill(arrays[2], np.full_like(c, NAN))
    cupy.cuda.Device().synchronize()
    stream = library.stream()
    with library.captured(stream) as graph:
        plan(*arrays)
    cupy.cuda.Device().synchronize()
    assert np.isnan(library.get(arrays[2])).all(), "the capture computed"
    for seed in (0, 5, 6):
        a, b, _ = operands(seed=seed)
        library.fill(arrays[0], a)
        library.fill(arrays[1], b)
        cupy.cuda.Device().synchronize()
        graph.replay()
        cupy.cuda.Device().synchronize()
        same(library.get(arrays[2]), 2 * (a @ b), "replayed")


@pytest.mark.parametrize("which", PLANS)
def test_capture_of_a_recursion_is_kernels_alone(which):
    from cuda.bindings import driver

    case = TriangularCase(D, 300, 33)
    rng = np.random.default_rng(7)
    t, x = triangle(rng, case), integers(rng, (case.m, case.n), D)
    a, b = CuPy.put(t), CuPy.put(x)
    out = cupy.full_like(b, NAN)
    plan = PLANS[which](a, b, out, **flags(case))
    stream = CuPy.stream()
    cupy.cuda.Device().synchronize()
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    assert not driver.cuStreamBeginCapture(stream.ptr, mode)[0]
    plan(a, b, out, stream=stream)
    error, graph = driver.cuStreamEndCapture(stream.ptr)
    assert not error
    error, nodes, count = driver.cuGraphGetNodes(graph, 1000)
    assert not error and count >= 2
    kinds = {driver.cuGraphNodeGetType(node)[1] for node in nodes[:count]}
    driver.cuGraphDestroy(graph)
    assert kinds == {driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL}
    plan(a, b, out, stream=stream)
    stream.synchronize()
    if which == "trmm":
        same(out.get(), exact_triangular(case, t, x), "afterwards")
