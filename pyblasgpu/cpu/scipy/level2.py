"""Level 2 of NumPy arrays on SciPy's BLAS: vectors are columns, of shape (..., n, 1); see `cpu`.

Level 3 with one column computes what SciPy's Level 2 lacks, as symmetric complex matrices. It does so where
SciPy's BLAS reads too much, as for triangles with NaN beyond them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Diag, Side, Trans, Uplo
from . import level3 as cpu
from .level3 import (
    blas_function,
    column_major,
    matrices,
    operation,
    prefers_transpose,
    quietly,
    triangle_mask,
    update,
)

__all__ = ["gemv", "ger", "symv", "syr", "syr2", "trmv"]


@quietly
def gemv(alpha: Any, a: np.ndarray, x: np.ndarray, beta: Any, y: np.ndarray, trans: Trans) -> None:
    """``y := alpha op(a) x + beta y``."""
    if alpha == 0 or 0 in a.shape[-2:]:
        cpu.gemm(alpha, a, x, beta, y, trans, Trans.NO)
        return
    view, conj = operation(a, trans)
    run = blas_function("gemv", y.dtype)
    for each, vector, target in matrices(view, x, y):
        factor, code = column_major(each, conj)
        source = np.ascontiguousarray(vector[:, 0])

        def multiply(start: Any, factor: Any = factor, source: Any = source, code: int = code) -> Any:
            return run(alpha, factor, source, beta, start, trans=code, overwrite_y=1)

        update(target[:, 0], multiply, read=beta != 0)


@quietly
def symv(
    alpha: Any, a: np.ndarray, x: np.ndarray, beta: Any, y: np.ndarray, uplo: Uplo, hermitian: bool
) -> None:
    """``y := alpha a x + beta y``; `uplo` of the symmetric or Hermitian `a` is read."""
    is_complex = y.dtype.kind == "c"
    if alpha == 0 or is_complex or 0 in a.shape:
        cpu.symm(alpha, a, x, beta, y, Side.LEFT, uplo, hermitian)
        return
    run = blas_function("symv", y.dtype)
    for each, vector, target in matrices(a, x, y):
        lower = uplo is Uplo.LOWER
        if prefers_transpose(each):
            each, lower = each.T, not lower
        factor, source = np.asfortranarray(each), np.ascontiguousarray(vector[:, 0])

        def multiply(start: Any, factor: Any = factor, source: Any = source, lower: bool = lower) -> Any:
            return run(alpha, factor, source, beta, start, lower=lower, overwrite_y=1)

        update(target[:, 0], multiply, read=beta != 0)


def trmv(
    a: np.ndarray, x: np.ndarray, y: np.ndarray | None = None, *, uplo: Uplo, trans: Trans, diag: Diag
) -> None:
    """``y := op(a) x``, by default in x."""
    if y is not None:
        y[...] = x
    cpu.trmm(1, a, x if y is None else y, Side.LEFT, uplo, trans, diag)


@quietly
def ger(alpha: Any, x: np.ndarray, y: np.ndarray, a: np.ndarray, conj: bool, is_new_output: bool) -> None:
    """``a := alpha x y' + a``; y is conjugated if `conj`. A new `a` holds nothing yet."""
    if is_new_output:
        a[...] = 0
    conj = conj and a.dtype.kind == "c"
    if alpha == 0:
        return
    run = blas_function("geru" if a.dtype.kind == "c" else "ger", a.dtype)
    for rows, cols, target in matrices(x, y, a):
        left, right = rows[:, 0], cols[:, 0].conj() if conj else cols[:, 0]
        if prefers_transpose(target):
            left, right, target = right, left, target.T
        first, second = np.ascontiguousarray(left), np.ascontiguousarray(right)

        def add(start: Any, first: Any = first, second: Any = second) -> Any:
            return run(alpha, first, second, a=start, overwrite_x=0, overwrite_y=0, overwrite_a=1)

        update(target, add, read=True)


def syr(alpha: Any, x: np.ndarray, a: np.ndarray, uplo: Uplo, hermitian: bool, is_new_output: bool) -> None:
    """A triangle of ``a := alpha x x' + a``; of a new `a` the other one becomes zero."""
    _rank_1("syr", alpha, (x,), a, uplo, hermitian, is_new_output)


def syr2(
    alpha: Any, x: np.ndarray, y: np.ndarray, a: np.ndarray, uplo: Uplo, hermitian: bool, is_new_output: bool
) -> None:
    """Compute one triangle of ``a := alpha x y' + alpha y x' + a``."""
    _rank_1("syr2", alpha, (x, y), a, uplo, hermitian, is_new_output)


@quietly
def _rank_1(
    stem: str,
    alpha: Any,
    vectors: tuple[np.ndarray, ...],
    a: np.ndarray,
    uplo: Uplo,
    hermitian: bool,
    is_new_output: bool,
) -> None:
    if alpha == 0:
        if is_new_output:
            a[...] = 0
        return
    if a.dtype.kind == "c":
        beta = 0 if is_new_output else 1
        flags = {"hermitian": hermitian, "is_new_output": is_new_output}
        getattr(cpu, f"{stem}k")(alpha, *vectors, beta, a, uplo, Trans.NO, **flags)
        return
    if is_new_output:
        a[...] = 0
    run = blas_function(stem, a.dtype)
    for *columns, target in matrices(*vectors, a):
        lower = uplo is Uplo.LOWER
        if prefers_transpose(target):
            target, lower = target.T, not lower
        dense = [np.ascontiguousarray(each[:, 0]) for each in columns]

        def add(start: Any, dense: Any = dense, lower: bool = lower) -> Any:
            return run(alpha, *dense, a=start, lower=lower, overwrite_a=1)

        update(target, add, read=True, kept=triangle_mask(len(target), lower))
