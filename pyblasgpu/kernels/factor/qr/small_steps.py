"""Steps of `geqrf_small`: a reflector that one warp makes, and what it takes off the columns of all.

Columns are in registers, as `split_columns` has them, and what warps pass to one another is in shared memory.
`config` has what it needs there, and IS_PANEL and `ld_t`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import cuda, device_function, ptx, unrolled
from .reflector import BETA, FACTOR, TAU, reflector
from .split_columns import column_taker, dotter, row_of, sums_over_parts, updater, vectors

__all__ = ["HEAD", "SUMS", "places", "steps_of"]

HEAD = 2  # elements for the factor of a reflector
MOST_OF_COLUMN = 128  # bytes of a reflector that a thread keeps; more would be spilled
SUMS = 4  # partial sums of squares of a thread: a multiply-add waits for the one before


def places(config: Any) -> tuple[int, ...]:
    """Return where shared memory has two columns, the factors of their reflectors, tau, factors of v, the
    diagonal of R, reciprocals of scales, and V^H V; the matrix is before them.
    """
    columns, span, cols = config.COLS * config.ld, 2 * config.ROWS, config.COLS
    heads = columns + span
    taus = heads + 2 * HEAD
    parts = columns, heads, *(taus + k * cols for k in range(5))
    return tuple(each * config.dtype_facts.reals_per_element for each in parts)


def _publisher(config: Any, slot: int) -> Callable:
    """``publish(x, v, h, w, y, column, head, s, j, own, is_own, part, lane)``: column j, which is column
    `own` of a warp's threads, of those where `is_own`. Its u and the factor of its reflector go to shared
    memory.
    """
    facts, FIRST, ROWS = config.dtype_facts, slot * config.GROUP, config.GROUP
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    row, make, select, take = row_of(config), reflector(facts), ptx.select, column_taker(config, slot)
    PARTS = SUMS + REALS
    (_, store), add = vectors(config, FIRST), sums_over_parts(config, 1 + REALS)
    _, _, TAUS, FACTORS, BETAS, *_ = places(config)

    @device_function
    def near(k, v, w, j, part):
        """A row of the diagonal's group."""
        at, i = k * REALS, row(k, part)
        for side in range(REALS):
            below = select(i > j, v[at + side], real(0))
            w[REALS + 1 + k % SUMS] += below * below
            w[1 + side] += select(i == j, v[at + side], real(0))

    @device_function
    def far(k, v, w):
        for side in range(REALS):
            w[REALS + 1 + k % SUMS] += v[k * REALS + side] * v[k * REALS + side]

    @device_function
    def set_head(k, v, y, j, part):
        """Elements of u: what is above the diagonal becomes zero."""
        at, i = k * REALS, row(k, part)
        v[at] = select(i > j, v[at], select(i == j, y[1], real(0)))
        if COMPLEX:
            v[at + 1] = select(i >= j, v[at + 1], real(0))

    nears, heads = unrolled(ROWS, near), unrolled(ROWS, set_head)
    fars = unrolled(config.OWN - FIRST - ROWS, far)

    @device_function
    def publish(x, v, h, w, y, column, head, s, j, own, is_own, part, lane):
        take(0, x, v, own)
        for k in range(1 + PARTS):
            w[k] = real(0)
        nears(FIRST, v, w, j, part)
        fars(FIRST + ROWS, v, w)
        for k in range(SUMS):
            w[0] += w[REALS + 1 + k]
        add(w, y, lane)
        make(h, y[1], y[REALS], y[0])
        if is_own:
            is_identity = (h[TAU] == real(0)) & (h[TAU + 1] == real(0))
            y[1] = select(is_identity, real(0), y[1] - h[BETA])
            heads(FIRST, v, y, j, part)
            store(0, column, v, 0)
            if part == 0:
                square = h[FACTOR] * h[FACTOR] + h[FACTOR + 1] * h[FACTOR + 1]
                head[0] = h[TAU] * square
                if COMPLEX:
                    head[1] = -h[TAU + 1] * square
                s[BETAS + j] = h[BETA]
                for side in range(REALS):
                    s[TAUS + j * REALS + side] = h[TAU + side]
                    s[FACTORS + j * REALS + side] = h[FACTOR + side]

    return publish


def _product_leaver(config: Any) -> Callable:
    """``leave(0, y, s, j, col)``: products of column j of V with those on its left, from those of u."""
    facts, LD, GROUPS = config.dtype_facts, config.ld_t, config.GROUPS
    REALS, COMPLEX, (_, _, _, FACTORS, *_, TRIANGLE) = (
        facts.reals_per_element,
        facts.is_complex,
        places(config),
    )

    @device_function
    def leave(c, y, s, j, col):
        col += c * GROUPS
        if col < j:
            at, f, g = TRIANGLE + (col * LD + j) * REALS, s[FACTORS + col * REALS], s[FACTORS + j * REALS]
            if COMPLEX:
                f_im, g_im = s[FACTORS + col * 2 + 1], s[FACTORS + j * 2 + 1]
                re, im = f * g + f_im * g_im, f_im * g - f * g_im
                s[at], s[at + 1] = re * y[c * 2] - im * y[c * 2 + 1], re * y[c * 2 + 1] + im * y[c * 2]
            else:
                s[at] = f * g * y[c]

    return unrolled(config.WIDE, leave)


def _stepper(config: Any, slot: int) -> Callable:
    """``step(x, v, w, y, column, head, s, triangular, j, col, part, lane)``: what reflector j, whose u is in
    shared memory, takes off the columns right of it; if `triangular`, products with those left of it.
    """
    facts, REALS, WIDE = config.dtype_facts, config.dtype_facts.reals_per_element, config.WIDE
    COMPLEX, real, IS_PANEL = facts.is_complex, ptx.REALS[facts.real], config.IS_PANEL
    add, dot, less = sums_over_parts(config, WIDE * REALS), dotter(config, slot), updater(config, slot)
    select, offset, opaque, int32 = ptx.select, ptx.offset, ptx.opaque, ptx.types.int32
    REREADS = config.OWN * facts.itemsize > MOST_OF_COLUMN
    (load, _), leave, zero = (
        vectors(config, slot * config.GROUP),
        _product_leaver(config),
        ptx.fill(WIDE * REALS),
    )

    @device_function
    def multiply(c, y, g, g_im):
        """The multiple of u to take off; nothing where H = I, though x be no number."""
        at, is_identity = c * REALS, (g == real(0)) & (g_im == real(0))
        re, im = y[at], y[at + REALS - 1]
        if COMPLEX:
            y[at + 1] = select(is_identity, real(0), g * im + g_im * re)
            y[at] = select(is_identity, real(0), g * re - g_im * im)
        else:
            y[at] = select(is_identity, real(0), g * re)

    multiply_all = unrolled(WIDE, multiply)

    @device_function
    def step(x, v, w, y, column, head, s, triangular, j, col, part, lane):
        load(0, v, column, 0)
        zero(w, real(0))
        dot(0, x, v, w, j, part)
        add(w, y, lane)
        if IS_PANEL and triangular and part == 0:
            leave(0, y, s, j, col)
        multiply_all(0, y, head[0], head[1] if COMPLEX else real(0))
        if REREADS:
            load(0, v, offset(column, opaque(int32(0))), 0)
        less(0, x, v, y, j, part, col)

    return step


def steps_of(config: Any, slot: int) -> Callable:
    """``run(x, v, w, h, y, s, n, triangular, col, part, t)``: the steps of a group of diagonal rows. With
    `triangular` products with columns on the left are needed.
    """
    REALS, GROUP_COLUMNS = config.dtype_facts.reals_per_element, config.GROUP * config.SPLIT
    FIRST, LAST, SPLIT, GROUPS = slot * GROUP_COLUMNS, (slot + 1) * GROUP_COLUMNS, config.SPLIT, config.GROUPS
    SPAN, PART, HEADS, IS_PANEL = config.ROWS * REALS, config.vector * REALS, HEAD * REALS, config.IS_PANEL
    WIDTH, (COLUMNS, REFLECTORS, *_) = GROUPS * config.WIDE, places(config)
    publish, step = _publisher(config, slot), _stepper(config, slot)
    int32, offset = ptx.types.int32, ptx.offset

    @device_function
    def run(x, v, w, h, y, s, n, triangular, col, part, t):
        j, lane, begin = int32(FIRST), int32(t & 31), int32((t >> 5) * WIDTH)
        while j < LAST and j < n:
            column = offset(s, COLUMNS + (j & 1) * SPAN + part * PART)
            head, own = offset(s, REFLECTORS + (j & 1) * HEADS), int32(j - begin)
            if 0 <= own < WIDTH:
                is_own = own % GROUPS == lane // SPLIT
                publish(x, v, h, w, y, column, head, s, j, int32(own // GROUPS), is_own, part, lane)
            cuda.syncthreads()
            if begin < n and ((IS_PANEL and triangular) or own < WIDTH - 1):
                step(x, v, w, y, column, head, s, triangular, j, col, part, lane)
            j = int32(j + 1)

    return run
