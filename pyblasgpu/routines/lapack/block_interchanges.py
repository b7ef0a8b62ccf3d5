"""Interchanges by the pivots of whole blocks, in LU factors with lookahead.

    right of a block, few pivots       their moves, a group after the other (`laswp`), in large groups
    right of a block, many pivots      whole columns in another order (`permute_rows`)
    left of a block                    once, behind the last block, by the pivots of all later blocks

Columns on the left are finished: nothing reads them again. What does not fit shared memory, or is row-major,
is interchanged by moves at once.
"""

from __future__ import annotations

from collections.abc import Callable

from ...gpu.device import current
from ...kernels.factor.lu import permute_rows, pivot_order
from ...kernels.registry import FIXED
from ...operands import Operand
from ..launch_list import LaunchList
from . import laswp
from .factor_steps import real_dtype

__all__ = ["BlockInterchanges"]

COLUMN_BYTES = 80  # of a column, for each pivot, up to which moving it whole takes less time than moves
LARGE_GROUPS = 256  # pivots from which on moves are made anew, in larger groups than panels leave


class BlockInterchanges:
    """Interchanges of a factorization by blocks of columns.

    Parameters
    ----------
    launches : LaunchList
    piv, a : Operand
        Pivots, and the matrix.
    block : int
        Columns of a block.
    moves_at : callable
        ``moves_at(first)`` returns the moves of the panels from a column on, and the pivots of a group.
    """

    def __init__(
        self,
        launches: LaunchList,
        piv: Operand,
        a: Operand,
        block: int,
        moves_at: Callable[[int], tuple[Operand, int]],
    ):
        self._launches, self._piv, self._a, self._block, self._moves_at = launches, piv, a, block, moves_at
        device = current(launches.device)
        letter = real_dtype(a.dtype).letter
        self._config = FIXED[permute_rows.STEM].fixed_config(letter).fitting(device.shared_per_block)
        self._multiprocessors = device.sm_count
        self._orders: dict[tuple[int, int], Operand] = {}
        self._moves: dict[tuple[int, int], tuple[Operand, int]] = {}
        is_large = min(a.rows, a.cols) >= launches.policy.getrf_permuted_min_order
        self._permutes = is_large and a.row_stride == 1 and a.col_stride > 0
        self._postponed_from = self._first_postponed()

    def on_the_right(self, first: int, last: int, columns: tuple[int, int]) -> None:
        """Emit the interchanges of other columns by the pivots of some."""
        left, right = columns
        if left >= right:
            return
        others = self._a.block(first, left, self._a.rows - first, right - left)
        pivots, column_bytes = last - first, others.rows * others.dtype.itemsize
        if self._permutes and column_bytes <= min(COLUMN_BYTES * pivots, self._config.shared_bytes):
            self._permute(self._order_of(first, last), others)
        else:
            self._by_moves(first, others, pivots)

    def on_the_left(self, first: int, last: int) -> None:
        """Emit the interchanges of columns before a block, but for those that are postponed."""
        left = min(first, self._postponed_from)
        if left:
            self._by_moves(first, self._a.block(first, 0, self._a.rows - first, left), last - first)

    def finish(self) -> None:
        """Emit what was postponed: each block of columns by the pivots of all later ones."""
        a, begin, block = self._a, self._postponed_from, self._block
        count = min(a.rows, a.cols) - begin
        columns = (count - 1) // block * block
        if columns > 0:
            orders = self._emit_orders(begin, begin + count, block)
            self._permute(orders, a.block(begin, begin, a.rows - begin, columns), block)

    def _by_moves(self, first: int, others: Operand, pivots: int) -> None:
        moves, group = self._moves_of(first, pivots)
        laswp.interchange(self._launches, moves, others, group, pivots)

    def _moves_of(self, first: int, pivots: int) -> tuple[Operand, int]:
        """Return the moves of some pivots and the pivots of a group; large groups are emitted once."""
        if pivots < LARGE_GROUPS or not self._permutes:
            return self._moves_at(first)
        if (first, pivots) not in self._moves:
            some = self._piv.block(first, 0, pivots, 1)
            self._moves[first, pivots] = laswp.emit_moves(self._launches, some, first, columns=1)
        return self._moves[first, pivots]

    def _first_postponed(self) -> int:
        """Return the first column whose rows below its block fit shared memory; the last one: none."""
        a, block = self._a, self._block
        count = min(a.rows, a.cols)
        if not self._permutes:
            return count
        room = self._config.shared_bytes // a.dtype.itemsize
        return min(-(-max(a.rows - block - room, 0) // block) * block, count)

    def _order_of(self, first: int, last: int) -> Operand:
        """Return the order of rows by some pivots, which is emitted once."""
        if (first, last) not in self._orders:
            self._orders[first, last] = self._emit_orders(first, last, last - first)
        return self._orders[first, last]

    def _emit_orders(self, first: int, last: int, every: int) -> Operand:
        """Emit the orders by the pivots before `last`, from `first` on and from `every` later ones on."""
        config = FIXED[pivot_order.STEM].fixed_config("s")
        count, rows = last - first, self._a.rows - first
        orders = laswp.moves_scratch(self._launches, -(-count // every) * rows, 1)
        pivots, chunk = self._piv.block(first, 0, count, 1), config.chunk(count, every)

        def integers(pivots: Operand, _: Operand) -> tuple[int, ...]:
            return count, first, rows, every, chunk, laswp.words(pivots)[0]

        source, blocks = pivot_order.source(config), config.grid(rows)
        self._launches.emit(source, blocks, (pivots, orders), integers, ())
        return orders

    def _permute(self, orders: Operand, a: Operand, block: int = 0) -> None:
        """Emit the rows of A in another order, of blocks of columns in one of their own."""
        dtype = a.dtype
        column_bytes = (a.rows - block) * dtype.itemsize
        config = self._config.specialize(column_bytes)
        columns, reals = config.columns(column_bytes, a.cols, self._multiprocessors), dtype.reals_per_element

        def integers(a: Operand, _: Operand) -> tuple[int, ...]:
            return a.rows, a.cols, columns, block, reals - 1, a.col_stride * reals

        blocks = -(-a.cols // columns)
        self._launches.emit(permute_rows.source(config), blocks, (a, orders), integers, ())
