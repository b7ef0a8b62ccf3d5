"""SciPy's least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from ...arguments import Array, Flag, shown
from ...cpu.scipy.level3 import broadcast_matrices, indices
from ...cpu.scipy.stacks import scipys_linalg
from ...dispatch.overrides import in_mode
from ...frontend.backend_status import preferred_backend
from ...frontend.calls.factor_chain import repeat_chain
from ...types import tensor_method
from ..lapack import names as lapack
from ..lapack.triangles import upper_solution
from .arrays import Arrays, gemm_of, taken
from .checks import broadcast_batches, check_values, host_values
from .docs import documented
from .normal_equations import are_tried, refined_solution
from .pivoted import by_pivots
from .standard import singular_triplets
from .triangular import solve_triangular

__all__ = ["lstsq"]

_DRIVERS = ("gelsd", "gelsy", "gelss", "gels")


@documented
def lstsq(
    a: Array,
    b: Array,
    cond: float | None = None,
    overwrite_a: Flag = False,
    overwrite_b: Flag = False,
    check_finite: Flag = None,
    lapack_driver: str | None = None,
    *,
    method: str | None = None,
) -> tuple[Array, Array, Any, Any]:
    """Least-squares solution x of ``a x = b``, as `scipy.linalg.lstsq`.

    Of all solutions with the least residual it is the one with the least norm.

    Parameters
    ----------
    a : array, shape (..., m, n)
        The matrices; leading dimensions count them.
    b : array, shape (m,) or (..., m, k)
        The right-hand sides. Leading dimensions broadcast with those of the matrices.
    cond : float, optional
        Singular values that are less than `cond` times the largest one count as zero; by default the unit
        roundoff of the dtype, twice over. 'gels' takes none. Device arrays are solved by singular values
        then, or with 'gelsy' by QR factors with pivots, whose condition is at most 1 over `cond`.
    lapack_driver : {'gelsd', 'gelsy', 'gelss', 'gels'}, optional
        LAPACK's routine. It goes by singular values ('gelsd', 'gelss'), by QR factors with pivots ('gelsy'),
        or by QR factors of matrices of full rank ('gels'). The last takes the least time. By default 'gelsd'
        of host arrays, and 'gels' of device arrays, for which 'gelsd' and 'gelss' are Jacobi's method.
        'gelsy' takes device matrices of any size and rank.
    method : {'tensor'}, optional
        Products on tensor cores, see `pyblasgpu.gemm`. It changes nothing on the processor. SciPy has no such
        argument.

    Returns
    -------
    x : array, shape (n,) or (..., n, k)
        The solution.
    residues : array, shape (), (k,) or (..., k)
        The squared norms of the columns of ``b - a x``. Its last extent is 0 where m <= n, where the rank
        of a matrix is less than n, and with 'gelsy'.
    rank : int, or array of int64
        The rank of `a`; min(m, n) with 'gels'.
    s : array, shape (..., min(m, n)), or None
        The singular values; None with 'gelsy' and 'gels'.

    Raises
    ------
    numpy.linalg.LinAlgError
        When singular values do not converge; with 'gels', when a matrix has no full rank. The diagonal of R
        of device arrays is looked at with ``check_finite=True`` alone.
    ValueError
        When shapes do not fit, the driver is none, or Inf or NaN was found.

    See Also
    --------
    qr : The factors.
    pyblasgpu.lapack.gels : Solution and `info`, without errors.

    Notes
    -----
    The solution by QR factors is that of a problem whose matrix and right-hand side differ by a small
    multiple of ``m n u``, relative to columns. u is the unit roundoff (Higham, *Accuracy and Stability of
    Numerical Algorithms*, Theorem 20.3).

    Tall device matrices whose condition allows it are solved by normal equations and corrections. The host
    waits for that decision.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> x, residues, rank, s = linalg.lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))
    >>> x.round(3), rank
    (array([2.]), 1)
    """
    name, driver = "lstsq", lapack_driver or "gelsd"
    if driver not in _DRIVERS:
        raise ValueError(f"{name}: lapack_driver={shown(lapack_driver)} is none of {', '.join(_DRIVERS)}")
    if driver == "gels" and cond is not None:
        raise ValueError(f"{name}: cond={shown(cond)} is for drivers that find a rank; 'gels' takes none")
    key = name, cond, overwrite_a, overwrite_b, check_finite, lapack_driver
    if type(a) is not np.ndarray and method is None and (done := repeat_chain(key, (a, b))) is not None:
        solution, y = done.results
        with (arrays := done.with_them.of(a)).current():
            x, residues = _of_tall(arrays, solution, y, len(b.shape) == 1)
        return x, residues, _full_ranks(a), None
    method = tensor_method(method, name)
    arrays = taken(name, {"a": a, "b": b})
    # a mode is set around the calls of routines, not by them, and a decision waits between two of them
    if method is None and not are_tried(arrays, *arrays.each):
        arrays = arrays.recorded(key, (a, b), check_finite)
    matrix, right = arrays.each
    flags = (overwrite_a, "overwrite_a", matrix), (overwrite_b, "overwrite_b", right)
    overwrite = [arrays.may_overwrite(flag, name, argument, array) for flag, argument, array in flags]
    if not arrays.library.host:
        with arrays.silent():
            checked = check_values(arrays, check_finite, name, matrix, right)
            _check_shapes(name, matrix, right)
            if lapack_driver == "gelsy":
                x, residues, ranks = in_mode(method, _by_pivots)(arrays, matrix, right, cond)
                return arrays.returned(x), arrays.returned(residues), ranks, None
            if cond is not None or lapack_driver in ("gelsd", "gelss"):
                by_values = in_mode(method, _by_singular_values)
                x, residues, ranks, s = by_values(name, arrays, matrix, right, cond)
                return arrays.returned(x), arrays.returned(residues), ranks, arrays.returned(s)
            x, residues = in_mode(method, _on_device)(arrays, matrix, right, checked)
            return arrays.returned(x), arrays.returned(residues), _full_ranks(matrix), None
    with preferred_backend("cpu"), arrays.silent():
        check_values(arrays, check_finite, name, matrix, right)
        _check_shapes(name, matrix, right)
        solve = _by_factors if driver == "gels" else _by_scipy(cond, overwrite, driver)
        x, residues, rank, s = _stacked(solve, arrays.cast(matrix), arrays.cast(right))
    values = None if s is None else arrays.returned(s)
    return arrays.returned(x), arrays.returned(residues), rank, values


def _check_shapes(name: str, a: Any, b: Any) -> None:
    if len(a.shape) < 2:
        raise ValueError(f"{name}: a has shape {tuple(a.shape)}; a matrix, or a stack, is needed")
    if not b.shape or b.shape[-2:][0] != a.shape[-2]:
        raise ValueError(f"{name}: a has shape {tuple(a.shape)} and b {tuple(b.shape)}, of other rows")


def _stacked(solve: Callable[..., Any], a: np.ndarray, b: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """``solve(a, b)`` of each matrix: the same results, one a matrix."""
    if a.ndim == 2 and b.ndim <= 2:
        x, residues, rank, s = solve(a, b)
        return x, residues, rank, s
    is_vector = b.ndim == 1
    right = b[:, None] if is_vector else b
    batch = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    a, right = broadcast_matrices(batch, a, right)
    found = [solve(a[index], right[index]) for index in indices(batch)]
    if not found:
        found = [solve(np.zeros(a.shape[-2:], a.dtype), np.zeros(right.shape[-2:], a.dtype))]
        x, residues, _, s = found[0]
        shape = (*batch, *x.shape[: 1 if is_vector else 2])
        values = None if s is None else np.zeros((*batch, *s.shape), s.dtype)
        return (
            np.zeros(shape, x.dtype),
            np.zeros((*batch, 0), residues.dtype),
            np.zeros(batch, np.int64),
            values,
        )
    x, residues, ranks, s = zip(*found, strict=True)
    least = min(each.shape[-1] for each in residues)  # 0 where one has none
    squares = np.stack([each[..., :least] for each in residues]).reshape(*batch, least)
    solutions = np.stack(x).reshape(*batch, *x[0].shape)
    if is_vector:
        solutions = solutions[..., 0]
        squares = squares[..., 0] if least else squares
    values = None if s[0] is None else np.stack(s).reshape(*batch, *s[0].shape)
    return solutions, squares, np.array(ranks, np.int64).reshape(batch), values


def _by_scipy(cond: float | None, overwrite: list[bool], driver: str) -> Callable[..., Any]:
    """Return SciPy's function of one matrix."""
    scipys = scipys_linalg("lstsq")

    def solve(a: np.ndarray, b: np.ndarray) -> Any:
        if driver != "gelsy" and not np.isfinite(a).all():  # LAPACK's iteration may not end with them
            raise LinAlgError("lstsq: SVD did not converge in Linear Least Squares")
        return scipys(
            a,
            b,
            cond,
            overwrite_a=overwrite[0],
            overwrite_b=overwrite[1],
            check_finite=False,
            lapack_driver=driver,
        )

    return solve


def _full_ranks(a: Any) -> Any:
    """The ranks of matrices that have full rank."""
    rank, batch = min(a.shape[-2:]), tuple(a.shape[:-2])
    return np.full(batch, rank, np.int64) if batch else rank


def _on_device(arrays: Arrays, a: Any, b: Any, checked: bool) -> tuple[Any, Any]:
    """Solution and squares of residuals of device arrays, by QR factors, or LQ factors of wide ones."""
    xp, is_vector = arrays.xp, len(b.shape) == 1
    a, right = arrays.cast(a), arrays.cast(b[:, None] if is_vector else b)
    a, right = broadcast_batches(arrays, a, right)
    *batch, m, n = a.shape
    if (
        right.shape[-1]
        and are_tried(arrays, a, right)
        and (found := refined_solution(arrays, a, right)) is not None
    ):
        x, squares = found
        return (x[..., 0], squares[..., 0]) if is_vector else (x, squares)
    if m >= n:
        factors, tau, _, _ = lapack.geqrf(a)
        triangle = factors[..., :n, :]
        if checked and bool(xp.any(xp.linalg.diagonal(triangle) == 0)):
            raise LinAlgError("lstsq: a has no full rank: the diagonal of R has a zero")
        y, _, _ = lapack.ormqr("L", "C", factors, tau, right)
        if 0 in (*a.shape, *right.shape):
            x = solve_triangular(triangle, y[..., :n, :])
        else:
            x = upper_solution("lstsq", triangle, y[..., :n, :], arrays.dtype)
            arrays.kept(x, y)
        return _of_tall(arrays, x, y, is_vector)
    below = xp.zeros((*batch, n - m, right.shape[-1]), dtype=right.dtype, **arrays.placement)
    _, x, info = lapack.gels(a, xp.concat([right, below], axis=-2))
    if checked and host_values(info).any():
        raise LinAlgError("lstsq: a has no full rank: the diagonal of L has a zero")
    squares = xp.zeros((*batch, 0), dtype=xp.abs(right).dtype, **arrays.placement)
    return (x[..., 0] if is_vector else x), squares


def _of_tall(arrays: Arrays, x: Any, y: Any, is_vector: bool) -> tuple[Any, Any]:
    """Solution and squares of residuals from x, and from y, ``Qᴴ b``, which has as many rows or more."""
    xp, n = arrays.xp, x.shape[-2]
    if y.shape[-2] == n:
        kind = getattr(xp, arrays.dtype.real)
        squares = xp.zeros((*y.shape[:-2], 0), dtype=kind, **arrays.placement)
        return (x[..., 0] if is_vector else x), squares
    sizes = xp.abs(y[..., n:, :])
    squares = xp.sum(sizes * sizes, axis=-2)
    return (x[..., 0], squares[..., 0]) if is_vector else (x, squares)


def _by_pivots(arrays: Arrays, a: Any, b: Any, cond: float | None) -> tuple[Any, Any, Any]:
    """Solution, squares of residuals, which are none, and ranks of device arrays; waits for the ranks."""
    is_vector = len(b.shape) == 1
    a, right = arrays.cast(a), arrays.cast(b[:, None] if is_vector else b)
    a, right = broadcast_batches(arrays, a, right)
    x, ranks = by_pivots(arrays, a, right, cond)
    if 0 in x.shape[-2:-1]:  # without unknowns all of b is left
        return *_of_tall(arrays, x, right, is_vector), ranks
    squares = arrays.xp.zeros((*a.shape[:-2], 0), dtype=right.dtype, **arrays.placement)
    return (x[..., 0] if is_vector else x), squares, ranks


def _by_singular_values(
    name: str, arrays: Arrays, a: Any, b: Any, cond: float | None
) -> tuple[Any, Any, Any, Any]:
    """Solution, squares of residuals, ranks and singular values of device arrays; waits for the ranks."""
    xp, is_vector, dtype = arrays.xp, len(b.shape) == 1, arrays.dtype
    a, right = arrays.cast(a), arrays.cast(b[:, None] if is_vector else b)
    a, right = broadcast_batches(arrays, a, right)
    m, n = a.shape[-2:]
    u, s, vh = singular_triplets(name, arrays, a)
    relative = arrays.precision if cond is None else float(cond)
    largest = xp.max(s, axis=-1, keepdims=True) if min(m, n) else 0
    counts = s > largest * relative
    inverse = xp.where(counts, 1 / xp.where(counts, s, 1), 0)
    y = gemm_of(name, u, right, dtype, trans_a="C") * inverse[..., None]
    x = gemm_of(name, vh, y, dtype, trans_a="C")
    found = host_values(xp.sum(xp.astype(counts, xp.int64), axis=-1))
    if m > n and (found == n).all():
        sizes = xp.abs(right - gemm_of(name, a, x, dtype))
        squares = xp.sum(sizes * sizes, axis=-2)
    else:
        squares = xp.zeros((*a.shape[:-2], 0), dtype=s.dtype, **arrays.placement)
    ranks = found.astype(np.int64) if found.ndim else int(found)
    if is_vector:
        return x[..., 0], squares[..., 0] if squares.shape[-1] else squares, ranks, s
    return x, squares, ranks, s


def _by_factors(a: np.ndarray, b: np.ndarray) -> tuple[Any, Any, int, None]:
    """Solution, squares of residuals and rank, by QR or LQ factors."""
    (m, n), shape = a.shape, (max(a.shape), *b.shape[1:])
    if m < n:
        right = np.zeros(shape, b.dtype)
        right[:m] = b
        b = right
    _, x, info = lapack.gels(a, b)
    if info:
        raise LinAlgError(f"lstsq: a has no full rank: element {info} of the diagonal of R is zero")
    squares = (np.abs(x[n:]) ** 2).sum(axis=0) if m > n else np.empty(0, x.real.dtype)
    return x[:n], squares, min(m, n), None
