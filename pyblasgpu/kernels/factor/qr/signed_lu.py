"""Part of `orhr_leaf`: LU without pivots of Q - S R2 in shared memory, where S is found on the way.

The sign of a row is minus that of its pivot in what is left of Q. Four columns are done between two barriers.
The first threads factor the four-by-four block of pivots themselves, each for a row of L or a column of W.
All then update what is right of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....types import Dtype
from ..reciprocal import reciprocal

__all__ = ["PIVOTS", "factorizer", "row_reader"]

PIVOTS = 4  # columns between barriers
VECTOR = 16  # bytes of a load from shared memory


def row_reader(config: Any) -> tuple[Callable, Callable]:
    """``read(0, x, second, ld, i, n, t)``: element t of four rows of R2 from i on, of columns of R2^H, and
    zeros. ``keep(0, rows, x, i, n, t)``: the same conjugated, and ones beyond column n, to shared memory.
    """
    REALS, COMPLEX = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex
    real, load, select = ptx.REALS[config.dtype_facts.real], ptx.load_global(1, False), ptx.select
    SPAN = PIVOTS * REALS

    @device_function
    def read(q, x, second, ld, i, n, t):
        row = i + q
        for part in range(REALS):
            at = (row * ld + t) * REALS + part
            load(x, q * REALS + part, second, at, (row <= t) & (t < n))

    @device_function
    def keep(q, rows, x, i, n, t):
        at = t * SPAN + q * REALS
        rows[at] = select((i + q == t) & (t >= n), real(1), x[q * REALS])
        if COMPLEX:
            rows[at + 1] = -x[q * 2 + 1]

    return unrolled(PIVOTS, read), unrolled(PIVOTS, keep)


def _less_product(facts: Dtype) -> Callable:
    """``subtract(x, i, y, j, z, k)``: x[i] -= y[j] z[k]."""
    COMPLEX = facts.is_complex

    @device_function
    def subtract(x, i, y, j, z, k):
        if COMPLEX:
            x[i] = x[i] - y[j] * z[k] + y[j + 1] * z[k + 1]
            x[i + 1] = x[i + 1] - y[j] * z[k + 1] - y[j + 1] * z[k]
        else:
            x[i] -= y[j] * z[k]

    return subtract


def _times(facts: Dtype) -> Callable:
    """``multiply(x, i, y, j)``: x[i] *= y[j]."""
    COMPLEX = facts.is_complex

    @device_function
    def multiply(x, i, y, j):
        re = x[i] * y[j]
        if COMPLEX:
            re -= x[i + 1] * y[j + 1]
            x[i + 1] = x[i] * y[j + 1] + x[i + 1] * y[j]
        x[i] = re

    return multiply


def _inverter(facts: Dtype) -> Callable:
    """``invert(inverses, x, p, at, sign)``: inverses[x] = 1 / p[at], whose real part has a `sign`. A pivot is
    the sum of an element of Q1 and one of R2 near one, so neither tiny nor huge.
    """
    COMPLEX, quick = facts.is_complex, reciprocal(facts)

    @device_function
    def invert(inverses, x, p, at, sign):
        if COMPLEX:
            r = quick(p[at] * p[at] + p[at + 1] * p[at + 1])
            inverses[x], inverses[x + 1] = p[at] * r, -p[at + 1] * r
        else:
            inverses[x] = sign * quick(abs(p[at]))

    return invert


def _pivot_steps(facts: Dtype) -> Callable:
    """``factor(p, u, x, inverses, signs)``: the block of pivots `p` less signs times that of R2, `u`, both by
    columns, factored; the row `x` becomes one of L.
    """
    REALS, real, select = facts.reals_per_element, ptx.REALS[facts.real], ptx.select
    invert, subtract, multiply = _inverter(facts), _less_product(facts), _times(facts)

    def at(row: int, column: int) -> int:
        return (column * PIVOTS + row) * REALS

    def pivot(q: int) -> Callable:
        DIAGONAL, Q = at(q, q), q * REALS

        @device_function
        def step(p, u, x, inverses, signs):
            signs[q] = select(p[DIAGONAL] >= real(0), real(-1), real(1))
            p[DIAGONAL] -= signs[q] * u[DIAGONAL]
            invert(inverses, Q, p, DIAGONAL, -signs[q])
            multiply(x, Q, inverses, Q)

        return step

    def right(q: int, c: int) -> Callable:
        """Element (q, c) of W, and column c of the row."""
        HERE, Q, C = at(q, c), q * REALS, c * REALS

        @device_function
        def step(p, u, x, inverses, signs):
            for part in range(REALS):
                p[HERE + part] -= signs[q] * u[HERE + part]
            subtract(x, C, x, Q, p, HERE)

        return step

    def below(q: int, r: int) -> Callable:
        HERE, Q = at(r, q), q * REALS

        @device_function
        def step(p, u, x, inverses, signs):
            multiply(p, HERE, inverses, Q)

        return step

    def update(q: int, r: int, c: int) -> Callable:
        HERE, LEFT, ABOVE = at(r, c), at(r, q), at(q, c)

        @device_function
        def step(p, u, x, inverses, signs):
            subtract(p, HERE, p, LEFT, p, ABOVE)

        return step

    steps = []
    for q in range(PIVOTS):
        after = range(q + 1, PIVOTS)
        steps += [pivot(q), *(right(q, c) for c in after), *(below(q, r) for r in after)]
        steps += [update(q, r, c) for r in after for c in after]
    return in_order(steps)


def _column_steps(facts: Dtype) -> Callable:
    """``solve(y, p, u, signs)``: a column `y` right of the pivots, less signs times that of R2, `u`, becomes
    one of W.
    """
    REALS, subtract = facts.reals_per_element, _less_product(facts)

    def row(q: int) -> Callable:
        @device_function
        def step(y, p, u, signs):
            for part in range(REALS):
                y[q * REALS + part] -= signs[q] * u[q * REALS + part]

        return step

    def update(q: int, r: int) -> Callable:
        FROM, TO, LEFT = q * REALS, r * REALS, (q * PIVOTS + r) * REALS

        @device_function
        def step(y, p, u, signs):
            subtract(y, TO, p, LEFT, y, FROM)

        return step

    steps = []
    for q in range(PIVOTS):
        steps += [row(q), *(update(q, r) for r in range(q + 1, PIVOTS))]
    return in_order(steps)


def _updater(config: Any) -> Callable:
    """``update(s, x, i, row, group)``: row `x` of L times four rows of W from i on, off a row after these."""
    facts, LD, GROUPS, ORDER = config.dtype_facts, config.ld, config.GROUPS, config.ORDER
    columns = max(VECTOR // facts.itemsize, 2)  # at a time
    REALS, real, int32, STEP = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        columns * GROUPS,
    )
    SPAN, WIDTH, subtract = PIVOTS * facts.reals_per_element, VECTOR // facts.real_size, _less_product(facts)
    LAST = (columns - 1) * GROUPS
    LOCAL, ROWS, load_rows = columns * REALS, columns * SPAN, ptx.load_shared(WIDTH, SPAN // WIDTH, WIDTH)

    @device_function
    def load(k, z, w, s, i, row, c):
        at = (c + k * GROUPS) * LD
        for part in range(REALS):
            z[k * REALS + part] = s[(row + at) * REALS + part]
        load_rows(w, k * SPAN, s, (i + at) * REALS)

    @device_function
    def store(k, z, w, s, x, row, c):
        at = c + k * GROUPS
        for q in range(PIVOTS):
            subtract(z, k * REALS, x, q * REALS, w, k * SPAN + q * REALS)
        for part in range(REALS):
            s[(row + at * LD) * REALS + part] = z[k * REALS + part]

    loads, stores = unrolled(columns, load), unrolled(columns, store)

    @device_function
    def update(s, x, i, row, group):
        z, w = cuda.local.array(LOCAL, real), cuda.local.array(ROWS, real)
        c = int32(i + PIVOTS + group)
        while c < ORDER - LAST:
            loads(0, z, w, s, i, row, c)
            stores(0, z, w, s, x, row, c)
            c = int32(c + STEP)
        while c < ORDER:
            load(0, z, w, s, i, row, c)
            store(0, z, w, s, x, row, c)
            c = int32(c + GROUPS)

    return update


def factorizer(config: Any) -> Callable:
    """``factor(s, rows, signs, second, ld, n, row, group, t)``: L and W over the square, and the signs. The
    first four rows of R2 are in `rows`, by columns.
    """
    facts, ORDER, LD = config.dtype_facts, config.ORDER, config.ld
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    SPAN, TILE, WIDTH = PIVOTS * REALS, PIVOTS * PIVOTS * REALS, VECTOR // facts.real_size
    load_tile, FIRST = ptx.load_shared(WIDTH, SPAN // WIDTH, WIDTH), min(config.GROUPS, 2)
    (read_rows, keep_rows), update = row_reader(config), _updater(config)
    factor_pivots, solve_column = _pivot_steps(facts), _column_steps(facts)

    @device_function
    def load_block(c, p, u, s, rows, i):
        """Column c of the block of pivots, and of R2."""
        load_tile(p, c * SPAN, s, (i + (i + c) * LD) * REALS)
        load_tile(u, c * SPAN, rows, (i + c) * SPAN)

    @device_function
    def load_row(q, x, s, row, i):
        for part in range(REALS):
            x[q * REALS + part] = s[(row + (i + q) * LD) * REALS + part]

    @device_function
    def store_row(q, x, s, row, i):
        for part in range(REALS):
            s[(row + (i + q) * LD) * REALS + part] = x[q * REALS + part]

    @device_function
    def store_block(c, p, s, i):
        for k in range(SPAN):
            s[(i + (i + c) * LD) * REALS + k] = p[c * SPAN + k]

    load_blocks, load_all, store_all = (unrolled(PIVOTS, each) for each in (load_block, load_row, store_row))
    store_blocks = unrolled(PIVOTS, store_block)

    @device_function
    def factor(s, rows, signs, second, ld, n, row, group, t):
        p, u, x = cuda.local.array(TILE, real), cuda.local.array(TILE, real), cuda.local.array(SPAN, real)
        y, ahead, own = (
            cuda.local.array(SPAN, real),
            cuda.local.array(SPAN, real),
            cuda.local.array(PIVOTS, real),
        )
        inverses, i = cuda.local.array(SPAN, real), int32(0)
        while i < n:
            # (a) the pivots, and a row of L or a column of W
            if t < FIRST * ORDER:
                read_rows(0, ahead, second, ld, int32(i + PIVOTS), n, t)  # before they are needed
                load_blocks(0, p, u, s, rows, i)
                if t < ORDER:
                    load_all(0, x, s, row, i)
                factor_pivots(p, u, x, inverses, own)
                if row >= i + PIVOTS:
                    if t < ORDER:
                        store_all(0, x, s, row, i)
                    if t >= (FIRST - 1) * ORDER:
                        load_tile(y, 0, s, (i + row * LD) * REALS)
                        load_tile(u, 0, rows, row * SPAN)
                        solve_column(y, p, u, own)
                        for k in range(SPAN):
                            s[(i + row * LD) * REALS + k] = y[k]
            cuda.syncthreads()

            # (b) what is right of them
            if row >= i + PIVOTS:
                load_all(0, x, s, row, i)
                update(s, x, i, row, group)
            if t == 0:
                store_blocks(0, p, s, i)
                for q in range(PIVOTS):
                    signs[i + q] = own[q]
            if t < ORDER:
                keep_rows(0, rows, ahead, int32(i + PIVOTS), n, t)
            cuda.syncthreads()
            i = int32(i + PIVOTS)

    return factor
