"""Columns of small matrices in registers of neighbouring threads: parts of `geqrf_small`.

Neighbours share WIDE columns, and each has 16 bytes of their rows by turns. A warp has GROUPS groups of
threads, and a thread has every GROUPS-th column of its warp. `config` has also ROWS, COLS, SPLIT (threads of
a group), OWN (rows of a thread), GROUP (rows whose steps have code of their own), `vector` (rows of 16 bytes)
and `ld`. All that indexes registers is constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, in_order, ptx, unrolled
from ...common.coalesced_index import coalesced_index
from ..lane_sums import adder, larger, over_lanes
from .reflector import product_adder, scaler, size_of

__all__ = [
    "column_scaler",
    "column_taker",
    "dotter",
    "finisher",
    "matrix_writer",
    "row_of",
    "sums_over_parts",
    "updater",
    "vectors",
]

BYTES = 16  # of a vector
SAVED = 4  # shuffles, at least, for which numbers are summed by few lanes


def row_of(config: Any) -> Callable:
    """``row(k, part)``: the row of element k of a column of a thread."""
    V, STEP, int32 = config.vector, config.vector * config.SPLIT, ptx.types.int32

    @device_function
    def row(k, part):
        return int32(k // V * STEP + k % V + part * V)

    return row


def vectors(config: Any, first: int) -> tuple[Callable, Callable]:
    """``load(c, x, s, step)`` and ``store(c, s, x, step)``: column c of a thread from row `first` of it on;
    at `s` is its first column, and each further one after `step` reals.
    """
    W, REALS = BYTES // config.dtype_facts.real_size, config.dtype_facts.reals_per_element
    COUNT, FIRST, STEP = (config.OWN - first) // config.vector, first * REALS, W * config.SPLIT
    BEGIN, OWN, put = first // config.vector * STEP, config.OWN * REALS, ptx.store_shared(W)
    load_all = ptx.load_shared(W, COUNT, STEP)

    @device_function
    def load(c, x, s, step):
        load_all(x, c * OWN + FIRST, s, c * step + BEGIN)

    @device_function
    def store_one(q, c, s, x, step):
        put(s, c * step + BEGIN + q * STEP, x, c * OWN + FIRST + q * W)

    store_all = unrolled(COUNT, store_one)

    @device_function
    def store(c, s, x, step):
        store_all(0, c, s, x, step)

    return load, store


def sums_over_parts(config: Any, count: int) -> Callable:
    """``add(x, y, lane)``: to `y` the first `count` numbers of `x` over a group's threads; `x` is spoilt.

    While a lane has several numbers, a power of two, it passes one half on, and adds up the other half. So a
    number is summed by few lanes, and passed to all. Where that saves little, all lanes sum every number.
    """
    SPLIT, int32, shuffle, select = config.SPLIT, ptx.types.int32, ptx.shuffle, ptx.select
    total, steps, left, distance = over_lanes(adder()), [], count, SPLIT // 2
    while distance:
        steps.append((distance, left // 2 if left % 2 == 0 else 0))
        left, distance = left // 2 if left % 2 == 0 else left, distance // 2

    @device_function
    def add_one(k, x, y, lane):
        y[k] = total(x[k], lane, int32(SPLIT)) if SPLIT > 1 else x[k]

    add_each = unrolled(count, add_one)

    @device_function
    def add_all(x, y, lane):
        add_each(0, x, y, lane)

    if count * len(steps) - sum(half or left for _, half in steps) - count < SAVED:
        return add_all

    def step_of(distance: int, half: int) -> Callable:
        @device_function
        def pass_on(k, x, is_upper, lane):
            kept, passed = select(is_upper, x[k + half], x[k]), select(is_upper, x[k], x[k + half])
            x[k] = kept + shuffle(passed, int32(lane ^ distance))

        @device_function
        def keep(k, x, is_upper, lane):
            x[k] += shuffle(x[k], int32(lane ^ distance))

        every = unrolled(half or left, pass_on if half else keep)

        @device_function
        def step(x, y, lane):
            every(0, x, (lane & distance) != 0, lane)

        return step

    def giver_of(k: int) -> Callable:
        lane_of, place = 0, k
        for distance, half in steps:
            if half and place >= half:
                lane_of, place = lane_of + distance, place - half

        @device_function
        def give(x, y, lane):
            y[k] = shuffle(x[place], int32((lane & -SPLIT) + lane_of))

        return give

    return in_order([step_of(*each) for each in steps] + [giver_of(k) for k in range(count)])


def over_rows(config: Any, slot: int, near: Callable, far: Callable) -> Callable:
    """``run(c, x, v, w, j, part)``: ``near(k, c, x, v, w, j, part)`` for the rows of column c of a thread
    that are in a group, `far` for those below it.
    """
    FIRST, ROWS = slot * config.GROUP, config.GROUP
    nears, fars = unrolled(ROWS, near), unrolled(config.OWN - FIRST - ROWS, far)

    @device_function
    def run(c, x, v, w, j, part):
        nears(FIRST, c, x, v, w, j, part)
        fars(FIRST + ROWS, c, x, v, w, j, part)

    return run


def dotter(config: Any, slot: int) -> Callable:
    """``dot(0, x, v, w, j, part)``: to ``w[c]`` a thread's part of the product of v with its column c.
    Above row j v is zero, and the column may be no number.
    """
    facts, REALS, OWN = config.dtype_facts, config.dtype_facts.reals_per_element, config.OWN
    add_product, real, row, select = product_adder(facts), ptx.REALS[facts.real], row_of(config), ptx.select

    @device_function
    def near(k, c, x, v, w, j, part):
        at, ok = (c * OWN + k) * REALS, row(k, part) >= j
        add_product(w, c, v, k, select(ok, x[at], real(0)), select(ok, x[at + REALS - 1], real(0)))

    @device_function
    def far(k, c, x, v, w, j, part):
        at = (c * OWN + k) * REALS
        add_product(w, c, v, k, x[at], x[at + REALS - 1])

    return unrolled(config.WIDE, over_rows(config, slot, near, far))


def updater(config: Any, slot: int) -> Callable:
    """``less(0, x, v, y, j, part, col)``: columns right of j less ``y[c]`` times v, from row j on; `col` is
    the first one of a thread.
    """
    REALS, COMPLEX, OWN = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex, config.OWN
    GROUPS, row = config.GROUPS, row_of(config)
    real, select = ptx.REALS[config.dtype_facts.real], ptx.select

    @device_function
    def product(k, c, v, y):
        if COMPLEX:
            re, im = y[c * 2], y[c * 2 + 1]
            return v[k * 2] * re - v[k * 2 + 1] * im, v[k * 2] * im + v[k * 2 + 1] * re
        return v[k] * y[c], real(0)

    @device_function
    def near(k, c, x, v, y, j, part):
        at, ok = (c * OWN + k) * REALS, row(k, part) >= j
        re, im = product(k, c, v, y)
        x[at] -= select(ok, re, real(0))
        if COMPLEX:
            x[at + 1] -= select(ok, im, real(0))

    @device_function
    def far(k, c, x, v, y, j, part):
        at = (c * OWN + k) * REALS
        if COMPLEX:
            x[at] -= v[k * 2] * y[c * 2]
            x[at] += v[k * 2 + 1] * y[c * 2 + 1]
            x[at + 1] -= v[k * 2] * y[c * 2 + 1]
            x[at + 1] -= v[k * 2 + 1] * y[c * 2]
        else:
            x[at] -= v[k] * y[c]

    rows = over_rows(config, slot, near, far)

    @device_function
    def column(c, x, v, y, j, part, col):
        if col + c * GROUPS > j:
            rows(c, x, v, y, j, part)

    return unrolled(config.WIDE, column)


def column_taker(config: Any, slot: int) -> Callable:
    """``take(0, x, v, own)``: to v column `own` of a thread, from the rows of a group on."""
    REALS, OWN, FIRST = config.dtype_facts.reals_per_element, config.OWN, slot * config.GROUP

    @device_function
    def element(k, c, x, v):
        for side in range(REALS):
            v[k * REALS + side] = x[(c * OWN + k) * REALS + side]

    elements = unrolled(OWN - FIRST, element)

    @device_function
    def column(c, x, v, own):
        if c == own:
            elements(FIRST, c, x, v)

    return unrolled(config.WIDE, column)


def column_scaler(config: Any) -> Callable:
    """``scale(0, x, w, back, col, part, lane)``: the columns of a thread, by powers of two, to about one; the
    reciprocals of these go to `back`.
    """
    facts, SPLIT, OWN, GROUPS = config.dtype_facts, config.SPLIT, config.OWN, config.GROUPS
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    size, scales, largest = size_of(facts), scaler(facts), over_lanes(larger())

    @device_function
    def element(k, c, x, w):
        w[0] = max(w[0], size(x, (c * OWN + k) * REALS))

    @device_function
    def times(k, c, x, w):
        for side in range(REALS):
            x[(c * OWN + k) * REALS + side] *= w[0]

    elements, times_all = unrolled(OWN, element), unrolled(OWN, times)

    @device_function
    def scale(c, x, w, back, col, part, lane):
        w[0] = real(0)
        elements(0, c, x, w)
        if SPLIT > 1:
            w[0] = largest(w[0], lane, int32(SPLIT))
        scales(w, w[0])
        times_all(0, c, x, w)
        if part == 0:
            back[col + c * GROUPS] = w[1]

    return unrolled(config.WIDE, scale)


def finisher(config: Any) -> Callable:
    """``finish(0, x, factors, betas, back, col, part)``: rows of R times `back`, with `betas` on its
    diagonal, and v below them.
    """
    REALS, COMPLEX, OWN = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex, config.OWN
    row, select, GROUPS, real = row_of(config), ptx.select, config.GROUPS, ptx.REALS[config.dtype_facts.real]

    @device_function
    def element(k, c, x, f, f_im, beta, back, col, part):
        at, i = (c * OWN + k) * REALS, row(k, part)
        if COMPLEX:
            re, im = x[at] * f - x[at + 1] * f_im, x[at] * f_im + x[at + 1] * f
            x[at] = select(i > col, re, select(i == col, beta, x[at]) * back)
            x[at + 1] = select(i > col, im, select(i == col, real(0), x[at + 1]) * back)
        else:
            x[at] = select(i > col, x[at] * f, select(i == col, beta, x[at]) * back)

    elements = unrolled(OWN, element)

    @device_function
    def finish(c, x, factors, betas, back, col, part):
        col += c * GROUPS
        f, f_im = factors[col * REALS], factors[col * REALS + REALS - 1]
        elements(0, c, x, f, f_im, betas[col], back[col], col, part)

    return unrolled(config.WIDE, finish)


def matrix_writer(config: Any, by_rows: bool, is_v: bool) -> Callable:
    """``write(a, s, a_rs, a_cs, t, m, n)``: the matrix, or if `is_v` V with its ones and zeros; neighbouring
    threads have neighbours.
    """
    facts, LD, select = config.dtype_facts, config.ld, ptx.select
    REALS, real, store = facts.reals_per_element, ptx.REALS[facts.real], ptx.store_global
    over = coalesced_index(config.ROWS, config.COLS, config.threads, by_rows)
    COUNT, coords, has, following, first = over.count, over.coords, over.has, over.following, over.first
    opaque, int32 = ptx.opaque, ptx.types.int32

    @device_function
    def write(a, s, a_rs, a_cs, t, m, n):
        at = first(t, a_rs, a_cs)
        for k in range(opaque(int32(COUNT))):
            i, j = coords(t, k)
            if has(t, k):
                for side in range(REALS):
                    x = s[(i + j * LD) * REALS + side]
                    if is_v:
                        one = real(1) if side == 0 else real(0)
                        x = select(i > j, x, select(i == j, one, real(0)))
                    store(a, at * REALS + side, x, (i < m) & (j < n))
            at = following(at, t, k, a_rs, a_cs)

    return write
