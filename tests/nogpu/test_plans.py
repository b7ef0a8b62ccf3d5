"""Plans on arrays in host memory that pass for CuPy's, computed by kernels that are none."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from types import SimpleNamespace

import fake_plans
import numpy as np
import pytest
from fake_device import Array
from fake_plans import FakeWorkspace, Graph
from threads import at_once

from pyblasgpu import plan_gemm, plan_trmm, plan_trsm
from pyblasgpu.dispatch import choose
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.errors import OverlapError
from pyblasgpu.gpu import workspace
from pyblasgpu.testing import reference
from pyblasgpu.types import DTYPES

D, Z = DTYPES["d"], DTYPES["z"]
TRIANGULAR = {"trmm": plan_trmm, "trsm": plan_trsm}


@pytest.fixture
def kernels(monkeypatch):
    with fake_plans.installed(monkeypatch) as log:
        yield log


def placed(values: np.ndarray, order: str = "F", beyond: int = 0) -> np.ndarray:
    """A copy of `values` that lies `beyond` bytes after a multiple of 16."""
    room = np.zeros(values.nbytes + 32, np.uint8)
    start = -room.ctypes.data % 16 + beyond
    copy = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape, order=order)
    copy[...] = values
    return copy


def squares(count: int = 3, n: int = 20, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [placed(reference.integers(rng, (n, n), D)) for _ in range(count)]


# ------------------------------------------------------------------------------------------------ results


def test_stacks(kernels, rng):
    a, b = reference.integers(rng, (3, 1, 4, 5), D), reference.integers(rng, (2, 5, 6), D)
    out = np.zeros((3, 2, 4, 12))[..., ::2]
    arrays = [Array(placed(a, "C")), Array(placed(b, "C")), Array(out)]
    plan = plan_gemm(*arrays)
    plan(*arrays)
    np.testing.assert_array_equal(out, a @ b)
    triangles = placed(np.tril(np.ones((2, 1, 4, 4))), "C")
    x = placed(reference.integers(rng, (3, 4, 3), D), "C")
    result = placed(np.zeros((2, 3, 4, 3)), "C")
    plan = plan_trmm(Array(triangles), Array(x), Array(result), lower=True)
    plan(Array(triangles), Array(x), Array(result))
    np.testing.assert_array_equal(result, triangles @ x)


def test_packed_copies_have_the_plans_own_memory(kernels, rng):
    a, b, c = (
        np.zeros((2 * rows, 2 * cols), complex)[::2, ::2] for rows, cols in ((17, 30), (30, 15), (17, 15))
    )
    arrays = [Array(x) for x in (a, b, c)]
    a[...], b[...], c[...] = (reference.integers(rng, x.shape, Z) for x in (a, b, c))
    plan = plan_gemm(*arrays, alpha=2, beta=-1j)
    assert plan.workspace >= 16 * (17 * 30 + 30 * 15 + 17 * 15) and len(FakeWorkspace.held) == 1
    for busy in (False, True):
        Graph.busy = busy
        expected = 2 * (a @ b) - 1j * c
        plan(*arrays)
        np.testing.assert_array_equal(c, expected)
    del plan
    gc.collect()
    assert not FakeWorkspace.held
    assert plan_gemm(*map(Array, squares())).workspace == 0


def test_a_plan_of_one_launch_holds_its_flags(kernels):
    """Its runs must not overlap, so it has a workspace to tell."""
    t, b = placed(2 * np.eye(300)), placed(np.ones((300, 1)))
    with override("trsm_algorithm", "trsv"):
        plan = plan_trsm(Array(t), Array(b), Array(b), lower=True)
    assert plan.workspace == workspace.ALL_FLAGS and len(FakeWorkspace.held) == 1
    plan(Array(t), Array(b), Array(b))
    assert (b == 0.5).all() and [name for name, *_ in kernels.launches] == ["trsv"]


def test_threads_take_turns_with_the_workspace(kernels):
    arrays = [Array(x[::2, ::2]) for x in squares()]
    plan = plan_gemm(*arrays)
    Graph.busy, inside, most = True, [], []
    enqueue = plan.enqueue

    def slow(pointers, stream):
        inside.append(stream)
        most.append(len(inside))
        threading.Event().wait(0.02)
        enqueue(pointers, stream)
        inside.remove(stream)

    plan.enqueue = slow
    at_once(lambda stream: plan(*arrays, stream=stream), [*zip(range(4))])
    assert most == [1, 1, 1, 1]


# --------------------------------------------------------------------------------------- how a plan is run


def test_the_arrays_it_was_made_with_take_the_graph(kernels):
    a, b, out, other = map(Array, squares(4))
    plan = plan_gemm(a, b, out)
    (graph,) = Graph.made
    plan(a, b, out)
    plan(a, b, out, stream=SimpleNamespace(ptr=11))
    plan(a, other, out)
    plan(a, Array(b.host), out)  # other objects may be anything
    plan(a, b, out, stream=13)
    assert graph.streams == [7, 11, 13]
    assert [stream for *_, stream in kernels.launches] == [7, 11, 7, 7, 13]


def test_a_refused_graph_is_no_loss(kernels):
    a, b, out = map(Array, squares())
    plan, Graph.busy = plan_gemm(a, b, out), True
    plan(a, b, out)
    np.testing.assert_array_equal(out.host, a.host @ b.host)
    assert not Graph.made[0].streams


def test_its_stream_is_its_own_or_the_librarys_or_the_calls(kernels):
    a, b, out = map(Array, squares())
    for made, called, stream in ((None, None, 7), (5, None, 5), (0, None, 0), (5, 6, 6), (None, 0, 0)):
        plan = plan_gemm(a, b, out, stream=made)
        assert plan.stream == made
        plan(a, b, out, stream=called)
        assert kernels.launches.pop()[2] == stream
    with pytest.raises(TypeError, match="stream must be"):
        plan(a, b, out, stream="main")


def test_an_array_that_was_reshaped_is_another(kernels):
    a, b, out = map(Array, squares())
    plan = plan_gemm(a, b, out)
    a.host = a.host.reshape(10, 40)
    with pytest.raises(ValueError, match=r"plan_gemm: a has shape \(10, 40\)"):
        plan(a, b, out)


def test_it_holds_no_arrays(kernels):
    a, b, out = map(Array, squares())
    plan = plan_gemm(a, b, out)
    plan(a, b, out)
    alive = [weakref.ref(array) for array in (a, b, out)]
    del a, b, out
    gc.collect()
    assert [array() for array in alive] == [None] * 3
    again = [Array(x) for x in squares()]
    plan(*again)
    np.testing.assert_array_equal(again[2].host, again[0].host @ again[1].host)


def test_it_keeps_what_was_chosen(kernels):
    a, b, out = map(Array, squares())
    plan = plan_gemm(a, b, out)
    choose.reload()
    out.host[...] = 0
    plan(a, b, out)
    np.testing.assert_array_equal(out.host, a.host @ b.host)


def test_nothing_to_do_is_done(kernels):
    a, b, out = map(Array, squares())
    before = out.host.copy()
    plan = plan_gemm(a, b, out, alpha=0, beta=1)
    assert plan(a, b, out) is out
    empty = Array(np.zeros((0, 20)))
    assert plan_gemm(empty, b, empty)(empty, b, empty) is empty
    np.testing.assert_array_equal(out.host, before)
    assert not kernels.launches and not Graph.made


# ------------------------------------------------------------------------------------------------- misuse


ONE = np.ones((8, 8), order="F")


class Subclass(Array):
    """A type of its own of a library that plans take."""


Subclass.__module__ = "cupy"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"a": np.ones((8, 9))}, ValueError, r"plan_gemm: a has shape \(8, 9\), .* made with shape \(8, 8\)"),
        ({"b": np.ones((8, 8))}, ValueError, r"b has shape \(8, 8\), strides \(64, 8\), .* \(8, 64\)"),
        ({"out": ONE.astype("f4", order="F")}, ValueError, "out has .* float32 on device 0; .* float64"),
        ({"b": Array(ONE, device=1)}, ValueError, "b has .* on device 1; .* on device 0"),
        ({"b": placed(ONE, beyond=8)}, ValueError, "b begins 8 bytes beyond a multiple of 16; .* for 0"),
        ({"out": "a"}, OverlapError, "plan_gemm: out shares memory with a"),
        ({"out": "b"}, OverlapError, "plan_gemm: out shares memory with b"),
        ({"a": None}, TypeError, "a NoneType is not an array"),
    ],
)
def test_an_array_that_does_not_fit_is_named(kernels, change, error, message):
    arrays = {name: Array(placed(ONE)) for name in ("a", "b", "out")}
    plan = plan_gemm(*arrays.values())
    for name, value in change.items():
        value = Array(value) if isinstance(value, np.ndarray) else value
        arrays[name] = arrays[value] if isinstance(value, str) else value
    with pytest.raises(error, match=message):
        plan(**arrays)
    assert not kernels.launches


def test_arrays_of_another_library_are_named(kernels):
    a, b, out = (Array(placed(ONE)) for _ in range(3))
    plan = plan_gemm(a, b, out)
    with pytest.raises(TypeError, match="a is a CuPy array and out a NumPy array"):
        plan(a, b, ONE)
    with pytest.raises(TypeError, match=r"plan_gemm: a, b and out must be CuPy arrays .* numpy\.ndarray"):
        plan(ONE, ONE, ONE)


def test_neighbours_are_no_overlap(kernels):
    room = placed(np.zeros((16, 24)), "F")
    a, b, out = (Array(room[:8, 8 * i : 8 * i + 8]) for i in range(3))
    plan = plan_gemm(a, b, out)
    below = Array(room[8:, 8:16])  # between the columns of b, in another view
    a.host[...] = b.host[...] = 1
    plan(a, b, below)
    assert (below.host == 8).all() and (b.host == 1).all()


def test_in_place_stays_in_place(kernels):
    t, b, other = (Array(placed(ONE)) for _ in range(3))
    plan = plan_trmm(t, b, b)
    with pytest.raises(ValueError, match="plan_trmm: the plan was made with out=b"):
        plan(t, b, other)
    with pytest.raises(OverlapError, match="plan_trmm: out shares memory with a"):
        plan(t, t, t)
    plan(t, other, other)
    apart = plan_trmm(t, b, other)
    with pytest.raises(OverlapError, match="out shares memory with b"):
        apart(t, b, b)


@pytest.mark.parametrize(
    ("arrays", "options", "error", "message"),
    [
        ((ONE, ONE, ONE), {}, TypeError, "plan_gemm: a plan is for arrays on a device, not for NumPy"),
        ((Array(ONE), Array(ONE), None), {}, TypeError, "plan_gemm: out is needed"),
        ((Subclass(ONE), Array(ONE), Array(ONE * 1)), {}, TypeError, r"must be CuPy .* cupy\.Subclass, cupy"),
        ((Array(ONE), Array(ONE.astype("i4")), Array(ONE * 1)), {}, TypeError, "b has dtype int32 .* casts"),
        ((Array(ONE), Array(ONE), Array(ONE.astype("f4"))), {}, TypeError, "out has dtype float32"),
        ((Array(ONE), Array(np.ones((7, 8))), Array(ONE * 1)), {}, ValueError, "op\\(b\\) 7 by 8"),
        ((Array(ONE), Array(ONE), Array(ONE)), {}, OverlapError, "plan_gemm: out shares memory with a"),
        ((Array(ONE), Array(ONE), Array(ONE * 1)), {"trans_a": "X"}, ValueError, "plan_gemm: trans_a='X'"),
        ((Array(ONE), Array(ONE), Array(ONE * 1)), {"beta": 1j}, TypeError, "beta=1j is complex"),
        ((Array(ONE), Array(ONE), Array(ONE * 1)), {"stream": "x"}, TypeError, "stream must be"),
    ],
)
def test_no_plan_of_what_does_not_fit(kernels, arrays, options, error, message):
    with pytest.raises(error, match=message):
        plan_gemm(*arrays, **options)


@pytest.mark.parametrize("move", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_plan_stays_in_its_process(kernels, move):
    plan = plan_gemm(*(Array(placed(ONE)) for _ in range(3)))
    with pytest.raises(TypeError, match="plan_gemm: a plan serves the process that made it"):
        move(plan)


def test_a_plan_says_what_it_is_for(kernels):
    plan = plan_gemm(*(Array(placed(ONE)) for _ in range(3)))
    assert repr(plan) == "<Plan by plan_gemm for (8, 8), (8, 8), (8, 8) of float64 on device 0>"
