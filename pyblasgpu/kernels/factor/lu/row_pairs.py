"""Elimination of one or two rows of a lane, in registers: the pivot's row is loaded once for both."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ....gpu.backend import device_function, in_order, ptx, unrolled
from ...common.substitution import divider
from .small_matrices import GROUPS

__all__ = ["PAIR", "better", "pair_eliminator"]

PAIR = 2  # rows of a lane


def better(config) -> Callable:
    """``is_better(size, label, than, than_label)``: whether a row is the pivot rather than another one."""

    @device_function
    def is_better(size, label, than, than_label):
        is_nan, than_nan = size != size, than != than
        is_larger = (size > than) | (is_nan & (not than_nan))
        return is_larger | (((size == than) | (is_nan & than_nan)) & (label < than_label))

    return is_better


def _updater(config, columns: int) -> Callable:
    """``update(0, values, others, factors, loaded, pivot_row)``: the pivot's row, times the factors, off both
    rows, of which each element takes the place of the one before it.
    """
    facts, TWO = config.dtype_facts, config.ROWS == PAIR
    REALS, WIDTH, COMPLEX = facts.reals_per_element, 16 // facts.real_size, facts.is_complex
    EACH, load = WIDTH // REALS, ptx.load_shared(WIDTH)

    @device_function
    def take_off(x, k, factors, f, loaded, u):
        if COMPLEX:
            re = x[k + 2] - factors[f] * loaded[u] + factors[f + 1] * loaded[u + 1]
            x[k + 1] = x[k + 3] - factors[f] * loaded[u + 1] - factors[f + 1] * loaded[u]
            x[k] = re
        else:
            x[k] = x[k + 1] - factors[f] * loaded[u]

    @device_function
    def update(v, values, others, factors, loaded, pivot_row):
        load(loaded, 0, pivot_row, v * WIDTH)
        for e in range(EACH):
            take_off(values, v * WIDTH + e * REALS, factors, 0, loaded, e * REALS)
            if TWO:
                take_off(others, v * WIDTH + e * REALS, factors, REALS, loaded, e * REALS)

    return unrolled(columns // EACH, update)


def pair_eliminator(config) -> Callable:
    """``eliminate(values, others, factors, loaded, pivot_row, out, other_out, ok, other_ok, at, left)``: the
    first elements divided by the pivot, which are the factors, and go to the results where `ok`; the other
    elements, of which `left` matter, updated.
    """
    facts, TWO = config.dtype_facts, config.ROWS == PAIR
    REALS, PIVOT, real = (
        facts.reals_per_element,
        config.row_reals - facts.reals_per_element,
        ptx.REALS[facts.real],
    )
    widths, divide = tuple(width for width in GROUPS if width <= config.COLS), divider(facts)

    def step(fewer: int, columns: int) -> Callable:
        update, IS_ALL = _updater(config, columns), columns == config.COLS

        @device_function
        def update_rows(values, others, factors, loaded, pivot_row, left):
            if (left > fewer) & (IS_ALL | (left <= columns)):
                update(0, values, others, factors, loaded, pivot_row)

        return update_rows

    update = in_order([step(*each) for each in pairwise((0, *widths))])

    @device_function
    def eliminate(values, others, factors, loaded, pivot_row, out, other_out, ok, other_ok, at, left):
        re, im = pivot_row[PIVOT], pivot_row[PIVOT + REALS - 1]
        for part in range(REALS):
            factors[part] = values[part]
            if TWO:
                factors[REALS + part] = others[part]
        if re != real(0) or im != real(0):
            divide(factors, 0, re, im)
            if TWO:
                divide(factors, REALS, re, im)
        for part in range(REALS):
            if ok:
                out[at + part] = factors[part]
            if TWO and other_ok:
                other_out[at + part] = factors[REALS + part]
        update(values, others, factors, loaded, pivot_row, left)

    return eliminate
