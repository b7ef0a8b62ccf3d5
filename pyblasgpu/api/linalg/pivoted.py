"""Least squares of device matrices of any rank by QR factors with pivots, as LAPACK's gelsy.

The rank is that of the largest leading triangle of R whose condition is not too large. Estimates of it grow
by a column at a time (Bischof, 1990). The rows of R that count have LQ factors, which give the least norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values
from .qr import factors_first
from .triangular import solve_triangular

__all__ = ["by_pivots"]


def by_pivots(arrays: Arrays, a: Any, b: Any, cond: float | None) -> tuple[Any, Any]:
    """Return solutions and ranks; the call waits for the ranks.

    Parameters
    ----------
    arrays : Arrays
    a, b : array, shape (..., m, n) and (..., m, k)
        Matrices and right-hand sides of the same leading dimensions.
    cond : float or None
        The reciprocal of the largest condition, by default the precision of the dtype.
    """
    *batch, m, n = a.shape
    if factors_first(arrays, m, n):
        factors, tau, _, _ = lapack.geqrf(a)
        y, _, _ = lapack.ormqr("L", "C", factors, tau, b)
        return by_pivots(arrays, arrays.xp.triu(factors[..., :n, :]), y[..., :n, :], cond)
    least, relative = min(m, n), arrays.precision if cond is None else float(cond)
    factors, columns, tau, _, _ = lapack.geqp3(a)
    triangles = host_values(factors[..., :least, :least])
    ranks = np.array([_rank(triangles[index], relative) for index in np.ndindex(*batch)], np.int64)
    y, _, _ = lapack.ormqr("L", "C", factors[..., :least], tau, b)
    places = np.argsort(host_values(columns), axis=-1)
    if len(set(ranks.tolist())) > 1:
        solutions = [
            _solution(arrays, factors[index], y[index], int(rank), places[index])
            for index, rank in zip(np.ndindex(*batch), ranks, strict=True)
        ]
        x = arrays.xp.reshape(arrays.xp.stack(solutions), (*batch, n, b.shape[-1]))
    else:
        x = _solution(arrays, factors, y, int(ranks[0]) if ranks.size else least, places)
    return x, ranks.reshape(batch) if batch else int(ranks[0])


def _solution(arrays: Arrays, factors: Any, y: Any, rank: int, places: Any) -> Any:
    """x from ``Qᴴ b``, of matrices of one rank; row i of it is row ``places[i]`` before."""
    xp, (*batch, _, n), columns = arrays.xp, factors.shape, y.shape[-1]
    below = xp.zeros((*batch, n - rank, columns), dtype=y.dtype, **arrays.placement)
    if rank == 0 or 0 in y.shape:
        return xp.zeros((*batch, n, columns), dtype=y.dtype, **arrays.placement)
    top = xp.triu(factors[..., :rank, :])
    if rank == n:
        x = solve_triangular(top, y[..., :n, :])
    else:
        _, x, _ = lapack.gels(top, xp.concat([y[..., :rank, :], below], axis=-2))
    return xp.take_along_axis(x, arrays.from_host(places[..., None]), axis=-2)


def _rank(r: np.ndarray[Any, Any], relative: float) -> int:
    """The order of the largest leading triangle whose condition is at most 1 over `relative`."""
    largest = np.abs(np.triu(r)).max(initial=0)
    if not np.isfinite(largest):
        return len(r)
    if largest == 0 or r[0, 0] == 0:
        return 0
    r = np.triu(r).astype(complex if r.dtype.kind == "c" else float) / float(largest)
    high = low = (np.ones(1, r.dtype), abs(r[0, 0]))
    for i in range(1, len(r)):
        high, low = (_grown(*each, r[:i, i], r[i, i], place) for place, each in enumerate((high, low)))
        if not high[1] * relative <= low[1]:
            return i
    return len(r)


def _grown(
    x: np.ndarray[Any, Any], size: float, column: np.ndarray[Any, Any], last: Any, place: int
) -> tuple[np.ndarray[Any, Any], float]:
    """A vector and its estimate of the largest singular value (`place` 0) or of the least one, of a triangle
    with one more column.
    """
    turns, sizes, _ = np.linalg.svd(np.array([[size, np.vdot(x, column)], [0, last]]))
    first, second = turns[:, place]
    return np.append(first * x, second), sizes[place]
