"""Lookahead: a block of columns is factored while the step before it still updates what is right of it.

    side stream's lane            the call's lane
    factor block 0
    update block 1, factor it     update the others by block 0
    update block 2, factor it     update the others by block 1
    ...

A block is updated by all blocks before it, in their order, and then factored. So what is computed does not
depend on how the lanes run. The others are updated once the next block is: then its panel is started first,
and finds multiprocessors. The last block is factored on the call's lane.
"""

from __future__ import annotations

from collections.abc import Callable

from ..launch_list import LaunchList

__all__ = ["emit_lookahead"]


def emit_lookahead(
    launches: LaunchList,
    blocks: int,
    factor: Callable[[int], None],
    update: Callable[[int, int, int], None],
    finish: Callable[[int], None],
    tiles_per_block: int,
) -> None:
    """Emit a factorization by blocks of columns.

    Parameters
    ----------
    blocks : int
        Number of blocks of columns. One more, which may be empty, has the columns that have no factors of
        their own.
    factor : callable
        ``factor(j)`` emits the factors of block j, which has been updated by all blocks before it.
    update : callable
        ``update(j, first, end)`` emits what block j does to the blocks from `first` on, before `end`.
    finish : callable
        ``finish(j)`` emits what block j does to the blocks before it.
    tiles_per_block : int
        Tiles after which blocks of updates give a multiprocessor back (`LaunchList.tiles_per_block`).
    """
    updated, last = launches.mark(), blocks - 1
    if last:
        with launches.on_side_stream():
            launches.wait_for(updated)
            factor(0)
    for j in range(last):
        with launches.on_side_stream():
            launches.wait_for(updated)
            update(j, j + 1, j + 2)
            ahead = launches.mark()
            if j + 1 < last:
                factor(j + 1)
        launches.wait_for(ahead)
        with launches.yielding(tiles_per_block):
            update(j, j + 2, blocks + 1)
        finish(j)
        updated = launches.mark()
    factor(last)
    update(last, blocks, blocks + 1)
    finish(last)
