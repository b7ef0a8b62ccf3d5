"""Systems of float64 solved by factors in float32, and refined to float64's accuracy.

The factors, most of the work, take products on tensor cores. Residuals are computed in float64, and the same
factors solve for corrections, until the test of LAPACK's dsgesv and dsposv holds:

    max |b - A x|  <=  sqrt(n) eps ||A||inf max |x|     for each right-hand side, eps = 2^-53

Systems that are not solved after `MAX_STEPS` corrections, or no longer converge, get factors in float64.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ...dispatch.overrides import set_math_mode
from ...types import TENSOR, Trans
from ..keyword.level2 import symv
from ..keyword.level3 import gemm
from ..keyword.symmetric import symm
from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values

__all__ = ["MAX_STEPS", "refined_definite", "refined_general"]

#: Corrections at most, LAPACK's ITERMAX.
MAX_STEPS = 30
EPS, TINY = 2.0**-53, 2.0**-1022

_log = logging.getLogger("pyblasgpu")


class _Factored(NamedTuple):
    """A stack of matrices A, and its factors in float32.

    Attributes
    ----------
    arrays : Arrays
    bounds : array, shape (..., 1, 1)
        ``sqrt(n) eps ||A||inf``.
    solve : callable
        ``solve(r)`` is about ``A^-1 r`` for r in float32, which may be overwritten.
    residual : callable
        ``residual(x)`` is the right-hand side minus ``A x``.
    """

    arrays: Arrays
    bounds: Any
    solve: Callable[[Any], Any]
    residual: Callable[[Any], Any]


def refined_general(arrays: Arrays, matrix: Any, right: Any, swapped: bool) -> Any:
    """The solution by LU factors, of ``matrix.T`` if `swapped`; None where it is not within the bound."""
    xp, trans = arrays.xp, Trans.TRANS if swapped else Trans.NO
    with np.errstate(all="ignore"), set_math_mode(TENSOR):
        single = xp.astype(matrix, xp.float32)
        sums = xp.sum(xp.abs(single), axis=-2 if swapped else -1, dtype=xp.float64)
        bounds = _bounds(arrays, sums)
        factors, pivots, _ = lapack.getrf(single, True)

        def solve(r: Any) -> Any:
            return lapack.getrs(factors, pivots, r, trans, True)[0]

        def residual(x: Any) -> Any:
            return _added(arrays, right, partial(gemm, matrix, x, alpha=-1, trans_a=trans))

        return _refined(_Factored(arrays, bounds, solve, residual), right)


def refined_definite(arrays: Arrays, matrix: Any, right: Any, low: bool) -> Any:
    """The solution by Cholesky factors, from one triangle; None where it is not within the bound, or where
    float32 takes a matrix for an indefinite one.
    """
    xp = arrays.xp
    with np.errstate(all="ignore"), set_math_mode(TENSOR):
        single = xp.astype(matrix, xp.float32)
        sizes = xp.abs(xp.tril(single) if low else xp.triu(single))
        rows, columns = (xp.sum(sizes, axis=axis, dtype=xp.float64) for axis in (-1, -2))
        bounds = _bounds(arrays, rows + columns - xp.linalg.diagonal(sizes))
        factor, info = lapack.potrf(single, low, False, True)
        if host_values(info).any():
            return None

        def solve(r: Any) -> Any:
            return lapack.potrs(factor, r, low, True)[0]

        def residual(x: Any) -> Any:
            if x.shape[-1] > 1:
                return _added(arrays, right, partial(symm, matrix, x, alpha=-1, lower=low))
            product = partial(symv, matrix, x[..., 0], alpha=-1, lower=low)
            return _added(arrays, right[..., 0], product)[..., None]

        return _refined(_Factored(arrays, bounds, solve, residual), right)


def _added(arrays: Arrays, right: Any, product: Callable[..., Any]) -> Any:
    """`right` plus a product, in one step where the library's new arrays can be written."""
    if not arrays.library.host and not arrays.library.has_writable_copies(right):
        return right + product()
    return product(beta=1, out=arrays.xp.asarray(right, copy=True))


def _bounds(arrays: Arrays, sums: Any) -> Any:
    """sqrt(n) eps times the norms of matrices whose rows have these sums of moduli; NaN of overflows."""
    xp = arrays.xp
    norms = xp.max(sums, axis=-1)
    norms = xp.where(xp.isfinite(norms), norms, xp.full_like(norms, float("nan")))
    return (norms * (sqrt(sums.shape[-1]) * EPS))[..., None, None]


def _refined(system: _Factored, right: Any) -> Any:
    """x within the bound, or None. Residuals are scaled by their sizes, so that float32 holds them."""
    xp, before = system.arrays.xp, float("inf")
    tiny = xp.full_like(system.bounds, TINY)  # instead of 0, which would give 1/0
    solution, residual, sizes = xp.zeros_like(right), right, _sizes(xp, right)
    for step in range(MAX_STEPS + 1):
        sizes = xp.maximum(sizes, tiny)
        correction = system.solve(xp.astype(residual / sizes, xp.float32))
        solution = solution + xp.astype(correction, xp.float64) * sizes
        residual = system.residual(solution)
        sizes = _sizes(xp, residual)
        allowed = xp.maximum(_sizes(xp, solution) * system.bounds, tiny)
        excess = float(host_values(xp.max(sizes / allowed)))  # waits for the device
        if excess <= 1:
            _log.debug("solve: refined by %d corrections", step)
            return solution
        if not excess < before:  # NaN too
            break
        before = excess
    _log.debug("solve: %d corrections leave %.3g times the bound, factors in float64 follow", step, excess)
    return None


def _sizes(xp: Any, columns: Any) -> Any:
    """The largest modulus of each column, NaN where there is one."""
    return xp.max(xp.abs(columns), axis=-2, keepdims=True)
