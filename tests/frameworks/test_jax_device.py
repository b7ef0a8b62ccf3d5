"""What the handler enqueues on a device, on one that is none: its addresses are those of the host."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import fake_device
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_cases import CASES, random

import pyblasgpu.jax as ours
from pyblasgpu.frontend.backend_status import why_no_device
from pyblasgpu.gpu import workspace
from pyblasgpu.jax import handler, launch

STREAM = 7


@pytest.fixture
def routines(monkeypatch):
    """The stand-ins of the routines; programs call them in place of the CPU backend."""
    found, _ = fake_device.install(monkeypatch)
    monkeypatch.setattr(
        handler,
        "on_processor",
        lambda text: lambda arguments, results: handler.on_device(text, 0).run(arguments, results, STREAM),
    )
    handler.on_device.cache_clear()
    yield found
    handler.on_device.cache_clear()
    why_no_device.cache_clear()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results_are_those_of_the_processor(case, request):
    function, arrays = case.function()
    expected = function(*arrays)
    request.getfixturevalue("routines")
    found = function(*arrays)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-12, 1e-12), found, expected)


def test_transposes_and_stacks_are_views(routines):
    a, b = random(np.dtype("complex128"), 3, 1, 4, 5), random(np.dtype("complex128"), 2, 4, 6)
    np.testing.assert_allclose(ours.gemm(a, b, trans_a="C"), a.mT.conj() @ b, 1e-12, 1e-12)
    assert [(name, stream) for name, stream, _ in routines.calls] == [("gemm", STREAM)] * len(routines.calls)


def test_a_method_is_an_argument_of_the_launch_list(routines):
    """The product has it, and those of its gradient."""
    a, b = random(np.dtype("float64"), 4, 5), random(np.dtype("float64"), 5, 2)
    jax.grad(lambda a: jnp.sin(ours.gemm(a, b, method="tensor")).sum())(a)
    assert [name for name, *_ in routines.calls] == ["gemm tensor"] * 2


def test_a_repeated_call_prepares_nothing(routines, monkeypatch):
    """And so for other addresses, of the same alignment."""
    step = jax.jit(lambda a: ours.matmul(a, a))
    a = jnp.arange(16.0).reshape(4, 4)
    step(a)
    monkeypatch.setattr(handler.CachedCall, "_bind", None)
    for i in range(3):
        np.testing.assert_array_equal(step(a + i), (a + i) @ (a + i))


@pytest.mark.parametrize(("devices", "exports"), [(1, False), (1, True), (2, False)])
def test_a_program_for_the_only_device_has_the_workspace_of_its_calls(monkeypatch, devices, exports):
    """Each is a result of the call, which XLA may capture then."""
    monkeypatch.setattr(launch, "first_device", lambda: 0)
    monkeypatch.setattr(launch, "prepare", lambda text, device: 1000 * (device == 0 and "trsm" in text))
    launch.may_be_captured.cache_clear()
    monkeypatch.setattr(jax, "local_devices", lambda backend: [backend] * devices)
    program = jax.jit(lambda a, b: ours.matmul(a, ours.solve_triangular(a, b, lower=True)))
    a = jnp.eye(3)
    if exports:
        checks = [jax.export.DisabledSafetyCheck.custom_call(handler.TARGET)]
        text = jax.export.export(program, platforms=["cuda"], disabled_checks=checks)(a, a).mlir_module()
    else:
        text = program.trace(a, a).lower(lowering_platforms=("cuda",)).as_text()
    launch.may_be_captured.cache_clear()
    captured = devices == 1 and not exports
    assert text.count(handler.CAPTURED_TARGET) == 2 * captured
    assert text.count(f"{handler.TARGET}(") == 2 * (not captured) or not captured
    assert ("tensor<1000xui8>" in text) == captured


def test_a_call_with_its_workspace_allocates_nothing(routines, monkeypatch):
    """And takes nothing of it that is not there."""
    taken = []

    def run(arguments, results, stream):
        taken.append((results, workspace.take(500, 0, stream, True)))
        workspace.give(taken[-1][1])

    cleared = []
    monkeypatch.setattr(workspace.memory, "clear", lambda *where: cleared.append(where))
    monkeypatch.setattr(handler, "stream", lambda frame: (STREAM, 0))
    monkeypatch.setattr(handler, "on_device", cache(lambda text, device: handler.Prepared(run, 2, 1, True)))
    monkeypatch.setattr(handler, "length", lambda results, place: workspace.ALL_FLAGS + 800)
    handler.run_on_device(SimpleNamespace(results=None), b"", [], [512, 1024, 10_000])
    ((results, room),) = taken
    assert results == [512, 1024] and room.address == 10_240 + workspace.ALL_FLAGS
    assert room.nbytes == 800 - 240 and cleared == [(10_240, workspace.ALL_FLAGS, STREAM)]
