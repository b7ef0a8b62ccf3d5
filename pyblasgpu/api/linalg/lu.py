"""SciPy's functions of LU factors: lu_factor, lu_solve, lu."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled
from ...frontend.arrays.any_array import can_be_output
from ...frontend.calls.factor_chain import repeat_chain
from ...types import Trans
from ..lapack import names as lapack
from .arrays import Arrays, taken
from .checks import check_values, host_values, solved
from .docs import documented
from .structures import host_identity, identity_for, triangle_of

__all__ = ["lu", "lu_factor", "lu_solve"]


@documented
def lu_factor(a: Array, overwrite_a: Flag = False, check_finite: Flag = None) -> tuple[Array, Array]:
    """LU factors of a matrix with row pivots, as `scipy.linalg.lu_factor`.

    Parameters
    ----------
    a : array, shape (..., m, n)
    check_finite : bool, optional
        Whether to look for Inf and NaN, and at the pivots of device arrays; by default that is done for host
        arrays alone, as it waits for the device.

    Returns
    -------
    lu : array, shape (..., m, n)
        U in the upper triangle, L without its unit diagonal below it.
    piv : array of int32, shape (..., min(m, n))
        Row i was interchanged with row ``piv[i]``.

    Raises
    ------
    ValueError
        When `a` is no matrix, or Inf or NaN was found.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        When a pivot is exactly zero. The pivots of host arrays are always looked at.

    See Also
    --------
    lu_solve : Solution by the factors.
    lu : The factors as matrices.
    pyblasgpu.lapack.getrf : Factors and `info`, without warnings.

    Notes
    -----
    Componentwise backward error about ``n u |L| |U|``, n the order and u the unit roundoff.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.lu_factor(np.array([[1.0, 2.0], [2.0, 8.0]]))
    (array([[ 2. ,  8. ],
           [ 0.5, -2. ]]), array([1, 1], dtype=int32))
    """
    name = "lu_factor"
    key = (name, overwrite_a, check_finite)
    if type(a) is not np.ndarray and (done := repeat_chain(key, (a,))) is not None:
        factors, pivots = done.results
        return factors, pivots
    arrays = taken(name, {"a": a}).recorded(key, (a,), check_finite)
    (matrix,) = arrays.each
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    with arrays.silent():
        checked = check_values(arrays, check_finite, name, matrix)
        if len(matrix.shape) < 2:
            raise ValueError(f"{name}: a has shape {tuple(matrix.shape)}; a matrix, or a stack, is needed")
        factors, pivots, info = _factored(arrays, matrix, overwrite)
        if checked or arrays.library.host:
            _warn_of_zero_pivots(arrays, info)
        factors, pivots = arrays.returned(factors), arrays.returned(pivots)
        arrays.kept(factors, pivots)
        return factors, pivots


@documented
def lu_solve(
    lu_and_piv: tuple[Array, Array],
    b: Array,
    trans: Flag = 0,
    overwrite_b: Flag = False,
    check_finite: Flag = None,
) -> Array:
    """Solution x of ``op(a) x = b`` from LU factors of a, as `scipy.linalg.lu_solve`.

    Parameters
    ----------
    lu_and_piv : (array of shape (..., n, n), array of shape (..., n))
        The result of `lu_factor`.
    trans : {0, 1, 2, 'N', 'T', 'C'}, default 0
        The op: a itself, its transpose, its conjugate transpose.
    check_finite : bool, optional
        Whether to look for Inf and NaN in `b`; by default that is done for host arrays alone.

    Returns
    -------
    array
        The solution, shaped as `b`, with the leading dimensions of both.

    Raises
    ------
    ValueError
        When shapes do not fit, `trans` is invalid, host pivots are no rows, or Inf or NaN was found.

    See Also
    --------
    lu_factor : The factors.
    solve : Factors and solution at once.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> a, b = np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([8.0, 14.0])
    >>> linalg.lu_solve(linalg.lu_factor(a), b)
    array([0.75, 2.5 ])
    """
    name = "lu_solve"
    factors, pivots = lu_and_piv
    key, passed = (name, trans, overwrite_b, check_finite), (factors, b, pivots)
    if type(factors) is not np.ndarray and (done := repeat_chain(key, passed)) is not None:
        return done.results[0]
    arrays = taken(name, {"lu": factors, "b": b}).recorded(key, passed, check_finite)
    op = "NTC".index(Trans.parse(trans, name, "trans").value)
    matrix, right = arrays.each
    overwrite = arrays.may_overwrite(overwrite_b, name, "overwrite_b", right)
    with arrays.silent():
        check_values(arrays, check_finite, name, right)
        shape = tuple(matrix.shape)
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"{name}: lu has shape {shape}; a square matrix, or a stack, is needed")
        if not right.shape or right.shape[-2:][0] != shape[-1]:
            raise ValueError(f"{name}: Shapes of lu {shape} and b {tuple(right.shape)} are incompatible")
        return solved(arrays, matrix, right, lambda lu, b: lapack.getrs(lu, pivots, b, op, overwrite)[0])


@documented
def lu(
    a: Array,
    permute_l: Flag = False,
    overwrite_a: Flag = False,
    check_finite: Flag = None,
    p_indices: Flag = False,
) -> tuple[Array, ...]:
    """LU factors as matrices, ``a = P L U``, as `scipy.linalg.lu`.

    Parameters
    ----------
    a : array, shape (..., m, n)
        The matrices; leading dimensions count them. k is the lesser of m and n.
    permute_l : bool, default False
        Whether to return ``P L`` in the place of P and L.
    overwrite_a : bool, default False
        Whether `a` may be overwritten: host matrices by rows then hold `u`, tall ones `l`.
    p_indices : bool, default False
        Whether P is returned as row indices: ``a = L[p] @ U``.

    Returns
    -------
    p : array, shape (..., m, m) or (..., m)
        The permutation, or its indices (int32). Device arrays wait for it. Left out with `permute_l`.
    l : array, shape (..., m, k)
        Lower triangular with a unit diagonal, or permuted.
    u : array, shape (..., k, n)
        Upper triangular.

    Raises
    ------
    ValueError
        When `a` is no matrix, or Inf or NaN was found.

    See Also
    --------
    lu_factor : The factors for `lu_solve`.
    pyblasgpu.dask.lu : Factors of Dask arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> p, l, u = linalg.lu(np.array([[1.0, 2.0], [2.0, 8.0]]))
    >>> u
    array([[ 2.,  8.],
           [ 0., -2.]])
    """
    name = "lu"
    arrays = taken(name, {"a": a})
    permuted, indices = enabled(permute_l, name, "permute_l"), enabled(p_indices, name, "p_indices")
    (matrix,), overwrite = arrays.each, enabled(overwrite_a, name, "overwrite_a")
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        if len(matrix.shape) < 2:
            raise ValueError(f"{name}: The input array must be at least two-dimensional.")
        factors, pivots, _ = _factored(arrays, matrix, overwrite and not arrays.library.host)
        m, n = factors.shape[-2:]
        k = min(m, n)
        lower = triangle_of(arrays, factors[..., :, :k], True, -1) + identity_for(arrays, m, k)
        upper = triangle_of(arrays, factors[..., :k, :], False)
        # SciPy's permutation of matrices without elements has none either
        rows = _row_order(host_values(pivots), m if k else 0)
        if permuted and k:
            lower = _rows(arrays, lower, rows)
        if overwrite and _holds_factors(arrays, matrix):  # the larger one, as SciPy's
            lower, upper = (
                (lower, arrays.placed(upper, matrix)) if m <= n else (arrays.placed(lower, matrix), upper)
            )
        if permuted:
            return arrays.returned(lower), arrays.returned(upper)
        permutation = (
            rows if indices else host_identity(rows.shape[-1], rows.shape[-1], arrays.dtype.real)[rows]
        )
        return arrays.returned(arrays.from_host(permutation)), arrays.returned(lower), arrays.returned(upper)


def _holds_factors(arrays: Arrays, matrix: Any) -> bool:
    """Whether SciPy would write factors into the matrices: host ones by rows."""
    return arrays.library.host and matrix.flags.c_contiguous and can_be_output(matrix, arrays.dtype)


def _factored(arrays: Arrays, matrix: Any, overwrite: bool) -> tuple[Any, Any, Any]:
    """LU factors, pivots and info of matrices that may be empty."""
    matrix = arrays.cast(matrix)
    *batch, m, n = matrix.shape
    if 0 in matrix.shape:
        pivots = arrays.xp.zeros((*batch, min(m, n)), dtype=arrays.xp.int32, **arrays.placement)
        return arrays.xp.zeros_like(matrix), pivots, np.zeros(batch, np.int32)
    factors, pivots, info = lapack.getrf(matrix, overwrite)
    return factors, pivots, info


def _warn_of_zero_pivots(arrays: Arrays, info: Any) -> None:
    for first in host_values(info).ravel().tolist():
        if first > 0:
            from scipy.linalg import LinAlgWarning

            message = f"Diagonal number {first} is exactly zero. Singular matrix."
            warnings.warn(message, LinAlgWarning, stacklevel=3)


def _row_order(pivots: Any, m: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """p of ``a = L[p] U``: where each row of a stack's matrices went."""
    *batch, k = pivots.shape
    if not batch:
        rows = list(range(m))
        for row, partner in enumerate(pivots.tolist()):
            rows[row], rows[partner] = rows[partner], rows[row]
        places = np.empty(m, np.int32)
        places[rows] = np.arange(m, dtype=np.int32)
        return places
    count = prod(batch)
    order = np.tile(np.arange(m, dtype=np.int32), (count, 1))
    matrices = np.arange(count)
    for row, partners in enumerate(pivots.reshape(count, k).T):
        order[matrices, row], order[matrices, partners] = order[matrices, partners], order[matrices, row]
    return np.argsort(order, axis=-1).astype(np.int32).reshape(*batch, m)


def _rows(arrays: Arrays, matrices: Any, order: Any) -> Any:
    """The rows of each matrix in another order."""
    order = arrays.from_host(order.astype(np.int64)[..., None])
    order = arrays.xp.broadcast_to(order, tuple(matrices.shape))
    return arrays.xp.take_along_axis(matrices, order, axis=-2)
