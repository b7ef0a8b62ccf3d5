"""Matrices that try QR factors, and the bounds that factors keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matrices import times_power_of_two
from residuals import residual

from pyblasgpu.types import DTYPES

__all__ = [
    "SETS",
    "SHAPES",
    "check_factors",
    "leaves",
    "matrix_of",
    "nearly_equal_columns",
    "relative_residual",
    "same",
]

SHAPES = [(1, 1), (7, 1), (1, 7), (4, 4), (40, 40), (70, 33), (33, 70), (130, 6)]
#: Multiple of n u that bounds errors of factors, relative to columns, and of products of columns of Q.
FACTOR = 10


def _graded(a: np.ndarray) -> np.ndarray:
    """Rows and columns over many orders of magnitude."""
    m, n = a.shape
    span = 6 if np.finfo(a.dtype).eps > 1e-10 else 30
    rows, columns = (np.logspace(0, -span, extent)[::step] for extent, step in ((m, 1), (n, -1)))
    return a * rows[:, None] * columns


def _nearly_dependent(a: np.ndarray) -> np.ndarray:
    return a[:, :1] + np.finfo(a.dtype).eps * 8 * a


def _zero_columns(a: np.ndarray) -> np.ndarray:
    return np.where(np.arange(a.shape[1]) % 3 == 0, 0, a)


def _huge(a: np.ndarray) -> np.ndarray:
    return a * (np.finfo(a.dtype).max / 1e8)


def _tiny(a: np.ndarray) -> np.ndarray:
    return a * (np.finfo(a.dtype).tiny * 1e8)


SETS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "random": lambda a: a,
    "graded": _graded,
    "nearly dependent": _nearly_dependent,
    "zero columns": _zero_columns,
    "zeros": np.zeros_like,
    "triangular": np.triu,
    "huge": _huge,
    "tiny": _tiny,
    "constant": np.ones_like,
}


def matrix_of(kind: str, letter: str, *shape: int, seed: int = 0) -> np.ndarray:
    """A matrix of a set, or a stack of different ones."""
    dtype = np.dtype(DTYPES[letter].name)
    rng = np.random.default_rng(seed)
    *batch, m, n = shape
    if batch:
        stack = [matrix_of(kind, letter, *shape[1:], seed=seed + index) for index in range(batch[0])]
        return np.stack(stack) if stack else np.zeros(shape, dtype)
    a = rng.uniform(-1, 1, (m, n)) + (1j * rng.uniform(-1, 1, (m, n)) if dtype.kind == "c" else 0)
    return SETS[kind](a.astype(dtype)).astype(dtype)


def nearly_equal_columns(letter: str, m: int, n: int) -> np.ndarray:
    """A matrix of which Cholesky factors are good, though the first columns differ by little, and the next
    one has much of that difference. So R^-1 is large where R is not small.
    """
    a = matrix_of("random", letter, m, n)
    difference = a[:, 1].copy()
    a[:, 1] = a[:, 0] + np.sqrt(10 * np.finfo(a.dtype).eps) * 100 * difference
    a[:, 2] += 5 * difference
    return a


def relative_residual(a: np.ndarray, q: np.ndarray, r: np.ndarray) -> float:
    """The largest norm of a column of A - Q R over that of A's."""
    error, size = (np.linalg.norm(each, axis=-2) for each in (residual(a, q, r), a.astype("D")))
    return float((error / size).max())


def check_factors(a: np.ndarray, q: np.ndarray, r: np.ndarray) -> None:
    """Check that the columns of Q are orthonormal, R is triangular, and Q R is `a`, of any size."""
    m, n = a.shape[-2:]
    bound = FACTOR * max(m, n) * np.finfo(a.dtype).eps
    exponent = -np.frexp(np.abs(a).max(axis=(-2, -1), keepdims=True))[1]
    a, r = (times_power_of_two(each, exponent) for each in (a, r))
    assert not np.tril(r, -1).any()
    departures = residual(np.eye(q.shape[-1]), q.swapaxes(-1, -2).conj(), q)
    assert np.linalg.norm(departures, axis=(-2, -1)).max() <= bound
    errors = np.linalg.norm(residual(a, q, r), axis=-2)
    assert (errors <= bound * np.linalg.norm(a.astype("D"), axis=-2)).all()


def leaves(results) -> list[np.ndarray]:
    """The arrays of a result, those of pairs among them."""
    if not isinstance(results, (tuple, list)):
        return [results]
    return [leaf for each in results for leaf in leaves(each)]


def same(ours, theirs) -> None:
    """Raise unless the arrays of two results agree to a few roundoffs."""
    ours, theirs = leaves(ours), leaves(theirs)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape and (one.dtype == other.dtype or not one.size)
        scale = np.abs(other).max() if other.size else 1
        eps = 1 if one.dtype.kind == "i" else np.finfo(one.dtype).eps
        np.testing.assert_allclose(one, other, rtol=0, atol=100 * eps * scale)
