"""Lookahead: a block of columns is factored while the step before it still updates what is right of it.

    side stream's lane            the call's lane
    factor block 0
    update block 1, factor it     update the others by block 0
    update block 2, factor it     update the others by block 1
    ...

A block is updated by all blocks before it, in their order, and then factored. So what is computed does not
depend on how the lanes run. The others are updated once the next block is: then its panel is started first,
and finds multiprocessors. The last block is factored on the call's lane.

A wide block has two parts: while the first one is factored, the call's lane updates the second one before all
others.
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
    factor_rest: Callable[[int], None] | None = None,
) -> None:
    """Emit a factorization by blocks of columns.

    Parameters
    ----------
    blocks : int
        Number of blocks of columns. One more, which may be empty, has the columns that have no factors of
        their own.
    factor : callable
        ``factor(j)`` emits the factors of block j, or of its first part, which has been updated by all blocks
        before it.
    update : callable
        ``update(j, first, end)`` emits what block j does to the blocks from `first` on, before `end`; where
        blocks have two parts, these are numbered.
    finish : callable
        ``finish(j)`` emits what block j does to the blocks before it.
    tiles_per_block : int
        Tiles after which blocks of updates give a multiprocessor back (`LaunchList.tiles_per_block`).
    factor_rest : callable, optional
        ``factor_rest(j)`` emits the factors of the second part of block j; without it blocks have one.
    """
    parts = 1 if factor_rest is None else 2
    updated, last, end = launches.mark(), blocks - 1, blocks * parts + 1

    def factor_second(j: int) -> None:
        if factor_rest is not None:
            factor_rest(j)

    if last:
        with launches.on_side_stream():
            launches.wait_for(updated)
            factor(0)
            factor_second(0)
    for j in range(last):
        first = (j + 1) * parts
        with launches.on_side_stream():
            launches.wait_for(updated)
            update(j, first, first + 1)
            ahead = launches.mark()
            if j + 1 < last:
                factor(j + 1)
        launches.wait_for(ahead)
        with launches.yielding(tiles_per_block):
            if parts > 1:
                update(j, first + 1, first + 2)
        if parts > 1 and j + 1 < last:
            rest = launches.mark()
            with launches.on_side_stream():
                launches.wait_for(rest)
                factor_second(j + 1)
        with launches.yielding(tiles_per_block):
            update(j, first + parts, end)
        updated = launches.mark()
        finish(j)
    factor(last)
    factor_second(last)
    update(last, end - 1, end)
    finish(last)
