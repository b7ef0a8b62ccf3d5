"""The docstrings of the Level 2 of `blas`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from ..types import Dtype
from .docstrings import examples_of, filled, see_also

__all__ = ["gemv", "ger", "rank_1", "symv", "triangular"]

_PARTS = {
    "examples": examples_of("blas"),
    "added": """
beta : number, default 0
    The factor of `y`. With 0, its elements are not read.
y : array, shape (ly,), optional
    What is added to. By default 0.
offx, incx, offy, incy : int, optional
    Of x and y, the first element in memory, and from one to the next; by default 0 and 1. With a negative one
    the vector runs backwards.
""",
    "overwrite_y": """
overwrite_y : bool, default False
    Whether `y` may hold the result, as it does if it is contiguous by columns and of the routine's dtype.
""",
    "result_y": """
y : array, shape (ly,)
    As `y` beside the elements of the result; zeros there in a new one.
""",
    "overwrite_a": """
overwrite_a : bool, default False
    Whether `a` may hold the result, as it does if it is column-major and of the routine's dtype.
""",
    "raises": """
Raises
------
ValueError
    When shapes, offsets, increments or flags do not fit.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects).
""",
}

_GEMV = """Product of a matrix and a vector, ``alpha op(a) x + beta y``, in %(type)s.

``y = %(name)s(alpha, a, x, [beta, y, offx, incx, offy, incy, trans, overwrite_y])``

Parameters
----------
alpha : number
    The factor of the product.
a : array, shape (m, n)
    The matrix.
x : array, shape (lx,)
    The vector; of more dimensions than one, in the order of columns.
%(added)s
trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
    The op: as it is, transposed, conjugate transposed.
%(overwrite_y)s

Returns
-------
%(result_y)s

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(1, [[1, 2], [3, 4]], [1, 1]).real.tolist()
[3.0, 7.0]
"""

_SYMV = """Product of a %(kind)s matrix and a vector, ``alpha a x + beta y``, in %(type)s.

``y = %(name)s(alpha, a, x, [beta, y, offx, incx, offy, incy, lower, overwrite_y])``

Parameters
----------
alpha : number
    The factor of the product.
a : array, shape (n, n)
    The matrix, of which one triangle is read.
x : array, shape (lx,)
    The vector; of more dimensions than one, in the order of columns.
%(added)s
lower : {0, 1}, default 0
    Whether the lower triangle of `a` is read, else the upper one.
%(overwrite_y)s

Returns
-------
%(result_y)s

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(1, [[1, 2], [0, 3]], [1, 1]).real.tolist()
[3.0, 5.0]
"""

_TRIANGULAR = """%(summary)s, in %(type)s.

``%(output)s = %(name)s(a, x, [%(places)s, lower, trans, diag, overwrite_x])``

Parameters
----------
a : array, shape (n, n)
    A triangle. The other one, and a unit diagonal, are not read.
x : array, shape (lx,)
    The vector; of more dimensions than one, in the order of columns.
%(places)s : int, optional
    `offx` is the first element in memory, by default 0, and `incx` leads from one to the next, by default 1.
    With a negative one the vector runs backwards.
lower : {0, 1}, default 0
    Whether `a` is lower triangular.
trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
    The op: as it is, transposed, conjugate transposed.
diag : {0, 1} or {'N', 'U'}, default 0
    Whether the diagonal of `a` is taken to be 1.
overwrite_x : bool, default False
    Whether `x` may hold the result, as it does if it is contiguous by columns and of the routine's dtype.

Returns
-------
%(output)s : array, shape (lx,)
    As `x` beside the elements of the vector.

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s([[2, 0], [1, 2]], [4, 4], lower=1).real.tolist()
%(example)s
"""

_GER = """Update of a matrix by the outer product of two vectors, ``alpha x %(y)s + a``, in %(type)s.

``a = %(name)s(alpha, x, y, [incx, incy, a, overwrite_x, overwrite_y, overwrite_a])``

Parameters
----------
alpha : number
    The factor of the product.
x : array, shape (m,)
    The vector along the rows.
y : array, shape (n,)
    The vector along the columns.
incx, incy : {1, -1}, default 1
    With -1 the vector runs backwards.
a : array, optional
    What is added to. By default 0.
overwrite_x, overwrite_y : bool, default True
    Of no consequence: neither is written.
%(overwrite_a)s

Returns
-------
a : array, shape (m, n)
    Column-major.

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(1, [1, 2], [3, 4]).real.tolist()
[[3.0, 4.0], [6.0, 8.0]]
"""

_RANK_1 = """%(kind)s update of rank %(rank)s, of one triangle, ``%(formula)s``, in %(type)s.

``a = %(name)s(alpha, %(arguments)s, [lower, %(places)s, n, a, overwrite_a])``

Parameters
----------
alpha : %(number)s
    The factor of the product.
%(arguments)s : array, one-dimensional
    %(vectors)s
lower : {0, 1}, default 0
    Whether the lower triangle is computed, else the upper one.
%(places)s : int, optional
    From one element to the next, by default 1, and the first one in memory, by default 0; with a negative
    increment the vector runs backwards.
n : int, optional
    How many elements; by default as many as there are.
a : array, optional
    What is added to. By default 0.
%(overwrite_a)s

Returns
-------
a : array, shape (n, n)
    Column-major; the other triangle is that of `a`, or zeros.

%(raises)s

%(see_also)s

%(examples)s
>>> blas.%(name)s(1, %(example)s, lower=1).real.tolist()
[[1.0, 0.0], [2.0, 4.0]]
"""


def gemv(name: str, dtype: Dtype) -> str:
    """Of GEMV."""
    return _of(_GEMV, "gemv", name, dtype)


def symv(name: str, dtype: Dtype) -> str:
    """Of SYMV and HEMV."""
    kind = "Hermitian" if dtype.is_complex else "symmetric"
    return _of(_SYMV, "hemv" if dtype.is_complex else "symv", name, dtype, kind=kind)


def triangular(which: str, name: str, dtype: Dtype) -> str:
    """Of TRMV and TRSV."""
    summary, output, places = {
        "trmv": ("Product of a triangular matrix and a vector, ``op(a) x``", "x", "offx, incx"),
        "trsv": ("Solution of a triangular system, the vector y with ``op(a) y = x``", "xout", "incx, offx"),
    }[which]
    example = "[8.0, 12.0]" if which == "trmv" else "[2.0, 1.0]"
    words = {"summary": summary, "output": output, "places": places, "example": example}
    return _of(_TRIANGULAR, which, name, dtype, **words)


def ger(name: str, dtype: Dtype, suffix: str) -> str:
    """Of GER, GERU and GERC."""
    return _of(_GER, "ger", name, dtype, y="y^H" if suffix == "c" else "y^T")


def rank_1(which: str, name: str, dtype: Dtype) -> str:
    """Of SYR, HER, SYR2 and HER2."""
    formula = {
        "syr": "alpha x x^T + a",
        "her": "alpha x x^H + a",
        "syr2": "alpha x y^T + alpha y x^T + a",
        "her2": "alpha x y^H + conj(alpha) y x^H + a",
    }[which]
    two = which.endswith("2")
    own = {
        "kind": "Hermitian" if which.startswith("her") else "Symmetric",
        "rank": "2" if two else "1",
        "formula": formula,
        "arguments": "x, y" if two else "x",
        "places": "incx, offx, incy, offy" if two else "incx, offx",
        "vectors": "The vectors." if two else "The vector.",
        "number": "real number" if which == "her" else "number",
        "example": "[1, 2], [0.5, 1]" if two else "[1, 2]",
    }
    return _of(_RANK_1, which, name, dtype, **own)


def _of(template: str, stem: str, name: str, dtype: Dtype, **words: str) -> str:
    others = see_also(**{stem: "In keyword style."})
    return filled(template, {**_PARTS, **words, "name": name, "type": dtype.name, "see_also": others})
