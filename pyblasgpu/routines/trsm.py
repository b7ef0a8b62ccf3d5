"""Solve T X = alpha B, or X T = alpha B, by substitution; X overwrites B.

That is a recursion, which ends in leaves, of which small triangles have their own, or in triangles of which
each is one launch; or all is one launch, with few right-hand sides of `trsv`, else of `trsm_fused`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..database import RECURSION, TRSM_SMALL
from ..dispatch.algorithms import TRSV, trsm_algorithm
from ..dispatch.choose import select
from ..dispatch.leaf import runs
from ..gpu.device import current
from ..kernels.trsm.small import TrsmSmall
from ..operands import Operand
from ..types import Diag, Side, Uplo
from . import trsm_fused, trsv
from .copies import emit_scale
from .launch_list import ALPHA, LaunchList, cached_launch_list
from .triangular import Recurrence, emit_in_place, emit_steps, leaf_emitter, tuned_leaf

__all__ = ["emit", "launch_list", "trsm"]


def trsm(alpha, t: Operand, b: Operand, stream: int, *, side: Side, uplo: Uplo, diag: Diag) -> None:
    """Enqueue the routine on `stream`.

    Parameters
    ----------
    alpha : number
        alpha = 0 reads neither T nor B and leaves zeros.
    t : Operand
        The triangle, n x n, op() applied as a view; only its `uplo` part is read, without its diagonal
        where `diag` is unit.
    b : Operand
        n x r (side left) or r x n, of the same dtype, batch and device; apart from `t`.
    stream : int
        Handle of the stream.
    side, uplo, diag : Side, Uplo, Diag
        `uplo` is meant after op().
    """
    found = launch_list(alpha, t, b, side=side, uplo=uplo, diag=diag)
    if found is not None:
        found.run((t.pointer, b.pointer), alpha, stream=stream)


def launch_list(alpha, t: Operand, b: Operand, *, side: Side, uplo: Uplo, diag: Diag) -> LaunchList | None:
    """What `trsm` runs, for operands that lie like these and an alpha that is zero like this one, or not.

    None where there is nothing to do.
    """
    if b.is_empty:
        return None
    if alpha == 0:
        return cached_launch_list(_emit_zero, (t, b), ())
    return cached_launch_list(emit, (t, b), (side, uplo, diag))


def _emit_zero(launches: LaunchList, t: Operand, b: Operand) -> None:
    emit_scale(launches, ALPHA, b, zero=True)


def _leaf_alpha(first: int):
    return ALPHA if first == 0 else 1.0


def _update(first: int):
    return -1.0, ALPHA if first == 0 else 1.0


_RECURRENCE = Recurrence("trsm", False, _leaf_alpha, _update)


def emit(launches: LaunchList, t: Operand, b: Operand, side: Side, uplo: Uplo, diag: Diag) -> None:
    """Emit the whole call."""

    def solve(t: Operand, b: Operand) -> None:
        device = current(launches.device)
        algorithm = trsm_algorithm(launches.dtype, b.rows, b.cols, b.batch, device)
        rows = trsm_fused.fused_order(launches, t, b, algorithm)
        uses_trsv = algorithm.name == TRSV and trsv.applies(b)
        uses_small = algorithm.name == TRSM_SMALL and runs(TRSM_SMALL, device)
        applies = rows or uses_trsv or uses_small
        launches.choices.append(algorithm if applies else replace(algorithm, name=RECURSION))
        if uses_trsv:
            trsv.emit(launches, t, b, diag)
        elif rows:
            emit_steps(launches, t, b, _RECURRENCE, rows, partial(trsm_fused.emit, launches, diag))
        elif uses_small:
            choice = select(TRSM_SMALL, launches.dtype, "", (b.rows, b.cols), device)
            launches.choices.append(choice)
            by_order = partial(_emit_small, launches, diag, choice.config)
            emit_steps(launches, t, b, _RECURRENCE, choice.config.most_rows, by_order)
        else:
            config, stop = tuned_leaf(launches, b, _RECURRENCE)
            emit_steps(
                launches, t, b, _RECURRENCE, stop, leaf_emitter(launches, t, b, _RECURRENCE, diag, config)
            )

    emit_in_place(launches, t, b, side, uplo, solve)


def _emit_small(launches: LaunchList, diag: Diag, config: TrsmSmall, t: Operand, b: Operand, alpha) -> None:
    """A leaf, by the Config that goes with its order."""
    leaf_emitter(launches, t, b, _RECURRENCE, diag, config.serving(b.rows, b.cols))(t, b, alpha)
