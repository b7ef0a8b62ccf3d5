"""NumPy's functions of dense matrices by its rules: results by rows, its words, no look at conditions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.linalg import LinAlgError

from ..api.linalg import names as linalg
from ..api.linalg.arrays import taken
from ..api.linalg.cholesky import factor_of
from ..api.linalg.condition import Conditions
from ..api.linalg.determinant import determinant_of
from ..api.linalg.inverse import inverse_of
from ..api.linalg.solve import matrix_solution
from ..api.linalg.warnings import warn_of_values

__all__ = ["FUNCTIONS"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _in_words(words: str) -> Callable[[_Function], _Function]:
    """Return a decorator that raises `LinAlgError` in NumPy's words."""

    def decorate(function: _Function) -> _Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except LinAlgError:
                raise LinAlgError(words) from None

        return cast(_Function, call)

    return decorate


@_in_words("Matrix is not positive definite")
def cholesky(a: np.ndarray[Any, Any], /, *, upper: bool = False) -> Any:
    arrays = taken("cholesky", {"a": a})
    with arrays.silent():
        return factor_of(arrays, a, not upper, by_rows=True)


@_in_words("Singular matrix")
def solve(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Any:
    conditions = Conditions(taken("solve", {"a": a, "b": b}), False)
    right = b[:, None] if b.ndim == 1 else b
    with conditions.arrays.silent():
        matrix = conditions.arrays.cast(a)
        x = matrix_solution(conditions, matrix, right, "general", False, False, (False, False))
    return x[..., 0] if b.ndim == 1 else x


@_in_words("Singular matrix")
def inv(a: np.ndarray[Any, Any]) -> Any:
    conditions = Conditions(taken("inv", {"a": a}), False)
    with conditions.arrays.silent():
        return inverse_of(conditions, "general")


def slogdet(a: np.ndarray[Any, Any]) -> Any:
    return type(np.linalg.slogdet(np.eye(1)))(*linalg.slogdet(a))


def det(a: np.ndarray[Any, Any]) -> Any:
    arrays = taken("det", {"a": a})
    with arrays.silent():
        determinants = determinant_of(arrays, a)
    overflows = np.isinf(determinants) & np.isfinite(a).all(axis=(-2, -1))
    warn_of_values("det", overflows, np.isnan(determinants))
    return determinants.astype(a.dtype)[()]


def qr(a: np.ndarray[Any, Any], mode: str = "reduced") -> Any:
    if mode in ("r", "raw"):
        (factors, tau), r = linalg.qr(a, mode="raw", check_finite=False)
        return np.ascontiguousarray(r) if mode == "r" else (factors.swapaxes(-1, -2), tau)
    return _as_numpys("qr", *map(np.ascontiguousarray, linalg.qr(a, mode=mode, check_finite=False)))


def eigh(a: np.ndarray[Any, Any], UPLO: str = "L") -> Any:
    w, v = linalg.eigh(a, UPLO=UPLO)
    return _as_numpys("eigh", w, np.ascontiguousarray(v))


def eigvalsh(a: np.ndarray[Any, Any], UPLO: str = "L") -> Any:
    return linalg.eigvalsh(a, UPLO=UPLO)


def svd(a: np.ndarray[Any, Any], full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return linalg.svdvals(a)
    return _as_numpys("svd", *map(np.ascontiguousarray, linalg.svd(a, full_matrices)))


def _as_numpys(name: str, *results: Any) -> Any:
    """The results of a function in the class of NumPy's, a tuple in older releases."""
    kind: Any = type(getattr(np.linalg, name)(np.eye(1)))
    return results if kind is tuple else kind(*results)


FUNCTIONS = cholesky, solve, inv, slogdet, det, qr, eigh, eigvalsh, svd
