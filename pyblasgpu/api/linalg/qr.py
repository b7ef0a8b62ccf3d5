"""SciPy's functions of QR factors: qr, qr_multiply."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled, shown
from ...frontend.calls.factor_chain import Repeated, repeat_chain
from ...types import Side
from ..docstrings import Shared, documenting
from ..lapack import names as lapack
from ..lapack.qr_calls import checked_workspace
from ..lapack.triangles import upper_triangle
from .arrays import Arrays, taken
from .checks import check_values
from .cholesky_qr import cholesky_qr, is_tall
from .docs import LINALG
from .host import orthogonal_from, product_from, reflectors_of
from .structures import triangle_of

__all__ = ["factors_first", "orthogonal_of", "qr", "qr_multiply"]

_documented = documenting(
    Shared("""
    Parameters
    ----------
    a : array, shape (..., m, n)
        The matrices; leading dimensions count them. k is the lesser of m and n.
    pivoting : bool, default False
        Whether columns are interchanged so that the diagonal of R does not increase in modulus.
    """),
    LINALG,
)
SHARE, LEAST_ROWS = 4, 1024  # rows for each column, and in all, of matrices whose R is pivoted alone
#: By the names of SciPy and NumPy.
_MODES = {
    "full": "full",
    "qr": "full",
    "complete": "full",
    "economic": "economic",
    "reduced": "economic",
    "r": "r",
    "raw": "raw",
}


@_documented
def qr(
    a: Array,
    overwrite_a: Flag = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: Flag = False,
    check_finite: Flag = None,
) -> tuple[Any, ...]:
    """QR factors of a matrix, ``a = Q R``, as `scipy.linalg.qr`.

    NumPy's, CuPy's, PyTorch's and the array API's `qr` return the reduced factors by default:
    ``mode="reduced"`` does here.

    Parameters
    ----------
    lwork : int, optional
        Accepted where it is at least n or -1, and not needed: the workspace is the library's.
    mode : {'full', 'economic', 'r', 'raw', 'complete', 'reduced'}, default 'full'
        Whether Q is square ('full', NumPy's 'complete') or has k columns ('economic', NumPy's 'reduced'). Or
        it is not computed ('r'), or stays what `pyblasgpu.lapack.geqrf` leaves ('raw').

    Returns
    -------
    q : array, shape (..., m, m) or (..., m, k), or pair of arrays
        Orthonormal columns. Left out with 'r'; with 'raw' the pair of reflectors and their factors.
    r : array, shape (..., m, n) or (..., k, n)
        Upper triangular; k rows with 'economic' and 'raw'.
    p : array of int32, shape (..., n)
        ``a[:, p] = Q R``. Left out without `pivoting`.

    Raises
    ------
    ValueError
        When `a` is no matrix, `mode` or `lwork` is none, or Inf or NaN was found.

    See Also
    --------
    qr_multiply : Products with Q, which is not formed.
    pyblasgpu.lapack.geqrf : The reflectors.

    Notes
    -----
    Results of one matrix with 'r' and without `pivoting` are a tuple of one, those of a stack are R itself,
    as SciPy's. The bounds of the errors are those of `pyblasgpu.lapack.geqrf`.

    Reduced factors of tall device matrices come from Cholesky factors of ``aᴴ a`` and of ``qᴴ q``, where the
    condition of `a` allows it. The diagonal of R is positive then. The host waits for that decision.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> q, r = linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> r.round(3)
    array([[-5. , -2.2],
           [ 0. ,  0.4]])
    """
    name = "qr"
    kind = _MODES.get(mode) if isinstance(mode, str) else None
    if kind is None:
        raise ValueError(f"{name}: mode={shown(mode)} is none of {', '.join(_MODES)}")
    key = name, overwrite_a, lwork, mode, pivoting, check_finite
    if type(a) is not np.ndarray and (done := repeat_chain(key, (a,))) is not None:
        return _as_called(kind, _repeated(done, a) if pivoting else done.results, a)
    pivoted = enabled(pivoting, name, "pivoting")
    arrays = taken(name, {"a": a})
    (matrix,) = arrays.each
    tall = kind == "economic" and not pivoted and is_tall(arrays, matrix) and arrays.may_wait
    arrays = arrays if tall else arrays.recorded(key, (a,), check_finite)
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        _check_matrix(name, matrix)
        lwork = checked_workspace(name, lwork, matrix.shape[-1] + pivoted)
        if tall and (found := cholesky_qr(arrays, arrays.cast(matrix))) is not None:
            return tuple(map(arrays.returned, found))
        m, n = matrix.shape[-2:]
        if kind == "economic" and pivoted and factors_first(arrays, m, n):
            return tuple(map(arrays.returned, _of_triangle(arrays, matrix, overwrite)))
        factors, tau, columns = _factored(arrays, matrix, overwrite, pivoted, lwork)
        reduced = kind in ("economic", "raw") and m > n
        r = _upper(arrays, factors[..., :n, :] if reduced else factors)
        if kind == "raw":
            results = [factors, tau, r]
        elif kind == "r":
            results = [r]
        else:
            results = [orthogonal_of(arrays, factors, tau, kind == "full"), r]
        arrays.kept(*results, *columns)
        order = [_from_zero(arrays, each) for each in columns]
        return _as_called(kind, [arrays.returned(each) for each in (*results, *order)], matrix)


def factors_first(arrays: Arrays, m: int, n: int) -> bool:
    """Whether matrices are tall enough for a device to interchange the columns of R alone."""
    return not arrays.library.host and n > 0 and m >= max(LEAST_ROWS, SHARE * n)


def _of_triangle(arrays: Arrays, matrix: Any, overwrite: bool) -> tuple[Any, Any, Any]:
    """Q, R and the order of columns of tall device matrices: pivots are chosen in R of QR factors without."""
    *batch, m, n = matrix.shape
    outer, scalars, _, _ = lapack.geqrf(arrays.cast(matrix), None, overwrite)
    factors, columns, tau, _, _ = lapack.geqp3(_upper(arrays, outer[..., :n, :]))
    r, q = _upper(arrays, factors), orthogonal_of(arrays, factors, tau, False)
    below = arrays.xp.zeros((*batch, m - n, n), dtype=q.dtype, **arrays.placement)
    q, _, _ = lapack.ormqr("L", "N", outer, scalars, arrays.xp.concat([q, below], axis=-2))
    return q, r, _from_zero(arrays, columns)


def _repeated(done: Repeated, a: Any) -> list[Any]:
    """The results of a call with pivots that is repeated."""
    *results, columns = done.results
    with (arrays := done.with_them.of(a)).current():
        return [*results, arrays.returned(_from_zero(arrays, columns))]


def _from_zero(arrays: Arrays, columns: Any) -> Any:
    """The numbers of columns, which LAPACK counts from 1."""
    return columns - 1


def _upper(arrays: Arrays, factors: Any) -> Any:
    """R as a matrix of its own."""
    if arrays.library.host or 0 in factors.shape:
        return triangle_of(arrays, factors, False)
    return upper_triangle("qr", factors, arrays.dtype)


def _as_called(kind: str, results: list[Any], matrix: Any) -> tuple[Any, ...]:
    """The results of `qr` as SciPy arranges them."""
    if kind == "raw":
        return tuple(results[:2]), *results[2:]
    is_alone = kind == "r" and len(results) == 1 and len(matrix.shape) > 2
    return results[0] if is_alone else tuple(results)


@_documented
def qr_multiply(
    a: Array,
    c: Array,
    mode: str = "right",
    pivoting: Flag = False,
    conjugate: Flag = False,
    overwrite_a: Flag = False,
    overwrite_c: Flag = False,
) -> tuple[Array, ...]:
    """QR factors of a matrix, and the product of Q and another one, as `scipy.linalg.qr_multiply`.

    Parameters
    ----------
    c : array, shape (k,), (m,), (..., k, l) or (..., l, m)
        The other factor: k rows from the left, m columns from the right. Leading dimensions broadcast with
        those of `a`.
    mode : {'right', 'left'}, default 'right'
        Whether ``c Q`` is computed, or ``Q c``.
    conjugate : bool, default False
        Whether the conjugate of Q is meant.
    overwrite_c : bool, default False
        Whether `c` may be overwritten; from the left it has m rows then, of which the first k count.

    Returns
    -------
    cq : array, shape of `c`, or with k or m in the place of m or k
        The product.
    r : array, shape (..., k, n)
        Upper triangular.
    p : array of int32, shape (..., n)
        ``a[:, p] = Q R``. Left out without `pivoting`.

    Raises
    ------
    ValueError
        When shapes do not fit, `mode` is none, or Inf or NaN was found.

    See Also
    --------
    qr : The factors as matrices.
    pyblasgpu.lapack.ormqr : Products with the whole Q, or with its conjugate transpose.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> cq, r = linalg.qr_multiply(np.array([[3.0], [4.0]]), np.array([5.0, 10.0]))
    >>> cq.round(3)
    array([-11.])
    """
    name = "qr_multiply"
    if mode not in ("left", "right"):
        raise ValueError(f"{name}: mode={shown(mode)} is none of left, right")
    pivoted = enabled(pivoting, name, "pivoting")
    arrays = taken(name, {"a": a, "c": c})
    matrix, other = arrays.each
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    keeps_rows = enabled(overwrite_c, name, "overwrite_c")
    is_left, conjugated = mode == "left", enabled(conjugate, name, "conjugate")
    with arrays.silent():
        check_values(arrays, None, name, matrix, other)
        matrix = matrix[None] if len(matrix.shape) == 1 else matrix
        _check_matrix(name, matrix)
        factors, tau, columns = _factored(arrays, matrix, overwrite, pivoted)
        product = _multiplied(arrays, factors, tau, other, is_left, conjugated, keeps_rows)
        r = triangle_of(arrays, factors[..., : min(factors.shape[-2:]), :], False)
        order = [_from_zero(arrays, each) for each in columns]
        return tuple(map(arrays.returned, (product, r, *order)))


def _check_matrix(name: str, matrix: Any) -> None:
    if len(matrix.shape) < 2:
        raise ValueError(f"{name}: a has shape {tuple(matrix.shape)}; a matrix, or a stack, is needed")


def _factored(
    arrays: Arrays, matrix: Any, overwrite: bool, pivoted: bool, lwork: int | None = None
) -> tuple[Any, Any, tuple[Any, ...]]:
    """The reflectors of matrices, their factors, and the order of columns, from 1, if `pivoted`."""
    matrix = arrays.cast(matrix)
    if arrays.library.host and not overwrite and lwork is None:
        small = reflectors_of(matrix, arrays.dtype, pivoted)
        if small is not None:
            return small
    if not pivoted:
        factors, tau, _, _ = lapack.geqrf(matrix, lwork, overwrite)
        return factors, tau, ()
    factors, columns, tau, _, _ = lapack.geqp3(matrix, lwork, overwrite)
    return factors, tau, (columns,)


def orthogonal_of(arrays: Arrays, factors: Any, tau: Any, is_full: bool) -> Any:
    """Q from reflectors, which are overwritten: square if `is_full`, else with k columns."""
    *batch, m, n = factors.shape
    overwrite = m > n or not is_full  # as SciPy's, whose square Q is apart from what it overwrites
    if m < n:
        factors, overwrite = factors[..., :m], not batch
    elif is_full and m > n:
        factors = _with_columns(arrays, factors, (*batch, m, m - n))
    q = orthogonal_from(factors, tau, arrays.dtype, overwrite) if arrays.library.host else None
    return lapack.orgqr(factors, tau, overwrite_a=overwrite)[0] if q is None else q


def _with_columns(arrays: Arrays, matrix: Any, shape: tuple[int, ...]) -> Any:
    """Columns of zeros of a `shape` right of those of `matrix`; the result is by columns."""
    xp = arrays.xp
    zeros = xp.zeros((*shape[:-2], shape[-1], shape[-2]), dtype=matrix.dtype, **arrays.placement)
    return xp.matrix_transpose(xp.concat([xp.matrix_transpose(matrix), zeros], axis=-2))


def _multiplied(
    arrays: Arrays, factors: Any, tau: Any, other: Any, is_left: bool, conjugated: bool, keeps_rows: bool
) -> Any:
    """``Q other`` or ``other Q``; see `qr_multiply`."""
    m, n = factors.shape[-2:]
    k, is_vector = min(m, n), len(other.shape) == 1
    c = arrays.cast(other)
    if is_vector:
        c = c[:, None] if is_left else c[None]
    wanted = (m if keeps_rows else k) if is_left else m
    if not c.shape or c.shape[-2 if is_left else -1] != wanted:
        which = f"{wanted} rows" if is_left else f"{wanted} columns"
        shapes = f"a has shape {tuple(factors.shape)} and c {tuple(other.shape)}"
        raise ValueError(f"qr_multiply: {shapes}; c needs {which}")
    xp, conjugated = arrays.xp, conjugated and arrays.dtype.is_complex
    if is_left and wanted < m:
        below = (*c.shape[:-2], m - k, c.shape[-1])
        c = xp.concat([c, xp.zeros(below, dtype=c.dtype, **arrays.placement)], axis=-2)
    c = xp.conj(c) if conjugated else c  # conj(Q) c is the conjugate of Q conj(c)
    side, used, product = Side.LEFT if is_left else Side.RIGHT, factors[..., :k], None
    if arrays.library.host:
        product = product_from(used, tau, c, arrays.dtype, side)
    if product is None:
        product, _, _ = lapack.ormqr(side.value, "N", used, tau, c)
    product = product if is_left else product[..., :k]
    product = xp.conj(product) if conjugated else product
    return (product[..., 0] if is_left else product[..., 0, :]) if is_vector else product
