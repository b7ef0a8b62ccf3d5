"""Columns of a matrix that `sytrd_resident` keeps in registers: the rows are spread over lanes.

Element ``c ROWS + a`` of a thread is in row ``32 a + lane`` and column ``slot + SLOTS c``. A slot is a warp
of a block of the cluster. All that indexes registers is constant, so the columns that are left, and their
rows, are those of a phase of SLOTS steps. v, w and x of a row are neighbours in shared memory, a triple.

A matrix of a smaller order is at the end of one of the largest order, whose first rows and columns, `skip` of
them, are not there. So it takes the last steps, which have the fewest columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, in_order, ptx, unrolled
from ...common.kernel_config import WARP
from .rotation import barrier

__all__ = ["TRIPLE", "column_loader", "stepper"]

TRIPLE = 4  # elements of a row's triple in shared memory, the last one empty
VECTOR_BYTES = 16


def column_loader(config: Any) -> Callable:
    """``load(0, tile, a, a_rs, a_cs, factor, is_bad, conj, skip, slot, lane)``: columns of A times `factor`,
    by its lower triangle; zeros where A has none, and where A `is_bad`.
    """
    facts, ROWS, SLOTS, ORDER = config.dtype_facts, config.ROWS, config.SLOTS, config.ORDER
    REALS, COMPLEX, real, int64 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int64,
    )
    read, select = ptx.load_global(1, False), ptx.select

    @device_function
    def element(k, tile, a, a_rs, a_cs, factor, is_bad, conj, skip, j, c, lane):
        i, at = lane + k * WARP - skip, (c * ROWS + k) * REALS
        row, col = max(i, j), min(i, j)
        is_there = (col >= 0) & (row < ORDER - skip) & (not is_bad)
        of = (int64(row) * a_rs + int64(col) * a_cs) * REALS
        for part in range(REALS):
            read(tile, at + part, a, of + part, is_there)
            tile[at + part] *= factor
        if COMPLEX:
            im = select(i == j, real(0), tile[at + 1])
            tile[at + 1] = select((conj != 0) != (i < j), -im, im)

    elements = unrolled(ROWS, element)

    @device_function
    def column(c, tile, a, a_rs, a_cs, factor, is_bad, conj, skip, slot, lane):
        elements(0, tile, a, a_rs, a_cs, factor, is_bad, conj, skip, slot + c * SLOTS - skip, c, lane)

    return unrolled(config.COLS, column)


def _phase(config: Any, number: int) -> Callable:
    """The steps of which the next column is register column `number` of its slot."""
    facts, ROWS, SLOTS, ORDER = config.dtype_facts, config.ROWS, config.SLOTS, config.ORDER
    GROUP = config.GROUP
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    STEP, WIDTH, FIRST = TRIPLE * REALS, VECTOR_BYTES // facts.real_size, number * SLOTS // WARP
    PAIR = min(WIDTH, 2 * REALS)
    sync, LAST = barrier(config.threads), min((number + 1) * SLOTS, ORDER)
    load_triple = ptx.load_shared(WIDTH, -(-3 * REALS // WIDTH), WIDTH)
    load_pair, store = ptx.load_shared(PAIR, 2 * REALS // PAIR, PAIR), ptx.store_shared(REALS)

    @device_function
    def begin(a, y, rows, vectors, lane):
        load_pair(rows, a * 2 * REALS, vectors, int32((lane + a * WARP) * STEP))
        for part in range(REALS):
            y[a * REALS + part] = real(0)

    @device_function
    def element(a, tile, y, rows, z, c):
        at, of = (c * ROWS + a) * REALS, a * 2 * REALS
        if COMPLEX:
            re = tile[at] - rows[of] * z[2] - rows[of + 1] * z[3] - rows[of + 2] * z[0] - rows[of + 3] * z[1]
            im = (
                tile[at + 1]
                - rows[of + 1] * z[2]
                + rows[of] * z[3]
                - rows[of + 3] * z[0]
                + rows[of + 2] * z[1]
            )
            tile[at], tile[at + 1] = re, im
            y[a * 2] += re * z[4] - im * z[5]
            y[a * 2 + 1] += re * z[5] + im * z[4]
        else:
            x = tile[at] - rows[of] * z[1] - rows[of + 1] * z[0]
            tile[at] = x
            y[a] += x * z[2]

    @device_function
    def end(a, y, parts, warp, lane):
        store(parts, int32((warp * ORDER + lane + a * WARP) * REALS), y, a * REALS)

    @device_function
    def keep(a, tile, column, lane):
        store(column, int32((lane + a * WARP) * REALS), tile, (number * ROWS + a) * REALS)

    def of_rows(first: int, count: int) -> Callable:
        """A group of rows: all columns."""
        begins, elements, ends = (unrolled(count, each) for each in (begin, element, end))

        @device_function
        def product(c, tile, y, rows, z, vectors, at):
            load_triple(z, 0, vectors, int32(at + c * (SLOTS * STEP)))
            elements(first, tile, y, rows, z, c)

        products = unrolled(config.COLS - number, product)

        @device_function
        def multiply(tile, y, rows, z, vectors, parts, slot, warp, lane):
            begins(first, y, rows, vectors, lane)
            products(number, tile, y, rows, z, vectors, int32(slot * STEP))
            ends(first, y, parts, warp, lane)

        return multiply

    groups = [(at, min(GROUP, ROWS - at)) for at in range(FIRST, ROWS, GROUP)]
    multiply = in_order([of_rows(*group) for group in groups])
    keeps = unrolled(ROWS - FIRST, keep)

    @device_function
    def phase(tile, y, rows, z, vectors, parts, column, skip, slot, warp, lane):
        q = int32(max(number * SLOTS, skip))
        while q < LAST:
            sync()
            multiply(tile, y, rows, z, vectors, parts, slot, warp, lane)
            if slot == q - number * SLOTS:
                keeps(FIRST, tile, column, lane)
            sync()
            q = int32(q + 1)

    return phase


def stepper(config: Any) -> Callable:
    """``run(tile, y, rows, z, vectors, parts, column, skip, slot, warp, lane)``: all steps of a warp with
    columns. A step takes off v and w, leaves products with x in `parts`, and the next column in `column`.
    """
    return in_order([_phase(config, number) for number in range(config.COLS)])
