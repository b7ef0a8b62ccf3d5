"""A := Qᴴ A Q, a band: the first of two stages that make a symmetric or Hermitian matrix tridiagonal.

A panel of columns below the band has a QR factorization, H = I - V T Vᴴ. With W = A V T and X = W - V (Tᴴ Vᴴ
W) / 2 the rest of A becomes A - V Xᴴ - X Vᴴ. Some panels go together. What they take off the rest is kept as
factors, [V X] and [X V], and taken off columns of the next panel, and off products with A. At the end it is
one product (Wang and others, 2023). So each panel reads the rest of A once, and the update has many columns.
[X V] is behind the columns of A. So one product with the adjoint of both is A V T, and below it what [V X] is
multiplied by.
"""

from __future__ import annotations

from typing import NamedTuple

from ...dispatch.operand_copies import ALIGNED
from ...operands import Operand
from ..copies import emit_copy, emit_scale
from ..launch_list import LaunchList
from ..level3.gemm import emit_gemm
from . import geqrf
from .block_reflector import BlockReflector, emit_block_reflector

__all__ = ["columns", "emit"]

PANELS = 8  # panels whose updates go together


class _Update(NamedTuple):
    """A product to be taken off the rest of A: `left` times `right`ᴴ.

    The rows of `left` are those from `top` on, and as many more as it has columns, for products.
    """

    left: Operand
    right: Operand
    top: int

    def rows(self, first: int, count: int, cols: int) -> tuple[Operand, Operand]:
        """Rows of both factors, and the columns that there are."""
        return self.left.block(first - self.top, 0, count, cols), self.right.block(first, 0, count, cols)


def columns(width: int) -> int:
    """Columns of memory behind those of A, for a band of this width."""
    return 2 * PANELS * width


def emit(launches: LaunchList, tau: Operand, a: Operand, width: int) -> None:
    """Emit the whole reduction of one matrix.

    Parameters
    ----------
    launches : LaunchList
    tau : Operand
        n - `width` by 1; becomes the factors of the reflectors.
    a : Operand
        n by n, n > `width`, both triangles. Its diagonal and `width` subdiagonals become the band, what is
        below them the vectors of the reflectors, whose ones are on the last subdiagonal. What is above the
        diagonal means nothing then, nor do the ``columns(width)`` columns of memory behind A.
    width : int
        Subdiagonals of the band.
    """
    n = a.rows
    emit_scale(launches, 0.0, tau, zero=True)
    ends = n - width - 1  # the last panel has two rows or more
    for outer in range(0, ends, PANELS * width):
        firsts = range(outer, min(outer + PANELS * width, ends), width)
        top = outer + width
        with launches.temporary(), launches.chain():
            size = 2 * width * len(firsts)
            left = launches.scratch(n - top + size, size, 1, ALIGNED)
            update = _Update(left, a.block(0, n, n, size), top)
            for number, first in enumerate(firsts):
                _emit_panel(launches, tau, a, first, width, update, 2 * width * number)
            last = firsts[-1] + width
            count = n - last
            done = 2 * width * (len(firsts) - 1) + 2 * min(width, count)
            left, right = update.rows(last, count, done)
            emit_gemm(launches, -1.0, left, right.T.conjugate(), 1.0, a.block(last, last, count, count))


def _emit_panel(
    launches: LaunchList, tau: Operand, a: Operand, first: int, width: int, update: _Update, done: int
) -> None:
    """Emit the reflectors of a panel, and what they take off the rest, to columns from `done` on."""
    n, below = a.rows, first + width
    count, rows = min(width, n - below), n - below
    if done:
        left, right = update.rows(first, n - first, done)
        columns = a.block(first, first, n - first, width)
        emit_gemm(launches, -1.0, left, right.block(0, 0, width, done).T.conjugate(), 1.0, columns)
    v, x = (update.left.block(below - update.top, done + at, rows, count) for at in (0, count))
    with launches.temporary():
        panel = a.block(below, first, rows, width)
        t = _emit_reflectors(launches, tau.block(first, 0, count, 1), panel, v)
        vt, small = (launches.scratch(each, count, 1, ALIGNED) for each in (rows, count))
        emit_gemm(launches, 1.0, v, t, 0.0, vt)
        whole, both = a.block(below, below, rows, rows + done), x._replace(rows=rows + done)
        emit_gemm(launches, 1.0, whole.T.conjugate(), vt, 0.0, both)
        if done:
            left, _ = update.rows(below, rows, done)
            emit_gemm(launches, -1.0, left, both.block(rows, 0, done, count), 1.0, x)
        emit_gemm(launches, 1.0, vt.T.conjugate(), x, 0.0, small)
        emit_gemm(launches, -0.5, v, small, 1.0, x)
    swapped = update.right.block(below, done + count, rows, count)
    both = v._replace(batch=2, batch_stride=count * v.col_stride)
    emit_copy(launches, 1.0, both, swapped._replace(batch=2, batch_stride=-count * swapped.col_stride))


def _emit_reflectors(launches: LaunchList, tau: Operand, panel: Operand, v: Operand) -> Operand:
    """Emit the QR factors of a panel, and V; return T."""
    t = launches.scratch(tau.rows, tau.rows, 1, ALIGNED)
    if not geqrf.emit_whole_panel(launches, tau, panel, v, t):
        geqrf.emit(launches, tau, panel)
        columns = panel.block(0, 0, panel.rows, tau.rows)
        emit_block_reflector(launches, tau, columns, BlockReflector(v, t))
    return t
