"""Columns of a symmetric matrix less what columns of L took off, and the largest element of each.

Rows are numbered from the diagonal at hand. Those of an upper triangle run backwards, from its last one: so
it is a lower one, with ``step`` -1 from row to row of V and W. Of equal sizes the first one counts that the
caller's matrix has, as in LAPACK. What is no number is never the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....types import Dtype
from ...common.kernel_config import WARP
from ..lane_sums import adder, over_lanes
from ..qr.meeting import meeting

__all__ = ["BACKWARDS", "COUNTS", "DONE", "END", "FIRST", "KK", "KP", "LANES", "MEETS", "TEMP", "TURN"]
__all__ += ["BACK", "LANE_BITS", "OTHER", "ROOK_COUNTS", "UPPER_ROW"]
__all__ += ["entry_reader", "meeter", "searcher", "sizer"]

LANE_BITS = 2
LANES = 1 << LANE_BITS  # threads of a row
AT_ONCE = 4  # columns of a thread whose loads are under way at a time
#: Numbers of a panel: columns before which V has none, and from which on those of W are in memory that the
#: last step left; the end of its columns; the rows that it interchanged; where the first of them is; searches
#: and meetings so far; whether rows run backwards.
FIRST, DONE, END, KK, KP, TEMP, TURN, MEETS, BACKWARDS = range(9)
COUNTS = 9
#: By rook pivots also: where the second of the columns is that the last step left; the row that became its
#: first one, -1 where it was that; and the row that came to where the row of its last one was.
OTHER, UPPER_ROW, BACK = range(COUNTS, COUNTS + 3)
ROOK_COUNTS = COUNTS + 3


def _flipper() -> Callable:
    """``row_of(n, m, i)``: the caller's number of a row of the last `m`, from 0, and back."""
    int32 = ptx.types.int32

    @device_function
    def row_of(n, m, i):
        return int32(m - 1 - i) if n[BACKWARDS] != 0 else int32(i)

    return row_of


def sizer(facts: Dtype) -> Callable:
    """``size(x, at)``: |re| + |im|, by which LAPACK chooses."""
    COMPLEX = facts.is_complex

    @device_function
    def size(x, at):
        return abs(x[at]) + abs(x[at + 1]) if COMPLEX else abs(x[at])

    return size


def entry_reader(facts: Dtype) -> Callable:
    """``read(x, a, rs, cs, i, j, sign)``: entry (i, j) of a matrix whose lower triangle is stored; `sign` is
    -1 where the other one is conjugated.
    """
    COMPLEX, REALS, real = facts.is_complex, facts.reals_per_element, ptx.REALS[facts.real]

    @device_function
    def read(x, a, rs, cs, i, j, sign):
        low, high = min(i, j), max(i, j)
        at = (high * rs + low * cs) * REALS
        x[0] = a[at]
        if COMPLEX:
            x[1] = a[at + 1] if i >= j else sign * a[at + 1]
            if i == j and sign < real(0):
                x[1] = real(0)

    return read


def meeter(spreads: bool) -> tuple[Callable, Callable]:
    """``meet(n, flags, blocks, t)``: all threads of a matrix; each then reads what the others wrote.
    ``leave(flags, blocks, t)``: the flags are 0 again when all are over.
    """
    (meet_blocks, part), int32 = meeting(), ptx.types.int32

    @device_function
    def meet(n, flags, blocks, t):
        if spreads and blocks > 1:
            n[MEETS] = int32(n[MEETS] + 1)
            meet_blocks(flags, n[MEETS], blocks, t)
        else:
            cuda.syncthreads()

    @device_function
    def leave(flags, blocks, t):
        if spreads and blocks > 1:
            part(flags, blocks, t)

    return meet, leave


def _dotter(facts: Dtype, rook: bool) -> Callable:
    """``dot(x, n, v, w, ld, step, i, col, sign, t, here)``: the product of row i of V with row `col` of W,
    in all lanes of the row.
    """
    COMPLEX, REALS, real = facts.is_complex, facts.reals_per_element, ptx.REALS[facts.real]
    total, int32 = over_lanes(adder()), ptx.types.int32

    @device_function
    def add(x, v, p, w, q, sign):
        if COMPLEX:
            w_im = sign * w[q + 1]
            x[0] += v[p] * w[q] - v[p + 1] * w_im
            x[1] += v[p] * w_im + v[p + 1] * w[q]
        else:
            x[0] += v[p] * w[q]

    @device_function
    def add_one(k, x, v, p, w, q, one, sign):
        add(x, v, p + k * one, w, q + k * one, sign)

    add_several = unrolled(AT_ONCE, add_one)

    @device_function
    def dot(x, n, v, w, ld, step, i, col, sign, t, here):
        x[0] = x[REALS - 1] = real(0)
        if here:
            j, one = int32(n[FIRST] + (t & (LANES - 1))), LANES * ld * REALS
            p, q = (i * step + j * ld) * REALS, (col * step + j * ld) * REALS
            while j + (AT_ONCE - 1) * LANES < n[DONE]:
                add_several(0, x, v, p, w, q, one, sign)
                p, q, j = p + AT_ONCE * one, q + AT_ONCE * one, int32(j + AT_ONCE * LANES)
            while j < n[DONE]:
                add(x, v, p, w, q, sign)
                p, q, j = p + one, q + one, int32(j + LANES)
            if rook:
                source = n[BACK] if col == n[KP] else (n[DONE] if col == n[UPPER_ROW] else col)
            else:
                source = n[KP] if col == n[KK] else (n[KK] if col == n[KP] else col)
            while j < n[END]:  # what the last step has left
                if rook:
                    column = n[TEMP] if j == n[DONE] else n[OTHER]
                    add(x, v, p, w, (source * step + column * ld) * REALS, sign)
                else:
                    add(x, v, p, w, (source * step + (n[TEMP] + j - n[DONE]) * ld) * REALS, sign)
                p, j = p + one, int32(j + LANES)
        for part in range(REALS):
            x[part] = total(x[part], int32(t & (WARP - 1)), LANES)

    return dot


def _best_of_labels(facts: Dtype) -> Callable:
    """``best(n, labels, count, w, ld, step, to, m, t)``: the label of the largest element among `count` of
    column `to` of W; by a warp.
    """
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    size_of, warp_first_max, NO_LABEL = sizer(facts), ptx.warp_first_max, ptx.NO_LABEL
    row_of = _flipper()

    @device_function
    def best(n, labels, count, w, ld, step, to, m, t):
        most, key, b = real(-1), int32(0), int32(t & (WARP - 1))
        while b < count:
            label = labels[b]
            if label != NO_LABEL:
                i = row_of(n, m, label)
                size = size_of(w, (i * step + to * ld) * REALS)
                if size > most or (size == most and label < key):
                    most, key = size, int32(label)
            b = int32(b + WARP)
        return int32(warp_first_max(most, key, most >= real(0)))

    return best


def searcher(config: Any, spreads: bool) -> Callable:
    """``search(x, n, a, rs, cs, v, w, ld, step, labels, state, flags, k, col, to, m, low, high, sign, block,
    blocks, t)``: column `col` of the rest from row `k` on, to column `to` of W; returns the row of its
    largest element that is not on the diagonal, -1 where there is none. The block has rows `low` to `high`.
    """
    facts, WARPS = config.dtype_facts, config.threads // WARP
    COMPLEX, REALS, real = facts.is_complex, facts.reals_per_element, ptx.REALS[facts.real]
    ROWS, int32, NO_LABEL = config.threads // LANES, ptx.types.int32, ptx.NO_LABEL
    dot, read, size_of = _dotter(facts, config.ROOK), entry_reader(facts), sizer(facts)
    best_of = _best_of_labels(facts)
    (meet, _), offset, warp_first_max = meeter(spreads), ptx.offset, ptx.warp_first_max
    row_of = _flipper()

    @device_function
    def search(
        x, n, a, rs, cs, v, w, ld, step, labels, state, flags, k, col, to, m, low, high, sign, block,
        blocks, t,
    ):  # fmt: skip
        # (1) the rows of this thread
        most, key, base, turn = real(-1), int32(0), int32(low), int32(n[TURN] & 1)
        n[TURN] = int32(n[TURN] + 1)
        while base < high:
            i = int32(base + (t >> LANE_BITS))
            here = (i >= k) & (i < high)
            dot(x, n, v, w, ld, step, i, col, sign, t, here)
            if here and t & (LANES - 1) == 0:
                re, im, at = x[0], x[REALS - 1], (i * step + to * ld) * REALS
                read(x, a, rs, cs, i, col, sign)
                w[at] = x[0] = x[0] - re
                if COMPLEX:
                    x[1] = real(0) if i == col and sign < real(0) else x[1] - im
                    w[at + 1] = x[1]
                size, label = size_of(x, 0), row_of(n, m, i)
                if i != col and (size > most or (size == most and label < key)):
                    most, key = size, label
            base = int32(base + ROWS)

        # (2) of a warp, of the block, of all blocks
        found, labels = warp_first_max(most, key, most >= real(0)), offset(labels, turn * WARPS)
        if t & (WARP - 1) == 0:
            labels[t >> 5] = found
        cuda.syncthreads()
        found = best_of(n, labels, WARPS, w, ld, step, to, m, t)
        if spreads and blocks > 1:
            state = offset(state, turn * blocks)
            if t == 0:
                state[block] = found
            meet(n, flags, blocks, t)
            found = best_of(n, state, blocks, w, ld, step, to, m, t)
        return int32(-1) if found == NO_LABEL else row_of(n, m, found)

    return search
