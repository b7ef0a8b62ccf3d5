"""Steps of LU factorisation on rows in registers: publish a candidate, eliminate in the others.

Each row is shifted by one element while it is eliminated, so that the column at hand is always the first.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ...common.substitution import divider

__all__ = ["eliminator", "group_eliminator", "row_putter", "sizer"]


def row_putter(config, widths: tuple[int, ...]):
    """``put(pivot_row, values, left)``: a candidate of `left` elements into shared memory, its first element
    behind all others, so that vectors are aligned.

    `widths`: how many elements may be put, growing up to all.
    """
    REALS, ROW_REALS = config.dtype_facts.reals_per_element, config.row_reals
    WIDTH, PIVOT = 16 // config.dtype_facts.real_size, config.row_reals - REALS
    store_shared = ptx.store_shared(WIDTH)

    @device_function
    def put_vector(v, pivot_row, values):
        store_shared(pivot_row, v * WIDTH, values, v * WIDTH + REALS)

    def step(fewer: int, columns: int) -> Callable:
        put_vectors, IS_ALL = unrolled(columns * REALS // WIDTH, put_vector), columns == widths[-1]

        @device_function
        def put(pivot_row, values, left):
            if (left > fewer) & (IS_ALL | (left <= columns)):
                if IS_ALL:
                    for part in range(REALS):
                        values[ROW_REALS + part] = values[part]
                put_vectors(0, pivot_row, values)
                if not IS_ALL:
                    for part in range(REALS):
                        pivot_row[PIVOT + part] = values[part]

        return put

    return in_order([step(*each) for each in pairwise((0, *widths))])


def eliminator(config, widths: tuple[int, ...]):
    """``eliminate(values, factor, pivot_row, out, at, left)``: a row's first element divided by the pivot,
    which is `factor` and goes to the results; the others, of which `left` matter, updated, each in the place
    of the one before it.

    `widths`: how many elements may be updated, growing up to all.
    """
    REALS, WIDTH = config.dtype_facts.reals_per_element, 16 // config.dtype_facts.real_size

    def step(fewer: int, columns: int) -> Callable:
        update, IS_ALL = ptx.eliminate_row(columns, REALS, WIDTH), columns == widths[-1]

        @device_function
        def update_row(values, factor, pivot_row, left):
            if (left > fewer) & (IS_ALL | (left <= columns)):
                update(values, factor, pivot_row)

        return update_row

    return _dividing(config, in_order([step(*each) for each in pairwise((0, *widths))]))


def group_eliminator(config, together: int):
    """Return ``eliminate`` of `eliminator`, by `together` elements while any is left.

    Fewer registers hold the row of the pivot, so that more warps are resident.
    """
    facts = config.dtype_facts
    REALS, COMPLEX, EACH = facts.reals_per_element, facts.is_complex, min(together, config.COLS)
    real, WIDTH, SPAN = ptx.REALS[facts.real], 16 // facts.real_size, EACH * facts.reals_per_element
    load = ptx.load_shared(WIDTH, SPAN // WIDTH, WIDTH)

    def group(start: int) -> Callable:
        @device_function
        def take_off(k, values, factor, held):
            x, y = (start + k) * REALS, k * REALS
            if COMPLEX:
                re = values[x + 2] - factor[0] * held[y] + factor[1] * held[y + 1]
                im = values[x + 3] - factor[0] * held[y + 1] - factor[1] * held[y]
                values[x], values[x + 1] = re, im
            else:
                values[x] = values[x + 1] - factor[0] * held[y]

        take_all_off = unrolled(EACH, take_off)

        @device_function
        def update(values, factor, pivot_row, left):
            if left > start:
                held = cuda.local.array(SPAN, real)
                load(held, 0, pivot_row, start * REALS)
                take_all_off(0, values, factor, held)

        return update

    return _dividing(config, in_order([group(start) for start in range(0, config.COLS, EACH)]))


def _dividing(config, update: Callable) -> Callable:
    """``eliminate`` of `eliminator`, whose other elements are updated by ``update(values, factor, pivot_row,
    left)``.
    """
    facts = config.dtype_facts
    REALS, PIVOT = facts.reals_per_element, config.row_reals - facts.reals_per_element
    real, divide = ptx.REALS[facts.real], divider(facts)

    @device_function
    def eliminate(values, factor, pivot_row, out, at, left):
        pivot, pivot_i = pivot_row[PIVOT], pivot_row[PIVOT + REALS - 1]
        for part in range(REALS):
            factor[part] = values[part]
        if pivot != real(0) or pivot_i != real(0):
            divide(factor, 0, pivot, pivot_i)
        for part in range(REALS):
            out[at + part] = factor[part]
        update(values, factor, pivot_row, left)

    return eliminate


def sizer(config):
    """``size(values)``: |re| + |im| of the first element, by which LAPACK chooses."""
    REALS = config.dtype_facts.reals_per_element

    @device_function
    def size(values):
        return abs(values[0]) + abs(values[1]) if REALS == 2 else abs(values[0])

    return size
