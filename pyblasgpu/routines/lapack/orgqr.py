"""The first columns of Q = H1 H2 ... Hk, in place of the reflectors' vectors: LAPACK's orgqr and ungqr.

Blocks of reflectors are applied to columns of the identity, the last one first.
"""

from __future__ import annotations

from ...operands import Operand
from ..launch_list import LaunchList, cached_launch_list
from .block_reflector import BlockReflector, blocks_of, emit_identity, emit_in_turn, emit_product

__all__ = ["emit", "launch_list"]


def launch_list(tau: Operand, a: Operand) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    tau : Operand
        k by 1, the factors of the reflectors.
    a : Operand
        m by n, m >= n >= k; the vectors in its first k columns, below the diagonal. Q replaces it.
    """
    return None if a.is_empty else cached_launch_list(emit, (tau, a), ())


def emit(launches: LaunchList, tau: Operand, a: Operand) -> None:
    """Emit the whole call."""
    m, n, count = a.rows, a.cols, tau.rows
    if n > count:
        emit_identity(launches, a.block(0, count, m, n - count), count)

    def apply(first: int, block: BlockReflector) -> None:
        rows, columns = m - first, block.t.rows
        emit_identity(launches, a.block(0, first, m, columns), first)
        emit_product(launches, block, a.block(first, first, rows, n - first), adjoint=False)

    emit_in_turn(launches, (tau, a), blocks_of(launches, count)[::-1], apply)
