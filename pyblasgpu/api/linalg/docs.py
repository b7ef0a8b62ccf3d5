"""Entries that docstrings of `linalg` share."""

from __future__ import annotations

from ..docstrings import Shared, documenting

__all__ = ["LINALG", "documented"]

LINALG = Shared("""
    Parameters
    ----------
    a : array, shape (..., n, n)
        The matrices; leading dimensions count them.
    b : array, shape (n,) or (..., n, k)
        The right-hand sides. Leading dimensions broadcast with those of the matrices.
    overwrite_a, overwrite_b : bool, default False
        Whether `a` and `b` may be overwritten.
    overwrite_a : bool, default False
        Whether `a` may be overwritten.
    overwrite_b : bool, default False
        Whether `b` may hold the result.
    check_finite : bool, optional
        Whether to look for Inf and NaN; by default that is done for host arrays alone.
    out : array, optional
        The array for the result; by default a new one.

    Raises
    ------
    TypeError
        When arrays are of different libraries, or dtypes are none that can be computed.
""")

documented = documenting(LINALG)
