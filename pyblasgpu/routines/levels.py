"""TRMM by levels: with a copy of B, all products of a level are independent, and one launch.

The recursion in place is a chain: each of its steps waits for the one before, and few of them fill a
device. But what a level of the recursion reads is B as it was. So B is copied; then all leaves are one
batch, and the products of each level another (T lower triangular, blocks of two rows, four, ...):

    [T11            ] [B1]      B := diag(T11, T22, T33, T44) B      one launch
    [T21 T22        ] [B2]      B2 += T21 X1, B4 += T43 X3           one launch
    [T31 T32 T33    ] [B3]      [B3 B4] += [T31 T32; T41 T42] [X1 X2]  one launch
    [T41 T42 T43 T44] [B4]      (X is the copy of B)

The copy is kept small: B is worked on in panels of columns, and beyond `LARGEST` rows the recursion in place
(`recursion`) leads to triangles that are not larger. Rows that no whole block covers are launched apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..operands import Operand
from .copy import record_copy
from .gemm import record_gemm
from .tape import Tape

__all__ = ["LARGEST", "MOST_COPIED", "blocks", "level_recorder"]

LARGEST = 4096  # rows of a triangle that is multiplied by levels
MOST_COPIED = 32 << 20  # bytes of B that are copied at a time
GRAIN = 64  # a panel is a multiple of so many columns


def blocks(n: int, height: int, period: int) -> Iterator[tuple[int, int, int]]:
    """(first row, rows of each, how many): the blocks of `height` rows that end each `period` rows of `n`.

    All whole ones together, then what is left of a last one.
    """
    whole = n // period
    if whole:
        yield period - height, height, whole
    rest = n - whole * period - (period - height)
    if rest > 0:
        yield whole * period + period - height, rest, 1


def level_recorder(tape: Tape, b: Operand, leaf: Callable[..., None], stop: int) -> Callable[..., None]:
    """``record(t, b, alpha)``: B := alpha T B for triangles of at most `LARGEST` rows, leaves of `stop`.

    Parameters
    ----------
    b : Operand
        One matrix, of the same strides and columns as those to come, and no fewer rows.
    leaf : callable
        ``leaf(t, b, alpha)`` records what is done to triangles of up to `stop` rows, or to a batch of them.
    """
    if b.rows <= stop:
        return leaf
    rows = min(b.rows, max(stop, LARGEST))
    cols = _panel(b, rows)
    copied = _like(tape, b, rows, cols)

    def record(t: Operand, b: Operand, alpha) -> None:
        for first in range(0, b.cols, cols):
            panel = b.block(0, first, b.rows, min(cols, b.cols - first))
            x = copied.block(rows - b.rows if b.row_stride < 0 else 0, 0, b.rows, panel.cols)
            if b.rows > stop:
                record_copy(tape, 1.0, panel, x)
            _record_leaves(t, panel, leaf, stop, alpha)
            height = stop
            while height < b.rows:
                _record_level(tape, t, x, panel, height, alpha)
                height *= 2

    return record


def _panel(b: Operand, rows: int) -> int:
    """Columns of B to work on at a time."""
    most = MOST_COPIED // (rows * b.dtype.itemsize) // GRAIN * GRAIN
    return min(b.cols, max(most, GRAIN))


def _like(tape: Tape, b: Operand, rows: int, cols: int) -> Operand:
    """Scratch that lies as B does: in its order, and with rows that run the way B's do."""
    made = tape.scratch(rows, cols, 1) if b.by_rows else tape.scratch(cols, rows, 1).T
    return made.flip(rows=b.row_stride < 0, cols=b.col_stride < 0)


def _record_leaves(t: Operand, b: Operand, leaf: Callable[..., None], stop: int, alpha) -> None:
    """The diagonal blocks."""
    for first, rows, count in blocks(b.rows, stop, stop):
        t11 = _repeated(t.block(first, first, rows, rows), stop, stop, count)
        b1 = _repeated(b.block(first, 0, rows, b.cols), stop, 0, count)
        leaf(t11, b1, alpha)


def _record_level(tape: Tape, t: Operand, x: Operand, b: Operand, height: int, alpha) -> None:
    """B2 += alpha T21 X1 for all blocks of `height` rows that follow as many others."""
    period = 2 * height
    for first, rows, count in blocks(b.rows, height, period):
        above = first - height
        t21 = _repeated(t.block(first, above, rows, height), period, period, count)
        x1 = _repeated(x.block(above, 0, height, b.cols), period, 0, count)
        b2 = _repeated(b.block(first, 0, rows, b.cols), period, 0, count)
        record_gemm(tape, alpha, t21, x1, 1.0, b2)


def _repeated(block: Operand, rows: int, cols: int, count: int) -> Operand:
    """A batch of `count` blocks, each so many rows and columns after the one before."""
    step = rows * block.row_stride + cols * block.col_stride
    return block._replace(batch=count, batch_stride=step)
