"""L D L^H factors with rook pivots of NumPy matrices, and what is done with them. SciPy's LAPACK lacks them.

The lower triangle is computed; an upper one is that of the matrix with its rows and columns in reverse.
Factors and pivots have LAPACK's format.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["factor", "invert", "pivot", "solve"]

ALPHA = (1 + 17**0.5) / 8  # which bounds the growth of elements
Matrix = np.ndarray[Any, Any]


def factor(a: Matrix, lower: bool, hermitian: bool) -> tuple[Matrix, Matrix, int]:
    """Factors in a triangle of `a`, pivots and info, of one matrix."""
    if lower:
        return _factor(a, hermitian, False)
    factors, pivots, info = _factor(a[::-1, ::-1], hermitian, True)
    return factors[::-1, ::-1], _reversed(pivots), len(a) + 1 - info if info else 0


def _factor(a: Matrix, hermitian: bool, backwards: bool) -> tuple[Matrix, Matrix, int]:
    """Factors of a lower triangle, whose rows the caller's matrix has in reverse or not."""
    n, k, info = len(a), 0, 0
    rest, pivots = _completed(a, hermitian), np.zeros(n, np.int32)
    factors = np.array(a)
    while k < n:
        first, last, is_zero = pivot(rest, k, backwards)
        size = 1 if first < 0 else 2
        end = k + size
        if size == 2:
            _interchange(rest, k, first)
        _interchange(rest, end - 1, last)
        pivots[k : end - 1], pivots[end - 1] = -(first + 1), last + 1 if size == 1 else -(last + 1)
        columns, block = rest[end:, k:end].copy(), rest[k:end, k:end].copy()
        if is_zero:
            info = info or k + 1
            factors[k:, k] = rest[k:, k]
        else:
            below = columns / block if size == 1 else np.linalg.solve(block.T, columns.T).T
            factors[k:end, k:end] = np.tril(block) + np.triu(factors[k:end, k:end], 1)
            factors[end:, k:end] = below
            after = rest[end:, end:] - below @ (columns.conj() if hermitian else columns).T
            rest[end:, end:] = _completed(after, hermitian)  # both triangles with the same roundings
        k = end
    return factors, pivots, info


def solve(factors: Matrix, pivots: Matrix, b: Matrix, lower: bool, hermitian: bool) -> Matrix:
    """X of A X = B, from the factors of A."""
    from scipy.linalg import solve_triangular

    if not lower:
        turned = factors[::-1, ::-1], _reversed(pivots), b[::-1]
        return solve(*turned, True, hermitian)[::-1]
    low, d, rows = _triangle(factors, pivots, hermitian)
    x = solve_triangular(low, b[rows], lower=True, unit_diagonal=True, check_finite=False)
    k = 0
    while k < len(low):
        end = k + 1 + int(pivots[k] < 0)
        block = d[k:end, k:end]
        x[k:end] = x[k:end] / block if end - k == 1 else np.linalg.solve(block, x[k:end])
        k = end
    other = "C" if hermitian else "T"
    x = solve_triangular(low, x, trans=other, lower=True, unit_diagonal=True, check_finite=False)
    found = np.empty_like(x)
    found[rows] = x
    return found


def invert(factors: Matrix, pivots: Matrix, lower: bool, hermitian: bool) -> tuple[Matrix, int]:
    """A triangle of the inverse, the other one of `factors`, and the number of the first zero block of D."""
    zeros = np.flatnonzero((factors.diagonal() == 0) & (pivots > 0))
    if zeros.size:
        return factors, int(zeros[0 if lower else -1]) + 1
    inverse = solve(factors, pivots, np.eye(len(factors), dtype=factors.dtype), lower, hermitian)
    if hermitian:
        np.fill_diagonal(inverse, inverse.diagonal().real.copy())
    kept = np.tri(len(factors), k=-1, dtype=bool)
    return np.where(kept.T if lower else kept, factors, inverse), 0


def _reversed(pivots: Matrix) -> Matrix:
    """Pivots of the matrix with its rows and columns in reverse."""
    found: Matrix = (np.sign(pivots) * (len(pivots) + 1 - abs(pivots)))[::-1]
    return found


def _completed(a: Matrix, hermitian: bool) -> Matrix:
    """The matrix of which the lower triangle is given."""
    below = np.tril(a, -1)
    diagonal = a.diagonal().real if hermitian else a.diagonal()
    whole: Matrix = below + (below.conj() if hermitian else below).T + np.diag(diagonal).astype(a.dtype)
    return whole


def _interchange(rest: Matrix, i: int, j: int) -> None:
    if i != j:
        rest[[i, j]] = rest[[j, i]]
        rest[:, [i, j]] = rest[:, [j, i]]


def pivot(rest: Matrix, k: int, backwards: bool) -> tuple[int, int, bool]:
    """The first row of a pivot of two columns, else -1; its last row; and whether column k is zero."""
    row, most = _largest(rest, k, k, backwards)
    diagonal = _sizes(rest[k, k])
    if not most and not diagonal:
        return -1, k, True
    if not diagonal < ALPHA * most:
        return -1, k, False
    before = k
    while True:
        following, of_row = _largest(rest, k, row, backwards)
        if not _sizes(rest[row, row]) < ALPHA * of_row:
            return -1, row, False
        if following == before or of_row <= most:
            return before, row, False
        before, most, row = row, of_row, following


def _largest(rest: Matrix, k: int, column: int, backwards: bool) -> tuple[int, float]:
    """The row, from k on, of the largest element of a column off the diagonal, and its size; NaN is none. Of
    equal ones that of the caller's first row.
    """
    sizes = _sizes(rest[k:, column])
    sizes[column - k] = 0
    sizes[np.isnan(sizes)] = 0
    row = len(sizes) - 1 - int(sizes[::-1].argmax()) if backwards else int(sizes.argmax())
    return k + row, float(sizes[row])


def _sizes(x: Any) -> Any:
    """|re| + |im|, by which LAPACK chooses."""
    return abs(x.real) + abs(x.imag)


def _triangle(factors: Matrix, pivots: Matrix, hermitian: bool) -> tuple[Matrix, Matrix, Matrix]:
    """L, its rows where all interchanges have them; D; and for each row that of A."""
    n, k, rows = len(factors), 0, np.arange(len(factors))
    low, d = np.tril(factors, -1) + np.eye(n, dtype=factors.dtype), np.diag(factors.diagonal())
    while k < n:
        end = k + 1 + int(pivots[k] < 0)
        for i in range(k, end):
            swap = [i, abs(int(pivots[i])) - 1]
            low[swap, :k], rows[swap] = low[swap[::-1], :k], rows[swap[::-1]]
        if end - k == 2:
            below = factors[k + 1, k]
            d[k + 1, k], d[k, k + 1] = below, below.conj() if hermitian else below
            low[k + 1, k] = 0
        k = end
    return low, d, rows
