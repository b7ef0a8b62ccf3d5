"""C := alpha T B, or alpha B T, of float32 as one product on tensor cores: where, and its launches.

T is packed with zeros beyond its diagonal, and tiles of C leave out the k that are zero. B is packed before
C is written. C may be B: then B is copied for the tiles that pairs of FP16 cannot serve.
"""

from __future__ import annotations

from typing import NamedTuple

from ...dispatch.overrides import Algorithm
from ...dispatch.tensor import TensorProblem, TensorProduct, tensor_product
from ...gpu.device import current
from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..copies import emit_copy, emit_copy_to_workspace
from ..launch_list import ALPHA, LaunchList
from .gemm_tensor import emit_guarded, emit_halves, emit_product
from .halves import Target
from .triangular import FusedOperands, fused_operands

__all__ = ["TensorTrmm", "emit", "plan"]


class TensorTrmm(NamedTuple):
    """A TRMM on tensor cores, C := alpha T B or C := alpha B T."""

    operands: FusedOperands
    how: TensorProduct


def plan(
    launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo, out: Operand | None = None
) -> TensorTrmm | None:
    """Return the plan of the product; None where it does not serve, as for other dtypes."""
    operands = fused_operands(t, b, side, uplo, out) if launches.dtype.letter == "s" else None
    if operands is None:
        return None
    m, n, k = operands.extents
    how = tensor_product(
        TensorProblem(launches.dtype, operands.layout, (m, n, k, 1), current(launches.device))
    )
    return None if isinstance(how, Algorithm) else TensorTrmm(operands, how.for_one_launch)


def emit(launches: LaunchList, fused: TensorTrmm, diag: Diag) -> None:
    """Emit the launches. A unit diagonal is left out of T, and B is added instead, which C holds by then."""
    (t, b, c, triangle), how = fused
    launches.choices.append(how.choice)
    unit = diag is Diag.UNIT
    target = Target(ALPHA, ALPHA if unit else 0.0, c, triangle=triangle, strict=unit)
    with launches.temporary():
        if c is b:
            b = emit_copy_to_workspace(launches, c)
        elif unit:
            emit_copy(launches, 1.0, b, c)
        left_factor, right_factor = (t, b) if triangle.on_left else (b, t)
        left, right, _ = emit_halves(launches, how, left_factor, right_factor.T, target)
        emit_product(launches, how, left, right, target)
        emit_guarded(launches, how, (left_factor, left), (right_factor, right), target)
