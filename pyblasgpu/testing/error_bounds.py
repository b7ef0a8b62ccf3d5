"""Distance of a large result from the exact one, as a fraction of its error bound.

The whole of a 4096 by 4096 product cannot be recomputed in higher precision in reasonable time; the entries
where some 64 rows and 64 columns cross can. They are drawn at random, and the last row and column are
always among them, where a masked edge would go wrong. Small results are checked in every entry. The bounds
are those of docs/numerics.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import Diag, Dtype, Side, Trans, Uplo, dtype_of

__all__ = ["SAMPLES", "gemm_3m_error", "gemm_error", "rank_k_error", "symm_error", "trmm_error", "trsm_error"]

SAMPLES = 64

_WIDE: dict[str, Any] = {"s": np.float64, "d": np.longdouble, "c": np.complex128, "z": np.clongdouble}


def gemm_error(alpha, a, b, beta, c, result, seed: int = 0, extra: int = 2, size: Any = np.abs) -> float:
    """Largest sampled error of ``result = alpha a b + beta c`` over its bound.

    All arrays are in host memory; `a` (m, k) and `b` (k, n) have their transposition applied. With alpha = 0
    they are not looked at, and with beta = 0 `c` (None will do) is not. The bound counts `extra` roundings
    besides those of k terms, of what ``size(a)`` and ``size(b)`` say.
    """
    dtype = dtype_of(result.dtype)
    rows, cols = _sample(result.shape, seed)
    c = _crossing(c, rows, cols) if beta != 0 else None
    result = _crossing(result, rows, cols)
    return _worst(dtype, alpha, a[rows], b[:, cols], beta, c, result, a.shape[1] + extra, size=size)


def gemm_3m_error(alpha, a, b, beta, c, result, seed: int = 0) -> float:
    """Return the error of a complex product by three real ones, over a bound on the sums of both parts."""

    def parts(x):
        return abs(x.real) + abs(x.imag)

    return gemm_error(alpha, a, b, beta, c, result, seed, extra=6, size=parts)


def trmm_error(alpha, a, b, result, side: Side, uplo: Uplo, trans: Trans, diag: Diag, seed: int = 0) -> float:
    """Largest sampled error of ``result = alpha op(a) b``, or ``alpha b op(a)``, over its bound."""
    dtype = dtype_of(result.dtype)
    op, lower = _left(a, side, uplo, trans)
    if side is Side.RIGHT:
        b, result = b.T, result.T
    rows, cols = _sample(result.shape, seed)
    left = _triangle_rows(op, rows, lower, diag)
    return _worst(dtype, alpha, left, b[:, cols], 0, None, _crossing(result, rows, cols), terms=len(op) + 2)


def trsm_error(alpha, a, b, x, side: Side, uplo: Uplo, trans: Trans, diag: Diag, seed: int = 0) -> float:
    """Largest sampled backward error of the solution x of ``op(a) x = alpha b``, over n u |op(a)| |x|."""
    dtype = dtype_of(x.dtype)
    op, lower = _left(a, side, uplo, trans)
    if side is Side.RIGHT:
        b, x = b.T, x.T
    rows, cols = _sample(x.shape, seed)
    left = _triangle_rows(op, rows, lower, diag)
    right_hand_sides = _WIDE[dtype.letter](alpha) * _crossing(b, rows, cols)
    return _worst(dtype, 1, left, x[:, cols], 0, None, right_hand_sides, terms=len(op))


def symm_error(alpha, a, b, beta, c, result, side: Side, uplo: Uplo, hermitian: bool, seed: int = 0) -> float:
    """Largest sampled error of ``result = alpha a b + beta c``, or ``alpha b a + beta c``, over its bound.

    Of `a` the triangle `uplo` counts; it is symmetric, or Hermitian.
    """
    dtype, lower = dtype_of(result.dtype), uplo is Uplo.LOWER
    if side is Side.RIGHT:
        a, b, result, lower = a.T, b.T, result.T, not lower
        c = c.T if beta != 0 else None
    rows, cols = _sample(result.shape, seed)
    c = _crossing(c, rows, cols) if beta != 0 else None
    left = _symmetric_rows(a, rows, lower, hermitian)
    return _worst(dtype, alpha, left, b[:, cols], beta, c, _crossing(result, rows, cols), terms=len(a) + 2)


def rank_k_error(products: list[tuple], beta, c, result, uplo: Uplo, hermitian: bool = False) -> float:
    """Largest sampled error of a triangle of ``result = alpha a b + ... + beta c`` over its bound.

    `products` are (alpha, a, b), a of shape (n, k), b (k, n), transpositions applied; the other triangles of
    `c` and `result` do not count. With `hermitian` the result's diagonal must be real, and that of `c` counts
    as such.
    """
    dtype = dtype_of(result.dtype)
    wide = _WIDE[dtype.letter]
    rows, cols = _sample(result.shape)
    kept = cols <= rows[:, None] if uplo is Uplo.LOWER else cols >= rows[:, None]
    on_diagonal = cols == rows[:, None]
    result = np.where(kept, _crossing(result, rows, cols), 0)
    if hermitian and result.imag[on_diagonal].any():
        return float("inf")
    if beta != 0:
        c = np.where(kept, _crossing(c, rows, cols), 0)
        c = np.where(on_diagonal, c.real, c).astype(result.dtype) if hermitian else c
    left = np.hstack([wide(alpha) * a[rows] for alpha, a, _ in products])
    right = np.vstack([b[:, cols] for _, _, b in products])
    terms = products[0][1].shape[1] + 1 + len(products)
    return _worst(dtype, 1, left, right, beta, c, result, terms, kept)


def _worst(
    dtype: Dtype, alpha, left, right, beta, c, result, terms: int, kept: Any = True, size: Any = np.abs
) -> float:
    """max |alpha left right + beta c - result| / (terms u (|alpha| |left| |right| + |beta| |c|)).

    Over the entries that are `kept`; `size` gives |left| and |right|.
    """
    wide = _WIDE[dtype.letter]
    left, right = left.astype(wide), right.astype(wide)
    exact, gauge = np.zeros(result.shape, wide), np.zeros(result.shape, np.finfo(wide).dtype)
    if alpha != 0:
        exact += wide(alpha) * (left @ right)
        gauge += abs(alpha) * (size(left) @ size(right))
    if beta != 0:
        exact += wide(beta) * c
        gauge += abs(beta) * abs(c.astype(wide))
    # sqrt(8): a complex product of rounded parts (Higham, Accuracy and Stability, lemma 3.5)
    bound = terms * dtype.unit_roundoff * (np.sqrt(8) if dtype.is_complex else 1) * gauge
    error = np.where(kept, abs(exact - result), 0)
    # where the bound is 0 (or NaN) only an exact entry passes
    ratio = np.where(error == 0, 0, np.inf).astype(bound.dtype)
    np.divide(error, bound, out=ratio, where=bound > 0)
    worst = float(ratio.max(initial=0))
    return float("inf") if np.isnan(worst) else worst


def _sample(shape: tuple[int, int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    drawn = (rng.choice(extent, min(SAMPLES - 1, extent), replace=False) for extent in shape)
    # the last, if there is one
    rows, cols = (np.union1d(some, np.arange(extent)[-1:]) for some, extent in zip(drawn, shape, strict=True))
    return rows, cols


def _crossing(x, rows, cols):
    return x[np.ix_(rows, cols)]


def _left(a, side: Side, uplo: Uplo, trans: Trans):
    """The triangle as the left factor of its operand, as a view, and whether it is lower."""
    if trans is Trans.CONJ:
        a = a.conj()
    transposed = (trans is not Trans.NO) != (side is Side.RIGHT)
    return (a.T if transposed else a), (uplo is Uplo.LOWER) != transposed


def _triangle_rows(a, rows, lower: bool, diag: Diag):
    """Rows of the triangle that `a` stores; the other triangle, and a unit diagonal, are not looked at."""
    part, columns = a[rows], np.arange(a.shape[1])
    kept = columns <= rows[:, None] if lower else columns >= rows[:, None]
    part = np.where(kept, part, 0)
    if diag is Diag.UNIT:
        part[np.arange(len(rows)), rows] = 1
    return part


def _symmetric_rows(a, rows, lower: bool, hermitian: bool):
    """Rows of the symmetric (or Hermitian) matrix of which `a` stores a triangle."""
    part, mirrored, columns = a[rows], a[:, rows].T, np.arange(a.shape[1])
    mirrored = mirrored.conj() if hermitian else mirrored
    kept = columns <= rows[:, None] if lower else columns >= rows[:, None]
    part = np.where(kept, part, mirrored)
    diagonal = np.arange(len(rows)), rows
    if hermitian:
        part[diagonal] = part[diagonal].real
    return part
