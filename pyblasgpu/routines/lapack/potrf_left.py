"""The Cholesky factor of one large matrix whose products are made on tensor cores: from the left.

A block of columns takes one product with all columns before it:

    [L11            ]      [A33]     [A33]   [L31 L32]
    [L21 L22        ]      [A43]  -= [A43] - [L41 L42] [L31 L32]^H, then factor [A33; A43]
    [L31 L32 A33    ]
    [L41 L42 A43 A44]

So products have many terms, and C is read and written once. In double precision each finished block is packed
once, and kept (`potrf_residues`). Blocks follow one another: one that looks ahead would take the block before
it by FMAs, which costs more than it hides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...dispatch.overrides import method_of
from ...gpu.device import current
from ...operands import Operand
from ...types import TENSOR, Region, Uplo
from ..launch_list import CALL, LaunchList
from ..level3.gemm import contiguous, emit_gemm

__all__ = ["LeftLooking", "emit_columns", "plan"]

UNIT = 128  # columns of blocks, at multiples of which: stages of residues


class LeftLooking(NamedTuple):
    """Columns of a block, and the Configs of products by residues, if that is how they are made."""

    columns: int
    residues: Any


def plan(launches: LaunchList, a: Operand) -> LeftLooking | None:
    """Return how A is factored from the left; None where that is not for it, or residues have no room."""
    if method_of(None) != TENSOR:
        return None
    policy, n, dtype = launches.policy, a.rows, a.dtype
    least = policy.tensor_potrf_min_order.get(dtype.letter)
    if least is None or n < least or a.batch > 1 or launches.lane != CALL:
        return None
    columns = int(policy.tensor_potrf_columns)
    if columns % UNIT or n <= 2 * columns or not (contiguous(a) or contiguous(a.T)):
        return None
    if dtype.real_size == 4:
        return LeftLooking(columns, None)
    from ...dispatch.tensor import kept_residues  # with kernels that others do without

    residues = kept_residues(dtype, n, columns, current(launches.device))
    return None if residues is None else LeftLooking(columns, residues)


def emit_columns(
    launches: LaunchList, a: Operand, how: LeftLooking, factor: Callable[[int, int], None]
) -> None:
    """Emit the factor of a lower triangle; ``factor(first, columns)`` emits that of a block of columns, which
    has taken all before it, with the rows below.
    """
    n = a.rows

    def multiply(first: int, columns: int, k: int) -> None:
        """Emit what the first k columns do to a block, with the rows below."""
        left, right = a.block(first, 0, n - first, k), a.block(first, 0, columns, k).T.conjugate()
        target = a.block(first, first, n - first, columns)
        emit_gemm(launches, -1.0, left, right, 1.0, target, Region.of(Uplo.LOWER, a.dtype.is_complex))

    if how.residues is None:
        _emit_blocks(n, how.columns, factor, lambda first, columns: None, multiply)
        return
    from .potrf_residues import kept_steps

    launches.choices.append(how.residues.choice)
    with launches.temporary():
        steps = kept_steps(launches, a, how.columns, how.residues)
        _emit_blocks(n, how.columns, factor, *steps)


def _emit_blocks(
    n: int,
    columns: int,
    factor: Callable[[int, int], None],
    keep: Callable[[int, int], None],
    multiply: Callable[[int, int, int], None],
) -> None:
    """Emit the steps of all blocks. ``keep(first, columns)`` emits what is done with a finished block before
    ``multiply(first, columns, k)`` takes it.
    """
    for first in range(0, n, columns):
        count = min(columns, n - first)
        if first:
            keep(first - columns, columns)
            multiply(first, count, first)
        factor(first, count)
