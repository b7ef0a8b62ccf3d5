"""Functions of `pyblasgpu.jax` compared with those of `jax.numpy` and `jax.scipy`: results, errors."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import linalg as scipys
from jax_cases import hermitian, random, spd

import pyblasgpu.jax as ours

DTYPES = ["float32", "float64", "complex64", "complex128"]
#: Calls by a name, of our functions and of JAX's.
CALLS = {
    "matmul": (lambda p, a, b: ours.matmul(a, b), lambda p, a, b: a @ b),
    "gemm": (
        lambda p, a, b: ours.gemm(a, b, a[..., :3], alpha=2, beta=jnp.float32(0.5), trans_a="C"),
        lambda p, a, b: 2 * a.mT.conj() @ b + jnp.float32(0.5) * a[..., :3],
    ),
    "gemm of transposes": (
        lambda p, a, b: ours.gemm(b, a, trans_a="T", trans_b="T"),
        lambda p, a, b: b.mT @ a.mT,
    ),
    "gemm by a method": (
        lambda p, a, b: ours.gemm(a, b, alpha=jnp.float32(2), trans_a="C", method="tensor"),
        lambda p, a, b: 2 * a.mT.conj() @ b,
    ),
    "qr": (lambda p, a, b: tuple(ours.qr(b)), lambda p, a, b: tuple(jnp.linalg.qr(b))),
    "qr, r": (lambda p, a, b: ours.qr(b, mode="r"), lambda p, a, b: jnp.linalg.qr(b, mode="r")),
    "qr, complete": (
        lambda p, a, b: tuple(ours.qr(a, "complete")),
        lambda p, a, b: tuple(jnp.linalg.qr(a, "complete")),
    ),
    "cholesky": (lambda p, a, b: ours.cholesky(p), lambda p, a, b: jnp.linalg.cholesky(p)),
    "cholesky, upper": (
        lambda p, a, b: ours.cholesky(p, upper=True),
        lambda p, a, b: jnp.linalg.cholesky(p, upper=True),
    ),
    "cho_solve": (
        lambda p, a, b: ours.cho_solve(ours.cho_factor(p), b),
        lambda p, a, b: scipys.cho_solve(scipys.cho_factor(p), b),
    ),
    "cho_solve, lower": (
        lambda p, a, b: ours.cho_solve(ours.cho_factor(p, lower=True), b[..., 0, :, 0]),
        lambda p, a, b: scipys.cho_solve(scipys.cho_factor(p, lower=True), b[..., 0, :, 0]),
    ),
    "solve": (lambda p, a, b: ours.solve(a, b), lambda p, a, b: jnp.linalg.solve(a, b)),
    "inv": (lambda p, a, b: ours.inv(a), lambda p, a, b: jnp.linalg.inv(a)),
    "det": (lambda p, a, b: ours.det(a), lambda p, a, b: jnp.linalg.det(a)),
    "slogdet": (lambda p, a, b: tuple(ours.slogdet(a)), lambda p, a, b: tuple(jnp.linalg.slogdet(a))),
    "logdet": (lambda p, a, b: ours.logdet(p), lambda p, a, b: jnp.linalg.slogdet(p)[1].astype(p.dtype)),
    "lu_factor": (lambda p, a, b: ours.lu_factor(a)[0], lambda p, a, b: scipys.lu_factor(a)[0]),
    "inv_quad_logdet": (
        lambda p, a, b: ours.inv_quad_logdet(hermitian(p), b),
        lambda p, a, b: (
            (b.conj() * jnp.linalg.solve(hermitian(p), b)).real.sum((-2, -1)),
            jnp.linalg.slogdet(hermitian(p))[1],
        ),
    ),
}
for _trans in range(3):
    for _lower in (False, True):
        CALLS[f"solve_triangular {_trans} {_lower}"] = (
            lambda p, a, b, t=_trans, low=_lower: ours.solve_triangular(p, b, t, low, unit_diagonal=t == 1),
            lambda p, a, b, t=_trans, low=_lower: scipys.solve_triangular(p, b, t, low, unit_diagonal=t == 1),
        )
    CALLS[f"lu_solve {_trans}"] = (
        lambda p, a, b, t=_trans: ours.lu_solve(ours.lu_factor(a), b, t),
        lambda p, a, b, t=_trans: scipys.lu_solve(scipys.lu_factor(a), b, t),
    )


def operands(dtype, batch=(2,)):
    dtype = np.dtype(dtype)
    return (
        spd(dtype, *batch, 4, 4),
        random(dtype, *batch, 4, 4) + 3 * jnp.eye(4, dtype=dtype),
        random(dtype, *batch, 4, 3),
    )


def close(found, expected):
    def check(x, y):
        assert x.dtype == y.dtype
        tolerance = 2e-3 if x.dtype in ("float32", "complex64") else 1e-10
        np.testing.assert_allclose(x, y, tolerance, tolerance)

    jax.tree.map(check, found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_jax(name, dtype):
    given = operands(dtype)
    found, expected = (call(*given) for call in CALLS[name])
    close(found, expected)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_those_of_jax(name):
    given = operands("complex128", (1,))

    def gradient(call):
        def value(*given):
            return sum(jnp.sin(jnp.abs(x)).sum() for x in jax.tree.leaves(call(*given)))

        p, a, b = jax.jit(jax.grad(value, (0, 1, 2)))(*given)
        # of a matrix that is read as Hermitian, and of a triangle
        return (hermitian(p) if "triangular" not in name else p), a, b

    close(*map(gradient, CALLS[name]))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_matrices_without_elements(shape):
    a = jnp.zeros(shape)
    assert ours.cholesky(a).shape == ours.inv(a).shape == ours.matmul(a, a).shape == shape
    assert ours.solve(a, a).shape == ours.solve_triangular(a, a).shape == shape
    np.testing.assert_array_equal(ours.det(a), jnp.ones(shape[:-2]))
    q, r = ours.qr(jnp.zeros((*shape[:-1], 0)), mode="complete")
    np.testing.assert_array_equal(q, np.broadcast_to(np.eye(shape[-2]), (*shape[:-1], shape[-2])))
    assert r.shape == (*shape[:-1], 0)
    np.testing.assert_array_equal(ours.matmul(jnp.zeros((2, 0)), jnp.zeros((0, 3))), np.zeros((2, 3)))
    assert jax.grad(lambda x: ours.slogdet(x)[1].sum())(a).shape == shape


def test_other_dtypes_are_jax_s():
    whole = jnp.array([[4, 2], [2, 5]])
    close(ours.cholesky(whole), jnp.linalg.cholesky(whole))
    close(ours.solve(whole, whole), jnp.linalg.solve(whole, whole))
    close(tuple(ours.qr(whole)), tuple(jnp.linalg.qr(whole)))
    half = whole.astype(jnp.bfloat16)
    assert ours.matmul(half, half).dtype == jnp.bfloat16
    assert ours.matmul(whole.astype("float32"), whole.astype("float64")).dtype == jnp.float64
    close(ours.matmul(jnp.ones(3), jnp.ones((3, 2))), jnp.ones(3) @ jnp.ones((3, 2)))


def test_matrices_that_are_not_positive_definite_give_nan():
    """Only their own results, and without waiting: nothing is raised."""
    bad, good = jnp.array([[1.0, 2.0], [2.0, 1.0]]), jnp.eye(2)
    factors = ours.cholesky(jnp.stack([bad, good]))
    assert jnp.isnan(factors[0]).all()
    assert (factors[1] == good).all()
    quad, logdet = ours.inv_quad_logdet(jnp.stack([bad, good]), jnp.ones((2, 2, 1)))
    np.testing.assert_array_equal(quad, [np.nan, 2])
    np.testing.assert_array_equal(logdet, [np.nan, 0])
    assert jnp.isnan(ours.logdet(jnp.diag(jnp.array([1.0, -1.0]))))


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    singular = jnp.array([[1.0, 2.0], [2.0, 4.0]])
    found = jax.grad(ours.det)(singular)
    np.testing.assert_allclose(found, [[4.0, -2.0], [-2.0, 1.0]], 1e-9)


ERRORS = {
    "solve: a has shape (2, 3); a square matrix": lambda: ours.solve(jnp.ones((2, 3)), jnp.ones((2, 1))),
    "solve: a has shape (2, 2) and b (3, 1)": lambda: ours.solve(jnp.eye(2), jnp.ones((3, 1))),
    "cholesky: a has shape (3,); a square": lambda: ours.cholesky(jnp.ones(3)),
    "solve_triangular: a has shape (2, 2) and b (3,": lambda: ours.solve_triangular(jnp.eye(2), jnp.ones(3)),
    "matmul: a has shape (2, 3) and b (2, 3)": lambda: ours.matmul(jnp.ones((2, 3)), jnp.ones((2, 3))),
    "gemm: beta=2 needs c": lambda: ours.gemm(jnp.eye(2), jnp.eye(2), beta=2),
    "gemm: c has shape (3, 3), and the product (2, 2)": lambda: ours.gemm(
        jnp.eye(2), jnp.eye(2), jnp.eye(3), beta=2
    ),
    "gemm: trans_a": lambda: ours.gemm(jnp.eye(2), jnp.eye(2), trans_a="X"),
    "gemm: float32, float64": lambda: ours.gemm(jnp.eye(2, dtype="float16"), jnp.eye(2, dtype="float16")),
    "qr: a has shape (3,); a matrix": lambda: ours.qr(jnp.ones(3)),
    "gemm: method='fast' is none of '3m', 'tensor'": lambda: ours.gemm(jnp.eye(2), jnp.eye(2), method="fast"),
    "gemm: method='3m' is for complex arrays": lambda: ours.gemm(jnp.eye(2), jnp.eye(2), method="3m"),
    "lu_solve: piv has shape (3,)": lambda: ours.lu_solve((jnp.eye(2), jnp.zeros(3, int)), jnp.ones(2)),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_name_function_argument_and_shapes(message):
    with pytest.raises((ValueError, TypeError)) as caught:
        ERRORS[message]()
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (2, 1, 4, 4)])
def test_complete_factors(shape, dtype):
    """Of tall matrices Q is square, which has no derivative."""
    a = random(np.dtype(dtype), *shape)
    close(tuple(ours.qr(a, "complete")), tuple(jnp.linalg.qr(a, "complete")))
    if shape[-2] > shape[-1]:
        with pytest.raises(RuntimeError, match="not differentiable"):
            jax.jvp(lambda a: ours.qr(a, "complete").R, (a,), (a,))


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(jax.vmap(jax.grad(lambda k: ours.cholesky(k).sum())))(spd(np.dtype("float64"), 2, 5, 5))
