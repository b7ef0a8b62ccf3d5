"""Columns of small matrices in registers, each of a thread or of several neighbours: parts of `geqrf_small`.

Threads of a column have 16 bytes of it by turns. `config` has ROWS, COLS, SPLIT (threads of a column), OWN
(rows of a thread), GROUP (rows whose steps have code of their own), SUMS (partial sums), `vector` (rows of 16
bytes) and `ld`. All that indexes registers is constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx, unrolled
from ...common.coalesced_index import coalesced_index
from ..lane_sums import adder, larger, over_lanes
from .reflector import scaler, size_of

__all__ = [
    "column_scaler",
    "dotter",
    "finisher",
    "matrix_writer",
    "row_of",
    "sum_over_parts",
    "updater",
    "vectors",
]

BYTES = 16  # of a vector


def row_of(config: Any) -> Callable:
    """``row(k, part)``: the row of element k of a thread."""
    V, STEP, int32 = config.vector, config.vector * config.SPLIT, ptx.types.int32

    @device_function
    def row(k, part):
        return int32(k // V * STEP + k % V + part * V)

    return row


def vectors(config: Any, first: int) -> tuple[Callable, Callable]:
    """``load(x, s)`` and ``store(s, x)``: elements of a thread from `first` on; its column begins at `s`."""
    W, REALS = BYTES // config.dtype_facts.real_size, config.dtype_facts.reals_per_element
    COUNT, FIRST, STEP = (config.OWN - first) // config.vector, first * REALS, W * config.SPLIT
    BEGIN, put = first // config.vector * STEP, ptx.store_shared(W)
    load_all = ptx.load_shared(W, COUNT, STEP)

    @device_function
    def load(x, s):
        load_all(x, FIRST, s, BEGIN)

    @device_function
    def store_one(q, s, x):
        put(s, BEGIN + q * STEP, x, FIRST + q * W)

    store_all = unrolled(COUNT, store_one)

    @device_function
    def store(s, x):
        store_all(0, s, x)

    return load, store


def sum_over_parts(config: Any, count: int) -> Callable:
    """``add(x, lane)``: the first `count` numbers of `x` over the threads of a column."""
    SPLIT, int32, total = config.SPLIT, ptx.types.int32, over_lanes(adder())

    @device_function
    def one(k, x, lane):
        if SPLIT > 1:
            x[k] = total(x[k], lane, int32(SPLIT))

    every = unrolled(count, one)

    @device_function
    def add(x, lane):
        every(0, x, lane)

    return add


def over_column(config: Any, slot: int, near: Callable, far: Callable) -> Callable:
    """``run(column, x, v, w, j, part)``: ``near(k, x, v, w, j, part)`` for the rows of a thread in a group,
    `far` for those below it, each with its vector of `column` in ``v``.
    """
    V, W, ROWS = config.vector, BYTES // config.dtype_facts.real_size, config.GROUP
    FIRST, NEAR, FAR = slot * ROWS // V, ROWS // V, (config.OWN - (slot + 1) * ROWS) // V
    STEP, load = W * config.SPLIT, ptx.load_shared(W)

    def over(visit: Callable) -> Callable:
        visit_all = unrolled(V, visit)

        @device_function
        def vector(q, column, x, v, w, j, part):
            load(v, 0, column, q * STEP)
            visit_all(q * V, x, v, w, j, part)

        return vector

    nears, fars = unrolled(NEAR, over(near)), unrolled(FAR, over(far))

    @device_function
    def run(column, x, v, w, j, part):
        nears(FIRST, column, x, v, w, j, part)
        fars(FIRST + NEAR, column, x, v, w, j, part)

    return run


def dotter(config: Any, slot: int) -> Callable:
    """``dot(column, x, v, w, j, part)``: the element of x in row j to `w`, and behind it sums of products
    with the column below that row.
    """
    facts, V, REALS = config.dtype_facts, config.vector, config.dtype_facts.reals_per_element
    COMPLEX, real, PARTS = facts.is_complex, ptx.REALS[facts.real], config.SUMS // facts.reals_per_element
    row, select = row_of(config), ptx.select

    @device_function
    def add_product(w, k, v, re, im):
        at, of = 2 + k % PARTS * REALS, k % V * REALS
        if COMPLEX:
            w[at] += v[of] * re + v[of + 1] * im
            w[at + 1] += v[of] * im - v[of + 1] * re
        else:
            w[at] += v[of] * re

    @device_function
    def near(k, x, v, w, j, part):
        """A row of the diagonal's group: what is not below the diagonal may be no number."""
        at, i = k * REALS, row(k, part)
        for side in range(REALS):
            of = k % V * REALS + side
            v[of] = select(i > j, v[of], real(0))
            w[side] += select(i == j, x[at + side], real(0))
        re, im = select(i > j, x[at], real(0)), select(i > j, x[at + REALS - 1], real(0))
        add_product(w, k, v, re, im)

    @device_function
    def far(k, x, v, w, j, part):
        add_product(w, k, v, x[k * REALS], x[k * REALS + REALS - 1])

    return over_column(config, slot, near, far)


def updater(config: Any, slot: int) -> Callable:
    """``less(column, x, v, y, j, part)``: x less y times the column below row j, in that row less y[2:]."""
    V, REALS, COMPLEX = (
        config.vector,
        config.dtype_facts.reals_per_element,
        config.dtype_facts.is_complex,
    )
    real, row, select = ptx.REALS[config.dtype_facts.real], row_of(config), ptx.select

    @device_function
    def near(k, x, v, y, j, part):
        at, of, i = k * REALS, k % V * REALS, row(k, part)
        re = v[of] * y[0]
        if COMPLEX:
            re, im = v[of] * y[0] - v[of + 1] * y[1], v[of] * y[1] + v[of + 1] * y[0]
            x[at + 1] -= select(i > j, im, select(i == j, y[3], real(0)))
        x[at] -= select(i > j, re, select(i == j, y[2], real(0)))

    @device_function
    def far(k, x, v, y, j, part):
        at, of = k * REALS, k % V * REALS
        if COMPLEX:
            x[at] += v[of + 1] * y[1] - v[of] * y[0]
            x[at + 1] -= v[of] * y[1] + v[of + 1] * y[0]
        else:
            x[at] -= v[of] * y[0]

    return over_column(config, slot, near, far)


def column_scaler(config: Any) -> Callable:
    """``scale(x, w, lane)``: the column of a thread, by a power of two, to about one; ``w[1]`` is the
    reciprocal of that.
    """
    facts, SPLIT = config.dtype_facts, config.SPLIT
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    size, scales, largest = size_of(facts), scaler(facts), over_lanes(larger())

    @device_function
    def element(k, x, w):
        w[0] = max(w[0], size(x, k * REALS))

    @device_function
    def times(k, x, w):
        for side in range(REALS):
            x[k * REALS + side] *= w[0]

    elements, times_all = unrolled(config.OWN, element), unrolled(config.OWN, times)

    @device_function
    def scale(x, w, lane):
        w[0] = real(0)
        elements(0, x, w)
        if SPLIT > 1:
            w[0] = largest(w[0], lane, int32(SPLIT))
        scales(w, w[0])
        times_all(0, x, w)

    return scale


def finisher(config: Any) -> Callable:
    """``finish(0, x, f, back, col, part)``: rows of R times `back`, and v below them."""
    REALS, COMPLEX = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex
    row, select = row_of(config), ptx.select

    @device_function
    def element(k, x, f, back, col, part):
        at, is_below = k * REALS, row(k, part) > col
        if COMPLEX:
            re, im = x[at] * f[0] - x[at + 1] * f[1], x[at] * f[1] + x[at + 1] * f[0]
            x[at], x[at + 1] = select(is_below, re, x[at] * back), select(is_below, im, x[at + 1] * back)
        else:
            x[at] *= select(is_below, f[0], back)

    return unrolled(config.OWN, element)


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
