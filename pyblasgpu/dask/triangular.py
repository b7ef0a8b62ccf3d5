"""TRMM, TRSM and solve_triangular on Dask arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da

from .. import tasks
from ..arguments import Flag, Number
from ..types import Diag, Side, Trans, Uplo
from .conversion import cut_like, matrices, result, scalars, square
from .docstrings import documented

__all__ = ["solve_triangular", "trmm", "trsm"]


@documented
def trmm(
    a: Any,
    b: Any,
    *,
    alpha: Number = 1,
    side: Flag = "L",
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
) -> Any:
    """Product of Dask arrays with a triangle: ``alpha op(a) b``, or ``alpha b op(a)`` from the right.

    Parameters
    ----------
    a : dask array, shape (m, m), or (n, n) from the right
    b : dask array, shape (m, n)
        The other factor, cut as `a` is along the dimension that they share; else it is rechunked.

    Returns
    -------
    dask array, shape (m, n)

    See Also
    --------
    pyblasgpu.trmm : Product of arrays in one memory.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> a = da.from_array([[2.0, 0.0], [1.0, 2.0]], chunks=1)
    >>> pyblasgpu.dask.trmm(a, a, lower=True).compute()
    array([[4., 0.],
           [4., 4.]])
    """
    return _triangular("trmm", tasks.trmm, a, b, alpha, side, lower, trans, unit_diag)


@documented
def trsm(
    a: Any,
    b: Any,
    *,
    alpha: Number = 1,
    side: Flag = "L",
    lower: Flag = False,
    trans: Flag = "N",
    unit_diag: Flag = False,
) -> Any:
    """Solution x of a triangular system of Dask arrays: ``op(a) x = alpha b``, or ``x op(a) = alpha b``.

    Parameters
    ----------
    a : dask array, shape (m, m), or (n, n) from the right
    b : dask array, shape (m, n)
        The right-hand sides, cut as `a` is along the dimension that they share; else they are rechunked.

    Returns
    -------
    dask array, shape (m, n)

    Raises
    ------
    ValueError
        When shapes do not fit, or a flag is unknown. A zero on the diagonal raises nothing: it gives Inf and
        NaN, as in the BLAS.

    See Also
    --------
    solve_triangular : Solution with SciPy's arguments.
    pyblasgpu.trsm : Solution with arrays in one memory.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> a = da.from_array([[2.0, 0.0], [1.0, 2.0]], chunks=1)
    >>> pyblasgpu.dask.trsm(a, da.ones((2, 2), chunks=1), lower=True).compute()
    array([[0.5 , 0.5 ],
           [0.25, 0.25]])
    """
    return _triangular("trsm", tasks.trsm, a, b, alpha, side, lower, trans, unit_diag)


@documented
def solve_triangular(
    a: Any, b: Any, *, trans: Flag = 0, lower: Flag = False, unit_diagonal: Flag = False
) -> Any:
    """Solution x of ``op(a) x = b``, a triangular, as `scipy.linalg.solve_triangular`, of Dask arrays.

    Parameters
    ----------
    a : dask array, shape (n, n)
    b : dask array, shape (n,) or (n, k)
        The right-hand sides.
    trans : {0, 1, 2, 'N', 'T', 'C'}, default 0
        The op: nothing, the transpose, or the conjugate transpose.
    unit_diagonal : bool, default False
        The diagonal is taken to be ones, and not read.

    Returns
    -------
    dask array, shaped as `b`

    Raises
    ------
    ValueError
        When shapes do not fit, or a flag is unknown. A zero on the diagonal raises nothing: it gives Inf and
        NaN.

    See Also
    --------
    trsm : Solution from either side.
    pyblasgpu.linalg.solve_triangular : Solution with arrays in one memory.

    Examples
    --------
    >>> import dask.array as da, pyblasgpu
    >>> x = pyblasgpu.dask.solve_triangular(2 * da.eye(4, chunks=2), da.ones(4, chunks=2), lower=True)
    >>> x.compute()
    array([0.5, 0.5, 0.5, 0.5])
    """
    b = da.asanyarray(b)
    if b.ndim == 1:
        flags = {"trans": trans, "lower": lower, "unit_diagonal": unit_diagonal}
        return solve_triangular(a, b[:, None], **flags)[:, 0]
    return _triangular("solve_triangular", tasks.trsm, a, b, 1, "L", lower, trans, unit_diagonal)


def _triangular(
    routine: str,
    make_list: Callable[..., tasks.TaskList],
    a: Any,
    b: Any,
    alpha: Number,
    side: Flag,
    lower: Flag,
    trans: Flag,
    unit_diag: Flag,
) -> Any:
    where, uplo = Side.parse(side, routine, "side"), Uplo.parse(lower, routine, "lower")
    op, diag = Trans.parse(trans, routine, "trans"), Diag.parse(unit_diag, routine, "unit_diag")
    a, b = matrices(routine, a=a, b=b)
    a = square(routine, "a", a)
    alpha, _ = scalars(routine, a, None, alpha, 0)
    axis = 0 if where is Side.LEFT else 1
    if a.shape[0] != b.shape[axis]:
        raise ValueError(f"{routine}: a has shape {a.shape} and b {b.shape}, for side {where.value}")
    m, n = (a.chunks[0], b.chunks[1]) if where is Side.LEFT else (b.chunks[0], a.chunks[0])
    sources = {"b": cut_like(routine, "b", b, m, n), "a": a}
    if alpha == 0:  # neither matrix is read
        return da.zeros_like(sources["b"])
    return result(routine, partial(make_list, m, n, where, uplo, op, diag, alpha), "b", sources, (m, n))
