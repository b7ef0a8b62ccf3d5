"""Entries that docstrings of `lapack` share."""

from __future__ import annotations

from ..docstrings import Shared

__all__ = ["HOST_SPECTRA", "LAPACK", "LDL", "QR", "SPECTRA"]

LAPACK = Shared("""
    A stack has pivots and one `info` a matrix. Of NumPy's matrices `info` is an int. Else both are arrays of
    int32 of the library of the arguments, on their device: only a read waits, as ``int(info)``.

    Parameters
    ----------
    c : array, shape (n, n) or (..., n, n)
        The Cholesky factor, of `potrf`, in one triangle.
    lu : array, shape (n, n) or (..., n, n)
        The factors, as `getrf` leaves them.
    piv : array of int, shape (n,) or (..., n)
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
    piv : array of int32, shape (n,) or (..., n)
        Row i was interchanged with row ``piv[i]``, counted from 0.

    Raises
    ------
    ValueError
        When shapes, flags or pivots do not fit.
    TypeError
        When an array is complex and the routine real, or has no such cast (long double, objects); when pivots
        are no integers.
""")

#: Routines of L D L^H factors.
LDL = Shared(
    """
    Names with 'sy' take symmetric matrices, names with 'he' Hermitian ones; real ones are both.

    Parameters
    ----------
    lwork : int, optional
        Accepted where it is at least n, and not needed: the workspace is the library's.
    ipiv : array of int, shape (n,) or (..., n)
        The pivots, as `sytrf` leaves them, counted from 1. Those in host memory are checked; on a device
        int32 and int64 are taken, and have to be rows of the matrix.

    Returns
    -------
    ipiv : array of int32, shape (n,) or (..., n)
        Row and column i were interchanged with row and column ``ipiv[i]``, both counted from 1. A block of
        order two has ``-p`` in both its rows: its second one, or of an upper triangle its first one, was
        interchanged with p.
    """,
    LAPACK,
)

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

#: Routines that SciPy's LAPACK computes.
_ON_CPU = Shared("""
    Raises
    ------
    NotImplementedError
        When an array is on a device: SciPy's LAPACK computes this, on the CPU alone so far.
""")

#: Routines of eigenvalues and singular values.
SPECTRA = Shared("""
    Leading dimensions count matrices, and broadcast.

    Parameters
    ----------
    a : array, shape (n, n) or (..., n, n)
        The Hermitian matrix, or a stack, of which one triangle is read.
    b : array, shape (n, n) or (..., n, n)
        The positive definite matrix of the generalized problem; for `sygst` its Cholesky factor.
    compute_v : bool, default True
        Whether eigenvectors are computed.
    compute_uv : bool, default True
        Whether singular vectors are computed.
    full_matrices : bool, default True
        Whether all singular vectors are computed, else as many as there are singular values.
    itype : {1, 2, 3}, default 1
        The generalized problem: ``a v = w b v``, ``a b v = w v`` or ``b a v = w v``.
    jobz : {'V', 'N'}, default 'V'
        Whether eigenvectors are computed.
    lower : {0, 1}, default 0
        Whether the lower triangle is read, else the upper one.
    uplo : {'L', 'U'}, default 'L'
        The triangle that is read.
    range : {'A', 'V', 'I'}, default 'A'
        The eigenvalues that are wanted: all, those in ``(vl, vu]``, or those of the numbers `il` to `iu`.
    vl : float, default 0.0
        The lower end of the interval.
    vu : float, default 1.0
        The upper end of the interval.
    il : int, default 1
        The number of the first eigenvalue, from 1.
    iu : int, optional
        The number of the last eigenvalue; by default n.
    abstol : float, default 0.0
        The error of eigenvalues that is tolerated; 0 is a tolerance of LAPACK's choice.
    lwork : int, optional
        The length of the workspace of SciPy's LAPACK; device arrays need none.
    lrwork : int, optional
        The length of its workspace of real numbers.
    liwork : int, optional
        The length of its workspace of integers.
    overwrite_a, overwrite_b : bool, default False
        Whether `a` and `b` may be overwritten.
    overwrite_a : bool, default False
        Whether `a` may be overwritten; on a device it then holds the eigenvectors.
    m : int
        Rows of the matrix.
    n : int
        Columns of the matrix, or its order.

    Returns
    -------
    w : array
        The eigenvalues, real and ascending. Of device arrays there are `m` where some are wanted.
    v : array
        The eigenvectors in columns.
    z : array
        The eigenvectors in columns, the first `m` of which count.
    m : int or array of int32
        The number of eigenvalues that were found.
    isuppz : array
        The first and the last row of each vector that is not zero, from 1; of device arrays no elements.
    ifail : array
        The numbers, from 1, of vectors that did not converge; of device arrays no elements.
    c : array
        The matrix of the standard problem in a triangle; of `sytrd` the vectors of the reflectors.
    d : array
        The diagonal of the tridiagonal matrix.
    e : array
        The elements off its diagonal.
    tau : array
        The factors of the reflectors.
    u : array
        The left singular vectors in columns.
    s : array
        The singular values, descending.
    vt : array
        The right singular vectors, conjugated, as rows.
    info : int or array of int32
        0, or a positive number where the iteration did not converge or b is not positive definite.
    work : number
        The best `lwork`.
    iwork : number
        The best `liwork`.
    rwork : number
        The best `lrwork`.

    Raises
    ------
    ValueError
        When shapes or options do not fit, or a matrix is empty.
    NotImplementedError
        When an array is on a device and of a larger order than there are kernels for.
    TypeError
        When an array is complex and the routine real, or has no such cast (long double, objects).

    See Also
    --------
    pyblasgpu.linalg.eigh : Eigenvalues and eigenvectors by SciPy's signature.
    pyblasgpu.linalg.svd : Singular values and vectors by SciPy's signature.
""")

#: Routines of eigenvalues and singular values that SciPy's LAPACK computes.
HOST_SPECTRA = Shared("", _ON_CPU, SPECTRA)
