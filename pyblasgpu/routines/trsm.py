"""Solve T X = alpha B, or X T = alpha B, by substitution; X overwrites B.

With few right-hand sides that is one launch (`trsv`), else a recursion.
"""

from __future__ import annotations

from typing import Any

from ..gpu.device import current
from ..kernels import trsm_fma, trsm_leaf, trsm_mma, trsm_small
from ..operands import Operand
from ..tuning import overrides
from ..tuning.select import select
from ..types import Diag, Side, Uplo
from . import trsv
from .copy import record_scale
from .recursion import Recurrence, leaf_recorder, record_in_place, record_steps, tuned_leaf
from .tape import ALPHA, Tape, recorded

__all__ = ["record", "tape", "trsm"]

SMALL = 32  # rows of a triangle that is small also where there is but one
LARGEST = 256  # rows of triangles of a batch that are parted into small ones


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
    found = tape(alpha, t, b, side=side, uplo=uplo, diag=diag)
    if found is not None:
        found.run((t.pointer, b.pointer), alpha, stream=stream)


def tape(alpha, t: Operand, b: Operand, *, side: Side, uplo: Uplo, diag: Diag) -> Tape | None:
    """What `trsm` runs, for operands that lie like these and an alpha that is zero like this one, or not.

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
    return ALPHA if first == 0 else 1.0


def _update(first: int):
    return -1.0, ALPHA if first == 0 else 1.0


_SOURCES = {family.STEM: family.source for family in (trsm_leaf, trsm_mma, trsm_fma, trsm_small)}
_TUNED = {"trsm", trsm_leaf.STEM, trsm_mma.STEM, trsm_fma.STEM}  # an override of these has the tuned leaves
_RECURRENCE = Recurrence("trsm", _SOURCES, False, _leaf_alpha, _update)


def _small_leaf(tape: Tape, b: Operand) -> tuple[Any, int] | None:
    """The Config of `trsm_small` and the order at which it is a leaf, where it serves: what is small, or
    whose many small triangles fill the device by themselves.
    """
    if any(name in _TUNED for name, _ in overrides.active()):
        return None
    device = current(tape.device)
    leaf = select(trsm_small.STEM, tape.dtype, "", (b.rows, b.cols), device)
    stop = leaf.config.most_rows
    blocks = b.batch * leaf.config.serving(min(b.rows, stop), b.cols).grid(b.cols)
    if b.rows > SMALL and (b.rows > LARGEST or b.batch == 1 or blocks < device.sm_count):
        return None
    tape.choices.append(leaf)
    return leaf.config, stop


def record(tape: Tape, t: Operand, b: Operand, side: Side, uplo: Uplo, diag: Diag) -> None:
    """Record the whole call."""

    def solve(t: Operand, b: Operand) -> None:
        if trsv.serves(b):
            trsv.record(tape, t, b, diag)
            return
        config, stop = _small_leaf(tape, b) or tuned_leaf(tape, b, _RECURRENCE)
        leaf = leaf_recorder(tape, t, b, _RECURRENCE, diag, config)
        record_steps(tape, t, b, _RECURRENCE, stop, leaf)

    record_in_place(tape, t, b, side, uplo, solve)
