"""Solutions by factors that may be none: where info is not 0, B stays as it is, as in LAPACK's drivers."""

from __future__ import annotations

from typing import Any

from ...operands import Operand
from ...types import Trans, Uplo
from ..launch_list import LaunchList, cached_launch_list
from . import getrs, potrs, sytrs
from .factor_steps import emit_unless_failed

__all__ = ["getrs_launch_list", "hetrs_launch_list", "potrs_launch_list", "sytrs_launch_list"]


def getrs_launch_list(
    info: Operand, piv: Operand, lu: Operand, b: Operand, *, trans: Trans = Trans.NO
) -> LaunchList | None:
    """Return `getrs`'s launch list for matrices whose info is 0 (an int32 in an element's bytes)."""
    return None if b.is_empty else cached_launch_list(_emit_getrs, (info, piv, lu, b), (trans,))


def potrs_launch_list(info: Operand, c: Operand, b: Operand, *, uplo: Uplo) -> LaunchList | None:
    """Return `potrs`'s launch list for matrices whose info is 0 (an int32 in an element's bytes)."""
    return None if b.is_empty else cached_launch_list(_emit_potrs, (info, c, b), (uplo,))


def sytrs_launch_list(
    info: Operand,
    piv: Operand,
    a: Operand,
    b: Operand,
    *,
    uplo: Uplo,
    hermitian: bool = False,
    rook: bool = False,
) -> LaunchList | None:
    """Return `sytrs`'s launch list for matrices whose info is 0 (an int32 in an element's bytes)."""
    if b.is_empty:
        return None
    sytrs.check_order(a)
    return cached_launch_list(_emit_sytrs, (info, piv, a, b), (uplo, hermitian, rook))


hetrs_launch_list = sytrs_launch_list


def _emit_sytrs(
    launches: LaunchList, info: Operand, piv: Operand, a: Operand, b: Operand, *flags: Any
) -> None:
    emit_unless_failed(launches, info, b, lambda: sytrs.emit(launches, piv, a, b, *flags))


def _emit_getrs(
    launches: LaunchList, info: Operand, piv: Operand, lu: Operand, b: Operand, trans: Trans
) -> None:
    getrs.emit(launches, piv, lu, b, trans, info)


def _emit_potrs(launches: LaunchList, info: Operand, c: Operand, b: Operand, uplo: Uplo) -> None:
    potrs.emit(launches, c, b, uplo, info)
