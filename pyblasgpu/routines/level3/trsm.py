"""Solve T X = alpha B, or X T = alpha B, by substitution; X may overwrite B.

That is a recursion in place, which ends in leaves, of which small triangles have their own, or in triangles
of which each is one launch; or all is one launch, with few right-hand sides of `trsv`, else of `trsm_fused`.
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
from ...dispatch.overrides import Algorithm, KernelChoice
from ...gpu.device import current
from ...kernels.common.options import READS_Y, options_of
from ...kernels.registry import family_of
from ...operands import Operand
from ...types import Diag, Side, Uplo
from ..copies import is_readable, most_workspace
from ..launch_list import ALPHA, LaunchList
from . import trsm_fused
from .triangular import (
    Recurrence,
    TriangularSystem,
    emit_in_place,
    emit_steps,
    leaf_emitter,
    leaf_integers,
    lower_leaf,
    on_left,
    triangular_launch_list,
    tuned_leaf,
)

if TYPE_CHECKING:
    from ...kernels.trsm.small import TrsmSmall

__all__ = ["emit", "launch_list"]


def launch_list(
    alpha, t: Operand, b: Operand, out: Operand | None = None, *, side: Side, uplo: Uplo, diag: Diag
) -> LaunchList | None:
    """Return the launch list; see `triangular.triangular_launch_list`."""
    return triangular_launch_list(emit, emit_apart, alpha, t, b, out, side, uplo, diag)


def _leaf_alpha(first: int):
    return ALPHA if first == 0 else 1.0


def _update(first: int):
    return -1.0, ALPHA if first == 0 else 1.0


_RECURRENCE = Recurrence("trsm", False, _leaf_alpha, _update)


def emit(launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo, diag: Diag) -> None:
    """Emit the whole call."""
    emit_in_place(launches, t, b, side, uplo, partial(_emit_solution, launches, diag))


def _update_apart(first: int):
    return -1.0, 0.0 if first == 0 else 1.0


#: The recursion into another matrix. Products overwrite what they reach first, and a leaf adds alpha B, from
#: the second one on to what is there.
_APART = Recurrence("trsm", False, lambda first: first > 0, _update_apart)


def emit_apart(
    launches: LaunchList, t: Operand, b: Operand, out: Operand, side: Side, uplo: Uplo, diag: Diag
) -> bool:
    """Emit the call into `out` by few right-hand sides, by small or fused triangles or by one leaf; False,
    nothing emitted, for others.
    """
    if not all(map(is_readable, (t, b, out))):
        return False
    system = on_left(t, b, side, uplo, out).oriented
    algorithm = _algorithm(launches, system.b)
    small = _small(launches, system.b, algorithm)
    if algorithm.name == TRSV and _trsv().applies(system.b):
        launches.choices.append(algorithm)
        lower = system.lower
        _trsv().emit(launches, lower.t, lower.source, diag, lower.b)
        return True
    fused = trsm_fused.plan(launches, system, algorithm)
    if fused:
        launches.workspace_limit = launches.workspace_bytes + most_workspace(b)
        launches.choices.append(algorithm)
        solve = partial(trsm_fused.emit_apart, launches, fused, diag)
        emit_steps(launches, system, _APART, max(fused), solve)
        return True
    if small is None:
        return algorithm.name == RECURSION and _emit_leaf(launches, diag, system.lower, algorithm)
    launches.workspace_limit = launches.workspace_bytes + most_workspace(b)
    launches.choices += [algorithm, small]

    def leaf(block: TriangularSystem, adds: bool) -> None:
        lower = block.lower
        _emit_small(launches, diag, small.config, lower.t, lower.source, ALPHA, lower.b, adds)

    emit_steps(launches, system, _APART, small.config.max_rows, leaf)
    return True


def _emit_leaf(launches: LaunchList, diag: Diag, system: TriangularSystem, algorithm: Algorithm) -> bool:
    """Emit a triangle that one leaf of the recursion takes, into another matrix; False for others."""
    before = len(launches.choices)
    launches.choices.append(algorithm)
    t, x, source = system.t, system.b, system.source
    config, stop = tuned_leaf(launches, source, _RECURRENCE)
    if t.rows > stop:
        del launches.choices[before:]
        return False
    leaf_emitter(launches, t, source, diag, config)(t, source, ALPHA, x)
    return True


def _emit_solution(launches: LaunchList, diag: Diag, system: TriangularSystem) -> None:
    b = system.b
    algorithm = _algorithm(launches, b)
    small = _small(launches, b, algorithm)
    fused = trsm_fused.plan(launches, system, algorithm)
    if fused:
        launches.choices.append(algorithm)
        solve = partial(trsm_fused.emit, launches, fused, diag)
        emit_steps(launches, system, _RECURRENCE, max(fused), solve)
    elif algorithm.name == TRSV and _trsv().applies(b):
        launches.choices.append(algorithm)
        _trsv().emit(launches, system.lower.t, system.lower.b, diag)
    elif small:
        launches.choices += [algorithm, small]
        solve_small = partial(_emit_small, launches, diag, small.config)
        emit_steps(launches, system, _RECURRENCE, small.config.max_rows, lower_leaf(solve_small))
    else:
        launches.choices.append(replace(algorithm, name=RECURSION))
        config, stop = tuned_leaf(launches, b, _RECURRENCE)
        leaf = leaf_emitter(launches, system.lower.t, system.lower.b, diag, config)
        emit_steps(launches, system, _RECURRENCE, stop, lower_leaf(leaf))


def _trsv() -> ModuleType:
    """The solution with few right-hand sides; it is loaded when there are few."""
    from ..level2 import trsv

    return trsv


def _algorithm(launches: LaunchList, b: Operand) -> Algorithm:
    return trsm_algorithm(launches.dtype, b.rows, b.cols, b.batch, current(launches.device))


def _small(launches: LaunchList, b: Operand, algorithm: Algorithm) -> KernelChoice | None:
    """The Config of small triangles, where these are the algorithm, and the device has them."""
    device = current(launches.device)
    if algorithm.name != TRSM_SMALL or not runs(TRSM_SMALL, device):
        return None
    return select(TRSM_SMALL, launches.dtype, "", (b.rows, b.cols), device)


def _emit_small(
    launches: LaunchList,
    diag: Diag,
    config: TrsmSmall,
    t: Operand,
    b: Operand,
    alpha,
    x: Operand | None = None,
    adds: bool = False,
) -> None:
    """A leaf, by the Config that goes with its order; X is B by default. It `adds` alpha B to X first."""
    fitting, target = config.specialize(b.rows, b.cols), b if x is None else x
    kernel = family_of(TRSM_SMALL).source(fitting, conj=t.conj, t_by_rows=t.by_rows)
    integers = partial(leaf_integers, options_of(conj=t.conj, unit=diag is Diag.UNIT) | READS_Y * adds)
    launches.emit(kernel, fitting.grid(b.cols), (t, b, target), integers, (alpha,))
