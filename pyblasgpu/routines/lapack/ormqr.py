"""C := op(Q) C or C op(Q) with Q = H1 H2 ... Hk of a QR factorization, in place: LAPACK's ormqr and unmqr.

Blocks of reflectors are applied one after the other. From the right it is the transpose: C Q is (Q^T C^T)^T.
"""

from __future__ import annotations

from ...operands import Operand
from ...types import Side, Trans
from ..launch_list import LaunchList, cached_launch_list
from .block_reflector import blocks_of, emit_block_reflector, emit_product

__all__ = ["emit", "launch_list"]


def launch_list(tau: Operand, a: Operand, c: Operand, *, side: Side, trans: Trans) -> LaunchList | None:
    """Return the launch list for operands of these layouts, run with alpha 1; None for no work.

    Parameters
    ----------
    tau : Operand
        k by 1, the factors of the reflectors.
    a : Operand
        q by k, the vectors below its diagonal; q is the order of Q.
    c : Operand
        m by n; q is m, or n with Q on the right.
    side : Side
    trans : Trans
        The op of Q; that of real matrices may be either transpose.
    """
    return None if c.is_empty or tau.is_empty else cached_launch_list(emit, (tau, a, c), (side, trans))


def emit(launches: LaunchList, tau: Operand, a: Operand, c: Operand, side: Side, trans: Trans) -> None:
    """Emit the whole call."""
    from_right, is_adjoint = side is Side.RIGHT, trans is not Trans.NO
    target = c.T if from_right else c
    adjoint = is_adjoint != from_right  # of what is applied to the target, whose conjugation is apart
    blocks = blocks_of(launches, tau.rows)
    for first, last in blocks if adjoint else reversed(blocks):
        rows, count = a.rows - first, last - first
        with launches.temporary():
            vectors = a.block(first, first, rows, count)
            block = emit_block_reflector(launches, tau.block(first, 0, count, 1), vectors)
            rest = target.block(first, 0, rows, target.cols)
            emit_product(launches, block, rest, adjoint, conj=from_right)
