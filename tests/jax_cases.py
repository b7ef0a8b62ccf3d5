"""Calls of every operator that JAX has of the table, small and well conditioned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import pyblasgpu.jax  # noqa: F401 - fills the table
from pyblasgpu.jax.arrays import ARRAYS
from pyblasgpu.jax.operators import TABLE

__all__ = ["CASES", "Case", "called_by_threads", "hermitian", "random", "spd"]

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)  # small programs, and many
DTYPES = [np.dtype("float64"), np.dtype("complex128")]


class Case(NamedTuple):
    """A call of an operator.

    Attributes
    ----------
    name : str
        The operator's.
    args : tuple
        Its arguments.
    wrap : callable
        ``wrap(op, *args)``: the call as its gradients are compared, with inputs made Hermitian, say.
    """

    name: str
    args: tuple[Any, ...]
    wrap: Callable[..., Any]

    def function(self) -> tuple[Callable[..., Any], list[Any]]:
        """A function of the arrays that have gradients, and these."""
        places = [
            i for i, arg in enumerate(self.args) if isinstance(arg, jax.Array) and arg.dtype != jnp.int32
        ]

        def call(*arrays: Any) -> Any:
            args = list(self.args)
            for place, array in zip(places, arrays, strict=True):
                args[place] = array
            return self.wrap(getattr(ARRAYS, self.name), *args)

        return call, [self.args[place] for place in places]


_rng = np.random.default_rng(11)


def random(dtype: Any, *shape: int) -> jax.Array:
    """Normal numbers."""
    values = _rng.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * _rng.normal(size=shape)
    return jnp.asarray(values, dtype)


def spd(dtype: Any, *shape: int) -> jax.Array:
    """Hermitian positive definite matrices."""
    x = random(dtype, *shape)
    return x @ x.mT.conj() + shape[-1] * jnp.eye(shape[-1], dtype=dtype)


def hermitian(x: Any) -> Any:
    """The Hermitian part."""
    return (x + x.mT.conj()) / 2


def _plain(op, *args):
    return op(*args)


def _first(op, *args):
    return op(*args)[0]


def _two(op, *args):
    return op(*args)[:2]


def _hermitian_first(count):
    def wrap(op, a, *args):
        result = op(hermitian(a), *args)
        return result[:count] if count > 1 else result[0]

    return wrap


def _of_factor(op, a, upper):
    return op(jnp.linalg.cholesky(hermitian(a), upper=upper), upper)


def _of_matrix(op, a, *args):
    """The call with the factors of `a`, which are none of its arguments here."""
    lu, pivots = jax.scipy.linalg.lu_factor(jax.lax.stop_gradient(a))
    return op(a, lu, pivots, *args)


def _of_vectors(op, a, *args):
    """What does not depend on phases of vectors, of Hermitian matrices or of others."""
    if op is ARRAYS.eigh:
        w, v, _ = op(hermitian(a), *args)
        return w, v * jnp.arange(1, w.shape[-1] + 1) @ v.mT.conj()
    u, sigma, vh, _ = op(a, *args)
    k = sigma.shape[-1]
    weighted = u[..., :k] * jnp.arange(1, k + 1)
    return sigma, weighted @ vh[..., :k, :], weighted @ u[..., :k].mT.conj()


def _pseudoinverse(op, a, atol, rtol, is_hermitian):
    return op(hermitian(a) if is_hermitian else a, atol, rtol, is_hermitian)[0]


def _gaussian_backward(op, k, y, gq, gd):
    factor = jnp.linalg.cholesky(hermitian(k))
    white = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    return op(hermitian(k), y, jax.lax.stop_gradient(factor), jax.lax.stop_gradient(white), gq, gd)


def cases(dtype: np.dtype) -> Iterator[Case]:
    """Calls with matrices of `dtype`."""

    def r(*shape):
        return random(dtype, *shape)

    alpha = 2 - 1j if dtype.kind == "c" else 2.0
    triangle = r(2, 2) + 3 * jnp.eye(2, dtype=dtype)
    yield Case("gemm", (r(2, 3), r(3, 2), r(2, 2), alpha, 0.5, None), _plain)
    yield Case("gemm", (r(2, 1, 2, 3), r(3, 2), None, 1, 0, None), _plain)
    yield Case("gemm", (r(2, 3), r(3, 2), None, alpha, 0, "tensor"), _plain)
    for lower in (False, True):
        yield Case("gemmtr", (r(2, 3), r(3, 2), r(2, 2), alpha, 0.5, lower), _plain)
        for conj in (False, True):
            yield Case("rank_k", (r(2, 3), r(2, 2), 2.0 if conj else alpha, 0.5, lower, conj), _plain)
        yield Case("symm", (r(2, 2), r(2, 3), r(2, 3), alpha, 0.5, True, lower, False), _plain)
        yield Case("symm", (r(2, 2), r(3, 2), None, alpha, 0, False, lower, True), _plain)
        for name in ("trmm", "trsm"):
            yield Case(name, (triangle, r(2, 1), alpha, True, lower, False), _plain)
            yield Case(name, (triangle, r(2, 1, 2), alpha, False, lower, True), _plain)
        factor = jnp.linalg.cholesky(spd(dtype, 2, 2), upper=not lower)
        yield Case("cholesky_ex", (spd(dtype, 3, 3), not lower), _hermitian_first(1))
        yield Case("cholesky_backward", (factor, r(2, 2), not lower), _plain)
        yield Case("cholesky_solve", (r(2, 1), factor, not lower), _plain)
        yield Case("cholesky_inverse", (spd(dtype, 2, 2), not lower), _of_factor)
    for shape in ((2, 2), (2, 3), (3, 2)):
        yield Case("lu_factor_ex", (r(*shape),), _first)
    for shape, complete in (((3, 2), False), ((2, 2), True), ((2, 3), False), ((2, 1, 2, 2), False)):
        yield Case("qr", (r(*shape), complete), _plain)
    is_complex, bound = dtype.kind == "c", jnp.float64(0.01)
    yield Case("svd", (r(2, 3) if is_complex else r(2, 3, 2), True), _of_vectors)
    yield Case("eigh", (hermitian(r(2, 2, 2)), True), _of_vectors)
    if is_complex:
        yield Case("svdvals", (r(2, 3),), _first)
        yield Case("eigvalsh", (hermitian(r(3, 3)), False), _hermitian_first(1))
        yield Case("pinv", (hermitian(r(2, 2)), bound, bound / 3, True), _pseudoinverse)
    else:
        yield Case("pinv", (r(3, 1) @ r(1, 2), bound, bound / 3, False), _pseudoinverse)  # of one value
    packed, pivots = jax.scipy.linalg.lu_factor(r(2, 2))
    yield Case("interchanged", (r(2, 3), pivots, True), _plain)
    yield Case("lu_inverse", (packed, pivots), _plain)
    for left in (False, True):
        right = r(2, 1) if left else r(1, 2)
        for adjoint in (False, True):
            yield Case("lu_solve", (packed, pivots, right, left, adjoint), _plain)
            yield Case("solved", (triangle, right, left, adjoint), _of_matrix)
        yield Case("solve_ex", (triangle, right, left), _first)
    yield Case("inv_ex", (triangle,), _first)
    yield Case("adjoint_inverse", (triangle,), _of_matrix)
    yield Case("slogdet", (triangle,), _two)
    yield Case("det", (triangle,), _first)
    yield Case("inv_quad_logdet", (spd(dtype, 2, 2), r(2, 1)), _hermitian_first(2))
    weights = jnp.float64(0.3), jnp.float64(0.8)
    yield Case("inv_quad_logdet_backward", (spd(dtype, 2, 2), r(2, 1), *weights), _gaussian_backward)


CASES = {f"{dtype} {case.name} {i}": case for dtype in DTYPES for i, case in enumerate(cases(dtype))}
assert {case.name for case in CASES.values()} == set(TABLE)

#: A sum over the shards of a mesh as `value`, and without one as `plain`: the body of a program.
OF_SHARDS = """
@jax.jit
def value(k, b):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("i"), P()), out_specs=P())
    def of_shards(k, b):
        quad, logdet = jax.vmap(ours.inv_quad_logdet, (0, None))(k, b)
        sign, again = ours.slogdet(k)
        return jax.lax.psum((quad + logdet + sign * again).sum(), "i")
    return of_shards(k, b)

def plain(k, b):
    return jnp.einsum("ij,nij->", b, jnp.linalg.solve(k, b[None])) + 2 * jnp.linalg.slogdet(k)[1].sum()
"""


def called_by_threads(step: Callable[[Any], Any], a: Any, wanted: np.ndarray, repeats: int) -> None:
    """Four threads call ``step(a)`` while the main one is busy, and each result is what is wanted."""
    wrong = []

    def work() -> None:
        for _ in range(repeats):
            if not np.allclose(step(a), wanted):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        sum(range(1000))
    assert not wrong
