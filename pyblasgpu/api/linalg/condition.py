"""How well systems are conditioned, and SciPy's warning of those that are not.

The reciprocal condition number in the 1-norm is estimated as LAPACK's ?gecon, ?pocon and ?trcon do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from ...arguments import Array
from ...cpu.scipy.cholesky import lapack as scipys
from ...cpu.scipy.level3 import blas_function, prefers_transpose
from ...types import Trans, Uplo
from .arrays import Arrays
from .checks import host_values

__all__ = ["Conditions", "estimate_inverse_norms", "one_norms"]

#: ``solve(x, trans)``: op(A) solved for right-hand sides of shape (matrices, n, columns), in host memory.
Solver = Callable[[np.ndarray[Any, Any], Trans], np.ndarray[Any, Any]]
LARGE = 128  # rows from which on norms of a stack are LAPACK's: NumPy would need memory for all moduli
STEPS = 5  # of the estimate, at most


class Conditions:
    """Conditions of the matrices of a call of `solve` or `inv`; none where they are not wanted.

    Parameters
    ----------
    arrays : Arrays
    wanted : bool
    """

    def __init__(self, arrays: Arrays, wanted: bool) -> None:
        self.arrays, self.wanted = arrays, wanted
        self._reciprocals: Any = None

    def keep(self, norms: Any, inverse_norms: Any) -> None:
        """Keep what follows from the norms of all matrices of a stack and of their inverses."""
        if not self.wanted:
            return
        if len(norms) == len(inverse_norms) == 1 and norms[0] and inverse_norms[0]:
            self._reciprocals = [1 / float(inverse_norms[0]) / float(norms[0])]
            return
        with np.errstate(all="ignore"):
            self.keep_reciprocals(1 / np.asarray(inverse_norms) / np.asarray(norms))

    def keep_reciprocals(self, reciprocals: Any) -> None:
        """Keep reciprocal condition numbers."""
        self._reciprocals = np.atleast_1d(np.asarray(reciprocals)).ravel()

    def norms(self, matrix: Array, uplo: Uplo | None = None) -> Any:
        """The 1-norms of a stack, of host arrays as by `one_norms`; None where they are not wanted."""
        if not self.wanted:
            return None
        if self.arrays.library.host:
            return one_norms(matrix, uplo)
        xp = self.arrays.xp
        norms = xp.max(xp.sum(xp.abs(matrix), axis=-2), axis=-1)
        return host_values(norms).ravel()

    def keep_solver(self, norms: Any, solve: Callable[[Array, Trans], Array], like: Array) -> None:
        """Keep the condition of device matrices like `like`, which ``solve(x, trans)`` solves with."""
        if not self.wanted:
            return
        *batch, n, _ = like.shape

        def solve_host(x: Any, trans: Trans) -> Any:
            right = self.arrays.from_host(x.reshape(*batch, *x.shape[-2:]))
            return host_values(solve(right, trans)).reshape(x.shape)

        dtype = np.dtype(self.arrays.dtype.name)
        self.keep(norms, estimate_inverse_norms(solve_host, prod(batch), n, dtype))

    def keep_diagonal(self, diagonal: Array) -> None:
        """Keep the condition of diagonal matrices, whose diagonals are columns."""
        if self.wanted:
            xp = self.arrays.xp
            sizes = xp.abs(diagonal)
            ends = (host_values(end(sizes, axis=(-2, -1))) for end in (xp.min, xp.max))
            with np.errstate(all="ignore"):
                self.keep_reciprocals(np.divide(*ends))

    def keep_triangle(self, triangle: np.ndarray[Any, Any], uplo: Uplo) -> None:
        """Keep the condition of host triangles, where SciPy estimates it."""
        if not self.wanted:
            return
        try:
            run = partial(scipys("trcon", triangle.dtype), uplo=b"L" if uplo is Uplo.LOWER else b"U")
        except ValueError:  # an older one, which warns of no triangles
            return
        stack = triangle.reshape(-1, *triangle.shape[-2:])
        self.keep_reciprocals([run(each)[0] for each in stack])

    def warn(self) -> None:
        """Warn the caller's caller of matrices with a condition beyond the precision, in SciPy's words."""
        if self._reciprocals is None:
            return
        limit = self.arrays.precision
        bad = [(i, float(x)) for i, x in enumerate(self._reciprocals) if not x >= limit]
        if bad:
            from scipy.linalg import LinAlgWarning  # slow to import

            slices = ",".join(f"slice {i} has rcond = {x}" for i, x in bad)
            warnings.warn(f"An ill-conditioned matrix detected: {slices}.", LinAlgWarning, stacklevel=3)


def one_norms(stack: np.ndarray[Any, Any], uplo: Uplo | None = None) -> Sequence[Any] | np.ndarray[Any, Any]:
    """The largest sum of moduli of a column, of each host matrix; of Hermitian ones that are given by a
    triangle with `uplo`.
    """
    if stack.ndim == 2:
        return [_lange(stack) if uplo is None else _column_sums(stack, uplo is Uplo.LOWER).max()]
    matrices = stack.reshape(-1, *stack.shape[-2:])
    if uplo is not None:
        sizes = abs(np.tril(matrices) if uplo is Uplo.LOWER else np.triu(matrices))
        diagonal = np.diagonal(sizes, axis1=-2, axis2=-1)
        return np.asarray((sizes.sum(axis=-1) + sizes.sum(axis=-2) - diagonal).max(axis=-1))
    if stack.shape[-1] < LARGE:
        return np.asarray(abs(matrices).sum(axis=-2).max(axis=-1))
    return np.array([_lange(matrix) for matrix in matrices])


def _lange(matrix: np.ndarray[Any, Any]) -> float:
    """Return the largest sum of moduli of a column of a matrix, without a copy of it by columns."""
    lange = scipys("lange", matrix.dtype)
    return float(lange("I", matrix.T) if matrix.flags.c_contiguous else lange("1", matrix))


def _column_sums(matrix: np.ndarray[Any, Any], low: bool) -> np.ndarray[Any, Any]:
    """Return the sums of moduli in the columns of a Hermitian matrix, of which one triangle is read."""
    sizes = abs(matrix)
    if prefers_transpose(sizes):
        sizes, low = sizes.T, not low
    sums: np.ndarray[Any, Any] = blas_function("symv", sizes.dtype)(
        1, sizes, _ones(len(sizes), sizes.dtype), lower=low
    )
    return sums


@lru_cache(maxsize=64)
def _ones(n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return ones, which are kept: NumPy takes as long for a short vector as LAPACK for a small matrix."""
    kept = np.ones(n, dtype)
    kept.flags.writeable = False
    return kept


def estimate_inverse_norms(solve: Solver, count: int, n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Lower bounds, nearly always attained or close, of the 1-norms of the inverses of `count` matrices.

    Parameters
    ----------
    solve : callable
        A `Solver`.
    count, n : int
        Matrices, and their order.
    dtype : dtype
        Dtype of right-hand sides.

    Returns
    -------
    array, shape (count,)

    Notes
    -----
    Higham, *FORTRAN codes for estimating the one-norm of a real or complex matrix* (Algorithm 674, ACM
    Transactions on Mathematical Software 14, 1988), as LAPACK's ?lacn2 has it; the vector of alternating
    signs is solved for with the first one.
    """
    rows = np.arange(n)
    start = np.empty((count, n, 2), dtype)
    start[..., 0], start[..., 1] = 1 / n, (-1.0) ** rows * (1 + rows / max(n - 1, 1))
    with np.errstate(all="ignore"):
        first, alternating = np.moveaxis(solve(start, Trans.NO), -1, 0)
        best: np.ndarray[Any, Any] = abs(first).sum(axis=-1)
        if n == 1:
            return best
        signs = _signs(first)
        column = _largest(solve(signs[..., None], Trans.CONJ))
        goes_on = np.ones(count, bool)
        for _ in range(2, STEPS + 1):
            unit = np.zeros((count, n, 1), dtype)
            unit[np.arange(count), column] = 1
            x = solve(unit, Trans.NO)[..., 0]
            norms, before = abs(x).sum(axis=-1), signs
            signs = _signs(x)
            is_same = (signs == before).all(axis=-1) & np.isrealobj(x)
            goes_on &= (norms > best) & ~is_same
            best = np.where(norms > best, norms, best)
            if not goes_on.any():
                break
            z = solve(signs[..., None], Trans.CONJ)
            last, column = column, _largest(z)
            goes_on &= abs(z)[np.arange(count), last, 0] != abs(z)[np.arange(count), column, 0]
            if not goes_on.any():
                break
        return np.asarray(np.maximum(best, 2 * abs(alternating).sum(axis=-1) / (3 * n)))


def _signs(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """x / |x|, and 1 for zero."""
    size = abs(x)
    return np.asarray(np.where(size > 0, x / np.where(size > 0, size, 1), 1)).astype(x.dtype)


def _largest(z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(abs(z[..., 0]).argmax(axis=-1))
