"""The docstrings of LU factors in `lapack`: one for each routine, for all of its dtypes."""

from __future__ import annotations

from .docstrings import examples_of, filled

__all__ = ["lu"]

_PARTS = {
    "examples": examples_of("lapack"),
    "piv": """
piv : array of int32, shape (min(m, n),) or (..., min(m, n)), or `DeviceIntegers`
    Row i was interchanged with row ``piv[i]``, counted from 0. Of device arrays they stay on the device.
""",
    "given": """
piv : array of int, shape (n,) or (..., n), or `DeviceIntegers`
    The pivots, counted from 0. Those in host memory are checked; on a device int32 and int64 are taken, and
    have to be rows of the matrix.
""",
    "info": """
info : int, array of int32, or `DeviceIntegers`
    0, or the number, from 1, of the first pivot that is zero: U is singular then. Of a stack there is one a
    matrix. Of device arrays it stays on the device, and is read when it is asked for: ``int(info)``.
""",
    "raises": """
Raises
------
ValueError
    When shapes, flags or pivots do not fit.
TypeError
    When an array is complex and the routine real, or has no such cast (long double, objects); when pivots are
    no integers.
""",
}

_LU = {
    "getrf": """LU factors of a matrix, with partial pivoting: ``P L U = a``%(types)s.

``lu, piv, info = %(name)s(a, [overwrite_a])``

Parameters
----------
a : array, shape (m, n) or (..., m, n)
    The matrix, or a stack.
overwrite_a : bool, default False
    Whether `a` may hold the result.

Returns
-------
lu : array, shape (m, n) or (..., m, n)
    U, and below its diagonal L without its diagonal of ones; column-major unless it is `a`.
%(piv)s
%(info)s

%(raises)s

See Also
--------
getrs : Solve by the factors.
pyblasgpu.linalg.lu_factor : With SciPy's signature, and a warning in place of `info`.

Notes
-----
The pivot of a column is the first element with the largest ``|re| + |im|``, as in LAPACK. Where it is zero,
nothing is divided by it, and the factorization goes on.
Each entry of ``P L U`` differs from that of `a` by at most ``n u`` times that of ``P |L| |U|``, u the unit
roundoff; for complex numbers sqrt(8) times that (Higham, *Accuracy and Stability of Numerical Algorithms*,
Theorem 9.3). The recursion is that of Toledo (1997) and of LAPACK's getrf2.

%(examples)s
>>> lu, piv, info = lapack.%(name)s([[1, 2], [2, 8]])
>>> lu.real.tolist(), piv.tolist(), info
([[2.0, 8.0], [0.5, -2.0]], [1, 1], 0)
""",
    "getrs": """Solution of ``op(A) x = b`` from the LU factors of A%(types)s.

``x, info = %(name)s(lu, piv, b, [trans, overwrite_b])``

Parameters
----------
lu : array, shape (n, n) or (..., n, n)
    The factors, as `getrf` leaves them.
%(given)s
b : array, shape (n, r), (n,) or (..., n, r)
    The right-hand sides.
trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
    Whether A itself is meant, its transpose or its conjugate transpose.
overwrite_b : bool, default False
    Whether `b` may hold the result.

Returns
-------
x : array, shape of `b`
    Column-major unless it is `b`. Where U has a zero on its diagonal, it is not finite.
info : int
    Always 0.

%(raises)s

See Also
--------
getrf : Makes the factors.
pyblasgpu.linalg.lu_solve : With SciPy's signature, without `info`.

Notes
-----
``(A + E) x = b`` with each entry of E at most ``(3n+1) u`` times that of ``P |L| |U|``, u the unit roundoff;
for complex numbers sqrt(8) times that (Higham, *Accuracy and Stability of Numerical Algorithms*, Theorem
9.4).

%(examples)s
>>> x, info = lapack.%(name)s([[2, 8], [0.5, -2]], [1, 1], [3, 10])
>>> x.real.tolist(), info
([1.0, 1.0], 0)
""",
    "getri": """Inverse of a matrix from its LU factors%(types)s.

``inv_a, info = %(name)s(lu, piv, [lwork, overwrite_lu])``

Parameters
----------
lu : array, shape (n, n) or (..., n, n)
    The factors, as `getrf` leaves them.
%(given)s
lwork : int, optional
    Accepted where it is at least n, and not needed: the workspace is the library's.
overwrite_lu : bool, default False
    Whether `lu` may hold the result.

Returns
-------
inv_a : array, shape (n, n) or (..., n, n)
    Column-major unless it is `lu`. Where U is singular, it is `lu`.
%(info)s

%(raises)s

See Also
--------
getrf : Makes the factors.
pyblasgpu.linalg.inv : From the matrix itself.

Notes
-----
U is inverted, and ``X L = U^-1`` solved, as in LAPACK's getri (method B of Du Croz and Higham, 1992).

%(examples)s
>>> inv_a, info = lapack.%(name)s([[2, 8], [0.5, -2]], [1, 1])
>>> inv_a.real.tolist(), info
([[2.0, -0.5], [-0.5, 0.25]], 0)
""",
    "gesv": """Solution of ``A x = b`` by LU factors with partial pivoting%(types)s.

``lu, piv, x, info = %(name)s(a, b, [overwrite_a, overwrite_b])``

Parameters
----------
a : array, shape (n, n) or (..., n, n)
    The matrix, or a stack.
b : array, shape (n, r), (n,) or (..., n, r)
    The right-hand sides.
overwrite_a, overwrite_b : bool, default False
    Whether `a`, `b` may hold the results.

Returns
-------
lu : array, shape (n, n) or (..., n, n)
    The factors, as `getrf` leaves them.
%(piv)s
x : array, shape of `b`
    Column-major unless it is `b`. Where U is singular, and `info` not 0, it is `b`.
%(info)s

%(raises)s

See Also
--------
getrf : The factors.
getrs : The solution from the factors.
pyblasgpu.linalg.solve : With SciPy's signature, and an error in place of `info`.

Notes
-----
The bounds are those of `getrf` and `getrs`.

%(examples)s
>>> lu, piv, x, info = lapack.%(name)s([[1, 2], [2, 8]], [3, 10])
>>> x.real.tolist(), info
([1.0, 1.0], 0)
""",
    "laswp": """Interchange rows of a matrix as pivots say%(types)s.

``a = %(name)s(a, piv, [k1, k2, off, inc, overwrite_a])``

Parameters
----------
a : array, shape (m, n) or (..., m, n)
    The matrix, or a stack.
piv : array of int, shape (k,) or (..., k), or `DeviceIntegers`
    Row i and row ``piv[off + k1 + (i - k1) abs(inc)]`` are interchanged, counted from 0. Those in host memory
    are checked; on a device int32 and int64 are taken, and have to be rows of the matrix.
k1, k2 : int, optional
    The first and the last row i; by default 0 and k - 1.
off : int, default 0
    Where in `piv` pivots begin.
inc : int, default 1
    The distance of pivots; where it is negative, rows are interchanged from `k2` to `k1`.
overwrite_a : bool, default False
    Whether `a` may hold the result.

Returns
-------
a : array, shape (m, n) or (..., m, n)
    Column-major unless it is the argument.

%(raises)s

See Also
--------
getrf : Makes the pivots.

%(examples)s
>>> lapack.%(name)s([[1, 2], [3, 4]], [1, 1]).real.tolist()
[[3.0, 4.0], [1.0, 2.0]]
""",
}


def lu(stem: str, name: str, types: str) -> str:
    """The docstring of a routine on LU factors, for a dtype."""
    return filled(_LU[stem], {**_PARTS, "name": name, "types": types})
