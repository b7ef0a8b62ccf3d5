"""The Level 2 of `blas`: SciPy's signatures, for all dtypes.

A vector is every `incx`-th element of x from `offx` on; with a negative increment it runs backwards, and ends
there. Results are those of SciPy: as long as y, or x, was, with zeros between the elements of a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments import Array, Flag, Number
from ...frontend.calls.call import Call
from ...frontend.calls.call_cache import repeat
from ...frontend.calls.factor_replay import call_key
from ...types import Diag, Dtype, Trans, Uplo
from ..keyword.level2 import check_square, run_product
from ..keyword.trmv import run_triangular
from .arrays import as_matrix, is_on, repeated
from .functions import dressed, functions_of
from .products import Product, in_vector

__all__ = ["FUNCTIONS"]


def _make_gemv(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
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
        key = call_key(name, offx, incx, offy, incy, trans, overwrite_y)
        if (done := repeated(key, (a, x), alpha, beta, y, overwrite_y)) is not None:
            return done
        op, matrix = Trans.parse(trans, name, "trans"), as_matrix(name, "a", a, dtype)
        m, n = matrix.shape if op is Trans.NO else matrix.shape[::-1]
        offsets = (offx, incx), (offy, incy)
        product = Product(name, dtype, {"a": matrix}, x, y, (m, n), offsets, overwrite_y, key, (a, x))
        return product.run(alpha, beta, _multiply("gemv", {"trans": op}))

    return dressed(gemv, stem, name, dtype)


def _make_symv(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
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
        key = call_key(name, offx, incx, offy, incy, lower, overwrite_y)
        if (done := repeated(key, (a, x), alpha, beta, y, overwrite_y)) is not None:
            return done
        uplo, matrix = Uplo.parse(lower, name, "lower"), as_matrix(name, "a", a, dtype)
        n, offsets = check_square(name, matrix), ((offx, incx), (offy, incy))
        product = Product(name, dtype, {"a": matrix}, x, y, (n, n), offsets, overwrite_y, key, (a, x))
        return product.run(alpha, beta, _multiply(stem, {"uplo": uplo}))

    return dressed(symv, stem, name, dtype)


def _multiply(which: str, flags: dict[str, Any]) -> Callable[..., Any]:
    """Return what runs GEMV, SYMV or HEMV, see `Product.run`."""

    def multiply(
        call: Call, alpha: Any, beta: Any, a: Any, x: Any, key: Any = None, source: Any = None
    ) -> Any:
        return run_product(call, which, alpha, beta, (a, x), flags, key, source)

    return multiply


def _make_trmv(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
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
        return _triangular(stem, name, dtype, a, x, (offx, incx), (lower, trans, diag), overwrite_x)

    return dressed(trmv, stem, name, dtype)


def _make_trsv(stem: str, name: str, dtype: Any) -> Callable[..., Any]:
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
        return _triangular(stem, name, dtype, a, x, (offx, incx), (lower, trans, diag), overwrite_x)

    return dressed(trsv, stem, name, dtype)


def _triangular(
    which: str,
    name: str,
    dtype: Dtype,
    a: Array,
    x: Array,
    at_x: tuple[Any, Any],
    flags: tuple[Flag, Flag, Flag],
    overwrite: Flag,
) -> Array:
    """TRMV or TRSV."""
    key = call_key(name, *at_x, *flags, overwrite)
    if (done := repeat(key, (a, x), x if is_on(overwrite) else None)) is not None:
        return done
    uplo, trans = Uplo.parse(flags[0], name, "lower"), Trans.parse(flags[1], name, "trans")
    diag, matrix = Diag.parse(flags[2], name, "diag"), as_matrix(name, "a", a, dtype)
    order = check_square(name, matrix)

    def run(call: Call, a: Any, x: Any, in_place: bool, key: Any = None) -> Any:
        return run_triangular(call, which, a, x, uplo, trans, diag, in_place, key)

    return in_vector(name, dtype, {"a": matrix}, order, x, at_x, overwrite, run, key, (a, x))


FUNCTIONS = functions_of(
    {"gemv": _make_gemv, "symv": _make_symv, "hemv": _make_symv, "trmv": _make_trmv, "trsv": _make_trsv}
)
