"""Entries that docstrings of `lapack` share."""

from __future__ import annotations

from ..docstrings import Shared

__all__ = ["HOST_QR", "LAPACK", "QR"]

LAPACK = Shared("""
    A stack has pivots and one `info` a matrix. For device arrays they stay on the device until they are read,
    as by ``int(info)`` or ``info > 0``.

    Parameters
    ----------
    c : array, shape (n, n) or (..., n, n)
        The Cholesky factor, of `potrf`, in one triangle.
    lu : array, shape (n, n) or (..., n, n)
        The factors, as `getrf` leaves them.
    piv : array of int, shape (n,) or (..., n), or `DeviceIntegers`
        The pivots, counted from 0. Those in host memory are checked; on a device int32 and int64 are taken,
        and have to be rows of the matrix.
    b : array, shape (n,), (n, k) or (..., n, k)
        The right-hand sides. Leading dimensions broadcast.
    lower : {0, 1}, default 0
        Whether the lower triangle is meant, else the upper one. The other one is not read.
    overwrite_a, overwrite_b : bool, default False
        Whether `a`, `b` may hold the results.
    overwrite_a : bool, default False
        Whether `a` may hold the result.
    overwrite_b : bool, default False
        Whether `b` may hold the result.
    overwrite_c : bool, default False
        Whether `c` may hold the result.
    overwrite_lu : bool, default False
        Whether `lu` may hold the result.

    Returns
    -------
    lu : array, shape (n, n) or (..., n, n)
        The factors, as `getrf` leaves them.
    piv : array of int32, shape (n,) or (..., n), or `DeviceIntegers`
        Row i was interchanged with row ``piv[i]``, counted from 0.

    Raises
    ------
    ValueError
        When shapes, flags or pivots do not fit.
    TypeError
        When an array is complex and the routine real, or has no such cast (long double, objects); when pivots
        are no integers.
""")

#: Routines of QR factors and least squares.
QR = Shared(
    """
    Parameters
    ----------
    tau : array, shape (k,) or (..., k)
        The factors of the reflectors, as `geqrf` leaves them.
    lwork : int, optional
        Accepted as by LAPACK, and not needed: the workspace is the library's. -1 is a query, which computes
        nothing but `work`.
    overwrite_a, overwrite_b : bool, default False
        Whether `a`, `b` may hold results.
    overwrite_a : bool, default False
        Whether `a` may hold a result.
    overwrite_b : bool, default False
        Whether `b` may hold a result.
    overwrite_c : bool, default False
        Whether `c` may hold the result.

    Returns
    -------
    work : array
        A NumPy array as long as the workspace. Its first element is the `lwork` with which SciPy's LAPACK is
        fastest. Of device arrays it is the least `lwork`.

    Raises
    ------
    ValueError
        When shapes, flags or the workspace do not fit.
    TypeError
        When an array is complex and the routine real, or has no such cast (long double, objects).
    """
)

#: Routines of QR factors that SciPy's LAPACK computes.
HOST_QR = Shared(
    """
    Raises
    ------
    NotImplementedError
        When an array is on a device: SciPy's LAPACK computes this, on the CPU alone so far.
    """,
    QR,
)
