"""Eigenvalues and singular values of device matrices that are larger than kernels have them."""

from __future__ import annotations

from functools import partial
from typing import Any

import fake_device
import numpy as np
import pytest
from covering import pairs
from eigen_cases import KINDS, check_eigen, check_singular, hermitian
from numpy.linalg import LinAlgError
from spectra_cases import definite_of, host, same

from pyblasgpu import linalg
from pyblasgpu.api.linalg import gram_triplets, spectral_division, standard
from pyblasgpu.api.linalg.arrays import Arrays, taken
from pyblasgpu.api.linalg.halley import LARGE, weights
from pyblasgpu.api.linalg.hermitian_triplets import hermitian_triplets
from pyblasgpu.api.linalg.polar_division import divided_triplets, polar_triplets
from pyblasgpu.api.linalg.spectral_division import divided_eigenpairs
from pyblasgpu.routines.lapack import gesdd, syevd
from pyblasgpu.types import DTYPES

LARGEST = 24  # order of matrices that kernels have here


@pytest.fixture
def device(fake, monkeypatch):
    """A device with kernels for small orders alone."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    monkeypatch.setattr(syevd, "max_order", lambda dtype, device: LARGEST)
    monkeypatch.setattr(gesdd, "serves", lambda m, n, *_, **options: min(m, n) <= LARGEST)


def eigenpairs(a: np.ndarray, with_vectors: bool = True) -> Any:
    arrays = taken("eigh", {"a": a})
    return divided_eigenpairs("eigh", arrays, a, LARGEST, with_vectors, np.linalg.eigh)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_eigenvalues_and_vectors(kind, letter):
    a = hermitian(kind, letter, 70)
    w, v = eigenpairs(a)
    check_eigen(a, w, v)
    assert w.dtype == a.real.dtype and v.dtype == a.dtype
    check_eigen(a, eigenpairs(a, with_vectors=False)[0])


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(60, 60), (70, 45), (45, 70)])
@pytest.mark.parametrize("kind", ["random", "geometric", "two clusters", "one", "zero", "graded", "huge"])
def test_singular_values_and_vectors(kind, shape, letter):
    m, n = shape
    a = hermitian(kind, letter, max(m, n))[::-1][:m, :n]
    for full in (False, True):
        u, s, vh = divided_triplets(taken("svd", {"a": a}), a, full, eigenpairs)
        k = min(shape)
        assert (u.shape, s.shape, vh.shape) == ((m, m if full else k), (k,), (n if full else k, n))
        check_singular(a, s, u, vh)


@pytest.mark.parametrize("letter, low", [("s", True), ("z", False)])
def test_one_triangle_of_a_device_matrix_is_read(device, letter, low):
    a = hermitian("random", letter, 40)
    other = np.tri(len(a), k=-1, dtype=bool)
    given = fake_device.Array(np.where(other.T if low else other, np.nan, a).astype(a.dtype))
    w, v = map(host, linalg.eigh(given, lower=low, check_finite=False))
    check_eigen(a, w, v)
    check_eigen(a, host(linalg.eigvalsh(given, lower=low, check_finite=False)))


def test_a_stack_of_one(device):
    a = hermitian("random", "d", 1, 1, 30)
    w, v = map(host, linalg.eigh(fake_device.Array(a)))
    assert w.shape == a.shape[:-1] and v.shape == a.shape
    check_eigen(a, w, v)
    u, s, vh = map(host, linalg.svd(fake_device.Array(a)))
    assert u.shape == vh.shape == a.shape
    check_singular(a, s, u, vh)


def test_singular_values_of_a_device_matrix(device):
    a = hermitian("random", "c", 50)[:, :40]
    u, s, vh = map(host, linalg.svd(fake_device.Array(a)))
    check_singular(a, s, u, vh)
    check_singular(a, host(linalg.svdvals(fake_device.Array(a))))


def test_an_odd_spectrum_in_the_middle():
    """The first shift is an eigenvalue, next to which a sign function does not converge."""
    n = 61
    a = np.diag(np.r_[-np.ones(n // 2), 0, np.ones(n // 2)])
    q = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))[0]
    a = q @ a @ q.T
    a = (a + a.T) / 2
    check_eigen(a, *eigenpairs(a))


def test_what_is_not_finite_is_nan(device):
    a = hermitian("random", "d", 40)
    a[3, 3] = np.inf
    w, v = map(host, linalg.eigh(fake_device.Array(a), check_finite=False))
    assert np.isnan(w).all() and np.isnan(v).all() and v.shape == a.shape
    for each in map(host, linalg.svd(fake_device.Array(a), check_finite=False)):
        assert np.isnan(each).any()


def test_functions_of_spectra_take_them(device):
    a, b = hermitian("random", "z", 40), definite_of("z", 40)
    on_device = fake_device.Array(a), fake_device.Array(b)
    same(host(linalg.eigvalsh(*on_device)), linalg.eigvalsh(a, b), 1e4)
    same(host(linalg.pinvh(on_device[0])), linalg.pinvh(a), 1e5)
    same(host(linalg.sqrtm(on_device[1], hermitian=True)), linalg.sqrtm(b), 1e4)
    assert host(linalg.eigvalsh(on_device[0], subset_by_index=(3, 5))).shape == (3,)
    low = a[:, :30] @ a[:30, :]
    assert host(linalg.matrix_rank(fake_device.Array(low))) == 30
    same(host(linalg.pinv(fake_device.Array(low))), linalg.pinv(low), 1e7)
    same(host(linalg.cond(on_device[1])), linalg.cond(b), 1e5)


@pytest.mark.parametrize("letter", "cd")
def test_stacks_are_divided_one_after_the_other(device, letter):
    a = hermitian("random", letter, 2, 30)[:, None]
    w, v = map(host, linalg.eigh(fake_device.Array(a)))
    assert w.shape == (2, 1, 30)
    check_eigen(a[:, 0], w[:, 0], v[:, 0])
    check_eigen(a[:, 0], host(linalg.eigvalsh(fake_device.Array(a)))[:, 0])
    u, s, vh = (host(each)[:, 0] for each in linalg.svd(fake_device.Array(a[..., :26])))
    check_singular(a[:, 0, :, :26], s, u, vh)
    assert host(linalg.eigvalsh(fake_device.Array(a[:0]))).shape == (0, 1, 30)


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("shape", [(30, 30), (40, 25), (25, 40)])
@pytest.mark.parametrize("kind", ["random", "geometric", "two clusters", "one", "zero", "graded", "huge"])
def test_singular_values_of_batches(kind, shape, letter):
    m, n = shape
    a = hermitian(kind, letter, 2, max(m, n))[:, ::-1][:, :m, :n]
    arrays, k = taken("svd", {"a": a}), min(shape)

    def solve(x: np.ndarray, first: int) -> Any:
        """Vectors before the `first` one are NaN: half of them where the order is twice that of A."""
        w, v = np.linalg.eigh(x)
        assert first == x.shape[-1] - k
        v[..., :first] = np.nan
        return w, v

    for full in (False, True):
        u, s, vh = hermitian_triplets("svd", arrays, a, full, True, solve)
        assert (u.shape[1:], vh.shape[1:]) == ((m, m if full else k), (n if full else k, n))
        assert {each.dtype for each in (u, vh)} == {a.dtype} and s.dtype == a.real.dtype
        check_singular(a, s, u, vh)
    values = hermitian_triplets(
        "svd", arrays, a, False, False, lambda x, first: (np.linalg.eigvalsh(x), None)
    )
    check_singular(a, values[1])


#: A matrix of a stack, whether kernels have its shape, and how it is computed again.
REFINED = [
    ("random", False, []),
    ("one", True, ["svd_on_device"]),
    ("one", False, ["graded_triplets"]),
    ("geometric", False, ["graded_triplets"]),
    ("zero", False, ["graded_triplets"]),
    ("huge", True, ["svd_on_device", "solve"]),
    ("huge", False, ["graded_triplets", "solve"]),
]


@pytest.mark.parametrize("letter, shape, case", pairs("dz", [(30, 30), (40, 25), (25, 40)], REFINED), ids=str)
def test_refined_vectors_of_batches(card, monkeypatch, letter, shape, case):
    """By eigenvectors of AᴴA, refined; those of one matrix by rotations, by groups of them, or by others."""
    (m, n), (kind, has_kernels, ways), k, seen = shape, case, min(shape), []
    a = hermitian("random", letter, 3, max(m, n))[:, ::-1][:, :m, :n]
    a[1] = hermitian(kind, letter, max(m, n))[:m, :n]

    def noted(name: str, function: Any, *b: Any, **options: Any) -> Any:
        found = function(*b, **options)
        seen.append((name, b[2].shape[0]))
        return found

    for name in ("svd_on_device", "graded_triplets"):
        monkeypatch.setattr(gram_triplets, name, partial(noted, name, getattr(gram_triplets, name)))

    def solve(x: Any) -> Any:
        seen.append(("solve", x.shape[0]))
        return tuple(map(fake_device.Array, np.linalg.svd(host(x), full_matrices=False)))

    if not has_kernels:
        monkeypatch.setattr(gesdd, "serves", lambda *_, **options: False)
    for full, matrices in ((False, a), (True, a), (False, a[1])):
        given = fake_device.Array(matrices)
        seen.clear()
        with np.errstate(all="ignore"):
            found = gram_triplets.gram_triplets("svd", taken("svd", {"a": given}), given, full, solve)
        if kind != "huge" or not (full and m != n):  # QR factors are of scaled ones
            assert seen == [(way, 1) for way in ways]
        u, s, vh = map(host, found)
        assert (u.shape[-2:], vh.shape[-2:]) == ((m, m if full else k), (n if full else k, n))
        check_singular(matrices, s, u, vh)


@pytest.mark.parametrize("letter", "dz")
@pytest.mark.parametrize("shape", [(30, 30), (40, 25), (25, 40)])
@pytest.mark.parametrize(("kind", "served"), [("random", True), ("signs", True), ("one", False)])
def test_polar_factors_of_batches(kind, served, shape, letter):
    """By polar factors, unless a singular value of one matrix is small."""
    m, n = shape
    a = hermitian("random", letter, 3, max(m, n))[:, ::-1][:, :m, :n]
    a[1] = hermitian(kind, letter, max(m, n))[:m, :n]
    arrays, k = taken("svd", {"a": a}), min(shape)
    for full in (False, True):
        found = polar_triplets("svd", arrays, a, full, True, np.linalg.eigh)
        assert (found is not None) == served
        if found is not None:
            u, s, vh = found
            assert (u.shape[1:], vh.shape[1:]) == ((m, m if full else k), (n if full else k, n))
            check_singular(a, s, u, vh)
    values = polar_triplets("svd", arrays, a, False, False, lambda x: (np.linalg.eigvalsh(x), None))
    assert (values is not None) == served
    if values is not None:
        check_singular(a, values[1])


def test_polar_factors_of_what_is_not_finite():
    a = hermitian("random", "d", 3, 30)
    a[1, 3, 4] = np.nan

    def solve(x: np.ndarray) -> Any:
        bad = np.isnan(x).any(axis=(1, 2))
        w, v = np.linalg.eigh(np.where(bad[:, None, None], 0, x))
        return np.where(bad[:, None], np.nan, w), np.where(bad[:, None, None], np.nan, v)

    found = polar_triplets("svd", taken("svd", {"a": a}), a, False, True, solve)
    for each in found:
        assert np.isnan(each[1]).all() and np.isfinite(each[[0, 2]]).all()
    check_singular(a[::2], *(found[i][::2] for i in (1, 0, 2)))


@pytest.mark.parametrize("kind", ["random", "one"])
def test_stacks_of_double_precision(device, monkeypatch, decide_by, kind):
    """By eigenvectors of AᵀA, values alone by polar factors; by twice the order where these do not serve."""
    decide_by(gram_svd_min_columns={"d": 1})
    monkeypatch.setattr(syevd, "max_order", lambda dtype, device: 60)
    monkeypatch.setattr(gesdd, "serves", lambda *_, **options: False)
    seen = []
    ways = ["gram_triplets", "polar_triplets", "hermitian_triplets"]
    for name in ways:
        function = getattr(standard, name)
        monkeypatch.setattr(standard, name, lambda *a, f=function, n=name: seen.append(n) or f(*a))
    if kind == "one":
        monkeypatch.setattr(standard, ways[0], lambda *a: seen.append(ways[0]) or a[-1](a[2]))
    a = hermitian("random", "d", 2, 30)
    a[1] = hermitian(kind, "d", 30)
    u, s, vh = map(host, linalg.svd(fake_device.Array(a)))
    check_singular(a, s, u, vh)
    check_singular(a, host(linalg.svdvals(fake_device.Array(a))))
    assert seen == (ways[:2] if kind == "random" else ways + ways[1:])
    check_singular(a[1], host(linalg.svdvals(fake_device.Array(a[1]))))


@pytest.mark.parametrize("waits", [True, False])
def test_columns_from_which_on_rotations_take_longer(device, monkeypatch, decide_by, waits):
    """Not in a graph, where the host may not look at info."""
    decide_by(gram_svd_min_columns={"d": 11})
    monkeypatch.setattr(syevd, "max_order", lambda dtype, device: 60)
    monkeypatch.setattr(Arrays, "may_wait", waits)
    seen = []
    for name in ("gram_triplets", "svd_on_device"):
        function = getattr(standard, name)
        monkeypatch.setattr(standard, name, lambda *a, f=function, n=name: seen.append(n) or f(*a))
    for n in (10, 11):
        a = hermitian("random", "d", 2, n)
        u, s, vh = map(host, linalg.svd(fake_device.Array(a)))
        check_singular(a, s, u, vh)
        assert seen.pop() == ("gram_triplets" if n > 10 and waits else "svd_on_device") and not seen


@pytest.mark.parametrize(("precision", "steps"), [(2e-15, 5), (1e-6, 5)])
def test_weights_of_steps(precision, steps):
    found = list(weights(1e-8, precision))
    assert len(found) == steps and max(c for _, _, c in found[1:]) <= LARGE * (1 + 1e-12)
    a, b, c = zip(*found, strict=True)
    x = np.geomspace(1e-8, 1, 1000)
    for step in range(steps):
        x = x * (a[step] + b[step] * x * x) / (1 + c[step] * x * x)
    assert (np.abs(x - 1) <= precision).all()


def test_what_no_shift_divides(monkeypatch):
    monkeypatch.setattr(spectral_division, "shifts", lambda diagonal: iter((100.0, -100.0)))
    with pytest.raises(LinAlgError, match=r"^eigh: the eigenvalues of a block of order 40 did not converge"):
        eigenpairs(hermitian("random", "d", 40))
