"""Solve T X = alpha B, or X T = alpha B, by substitution; X overwrites B.

That is a recursion, which ends in leaves, of which small triangles have their own, or in triangles of which
each is one launch; or all is one launch, with few right-hand sides of `trsv`, else of `trsm_fused`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from ...database import RECURSION, TRSM_SMALL
from ...dispatch.algorithms import TRSV, trsm_algorithm
from ...dispatch.choose import select
from ...dispatch.leaf import runs
from ...gpu.device import current
from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..launch_list import ALPHA, LaunchList
from . import trsm_fused
from .triangular import (
    Recurrence,
    TriangularSystem,
    emit_in_place,
    emit_steps,
    launch_list_in_place,
    leaf_emitter,
    lower_leaf,
    tuned_leaf,
)

if TYPE_CHECKING:
    from ...kernels.trsm.small import TrsmSmall

__all__ = ["emit", "launch_list"]


def launch_list(alpha, t: Operand, b: Operand, *, side: Side, uplo: Uplo, diag: Diag) -> LaunchList | None:
    """Return the launch list; see `triangular.launch_list_in_place`."""
    return launch_list_in_place(emit, alpha, t, b, side, uplo, diag)


def _leaf_alpha(first: int):
    return ALPHA if first == 0 else 1.0


def _update(first: int):
    return -1.0, ALPHA if first == 0 else 1.0


_RECURRENCE = Recurrence("trsm", False, _leaf_alpha, _update)


def emit(launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo, diag: Diag) -> None:
    """Emit the whole call."""
    emit_in_place(launches, t, b, side, uplo, partial(_emit_solution, launches, diag))


def _emit_solution(launches: LaunchList, diag: Diag, system: TriangularSystem) -> None:
    b, device = system.b, current(launches.device)
    algorithm = trsm_algorithm(launches.dtype, b.rows, b.cols, b.batch, device)
    fused = trsm_fused.plan(launches, system, algorithm)
    if fused:
        launches.choices.append(algorithm)
        solve = partial(trsm_fused.emit, launches, fused, diag)
        emit_steps(launches, system, _RECURRENCE, max(fused), solve)
    elif algorithm.name == TRSV and _trsv().applies(b):
        launches.choices.append(algorithm)
        _trsv().emit(launches, system.lower.t, system.lower.b, diag)
    elif algorithm.name == TRSM_SMALL and runs(TRSM_SMALL, device):
        choice = select(TRSM_SMALL, launches.dtype, "", (b.rows, b.cols), device)
        launches.choices += [algorithm, choice]
        small = partial(_emit_small, launches, diag, choice.config)
        emit_steps(launches, system, _RECURRENCE, choice.config.max_rows, lower_leaf(small))
    else:
        launches.choices.append(replace(algorithm, name=RECURSION))
        config, stop = tuned_leaf(launches, b, _RECURRENCE)
        leaf = leaf_emitter(launches, system.lower.t, system.lower.b, diag, config)
        emit_steps(launches, system, _RECURRENCE, stop, lower_leaf(leaf))


def _trsv() -> ModuleType:
    """The solution with few right-hand sides; it is loaded when there are few."""
    from ..level2 import trsv

    return trsv


def _emit_small(launches: LaunchList, diag: Diag, config: TrsmSmall, t: Operand, b: Operand, alpha) -> None:
    """A leaf, by the Config that goes with its order."""
    leaf_emitter(launches, t, b, diag, config.specialize(b.rows, b.cols))(t, b, alpha)
