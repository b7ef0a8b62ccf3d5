"""Systems of float64 solved by factors in float32, and refined to float64's accuracy.

The factors, most of the work, take products on tensor cores. Residuals are computed in float64, and the same
factors solve for corrections, until the test of LAPACK's dsgesv and dsposv holds:

    max |b - A x|  <=  sqrt(n) eps ||A||inf max |x|     for each right-hand side, eps = 2^-53

What is not solved after `MAX_STEPS` corrections, or no longer comes closer, is left to factors in float64.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..dispatch.math_mode import set_math_mode
from ..types import TENSOR, Trans
from . import lapack
from .level2 import symv
from .level3 import gemm
from .linalg_arrays import Arrays
from .linalg_checks import host_values
from .symmetric import symm

__all__ = ["MAX_STEPS", "refined_definite", "refined_general"]

#: Corrections at most, LAPACK's ITERMAX.
MAX_STEPS = 30
EPS = 2.0**-53

_log = logging.getLogger("pyblasgpu")


class _Factored(NamedTuple):
    """A stack of matrices A, and its factors in float32.

    Attributes
    ----------
    arrays : Arrays
    norms : array, shape (..., 1)
        ``||A||inf``.
    solve : callable
        ``solve(r)`` is about ``A^-1 r`` for r in float32, which may be overwritten.
    subtract : callable
        ``subtract(x, r)`` makes r that minus ``A x``.
    """

    arrays: Arrays
    norms: Any
    solve: Callable[[Any], Any]
    subtract: Callable[[Any, Any], None]


def refined_general(arrays: Arrays, matrix: Any, right: Any, swapped: bool) -> Any:
    """The solution by LU factors, of ``matrix.T`` if `swapped`; None where it is not within the bound."""
    xp, trans = arrays.xp, Trans.TRANS if swapped else Trans.NO
    with np.errstate(all="ignore"), set_math_mode(TENSOR):
        factors, pivots, _ = lapack.getrf(_single(arrays, matrix), True)

        def solve(r: Any) -> Any:
            return lapack.getrs(factors, pivots, r, trans, True)[0]

        def subtract(x: Any, r: Any) -> None:
            gemm(matrix, x, alpha=-1, beta=1, out=r, trans_a=trans)

        norms = xp.max(xp.sum(xp.abs(matrix), axis=-2 if swapped else -1), axis=-1)
        return _refined(_Factored(arrays, norms[..., None], solve, subtract), right)


def refined_definite(arrays: Arrays, matrix: Any, right: Any, low: bool) -> Any:
    """The solution by Cholesky factors, from one triangle; None where it is not within the bound, or where
    float32 takes a matrix for an indefinite one.
    """
    xp = arrays.xp
    with np.errstate(all="ignore"), set_math_mode(TENSOR):
        factor, info = lapack.potrf(_single(arrays, matrix), low, False, True)
        if host_values(arrays, info).any():
            return None

        def solve(r: Any) -> Any:
            return lapack.potrs(factor, r, low, True)[0]

        def subtract(x: Any, r: Any) -> None:
            if x.shape[-1] == 1:
                symv(matrix, x[..., 0], alpha=-1, beta=1, lower=low, out=r[..., 0])
            else:
                symm(matrix, x, alpha=-1, beta=1, lower=low, out=r)

        sizes = xp.abs(xp.tril(matrix) if low else xp.triu(matrix))
        sums = xp.sum(sizes, axis=-1) + xp.sum(sizes, axis=-2) - xp.linalg.diagonal(sizes)
        return _refined(_Factored(arrays, xp.max(sums, axis=-1)[..., None], solve, subtract), right)


def _single(arrays: Arrays, array: Any) -> Any:
    return arrays.xp.astype(array, arrays.xp.float32)


def _refined(system: _Factored, right: Any) -> Any:
    """x within the bound, or None. Residuals are scaled by their sizes, so that float32 holds them."""
    arrays, xp = system.arrays, system.arrays.xp
    solution, residual, before = xp.zeros_like(right), right, float("inf")
    for step in range(MAX_STEPS + 1):
        sizes = xp.max(xp.abs(residual), axis=-2, keepdims=True)
        sizes = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
        correction = system.solve(_single(arrays, residual / sizes))
        solution = solution + xp.astype(correction, xp.float64) * sizes
        residual = xp.asarray(right, copy=True)
        system.subtract(solution, residual)
        excess = _excess(system, solution, residual)
        if excess <= 1:
            _log.debug("solve: refined by %d corrections", step)
            return solution
        if not excess < before:  # NaN too
            break
        before = excess
    _log.debug("solve: %d corrections leave %.3g times the bound, factors in float64 follow", step, excess)
    return None


def _excess(system: _Factored, solution: Any, residual: Any) -> float:
    """The largest residual in units of its bound; NaN where there is one. Device arrays are waited for."""
    xp, n = system.arrays.xp, solution.shape[-2]
    left, reached = (xp.max(xp.abs(x), axis=-2) for x in (residual, solution))
    excess = left / (reached * (system.norms * (sqrt(n) * EPS)))
    worst = xp.max(xp.where(left == 0, xp.zeros_like(left), excess))
    return float(host_values(system.arrays, worst))
