"""Functions of JAX on a card: results, derivatives, maps, threads, streams, and the end of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # this library needs memory of its own
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
cases = pytest.importorskip("jax_cases")
ours = pytest.importorskip("pyblasgpu.jax")

DTYPES = ["float32", "float64", "complex64", "complex128"]
#: Seconds after which a process that should have ended is taken to hang.
PATIENCE = 240


@pytest.fixture(scope="module", autouse=True)
def card():
    """The first card and the processor, of one process."""
    try:
        device = jax.devices("cuda")[0]
    except RuntimeError:
        pytest.skip("this JAX has no GPU")
    before = jax.config.jax_default_matmul_precision
    jax.config.update("jax_default_matmul_precision", "highest")  # else JAX's float32 products are TF32's
    with jax.default_device(device):
        yield device
    jax.config.update("jax_default_matmul_precision", before)


def close(found, expected, tolerance=None):
    """Results are near those of another computation."""

    def check(x, y):
        x, y = np.asarray(x), np.asarray(y)
        bound = tolerance or (2e-3 if x.dtype in ("float32", "complex64") else 1e-9)
        scale = np.abs(y).max(initial=1)
        np.testing.assert_allclose(x / scale, y / scale, bound, bound)

    jax.tree.map(check, found, expected)


def on(device, tree):
    """Arrays on a device."""
    return jax.tree.map(lambda x: jax.device_put(x, device) if isinstance(x, jax.Array) else x, tree)


@pytest.mark.parametrize("case", cases.CASES.values(), ids=cases.CASES)
def test_results_and_gradients_are_those_of_the_processor(case, card):
    function, arrays = case.function()

    @jax.jit
    def computed(arrays):
        outputs, back = jax.vjp(function, *arrays)
        return outputs, back(jax.tree.map(jnp.ones_like, outputs))

    processor = jax.devices("cpu")[0]
    with jax.default_device(processor):
        expected = computed(on(processor, tuple(arrays)))
    found = computed(on(card, tuple(arrays)))
    assert all(x.devices() == {card} for x in jax.tree.leaves(found))
    close(found, expected)


FUNCTIONS = {
    "matmul": (lambda p, b: ours.matmul(p, b), lambda p, b: p @ b),
    "cholesky": (lambda p, b: ours.cholesky(p), lambda p, b: jnp.linalg.cholesky(p)),
    "solve_triangular": (
        lambda p, b: ours.solve_triangular(p, b, lower=True),
        lambda p, b: jax.scipy.linalg.solve_triangular(p, b, lower=True),
    ),
    "cho_solve": (
        lambda p, b: ours.cho_solve(ours.cho_factor(p), b),
        lambda p, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(p), b),
    ),
    "solve": (lambda p, b: ours.solve(p, b), lambda p, b: jnp.linalg.solve(p, b)),
    "inv": (lambda p, b: ours.inv(p), lambda p, b: jnp.linalg.inv(p)),
    "slogdet": (lambda p, b: ours.slogdet(p)[1], lambda p, b: jnp.linalg.slogdet(p)[1]),
    "qr": (lambda p, b: ours.qr(b).R, lambda p, b: jnp.linalg.qr(b).R),
    "eigvalsh": (lambda p, b: ours.eigvalsh(p), lambda p, b: jnp.linalg.eigvalsh(p)),
    "svdvals": (lambda p, b: ours.svdvals(p), lambda p, b: jnp.linalg.svdvals(p)),
    "pinv": (lambda p, b: ours.pinv(p), lambda p, b: jnp.linalg.pinv(p)),
    "gemm by a method": (lambda p, b: ours.gemm(p, b, method="tensor"), lambda p, b: p @ b),
    "inv_quad_logdet": (
        lambda p, b: ours.inv_quad_logdet(p, b)[0],
        lambda p, b: (b.conj() * jnp.linalg.solve(p, b)).real.sum((-2, -1)),
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("batch", "n"), [((), 1500), ((3,), 300), ((50,), 40)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_jaxs(name, batch, n, dtype):
    p = cases.spd(np.dtype(dtype), *batch, n, n) / n
    b = cases.random(np.dtype(dtype), *batch, n, 5)

    def computed(function):
        def value(p, b):
            return jnp.abs(function(cases.hermitian(p), b)).mean()

        return jax.jit(jax.value_and_grad(value, (0, 1)))(p, b)

    (value, grads), (expected, others) = map(computed, FUNCTIONS[name])
    close(value, expected)
    close(grads, others, 5e-2 if p.dtype in ("float32", "complex64") else 1e-8)


@pytest.mark.parametrize("upper", [False, True])
def test_a_map_is_a_loop(upper):
    stack = cases.spd(np.dtype("float64"), 7, 90, 90)
    gradient = jax.grad(lambda k: jnp.sin(ours.cholesky(k, upper=upper)).sum())
    close(jax.jit(jax.vmap(gradient))(stack), jnp.stack([gradient(k) for k in stack]))


def test_hessians_of_a_likelihood():
    x = jnp.linspace(0, 4, 200)

    def value(of, scale):
        return of(jnp.exp(-((x[:, None] - x) ** 2) / scale) + 0.1 * jnp.eye(200))

    def theirs(k):
        return jnp.sin(x) @ jnp.linalg.solve(k, jnp.sin(x)) + jnp.linalg.slogdet(k)[1]

    mine = jax.jit(jax.hessian(partial(value, lambda k: sum(ours.inv_quad_logdet(k, jnp.sin(x))))))
    close(mine(0.7), jax.hessian(partial(value, theirs))(0.7), 1e-6)


def test_not_positive_definite_is_nan_and_waits_for_nothing():
    k = jnp.stack([jnp.eye(64), -jnp.eye(64)])
    factor = jax.jit(ours.cholesky)(k)
    assert jnp.isnan(factor[1]).all()
    assert (factor[0] == jnp.eye(64)).all()


def test_work_is_in_the_order_of_xlas_stream():
    """A product of what XLA still computes, and XLA's use of it, in programs that follow at once."""
    step = jax.jit(lambda a: jnp.tanh(ours.matmul(a, a) / 2048) + 1)
    plain = jax.jit(lambda a: jnp.tanh(a @ a / 2048) + 1)
    a = b = cases.random(np.dtype("float64"), 2048, 2048)
    for _ in range(10):
        a, b = step(a), plain(b)
    close(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_calls_that_xla_captures_are_those_of_other_arrays(dtype):
    """A program of many calls, with workspace and flags, on arrays at other addresses each time."""

    def value(k, y):
        factor = ours.cholesky(k)
        white = ours.solve_triangular(factor, y, lower=True)
        return (
            (jnp.abs(white) ** 2).sum()
            + 2 * jnp.log(jnp.diagonal(factor).real).sum()
            + jnp.abs(ours.inv(k)).sum()
        )

    step, kept = jax.jit(jax.value_and_grad(value)), []
    for i in range(6):
        x, y = cases.random(np.dtype(dtype), 300, 300), cases.random(np.dtype(dtype), 300, 40)
        k = x @ x.T.conj() / 300 + (1 + i) * jnp.eye(300, dtype=dtype)
        kept.append((k, y, step(k, y)))
    for k, y, found in kept:
        close(found, jax.value_and_grad(value)(k, y), 2e-3 if dtype in ("float32", "complex64") else 1e-9)


def test_calls_from_several_threads():
    a = cases.random(np.dtype("float64"), 300, 300)
    step = jax.jit(lambda a: ours.matmul(a, a) / 300)
    cases.called_by_threads(step, a, np.asarray(a @ a / 300), 50)


def test_an_error_of_a_handler_is_the_programs(monkeypatch):
    from pyblasgpu.jax import handler

    def fails(text, device):
        raise MemoryError("nothing left")

    program = jax.jit(ours.matmul).lower(jnp.ones((3, 5)), jnp.ones((5, 3))).compile()
    monkeypatch.setattr(handler, "on_device", fails)
    with pytest.raises(Exception, match=r"pyblasgpu: gemm: MemoryError: nothing left"):
        jax.block_until_ready(program(jnp.ones((3, 5)), jnp.ones((5, 3))))


@pytest.mark.parametrize("library", ["tinygp", "numpyro"])
def test_programs_that_call_ours(library):
    pytest.importorskip(library)
    programs = pytest.importorskip("jax_programs")
    run = programs.PROGRAMS[library]
    close(run(programs.OURS), run(programs.THEIRS), 1e-6)


END = """
import jax, jax.numpy as jnp, pyblasgpu.jax as ours
assert jax.devices()[0].platform == "gpu"
f = jax.jit(lambda a: ours.cholesky(ours.matmul(a, a.T) + jnp.eye(4000) * 4000) @ a)
a = jnp.ones((4000, 4000))
f(a).block_until_ready()
for _ in range(5):
    y = f(a)
"""


@pytest.mark.parametrize("end", ["", "del y", "y.block_until_ready()"], ids=["kept", "dropped", "awaited"])
def test_a_process_ends_while_calls_are_pending(end):
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    ended = subprocess.run(
        [sys.executable, "-c", END + end], capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    assert ended.returncode == 0, ended.stderr


TWO_CARDS = """
import jax, jax.numpy as jnp, numpy as np, pyblasgpu.jax as ours
from functools import partial
from jax.sharding import Mesh, PartitionSpec as P
jax.config.update("jax_enable_x64", True)
mesh = Mesh(np.array(jax.devices()[:2]), ("i",))
k = jnp.stack([jnp.eye(300) * i + 0.1 for i in range(1, 5)])
b = jnp.ones((300, 3))
"""
COMPARED = """
for found, expected in zip(jax.grad(value, (0, 1))(k, b), jax.grad(plain, (0, 1))(k, b)):
    np.testing.assert_allclose(found, expected, 1e-8, 1e-8)
"""


def test_two_cards():
    if len(jax.devices("cuda")) < 2:
        pytest.skip("needs two cards")
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    ended = subprocess.run(
        [sys.executable, "-c", TWO_CARDS + cases.OF_SHARDS + COMPARED],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
    )
    assert ended.returncode == 0, ended.stderr
