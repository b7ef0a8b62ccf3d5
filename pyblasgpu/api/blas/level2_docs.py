"""Docstrings of `blas`: a row a routine of Level 2, and what these share."""

from __future__ import annotations

from ..docstrings import Shared
from .docs import COMMON, REAL_ALPHA, Row

__all__ = ["LEVEL_2"]

_VECTOR = Shared(
    """
    Parameters
    ----------
    x : array, shape (lx,)
        The vector; an array of several dimensions counts in the order of columns.
    beta : number, default 0
        The factor of `y`. With 0, its elements are not read.
    y : array, shape (ly,), optional
        The vector that is added to. By default 0.
    offx : int, default 0
        The first element of x in memory.
    incx : int, default 1
        The step from one element of x to the next; with a negative one the vector runs backwards.
    offy : int, default 0
        The first element of y in memory.
    incy : int, default 1
        The step from one element of y to the next; with a negative one the vector runs backwards.
    overwrite_x : bool, default False
        Whether `x` may hold the result, as it does if it is contiguous by columns and of the routine's dtype.
    overwrite_y : bool, default False
        Whether `y` may hold the result, as it does if it is contiguous by columns and of the routine's dtype.

    Returns
    -------
    y : array, shape (ly,)
        The result; between its elements `y` as it was, or zeros in a new one.
    """,
    COMMON,
)
_TRIANGLE = Shared(
    """
    Parameters
    ----------
    a : array, shape (n, n)
        A triangle. The other one, and a unit diagonal, are not read.
    lower : {0, 1}, default 0
        Whether `a` is lower triangular.
    """,
    _VECTOR,
)
_RANK_1 = Shared(
    """
    Parameters
    ----------
    x, y : array, one-dimensional
        The vectors.
    x : array, one-dimensional
        The vector.
    lower : {0, 1}, default 0
        Whether the lower triangle is computed, else the upper one.
    n : int, optional
        The number of elements; by default as many as there are.
    a : array, optional
        The matrix that is added to. By default 0.
    overwrite_a : bool, default False
        Whether `a` may hold the result, as it does if it is column-major and of the routine's dtype.

    Returns
    -------
    a : array, shape (n, n)
        The result, column-major; the other triangle is that of `a`, or zeros.
    """,
    _VECTOR,
)
_UPDATED_A = "a : array, shape (n, n)"
_SYMV = Row(
    _VECTOR,
    "Product of a symmetric matrix and a vector, ``alpha a x + beta y``",
    "y : array, shape (ly,)",
    "{}(1, [[1, 2], [0, 3]], [1, 1]).real.tolist()\n[3.0, 5.0]",
    "a : array, shape (n, n)\n    The matrix, of which one triangle is read.",
)
_GER = Row(
    _RANK_1,
    "Update of a matrix by the outer product of two vectors, ``alpha x y^T + a``",
    "a : array, shape (m, n)\n    The result, column-major.",
    "{}(1, [1, 2], [3, 4]).real.tolist()\n[[3.0, 4.0], [6.0, 8.0]]",
    """
x : array, shape (m,)
    The vector along the rows.
y : array, shape (n,)
    The vector along the columns.
incx, incy : {1, -1}, default 1
    With -1 the vector runs backwards.
overwrite_x, overwrite_y : bool, default True
    Without effect: neither is written.
""",
    "ger",
)
_RANK_1_EXAMPLE = "{}(1, [1, 2], lower=1).real.tolist()\n[[1.0, 0.0], [2.0, 4.0]]"
_RANK_2_EXAMPLE = "{}(1, [1, 2], [0.5, 1], lower=1).real.tolist()\n[[1.0, 0.0], [2.0, 4.0]]"

LEVEL_2 = {
    "gemv": Row(
        _VECTOR,
        "Product of a matrix and a vector, ``alpha op(a) x + beta y``",
        "y : array, shape (ly,)",
        "{}(1, [[1, 2], [3, 4]], [1, 1]).real.tolist()\n[3.0, 7.0]",
        "a : array, shape (m, n)\n    The matrix.",
    ),
    "symv": _SYMV,
    "hemv": _SYMV._replace(summary="Product of a Hermitian matrix and a vector, ``alpha a x + beta y``"),
    "trmv": Row(
        _TRIANGLE,
        "Product of a triangular matrix and a vector, ``op(a) x``",
        "x : array, shape (lx,)\n    The product; between its elements `x` as it was.",
        "{}([[2, 0], [1, 2]], [4, 4], lower=1).real.tolist()\n[8.0, 12.0]",
    ),
    "trsv": Row(
        _TRIANGLE,
        "Solution of a triangular system, the vector y with ``op(a) y = x``",
        "xout : array, shape (lx,)\n    The solution; between its elements `x` as it was.",
        "{}([[2, 0], [1, 2]], [4, 4], lower=1).real.tolist()\n[2.0, 1.0]",
    ),
    "ger": _GER,
    "geru": _GER,
    "gerc": _GER._replace(
        summary="Update of a matrix by the outer product of two vectors, ``alpha x y^H + a``"
    ),
    "syr": Row(
        _RANK_1,
        "Symmetric update of rank 1, of one triangle, ``alpha x x^T + a``",
        _UPDATED_A,
        _RANK_1_EXAMPLE,
    ),
    "her": Row(
        _RANK_1,
        "Hermitian update of rank 1, of one triangle, ``alpha x x^H + a``",
        _UPDATED_A,
        _RANK_1_EXAMPLE,
        REAL_ALPHA,
    ),
    "syr2": Row(
        _RANK_1,
        "Symmetric update of rank 2, of one triangle, ``alpha x y^T + alpha y x^T + a``",
        _UPDATED_A,
        _RANK_2_EXAMPLE,
    ),
    "her2": Row(
        _RANK_1,
        "Hermitian update of rank 2, of one triangle, ``alpha x y^H + conj(alpha) y x^H + a``",
        _UPDATED_A,
        _RANK_2_EXAMPLE,
    ),
}
