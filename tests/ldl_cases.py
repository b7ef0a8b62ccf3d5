"""Symmetric and Hermitian matrices for factors L D L^H, and a check of factors by LAPACK's format."""

from __future__ import annotations

import numpy as np

from pyblasgpu.types import DTYPES

__all__ = ["KINDS", "check_factors", "product", "special", "symmetric"]

#: Letters, and whether matrices are Hermitian.
KINDS = [("s", False), ("d", False), ("c", False), ("c", True), ("z", False), ("z", True)]


def symmetric(letter: str, *shape: int, hermitian: bool = False, seed: int = 0) -> np.ndarray:
    """Random matrices, their diagonals often small, so that pivots of all kinds are there."""
    rng, dtype, n = np.random.default_rng(seed + shape[-1]), DTYPES[letter], shape[-1]
    a = rng.standard_normal((*shape, n))
    if dtype.is_complex:
        a = a + 1j * rng.standard_normal(a.shape)
    a = a + (a.conj() if hermitian else a).swapaxes(-1, -2)
    a[..., range(n), range(n)] *= rng.choice([0.01, 0.5, 2], shape)
    return a.astype(dtype.name)


def special(letter: str) -> np.ndarray:
    """A stack: regular, zero, of rank one, with a column of zeros, with a diagonal of zeros. Others have
    blocks of order two whose elements are far apart, and equal elements next to zeros; real.
    """
    n, dtype = 6, DTYPES[letter]
    large = 1e15 if dtype.real_size == 4 else 1e150
    a = np.stack([symmetric("d", n) for _ in range(9)])
    a[1], a[2] = 0, 1
    a[3, 2], a[3, :, 2] = 0, 0
    a[4][np.diag_indices(n)] = 0
    a[5], a[6], a[7] = 0, np.eye(n), np.diag([1, large, 1 / large, 1, 0, 1])
    a[8] = 1 - np.eye(n)
    for first, corner in ((0, 1), (2, large), (4, 1 / large)):
        a[5, first, first + 1] = a[5, first + 1, first] = corner
        a[6, first, first + 1] = a[6, first + 1, first] = large
    return a.astype(dtype.name)


def product(
    ldu: np.ndarray, ipiv: np.ndarray, lower: bool, hermitian: bool, rook: bool = False
) -> np.ndarray:
    """P L D L^H P^H of what LAPACK leaves in a triangle of one matrix."""
    n = len(ldu)
    if not lower:  # the lower triangle of the matrix with its rows and columns in reverse
        turned = np.sign(ipiv[::-1]) * (n + 1 - abs(ipiv[::-1]))
        return product(ldu[::-1, ::-1], turned, True, hermitian, rook)[::-1, ::-1]
    low, d, k = np.tril(ldu, -1) + np.eye(n), np.diag(ldu.diagonal()), 0
    rows = np.arange(n)
    while k < n:
        two = int(ipiv[k] < 0)
        for i in (k, k + 1) if two and rook else (k + two,):
            swap = [i, abs(ipiv[i]) - 1]
            low[swap, :k], rows[swap] = low[swap[::-1], :k], rows[swap[::-1]]
        if two:
            d[k + 1, k], d[k, k + 1] = ldu[k + 1, k], ldu[k + 1, k].conj() if hermitian else ldu[k + 1, k]
            low[k + 1, k] = 0
        k += 1 + two
    found = np.empty_like(low)
    found[np.ix_(rows, rows)] = low @ d @ (low.conj() if hermitian else low).T
    return found


def check_factors(a, ldu, ipiv, lower: bool, hermitian: bool, rook: bool = False) -> None:
    """The product of the factors of a stack is `a` to 10 n u; elements of L and pivots are in their range."""
    n, eps = a.shape[-1], np.finfo(a.dtype).eps
    matrices = (
        each.reshape(-1, *each.shape[each.ndim - core :]) for each, core in ((a, 2), (ldu, 2), (ipiv, 1))
    )
    for one, factors, pivots in zip(*matrices, strict=True):
        assert (abs(pivots) >= 1).all() and (abs(pivots) <= n).all()
        error = np.linalg.norm(product(factors.astype("D"), pivots, lower, hermitian, rook) - one)
        assert error <= 5 * n * eps * np.linalg.norm(one)
