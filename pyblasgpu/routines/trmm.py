"""B := alpha T B, or B := alpha B T, in place."""

from __future__ import annotations

from dataclasses import replace

from ..database import RECURSION
from ..dispatch.algorithms import TRMM_FUSED, trmm_algorithm
from ..operands import Operand
from ..types import Diag, Side, Uplo
from . import trmm_by_levels, trmm_in_place
from .copy import record_scale
from .launch_list import ALPHA, Tape, recorded
from .recursion import Recurrence, leaf_recorder, record_in_place, record_steps, tuned_leaf

__all__ = ["record", "tape", "trmm"]


def trmm(alpha, t: Operand, b: Operand, stream: int, *, side: Side, uplo: Uplo, diag: Diag) -> None:
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
    found = tape(alpha, t, b, side=side, uplo=uplo, diag=diag)
    if found is not None:
        found.run((t.pointer, b.pointer), alpha, stream=stream)


def tape(alpha, t: Operand, b: Operand, *, side: Side, uplo: Uplo, diag: Diag) -> Tape | None:
    """What `trmm` runs, for operands that lie like these and an alpha that is zero like this one, or not.

    None where there is nothing to do.
    """
    if b.is_empty:
        return None
    if alpha == 0:
        return recorded(_record_zero, (t, b), ())
    return recorded(record, (t, b), (side, uplo, diag))


def _record_zero(tape: Tape, t: Operand, b: Operand) -> None:
    record_scale(tape, ALPHA, b, zero=True)


def _leaf_alpha(first: int):
    return ALPHA


def _update(first: int):
    return ALPHA, 1.0


_RECURRENCE = Recurrence("trmm", True, _leaf_alpha, _update)


def record(tape: Tape, t: Operand, b: Operand, side: Side, uplo: Uplo, diag: Diag) -> None:
    """Record the whole call."""
    algorithm = trmm_algorithm(tape.dtype, t.rows, b.rows * b.cols // t.rows)
    whole = None
    if algorithm.name == TRMM_FUSED:
        whole = trmm_in_place.plan(tape, t, b, side, uplo)
    tape.choices.append(algorithm if whole else replace(algorithm, name=RECURSION))
    if whole:
        trmm_in_place.record(tape, whole, diag)
        return

    def multiply(t: Operand, b: Operand) -> None:
        config, stop = tuned_leaf(tape, b, _RECURRENCE)
        leaf = leaf_recorder(tape, t, b, _RECURRENCE, diag, config)
        if b.batch == 1:  # the blocks of a batch of triangles would be a batch of batches
            leaf = trmm_by_levels.level_recorder(tape, b, leaf, stop)
            stop = max(stop, trmm_by_levels.LARGEST)
        record_steps(tape, t, b, _RECURRENCE, stop, leaf)

    record_in_place(tape, t, b, side, uplo, multiply)
