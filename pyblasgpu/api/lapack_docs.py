"""The docstrings of `lapack`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from .docstrings import filled

__all__ = ["cholesky"]

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
}


def cholesky(stem: str, name: str, types: str) -> str:
    """The docstring of a routine of the Cholesky factorisation, for a dtype."""
    return filled(_CHOLESKY[stem], {**_PARTS, "name": name, "types": types})
