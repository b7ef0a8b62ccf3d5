"""The bound of DGEMM by residues: what the check lets pass is within it, in exact numbers."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyblasgpu.kernels.gemm.int8.moduli import (
    LARGEST,
    MODULI,
    bits_of_roots,
    fewest_of_roots,
    largest_square,
)

U = Fraction(1, 2**53)
COUNT = 14


def scaled(x: np.ndarray) -> tuple[np.ndarray, int]:
    """The integers of a row, and their shift, as docs/design/gemm_int8.md has them."""
    square, largest = sum(Fraction(v) ** 2 for v in x), max(abs(Fraction(v)) for v in x)
    shift, most = LARGEST - 1 - (np.frexp(float(largest))[1] - 1), Fraction(largest_square(COUNT))
    while square * Fraction(4) ** int(shift) > most:
        shift -= 1
    return np.array([round(Fraction(v) * Fraction(2) ** int(shift)) for v in x], object), int(shift)


def digits(integers: np.ndarray) -> tuple[np.ndarray, int]:
    """Leading bits of integers, rounded down, and how much their unit is."""
    unit = 2 ** max(int(max(abs(integers))).bit_length() - 7, 0)
    return np.array([abs(i) * 1023 // (1024 * unit) for i in integers], object), unit


def element(x: np.ndarray, y: np.ndarray, sample: np.ndarray) -> tuple[bool, Fraction, Fraction]:
    """Whether an element passes the check; its error, and its bound."""
    (rows, s), (cols, t) = scaled(x), scaled(y)
    (of_rows, unit_x), (of_cols, unit_y) = digits(rows), digits(cols)
    scale = Fraction(2) ** (s + t)
    sizes = sum(abs(Fraction(v) * Fraction(w)) for v, w in zip(x, y, strict=True)) * scale
    exact = sum(Fraction(v) * Fraction(w) for v, w in zip(x, y, strict=True)) * scale
    k, total = len(x), sum(a * b for a, b in zip(rows, cols, strict=True))
    assert 2 * abs(total) < prod(MODULI[:COUNT])
    lower = sum((of_rows * of_cols)[sample]) * unit_x * unit_y
    assert lower <= sizes
    shares = [
        sum(abs(Fraction(v)) for v in z) * Fraction(2) ** shift / 2 + Fraction(k, 8)
        for z, shift in ((x, s), (y, t))
    ]
    return sum(shares) <= (k - 2) * U * lower, abs(total - exact), (k - 2) * U * sizes


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 3, 10, 30]), st.sampled_from([1, 2, 8]))
def test_what_passes_is_within_the_bound(seed, spread, every):
    """Rows have elements of like size, and ever more unlike ones; all digits count, and some."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(60, 400))
    x, y = (
        rng.standard_normal(k)
        * 2.0 ** rng.integers(-spread, spread + 1, k)
        * 2.0 ** int(rng.integers(-300, 300))
        for _ in range(2)
    )
    passes, error, bound = element(x, y, np.arange(k) % every == 0)
    assert not passes or error <= bound
    if spread == 0 and every == 1:
        assert passes


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_rows_that_miss_each_other_do_not_pass(seed):
    """Where large elements meet small ones alone, integers are off by more than the bound."""
    rng = np.random.default_rng(seed)
    k, half = 200, np.arange(200) < 100
    x, y = rng.standard_normal(k), rng.standard_normal(k)
    x, y = np.where(half, x, x * 2.0**-60), np.where(half, y * 2.0**-60, y)
    passes, error, bound = element(x, y, np.ones(k, bool))
    assert not passes and error > bound


def test_integers_are_exact():
    x, y = np.arange(-40.0, 40.0), np.arange(80.0) - 7
    (rows, s), (cols, t) = scaled(x), scaled(y)
    assert sum(rows * cols) == Fraction(2) ** (s + t) * int(x @ y)


def halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Real and imaginary parts of a complex row, its integers, part by part, and their shift."""
    integers, shift = scaled(np.concatenate([x.real, x.imag]))
    return x.real, x.imag, integers.reshape(2, -1), shift


def sizes_of(re, im) -> np.ndarray:
    """The larger part of each element, exactly."""
    return np.array([max(abs(Fraction(a)), abs(Fraction(b))) for a, b in zip(re, im, strict=True)])


def exact_product(x: tuple, y: tuple) -> tuple[Fraction, Fraction]:
    """Return the product of rows whose parts are given."""
    (a, b), (c, d) = ([[Fraction(v) for v in part] for part in row] for row in (x, y))
    terms = list(zip(a, b, c, d, strict=True))
    return sum(p * r - q * s for p, q, r, s in terms), sum(p * s + q * r for p, q, r, s in terms)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 3, 10, 30]), st.sampled_from([1, 8]))
def test_complex_elements_that_pass_are_within_the_bound(seed, spread, every):
    """By one image of digits, those of larger parts."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(60, 300))
    x, y = (
        (rng.standard_normal(k) + 1j * rng.standard_normal(k) * 2.0 ** rng.integers(-spread, 1))
        * 2.0 ** rng.integers(-spread, spread + 1, k)
        for _ in range(2)
    )
    rows, cols = halves(x), halves(y)
    scale = Fraction(2) ** (rows[3] + cols[3])
    (unit_x, of_x), (unit_y, of_y) = (
        (unit, np.maximum(*actual.reshape(2, -1)))
        for actual, unit in (digits(each[2].ravel()) for each in (rows, cols))
    )
    lower = sum((of_x * of_y)[np.arange(k) % every == 0]) * unit_x * unit_y
    sizes = sum(sizes_of(*rows[:2]) * sizes_of(*cols[:2])) * scale
    assert lower <= sizes
    shares = [
        sum(abs(Fraction(v)) for v in np.concatenate(row[:2])) * Fraction(2) ** row[3] / 2
        + Fraction(2 * k, 8)
        for row in (rows, cols)
    ]
    actual, exact = exact_product(rows[2], cols[2]), exact_product(rows[:2], cols[:2])
    assert all(2 * abs(part) < prod(MODULI[:COUNT]) for part in actual)
    square = sum((part - scale * other) ** 2 for part, other in zip(actual, exact, strict=True))
    passes = sum(shares) <= 2 * (k - 2) * U * lower
    assert not passes or square <= 8 * ((k - 2) * U * sizes) ** 2
    if spread == 0 and every == 1:
        assert passes


@pytest.mark.parametrize(("k", "moduli"), [(128, 14), (256, 14), (512, 13), (2048, 13)])
def test_rows_of_factors_have_as_few_moduli_as_keep_their_bound(k, moduli):
    """The worst rows, of equal elements half a unit from integers: their sum of squares is known, and fills
    what the moduli hold.
    """
    assert fewest_of_roots(k) == moduli
    lost = []
    for count in (moduli, moduli - 1):
        bits = bits_of_roots(count)
        assert 2 * 4**bits < prod(MODULI[:count])
        root = 1 << bits - 1  # of a_ii, at least, as scales are powers of two
        integer = isqrt(root * root // k)
        lost.append(k * ((integer + Fraction(1, 2)) ** 2 - integer**2) / (root * root) / U)
    assert lost[0] + 3 <= k < lost[1] + 3
