"""What the handler enqueues on a device, on one that is none: its addresses are those of the host."""

from __future__ import annotations

import fake_device
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_cases import CASES, random

import pyblasgpu.jax as ours
from pyblasgpu.frontend.backend_status import why_no_device
from pyblasgpu.jax import handler

STREAM = 7


@pytest.fixture
def routines(monkeypatch):
    """The stand-ins of the routines; programs call them in place of the CPU backend."""
    found, _ = fake_device.install(monkeypatch)
    monkeypatch.setattr(
        handler,
        "on_processor",
        lambda text: lambda arguments, results: handler.on_device(text, 0)(arguments, results, STREAM),
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
