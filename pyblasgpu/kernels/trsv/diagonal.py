"""Solve of the diagonal block of `trsv` by a block of threads: by groups of rows, or carefully.

The columns of the block are divided by the diagonal beforehand, T'_ij = T_ij / t_jj, and what is carried is
y_j = t_jj x_j: a row then costs one multiply-add, and the divisions of y are at the end, all at once. The
errors are those of a substitution with two more roundings in each product, of T' and of x.
"""

from __future__ import annotations

from ...gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ..common.substitution import diagonal_inverter, divider, quotient, subtracter
from .config import WARP, Trsv

__all__ = ["by_exact_division", "by_groups", "last_divider", "own_row", "preparer"]


def own_row(config: Trsv):
    """``put(0, panel, y, t)``: a thread's row to a panel in shared memory; ``take(0, y, panel, t)``: back."""
    SIZE = config.COLS * config.dtype_facts.reals_per_element

    @device_function
    def put(x, panel, y, t):
        panel[t * SIZE + x] = y[x]

    @device_function
    def take(x, y, panel, t):
        y[x] = panel[t * SIZE + x]

    return unrolled(SIZE, put), unrolled(SIZE, take)


def preparer(config: Trsv):
    """``prepare(diagonal, inverse, t, rows, unit)``: the columns of the diagonal block divided by the
    diagonal, which stays, and its inverses; whether all are safe, for all threads alike. A barrier has to
    follow.
    """
    facts, ROWS, LD, THREADS = config.dtype_facts, config.ROWS, config.ld, config.threads
    REALS, invert = facts.reals_per_element, diagonal_inverter(facts, ROWS, LD + 1)
    divided = quotient(facts, ptx.inlined, False)

    @device_function
    def divide_element(diagonal, inverse, at, j):
        d, r = j * (LD + 1) * REALS, j * REALS
        if REALS == 2:
            re, im = diagonal[at], diagonal[at + 1]
            re, im = divided(re, im, diagonal[d], diagonal[d + 1], inverse[r], inverse[r + 1])
            diagonal[at], diagonal[at + 1] = re, im
        else:
            diagonal[at] = divided(diagonal[at], diagonal[d], inverse[r])

    @device_function
    def prepare(diagonal, inverse, t, rows, unit):
        is_safe = cuda.syncthreads_and(invert(diagonal, inverse, t, rows, unit)) != 0
        if is_safe:
            for element in range(t, ROWS * ROWS, THREADS):
                i, j = element % ROWS, element // ROWS
                if i > j and i < rows:
                    divide_element(diagonal, inverse, (i + j * LD) * REALS, j)
        return is_safe

    return prepare


def _group(config: Trsv):
    """Return the functions by which a thread solves a group of rows and updates its own row.

    ``load(corner, line, own, here)``: the corner of T' that the group meets itself in, column by column, and
    the line of T' below it that is of the own row; ``solve(y, group, corner, line)``.
    """
    REALS, COLS, GROUP, LD = config.dtype_facts.reals_per_element, config.COLS, config.GROUP, config.ld
    WIDTH = 16 // config.dtype_facts.real_size
    load_element, take_off = ptx.load_shared(REALS), subtracter(config.dtype_facts)

    def column_loader(j):
        start = (j + 1) * REALS // WIDTH * WIDTH  # a vector that holds the first one below the diagonal
        load = ptx.load_shared(WIDTH, (GROUP * REALS - start) // WIDTH, WIDTH)

        @device_function
        def load_column(corner, line, own, here):
            if j + 1 < GROUP:
                load(corner, j * GROUP * REALS + start, here, j * LD * REALS + start)
            load_element(line, j * REALS, own, j * LD * REALS)

        return load_column

    def row_solver(j):
        @device_function
        def subtract_below(e, group, corner):
            i, c = j + 1 + e // COLS, e % COLS
            x, solved = (i * COLS + c) * REALS, (j * COLS + c) * REALS
            take_off(group, x, corner, (j * GROUP + i) * REALS, group, solved)

        @device_function
        def own(c, y, group, line):
            take_off(y, c * REALS, line, j * REALS, group, (j * COLS + c) * REALS)

        spread, update = unrolled((GROUP - 1 - j) * COLS, subtract_below), unrolled(COLS, own)

        @device_function
        def solve_row(y, group, corner, line):
            spread(0, group, corner)
            update(0, y, group, line)

        return solve_row

    return (in_order([make(j) for j in range(GROUP)]) for make in (column_loader, row_solver))


def by_groups(config: Trsv):
    """``substitute(y, group, corner, line, diagonal, pending, solution, t)``: the block row solved, but for
    the division by the diagonal; in `solution`. `y` is a thread's row, which is lost.

    A group passes through `pending` from the threads that have its rows to all that have rows from there on.
    Loads of T' are prefetched by a group.
    """
    facts, ROWS, COLS, GROUP = config.dtype_facts, config.ROWS, config.COLS, config.GROUP
    REALS, LD, SIZE = facts.reals_per_element, config.ld, COLS * facts.reals_per_element
    offset, int32 = ptx.offset, ptx.types.int32
    WIDTH = 16 // facts.real_size
    load, solve = _group(config)
    load_group = ptx.load_shared(WIDTH, GROUP * SIZE // WIDTH, WIDTH)
    store_group = ptx.store_shared(WIDTH)

    @device_function
    def keep(v, solution, group, first):
        store_group(solution, first * SIZE + v * WIDTH, group, v * WIDTH)

    (put, _), keep_group = own_row(config), unrolled(GROUP * SIZE // WIDTH, keep)

    @device_function
    def prefetch(corner, line, diagonal, first, t):
        columns = offset(diagonal, int32(first * LD) * REALS)
        load(corner, line, offset(columns, t * REALS), offset(columns, first * REALS))

    @device_function
    def substitute(y, group, corner, line, diagonal, pending, solution, t):
        if t < GROUP:
            put(0, pending, y, t)
        if t < ROWS:
            prefetch(corner, line, diagonal, int32(0), t)
        first = int32(0)
        while first < ROWS:
            cuda.syncthreads()
            after = int32(first + GROUP)
            if t < ROWS and t // WARP * WARP + WARP > first:
                load_group(group, 0, pending, first * SIZE)
                solve(y, group, corner, line)
                if after <= t and t < after + GROUP:
                    put(0, pending, y, t)
                if t == ROWS - 1:  # of the warp that is on the chain last
                    keep_group(0, solution, group, first)
                if after < ROWS:
                    prefetch(corner, line, diagonal, after, t)
            first = after
        cuda.syncthreads()

    return substitute


def last_divider(config: Trsv):
    """``divide(0, x, solution, diagonal, inverse, t)``: a row of X, of what is but not divided;
    ``is_finite(x)``: whether all of it is.
    """
    facts, COLS, LD = config.dtype_facts, config.COLS, config.ld
    REALS = facts.reals_per_element
    real, INFINITY = ptx.REALS[facts.real], float("inf")
    divided = quotient(facts, ptx.inlined, False)

    @device_function
    def divide(c, x, solution, diagonal, inverse, t):
        s, at, d, r = (t * COLS + c) * REALS, c * REALS, t * (LD + 1) * REALS, t * REALS
        if REALS == 2:
            re, im, t_re, t_im = solution[s], solution[s + 1], diagonal[d], diagonal[d + 1]
            x[at], x[at + 1] = divided(re, im, t_re, t_im, inverse[r], inverse[r + 1])
        else:
            x[at] = divided(solution[s], diagonal[d], inverse[r])

    @device_function
    def is_finite(x):
        finite = True
        for part in range(COLS * REALS):
            finite = finite & (abs(x[part]) < real(INFINITY))
        return finite

    return unrolled(COLS, divide), is_finite


def by_exact_division(config: Trsv):
    """``substitute(y, diagonal, solution, t, rows, unit)``: the block row solved with true divisions, a row
    after the other, from the diagonal block as it is; `y` becomes a thread's row of X.
    """
    facts, ROWS, COLS, LD = config.dtype_facts, config.ROWS, config.COLS, config.ld
    REALS = facts.reals_per_element
    divide, SIZE = divider(facts), COLS * facts.reals_per_element

    @device_function
    def solve_element(c, y, diagonal, solution, j, unit):
        x, d = c * REALS, j * (LD + 1) * REALS
        if not unit:
            divide(y, x, diagonal[d], diagonal[d + REALS - 1])
        for part in range(REALS):
            solution[j * SIZE + x + part] = y[x + part]

    @device_function
    def update_element(c, y, diagonal, solution, j, t):
        x, s, at = c * REALS, j * SIZE + c * REALS, (t + j * LD) * REALS
        t_re, t_im = diagonal[at], diagonal[at + REALS - 1]
        if REALS == 2:
            y[x] = y[x] - t_re * solution[s] + t_im * solution[s + 1]
            y[x + 1] = y[x + 1] - t_re * solution[s + 1] - t_im * solution[s]
        else:
            y[x] = y[x] - t_re * solution[s]

    solve_row, update_row = unrolled(COLS, solve_element), unrolled(COLS, update_element)

    @device_function
    def substitute(y, diagonal, solution, t, rows, unit):
        for j in range(rows):
            if t == j:
                solve_row(0, y, diagonal, solution, j, unit)
            cuda.syncthreads()
            if t > j and t < ROWS:
                update_row(0, y, diagonal, solution, j, t)

    return substitute
