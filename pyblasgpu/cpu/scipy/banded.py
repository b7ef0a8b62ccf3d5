"""Level 2 of banded and packed NumPy matrices on SciPy's BLAS, in place.

Vectors are columns of shape (n, 1), whose elements are all meant. SciPy's functions get no offsets and no
increments: with negative ones OpenBLAS's ZSPR reads before the array. What a routine does not read may hold
anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types import Diag, Trans, Uplo
from .level3 import blas_function, quietly, scale, update

__all__ = ["gbmv", "packed_update", "symmetric", "triangular"]


@quietly
def gbmv(
    alpha: Any, a: np.ndarray, x: np.ndarray, beta: Any, y: np.ndarray, kl: int, ku: int, trans: Trans
) -> None:
    """``y := alpha op(a) x + beta y``; row ``ku + i - j`` of the band has element (i, j) of `a`."""
    m, rows = len(y if trans is Trans.NO else x), kl + ku + 1
    if alpha != 0 and rows > m:  # SciPy's wrapper refuses the shape, with rows of zeros it does not
        a = _without_rows_from(m, a[:rows], ku)
    rows, code = max(rows, m), "NTC".index(trans.value)

    def multiply(run: Callable[..., Any], start: np.ndarray) -> Any:
        vector, target = (x[:, 0], _padded(start, rows)) if code == 0 else (_padded(x[:, 0], rows), start)
        result = run(rows, a.shape[1], kl, ku, alpha, a, vector, beta=1, y=target, trans=code, overwrite_y=1)
        return result[: len(start)]

    _add("gbmv", multiply, alpha, x, beta, y)


def _without_rows_from(m: int, band: np.ndarray, ku: int) -> np.ndarray:
    """A copy of a band, zeros where elements of row `m` and the next ones would be."""
    row, column = np.ogrid[: band.shape[0], : band.shape[1]]
    return np.where(row - ku + column < m, band, band.dtype.type(0))


def _padded(vector: np.ndarray, count: int) -> np.ndarray:
    """`vector`, zeros behind it up to `count` elements."""
    if len(vector) == count:
        return vector
    return np.concatenate([vector, np.zeros(count - len(vector), vector.dtype)])


@quietly
def symmetric(
    which: str, alpha: Any, a: np.ndarray, x: np.ndarray, beta: Any, y: np.ndarray, k: int, uplo: Uplo
) -> None:
    """Compute ``y := alpha a x + beta y`` by SBMV, HBMV, SPMV or HPMV (`which`); `k` is the order of a packed
    matrix, and the diagonals above or below the main one of a band.
    """

    def multiply(run: Callable[..., Any], start: np.ndarray) -> Any:
        flags = {"lower": uplo is Uplo.LOWER, "overwrite_y": 1}
        return run(k, alpha, a, x[:, 0], beta=1, y=start, **flags)

    _add(which, multiply, alpha, x, beta, y)


def _add(
    which: str, multiply: Callable[..., Any], alpha: Any, x: np.ndarray, beta: Any, y: np.ndarray
) -> None:
    """``y := beta y``, and then ``y := multiply(SciPy's function, y)``."""
    scale(y, beta)
    if alpha != 0 and len(x) and len(y):
        run = blas_function(which, y.dtype)
        update(y[:, 0], lambda start: multiply(run, start), read=True)


@quietly
def triangular(
    which: str, a: np.ndarray, x: np.ndarray, k: int, uplo: Uplo, trans: Trans, diag: Diag
) -> None:
    """TBMV, TBSV, TPMV or TPSV (`which`) in place; `a` and `k` as for `symmetric`."""
    if len(x):
        run = blas_function(which, x.dtype)
        flags = {"lower": uplo is Uplo.LOWER, "trans": "NTC".index(trans.value), "diag": diag is Diag.UNIT}
        update(x[:, 0], lambda start: run(k, a, start, **flags, overwrite_x=1), read=True)


@quietly
def packed_update(which: str, alpha: Any, *arrays: np.ndarray, n: int, uplo: Uplo) -> None:
    """The packed matrix of order `n` in the last array updated by the vectors before it: SPR, HPR, SPR2 or
    HPR2 (`which`).
    """
    *vectors, ap = arrays
    if n and alpha != 0:
        run, flags = blas_function(which, ap.dtype), {"lower": uplo is Uplo.LOWER, "overwrite_ap": 1}
        dense = [vector[:, 0] for vector in vectors]
        update(ap[:, 0], lambda start: run(n, alpha, *dense, start, **flags), read=True)
