"""The docstrings of LU factors in `lapack`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from .docstrings import filled

__all__ = ["lu"]

_PARTS = {
    "piv": """
piv : array of int32, shape (min(m, n),) or (..., min(m, n)), or `DeviceIntegers`
    Row i was interchanged with row ``piv[i]``, counted from 0. Of device arrays they stay on the device.
""",
    "info": """
info : int, array of int32, or `DeviceIntegers`
    0, or the number, from 1, of the first pivot that is zero: U is singular then. Of a stack there is one a
    matrix. Of device arrays it stays on the device, and is read when it is asked for: ``int(info)``.
""",
    "errors": """
ValueError
    When shapes or flags do not fit.
TypeError
    When an array is complex and the routine real, or has no such cast (long double, objects).
""",
}

_LU = {
    "getrf": """LU factors of a matrix, with partial pivoting: ``P L U = a``%(types)s.

``lu, piv, info = %(name)s(a, [overwrite_a])``

Parameters
----------
a : array, shape (m, n) or (..., m, n)
    The matrix, or a stack.
overwrite_a : bool, optional
    Whether `a` may hold the result.

Returns
-------
lu : array, shape (m, n) or (..., m, n)
    U, and below its diagonal L without its diagonal of ones; column-major unless it is `a`.
%(piv)s
%(info)s

Raises
------
%(errors)s

Notes
-----
The pivot of a column is the first element with the largest ``|re| + |im|``, as in LAPACK. Where it is zero,
nothing is divided by it, and the factorization goes on.
Each entry of ``P L U`` differs from that of `a` by at most ``n u`` times that of ``P |L| |U|``, u the unit
roundoff; for complex numbers sqrt(8) times that (Higham, *Accuracy and Stability of Numerical Algorithms*,
Theorem 9.3). The recursion is that of Toledo (1997) and of LAPACK's getrf2.
""",
}


def lu(stem: str, name: str, types: str) -> str:
    """The docstring of a routine on LU factors, for a dtype."""
    return filled(_LU[stem], {**_PARTS, "name": name, "types": types})
