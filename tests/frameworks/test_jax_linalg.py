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
from pyblasgpu.jax import eigen_rows

DTYPES = ["float32", "float64", "complex64", "complex128"]


def without_phases(result):
    """Results as they are compared: vectors by what does not depend on their phases."""
    u, values, vh = result if len(result) == 3 else (result[1], result[0], result[1].mT.conj())
    weighted = u * jnp.arange(1, values.shape[-1] + 1, dtype=values.dtype)
    return values, weighted @ vh, weighted @ u.mT.conj()


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
    "eigh": (
        lambda p, a, b: without_phases(ours.eigh(a + 2 * p)),
        lambda p, a, b: without_phases(jnp.linalg.eigh(a + 2 * p)),
    ),
    "svd": (
        lambda p, a, b: without_phases(ours.svd(b, False)),
        lambda p, a, b: without_phases(jnp.linalg.svd(b, False)),
    ),
    "svdvals": (lambda p, a, b: ours.svdvals(b.mT), lambda p, a, b: jnp.linalg.svdvals(b.mT)),
    "lstsq": (
        lambda p, a, b: ours.lstsq(a[0, :, :3], b[0])[:2],
        lambda p, a, b: jnp.linalg.lstsq(a[0, :, :3], b[0])[:2],
    ),
    "pinv": (lambda p, a, b: ours.pinv(b, 0.4), lambda p, a, b: jnp.linalg.pinv(b, 0.4)),
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
    close(ours.matmul(whole, whole), whole @ whole)
    half = whole.astype(jnp.bfloat16)
    assert ours.matmul(half, half).dtype == jnp.bfloat16
    assert ours.matmul(whole.astype("float32"), whole.astype("float64")).dtype == jnp.float64
    close(ours.matmul(jnp.ones(3), jnp.ones((3, 2))), jnp.ones(3) @ jnp.ones((3, 2)))


def test_singular_values_of_all_shapes_and_options():
    for shape in ((2, 5, 3), (3, 5), (0, 2, 3), (2, 3, 0)):
        a = random(np.dtype("complex64"), *shape)
        u, sigma, vh = ours.svd(a)
        close(sigma, jnp.linalg.svd(a, compute_uv=False))
        close(u[..., : sigma.shape[-1]] * sigma[..., None, :] @ vh[..., : sigma.shape[-1], :], a)
        for x in (u, vh):
            close(x @ x.mT.conj(), jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape))
    a = random(np.dtype("float64"), 4, 4)
    close(ours.svd(a, hermitian=True).S, jnp.linalg.svd(a, hermitian=True).S)
    upper = {"UPLO": "U", "symmetrize_input": False}
    close(ours.eigvalsh(a, **upper), jnp.linalg.eigvalsh(a, **upper))
    p = a @ a.mT
    close(ours.pinv(p, hermitian=True, rcond=0.1), jnp.linalg.pinv(p, 0.1, hermitian=True))
    stack = jnp.stack([p, p - p[:1]])
    for options in ({}, {"rtol": 2.0}, {"tol": jnp.array([1.0, 9.0])}, {"hermitian": True}):
        close(ours.matrix_rank(stack, **options), jnp.linalg.matrix_rank(stack, **options))
    close(ours.matrix_rank(a[0]), jnp.linalg.matrix_rank(a[0]))


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "pinv"])
def test_spectra_that_are_equal_or_not_finite(name):
    """Gradients of values are finite; of matrices that are not finite results alone are NaN."""
    values = {"eigh": lambda f, x: f.eigh(x)[0], "svd": lambda f, x: f.svd(x)[1]}
    value = values.get(name, lambda f, x: getattr(f, name)(x))
    equal = jnp.diag(jnp.array([2.0, 2.0, 1.0, 0.0]))
    grads = [jax.grad(lambda x, f=f: jnp.sin(value(f, x)).sum())(equal) for f in (ours, jnp.linalg)]
    close(*grads)
    bad = jnp.stack([equal, equal.at[1, 1].set(jnp.nan), equal.at[1, 1].set(jnp.inf)])
    found = value(ours, bad)
    assert jnp.isfinite(found[0]).all() and jnp.isnan(found[1:]).all()


def test_large_matrices_are_jaxs_where_there_is_a_device(monkeypatch):
    """Kernels of the first device have orders up to some limit."""
    launched = []
    monkeypatch.setattr(eigen_rows, "first_device", lambda: 0)
    monkeypatch.setattr(
        eigen_rows, "largest_order", lambda stem, letter, device, vectors: 6 if vectors else 8
    )
    monkeypatch.setattr(eigen_rows, "launch", lambda stem, *args, **options: launched.append(stem) or 1 / 0)
    a = random(np.dtype("float32"), 7, 7)
    for name in ("eigh", "svd"):
        close(*(without_phases(getattr(library, name)(a)) for library in (ours, jnp.linalg)))
    close(ours.pinv(a), jnp.linalg.pinv(a))
    assert not launched
    for call in (lambda: ours.eigh(a[:6, :6]), lambda: ours.svdvals(a)):
        with pytest.raises(ZeroDivisionError):
            call()
    assert launched == ["syevd", "gesdd"]


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
    "eigh: a has shape (2, 3); a square": lambda: ours.eigh(jnp.ones((2, 3))),
    "eigvalsh: UPLO='X' is none of": lambda: ours.eigvalsh(jnp.eye(2), "X"),
    "svd: a has shape (3,); a matrix": lambda: ours.svd(jnp.ones(3)),
    "pinv: rtol and rcond exclude": lambda: ours.pinv(jnp.eye(2), 1, rcond=1),
    "qr: a has shape (3,); a matrix": lambda: ours.qr(jnp.ones(3)),
    "lstsq: a has shape (2, 2) and b (3,)": lambda: ours.lstsq(jnp.eye(2), jnp.ones(3)),
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
    """Q of tall matrices is square, which has no derivative."""
    a = random(np.dtype(dtype), *shape)
    close(tuple(ours.qr(a, "complete")), tuple(jnp.linalg.qr(a, "complete")))
    if shape[-2] > shape[-1]:
        with pytest.raises(RuntimeError, match="not differentiable"):
            jax.jvp(lambda a: ours.qr(a, "complete").R, (a,), (a,))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape, rcond", [((5, 3), None), ((5, 3), 0.6), ((3, 5), -1), ((0, 3), None)])
def test_least_squares(shape, dtype, rcond):
    """Ranks, and residuals as JAX has them and as NumPy has."""
    a, b = (random(np.dtype(dtype), *each) for each in (shape, (shape[0], 2)))
    for right, numpy_resid in ((b, False), (b[:, 0], True)):
        found, expected = (
            f(a, right, rcond, numpy_resid=numpy_resid) for f in (ours.lstsq, jnp.linalg.lstsq)
        )
        close(found, expected)


MODES = {"without jit": jax.disable_jit, "strict": lambda: jax.numpy_dtype_promotion("strict")}


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_jax(mode):
    a = operands("float64", ())[0]
    with MODES[mode]():
        found = jax.grad(lambda a: ours.slogdet(a)[1] + ours.det(a) + ours.solve(a, a).sum())(a)
    close(found, jax.grad(lambda a: jnp.linalg.slogdet(a)[1] + jnp.linalg.det(a))(a))


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(jax.vmap(jax.grad(lambda k: ours.cholesky(k).sum())))(spd(np.dtype("float64"), 2, 5, 5))
