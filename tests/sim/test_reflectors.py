"""`reflector_copy`, `larft_leaf`, `orhr_leaf`: explicit reflectors, the triangle T of their product, and
reflectors of orthonormal columns.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

from pyblasgpu.kernels.factor.qr import larft_leaf, orhr_leaf, reflector_copy
from pyblasgpu.testing.reference import fenced
from pyblasgpu.types import DTYPES

from .launching import run, strides


def random(rng, letter, *shape):
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return (x if DTYPES[letter].is_complex else x.real).astype(DTYPES[letter].name)


def check_copy(letter="d", m=70, n=9, order="F", batch=2, kernels=reflector_copy) -> None:
    """Elements below the diagonal of A, ones on it, zeros above, between fences."""
    a = random(np.random.default_rng(m), letter, batch, m, n)
    expected = np.tril(a, -1)
    expected[:, range(n), range(n)] = 1
    a, _ = fenced(a, order)
    v, unharmed = fenced(np.full(a.shape, np.nan, a.dtype), "F")
    config = kernels.ReflectorCopy(letter, 32)
    integers = m, n, 0, 1, *strides(a)[1:], *strides(v)[1:], strides(a)[0], strides(v)[0]
    run(kernels.source(config), config.grid(m, n), (a, v), integers, (), batch)
    np.testing.assert_array_equal(v, expected)
    assert unharmed()


@pytest.mark.parametrize("letter", DTYPES)
def test_copies(letter):
    for order in "CF":
        check_copy(letter, order=order)


def check_triangle(letter="d", n=11, batch=2, kernels=larft_leaf) -> None:
    """I - V T V^H is the product of the reflectors, one of which is the identity."""
    rng, dtype, m = np.random.default_rng(n), DTYPES[letter], n + 5
    v = np.tril(random(rng, letter, batch, m, n), -1) + np.eye(m, n)
    tau = random(rng, letter, batch, n) / n
    tau[:, n // 2] = 0
    t, unharmed = fenced((v.conj().swapaxes(1, 2) @ v).astype(dtype.name), "F")
    integers = n, 1, strides(t)[2], n, strides(t)[0]
    order = 16 if n <= 16 else 64
    run(kernels.source(kernels.LarftLeaf(letter, order, 2 * order)), 1, (tau, t), integers, (), batch)
    assert unharmed()
    for z in range(batch):
        product = np.eye(m, dtype=np.complex128)
        for j in range(n):
            product = product @ (np.eye(m) - tau[z, j] * np.outer(v[z, :, j], v[z, :, j].conj()))
        scale = abs(product).max()
        np.testing.assert_allclose(
            np.eye(m) - v[z] @ t[z] @ v[z].conj().T, product, rtol=0, atol=1e3 * scale * dtype.unit_roundoff
        )
        assert (np.tril(t[z], -1) == 0).all()


@pytest.mark.parametrize("letter", DTYPES)
def test_triangles(letter):
    for n in (1, 2, 11, 16):
        check_triangle(letter, n)
    check_triangle(letter, 39, batch=1)


def check_columns(letter="d", m=24, n=11, order="F", batch=2, spoilt=None, kernels=orhr_leaf) -> None:
    """LAPACK's factors, from columns that are orthonormal but for R2; `spoilt` matrices get an info."""
    rng, dtype = np.random.default_rng(n), DTYPES[letter]
    near = np.tril(random(rng, letter, batch, n, n), -1) / 64 / n + np.eye(n)
    a, q = random(rng, letter, batch, m, n), np.empty((batch, m, n), dtype.name)
    wide, info = (np.complex128 if dtype.is_complex else np.float64), np.zeros((batch, 1), np.int32)
    first, second, r = (np.zeros((batch, n, n), dtype.name) for _ in range(3))
    if spoilt:
        spoilt(a, near, info)
    for z in range(batch):
        orthonormal, upper = np.linalg.qr(a[z].astype(wide))
        signs = np.where(np.diagonal(upper).real < 0, -1, 1)
        adjoint = near[z].conj().T
        q[z], first[z], second[z] = orthonormal * signs @ adjoint, np.eye(n), near[z]
        first[z] = np.linalg.solve(adjoint, signs[:, None] * upper).conj().T
        r[z] = signs[:, None] * upper
    q, unharmed = fenced(q, order)
    (first, _), (second, _), (r, _) = (fenced(each, "F") for each in (first, second, r))
    tau, tau_unharmed = fenced(np.full((batch, n), np.nan, dtype.name), "C")
    before, ld = q.copy(), strides(r)[2]
    integers = n, strides(tau)[1], *strides(q)[1:], ld, *(strides(each)[0] for each in (tau, q, r, info))
    config = kernels.OrhrLeaf(letter, 16, 32)
    run(kernels.source(config), 1, (tau, q, first, second, r, info), integers, (), batch)
    assert unharmed() and tau_unharmed()
    for z in range(batch):
        if spoilt and z == 0:
            assert info[z, 0] != 0
            np.testing.assert_array_equal(q[z], before[z])
            continue
        assert info[z, 0] == 0
        qr, factors, _, _ = getattr(lapack, ("z" if dtype.is_complex else "d") + "geqrf")(a[z].astype(wide))
        atol = 100 * m * dtype.unit_roundoff
        np.testing.assert_allclose(q[z, :n], qr[:n], rtol=0, atol=atol)
        np.testing.assert_allclose(tau[z], factors, rtol=0, atol=atol)
        assert not np.diagonal(q[z]).imag.any()
        below = np.linalg.solve(np.triu(r[z]).T, before[z, n:].T).T
        np.testing.assert_allclose(below, qr[n:], rtol=0, atol=atol)


@pytest.mark.parametrize("letter", DTYPES)
def test_columns(letter):
    for n, order in ((1, "F"), (11, "C"), (16, "F")):
        check_columns(letter, n=n, order=order)


def _with_info(a, near, info) -> None:
    info[0] = 3


def _far(a, near, info) -> None:
    near[0, 3, 1] = 0.25


def _no_number(a, near, info) -> None:
    near[0, 3, 1] = np.nan


def _small(a, near, info) -> None:
    a[0, :, 4] *= 1e-150


def _nothing_below(a, near, info) -> None:
    a[0], near[0] = np.triu(a[0]), np.eye(near.shape[-1])


#: What makes a matrix fail.
FAILURES = (_with_info, _far, _no_number, _small, _nothing_below)


def check_failures(failures=FAILURES, kernels=orhr_leaf) -> None:
    """Matrices that fail stay as they are, and others of their batch are factored."""
    for spoilt in failures:
        check_columns(spoilt=spoilt, kernels=kernels)


def test_failures():
    check_failures()
