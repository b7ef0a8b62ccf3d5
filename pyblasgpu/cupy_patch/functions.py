"""CuPy's functions of dense matrices by its rules: results by rows where its are, and no look at info.

CuPy leaves inf and NaN where a matrix is singular. So solutions substitute, and inverses are solutions.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ..api.keyword.triangular import trsm
from ..api.lapack import names as lapack
from ..api.linalg import names as linalg

__all__ = ["LINALG", "PRODUCTS", "SCIPYS"]

_TRANS = {0: "N", 1: "T", 2: "C"}


def _swapped(a: Any) -> Any:
    return a.swapaxes(-1, -2)


def cholesky(a: Any) -> Any:
    return _swapped(lapack.potrf(_swapped(a), 0, 1)[0])


def _solved(a: Any, b: Any) -> Any:
    factors, pivots, _ = lapack.getrf(a)
    return lapack.getrs(factors, pivots, b)[0]


def solve(a: Any, b: Any) -> Any:
    is_vector = b.ndim == a.ndim - 1
    right = b[..., None] if is_vector else b
    if right.ndim != a.ndim or right.shape[:-1] != a.shape[:-1]:
        raise ValueError(f"solve: a has shape {a.shape}, and b {b.shape}")
    x = _solved(a, right)
    return x[..., 0] if is_vector else x


def inv(a: Any) -> Any:
    cupy = import_module("cupy")
    by_rows = not a.flags.f_contiguous
    matrix = _swapped(a) if by_rows else a
    identity = cupy.zeros(a.shape, a.dtype) + cupy.eye(a.shape[-1], dtype=a.dtype)
    inverse = _solved(matrix, identity)
    return _swapped(inverse) if by_rows else inverse


def slogdet(a: Any) -> Any:
    return _as_cupys("slogdet", *linalg.slogdet(a))


def qr(a: Any, mode: Any = "reduced") -> Any:
    if mode == "r":
        return linalg.qr(a, mode="raw")[1]
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode={mode!r} has results of CuPy's own")
    return _as_cupys("qr", *linalg.qr(a, mode=mode))


def eigh(a: Any, UPLO: Any = "L") -> Any:
    return _as_cupys("eigh", *linalg.eigh(a, UPLO=UPLO))


def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    return linalg.eigvalsh(a, UPLO=UPLO)


def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True) -> Any:
    return _as_cupys("svd", *linalg.svd(a, full_matrices)) if compute_uv else linalg.svdvals(a)


def _as_cupys(name: str, *results: Any) -> Any:
    """The results of a function in the class of CuPy's."""
    kind = _kind_of(name)
    return results if kind is tuple else kind(*results)


@cache
def _kind_of(name: str) -> Any:
    """The class of the results of CuPy's function: a tuple in older releases."""
    cupy = import_module("cupy")
    return type(getattr(cupy.linalg, name)(cupy.eye(1)))


def det(a: Any) -> Any:
    return linalg.det(a).astype(a.dtype)


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: Any = False,
    unit_diagonal: Any = False,
    overwrite_b: Any = False,
    check_finite: Any = False,
) -> Any:
    if check_finite:
        raise ValueError("solve_triangular: check_finite waits for the device")
    right = b[:, None] if b.ndim == 1 else b
    x = trsm(a, right, lower=bool(lower), trans=_TRANS.get(trans, trans), unit_diag=bool(unit_diagonal))
    return x[:, 0] if b.ndim == 1 else x


LINALG = cholesky, solve, inv, slogdet, det, qr, eigh, eigvalsh, svd
SCIPYS = solve_triangular, linalg.lu_factor, linalg.lu_solve, linalg.lu
PRODUCTS = linalg.matmul, linalg.dot
