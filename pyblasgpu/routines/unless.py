"""Solutions by factors that may be none: where info is not 0, B stays as it is, as in LAPACK's drivers.

Nothing is read by the host. B is kept in the workspace meanwhile.
"""

from __future__ import annotations

from ..kernels.factor import restore
from ..kernels.registry import FIXED
from ..operands import Operand
from ..types import Trans, Uplo
from . import getrs, laswp, potrs
from .copies import emit_copy_to_workspace
from .factor_steps import real_dtype
from .launch_list import LaunchList, cached_launch_list

__all__ = ["getrs_launch_list", "potrs_launch_list"]


def getrs_launch_list(
    info: Operand, piv: Operand, lu: Operand, b: Operand, *, trans: Trans = Trans.NO
) -> LaunchList | None:
    """What `getrs.launch_list` runs, for matrices whose info is 0 (an int32 in the bytes of an element)."""
    return None if b.is_empty else cached_launch_list(_emit_getrs, (info, piv, lu, b), (trans,))


def potrs_launch_list(info: Operand, c: Operand, b: Operand, *, uplo: Uplo) -> LaunchList | None:
    """The same of `potrs.launch_list`."""
    return None if b.is_empty else cached_launch_list(_emit_potrs, (info, c, b), (uplo,))


def _emit_getrs(
    launches: LaunchList, info: Operand, piv: Operand, lu: Operand, b: Operand, trans: Trans
) -> None:
    before = emit_copy_to_workspace(launches, b)
    getrs.emit(launches, piv, lu, b, trans)
    _emit_restore(launches, info, before, b)


def _emit_potrs(launches: LaunchList, info: Operand, c: Operand, b: Operand, uplo: Uplo) -> None:
    before = emit_copy_to_workspace(launches, b)
    potrs.emit(launches, c, b, uplo)
    _emit_restore(launches, info, before, b)


def _emit_restore(launches: LaunchList, info: Operand, before: Operand, b: Operand) -> None:
    config = FIXED[restore.STEM].fixed_config(real_dtype(b.dtype).letter)

    def integers(info: Operand, before: Operand, b: Operand) -> tuple[int, ...]:
        strides = before.row_stride, before.col_stride, b.row_stride, b.col_stride
        batch = laswp.words(info)[1], before.batch_stride, b.batch_stride
        return b.rows, b.cols, b.dtype.reals_per_element, *strides, *batch

    launches.emit(restore.source(config), config.grid(b.rows, b.cols), (info, before, b), integers, ())
