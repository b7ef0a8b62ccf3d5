"""Triangles of small matrices, a row or two a lane, solved by columns; a step passes a row of X to all lanes.

The row goes by shuffles, and its lane divides it; or through shared memory, in a *slot*, where lanes divide
it, an element each. Reciprocals of the diagonal are made once; a residual makes a product with one as good as
a division. Single reals are divided as they are. No other inverse is formed.
"""

from __future__ import annotations

from typing import Any

from ....gpu.backend import device_function, in_order, ptx, unrolled
from ...common.kernel_config import WARP
from ...common.substitution import divider, inverter, quotient
from .small_matrices import column_step

__all__ = ["diagonal_inverter", "shuffled_sweep", "slot_sweep"]


def diagonal_inverter(config: Any):
    """``invert(rows, lane)``: reciprocals of this lane's elements of the diagonal, NaN where they are not
    safe, at the ends of the rows.
    """
    facts, LD = config.dtype_facts, config.LD
    REALS, OWN, NAN = facts.reals_per_element, config.rows_of_lane, float("nan")
    invert_one, real, sync_warp = inverter(facts), ptx.REALS[facts.real], ptx.sync_warp

    @device_function
    def invert(rows, lane):
        for s in range(OWN):
            row = lane + s * WARP
            if invert_one(rows, (row * LD + LD - 1) * REALS, rows, row * (LD + 1) * REALS) == 0:
                rows[(row * LD + LD - 1) * REALS] = real(NAN)
        sync_warp()

    return invert


def _pivot_divider(config: Any):
    """``divide(x, at, t_re, t_im, r_re, r_im)``: x[at] divided by t, by its reciprocal r unless it is NaN."""
    facts = config.dtype_facts
    COMPLEX, quick, exact = facts.is_complex, quotient(facts, ptx.inlined), divider(facts)

    @device_function
    def divide(x, at, t_re, t_im, r_re, r_im):
        if r_re != r_re:
            exact(x, at, t_re, t_im)
        elif COMPLEX:
            x[at], x[at + 1] = quick(x[at], x[at + 1], t_re, t_im, r_re, r_im)
        else:
            x[at] = quick(x[at], t_re, r_re)

    return divide


def shuffled_sweep(config: Any, columns: int, most: int, backwards: bool):
    """``sweep(x, element, y, rows, slots, first, n, t, lane, divides, mirrored, sign)``: one triangle, its
    first or last row `first`, for as many `columns`; a row a lane.
    """
    REALS, LD, DIVIDES = config.dtype_facts.reals_per_element, config.LD, config.divides
    step, int32, offset = column_step(config, columns), ptx.types.int32, ptx.offset
    divide, real = _pivot_divider(config), ptx.REALS[config.dtype_facts.real]

    @device_function
    def divide_element(q, x, t_re, t_im, r_re, r_im):
        divide(x, q * REALS, t_re, t_im, r_re, r_im)

    divide_all = unrolled(columns, divide_element)

    @device_function
    def sweep(x, element, y, rows, slots, first, n, t, lane, divides, mirrored, sign):
        r_re, r_im, j = real(0), real(0), int32(n if backwards else first)
        if not DIVIDES:
            end = int32((lane * LD + LD - 1) * REALS)
            r_re, r_im = rows[end], sign * rows[end + REALS - 1]
        while j > first if backwards else j < n:
            if backwards:
                j = int32(j - 1)
            at = offset(rows, int32((j * LD + lane if mirrored else lane * LD + j) * REALS))
            pivot_lane, is_pivot = int32((t - lane + j) & (WARP - 1)), (lane == j) & divides
            is_after = lane < j if backwards else lane > j
            if DIVIDES:
                step(x, at[0], sign * at[REALS - 1], pivot_lane, is_pivot, is_after)
            else:
                if is_pivot:
                    divide_all(0, x, at[0], sign * at[REALS - 1], r_re, r_im)
                step(x, at[0], sign * at[REALS - 1], pivot_lane, False, is_after)
            if not backwards:
                j = int32(j + 1)

    return sweep


def _slot_finisher(config: Any, columns: int):
    """``finish(y, slot, rows, j, lane, sign)``: row j of X in `slot` divided by the element of the
    diagonal, an element a lane.
    """
    REALS, LD, int32 = config.dtype_facts.reals_per_element, config.LD, ptx.types.int32
    divide, load, store = _pivot_divider(config), ptx.load_shared(REALS), ptx.store_shared(REALS)

    @device_function
    def finish(y, slot, rows, j, lane, sign):
        if lane < columns:
            load(y, 0, rows, int32(j * (LD + 1) * REALS))
            t_re, t_im = y[0], sign * y[REALS - 1]
            load(y, 0, rows, int32((j * LD + LD - 1) * REALS))
            r_re, r_im = y[0], sign * y[REALS - 1]
            load(y, 0, slot, lane * REALS)
            divide(y, 0, t_re, t_im, r_re, r_im)
            store(slot, lane * REALS, y, 0)

    return finish


def slot_sweep(config: Any, columns: int, most: int, backwards: bool):
    """``sweep(...)`` as `shuffled_sweep` has it, through slots of `most` elements, a row or two a lane."""
    facts, LD, OWN, finish = (
        config.dtype_facts,
        config.LD,
        config.rows_of_lane,
        _slot_finisher(config, columns),
    )
    REALS, COMPLEX, int32, offset = facts.reals_per_element, facts.is_complex, ptx.types.int32, ptx.offset
    HELD, SLOT, sync_warp = columns * REALS, most * REALS, ptx.sync_warp
    load, store = ptx.load_shared(REALS), ptx.store_shared(REALS)

    def rows_of(p: int):
        START, END = (0, p + 1) if backwards else (p, OWN)

        @device_function
        def put(q, x, slot):
            store(slot, q * REALS, x, p * HELD + q * REALS)

        @device_function
        def get(q, x, slot):
            load(x, p * HELD + q * REALS, slot, q * REALS)

        @device_function
        def take_off(q, x, element, y, slot, lane, j):
            load(y, 0, slot, q * REALS)
            for s in range(START, END):
                at, e = s * HELD + q * REALS, s * REALS
                is_after = lane + s * WARP < j if backwards else lane + s * WARP > j
                if COMPLEX:
                    if is_after:
                        x[at] = x[at] - element[e] * y[0] + element[e + 1] * y[1]
                        x[at + 1] = x[at + 1] - element[e] * y[1] - element[e + 1] * y[0]
                elif is_after:
                    x[at] = x[at] - element[e] * y[0]

        put_all, get_all, take_all_off = (unrolled(columns, each) for each in (put, get, take_off))

        @device_function
        def sweep(x, element, y, rows, slots, first, n, t, lane, divides, mirrored, sign):
            low, high = int32(max(first, int32(p * WARP))), int32(min(n, int32(p * WARP + WARP)))
            left = int32(high - low)
            while left > 0:
                j = int32(low + left - 1) if backwards else int32(high - left)
                slot = offset(slots, int32((j & 1) * SLOT))
                if lane == j - p * WARP:
                    put_all(0, x, slot)
                for s in range(START, END):
                    row = int32(lane + s * WARP)
                    at = int32((j * LD + row if mirrored else row * LD + j) * REALS)
                    load(element, s * REALS, rows, at)
                    if COMPLEX:
                        element[s * REALS + 1] = sign * element[s * REALS + 1]
                sync_warp()
                if divides:
                    finish(y, slot, rows, j, lane, sign)
                    sync_warp()
                if lane == j - p * WARP:
                    get_all(0, x, slot)
                take_all_off(0, x, element, y, slot, lane, j)
                left = int32(left - 1)

        return sweep

    parts = [rows_of(p) for p in range(OWN)]
    return in_order(parts[::-1] if backwards else parts)
