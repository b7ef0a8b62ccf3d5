"""A := A + alpha x y^T + alpha y x^T (SYR2), or A + alpha x y^H + conj(alpha) y x^H (HER2): a triangle."""

from __future__ import annotations

from typing import Any

from ...kernels.common.options import RANK_2
from ...operands import Operand
from ...types import Uplo
from ..copies import emit_copy_to_workspace
from ..launch_list import ALPHA, CONJ_ALPHA, LaunchList, cached_launch_list
from .ger import emit_triangle

__all__ = ["launch_list"]


def launch_list(
    alpha: Any,
    x: Operand,
    y: Operand,
    a: Operand,
    *,
    uplo: Uplo,
    hermitian: bool = False,
    is_new_output: bool = False,
) -> LaunchList | None:
    """Return the launch list for operands of these layouts; see `syr.launch_list`."""
    if a.is_empty or (alpha == 0 and not is_new_output):
        return None
    return cached_launch_list(_emit, (x, y, a), (alpha == 0, uplo, hermitian, is_new_output))


def _emit(
    launches: LaunchList,
    x: Operand,
    y: Operand,
    a: Operand,
    nothing: bool,
    uplo: Uplo,
    hermitian: bool,
    is_new: bool,
) -> None:
    factors = ALPHA, CONJ_ALPHA if hermitian else ALPHA
    with launches.temporary():
        if x.conj != y.conj:  # both are along rows, and along columns
            y = emit_copy_to_workspace(launches, y)
            x = emit_copy_to_workspace(launches, x)
        other = y.conjugate() if hermitian else y
        emit_triangle(launches, x, other, a, nothing, uplo, hermitian, is_new, RANK_2, factors)
