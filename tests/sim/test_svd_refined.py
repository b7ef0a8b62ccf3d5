"""Singular values and vectors from right vectors of few digits: correction, products, results."""

from __future__ import annotations

import numpy as np
import pytest
from eigen_cases import check_singular
from qr_cases import matrix_of

from pyblasgpu.kernels.factor.eigen import svd_correction
from pyblasgpu.routines.lapack import svd_refined
from pyblasgpu.routines.launch_list import cache, cached_launch_list
from pyblasgpu.types import DTYPES

from .launching import run
from .test_qr import operand
from .test_routines import small_kernels

#: Error of right vectors at first, and steps.
ERROR, STEPS = 1e-2, 4


def refine(a, v, steps=STEPS, **kernels):
    """U, singular values, the adjoint of V and info of a stack; `kernels` stand in for those named so."""
    letter = {array: letter for letter, array in zip("sdcz", "fdFD", strict=True)}[a.dtype.char]
    batch, _, n = a.shape
    info = np.full((batch, 1, 1), 7, a.dtype)
    sigma, vh = np.full((batch, n, 1), np.nan, a.real.dtype), np.full((batch, n * n, 1), np.nan, a.dtype)
    u = np.full_like(a, np.nan)
    operands = [operand(array) for array in (info, sigma, vh, v, a, u)]
    with pytest.MonkeyPatch.context() as patch, small_kernels(letter):
        for name, module in kernels.items():
            patch.setattr(svd_refined, name, module)
        cache.clear()
        launches = cached_launch_list(svd_refined.emit, tuple(operands), (steps,))
        launches.run([each.pointer for each in operands], 1.0, stream=0)
        cache.clear()
    return u, sigma[..., 0], vh.reshape(batch, n, n), info.view(np.int32)[:, 0, 0]


def noise(letter, *shape):
    return matrix_of("random", letter, *shape, seed=9)


def given(letter, m, n, batch=1, error=ERROR):
    """Matrices whose singular values are apart, and right vectors with an error, in no order."""
    u, _, vh = np.linalg.svd(matrix_of("random", letter, batch, m, n), full_matrices=False)
    v = np.roll(vh.conj().swapaxes(1, 2), 1, axis=2) + error * noise(letter, batch, n, n)
    a = (u * np.linspace(1, 0.2, n)) @ vh
    return a.astype(DTYPES[letter].name), v.astype(DTYPES[letter].name)


def check(letter="d", m=5, n=5, batch=2, are_equal=False, **kernels) -> None:
    a, v = (np.stack([np.eye(n)] * batch),) * 2 if are_equal else given(letter, m, n, batch)
    u, sigma, vh, info = refine(a, v, **kernels)
    assert not info.any()
    check_singular(a, sigma, u, vh)


CASES = [("d", 5, 5, 2, True), ("d", 7, 4, 2), ("z", 4, 4, 3), ("z", 6, 5, 1), ("d", 1, 1, 2), ("d", 9, 9, 1)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_vectors(case):
    check(*case)


def too_few(error=ERROR, steps=1, **kernels) -> None:
    """Where steps do not suffice for a matrix, its info is n."""
    a, v = given("d", 4, 4, 2)
    v[0] = np.linalg.svd(a[0])[2].T
    v[1] += error * noise("d", 4, 4)
    *_, info = refine(a, v, steps, **kernels)
    assert info.tolist() == [0, 4]


@pytest.mark.parametrize(("error", "steps"), [(ERROR, 1), (1.0, STEPS)])
def test_too_few_steps(error, steps):
    too_few(error, steps)


def of_size(size=1.4e154, **kernels) -> None:
    """Where the square of a norm overflows or underflows, info is n."""
    a, v = given("d", 5, 4, 2, error=1e-9)
    a[1] *= size
    with np.errstate(over="ignore", invalid="ignore"):
        *_, info = refine(a, v, **kernels)
    assert info.tolist() == [0, 4]


@pytest.mark.parametrize("size", [1.4e154, 1e-160])
def test_norms_beyond_the_range(size):
    of_size(size)


def corrected(letter="d", n=34, kernels=svd_correction) -> None:
    """I + E of nearly diagonal products: of tiles on the diagonal and across it, of columns as long."""
    dtype, small = DTYPES[letter], 1e-3
    s = small * noise(letter, n, n) + np.diag(np.arange(1, n + 1.0))
    v = (small * noise(letter, n, n)[::-1] + np.eye(n)).astype(dtype.name)
    s[1, 0], s[1, 1], s[3, 2], v[33, 0] = 0, s[0, 0], 1, 0.3
    s = s.astype(dtype.name)
    w, other, info = np.zeros((n, n), s.dtype), np.zeros((n, n), s.dtype), np.full((1, 1), 7, np.int32)
    config = kernels.SvdCorrection(letter, 64)
    s, v = (np.tril(x) + np.tril(x, -1).conj().T for x in (s, v))
    np.fill_diagonal(s, s.diagonal().real)
    np.fill_diagonal(v, v.diagonal().real)
    arrays = tuple(np.asfortranarray(x) for x in (s, v, w, other))
    run(kernels.source(config), config.grid(n), (*arrays, info), (n, n, 2, 0, 0, 0, 0, 0), ())
    high, low = s.diagonal().real, s.diagonal().real[:, None]
    left, apart = np.eye(n) - v, high - low
    stays = np.abs(s) <= svd_correction.LEAST * dtype.unit_roundoff * np.sqrt(high * low)
    stays = stays & (np.abs(apart) <= svd_correction.CLOSE * np.maximum(high, low)) | np.eye(n, dtype=bool)
    for i, j in ((3, 2), (33, 0)):  # too large, across the diagonal alone and everywhere
        stays[i, j] = stays[j, i] = True
    expected = np.eye(n) + np.where(stays, left / 2, (s + high * left) / np.where(stays, 1, apart))
    assert info[0, 0] == 0
    for each in arrays[2:]:
        np.testing.assert_allclose(each, expected, rtol=0, atol=20 * dtype.unit_roundoff)


@pytest.mark.parametrize("letter", "dz")
def test_corrections(letter):
    corrected(letter)
