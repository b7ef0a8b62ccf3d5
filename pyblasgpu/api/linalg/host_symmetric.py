"""Systems and inverses of symmetric and Hermitian host matrices by L D L^H factors, on the processor.

A device takes LU factors of the whole matrix: it has those sooner.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...cpu.scipy import ldl as cpu_ldl
from ...cpu.scipy.cholesky import lapack
from ...frontend.calls.attempts import UNBLOCKED
from ...frontend.calls.direct import order_on_processor
from ...frontend.calls.factor_call import plain_integers
from ...frontend.calls.factor_replay import ONE
from ...types import Uplo
from ..lapack.call import AfterOverwriting
from .arrays import Arrays
from .host import InverseNorms, copied

__all__ = ["invert_symmetric", "is_symmetric", "solve_symmetric"]


def is_symmetric(arrays: Arrays, structure: str, *matrices: Any) -> bool:
    """Whether these are symmetric or Hermitian matrices, and right-hand sides, for the processor."""
    if structure not in ("symmetric", "hermitian") or not arrays.library.host:
        return False
    largest: int = max([extent for matrix in matrices for extent in matrix.shape[-2:]])
    return largest < order_on_processor(arrays.dtype.letter)


def solve_symmetric(
    a: np.ndarray,
    b: np.ndarray,
    uplo: Uplo,
    hermitian: bool,
    out: Any,
    inverse_norms: InverseNorms,
    in_place: bool,
) -> tuple[Any, Any]:
    """x of a x = b, and info; `out` may be `b`, and with `in_place` the factors take the place of `a`."""
    stem = "he" if hermitian else "sy"
    if out is None and not in_place and a.ndim == b.ndim == 2 and 0 < max(*a.shape, *b.shape) < UNBLOCKED:
        small, piv, number = lapack(f"{stem}trf", a.dtype)(a, lower=uplo is Uplo.LOWER)
        inverse_norms.estimate(small, f"{stem}con", piv, lower=uplo is Uplo.LOWER)
        solution, _ = lapack(f"{stem}trs", a.dtype)(small, piv, b, lower=uplo is Uplo.LOWER)
        return np.ascontiguousarray(solution), number
    x, factors = np.array(b, order="C") if out is None else out, a if in_place else copied(a, b)
    pivots, info = _integers(factors)
    with AfterOverwriting(in_place):
        cpu_ldl.sytrf(pivots, info, factors, uplo, hermitian)
        inverse_norms.estimate(factors, f"{stem}con", pivots, lower=uplo is Uplo.LOWER)
        cpu_ldl.sytrs(pivots, factors, x, uplo, hermitian)
    return x, plain_integers(info, ONE)


def invert_symmetric(a: np.ndarray, uplo: Uplo, hermitian: bool, out: Any) -> tuple[Any, Any]:
    """A triangle of the inverse, and info; `out` may be `a`."""
    if out is None and a.ndim == 2 and 0 < len(a) < UNBLOCKED:
        stem, lower = "he" if hermitian else "sy", uplo is Uplo.LOWER
        small, piv, number = lapack(f"{stem}trf", a.dtype)(a, lower=lower)
        if not number:
            small, _ = lapack(f"{stem}tri", a.dtype)(small, piv, lower=lower, overwrite_a=1)
        return np.ascontiguousarray(small), number
    inverse = np.array(a, order="C") if out is None else out
    pivots, info = _integers(inverse)
    with AfterOverwriting(out is not None):
        cpu_ldl.sytrf(pivots, info, inverse, uplo, hermitian)
        cpu_ldl.sytri(np.zeros_like(info), pivots, inverse, uplo, hermitian)
    return inverse, plain_integers(info, ONE)


def _integers(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Memory for pivots and info."""
    *batch, n, _ = factors.shape
    return np.zeros((*batch, n, 1), np.int32), np.zeros((*batch, 1, 1), np.int32)
