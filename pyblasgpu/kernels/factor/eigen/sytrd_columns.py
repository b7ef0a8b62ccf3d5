"""Columns of a matrix that `sytrd_resident` keeps in registers: the rows are spread over lanes.

Element ``c ROWS + a`` of a thread is in row ``32 a + lane`` and column ``slot + SLOTS c``. A slot is a warp
of a block of the cluster. All that indexes registers is constant, so the columns that are left, and their
rows, are those of a phase of SLOTS steps. v, w and x of a row are neighbours in shared memory, a triple.

Where registers do not hold all columns, the first ones of a warp are in shared memory: they are done first.
A thread has places of its own there, neighbouring ones of neighbouring lanes.

A matrix of a smaller order is at the end of one of the largest order, whose first rows and columns, `skip` of
them, are not there. So it takes the last steps, which have the fewest columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ...common.kernel_config import WARP
from .rotation import barrier

__all__ = ["TRIPLE", "column_loader", "stepper"]

TRIPLE = 4  # elements of a row's triple in shared memory, the last one empty
VECTOR_BYTES = 16


def column_loader(config: Any) -> Callable:
    """``load(0, tile, stored, a, a_rs, a_cs, factor, is_bad, conj, skip, slot, lane)``: columns of A times
    `factor`, by its lower triangle; zeros where A has none, and where A `is_bad`.
    """
    facts, ROWS, SLOTS, ORDER = config.dtype_facts, config.ROWS, config.SLOTS, config.ORDER
    STORED = config.STORED
    REALS, COMPLEX, real, int64 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int64,
    )
    read, select = ptx.load_global(1, False), ptx.select

    def of_column(stores: bool) -> Callable:
        """A column in shared memory, or in registers."""
        put = _storer(config)

        @device_function
        def element(k, tile, stored, a, a_rs, a_cs, factor, is_bad, conj, skip, j, c, lane):
            i, at = lane + k * WARP - skip, 0 if stores else ((c - STORED) * ROWS + k) * REALS
            x = cuda.local.array(REALS, real) if stores else tile
            row, col = max(i, j), min(i, j)
            is_there = (col >= 0) & (row < ORDER - skip) & (not is_bad)
            of = (int64(row) * a_rs + int64(col) * a_cs) * REALS
            for part in range(REALS):
                read(x, at + part, a, of + part, is_there)
                x[at + part] *= factor
            if COMPLEX:
                im = select(i == j, real(0), x[at + 1])
                x[at + 1] = select((conj != 0) != (i < j), -im, im)
            if stores:
                put(stored, c * ROWS + k, x, 0)

        elements = unrolled(ROWS, element)

        @device_function
        def column(c, tile, stored, a, a_rs, a_cs, factor, is_bad, conj, skip, slot, lane):
            at = slot + c * SLOTS - skip
            elements(0, tile, stored, a, a_rs, a_cs, factor, is_bad, conj, skip, at, c, lane)

        return column

    columns = unrolled(STORED, of_column(True)) if STORED else None
    rest = unrolled(config.COLS - STORED, of_column(False))
    if columns is None:
        return rest

    @device_function
    def load(c, tile, stored, a, a_rs, a_cs, factor, is_bad, conj, skip, slot, lane):
        columns(c, tile, stored, a, a_rs, a_cs, factor, is_bad, conj, skip, slot, lane)
        rest(c + STORED, tile, stored, a, a_rs, a_cs, factor, is_bad, conj, skip, slot, lane)

    return load


def _storer(config: Any) -> Callable:
    """``put(stored, number, x, at)``: an element of a thread in shared memory."""
    REALS, THREADS = config.dtype_facts.reals_per_element, WARP * config.WARPS

    @device_function
    def put(stored, number, x, at):
        for part in range(REALS):
            stored[(number * REALS + part) * THREADS] = x[at + part]

    return put


def _taker(config: Any) -> Callable:
    """``take(x, at, stored, number)``: an element of a thread from shared memory."""
    REALS, THREADS = config.dtype_facts.reals_per_element, WARP * config.WARPS

    @device_function
    def take(x, at, stored, number):
        for part in range(REALS):
            x[at + part] = stored[(number * REALS + part) * THREADS]

    return take


def _phase(config: Any, number: int) -> Callable:
    """The steps of which the next column is register column `number` of its slot."""
    facts, ROWS, SLOTS, ORDER = config.dtype_facts, config.ROWS, config.SLOTS, config.ORDER
    GROUP, STORED, put, take = config.GROUP, config.STORED, _storer(config), _taker(config)
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
    def element(a, tile, y, rows, z, at):
        of = a * 2 * REALS
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
    def keep(a, tile, stored, column, lane):
        if number < STORED:
            x = cuda.local.array(REALS, real)
            take(x, 0, stored, number * ROWS + a)
            store(column, int32((lane + a * WARP) * REALS), x, 0)
        else:
            store(column, int32((lane + a * WARP) * REALS), tile, ((number - STORED) * ROWS + a) * REALS)

    def of_rows(first: int, count: int) -> Callable:
        """A group of rows: all columns."""

        @device_function
        def held(a, tile, y, rows, z, c):
            element(a, tile, y, rows, z, ((c - STORED) * ROWS + a) * REALS)

        @device_function
        def kept(a, stored, y, rows, z, c):
            x = cuda.local.array(REALS, real)
            take(x, 0, stored, c * ROWS + a)
            element(a, x, y, rows, z, 0)
            put(stored, c * ROWS + a, x, 0)

        begins, helds, kepts, ends = (unrolled(count, each) for each in (begin, held, kept, end))

        @device_function
        def product(c, tile, stored, y, rows, z, vectors, at):
            load_triple(z, 0, vectors, int32(at + c * (SLOTS * STEP)))
            if c < STORED:
                kepts(first, stored, y, rows, z, c)
            else:
                helds(first, tile, y, rows, z, c)

        products = unrolled(config.COLS - number, product)

        @device_function
        def multiply(tile, stored, y, rows, z, vectors, parts, slot, warp, lane):
            begins(first, y, rows, vectors, lane)
            products(number, tile, stored, y, rows, z, vectors, int32(slot * STEP))
            ends(first, y, parts, warp, lane)

        return multiply

    groups = [(at, min(GROUP, ROWS - at)) for at in range(FIRST, ROWS, GROUP)]
    multiply = in_order([of_rows(*group) for group in groups])
    keeps = unrolled(ROWS - FIRST, keep)

    @device_function
    def phase(tile, stored, y, rows, z, vectors, parts, column, skip, slot, warp, lane):
        q = int32(max(number * SLOTS, skip))
        while q < LAST:
            sync()
            multiply(tile, stored, y, rows, z, vectors, parts, slot, warp, lane)
            if slot == q - number * SLOTS:
                keeps(FIRST, tile, stored, column, lane)
            sync()
            q = int32(q + 1)

    return phase


def stepper(config: Any) -> Callable:
    """``run(tile, stored, y, rows, z, vectors, parts, column, skip, slot, warp, lane)``: all steps of a warp
    with columns. A step takes off v and w. It leaves products with x in `parts`, the next column in `column`.
    """
    return in_order([_phase(config, number) for number in range(config.COLS)])
