"""The verification of factorizations and of solutions by factors: residuals, in multiples of the rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..testing.reference import reals
from ..types import Dtype, Trans, Uplo

__all__ = ["FACTOR_CHECKS", "FACTOR_EXTENTS"]

#: Orders beyond the widest block of a lookahead; of solutions order and right-hand sides.
FACTOR_EXTENTS: dict[str, dict[str, tuple[int, ...]]] = {
    "getrf": {"aligned": (700,), "odd": (517,)},
    "potrf": {"aligned": (700,), "odd": (517,)},
    "getrs": {"aligned": (32, 64), "odd": (31, 33)},
    "geqrf": {"aligned": (700, 64), "odd": (517, 33)},
}
TOLERANCE = 8  # times the order and the rounding, relative to the largest elements

#: Copies a matrix into device memory, in an order of NumPy's; see `verify._Fenced`.
Fence = Callable[[np.ndarray, str], Any]


def _check_cholesky(
    routine: Callable, dtype: Dtype, extents: tuple[int, ...], stream: int, fence: Fence
) -> str:
    (n,) = extents
    a = _general(n, dtype)
    a = a @ a.conj().T + n * np.eye(n, dtype=dtype.name)
    out, info = fence(a, "F"), fence(np.ones((1, 1), dtype.name), "F")
    routine(info.operand, out.operand, stream, uplo=Uplo.LOWER)
    lower = np.tril(out.fetched("potrf"))
    return _failure(info, "potrf") or _residual(lower @ lower.conj().T - a, a, dtype)


def _check_lu(routine: Callable, dtype: Dtype, extents: tuple[int, ...], stream: int, fence: Fence) -> str:
    (n,) = extents
    a = _general(n, dtype)
    out, info, piv = (
        fence(a, "F"),
        fence(np.ones((1, 1), dtype.name), "F"),
        fence(np.ones((n, 1), dtype.name), "F"),
    )
    routine(piv.operand, info.operand, out.operand, stream)
    factors, pivots = out.fetched("getrf"), _integers(piv, "getrf")
    if not all(row <= pivot < n for row, pivot in enumerate(pivots)):
        return "pivots are no rows below"
    rows = np.arange(n)
    for row, pivot in enumerate(pivots):
        rows[[row, pivot]] = rows[[pivot, row]]
    lower = np.tril(factors, -1) + np.eye(n, dtype=dtype.name)
    if abs(lower).max() > 2:
        return "a pivot is not the largest of its column"
    upper = np.triu(factors)
    return _failure(info, "getrf") or _residual(lower @ upper - a[rows], upper, dtype)


def _check_solutions(
    routine: Callable, dtype: Dtype, extents: tuple[int, ...], stream: int, fence: Fence
) -> str:
    n, columns = extents
    factors = _general(n, dtype) + n * np.eye(n, dtype=dtype.name)
    right = reals(np.random.default_rng(columns), (n, columns), dtype)
    rows = np.zeros((n, 1), dtype.name)
    _words(rows)[:] = np.arange(n)
    out, lu, piv = fence(right, "F"), fence(factors, "F"), fence(rows, "F")
    routine(piv.operand, lu.operand, out.operand, stream, trans=Trans.NO)
    lower = np.tril(factors, -1) + np.eye(n, dtype=dtype.name)
    solution = out.fetched("getrs")
    product = lower @ (np.triu(factors) @ solution)
    return _residual(product - right, n * right, dtype)


def _check_reflectors(
    routine: Callable, dtype: Dtype, extents: tuple[int, ...], stream: int, fence: Fence
) -> str:
    """H1 H2 ... R is A."""
    m, n = extents
    a = reals(np.random.default_rng(m), (m, n), dtype)
    out, scalars = fence(a, "F"), fence(np.ones((n, 1), dtype.name), "F")
    routine(scalars.operand, out.operand, stream)
    factors, tau = out.fetched("geqrf"), np.ascontiguousarray(scalars.fetched("geqrf"))
    product, vectors = np.triu(factors), np.tril(factors, -1) + np.eye(m, n, dtype=dtype.name)
    for v, factor in zip(vectors.T[::-1], tau[::-1, 0], strict=True):
        product -= factor * np.outer(v, v.conj() @ product)
    return _residual(product - a, a, dtype)


#: Checks of a routine's results: ``check(routine, dtype, extents, stream, fence)`` returns what is wrong, or
#: ''.
FACTOR_CHECKS: dict[str, Callable[..., str]] = {
    "getrf": _check_lu,
    "potrf": _check_cholesky,
    "getrs": _check_solutions,
    "geqrf": _check_reflectors,
}


def _general(n: int, dtype: Dtype) -> np.ndarray:
    return reals(np.random.default_rng(n), (n, n), dtype)


def _words(values: np.ndarray) -> np.ndarray:
    """The int32 in the first bytes of each element of a column."""
    return values.view(np.int32).reshape(len(values), -1)[:, 0]


def _integers(column: Any, what: str) -> np.ndarray:
    return _words(np.ascontiguousarray(column.fetched(what)))


def _failure(info: Any, what: str) -> str:
    (number,) = _integers(info, what)
    return f"info is {number}" if number else ""


def _residual(difference: np.ndarray, scale: np.ndarray, dtype: Dtype) -> str:
    limit = TOLERANCE * len(difference) * dtype.unit_roundoff * float(abs(scale).max())
    largest = float(abs(difference).max())
    return "" if largest <= limit else f"the residual is {largest:.2e}, more than {limit:.2e}"
