"""Eigenvalues and vectors of batches on a device: bounds, layouts, special values, orders of all kernels."""

from __future__ import annotations

import numpy as np
import pytest
from eigen_cases import KINDS, check_eigen, check_reference, hermitian, reference

from pyblasgpu.gpu.device import current
from pyblasgpu.routines.lapack import eigh_batched, eigh_jacobi
from pyblasgpu.types import DTYPES, Uplo

from .stacks import first_words, run

cupy = pytest.importorskip("cupy")


def decompose(a, v, uplo=Uplo.LOWER, vectors=True):
    """Eigenvalues and info of a stack on the host; V gets the vectors."""
    batch, n, _ = a.shape
    w, info = cupy.full((batch, n, 1), np.nan, a.real.dtype), cupy.full((batch, 1, 1), np.nan, a.dtype)
    run(eigh_batched, w, info, v, a, uplo=uplo, vectors=vectors)
    return w.get()[..., 0], first_words(info)


def eigh(a: np.ndarray, uplo=Uplo.LOWER, order="C"):
    """Eigenvalues, vectors and info of a stack on the host; the other triangle is NaN."""
    other = np.tri(a.shape[-1], k=-1, dtype=bool)
    given = np.where(other.T if uplo is Uplo.LOWER else other, np.nan, a).astype(a.dtype)
    on_device = cupy.asarray(given)
    v = cupy.full_like(on_device, np.nan)
    if order == "F":
        on_device, v = cupy.ascontiguousarray(on_device.swapaxes(1, 2)).swapaxes(1, 2), v.swapaxes(1, 2)
    w, info = decompose(on_device, v, uplo)
    np.testing.assert_array_equal(on_device.get(), given)
    return w, v.get(), info


def orders(letter: str) -> list[int]:
    """Orders next to the ends of all kernels."""
    small = [1, 2, 3, 4, 5, 8, 9, 16, 31, 32, 33, 63, 64, 65, 96, 97, 100, 128, 129, 256, 257, 513]
    return [*small, 1024, 1025] if letter in "dc" else small


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("letter", DTYPES)
def test_all_orders(letter, order):
    for n in orders(letter):
        a = hermitian("random", letter, 9 if n < 300 else 2 if n < 1000 else 1, n)
        uplo = Uplo.LOWER if n % 2 else Uplo.UPPER
        first = eigh(a, uplo, order)
        check_eigen(a, *first[:2])
        assert not first[2].any()
        for one, other in zip(first, eigh(a, uplo, order), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_eigenvalues_of_hard_matrices(n):
    a, values = reference(n)
    w, _, info = eigh(a)
    assert not info.any()
    check_reference(values, w)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("letter", DTYPES)
def test_special_matrices(letter, kind):
    for n, batch in ((3, 4), (8, 4), (30, 4), (30, 200), (60, 4), (100, 4), (150, 4), (400, 2)):
        a = hermitian(kind, letter, batch, n)
        w, v, info = eigh(a)
        assert not info.any(), n
        check_eigen(a, w, v)
        w, _ = decompose(cupy.asarray(a), cupy.empty_like(cupy.asarray(a)), vectors=False)
        check_eigen(a, w)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("letter", DTYPES)
def test_one_matrix_by_way_of_a_band(decide_by, letter, kind):
    decide_by(band_eigh_min_order={letter: 65})
    large = 2500 if letter in "dc" else 2048
    for n in (65, 98, 300) if kind != "random" else (66, 97, 129, 161, 500, 1100, large):
        a = hermitian(kind, letter, 1, n)
        w, v, info = eigh(a, Uplo.LOWER if n % 2 else Uplo.UPPER, "CF"[n % 4 == 0])
        assert not info.any(), n
        check_eigen(a, w, v)
        w, _ = decompose(cupy.asarray(a), cupy.empty_like(cupy.asarray(a)), vectors=False)
        check_eigen(a, w)
    a[0, n - 1, 1] = np.inf
    w, v, info = eigh(a)
    assert info.tolist() == [n] and np.isnan(w).all() and np.isnan(v).all()


@pytest.mark.parametrize("batch", [0, 1, 2, 131, 1000, 70_000])
@pytest.mark.parametrize("letter", "sz")
def test_batches(letter, batch):
    for n in (3, 20) if batch > 200 else (3, 20, 40):
        few = hermitian("random", letter, min(batch, 7), n)
        which = np.arange(batch) % max(len(few), 1)
        w, v, info = eigh(few[which])
        assert w.shape == (batch, n) and not info.any()
        if batch:
            np.testing.assert_array_equal(w, w[: len(few)][which])
            np.testing.assert_array_equal(v, v[: len(few)][which])
            check_eigen(few, w[: len(few)], v[: len(few)])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [2, 7, 40, 100, 150, 260])
@pytest.mark.parametrize("letter", DTYPES)
def test_what_is_not_finite_stays_in_its_matrix(letter, n, value):
    a = hermitian("random", letter, 9, n)
    w, v, _ = eigh(a)
    a[4, n - 1, 0] = value
    other_w, other_v, info = eigh(a)
    assert info.tolist() == [0] * 4 + [n] + [0] * 4
    assert np.isnan(other_w[4]).all() and np.isnan(other_v[4]).all()
    others = np.arange(9) != 4
    np.testing.assert_array_equal(other_w[others], w[others])
    np.testing.assert_array_equal(other_v[others], v[others])


@pytest.mark.parametrize("n", [5, 40, 100, 150, 260])
@pytest.mark.parametrize("letter", DTYPES)
def test_values_alone_and_in_place(letter, n):
    a = hermitian("random", letter, 5, n)
    expected, vectors, _ = eigh(a)
    on_device, v = cupy.asarray(a), cupy.full(a.shape, 7, a.dtype)
    w, info = decompose(on_device, v, vectors=False)
    if n <= eigh_jacobi.max_order(DTYPES[letter], current(0), 5):
        np.testing.assert_array_equal(w, expected)
    check_eigen(a, w)
    assert (v.get() == 7).all() and not info.any()
    w, _ = decompose(on_device, on_device)
    np.testing.assert_array_equal(w, expected)
    np.testing.assert_array_equal(on_device.get(), vectors)


@pytest.mark.parametrize("n", [6, 50, 200])
@pytest.mark.parametrize("letter", "dc")
def test_any_strides(letter, n):
    a = hermitian("random", letter, 4, n)
    room = cupy.full((8, 2 * n, 3 * n), np.nan, a.dtype)
    view = room[::2, ::-2, ::3]
    view[...] = cupy.asarray(a)
    w, _ = decompose(view, view)
    check_eigen(a, w, view.get())
    view[...] = np.nan
    assert cupy.isnan(room).all()
