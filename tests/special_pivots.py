"""Matrices with NaN and Inf for Cholesky's factors, and the factor and info that LAPACK's divisions give."""

from __future__ import annotations

import numpy as np

from pyblasgpu.types import DTYPES

NAN, INF = float("nan"), float("inf")

#: Row, column and value of what is not finite; negative ones count from the end.
PLACES = {
    "first": [(0, 0, INF)],
    "within four": [(3, 3, INF)],
    "next four": [(5, 5, INF)],
    "last": [(-1, -1, INF)],
    "two": [(2, 2, INF), (-2, -2, INF)],
    "four together": [(4, 4, INF), (5, 5, INF), (6, 6, INF), (7, 7, INF)],
    "minus": [(5, 5, -INF)],
    "below": [(6, 2, INF)],
    "far below": [(-1, 0, -INF)],
    "over itself": [(-2, 3, INF), (3, 3, INF)],
    "from itself": [(6, 1, INF), (6, 6, INF)],
    "nan": [(0, 0, NAN)],
    "nan within four": [(6, 6, NAN)],
    "nan last": [(-1, -1, NAN)],
    "nan below": [(-1, 2, NAN)],
    "nan over inf": [(-2, 1, NAN), (1, 1, INF)],
}


def matrix(place: str, letter: str, n: int) -> np.ndarray:
    """A positive definite matrix but for `place`, NaN above the diagonal."""
    dtype, rng = DTYPES[letter], np.random.default_rng(n)
    x = rng.uniform(-1, 1, (n, n))
    if dtype.is_complex:
        x = x + 1j * rng.uniform(-1, 1, (n, n))
    a = (x @ x.conj().T + n * np.eye(n)).astype(dtype.name)
    for row, col, value in PLACES[place]:
        a[row, col] = value
    a[np.triu_indices(n, 1)] = NAN
    return a


def textbook(a: np.ndarray) -> tuple[np.ndarray, int]:
    """The factor by columns, divided by the roots of the pivots, and the number of the first bad pivot."""
    lower = a.astype(np.result_type(a, np.float64))
    n = len(a)
    reals = lower.view(np.float64).reshape(n, n, -1)
    with np.errstate(all="ignore"):
        for j in range(n):
            pivot = lower[j, j].real
            if not pivot > 0:
                return lower, j + 1
            reals[j:, j] /= np.sqrt(pivot)
            lower[j, j] = np.sqrt(pivot)
            lower[j + 1 :, j + 1 :] -= np.outer(lower[j + 1 :, j], lower[j + 1 :, j].conj())
    return lower, 0


def check(factor: np.ndarray, info: int, a: np.ndarray) -> None:
    """`factor` and `info` are those of the lower triangle of `a`, as far as the first bad pivot."""
    expected, number = textbook(a)
    assert info == number
    kept = np.tri(number - 1 if number else len(a), dtype=bool)
    size = len(kept)
    actual, expected = factor[:size, :size][kept], expected[:size, :size][kept]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=size * 100 * np.finfo(a.dtype).eps)
