"""The first columns of Q = H1 H2 ... Hk, in place of the reflectors' vectors: LAPACK's orgqr and ungqr.

Blocks of reflectors are applied to columns of the identity, the last one first. The own columns of a block
need no product with V^H, and all others have zeros in its first rows.
"""

from __future__ import annotations

from ...operands import Operand
from ..launch_list import LaunchList, cached_launch_list
from .block_reflector import BlockReflector, blocks_of, emit_identity, emit_product, emit_update
from .reflectors_in_turn import Group, emit_in_turn

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
    # a second product for each block, which stacks of larger matrices do without
    is_apart = a.batch == 1 or count == n <= blocks_of(launches, count)[0][1]
    if n > count:
        emit_identity(launches, a.block(0, count, m, n - count), count)

    def prepare(group: Group) -> None:
        first, cols = group.first, group.cols
        emit_identity(launches, a.block(0, first, m, cols), first)
        if is_apart:
            own = group.stacked(a.block(first, first, m - first, cols))
            emit_update(launches, group.made, group.heads.T.conjugate(), own, adjoint=False)

    def apply(first: int, block: BlockReflector) -> None:
        own = block.t.rows if is_apart else 0
        others = a.block(first, first + own, m - first, n - first - own)
        emit_product(launches, block, others, adjoint=False, zeros=own)

    emit_in_turn(launches, (tau, a), n, apply, adjoint=False, prepare=prepare)
