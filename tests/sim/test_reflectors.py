"""`reflector_copy` and `larft_leaf`: explicit reflectors, and the triangle T of their product."""

from __future__ import annotations

import numpy as np
import pytest

from pyblasgpu.kernels.factor.qr import larft_leaf, reflector_copy
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
    tau = random(rng, letter, batch, n)
    tau[:, n // 2] = 0
    t, unharmed = fenced((v.conj().swapaxes(1, 2) @ v).astype(dtype.name), "F")
    integers = n, 1, strides(t)[2], n, strides(t)[0]
    run(kernels.source(kernels.LarftLeaf(letter, 16, 32)), 1, (tau, t), integers, (), batch)
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
