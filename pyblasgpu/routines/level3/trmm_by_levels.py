"""The blocks of a triangle level by level, and TRMM by levels.

A triangle is its diagonal blocks and, below them, squares of one block, of two, four, ... (`diagonal` and
`off_diagonal_blocks`). Those of one level are equally far apart, so that what is independent is one batch.

In TRMM all products of a level are independent with a copy of B, and one launch.

The recursion in place is a chain: each of its steps waits for the one before, and few of them fill a
device. But what a level of the recursion reads is B as it was. So B is copied; then all leaves are one
batch, and the products of each level another (T lower triangular, blocks of two rows, four, ...):

    [T11            ] [B1]      B := diag(T11, T22, T33, T44) B      one launch
    [T21 T22        ] [B2]      B2 += T21 X1, B4 += T43 X3           one launch
    [T31 T32 T33    ] [B3]      [B3 B4] += [T31 T32; T41 T42] [X1 X2]  one launch
    [T41 T42 T43 T44] [B4]      (X is the copy of B)

A result in another matrix needs no copy, whatever the order. The copy is kept small. B is worked on in panels
of columns, and beyond `LARGEST` rows the recursion in place (`triangular`) leads to triangles that are not
larger. Rows that no whole block covers are launched apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...operands import Operand
from .. import copies
from ..copies import emit_copy
from ..launch_list import LaunchList
from .gemm import emit_gemm

__all__ = [
    "LARGEST",
    "blocks",
    "diagonal",
    "emit_apart",
    "emit_updates",
    "level_emitter",
    "off_diagonal_blocks",
    "strided_batch",
]

LARGEST = 4096  # rows of a triangle that is multiplied by levels
GRAIN = 64  # a panel is a multiple of this number of columns


def blocks(n: int, height: int, period: int) -> Iterator[tuple[int, int, int]]:
    """(first row, rows of each, how many): the blocks of `height` rows that end each `period` rows of `n`.

    All whole ones together, then what is left of a last one.
    """
    periods = n // period
    if periods:
        yield period - height, height, periods
    rest = n - periods * period - (period - height)
    if rest > 0:
        yield periods * period + period - height, rest, 1


def diagonal(n: int, stop: int, batch: int = 1) -> Iterator[tuple[int, int, int]]:
    """(first row, rows, how many) of the diagonal blocks of `stop` rows of a triangle of `n`.

    For a batch of triangles they follow one by one: a batch of batches is no batch.
    """
    return _batched(blocks(n, stop, stop), stop, batch)


def off_diagonal_blocks(n: int, stop: int, batch: int = 1) -> Iterator[tuple[int, int, int, int]]:
    """(height, first row, rows, how many) of the blocks below them, those of `height` columns together.

    The block begins `height` columns left of the diagonal, the next one 2 `height` rows and columns further.
    """
    height = stop
    while height < n:
        for block in _batched(blocks(n, height, 2 * height), 2 * height, batch):
            yield height, *block
        height *= 2


def _batched(
    blocks_of_one: Iterator[tuple[int, int, int]], period: int, batch: int
) -> Iterator[tuple[int, int, int]]:
    for first, rows, count in blocks_of_one:
        if batch == 1:
            yield first, rows, count
        else:
            for number in range(count):
                yield first + number * period, rows, 1


def strided_batch(block: Operand, rows: int, cols: int, count: int) -> Operand:
    """A batch of `count` blocks, each `rows` rows and `cols` columns after the one before; one stays as it
    is.
    """
    if count == 1:
        return block
    step = rows * block.row_stride + cols * block.col_stride
    return block._replace(batch=count, batch_stride=step)


def emit_apart(
    launches: LaunchList, t: Operand, b: Operand, c: Operand, alpha: Any, leaf: Callable[..., None], stop: int
) -> None:
    """C := alpha T B for a lower triangle, or a batch, with leaves of `stop`; C is apart from B.

    Parameters
    ----------
    leaf : callable
        ``leaf(t, b, alpha, c)`` emits what is done to triangles of up to `stop` rows, or to a batch of them.
    """
    for first, rows, count in diagonal(b.rows, stop, b.batch):
        t11 = strided_batch(t.block(first, first, rows, rows), stop, stop, count)
        b1, c1 = (strided_batch(x.block(first, 0, rows, b.cols), stop, 0, count) for x in (b, c))
        leaf(t11, b1, alpha, c1)
    emit_updates(launches, t, b, c, alpha, stop)


def emit_updates(launches: LaunchList, t: Operand, b: Operand, c: Operand, alpha: Any, stop: int) -> None:
    """C += alpha times what is below the diagonal blocks of `stop` rows of T, times B."""
    for block in off_diagonal_blocks(b.rows, stop, b.batch):
        _emit_update(launches, t, b, c, block, alpha)


def level_emitter(
    launches: LaunchList, b: Operand, leaf: Callable[..., None], stop: int
) -> Callable[..., None] | None:
    """``emit(t, b, alpha)``: B := alpha T B for triangles of at most `LARGEST` rows, leaves of `stop`. None
    where an override allows no room for the copy of B.

    Parameters
    ----------
    b : Operand
        One matrix, of the same strides and columns as later ones, and no fewer rows.
    leaf : callable
        Leaf of `emit_apart`, where B and C may be one.
    """
    rows = min(b.rows, max(stop, LARGEST))
    cols = panel_columns(b, rows)
    if copies.is_beyond(rows * cols * b.dtype.itemsize):
        return None
    copied = _like(launches, b, rows, cols) if b.rows > stop else b

    def emit(t: Operand, b: Operand, alpha) -> None:
        if b.rows <= stop:
            leaf(t, b, alpha, b)
            return
        for first in range(0, b.cols, cols):
            panel = b.block(0, first, b.rows, min(cols, b.cols - first))
            x = copied.block(rows - b.rows if b.row_stride < 0 else 0, 0, b.rows, panel.cols)
            emit_copy(launches, 1.0, panel, x)
            emit_apart(launches, t, x, panel, alpha, leaf, stop)

    return emit


def panel_columns(b: Operand, rows: int) -> int:
    """Columns of B to work on at a time."""
    most = copies.MOST_COPIED // (rows * b.dtype.itemsize) // GRAIN * GRAIN
    return min(b.cols, max(most, GRAIN))


def _like(launches: LaunchList, b: Operand, rows: int, cols: int) -> Operand:
    """Scratch in B's layout: in its order, and with rows that run the way B's do."""
    scratch = launches.scratch(rows, cols, 1) if b.by_rows else launches.scratch(cols, rows, 1).T
    return scratch.flip(rows=b.row_stride < 0, cols=b.col_stride < 0)


def _emit_update(launches: LaunchList, t: Operand, x: Operand, b: Operand, block: tuple, alpha) -> None:
    """B2 += alpha T21 X1 for blocks of `off_diagonal_blocks`."""
    height, first, rows, count = block
    above, period = first - height, 2 * height
    t21 = strided_batch(t.block(first, above, rows, height), period, period, count)
    x1 = strided_batch(x.block(above, 0, height, b.cols), period, 0, count)
    b2 = strided_batch(b.block(first, 0, rows, b.cols), period, 0, count)
    emit_gemm(launches, alpha, t21, x1, 1.0, b2)
