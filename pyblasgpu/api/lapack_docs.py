"""The docstrings of `lapack`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from .docstrings import filled

__all__ = ["cholesky", "triangular"]

_PARTS = {
    "lower": """
lower : {0, 1}, optional
    Whether the lower triangle is meant, else the upper one. The other one is not read.
""",
    "info": """
info : int, array of int32, or `DeviceIntegers`
    0, or the number, from 1, of the first pivot that is not positive. Of a stack there is one a matrix. Of
    device arrays it stays on the device, and is read when it is asked for: ``int(info)``, ``info > 0``.
""",
    "zero_pivot": """
info : int, array of int32, or `DeviceIntegers`
    0, or the number, from 1, of the first zero on the diagonal; then the other result is what was passed. Of
    a stack there is one a matrix. Of device arrays it stays on the device, and is read when it is asked for:
    ``int(info)``, ``info > 0``.
""",
    "factor": """
c : array, shape (n, n) or (..., n, n)
    The Cholesky factor, of `potrf`, in one triangle.
""",
    "b": """
b : array, shape (n,), (n, k) or (..., n, k)
    The right-hand sides. Leading dimensions broadcast.
""",
    "overwrite_b": """
overwrite_b : bool, optional
    Whether `b` may hold the result.
""",
    "overwrite_c": """
overwrite_c : bool, optional
    Whether `c` may hold the result.
""",
    "solution": """
x : array
    The solution, shaped as `b`; column-major unless it is `b`.
""",
    "zero_info": """
info : int
    Always 0.
""",
    "errors": """
ValueError
    When shapes or flags do not fit.
TypeError
    When an array is complex and the routine real, or has no such cast (long double, objects).
""",
}

_CHOLESKY = {
    "potrf": """Cholesky factor of a Hermitian positive definite matrix%(types)s.

``c, info = %(name)s(a, [lower, clean, overwrite_a])``

Parameters
----------
a : array, shape (n, n) or (..., n, n)
    One triangle is read, without the imaginary parts of the diagonal.
%(lower)s
clean : {0, 1}, optional
    Whether the other triangle of the result is zero (the default), else that of `a`.
overwrite_a : bool, optional
    Whether `a` may hold the result.

Returns
-------
c : array, shape (n, n) or (..., n, n)
    The factor L of ``a = L L^H``, or U of ``a = U^H U``; column-major unless it is `a`. Where a pivot is not
    positive, the columns of L, rows of U, before it are right, and the rest of the triangle is worth nothing.
%(info)s

Raises
------
%(errors)s

Notes
-----
Each entry of ``L L^H`` differs from that of `a` by at most ``(n+4) u`` times that of ``|L| |L^H|``, u the
unit roundoff; for complex numbers sqrt(8) times that (Higham, *Accuracy and Stability of Numerical
Algorithms*, Theorem 10.3). The recursion is that of LAPACK's potrf2 (Gustavson, 1997).
""",
    "potri": """Inverse of a Hermitian positive definite matrix from its Cholesky factor%(types)s.

``inv_a, info = %(name)s(c, [lower, overwrite_c])``

Parameters
----------
%(factor)s
%(lower)s
%(overwrite_c)s

Returns
-------
inv_a : array, shape (n, n) or (..., n, n)
    The same triangle of the inverse; the other one is that of `c`. Column-major unless it is `c`.
%(zero_pivot)s

Raises
------
%(errors)s

Notes
-----
The inverse of the triangle, then its product with its conjugate transpose: `trtri` and `lauum`.
""",
    "potrs": """Solution of a Hermitian positive definite system from its Cholesky factor%(types)s.

``x, info = %(name)s(c, b, [lower, overwrite_b])``

Parameters
----------
%(factor)s
%(b)s
%(lower)s
%(overwrite_b)s

Returns
-------
%(solution)s
%(zero_info)s

Raises
------
%(errors)s

Notes
-----
Two triangular systems, solved by substitution: the bounds of `trsm` hold for each.
""",
    "posv": """Solution of a Hermitian positive definite system%(types)s.

``c, x, info = %(name)s(a, b, [lower, overwrite_a, overwrite_b])``

Parameters
----------
a : array, shape (n, n) or (..., n, n)
    One triangle is read, without the imaginary parts of the diagonal.
%(b)s
%(lower)s
overwrite_a : bool, optional
    Whether `a` may hold the factor.
%(overwrite_b)s

Returns
-------
c : array, shape (n, n) or (..., n, n)
    The Cholesky factor in one triangle, as of `potrf`; the other one is that of `a`.
x : array
    The solution, shaped as `b`; column-major unless it is `b`. Where `info` is not 0 it is `b`.
%(info)s

Raises
------
%(errors)s

See Also
--------
potrf : The factor.
potrs : The solution from the factor.
""",
}

_TRIANGULAR = {
    "trtri": """Inverse of a triangle%(types)s.

``inv_c, info = %(name)s(c, [lower, unitdiag, overwrite_c])``

Parameters
----------
c : array, shape (n, n) or (..., n, n)
    A triangle. The other one, and a unit diagonal, are never read.
%(lower)s
unitdiag : {0, 1}, optional
    Take the diagonal to be 1; then it is not written either.
%(overwrite_c)s

Returns
-------
inv_c : array, shape (n, n) or (..., n, n)
    The inverse in the same triangle; the rest is that of `c`. Column-major unless it is `c`.
%(zero_pivot)s

Raises
------
%(errors)s

Notes
-----
Blocks on the diagonal are inverted by substitution, and merged by two products with triangles. The residual
``X c - I`` is bounded componentwise by ``3 n u |X| |c| |X| |c|`` (Du Croz and Higham, *Stability of methods
for matrix inversion*, IMA J. Numer. Anal. 12, 1992; LAWN 27).
""",
    "lauum": """Product of a triangle and its conjugate transpose, ``U U^H`` or ``L^H L``%(types)s.

``a, info = %(name)s(c, [lower, overwrite_c])``

Parameters
----------
c : array, shape (n, n) or (..., n, n)
    A triangle. The other one is never read.
%(lower)s
%(overwrite_c)s

Returns
-------
a : array, shape (n, n) or (..., n, n)
    The same triangle of the product; the other one is that of `c`. Column-major unless it is `c`.
%(zero_info)s

Raises
------
%(errors)s

Notes
-----
Componentwise error at most ``(n+2) u |c| |c|^H``, u the unit roundoff; for complex numbers sqrt(8) times
that.
""",
    "trtrs": """Solution of a triangular system%(types)s.

``x, info = %(name)s(a, b, [lower, trans, unitdiag, lda, overwrite_b])``

Parameters
----------
a : array, shape (n, n) or (..., n, n)
    A triangle. The other one, a unit diagonal, and rows beyond n are never read.
%(b)s
lower : {0, 1}, optional
    Whether `a`, as it is stored, is lower triangular.
trans : {0, 1, 2} or {'N', 'T', 'C'}, optional
    The op of ``op(a) x = b``: as it is, transposed, conjugate transposed.
unitdiag : {0, 1}, optional
    Take the diagonal to be 1.
lda : int, optional
    The number of rows of `a`, as it is.
%(overwrite_b)s

Returns
-------
%(solution)s
%(zero_pivot)s

Raises
------
%(errors)s

Notes
-----
By substitution: the bounds of `trsm` hold.
""",
}


def cholesky(stem: str, name: str, types: str) -> str:
    """The docstring of a routine of the Cholesky factorisation, for a dtype."""
    return filled(_CHOLESKY[stem], {**_PARTS, "name": name, "types": types})


def triangular(stem: str, name: str, types: str) -> str:
    """The docstring of a routine of triangles, for a dtype."""
    return filled(_TRIANGULAR[stem], {**_PARTS, "name": name, "types": types})
