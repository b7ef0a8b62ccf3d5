"""Each operator of the table under JAX's transformations: gradients, tangents, batches, compiled programs."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_cases import CASES, hermitian, spd

import pyblasgpu.jax
from pyblasgpu.jax.arrays import ARRAYS


def close(found, expected, tolerance=1e-9):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, tolerance, tolerance), found, expected)


def like(trees, seed):
    """Normal numbers of the shapes and dtypes of arrays."""
    rng = np.random.default_rng(seed)

    def one(x):
        values = rng.normal(size=x.shape) + 1j * rng.normal(size=x.shape)
        return jnp.asarray(values if x.dtype.kind == "c" else values.real, x.dtype)

    return jax.tree.map(one, trees)


def paired(one, other):
    """The pairing that transposes a linear map."""
    return sum(jnp.sum(x * y).real for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_derivatives_are_those_of_differences(case):
    """Derivatives are of the first order, and of the second one in all pairs of modes."""
    function, arrays = case.function()
    arrays = tuple(arrays)
    steps, weights = like(arrays, 1), like(jax.eval_shape(function, *arrays), 2)

    @jax.jit
    def first(*arrays):
        value, tangent = jax.jvp(function, arrays, steps)
        gradient = jax.vjp(function, *arrays)[1](weights)
        return value, tangent, gradient

    @jax.jit
    def second(arrays, cotangents):
        moved = jax.jvp(first, arrays, steps)[1]
        return moved, jax.vjp(first, *arrays)[1](cotangents)

    size = 1e-6
    moved_by = lambda sign: jax.tree.map(lambda x, t: x + sign * size * t, arrays, steps)  # noqa: E731
    more, less = first(*moved_by(1)), first(*moved_by(-1))
    differences = jax.tree.map(lambda x, y: (x - y) / (2 * size), more, less)
    _, tangent, gradient = first(*arrays)
    cotangents = like(more, 3)
    moved, back = second(arrays, cotangents)
    close(tangent, differences[0], 1e-6)
    close(moved, differences, 1e-6)
    close(paired(gradient, steps), paired(weights, tangent))
    close(paired(back, steps), paired(cotangents, moved))


MAPPED = {name: case for name, case in CASES.items() if name.startswith("float64")}


@pytest.mark.parametrize("case", MAPPED.values(), ids=MAPPED)
def test_a_map_is_a_loop(case):
    """Over each array alone, whose new dimension is the last, and over all of them; and so of gradients."""
    function, arrays = case.function()
    weights = like(jax.eval_shape(function, *arrays), 2)

    def computed(*arrays):
        value, back = jax.vjp(function, *arrays)
        return value, back(weights)

    places = range(len(arrays))
    for mapped in [*[{place} for place in places], set(places)]:
        axes = tuple(-1 if place in mapped else None for place in places)
        stacks = [
            jnp.stack([array, 2 * array, array / 3], axis=-1) if place in mapped else array
            for place, array in enumerate(arrays)
        ]

        @jax.jit
        def loop(i, *stacks, mapped=mapped):
            return computed(*[x[..., i] if place in mapped else x for place, x in enumerate(stacks)])

        each = [loop(i, *stacks) for i in range(3)]
        expected = jax.tree.map(lambda *parts: jnp.stack(parts), *each)
        close(jax.jit(jax.vmap(computed, axes))(*stacks), expected)


@pytest.mark.parametrize("name", ["trsm", "cholesky_ex", "solve_ex", "inv_quad_logdet"])
def test_jacobians_of_both_modes_agree(name):
    function, arrays = next(case for case in MAPPED.values() if case.name == name).function()
    places = tuple(range(len(arrays)))
    close(*[jax.jit(mode(function, places))(*arrays) for mode in (jax.jacfwd, jax.jacrev)])


#: Operators by the arrays in which they are linear.
LINEAR = {"gemm": (1, 2), "symm": (1,), "trmm": (1,), "trsm": (1,), "cholesky_solve": (0,), "solve_ex": (1,)}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_calls_are_transposed(name):
    """And their transposes again."""
    function, arrays = next(case for case in reversed(CASES.values()) if case.name == name).function()
    free = [i for i in LINEAR[name] if i < len(arrays)]

    def call(*given):
        each = iter(given)
        return function(*[next(each) if i in free else x for i, x in enumerate(arrays)])

    given = [arrays[i] for i in free]
    value = call(*given)
    weights = like(value, 4)
    back = jax.linear_transpose(call, *given)
    close(paired(back(weights), given), paired(weights, value))
    close(jax.linear_transpose(back, weights)(tuple(given))[0], value)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_blocked_reverse_mode_is_that_of_whole_products(monkeypatch, dtype, upper):
    from pyblasgpu.operators import cholesky

    def gradient(k):
        return jax.grad(lambda k: jnp.sin(jnp.abs(ARRAYS.cholesky_ex(hermitian(k), upper)[0])).sum())(k)

    k = spd(np.dtype(dtype), 2, 23, 23)
    expected = gradient(k)
    monkeypatch.setattr(cholesky, "leaf_order", lambda batch: 5)
    close(gradient(k), expected)


def test_operands_are_not_transposed_for_a_flag():
    """A transpose is a flag of the routine: programs of derivatives copy no operand for it."""
    a, b = spd(np.dtype("float64"), 8, 8), spd(np.dtype("float64"), 8, 8)
    back = jax.jit(jax.grad(lambda b: jnp.sin(ARRAYS.trsm(a, b, 1, True, True, False)).sum()))
    text = str(jax.make_jaxpr(back)(b))
    assert "transpose[" not in text


@pytest.mark.parametrize("wrap", [lambda f: f, jax.checkpoint, jax.jit], ids=["plain", "checkpoint", "jit"])
def test_derivatives_of_loops(wrap):
    """JAX splits loops into what it knows and what it transposes: both parts are differentiated again."""

    def loss(cholesky, k):
        def body(k, scale):
            factor = cholesky(k * scale)
            return k + 0.1 * (factor + factor.mT), factor.sum()

        k, sums = jax.lax.scan(body, k, jnp.array([1.0, 2.0, 3.0]))
        return sums.sum() + k.sum()

    k = spd(np.dtype("float64"), 4, 4)
    ours, theirs = (partial(loss, each) for each in (pyblasgpu.jax.cholesky, jnp.linalg.cholesky))
    close(jax.jit(jax.grad(wrap(ours)))(k), jax.grad(theirs)(k))
    second = jax.jit(jax.jacfwd(jax.grad(wrap(ours))))(k)
    close(second, jax.jacfwd(jax.grad(theirs))(k), 1e-7)


def test_a_hessian_of_a_likelihood():
    x = jnp.linspace(0, 4, 9)

    def value(of, scale):
        k = jnp.exp(-((x[:, None] - x) ** 2) / scale) + 0.1 * jnp.eye(9)
        return of(k)

    def ours(k):
        quad, logdet = ARRAYS.inv_quad_logdet(k, jnp.sin(x)[:, None])[:2]
        return quad + logdet

    def theirs(k):
        return jnp.sin(x) @ jnp.linalg.solve(k, jnp.sin(x)) + jnp.linalg.slogdet(k)[1]

    hessians = [jax.jit(jax.hessian(lambda scale, of=of: value(of, scale)))(0.7) for of in (ours, theirs)]
    close(*hessians)
