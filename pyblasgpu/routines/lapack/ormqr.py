"""C := op(Q) C or C op(Q) with Q = H1 H2 ... Hk of a QR factorization, in place: LAPACK's ormqr and unmqr.

Blocks of reflectors are applied one after the other. From the right it is the transpose: C Q is (Q^T C^T)^T.
With the Q of an LQ factorization it is LAPACK's ormlq: the transpose of the Q in the columns of A^T (`lq`).
"""

from __future__ import annotations

from ...operands import Operand
from ...types import Side, Trans
from ..launch_list import LaunchList, cached_launch_list
from .block_reflector import BlockReflector, emit_conjugate, emit_product
from .reflectors_in_turn import emit_in_turn

__all__ = ["emit", "launch_list"]


def launch_list(
    tau: Operand, a: Operand, c: Operand, *, side: Side, trans: Trans, by_rows: bool = False
) -> LaunchList | None:
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
    by_rows : bool, default False
        Whether Q is that of an LQ factorization: A is k by q, the vectors right of its diagonal.
    """
    if c.is_empty or tau.is_empty:
        return None
    return cached_launch_list(emit, (tau, a, c), (side, trans, by_rows))


def emit(
    launches: LaunchList,
    tau: Operand,
    a: Operand,
    c: Operand,
    side: Side,
    trans: Trans,
    by_rows: bool = False,
) -> None:
    """Emit the whole call."""
    if by_rows:
        with launches.temporary():
            _emit(launches, emit_conjugate(launches, tau), a.T, c, side, trans is Trans.NO, True)
    else:
        _emit(launches, tau, a, c, side, trans is not Trans.NO, False)


def _emit(
    launches: LaunchList, tau: Operand, a: Operand, c: Operand, side: Side, is_adjoint: bool, conj: bool
) -> None:
    """Emit the product with the Q of these columns, or its adjoint; or with `conj` the conjugate of that."""
    from_right = side is Side.RIGHT
    target = c.T if from_right else c
    adjoint = is_adjoint != from_right  # of what is applied to the target, whose conjugation is apart

    def apply(first: int, block: BlockReflector) -> None:
        rest = target.block(first, 0, a.rows - first, target.cols)
        emit_product(launches, block, rest, adjoint, conj=conj != from_right)

    emit_in_turn(launches, (tau, a), target.cols, apply, adjoint)
