"""The Level 2 of `blas`: SciPy's signatures, for all dtypes.

A vector is every `incx`-th element of x from `offx` on; with a negative increment it runs backwards, and ends
there. Results are those of SciPy: as long as y, or x, was, with zeros between the elements of a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag, Number
from ...frontend.calls.call import Call
from ...types import DTYPES, Diag, Dtype, Trans, Uplo
from ..keyword.level2 import check_square, run_product
from ..keyword.trmv import run_triangular
from .arrays import as_matrix
from .functions import dressed
from .products import Product, in_vector

__all__ = [
    "cgemv", "chemv", "ctrmv", "ctrsv", "dgemv", "dsymv", "dtrmv", "dtrsv", "sgemv", "ssymv", "strmv",
    "strsv", "zgemv", "zhemv", "ztrmv", "ztrsv",
]  # fmt: skip


def _make_gemv(dtype: Dtype) -> Callable[..., Any]:
    name = dtype.letter + "gemv"

    def gemv(
        alpha: Number,
        a: Array,
        x: Array,
        beta: Number = 0.0,
        y: Array = None,
        offx: int = 0,
        incx: int = 1,
        offy: int = 0,
        incy: int = 1,
        trans: Flag = 0,
        overwrite_y: Flag = 0,
    ) -> Array:
        op, matrix = Trans.parse(trans, name, "trans"), as_matrix(name, "a", a, dtype)
        m, n = matrix.shape if op is Trans.NO else matrix.shape[::-1]
        offsets = (offx, incx), (offy, incy)
        product = Product(name, dtype, {"a": matrix}, x, y, (m, n), offsets, overwrite_y)
        return product.run(
            alpha,
            beta,
            lambda call, factor, scale, a, x: run_product(call, "gemv", factor, scale, (a, x), {"trans": op}),
        )

    return dressed(gemv, "gemv", name, dtype)


def _make_symv(dtype: Dtype) -> Callable[..., Any]:
    stem = "hemv" if dtype.is_complex else "symv"
    name = dtype.letter + stem

    def symv(
        alpha: Number,
        a: Array,
        x: Array,
        beta: Number = 0.0,
        y: Array = None,
        offx: int = 0,
        incx: int = 1,
        offy: int = 0,
        incy: int = 1,
        lower: Flag = 0,
        overwrite_y: Flag = 0,
    ) -> Array:
        uplo, matrix = Uplo.parse(lower, name, "lower"), as_matrix(name, "a", a, dtype)
        n = check_square(name, matrix)
        product = Product(name, dtype, {"a": matrix}, x, y, (n, n), ((offx, incx), (offy, incy)), overwrite_y)
        return product.run(
            alpha,
            beta,
            lambda call, factor, scale, a, x: run_product(call, stem, factor, scale, (a, x), {"uplo": uplo}),
        )

    return dressed(symv, stem, name, dtype)


def _make_trmv(dtype: Dtype) -> Callable[..., Any]:
    name = dtype.letter + "trmv"

    def trmv(
        a: Array,
        x: Array,
        offx: int = 0,
        incx: int = 1,
        lower: Flag = 0,
        trans: Flag = 0,
        diag: Flag = 0,
        overwrite_x: Flag = 0,
    ) -> Array:
        return _triangular("trmv", dtype, a, x, (offx, incx), (lower, trans, diag), overwrite_x)

    return dressed(trmv, "trmv", name, dtype)


def _make_trsv(dtype: Dtype) -> Callable[..., Any]:
    name = dtype.letter + "trsv"

    def trsv(
        a: Array,
        x: Array,
        incx: int = 1,
        offx: int = 0,
        lower: Flag = 0,
        trans: Flag = 0,
        diag: Flag = 0,
        overwrite_x: Flag = 0,
    ) -> Array:
        return _triangular("trsv", dtype, a, x, (offx, incx), (lower, trans, diag), overwrite_x)

    return dressed(trsv, "trsv", name, dtype)


def _triangular(
    which: str,
    dtype: Dtype,
    a: Array,
    x: Array,
    at_x: tuple[Any, Any],
    flags: tuple[Flag, Flag, Flag],
    overwrite: Flag,
) -> Array:
    """TRMV or TRSV."""
    name = dtype.letter + which
    uplo, trans = Uplo.parse(flags[0], name, "lower"), Trans.parse(flags[1], name, "trans")
    diag, matrix = Diag.parse(flags[2], name, "diag"), as_matrix(name, "a", a, dtype)
    order = check_square(name, matrix)

    def run(call: Call, a: Any, x: Any, in_place: bool) -> Any:
        return run_triangular(call, which, a, x, uplo, trans, diag, in_place)

    return in_vector(name, dtype, {"a": matrix}, order, x, at_x, overwrite, run)


_REAL, _COMPLEX = (DTYPES["s"], DTYPES["d"]), (DTYPES["c"], DTYPES["z"])
sgemv, dgemv, cgemv, zgemv = map(_make_gemv, DTYPES.values())
ssymv, dsymv = map(_make_symv, _REAL)
chemv, zhemv = map(_make_symv, _COMPLEX)
strmv, dtrmv, ctrmv, ztrmv = map(_make_trmv, DTYPES.values())
strsv, dtrsv, ctrsv, ztrsv = map(_make_trsv, DTYPES.values())
