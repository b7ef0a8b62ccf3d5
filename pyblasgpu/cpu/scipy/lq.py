"""LQ factors of NumPy arrays and products with their Q, by the QR routines of the adjoint, in place.

Leading dimensions are as in `qr`.
"""

from __future__ import annotations

import numpy as np

from ...types import Side, Trans
from . import qr

__all__ = ["gelqf", "orglq", "ormlq"]


def gelqf(tau: np.ndarray, a: np.ndarray) -> None:
    """L and the conjugated vectors of the reflectors in `a`, and their factors."""
    adjoint = _adjoint(a)
    qr.geqrf(tau, adjoint)
    a[...] = _adjoint(adjoint)


def orglq(tau: np.ndarray, a: np.ndarray) -> None:
    """The first rows of Q in `a`, which holds the conjugated vectors of its reflectors."""
    adjoint = _adjoint(a)
    qr.orgqr(tau, adjoint)
    a[...] = _adjoint(adjoint)


def ormlq(tau: np.ndarray, a: np.ndarray, c: np.ndarray, side: Side, trans: Trans) -> None:
    """The product of Q, or of its conjugate transpose, and `c`, from one side, in `c`."""
    qr.ormqr(tau, _adjoint(a), c, side, Trans.CONJ if trans is Trans.NO else Trans.NO)


def _adjoint(a: np.ndarray) -> np.ndarray:
    """The conjugate transpose, in memory of its own."""
    return np.conj(a.swapaxes(-1, -2))
