"""Loads of T for warps that own columns of B: its diagonal tiles, divided row by row, the strips below them.

A strip is all that is below a diagonal tile. The Config has its layout in shared memory (``strip_steps``),
its lines padded, so that it is read without conflicts; the diagonal tiles are column-major, for substitution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...gpu.backend import device_function, ptx, unrolled
from ..common.substitution import column_reader, column_writer, inverter, quotient

if TYPE_CHECKING:
    from .config import TrsmConfig

__all__ = ["row_divider", "tile_starters"]


AT_ONCE = 4  # tiles that a thread begins to copy without a check in between


def _tiles_copier(
    config: TrsmConfig,
    threads: int,
    step_row: int,
    step_col: int,
    tiles: int,
    target_step: int,
    triangular: bool = False,
):
    """``copy(shared, source, t_rs, t_cs, t, source_step, rows, count, first)``: `count` of at most `tiles`
    tiles, `target_step` reals apart, asynchronously; neighbouring threads take neighbours in memory.

    T has `rows` rows left from the first tile on, BLK fewer from each next one; rows beyond are zeros. Of
    what is `triangular`, elements with ``i - j < first`` stay away: above the diagonal, and for 1 the
    diagonal.
    """
    facts, THREADS, BLK = config.dtype_facts, threads, config.BLK
    REALS, TOTAL = facts.reals_per_element, BLK * BLK
    offset, int32, quotient = ptx.offset, ptx.types.int32, ptx.quotient
    copy_elements = _element_copier(facts.itemsize, tiles, target_step)

    @device_function
    def start(shared, source, t_rs, t_cs, t, source_step, rows, count, first):
        element, last, by_rows = t, int32((count - 1) * BLK), abs(t_rs) <= abs(t_cs)
        while element < TOTAL:
            slow = quotient(element, BLK)
            fast = int32(element - slow * BLK)
            i, j = (fast, slow) if by_rows else (slow, fast)
            if not triangular or i - j >= first:
                inside = int32(count if rows - i > last else count - 1)
                here = offset(source, (i * t_rs + j * t_cs) * REALS)
                target = offset(shared, int32((i * step_row + j * step_col) * REALS))
                copy_elements(target, here, source_step, inside, count)
            element = int32(element + THREADS)

    return start


def _element_copier(size: int, tiles: int, target_step: int, first: int = 0):
    """``copy_elements(target, here, source_step, inside, count)``: an element of each of `count` tiles, from
    the `first` on; those past `inside` become 0. Straight-line but for the check, as few threads load much.
    """
    if first >= tiles:
        return device_function(_no_more)
    many, go_on = min(AT_ONCE, tiles - first), _element_copier(size, tiles, target_step, first + AT_ONCE)
    copy, offset, int32 = ptx.copy_async(size), ptx.offset, ptx.types.int32

    @device_function
    def copy_whole(k, target, here, source_step):
        tile = first + k
        copy(target, tile * target_step, offset(here, tile * source_step), 0, int32(size))

    @device_function
    def copy_part(k, target, here, source_step, inside):
        tile = first + k
        valid = int32(size if tile < inside else 0)
        copy(target, tile * target_step, offset(here, tile * source_step), 0, valid)

    copy_all, copy_last = unrolled(many, copy_whole), unrolled(many, copy_part)

    @device_function
    def copy_elements(target, here, source_step, inside, count):
        if inside >= first + many:
            copy_all(0, target, here, source_step)
            go_on(target, here, source_step, inside, count)
        elif first < count:  # so these are the last ones
            copy_last(0, target, here, source_step, inside)

    return copy_elements


def _no_more(target, here, source_step, inside, count):
    """There are no more tiles."""


def tile_starters(config: TrsmConfig, t_by_rows: bool):
    """``start_diagonals(shared, tri, t_rs, t_cs, t, n, tiles, unit)`` and ``start_strip(stage, tri, t_rs,
    t_cs, t, n, tiles, j)``: begin to load T, a group of copies each.
    """
    REALS, BLK = config.dtype_facts.reals_per_element, config.BLK
    STEP_ROW, STEP_COL = config.strip_steps(t_by_rows)
    copy_diagonal = _tiles_copier(config, config.threads, 1, BLK, config.tiles, BLK * BLK * REALS, True)
    copy_strip = _tiles_copier(
        config, config.loading_threads, STEP_ROW, STEP_COL, config.tiles - 1, BLK * STEP_ROW * REALS
    )
    ALL_LOAD, FIRST = config.PRODUCER_WARPS == 0, config.threads - config.loading_threads
    commit, int32, offset = ptx.commit_async, ptx.types.int32, ptx.offset

    @device_function
    def start_diagonals(shared, tri, t_rs, t_cs, t, n, tiles, unit):
        step = BLK * (t_rs + t_cs) * REALS
        copy_diagonal(shared, tri, t_rs, t_cs, t, step, n, tiles, 1 if unit else 0)
        commit()

    @device_function
    def start_strip(stage, tri, t_rs, t_cs, t, n, tiles, j):
        first_below = (j + 1) * BLK
        strip, step = offset(tri, (first_below * t_rs + j * BLK * t_cs) * REALS), BLK * t_rs * REALS
        if ALL_LOAD or t >= FIRST:
            rows, count = int32(n - first_below), int32(tiles - 1 - j)
            copy_strip(stage, strip, t_rs, t_cs, int32(t - FIRST), step, rows, count, 0)
        commit()  # by all threads, which count their groups alike

    return start_diagonals, start_strip


def row_divider(config: TrsmConfig):
    """``divide(line, diagonals, inverse, t, n, tiles)``: every row of the diagonal tiles by its diagonal
    element, which stays, with its inverse; a thread a row. Whether all divisions of this thread are safe.
    """
    facts, BLK, THREADS = config.dtype_facts, config.BLK, config.threads
    real, REALS, LINE = ptx.REALS[facts.real], facts.reals_per_element, BLK * facts.reals_per_element
    invert, divided = inverter(facts), quotient(facts, ptx.inlined, False)
    int32, offset = ptx.types.int32, ptx.offset
    read, write = (make(REALS, BLK, LINE) for make in (column_reader, column_writer))

    @device_function
    def divide_element(j, line, t_re, t_im, r_re, r_im, row):
        x = j * REALS
        if j != row:
            if REALS == 2:
                line[x], line[x + 1] = divided(line[x], line[x + 1], t_re, t_im, r_re, r_im)
            else:
                line[x] = divided(line[x], t_re, r_re)

    divide_line = unrolled(BLK, divide_element)

    @device_function
    def divide(line, diagonals, inverse, t, n, tiles):
        safe = int32(1)
        for target in range(t, tiles * BLK, THREADS):
            row, x = target % BLK, target * REALS
            tile = offset(diagonals, (target - row) * LINE)
            at = row * (BLK + 1) * REALS
            if target < n:
                safe = safe & invert(inverse, x, tile, at)
            else:
                for part in range(REALS):
                    inverse[x + part] = real(0)
            read(line, offset(tile, row * REALS))
            divide_line(0, line, tile[at], tile[at + REALS - 1], inverse[x], inverse[x + REALS - 1], row)
            write(line, offset(tile, row * REALS))
        return safe

    return divide
