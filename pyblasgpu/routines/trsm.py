"""Solve T X = alpha B, or X T = alpha B, by substitution; X overwrites B.

That is a recursion, which ends in leaves, of which small triangles have their own, or in triangles of which
each is one launch; or all is one launch, with few right-hand sides of `trsv`, else of `trsm_one_launch`.
"""

from __future__ import annotations

from functools import partial

from ..database import RECURSION, SMALL, nearest_small
from ..dispatch.choose import select
from ..dispatch.leaf import Choice, choose_method, runs
from ..dispatch.overrides import given
from ..gpu.device import Device, current
from ..kernels.trsm import small as trsm_small
from ..kernels.trsm.small import TrsmSmall
from ..operands import Operand
from ..types import Diag, Side, Uplo
from . import trsm_one_launch, trsv
from .copy import record_scale
from .in_place import LEAF
from .launch_list import ALPHA, Tape, recorded
from .recursion import (
    Recurrence,
    leaf_recorder,
    leaves_asked,
    record_in_place,
    record_steps,
    tuned_leaf,
)

__all__ = ["record", "tape", "trsm"]

#: Where no file says which was faster: rows of a triangle alone that is small, and of triangles of a batch
#: that are parted into small ones, if these fill half of the device by themselves (docs/history/).
ALONE, OF_BATCH = 32, 512


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


_RECURRENCE = Recurrence("trsm", False, _leaf_alpha, _update)


def _small(tape: Tape, b: Operand) -> TrsmSmall | None:
    """The Config of `trsm_small` where it serves a leaf, or the triangles of a batch parted into small ones,
    as overrides and files say, and else `_is_likely`.
    """
    if (b.batch == 1 and b.rows > LEAF) or leaves_asked("trsm"):
        return None
    device = current(tape.device)
    if not runs(trsm_small.STEM, device):
        return None
    method = _said_small(b, device)
    tape.choices += [method] if method else []
    choice = select(trsm_small.STEM, tape.dtype, "", (b.rows, b.cols), device)
    if method.config == RECURSION if method else not _is_likely(b, choice.config, device):
        return None
    tape.choices.append(choice)
    return choice.config


def _said_small(b: Operand, device: Device) -> Choice | None:
    """The way that is asked for, or else was the fastest at the nearest place of which a file tells."""
    asked = given(SMALL)
    if asked is None:
        return choose_method("trsm", b.dtype.letter, nearest_small(b.rows, b.cols, b.batch), device)
    return Choice(SMALL if asked else RECURSION, "override")


def _is_likely(b: Operand, config: TrsmSmall, device: Device) -> bool:
    """Whether operands like these had better be served, where nothing says so."""
    blocks = b.batch * config.serving(min(b.rows, config.most_rows), b.cols).grid(b.cols)
    return b.rows <= ALONE or (b.batch > 1 and b.rows <= OF_BATCH and 2 * blocks >= device.sm_count)


def record(tape: Tape, t: Operand, b: Operand, side: Side, uplo: Uplo, diag: Diag) -> None:
    """Record the whole call."""

    def solve(t: Operand, b: Operand) -> None:
        if trsv.serves(b):
            trsv.record(tape, t, b, diag)
        elif rows := trsm_one_launch.most_rows(tape, t, b):
            record_steps(tape, t, b, _RECURRENCE, rows, partial(trsm_one_launch.record, tape, diag))
        elif small := _small(tape, b):
            by_order = partial(_record_small, tape, diag, small)
            record_steps(tape, t, b, _RECURRENCE, small.most_rows, by_order)
        else:
            config, stop = tuned_leaf(tape, b, _RECURRENCE)
            record_steps(tape, t, b, _RECURRENCE, stop, leaf_recorder(tape, t, b, _RECURRENCE, diag, config))

    record_in_place(tape, t, b, side, uplo, solve)


def _record_small(tape: Tape, diag: Diag, config: TrsmSmall, t: Operand, b: Operand, alpha) -> None:
    """A leaf, by the Config that goes with its order."""
    leaf_recorder(tape, t, b, _RECURRENCE, diag, config.serving(b.rows, b.cols))(t, b, alpha)
