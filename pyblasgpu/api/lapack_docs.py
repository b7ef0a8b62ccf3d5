"""The docstrings of `lapack`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from .docstrings import examples_of, filled

__all__ = ["cholesky", "triangular"]

_PARTS = {
    "examples": examples_of("lapack"),
    "lower": """
lower : {0, 1}, default 0
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
overwrite_b : bool, default False
    Whether `b` may hold the result.
""",
    "overwrite_c": """
overwrite_c : bool, default False
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
    "raises": """
Raises
------
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
clean : {0, 1}, default 1
    Whether the other triangle of the result is zero, else that of `a`.
overwrite_a : bool, default False
    Whether `a` may hold the result.

Returns
-------
c : array, shape (n, n) or (..., n, n)
    The factor L of ``a = L L^H``, or U of ``a = U^H U``; column-major unless it is `a`. Where a pivot is not
    positive, the columns of L, rows of U, before it are right, and the rest of the triangle is worth nothing.
%(info)s

%(raises)s

See Also
--------
potrs : Solve by the factor.
pyblasgpu.linalg.cholesky : With SciPy's signature, and an error in place of `info`.

Notes
-----
Each entry of ``L L^H`` differs from that of `a` by at most ``(n+4) u`` times that of ``|L| |L^H|``, u the
unit roundoff; for complex numbers sqrt(8) times that (Higham, *Accuracy and Stability of Numerical
Algorithms*, Theorem 10.3). The recursion is that of LAPACK's potrf2 (Gustavson, 1997).

%(examples)s
>>> c, info = lapack.%(name)s([[4, 2], [2, 5]], lower=1)
>>> c.real.tolist(), info
([[2.0, 0.0], [1.0, 2.0]], 0)
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

%(raises)s

See Also
--------
potrf : Makes the factor.
pyblasgpu.linalg.inv : From the matrix itself.

Notes
-----
The inverse of the triangle, then its product with its conjugate transpose: `trtri` and `lauum`.

%(examples)s
>>> inv_a, info = lapack.%(name)s([[0.5, 0], [0.5, 0.5]], lower=1)
>>> inv_a.real.tolist(), info
([[8.0, 0.0], [-4.0, 4.0]], 0)
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

%(raises)s

See Also
--------
potrf : Makes the factor.
pyblasgpu.linalg.cho_solve : With SciPy's signature, and an error in place of `info`.

Notes
-----
Two triangular systems, solved by substitution: the bounds of `trsm` hold for each.

%(examples)s
>>> x, info = lapack.%(name)s([[2, 0], [1, 2]], [8, 14], lower=1)
>>> x.real.tolist(), info
([0.75, 2.5], 0)
""",
    "posv": """Solution of a Hermitian positive definite system%(types)s.

``c, x, info = %(name)s(a, b, [lower, overwrite_a, overwrite_b])``

Parameters
----------
a : array, shape (n, n) or (..., n, n)
    One triangle is read, without the imaginary parts of the diagonal.
%(b)s
%(lower)s
overwrite_a : bool, default False
    Whether `a` may hold the factor.
%(overwrite_b)s

Returns
-------
c : array, shape (n, n) or (..., n, n)
    The Cholesky factor in one triangle, as of `potrf`; the other one is that of `a`.
x : array
    The solution, shaped as `b`; column-major unless it is `b`. Where `info` is not 0 it is `b`.
%(info)s

%(raises)s

See Also
--------
potrf : The factor.
potrs : The solution from the factor.
pyblasgpu.linalg.solve : With SciPy's signature, and an error in place of `info`.

%(examples)s
>>> c, x, info = lapack.%(name)s([[4, 2], [2, 5]], [8, 14], lower=1)
>>> x.real.tolist(), info
([0.75, 2.5], 0)
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
unitdiag : {0, 1}, default 0
    Take the diagonal to be 1; then it is not written either.
%(overwrite_c)s

Returns
-------
inv_c : array, shape (n, n) or (..., n, n)
    The inverse in the same triangle; the rest is that of `c`. Column-major unless it is `c`.
%(zero_pivot)s

%(raises)s

See Also
--------
trtrs : Solve without an inverse, which is more accurate.
pyblasgpu.trsm : Many triangles, or from the right.

Notes
-----
Blocks on the diagonal are inverted by substitution, and merged by two products with triangles. The residual
``X c - I`` is bounded componentwise by ``4 (n+1) u |X| |c| |X| |c|`` (Du Croz and Higham, *Stability of
methods for matrix inversion*, IMA J. Numer. Anal. 12, 1992; LAWN 27).

%(examples)s
>>> inv_c, info = lapack.%(name)s([[2, 0], [1, 0.5]], lower=1)
>>> inv_c.real.tolist(), info
([[0.5, 0.0], [-1.0, 2.0]], 0)
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

%(raises)s

See Also
--------
potri : The inverse that it is a part of.

Notes
-----
Componentwise error at most ``(n+2) u |c| |c|^H``, u the unit roundoff; for complex numbers sqrt(8) times
that.

%(examples)s
>>> a, info = lapack.%(name)s([[2, 0], [1, 3]], lower=1)
>>> a.real.tolist(), info
([[5.0, 0.0], [3.0, 9.0]], 0)
""",
    "trtrs": """Solution of a triangular system%(types)s.

``x, info = %(name)s(a, b, [lower, trans, unitdiag, lda, overwrite_b])``

Parameters
----------
a : array, shape (n, n) or (..., n, n)
    A triangle. The other one, a unit diagonal, and rows beyond n are never read.
%(b)s
lower : {0, 1}, default 0
    Whether `a`, as it is stored, is lower triangular.
trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
    The op of ``op(a) x = b``: as it is, transposed, conjugate transposed.
unitdiag : {0, 1}, default 0
    Take the diagonal to be 1.
lda : int, optional
    Accepted where it is the number of rows of `a`, the default.
%(overwrite_b)s

Returns
-------
%(solution)s
%(zero_pivot)s

%(raises)s

See Also
--------
pyblasgpu.trsm : From either side, and without a look at the diagonal.
pyblasgpu.linalg.solve_triangular : With SciPy's signature, and an error in place of `info`.

Notes
-----
By substitution: the bounds of `trsm` hold.

%(examples)s
>>> x, info = lapack.%(name)s([[2, 0], [1, 0]], [4, 4], lower=1)
>>> info  # the second number of the diagonal is 0
2
""",
}


def cholesky(stem: str, name: str, types: str) -> str:
    """The docstring of a routine of the Cholesky factorisation, for a dtype."""
    return filled(_CHOLESKY[stem], {**_PARTS, "name": name, "types": types})


def triangular(stem: str, name: str, types: str) -> str:
    """The docstring of a routine of triangles, for a dtype."""
    return filled(_TRIANGULAR[stem], {**_PARTS, "name": name, "types": types})
