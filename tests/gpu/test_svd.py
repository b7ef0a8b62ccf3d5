"""Singular values and vectors of batches on a device: bounds, layouts, special values, all kernels."""

from __future__ import annotations

import numpy as np
import pytest
from eigen_cases import check_singular, check_singular_in_one
from qr_cases import SETS, matrix_of

from pyblasgpu.gpu.device import current
from pyblasgpu.routines.lapack import svd_batched
from pyblasgpu.types import DTYPES

from .stacks import first_words, run

cupy = pytest.importorskip("cupy")

SHAPES = [(1, 1), (2, 2), (3, 3), (8, 8), (9, 4), (5, 31), (16, 16), (17, 17), (32, 32), (40, 33), (64, 64),
          (100, 65), (80, 80), (100, 100), (116, 116), (500, 16), (20, 3000), (900, 90)]  # fmt: skip


def svd(a, full=False, order="C", vectors=True):
    """U, singular values, the adjoint of V, and info on the host, of a CuPy array, which stays as it is."""
    (batch, m, n), given = a.shape, a.copy()
    k = min(m, n)
    shapes = (batch, m, m if full else k), (batch, n if full else k, n)
    u, vh = (
        cupy.full(shape, 7, a.dtype)
        if order == "C"
        else cupy.full((batch, *shape[:0:-1]), 7, a.dtype).swapaxes(1, 2)
        for shape in shapes
    )
    sigma, info = cupy.full((batch, k, 1), np.nan, a.real.dtype), cupy.full((batch, 1, 1), np.nan, a.dtype)
    run(svd_batched, sigma, info, u, vh, a, vectors=vectors)
    np.testing.assert_array_equal(a.get(), given.get())
    return u.get(), sigma.get()[..., 0], vh.get(), first_words(info)


def serves(letter: str, shape: tuple[int, int]) -> bool:
    return svd_batched.serves(*shape, DTYPES[letter], current(0), vectors=True)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("letter", DTYPES)
def test_all_sizes(letter, order):
    for shape in (shape for shape in SHAPES if serves(letter, shape)):
        a = matrix_of("random", letter, 5, *shape)
        on_device = cupy.asarray(a)
        if order == "F":
            on_device = cupy.ascontiguousarray(on_device.swapaxes(1, 2)).swapaxes(1, 2)
        for full in (False, True):
            first = svd(on_device, full, order)
            check_singular(a, first[1], first[0], first[2])
            assert not first[3].any(), shape
            for one, other in zip(first, svd(on_device, full, order), strict=True):
                np.testing.assert_array_equal(one, other)
        u, sigma, vh, _ = svd(on_device, vectors=False)
        check_singular(a, sigma)
        assert (u == 7).all() and (vh == 7).all()


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (12, 8), (30, 30), (60, 40), (72, 72)])
def test_special_matrices(letter, kind, shape):
    a = matrix_of(kind, letter, 4, *shape)
    for full in (False, True):
        u, sigma, vh, info = svd(cupy.asarray(a), full)
        assert not info.any()
        check_singular_in_one(a, sigma, u, vh)


@pytest.mark.parametrize("batch", [0, 1, 131, 20_000])
@pytest.mark.parametrize("letter", "sz")
def test_batches(letter, batch):
    for n in (3, 20):
        few = matrix_of("random", letter, min(batch, 7), n, n)
        which = np.arange(batch) % max(len(few), 1)
        results = svd(cupy.asarray(few[which]))
        assert results[1].shape == (batch, n) and not results[3].any()
        if batch:
            for each in results:
                np.testing.assert_array_equal(each, each[: len(few)][which])
            check_singular(few, *(results[i][: len(few)] for i in (1, 0, 2)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(4, 2), (9, 7), (40, 40), (70, 66)])
@pytest.mark.parametrize("letter", DTYPES)
def test_what_is_not_finite_stays_in_its_matrix(letter, shape, value):
    a = matrix_of("random", letter, 9, *shape)
    before = svd(cupy.asarray(a))
    a[4, 1, 0] = value
    after = svd(cupy.asarray(a))
    assert after[3].tolist() == [0] * 4 + [min(shape)] + [0] * 4
    others = np.arange(9) != 4
    for one, other in zip(before[:3], after[:3], strict=True):
        assert np.isnan(other[4]).all()
        np.testing.assert_array_equal(other[others], one[others])
