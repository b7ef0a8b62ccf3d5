"""Systems of float64 solved by factors in float32, and refined to float64's accuracy.

The factors, most of the work, take products on tensor cores. Residuals are computed in float64, and the same
factors solve for corrections, until the test of LAPACK's dsgesv and dsposv holds:

    max |b - A x|  <=  sqrt(n) eps ||A||inf max |x|     for each right-hand side, eps = 2^-53

Where a correction reduces the residual by less than `SLOW`, since the condition is large, combinations of
several follow, by GMRES. Systems that these do not solve get factors in float64.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from math import ceil, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ...dispatch.overrides import set_math_mode
from ...frontend.engine_options import use_devices
from ...types import TENSOR, Trans
from ..keyword.level2 import symv
from ..keyword.level3 import gemm
from ..keyword.symmetric import symm
from ..lapack import names as lapack
from .arrays import Arrays
from .checks import host_values
from .krylov import krylov_correction

__all__ = ["MAX_STEPS", "refined_definite", "refined_general"]

#: Corrections at most, LAPACK's ITERMAX.
MAX_STEPS = 30
#: The part of a residual that a correction may leave, else GMRES follows.
SLOW = 0.1
#: Cycles of GMRES, steps of each, and the part that a cycle may leave, else factors in float64 follow.
CYCLES, KRYLOV_STEPS, SLOW_CYCLE = 3, 8, 1e-3
EPS, TINY = 2.0**-53, 2.0**-1022

_log = logging.getLogger("pyblasgpu")


class _Factored(NamedTuple):
    """A stack of matrices A, and its factors in float32.

    Attributes
    ----------
    arrays : Arrays
    bounds : array, shape (..., 1, 1)
        ``sqrt(n) eps ||A||inf``.
    factors : array
    solve : callable
        ``solve(factors, r, overwrite)`` is about ``A^-1 r``, in the precision of both.
    multiply : callable
        ``multiply(x, **options)`` is ``A x``, with options of products.
    """

    arrays: Arrays
    bounds: Any
    factors: Any
    solve: Callable[[Any, Any, bool], Any]
    multiply: Callable[..., Any]

    def correction(self, residual: Any) -> Any:
        """About ``A^-1 residual``; columns are scaled by their sizes, so that float32 holds them."""
        xp = self.arrays.xp
        sizes = xp.maximum(_sizes(xp, residual), xp.full_like(self.bounds, TINY))  # else 0 would give 1/0
        return (
            xp.astype(self.solve(self.factors, xp.astype(residual / sizes, xp.float32), True), xp.float64)
            * sizes
        )


def refined_general(arrays: Arrays, matrix: Any, right: Any, swapped: bool) -> Any:
    """The solution by LU factors, of ``matrix.T`` if `swapped`; None where it is not within the bound."""
    xp, trans = arrays.xp, Trans.TRANS if swapped else Trans.NO
    with np.errstate(all="ignore"), set_math_mode(TENSOR):
        single = xp.astype(matrix, xp.float32)
        with use_devices():
            bounds = _bounds(arrays, gemm(xp.abs(single), _ones(xp, right), trans_a=trans))
        # on tensor cores the card that has a matrix factors it sooner than several do
        with nullcontext() if arrays.library.host else use_devices():
            factors, pivots, _ = lapack.getrf(single, True)

        def solve(factors: Any, r: Any, overwrite: bool) -> Any:
            return lapack.getrs(factors, pivots, r, trans, overwrite)[0]

        multiply = partial(gemm, matrix, trans_a=trans)
        with use_devices():  # steps of one column are no work for several
            return _refined(_Factored(arrays, bounds, factors, solve, multiply), right)


def refined_definite(arrays: Arrays, matrix: Any, right: Any, low: bool) -> Any:
    """The solution by Cholesky factors, from one triangle; None where it is not within the bound, or where
    float32 takes a matrix for an indefinite one.
    """
    xp = arrays.xp
    with np.errstate(all="ignore"), set_math_mode(TENSOR):
        single = xp.astype(matrix, xp.float32)
        bounds = _bounds(arrays, symv(xp.abs(single), _ones(xp, right)[..., 0], lower=low)[..., None])
        factor, info = lapack.potrf(single, low, False, True)
        if host_values(info).any():
            return None

        def solve(factor: Any, r: Any, overwrite: bool) -> Any:
            return lapack.potrs(factor, r, low, overwrite)[0]

        def multiply(x: Any, **options: Any) -> Any:
            if x.shape[-1] > 1:
                return symm(matrix, x, lower=low, **options)
            if "out" in options:
                options["out"] = options["out"][..., 0]
            return symv(matrix, x[..., 0], lower=low, **options)[..., None]

        with use_devices():
            return _refined(_Factored(arrays, bounds, factor, solve, multiply), right)


def _residual(system: _Factored, right: Any, x: Any) -> Any:
    """`right` minus A x, in one step where the library's new arrays can be written."""
    arrays = system.arrays
    if not arrays.library.host and not arrays.library.has_writable_copies(right):
        return right - system.multiply(x)
    return system.multiply(x, alpha=-1, beta=1, out=arrays.xp.asarray(right, copy=True))


def _ones(xp: Any, right: Any) -> Any:
    """A column of ones in float32, of each matrix."""
    return xp.astype(xp.ones_like(right[..., :1]), xp.float32)


def _bounds(arrays: Arrays, sums: Any) -> Any:
    """sqrt(n) eps times the norms of matrices whose rows have these sums of moduli; NaN of overflows.

    Sums in float32 may be off by n times its roundoff, so the norms are that much smaller.
    """
    xp, n = arrays.xp, sums.shape[-2]
    norms = xp.astype(xp.max(sums, axis=-2, keepdims=True), xp.float64)
    norms = xp.where(xp.isfinite(norms), norms, xp.full_like(norms, float("nan")))
    return norms * (sqrt(n) * EPS * (1 - n * 2.0**-24))


def _refined(system: _Factored, right: Any) -> Any:
    """x within the bound, or None."""
    xp, before, ratio = system.arrays.xp, float("inf"), 1.0
    solution, residual = xp.zeros_like(right), right
    for step in range(MAX_STEPS + 1):
        made = solution + system.correction(residual)
        left = _residual(system, right, made)
        excess = _excess(system, made, left)
        if excess <= 1:
            _log.debug("solve: refined by %d corrections", step)
            return made
        if not excess < before:  # NaN too
            ratio = 1.0
            break
        ratio, before = excess / before, excess
        solution, residual = made, left
        if ratio > SLOW:
            break
    if before < float("inf"):
        return _by_krylov(system, right, solution, residual, (before, ratio))
    _log.debug("solve: %d corrections leave NaN, factors in float64 follow", step)
    return None


def _by_krylov(
    system: _Factored, right: Any, solution: Any, residual: Any, excess_and_ratio: tuple[float, float]
) -> Any:
    """x within the bound, from a solution whose residual exceeds it, and what the last correction has left of
    the one before; or None.
    """
    xp, (before, ratio) = system.arrays.xp, excess_and_ratio
    factors = xp.astype(system.factors, xp.float64)  # by which they solve alike for all vectors
    # as many as corrections would be needed: each vector brings at least as much
    steps = KRYLOV_STEPS
    if 0 < ratio < 0.9:
        steps = min(1 + ceil(log(before) / -log(ratio)), steps)
    for cycle in range(CYCLES):
        correction = krylov_correction(
            system.arrays, residual, lambda v: system.solve(factors, v, False), system.multiply, steps
        )
        if correction is None:
            break
        solution = solution + correction
        residual = _residual(system, right, solution)
        excess = _excess(system, solution, residual)
        if excess <= 1:
            _log.debug("solve: refined by %d cycles of GMRES", cycle + 1)
            return solution
        ratio, before = excess / before, excess
        if not ratio < SLOW_CYCLE:
            break
    _log.debug("solve: GMRES leaves %.3g times the bound, factors in float64 follow", before)
    return None


def _excess(system: _Factored, solution: Any, residual: Any) -> float:
    """The largest residual in units of what it may be; waits for the device."""
    xp = system.arrays.xp
    allowed = _sizes(xp, solution) * system.bounds
    allowed = xp.maximum(allowed, xp.full_like(allowed, TINY))
    return float(host_values(xp.max(_sizes(xp, residual) / allowed)))


def _sizes(xp: Any, columns: Any) -> Any:
    """The largest modulus of each column, NaN where there is one."""
    return xp.max(xp.abs(columns), axis=-2, keepdims=True)
