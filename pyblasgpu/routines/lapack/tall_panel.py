"""Q R of columns whose rows fill the device, by one launch a matrix."""

from __future__ import annotations

from typing import Any

from ...dispatch.choose import select
from ...gpu.device import current
from ...kernels.factor.qr import geqrf_tall
from ...operands import Operand
from ..launch_list import LaunchList
from .factor_steps import emit_restore

__all__ = ["config_of", "emit", "emit_where_failed"]


def config_of(launches: LaunchList, rows: int) -> Any:
    """The Config for matrices of `rows` rows."""
    return select(geqrf_tall.STEM, launches.dtype, "", (rows,), current(launches.device)).config


def emit(launches: LaunchList, tau: Operand, a: Operand) -> None:
    """Emit the factors of matrices of at most ``config_of(launches, a.rows).MOST`` columns."""
    _emit(launches, launches.flags(), tau, a, always=True)


def emit_where_failed(launches: LaunchList, info: Operand, tau: Operand, a: Operand, before: Operand) -> None:
    """Emit the factors of matrices whose info (an int32 in the bytes of an element) is not 0, from a copy
    `before`. Others, and their tau, stay as they are.
    """
    emit_restore(launches, info, before, a)
    _emit(launches, info, tau, a, always=False)


def _emit(launches: LaunchList, info: Operand, tau: Operand, a: Operand, always: bool) -> None:
    config = config_of(launches, a.rows)
    blocks = config.grid(a.rows, current(launches.device).sm_count)
    numbers = a.rows, a.cols, int(always), tau.row_stride, a.row_stride, a.col_stride
    for z in range(a.batch):
        failure = info if always else info.matrices(z, 1)
        with launches.temporary():
            state = launches.scratch(config.state(blocks), 1, 1)
            operands = tau.matrices(z, 1), state, a.matrices(z, 1), failure, launches.flags()
            launches.emit(geqrf_tall.source(config), blocks, operands, lambda *_: numbers, ())
