"""L Q = A in place, rows of Q, and products with it: LAPACK's gelqf, orglq and ormlq, by those of QR.

LAPACK has the vectors of the reflectors of A^H in the rows of A, conjugated: those of A^T. So views of A
serve, and only the factors tau are conjugated. Q is the transpose of the Q of A^T.
"""

from __future__ import annotations

from ...operands import Operand
from ...types import Side, Trans
from ..copies import emit_copy
from ..launch_list import LaunchList, cached_launch_list
from . import geqrf, orgqr, ormqr
from .block_reflector import emit_conjugate

__all__ = ["factors_launch_list", "product_launch_list", "rows_launch_list"]


def factors_launch_list(tau: Operand, a: Operand) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    tau : Operand
        min(m, n) by 1; becomes the factors of the reflectors.
    a : Operand
        m by n; L replaces its lower triangle or trapezoid, the conjugated vectors the rest of its rows.
    """
    return None if a.is_empty else cached_launch_list(_emit_factors, (tau, a), ())


def _emit_factors(launches: LaunchList, tau: Operand, a: Operand) -> None:
    """Emit L Q = A."""
    geqrf.emit(launches, tau, a.T)
    if tau.dtype.is_complex:
        emit_copy(launches, 1.0, tau.conjugate(), tau)


def rows_launch_list(tau: Operand, a: Operand) -> LaunchList | None:
    """Return the launch list of the first rows of Q, run with alpha 1; None for no work.

    Parameters
    ----------
    tau : Operand
        k by 1, the factors of the reflectors.
    a : Operand
        m by n, n >= m >= k; the conjugated vectors in its first k rows. Rows of Q replace it.
    """
    return None if a.is_empty else cached_launch_list(_emit_rows, (tau, a), ())


def _emit_rows(launches: LaunchList, tau: Operand, a: Operand) -> None:
    with launches.temporary():
        orgqr.emit(launches, emit_conjugate(launches, tau), a.T)


def product_launch_list(
    tau: Operand, a: Operand, c: Operand, *, side: Side, trans: Trans
) -> LaunchList | None:
    """Return the launch list of C := op(Q) C or C op(Q); see `ormqr.launch_list`."""
    return ormqr.launch_list(tau, a, c, side=side, trans=trans, by_rows=True)
