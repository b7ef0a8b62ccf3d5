"""Sums of `trsv` off the diagonal: tiles of T times solved unknowns, and their reduction over threads."""

from __future__ import annotations

from typing import Any

from ...gpu.backend import device_function, in_order, ptx, unrolled
from .config import Trsv

__all__ = ["adder", "right_sides", "tiles"]


def tiles(config: Trsv):
    """``fetch(0, tile, mine, t_rs, t_cs, left)``: a thread's part of a tile that begins at `mine`, with so
    many rows left; ``multiply(acc, tile, x, panel)``: acc += tile times its part of a panel.

    A thread has every DIM_M-th row and every DIM_K-th column.
    """
    REALS, COLS, THR_M, THR_K = config.dtype_facts.reals_per_element, config.COLS, config.THR_M, config.THR_K
    DIM_M, DIM_K = config.DIM_M, config.DIM_K
    WIDTH = min(COLS * REALS, 16 // config.dtype_facts.real_size)
    load = ptx.load_global(REALS, False)
    load_x = ptx.load_shared(WIDTH, COLS * REALS // WIDTH, WIDTH)

    @device_function
    def fetch_element(e, tile, mine, t_rs, t_cs, left):
        row, col = e % THR_M * DIM_M, e // THR_M * DIM_K
        load(tile, e * REALS, mine, (row * t_rs + col * t_cs) * REALS, row < left)

    def column(k):
        rank1 = ptx.rank1_update(THR_M, COLS, REALS, False, False, at_a=(k * THR_M, 1))

        @device_function
        def multiply_column(acc, tile, x, panel):
            load_x(x, 0, panel, k * DIM_K * COLS * REALS)
            rank1(acc, tile, x)

        return multiply_column

    return unrolled(THR_M * THR_K, fetch_element), in_order([column(k) for k in range(THR_K)])


def right_sides(config: Trsv):
    """``read(0, y, b, b_rs, b_cs, row, ok, cols, sign, alpha, alpha_i)``: a thread's row of B, times alpha,
    and ``write(0, ...)``: it goes back, not scaled; ``load_panel(panel, got, b, b_rs, b_cs, t, cols, sign)``:
    a block row of X is loaded into shared memory. All imaginary parts are multiplied by `sign`.
    """
    REALS = config.dtype_facts.reals_per_element
    ROWS, COLS, THREADS = config.ROWS, config.COLS, config.threads
    load, store = ptx.load_global(REALS, False), ptx.store_global

    @device_function
    def read(c, y, b, b_rs, b_cs, row, ok, cols, sign, alpha, alpha_i):
        x = c * REALS
        load(y, x, b, (row * b_rs + c * b_cs) * REALS, ok & (c < cols))
        if REALS == 2:
            re, im = y[x], y[x + 1]
            y[x], y[x + 1] = alpha * re - alpha_i * im, sign * (alpha * im + alpha_i * re)
        else:
            y[x] = alpha * y[x]

    @device_function
    def write(c, x, b, b_rs, b_cs, row, ok, cols, sign):
        at, ok = (row * b_rs + c * b_cs) * REALS, ok & (c < cols)
        store(b, at, x[c * REALS], ok)
        if REALS == 2:
            store(b, at + 1, sign * x[c * REALS + 1], ok)

    @device_function
    def load_panel(panel, got, b, b_rs, b_cs, t, cols, sign):
        for first in range(0, ROWS * COLS, THREADS):
            row, c = (t + first) % ROWS, (t + first) // ROWS
            if t + first < ROWS * COLS:
                load(got, 0, b, (row * b_rs + c * b_cs) * REALS, c < cols)
                panel[(row * COLS + c) * REALS] = got[0]
                if REALS == 2:
                    panel[(row * COLS + c) * REALS + 1] = sign * got[1]

    return unrolled(COLS, read), unrolled(COLS, write), load_panel


def adder(config: Trsv):
    """``leave(0, sums, acc, m, k)``: a thread's sums, of rows from `m` on, to shared memory;
    ``subtract(0, y, partials, sums, row)``: those of all threads from a row, in pairs of pairs.
    """
    REALS, COLS, THR_M, DIM_M, DIM_K = (
        config.dtype_facts.reals_per_element,
        config.COLS,
        config.THR_M,
        config.DIM_M,
        config.DIM_K,
    )
    LD = config.ld_sums

    @device_function
    def leave(e, sums, acc, m, k):
        at = k * LD + (m + e % THR_M * DIM_M) * COLS + e // THR_M
        for part in range(REALS):
            sums[at * REALS + part] = acc[e * REALS + part]

    @device_function
    def load_sum(k, partials, sums, row_offset):
        partials[k] = sums[k * LD * REALS + row_offset]

    def halve(count):
        @device_function
        def add_pair(k, partials):
            partials[k] += partials[k + count]

        return unrolled(count, add_pair)

    halves = [DIM_K >> level for level in range(1, DIM_K.bit_length())]
    load_sums, pairs = unrolled(DIM_K, load_sum), [halve(count) for count in halves]
    add: Any = in_order([_from_zero(pair) for pair in pairs]) if pairs else None

    @device_function
    def subtract(x, y, partials, sums, row):
        load_sums(0, partials, sums, row * (COLS * REALS) + x)
        if DIM_K > 1:
            add(partials)
        y[x] -= partials[0]

    return unrolled(COLS * THR_M, leave), unrolled(COLS * REALS, subtract)


def _from_zero(unrolled_body):
    @device_function
    def run(partials):
        unrolled_body(0, partials)

    return run
