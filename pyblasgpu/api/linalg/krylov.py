"""Corrections of solutions by GMRES, with factors of low precision as right preconditioner.

The factors return vectors z_j for a basis v_j of the Krylov space. The correction is their combination with
the least residual (Saad, *A flexible inner-outer preconditioned GMRES algorithm*, 1993). Directions in which
the factors fail cost a step each, if they solve alike for all vectors: in float64 too. See Carson and Higham,
*Accelerating the solution of linear systems by iterative refinement in three precisions*, 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Arrays
from .checks import host_values

__all__ = ["krylov_correction"]

TINY = 2.0**-1022


def krylov_correction(
    arrays: Arrays,
    residual: Any,
    solve: Callable[[Any], Any],
    multiply: Callable[[Any], Any],
    steps: int,
) -> Any | None:
    """Return about ``A^-1 residual``, column by column; None where there is a NaN.

    Parameters
    ----------
    arrays : Arrays
    residual : array, shape (..., n, columns)
    solve : callable
        ``solve(v)`` is roughly ``A^-1 v``.
    multiply : callable
        ``multiply(z)`` is ``A z``.
    steps : int
        Vectors of the basis. The host waits once, at their end.
    """
    xp = arrays.xp
    norm = _norms(xp, residual)
    least = xp.full_like(norm, TINY)
    basis, directions, sums = [residual / xp.maximum(norm, least)], [], [norm[None]]
    for _ in range(steps):
        directions.append(solve(basis[-1]))
        product, known = multiply(directions[-1]), xp.stack(basis)
        projections = xp.zeros_like(known[..., :1, :])
        for _ in range(2):  # once leaves what is lost of orthogonality
            parts = xp.sum(known * product, axis=-2, keepdims=True)
            product = product - xp.sum(parts * known, axis=0)
            projections = projections + parts
        norm = _norms(xp, product)
        sums += [projections, norm[None]]
        basis.append(product / xp.maximum(norm, least))
    weights = _weights(host_values(xp.concat(sums)), steps)
    if weights is None:
        return None
    return xp.sum(xp.stack(directions) * arrays.from_host(weights), axis=0)


def _weights(sums: np.ndarray[Any, Any], steps: int) -> np.ndarray[Any, Any] | None:
    """Combinations of directions with the least residuals; None of NaN.

    `sums` holds the norms before, then the projections and the norm of each step.
    """
    if not np.isfinite(sums).all():
        return None
    shape = sums.shape[1:]
    flat = sums.reshape(len(sums), -1)
    hessenberg = np.zeros((flat.shape[1], steps + 1, steps))
    at = 1
    for j in range(steps):
        hessenberg[:, : j + 2, j] = flat[at : at + j + 2].T
        at += j + 2
    weights: np.ndarray[Any, Any] = np.linalg.pinv(hessenberg)[..., 0] * flat[0, :, None]
    return weights.T.reshape(steps, *shape)


def _norms(xp: Any, columns: Any) -> Any:
    """The 2-norm of each column."""
    return xp.sqrt(xp.sum(columns * columns, axis=-2, keepdims=True))
