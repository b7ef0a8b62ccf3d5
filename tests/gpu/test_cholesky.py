"""Cholesky factors, inverses and solutions on a device: within their bounds, beside NumPy."""

from __future__ import annotations

import lapack_calls
import numpy as np
import pytest
import special_pivots

from pyblasgpu import lapack
from pyblasgpu.dispatch.choose import select
from pyblasgpu.dispatch.overrides import override
from pyblasgpu.gpu.device import current
from pyblasgpu.testing.policies import deciding_by
from pyblasgpu.types import DTYPES

cupy = pytest.importorskip("cupy")

SIZES = (1, 33, 128, 129, 300, 700)


def definite(n: int, letter: str, batch: tuple[int, ...] = ()) -> np.ndarray:
    """Hermitian matrices whose condition is small."""
    rng = np.random.default_rng(n)
    x = rng.uniform(-1, 1, (*batch, n, n))
    if letter in "cz":
        x = x + 1j * rng.uniform(-1, 1, x.shape)
    return (x @ x.conj().swapaxes(-1, -2) + n * np.eye(n)).astype(DTYPES[letter].name)


def spoilt(a: np.ndarray, low: int) -> np.ndarray:
    """NaN in the other triangle."""
    kept = np.tri(a.shape[-1], dtype=bool)
    return np.where(kept if low else kept.T, a, np.nan).astype(a.dtype)


def triangle(a: np.ndarray, low: int) -> np.ndarray:
    """A triangle in double precision, zero beyond it."""
    wide = a.astype(np.result_type(a.dtype, np.float64))
    return np.tril(wide) if low else np.triu(wide)


def backward_error(factor: np.ndarray, a: np.ndarray, low: int, letter: str) -> float:
    """The largest of |L L^H - A| / (|L| |L^H|), in units of the bound."""
    c = triangle(factor, low)
    lower = c if low else c.conj().swapaxes(-1, -2)
    error = abs(lower @ lower.conj().swapaxes(-1, -2) - a)
    scale = abs(lower) @ abs(lower).swapaxes(-1, -2)
    bound = (a.shape[-1] + 4) * DTYPES[letter].unit_roundoff * (8**0.5 if letter in "cz" else 1)
    return float((error / scale).max() / bound)


@pytest.fixture(params=["panels", "recursion", "columns"])
def algorithm(request):
    """The algorithm; "columns": row-major triangles are factored by columns, elsewhere."""
    name = "recursion" if request.param == "recursion" else "panels"
    least = dict.fromkeys(DTYPES, 1 if request.param == "columns" else 10**6)
    with override("potrf_algorithm", name), deciding_by(potrf_by_columns_min_order=least):
        yield request.param


@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("letter", DTYPES)
def test_potrf(letter, order, low, algorithm):
    for n in SIZES:
        a = definite(n, letter)
        matrix = cupy.asarray(spoilt(a, low), order=order)
        c, info = lapack.potrf(matrix, lower=low, clean=n % 2, overwrite_a=1)
        assert isinstance(info, cupy.ndarray) and info == 0 and c is matrix
        factor = c.get()
        assert backward_error(factor, a, low, letter) < 1, n
        beyond = (np.tril if not low else np.triu)(factor, -1 if not low else 1)
        rows, cols = np.tril_indices(n, -1) if not low else np.triu_indices(n, 1)
        assert (beyond[rows, cols] == 0).all() if n % 2 else np.isnan(beyond[rows, cols]).all()


@pytest.mark.parametrize("order", "CF")
def test_panels_of_blocks_with_more_rows(order):
    config = select("potrf_panel", DTYPES["s"], "", (700,), current(0)).config
    a = definite(700, "s")
    with override("potrf_panel", config.fitting(current(0).shared_per_block).wide):
        c, info = lapack.potrf(cupy.asarray(a, order=order), lower=1)
    assert info == 0 and backward_error(c.get(), a, 1, "s") < 1


@pytest.mark.parametrize("letter", DTYPES)
def test_the_same_bits(letter, algorithm):
    a = cupy.asarray(definite(700, letter))
    first, second = (lapack.potrf(a, lower=1)[0].get() for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("at", [0, 50, 127, 128, 300, 599])
def test_a_bad_pivot(at, low, algorithm):
    a = np.eye(600) * 4
    a[at, at] = -1
    c, info = lapack.potrf(cupy.asarray(a), lower=low)
    assert int(info) == at + 1 and info > 0
    np.testing.assert_array_equal(np.diagonal(c.get())[:at], 2)
    assert info.dtype == cupy.int32 and info.shape == ()


@pytest.mark.parametrize("place", special_pivots.PLACES)
@pytest.mark.parametrize("letter", DTYPES)
def test_pivots_that_are_not_finite(letter, place, algorithm):
    """A pivot of NaN is not positive; below an infinite one the factor is zero."""
    for n in (8, 14, 40, 150, 300):
        a = special_pivots.matrix(place, letter, n)
        c, info = lapack.potrf(cupy.asarray(a), lower=1)
        special_pivots.check(c.get(), int(info), a)
        c, info = lapack.potrf(cupy.asarray(a.T), lower=0)
        special_pivots.check(c.get().T, int(info), a)


@pytest.mark.parametrize("letter", DTYPES)
def test_infos_of_a_stack_with_special_values(letter):
    for n in (9, 140):
        stack = np.stack([special_pivots.matrix(place, letter, n) for place in special_pivots.PLACES])
        c, info = lapack.potrf(cupy.asarray(stack), lower=1)
        for factor, number, a in zip(c.get(), info.get(), stack, strict=True):
            special_pivots.check(factor, int(number), a)


@pytest.mark.parametrize(
    "n, batch",
    [
        (4, 37),
        (16, 37),
        (32, 37),
        (64, 37),
        (128, 37),
        (150, 37),
        (520, 7),
        (1, 9000),
        (4, 20_000),
        (16, 9000),
    ],
)
@pytest.mark.parametrize("letter", DTYPES)
def test_batches(letter, n, batch):
    a = definite(n, letter, (batch,))
    a[5, -1, -1] = -1
    c, info = lapack.potrf(cupy.asarray(spoilt(a, 1)), lower=1)
    expected = np.zeros(batch, int)
    expected[5] = n
    np.testing.assert_array_equal(info.get(), expected)
    good = np.arange(batch) != 5
    assert backward_error(c.get()[good], a[good], 1, letter) < 1


@pytest.mark.parametrize("unit", [0, 1])
@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("letter", DTYPES)
def test_trtri(letter, low, unit):
    for n in SIZES:
        t = spoilt(definite(n, letter) / n, low)
        if unit:
            t[range(n), range(n)] = np.nan
        inverse, info = lapack.trtri(cupy.asarray(t), lower=low, unitdiag=unit)
        assert info == 0
        wide, x = triangle(t, low), triangle(inverse.get(), low)
        if unit:
            assert np.isnan(x[range(n), range(n)]).all()
            wide[range(n), range(n)] = x[range(n), range(n)] = 1
        residual = abs(x @ wide - np.eye(n))
        bound = 4 * (n + 1) * DTYPES[letter].unit_roundoff * (8**0.5 if letter in "cz" else 1)
        assert (residual <= bound * (abs(x) @ abs(wide) @ abs(x) @ abs(wide))).all(), n


@pytest.mark.parametrize("n", [4, 16, 17, 40])
@pytest.mark.parametrize("letter", DTYPES)
def test_trtri_of_a_stack(letter, n):
    """A singular triangle among them is told of, and stays."""
    t = spoilt(np.stack([definite(n, letter) / n] * 37), 1)
    t[5, n // 2, n // 2] = 0
    inverse, info = lapack.trtri(cupy.asarray(t), lower=1)
    assert info.get().tolist() == [n // 2 + 1 if i == 5 else 0 for i in range(37)]
    x, wide = triangle(inverse.get(), 1), triangle(t, 1)
    assert (x[5] == wide[5]).all()
    good = np.arange(37) != 5
    residual = abs(x @ wide - np.eye(n))[good]
    bound = 4 * (n + 1) * DTYPES[letter].unit_roundoff * (8**0.5 if letter in "cz" else 1)
    assert (residual <= bound * (abs(x) @ abs(wide) @ abs(x) @ abs(wide))[good]).all()


@pytest.mark.parametrize("letter", DTYPES)
@pytest.mark.parametrize("n, count, low", [(3, 7, 1), (4, 9000, 0), (13, 3000, 1), (16, 3000, 0)])
def test_potri_of_a_stack(letter, n, count, low):
    """Many small inverses are solutions; a singular factor stays."""
    a = np.stack([definite(n, letter) + z % 5 * np.eye(n) for z in range(7)])
    c = np.linalg.cholesky(a)
    factors = spoilt((c if low else c.conj().swapaxes(1, 2)).astype(a.dtype), low)
    stack = cupy.asarray(np.resize(factors, (count, n, n)))
    stack[5, n // 2, n // 2] = 0
    actual, info = lapack.potri(stack, lower=low)
    assert info.get().tolist() == [n // 2 + 1 if z == 5 else 0 for z in range(count)]
    assert cupy.array_equal(actual[5], stack[5], equal_nan=True)
    inverses = np.stack([triangle(each, low) for each in np.linalg.inv(a)])
    for z in {0, 1, 6, count - 1}:
        error = abs(triangle(actual[z].get(), low) - inverses[z % 7]).max()
        assert error < 50 * (n + 2) * DTYPES[letter].unit_roundoff * abs(inverses[z % 7]).max()


@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("letter", DTYPES)
def test_lauum_potri_and_solutions(letter, low):
    u = DTYPES[letter].unit_roundoff
    for n in SIZES:
        a = definite(n, letter)
        c = triangle(np.linalg.cholesky(a), 1)
        c = (c if low else c.conj().T).astype(a.dtype)
        factor = cupy.asarray(spoilt(c, low))
        wide = triangle(c, low)
        squared = wide.conj().T @ wide if low else wide @ wide.conj().T
        actual, info = lapack.lauum(factor, lower=low)
        scale = abs(squared).max()
        assert info == 0
        assert abs(triangle(actual.get(), low) - triangle(squared, low)).max() < 4 * (n + 2) * u * scale, n
        whole = wide @ wide.conj().T if low else wide.conj().T @ wide
        inverse = np.linalg.inv(whole)
        actual, info = lapack.potri(factor, lower=low)
        assert info == 0
        error = abs(triangle(actual.get(), low) - triangle(inverse, low)).max()
        assert error < 50 * (n + 2) * u * abs(inverse).max(), n
        for columns in (1, 5, 130):
            b = np.ones((n, columns), a.dtype)
            x, info = lapack.potrs(factor, cupy.asarray(b), lower=low)
            assert info == 0
            assert abs(whole @ x.get() - b).max() < 50 * (n + 2) * u, (n, columns)
        _, x, info = lapack.posv(cupy.asarray(spoilt(a, low)), cupy.asarray(b), lower=low)
        assert info == 0
        assert abs(a @ x.get() - b).max() < 50 * (n + 2) * u, n


def test_zeros_on_the_diagonal():
    for n, at in ((9, 5), (300, 0), (300, 299)):
        t = np.eye(n)
        t[at, at] = 0
        assert lapack.trtri(cupy.asarray(t))[1] == at + 1
        assert lapack.trtrs(cupy.asarray(t), cupy.ones(n))[1] == at + 1


@pytest.mark.parametrize("name", lapack_calls.NAMES)
def test_systems_without_right_hand_sides(name, monkeypatch):
    lapack_calls.check_without_columns(name, cupy.asarray)
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    lapack_calls.check_without_columns(name, np.copy)


def test_host_arrays(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cuda")
    a = definite(200, "d")
    c, info = lapack.dpotrf(a, lower=1)
    assert type(info) is int and info == 0 and backward_error(c, a, 1, "d") < 1
    assert lapack.dpotrf(-a)[1] == 1
