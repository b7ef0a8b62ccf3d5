"""Texts that docstrings of functions on Dask arrays share."""

from __future__ import annotations

from ..api.docstrings import Shared, documenting

__all__ = ["DASK", "documented"]

DASK = Shared("""
    Parameters
    ----------
    a : dask array
        A triangle: of chunks in the other one nothing is computed. It is cut along both dimensions as its
        rows are; else it is rechunked.
    alpha, beta : number, optional
        By default 1 and 0. With ``beta=0`` the triangle of `c` is not read.
    alpha : number, default 1
        A factor.
    c : dask array, shape (n, n), optional
        The matrix that `beta` scales; by default none. Its other triangle is that of the result.
    side : {'L', 'R'}, default 'L'
        Whether op(a) is the left factor or the right one.
    lower : bool or {'L', 'U'}, default False
        Which triangle is read, or updated.
    trans : {'N', 'T', 'C'}, default 'N'
        The op: nothing, the transpose, or the conjugate transpose.
    trans_a, trans_b : {'N', 'T', 'C'}, default 'N'
        Each op: nothing, the transpose, or the conjugate transpose.
    unit_diag : bool or {'N', 'U'}, default False
        The diagonal is taken to be ones, and not read.

    Returns
    -------
    dask array
        The solution or product, in the chunks of `b`, as `a` cuts it.

    Raises
    ------
    ValueError
        When shapes do not fit, or a flag is unknown.
    TypeError
        When the arrays' common dtype is none of float32, float64, complex64, complex128.
    """)

documented = documenting(DASK)
