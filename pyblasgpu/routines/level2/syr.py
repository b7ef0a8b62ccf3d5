"""A := A + alpha x x^T (SYR), or A + alpha x x^H with a real alpha (HER), of one triangle."""

from __future__ import annotations

from typing import Any

from ...operands import Operand
from ...types import Uplo
from ..launch_list import ALPHA, LaunchList, cached_launch_list
from .ger import emit_triangle

__all__ = ["launch_list"]


def launch_list(
    alpha: Any, x: Operand, a: Operand, *, uplo: Uplo, hermitian: bool = False, is_new_output: bool = False
) -> LaunchList | None:
    """Return the launch list for operands of these layouts; None for no work.

    Parameters
    ----------
    alpha : number
        With 0 x is not read.
    x, a : Operand
        n by 1 and n by n, of one dtype, batch and device, apart from each other.
    uplo : Uplo
        The triangle of A.
    hermitian : bool
        Whether this is HER.
    is_new_output : bool
        A is taken to be 0, and its other triangle becomes it.
    """
    if a.is_empty or (alpha == 0 and not is_new_output):
        return None
    return cached_launch_list(_emit, (x, a), (alpha == 0, uplo, hermitian, is_new_output))


def _emit(
    launches: LaunchList, x: Operand, a: Operand, nothing: bool, uplo: Uplo, hermitian: bool, is_new: bool
) -> None:
    other = x.conjugate() if hermitian else x
    emit_triangle(launches, x, other, a, nothing, uplo, hermitian, is_new, 0, (ALPHA, 0.0))
