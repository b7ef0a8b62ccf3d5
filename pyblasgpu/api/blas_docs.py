"""The docstrings of `blas`, to be filled with names and dtypes."""

from __future__ import annotations

__all__ = ["GEMM", "GEMMTR", "RANK_K", "SYMM", "TRIANGULAR"]

GEMM = """``c = {name}(alpha, a, b, [beta, c, trans_a, trans_b, overwrite_c])``

General matrix product, ``alpha op(a) op(b) + beta c``{types}.

Parameters
----------
alpha : number
a : array, shape (m, k), or (k, m) if transposed
b : array, shape (k, n), or (n, k) if transposed
beta : number, optional
    With 0, `c` is not read.
c : array, shape (m, n), optional
    By default 0.
trans_a, trans_b : {{0, 1, 2}} or {{'N', 'T', 'C'}}, optional
    op: as it is, transposed, conjugate transposed.
overwrite_c : bool, optional
    Whether `c` may hold the result.

Returns
-------
c : array, shape (m, n)
    Column-major.

Raises
------
ValueError
    When shapes or flags do not fit.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects).
"""

TRIANGULAR = """``{result} = {name}(alpha, a, b, [side, lower, trans_a, diag, overwrite_b])``

{summary}{types}.

Parameters
----------
alpha : number
a : array, shape (m, m), or (n, n) from the right
    {a_note}The other triangle, and a unit diagonal, are not read.
b : array, shape (m, n)
side : {{0, 1}} or {{'L', 'R'}}, optional
    op(a) stands to the left or to the right.
lower : {{0, 1}}, optional
    Whether `a` is lower triangular.
trans_a : {{0, 1, 2}} or {{'N', 'T', 'C'}}, optional
    op: as it is, transposed, conjugate transposed.
diag : {{0, 1}} or {{'N', 'U'}}, optional
    Whether the diagonal of `a` is taken to be 1.
overwrite_b : bool, optional
    Whether `b` may hold the result.

Returns
-------
{result} : array, shape (m, n)
    Column-major.

Raises
------
ValueError
    When shapes or flags do not fit.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects).
"""

SYMM = """``c = {name}(alpha, a, b, [beta, c, side, lower, overwrite_c])``

Product with a {kind} matrix, ``alpha a b + beta c`` or ``alpha b a + beta c``{types}.

Parameters
----------
alpha : number
a : array, shape (m, m), or (n, n) from the right
    One triangle of it is read{diagonal}.
b : array, shape (m, n)
beta : number, optional
    With 0, `c` is not read.
c : array, shape (m, n), optional
    By default 0.
side : {{0, 1}} or {{'L', 'R'}}, optional
    `a` stands to the left or to the right.
lower : {{0, 1}}, optional
    Whether the lower triangle of `a` is read, else the upper one.
overwrite_c : bool, optional
    Whether `c` may hold the result.

Returns
-------
c : array, shape (m, n)
    Column-major.

Raises
------
ValueError
    When shapes or flags do not fit.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects).
"""

RANK_K = """``c = {name}(alpha, {inputs}, [beta, c, trans, lower, overwrite_c])``

One triangle of ``{sum} + beta c``{types}.

Parameters
----------
alpha : number
    {alpha}
{arrays} : array, shape (n, k), or (k, n) if transposed
beta : number, optional
    {beta}With 0, `c` is not read.
c : array, shape (n, n), optional
    By default 0.{diagonal}
trans : {{0, {code}}} or {{'N', '{letter}'}}, optional
    op: as it is, {op}. Real arrays take all of 0, 1, 2.
lower : {{0, 1}}, optional
    Whether the lower triangle is computed, else the upper one.
overwrite_c : bool, optional
    Whether `c` may hold the result.

Returns
-------
c : array, shape (n, n)
    Column-major; the other triangle is that of `c`, or zeros.

Raises
------
ValueError
    When shapes or flags do not fit; where SciPy prints a complaint and returns zeros too.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects).
"""

GEMMTR = """``c = {name}(alpha, a, b, [beta, c, trans_a, trans_b, lower, overwrite_c])``

One triangle of the product ``alpha op(a) op(b) + beta c``{types}. SciPy has no such function.

Parameters
----------
alpha : number
a : array, shape (n, k), or (k, n) if transposed
b : array, shape (k, n), or (n, k) if transposed
beta : number, optional
    With 0, `c` is not read.
c : array, shape (n, n), optional
    By default 0.
trans_a, trans_b : {{0, 1, 2}} or {{'N', 'T', 'C'}}, optional
    op: as it is, transposed, conjugate transposed.
lower : {{0, 1}}, optional
    Whether the lower triangle is computed, else the upper one.
overwrite_c : bool, optional
    Whether `c` may hold the result.

Returns
-------
c : array, shape (n, n)
    Column-major; the other triangle is that of `c`, or zeros.

Raises
------
ValueError
    When shapes or flags do not fit.
TypeError
    When an array or number is complex and the routine real, or has no such cast (long double, objects).
"""
