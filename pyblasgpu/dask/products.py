"""GEMM, SYRK and HERK on Dask arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .. import tasks
from ..api.docstrings import Shared, documenting
from ..arguments import Flag, Number
from ..frontend.arrays.any_array import number
from ..routine_table import ROUTINES
from ..types import DTYPES, Trans, Uplo
from .conversion import cut_like, matrices, op_chunks, result, scalars
from .docstrings import DASK, documented

__all__ = ["gemm", "herk", "syrk"]

_documented = documenting(
    Shared("""
    Parameters
    ----------
    a : dask array, shape (n, k), or (k, n) if transposed
        The factor. Its chunks cut the result and the inner dimension.

    Returns
    -------
    dask array, shape (n, n)
        The update; its other triangle is that of `c`, or zero.

    Raises
    ------
    ValueError
        When shapes do not fit, a flag is unknown, or `beta` has no `c`.
    """),
    DASK,
)


@documented
def gemm(
    a: Any,
    b: Any,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    c: Any = None,
    trans_a: Flag = "N",
    trans_b: Flag = "N",
) -> Any:
    """General matrix product of Dask arrays: ``alpha op(a) op(b) + beta c``.

    Parameters
    ----------
    a : dask array, shape (m, k), or (k, m) if transposed
        The left factor. Its chunks cut the result's rows and the inner dimension.
    b : dask array, shape (k, n), or (n, k) if transposed
        The right factor, cut along k as `a` is; else it is rechunked.
    alpha, beta : number, optional
        By default 1 and 0. With ``beta=0`` `c` is not read: its shape is checked, and its dtype does not
        count.
    c : dask array, shape (m, n), optional
        The matrix that `beta` scales; by default none.

    Returns
    -------
    dask array, shape (m, n)
        The product, in chunks as the rows of op(a) and the columns of op(b) have them.

    Raises
    ------
    ValueError
        When shapes do not fit, a flag is unknown, or `beta` has no `c`.

    See Also
    --------
    pyblasgpu.gemm : Product of arrays in one memory.

    Notes
    -----
    A chunk of the result is accumulated in place; at most 8 products are one Dask task.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> a = da.ones((4, 4), chunks=2)
    >>> pyblasgpu.dask.gemm(a, a, trans_b="T").sum().compute().item()
    64.0
    """
    op_a, op_b = Trans.parse(trans_a, "gemm", "trans_a"), Trans.parse(trans_b, "gemm", "trans_b")
    is_read = number(beta, DTYPES["z"], "gemm", "beta") != 0
    a, b, source = matrices("gemm", a=a, b=b, c=c if is_read else None)
    alpha, beta = scalars("gemm", a, source, alpha, beta)
    (m, k), (inner, n) = op_chunks(a, op_a), op_chunks(b, op_b)
    if sum(k) != sum(inner):
        raise ValueError(f"gemm: op(a) is {sum(m)} by {sum(k)} and op(b) {sum(inner)} by {sum(n)}")
    sources = {"a": a, "b": cut_like("gemm", "b", b, k, n, op_b)}
    if c is not None:
        _check_shape("gemm", c, m, n)
    if beta != 0:
        sources["c"] = cut_like("gemm", "c", source, m, n)
    return result("gemm", partial(tasks.gemm, m, n, k, op_a, op_b, alpha, beta), "c", sources, (m, n))


@_documented
def syrk(
    a: Any, *, alpha: Number = 1, beta: Number = 0, c: Any = None, lower: Flag = False, trans: Flag = "N"
) -> Any:
    """Symmetric rank-k update of Dask arrays: one triangle of ``alpha op(a) op(a)^T + beta c``.

    Parameters
    ----------
    trans : {'N', 'T'}, default 'N'
        The op: nothing, or the transpose.

    Returns
    -------
    dask array, shape (n, n)

    See Also
    --------
    herk : Update of a Hermitian matrix, with the conjugate transpose.
    pyblasgpu.syrk : Update of arrays in one memory.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> a = da.ones((4, 4), chunks=2)
    >>> pyblasgpu.dask.syrk(a, lower=True).sum().compute().item()
    40.0
    """
    return _rank_k("syrk", a, alpha, beta, c, lower, trans)


@_documented
def herk(
    a: Any, *, alpha: Number = 1, beta: Number = 0, c: Any = None, lower: Flag = False, trans: Flag = "N"
) -> Any:
    """Hermitian rank-k update of Dask arrays: one triangle of ``alpha op(a) op(a)^H + beta c``.

    Parameters
    ----------
    alpha, beta : number, optional
        By default 1 and 0. Real. With ``beta=0`` the triangle of `c` is not read.
    trans : {'N', 'C'}, default 'N'
        The op: nothing, or the conjugate transpose.

    Returns
    -------
    dask array, shape (n, n)

    See Also
    --------
    syrk : Update of a symmetric matrix, with the transpose.
    pyblasgpu.herk : Update of arrays in one memory.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> a = 1j * da.ones((4, 4), chunks=2)
    >>> pyblasgpu.dask.herk(a, lower=True).sum().compute().item()
    (40+0j)
    """
    return _rank_k("herk", a, alpha, beta, c, lower, trans)


def _rank_k(routine: str, a: Any, alpha: Number, beta: Number, c: Any, lower: Flag, trans: Flag) -> Any:
    row = ROUTINES[routine]
    uplo, op = Uplo.parse(lower, routine, "lower"), Trans.parse(trans, routine, "trans")
    a, c = matrices(routine, a=a, c=c)
    alpha, beta = scalars(routine, a, c, alpha, beta)
    if row.real and (complex(alpha).imag or complex(beta).imag):
        raise TypeError(f"{routine}: alpha={alpha} and beta={beta} must be real")
    known = row.values("trans", DTYPES["z"])
    if op not in known:
        if a.dtype.kind == "c":
            raise ValueError(
                f"{routine}: trans={op.value} is neither {' nor '.join(each.value for each in known)}"
            )
        op = known[-1]
    n, k = op_chunks(a, op)
    sources = {"a": a}
    if c is not None:
        _check_shape(routine, c, n, n)
        sources["c"] = cut_like(routine, "c", c, n, n)
    make_list = partial(tasks.syrk, n, k, uplo, op, alpha, beta, row.hermitian)
    return result(routine, make_list, "c", sources, (n, n), blank=c is None)


def _check_shape(routine: str, c: Any, rows: tuple[int, ...], cols: tuple[int, ...]) -> None:
    """ValueError unless `c` is as large as these chunks together."""
    if np.shape(c) != (sum(rows), sum(cols)):
        raise ValueError(f"{routine}: c has shape {np.shape(c)}; {(sum(rows), sum(cols))} is needed")
