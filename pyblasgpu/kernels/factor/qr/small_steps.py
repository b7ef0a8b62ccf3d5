"""Steps of `geqrf_small`: a reflector that one warp makes, and what it takes off the columns of all.

Columns are in registers, as `split_columns` has them, and what warps pass to one another is in shared memory.
`config` has what it needs there, and IS_PANEL and `ld_t`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....types import Dtype
from ...common.substitution import divider
from ..cholesky.inverse_root import inverse_root
from ..reciprocal import reciprocal
from .split_columns import column_taker, dotter, row_of, sums_over_parts, updater, vectors

__all__ = ["HEAD", "SUMS", "places", "product_scaler", "scalar_maker", "steps_of"]

HEAD = 2  # elements for the factor of a reflector
#: A column that was about one, and of which no larger sum of squares is left, counts as zero: `inverse_root`
#: takes no smaller ones.
NEGLIGIBLE = {4: 2.0**-100, 8: 2.0**-900}
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


def _reflector(facts: Dtype) -> Callable:
    """``make(w, y)``: of a column with the sum of squares ``y[0]`` below its first element ``y[1:]``, to
    ``w`` beta and g = 1 / (beta (beta - y[1])), to ``y[1:]`` the first element of u. Both are zero if H = I.

    All steps wait for g, so roots are those of `inverse_root`, and reciprocals no divisions.
    """
    REALS, COMPLEX, TINY = facts.reals_per_element, facts.is_complex, NEGLIGIBLE[facts.real_size]
    real, fma, (_, quick_root, _) = ptx.REALS[facts.real], ptx.fma, inverse_root(facts)

    invert = reciprocal(facts)

    @device_function
    def make(w, y):
        re, im, rest = y[1], y[REALS], y[0]
        if COMPLEX:
            rest += im * im
        square = re * re + rest
        w[0], w[1], y[1] = re, real(0), real(0)
        if COMPLEX:
            w[2] = y[2] = real(0)
        if rest != real(0) and not square <= real(TINY):
            r = quick_root(square)
            norm = square * r
            norm = fma(fma(-norm, norm, square) * real(0.5), r, norm)
            g = invert(fma(abs(re), norm, square))
            beta = norm if re < real(0) else -norm
            w[0], y[1] = beta, re - beta
            if COMPLEX:
                # g of 1 - i t, t at most one
                t = -beta * im * g
                g *= invert(fma(t, t, real(1)))
                w[2], y[2] = -g * t, im
            w[1] = g

    return make


def _publisher(config: Any, slot: int) -> Callable:
    """``publish(x, v, w, y, column, head, s, j, own, is_own, part, lane)``: column j, which is column `own`
    of a warp's threads, of those where `is_own`. Its u and the factor g of its reflector go to shared memory,
    and beta and the first element of u for the end.
    """
    facts, FIRST, ROWS = config.dtype_facts, slot * config.GROUP, config.GROUP
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    row, make, select, take = row_of(config), _reflector(facts), ptx.select, column_taker(config, slot)
    PARTS = SUMS + REALS
    (_, store), add = vectors(config, FIRST), sums_over_parts(config, 1 + REALS)
    _, _, _, FACTORS, BETAS, *_ = places(config)

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
    def publish(x, v, w, y, column, head, s, j, own, is_own, part, lane):
        take(0, x, v, own)
        for k in range(1 + PARTS):
            w[k] = real(0)
        nears(FIRST, v, w, j, part)
        fars(FIRST + ROWS, v, w)
        for k in range(SUMS):
            w[0] += w[REALS + 1 + k]
        add(w, y, lane)
        make(w, y)
        if is_own:
            heads(FIRST, v, y, j, part)
            store(0, column, v, 0)
            if part == 0:
                s[BETAS + j] = w[0]
                for side in range(REALS):
                    head[side] = w[1 + side]
                    s[FACTORS + j * REALS + side] = y[1 + side]

    return publish


def _product_leaver(config: Any) -> Callable:
    """``leave(y, w, s, j, col, part)``: products of u of column j with those on its left, each by one thread
    of the neighbours that have it.
    """
    REALS, LD, GROUPS, WIDE = config.dtype_facts.reals_per_element, config.ld_t, config.GROUPS, config.WIDE
    select, (*_, TRIANGLE) = ptx.select, places(config)

    @device_function
    def pick(c, y, w, part):
        for side in range(REALS):
            w[side] = select(part == c, y[c * REALS + side], w[side])

    picks = unrolled(WIDE, pick)

    @device_function
    def leave(y, w, s, j, col, part):
        picks(0, y, w, part)
        col += part * GROUPS
        if part < WIDE and col < j:
            for side in range(REALS):
                s[TRIANGLE + (col * LD + j) * REALS + side] = w[side]

    return leave


def product_scaler(config: Any) -> Callable:
    """``scale(s, n, t)``: products of V, from those of u, below the diagonal of the triangle."""
    facts, LD, COLS, DIM = config.dtype_facts, config.ld_t, config.COLS, config.DIM
    REALS, COMPLEX, int32 = facts.reals_per_element, facts.is_complex, ptx.types.int32
    _, _, _, FACTORS, *_, TRIANGLE = places(config)

    @device_function
    def scale(s, n, t):
        at = int32(t)
        while at < COLS * COLS:
            row, col = int32(at % COLS), int32(at // COLS)
            if col < row < n:
                to, f, g = TRIANGLE + (col * LD + row) * REALS, FACTORS + col * REALS, FACTORS + row * REALS
                if COMPLEX:
                    re, im = s[f] * s[g] + s[f + 1] * s[g + 1], s[f + 1] * s[g] - s[f] * s[g + 1]
                    x, y = s[to], s[to + 1]
                    s[to], s[to + 1] = re * x - im * y, re * y + im * x
                else:
                    s[to] *= s[f] * s[g]
            at = int32(at + DIM)

    return scale


def scalar_maker(config: Any) -> Callable:
    """``make(s, h, t)``: tau and the factor of v of column t, from beta and the first element of u."""
    facts = config.dtype_facts
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    divide, divide_element = ptx.divide, divider(facts)
    _, _, TAUS, FACTORS, BETAS, *_ = places(config)

    @device_function
    def make(s, h, t):
        at, beta = t * REALS, s[BETAS + t]
        re, im = s[FACTORS + at], s[FACTORS + at + REALS - 1]
        h[0] = h[1] = h[2] = h[3] = real(0)
        is_identity = re == real(0)
        if COMPLEX:
            is_identity = is_identity & (im == real(0))
        if not is_identity:
            h[0], h[2] = divide(-re, beta), real(1)
            if COMPLEX:
                h[1] = divide(-im, beta)
            divide_element(h, 2, re, im)
        for side in range(REALS):
            s[TAUS + at + side], s[FACTORS + at + side] = h[side], h[2 + side]

    return make


def _stepper(config: Any, slot: int) -> Callable:
    """``step(x, v, w, y, column, head, s, triangular, j, col, part, lane)``: what reflector j, whose u is in
    shared memory, takes off the columns right of it; if `triangular`, products with those left of it.
    """
    facts, REALS, WIDE = config.dtype_facts, config.dtype_facts.reals_per_element, config.WIDE
    COMPLEX, real, IS_PANEL = facts.is_complex, ptx.REALS[facts.real], config.IS_PANEL
    add, dot, less = sums_over_parts(config, WIDE * REALS), dotter(config, slot), updater(config, slot)
    select = ptx.select
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
        if IS_PANEL and triangular:
            leave(y, w, s, j, col, part)
        multiply_all(0, y, head[0], head[1] if COMPLEX else real(0))
        less(0, x, v, y, j, part, col)

    return step


def steps_of(config: Any, slot: int) -> Callable:
    """``run(x, v, w, y, s, n, triangular, col, part, t)``: the steps of a group of diagonal rows. With
    `triangular` products with columns on the left are needed.
    """
    REALS, GROUP_COLUMNS = config.dtype_facts.reals_per_element, config.GROUP * config.SPLIT
    FIRST, LAST, SPLIT, GROUPS = slot * GROUP_COLUMNS, (slot + 1) * GROUP_COLUMNS, config.SPLIT, config.GROUPS
    SPAN, PART, HEADS, IS_PANEL = config.ROWS * REALS, config.vector * REALS, HEAD * REALS, config.IS_PANEL
    WIDTH, (COLUMNS, REFLECTORS, *_) = GROUPS * config.WIDE, places(config)
    publish, step = _publisher(config, slot), _stepper(config, slot)
    int32, offset = ptx.types.int32, ptx.offset

    @device_function
    def run(x, v, w, y, s, n, triangular, col, part, t):
        j, lane, begin = int32(FIRST), int32(t & 31), int32((t >> 5) * WIDTH)
        while j < LAST and j < n:
            column = offset(s, COLUMNS + (j & 1) * SPAN + part * PART)
            head, own = offset(s, REFLECTORS + (j & 1) * HEADS), int32(j - begin)
            if 0 <= own < WIDTH:
                is_own = own % GROUPS == lane // SPLIT
                publish(x, v, w, y, column, head, s, j, int32(own // GROUPS), is_own, part, lane)
            cuda.syncthreads()
            if begin < n and ((IS_PANEL and triangular) or own < WIDTH - 1):
                step(x, v, w, y, column, head, s, triangular, j, col, part, lane)
            j = int32(j + 1)

    return run
