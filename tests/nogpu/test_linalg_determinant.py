"""Determinants at the ends of the range beside exact ones, and of what is not finite beside NumPy's."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import fake_device
import numpy as np
import pytest
import scipy.linalg
from exact_determinants import check_slogdet, exact_determinant, systems, values

from pyblasgpu import linalg
from pyblasgpu.api.linalg import determinant

DTYPES = "fdFD"
NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")


@pytest.mark.parametrize("dtype", DTYPES)
def test_slogdet_of_diagonals_up_to_the_ends_of_the_range(dtype):
    numbers = values(dtype)
    a = np.array([np.diag(pair) for pair in product(numbers, numbers[::3])], dtype)
    check_slogdet(linalg.slogdet(a), a)
    one = np.array(numbers, dtype)[:, None, None]
    check_slogdet(linalg.slogdet(one), one)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_slogdet_of_scaled_rows(dtype, n):
    a = systems(dtype, 20, n)
    check_slogdet(linalg.slogdet(a), a)
    check_slogdet(linalg.slogdet(a.reshape(4, 5, n, n)), a.reshape(4, 5, n, n))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_det_where_partial_products_leave_the_range(dtype, n):
    """What float64 holds is right, in whatever order the factors are; beyond it is inf or zero."""
    for a in systems(dtype, 20, n):
        re, im = exact_determinant(a)
        size = max(abs(re), abs(im))
        actual = linalg.det(a)
        if Fraction(1, 2**1000) < size < 2**1000:
            expected = complex(float(re), float(im)) if dtype in "FD" else float(re)
            # where it is the exponential of a sum of logarithms, that sum has errors of its size
            assert abs(actual - expected) <= 3000 * float(np.finfo(dtype).eps) * abs(expected)
        elif size > 2**1030:
            assert not np.isfinite(actual)


def test_the_product_of_large_and_small_numbers():
    for order in permutations([1e200, -1e250, 1e-200, 3e-250, 1.0]):
        for dtype in "dD":
            a = np.diag(np.array(order, dtype))
            np.testing.assert_allclose([linalg.det(a), linalg.det(np.stack([a]))[0]], -3, 1e-12)


def test_integers_are_exact():
    a = np.array([[2, 1, 0], [3, -1, 4], [1, 5, 9]])
    assert round(float(linalg.det(np.diag([2, -3, 5, 7])))) == linalg.det(np.diag([2, -3, 5, 7])) == -210
    check_slogdet(linalg.slogdet(a), a.astype("d"))
    check_slogdet(linalg.slogdet(a.astype("i4")), a.astype("d"))


@pytest.mark.parametrize("n", [10, 300, 2000])
def test_sums_of_many_logarithms(n):
    """Beside sums in extended precision."""
    rng = np.random.default_rng(n)
    for dtype in DTYPES:
        diagonal = np.ldexp(rng.uniform(0.5, 1, n), rng.integers(-120, 120, n)) * rng.choice([-1, 1], n)
        a = np.diag(diagonal.astype(dtype))
        if dtype in "FD":
            a = a * dtype_unit(dtype)
        sign, logarithm = linalg.slogdet(a)
        wide = np.diagonal(a).astype(np.clongdouble)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(logarithm, float(np.log(abs(wide)).sum()), rtol=0, atol=n * 90 * eps)
        assert abs(sign - complex(np.prod(wide / abs(wide)))) < 4 * n * eps


def dtype_unit(dtype: str):
    """3 + 4i, of which a product is no real number."""
    return np.array(3 + 4j, dtype)


# -------------------------------------------------------------------------------------- what is not finite

DIAGONALS = [
    *([value] for value in (NAN, INF, -INF, 0)),
    *([value, other] for value in (NAN, INF, -INF, 0) for other in (1, -2)),
    *([other, value] for value in (NAN, INF, -INF, 0) for other in (1, -2)),
    *product([NAN, INF, -INF, 0], repeat=2),
    [INF, 0, NAN, 1],
    [2, INF, -INF, 5],
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("diagonal", DIAGONALS, ids=str)
def test_what_is_not_finite(diagonal, dtype):
    """A zero pivot makes the determinant zero, whatever else is there, as NumPy has it."""
    a = np.diag(np.array(diagonal, dtype))
    with np.errstate(all="ignore"):
        expected = np.linalg.slogdet(a)
        expected_det = np.linalg.det(a)
        for matrix in (a, np.stack([a, a])):
            for actual, reference in zip(linalg.slogdet(matrix), expected, strict=True):
                np.testing.assert_array_equal(np.unique(actual), np.unique(reference))
    actual = linalg.det(a, check_finite=False)
    if dtype in "fd":
        np.testing.assert_array_equal(actual, expected_det)
    else:  # which of Inf and NaN a complex product gives is open
        assert np.isfinite(actual) == np.isfinite(expected_det)
        assert not np.isfinite(actual) or actual == expected_det


@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonals_and_interchanges(dtype):
    """Diagonals are those of a factorization, up to the ends of the range."""
    diagonals = np.array([[x, y, 1] for x, y in product(values(dtype), values(dtype)[::2])], dtype)
    moved = np.array([[True, False, True], [False, True, False]])[np.arange(len(diagonals)) % 2]
    with np.errstate(all="ignore"):
        sign, logarithm, _ = determinant.signs_and_logarithms(diagonals, moved)
        odd = np.where(np.arange(len(diagonals)) % 2, -1, 1).astype(dtype)
        check_slogdet((sign * odd, logarithm), np.stack([np.diag(each) for each in diagonals]))
        broken = np.array([[0, NAN], [INF, 0], [1, 0]], dtype)
        sign, logarithm, _ = determinant.signs_and_logarithms(broken, moved[:1, :2])
    assert (sign == 0).all() and (logarithm == -INF).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_order_zero(dtype):
    for shape in ((0, 0), (3, 0, 0), (0, 2, 2)):
        a = np.ones(shape, dtype)
        for actual, expected in zip(linalg.slogdet(a), np.linalg.slogdet(a), strict=True):
            np.testing.assert_array_equal(actual, expected, strict=True)
        np.testing.assert_array_equal(linalg.det(a), scipy.linalg.det(a))


# ------------------------------------------------------------------------------------ arrays of a device


@pytest.mark.parametrize("dtype", DTYPES)
def test_of_device_arrays(dtype, fake):
    put = fake_device.Array
    a = systems(dtype, 6, 3)
    sign, logarithm = linalg.slogdet(put(a))
    check_slogdet((sign.host, logarithm.host), a)
    diagonals = np.array([np.diag([x, 1]) for x in values(dtype)], dtype)
    sign, logarithm = linalg.slogdet(put(diagonals))
    check_slogdet((sign.host, logarithm.host), diagonals)
    np.testing.assert_allclose(linalg.det(put(np.diag([1e200, 1e200, -1e-200, 1e-200]))).host, -1, 1e-12)
