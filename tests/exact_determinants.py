"""Determinants by rational arithmetic, and matrices whose entries reach the ends of the range."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import log

import numpy as np

INF = float("inf")


def parts(z) -> tuple[Fraction, Fraction]:
    return Fraction(float(z.real)), Fraction(float(z.imag))


def times(x, y):
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def exact_determinant(a: np.ndarray) -> tuple[Fraction, Fraction]:
    """The real and the imaginary part, by permutations."""
    total = [Fraction(0), Fraction(0)]
    for order in permutations(range(len(a))):
        sign = (-1) ** sum(one > other for i, one in enumerate(order) for other in order[i + 1 :])
        term = Fraction(sign), Fraction(0)
        for row, col in enumerate(order):
            term = times(term, parts(a[row, col]))
        total = [one + other for one, other in zip(total, term, strict=True)]
    return total[0], total[1]


def exact_slogdet(a: np.ndarray) -> tuple[complex, float]:
    re, im = exact_determinant(a)
    scale = max(abs(re), abs(im))
    if not scale:
        return 0, -INF
    unit = complex(float(re / scale), float(im / scale))
    return unit / abs(unit), log(scale.numerator) - log(scale.denominator) + log(abs(unit))


def values(dtype: str) -> list:
    """Numbers from one end of the range to the other."""
    limits = np.finfo(dtype)
    sizes = [limits.smallest_subnormal, limits.tiny / 3, limits.tiny, 0.7, 3, limits.max / 3, limits.max]
    positive = np.array(sizes, limits.dtype)
    reals = np.concatenate([positive, -positive]).astype(dtype)
    return [*reals, *(reals + 1j * reals[::-1]), *(1j * reals - reals)] if dtype in "FD" else [*reals]


def systems(dtype: str, count: int, n: int) -> np.ndarray:
    """Random matrices of small integers with rows scaled by powers of two, up to the ends of the range."""
    rng, limits = np.random.default_rng(n), np.finfo(dtype)
    a = rng.integers(-9, 10, (count, n, n)) + 0j
    if dtype in "FD":
        a += 1j * rng.integers(-9, 10, (count, n, n))
    a[:, range(n), range(n)] += 40
    exponents = rng.integers(limits.minexp + 4, limits.maxexp - 8, (count, n, 1))
    real, imag = (np.ldexp(part, exponents).astype(dtype) for part in (a.real, a.imag))
    return real + 1j * imag if dtype in "FD" else real


def check_slogdet(actual, a: np.ndarray) -> None:
    """Sign and logarithm of each matrix of a stack within a few units in the last place."""
    sign, logarithm = (np.asarray(each) for each in actual)
    assert sign.dtype == a.dtype and logarithm.dtype == a.real.dtype
    eps = float(np.finfo(a.dtype).eps)
    for index in np.ndindex(a.shape[:-2]):
        expected, size = exact_slogdet(a[index])
        np.testing.assert_allclose(sign[index], expected, rtol=0, atol=40 * eps)
        largest = 1500 if a.dtype.char in "dD" else 200  # twice that of a logarithm
        np.testing.assert_allclose(logarithm[index], size, rtol=0, atol=largest * len(a[index]) * eps)
