"""The docstrings of the Level 2 of `blas`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from ..types import Dtype
from .docstrings import filled

__all__ = ["gemv", "ger", "rank_1", "symv", "triangular"]

_PARTS = {
    "vector_in_place": """
offx, incx : int, optional
    The first element in memory, and from one to the next; with a negative one the vector runs backwards.
""",
    "added": """
beta : number, optional
    The factor of `y`. With 0, its elements are not read.
y : array, shape (ly,), optional
    What is added to. By default 0.
offx, incx, offy, incy : int, optional
    Of x and y, the first element in memory, and from one to the next; with a negative one the vector runs
    backwards.
""",
    "overwrite_y": """
overwrite_y : bool, optional
    Whether `y` may hold the result, as it does if it is contiguous by columns and of the routine's dtype.
""",
    "result_y": """
y : array, shape (ly,)
    As `y` beside the elements of the result; zeros there in a new one.
""",
    "updated": """
a : array, optional
    What is added to. By default 0.
overwrite_a : bool, optional
    Whether `a` may hold the result, as it does if it is column-major and of the routine's dtype.
""",
    "errors": """
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
trans : {0, 1, 2} or {'N', 'T', 'C'}, optional
    The op: as it is, transposed, conjugate transposed.
%(overwrite_y)s

Returns
-------
%(result_y)s

Raises
------
%(errors)s
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
lower : {0, 1}, optional
    Whether the lower triangle of `a` is read, else the upper one.
%(overwrite_y)s

Returns
-------
%(result_y)s

Raises
------
%(errors)s
"""

_TRIANGULAR = """%(summary)s, in %(type)s.

``%(output)s = %(name)s(a, x, [%(places)s, lower, trans, diag, overwrite_x])``

Parameters
----------
a : array, shape (n, n)
    A triangle. The other one, and a unit diagonal, are not read.
x : array, shape (lx,)
    The vector; of more dimensions than one, in the order of columns.
%(vector_in_place)s
lower : {0, 1}, optional
    Whether `a` is lower triangular.
trans : {0, 1, 2} or {'N', 'T', 'C'}, optional
    The op: as it is, transposed, conjugate transposed.
diag : {0, 1} or {'N', 'U'}, optional
    Whether the diagonal of `a` is taken to be 1.
overwrite_x : bool, optional
    Whether `x` may hold the result, as it does if it is contiguous by columns and of the routine's dtype.

Returns
-------
%(output)s : array, shape (lx,)
    As `x` beside the elements of the vector.

Raises
------
%(errors)s
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
incx, incy : {1, -1}, optional
    With -1 the vector runs backwards.
%(updated)s
overwrite_x, overwrite_y : bool, optional
    Of no consequence.

Returns
-------
a : array, shape (m, n)
    Column-major.

Raises
------
%(errors)s
"""

_RANK_1 = """%(kind)s update of rank %(rank)s, of one triangle, ``%(formula)s``, in %(type)s.

``a = %(name)s(alpha, %(arguments)s, [lower, %(places)s, n, a, overwrite_a])``

Parameters
----------
alpha : %(number)s
    The factor of the product.
%(arguments)s : array, one-dimensional
    %(vectors)s
lower : {0, 1}, optional
    Whether the lower triangle is computed, else the upper one.
%(places)s : int, optional
    From one element to the next, and the first one in memory; with a negative increment the vector runs
    backwards.
n : int, optional
    How many elements; by default as many as there are.
%(updated)s

Returns
-------
a : array, shape (n, n)
    Column-major; the other triangle is that of `a`, or zeros.

Raises
------
%(errors)s
"""


def gemv(name: str, dtype: Dtype) -> str:
    """Of GEMV."""
    return filled(_GEMV, {**_PARTS, "name": name, "type": dtype.name})


def symv(name: str, dtype: Dtype) -> str:
    """Of SYMV and HEMV."""
    kind = "Hermitian" if dtype.is_complex else "symmetric"
    return filled(_SYMV, {**_PARTS, "name": name, "type": dtype.name, "kind": kind})


def triangular(which: str, name: str, dtype: Dtype) -> str:
    """Of TRMV and TRSV."""
    summary, output, places = {
        "trmv": ("Product of a triangular matrix and a vector, ``op(a) x``", "x", "offx, incx"),
        "trsv": ("Solution of a triangular system, the vector y with ``op(a) y = x``", "xout", "incx, offx"),
    }[which]
    own = {"name": name, "type": dtype.name, "summary": summary, "output": output, "places": places}
    return filled(_TRIANGULAR, {**_PARTS, **own})


def ger(name: str, dtype: Dtype, suffix: str) -> str:
    """Of GER, GERU and GERC."""
    return filled(_GER, {**_PARTS, "name": name, "type": dtype.name, "y": "y^H" if suffix == "c" else "y^T"})


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
        "name": name,
        "type": dtype.name,
        "kind": "Hermitian" if which.startswith("her") else "Symmetric",
        "rank": "2" if two else "1",
        "formula": formula,
        "arguments": "x, y" if two else "x",
        "places": "incx, offx, incy, offy" if two else "incx, offx",
        "vectors": "The vectors." if two else "The vector.",
        "number": "real number" if which == "her" else "number",
    }
    return filled(_RANK_1, {**_PARTS, **own})
