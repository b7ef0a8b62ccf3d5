"""Parts of `band_chase`: sizes below a block on the diagonal, the band in memory, one step of a sweep.

A lane has a row, a warp columns: of B, the block below the diagonal whose first column the step clears, and
of D, the block on the diagonal. Of D only the lower triangle is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ...common.kernel_config import WARP
from ..lane_sums import adder, over_lanes, several_over_warp
from ..qr.reflector import BETA, FACTOR, TAU, reflector, size_of

__all__ = ["band_loader", "sizer", "stepper"]


def sizer(config: Any) -> Callable:
    """``size(a, a_rs, a_cs, n, block, blocks, t)``: the largest part of the elements of the lower triangle in
    columns of the thread's warp, of which blocks have every one in turn.
    """
    facts, WARPS = config.dtype_facts, config.WARPS
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, int64, size_of_element = ptx.types.int32, ptx.types.int64, size_of(facts)

    @device_function
    def size(a, a_rs, a_cs, n, block, blocks, t):
        most, slow = real(0), int32(block * WARPS + (t >> 5))
        by_columns, lane = abs(a_rs) <= abs(a_cs), int32(t & 31)
        while slow < n:
            fast = int32(slow + lane) if by_columns else lane
            end = n if by_columns else int32(slow + 1)
            while fast < end:
                i, j = (fast, slow) if by_columns else (slow, fast)
                at = (int64(i) * a_rs + int64(j) * a_cs) * REALS
                if COMPLEX and i == j:
                    x = abs(a[at])
                    most = max(most, x if x == x else real(float("inf")))
                else:
                    most = max(most, size_of_element(a, at))
                fast = int32(fast + WARP)
            slow = int32(slow + blocks * WARPS)
        return most

    return size


def band_loader(config: Any) -> Callable:
    """``load(band, work, n, ld, block, blocks, t)``: the band of the matrix at work, and zeros below it."""
    WIDTH, LD, WARPS = config.WIDTH, config.LD, config.WARPS
    REALS, real, int32 = (
        config.dtype_facts.reals_per_element,
        ptx.REALS[config.dtype_facts.real],
        ptx.types.int32,
    )

    @device_function
    def load(band, work, n, ld, block, blocks, t):
        j, lane = int32(block * WARPS + (t >> 5)), int32(t & 31)
        while j < n:
            i = lane
            while i < LD:
                is_there = (i <= WIDTH) & (j + i < n)
                for part in range(REALS):
                    x = work[(j * ld + j + i) * REALS + part] if is_there else real(0)
                    band[(j * LD + i) * REALS + part] = x if part == 0 or i > 0 else real(0)
                i = int32(i + WARP)
            j = int32(j + blocks * WARPS)

    return load


def _columns(config: Any) -> tuple[Callable, ...]:
    """Functions of column c of a warp, of B in ``x[:OWN]`` and of D behind it; v is in `s`.

    ``load(0, x, band, b, d, rows, is_first, warp, lane)``, of `band` from the two places on; ``store_b`` and
    ``store_d`` of one; ``rows(0, x, first, acc, s, warp)``: products of rows with v added to ``acc``;
    ``right(0, x, w, s, warp)``: B less w vᴴ; ``dots(0, x, y, v, warp, lane)``: products of columns with v,
    of D below its diagonal.
    """
    facts, OWN, STEP = config.dtype_facts, config.OWN, config.LD - 1
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    read, store_global, select = ptx.load_global(1, False), ptx.store_global, ptx.select

    @device_function
    def load(c, x, band, b, d, rows, is_first, warp, lane):
        j = warp * OWN + c
        for part in range(REALS):
            has_b, has_d = (lane < rows) & ((j == 0) | (not is_first)), (lane < rows) & (lane >= j)
            read(x, c * REALS + part, band, (b + j * STEP + lane) * REALS + part, has_b)
            read(x, (OWN + c) * REALS + part, band, (d + j * STEP + lane) * REALS + part, has_d)

    @device_function
    def store_b(c, x, band, b, rows, is_first, warp, lane):
        j = warp * OWN + c
        for part in range(REALS):
            has_b = (lane < rows) & ((j == 0) | (not is_first))
            store_global(band, (b + j * STEP + lane) * REALS + part, x[c * REALS + part], has_b)

    @device_function
    def store_d(c, x, band, d, rows, warp, lane):
        j = warp * OWN + c
        for part in range(REALS):
            has_d = (lane < rows) & (lane >= j)
            store_global(band, (d + j * STEP + lane) * REALS + part, x[(OWN + c) * REALS + part], has_d)

    @device_function
    def row(c, x, first, acc, s, warp):
        at, of = (first + c) * REALS, (warp * OWN + c) * REALS
        if COMPLEX:
            acc[0] += x[at] * s[of] - x[at + 1] * s[of + 1]
            acc[1] += x[at] * s[of + 1] + x[at + 1] * s[of]
        else:
            acc[0] += x[at] * s[of]

    @device_function
    def right(c, x, w, s, warp):
        at, of = c * REALS, (warp * OWN + c) * REALS
        if COMPLEX:
            x[at] -= w[0] * s[of] + w[1] * s[of + 1]
            x[at + 1] -= w[1] * s[of] - w[0] * s[of + 1]
        else:
            x[at] -= w[0] * s[of]

    @device_function
    def dot(c, x, y, v, warp, lane):
        b, d, to = c * REALS, (OWN + c) * REALS, c * REALS
        is_below, more = lane > warp * OWN + c, OWN * REALS
        if COMPLEX:
            y[to] = v[0] * x[b] + v[1] * x[b + 1]
            y[to + 1] = v[0] * x[b + 1] - v[1] * x[b]
            y[to + more] = select(is_below, x[d] * v[0] + x[d + 1] * v[1], real(0))
            y[to + more + 1] = select(is_below, x[d] * v[1] - x[d + 1] * v[0], real(0))
        else:
            y[to] = v[0] * x[b]
            y[to + more] = select(is_below, x[d] * v[0], real(0))

    return tuple(unrolled(OWN, each) for each in (load, store_b, store_d, row, right, dot))


def _updater(config: Any) -> tuple[Callable, Callable]:
    """``left(0, x, y, v, tau)``: B less conj(tau) v times its products with v; ``both(0, x, v, w, s, warp,
    lane)``: D less w vᴴ + v wᴴ.
    """
    facts, OWN = config.dtype_facts, config.OWN
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    shuffle, int32, select = ptx.shuffle, ptx.types.int32, ptx.select

    @device_function
    def left(c, x, y, v, tau):
        b = c * REALS
        if COMPLEX:
            re = tau[0] * y[b] + tau[1] * y[b + 1]
            im = tau[0] * y[b + 1] - tau[1] * y[b]
            x[b] -= v[0] * re - v[1] * im
            x[b + 1] -= v[0] * im + v[1] * re
        else:
            x[b] -= v[0] * (tau[0] * y[b])

    @device_function
    def both(c, x, v, w, s, warp, lane):
        j = int32(warp * OWN + c)
        d, of = (OWN + c) * REALS, j * REALS
        re = shuffle(w[0], j)
        if COMPLEX:
            im = shuffle(w[1], j)
            x[d] -= w[0] * s[of] + w[1] * s[of + 1] + v[0] * re + v[1] * im
            change = w[1] * s[of] - w[0] * s[of + 1] + v[1] * re - v[0] * im
            x[d + 1] = select(lane == j, real(0), x[d + 1] - change)
        else:
            x[d] -= w[0] * s[of] + v[0] * re

    return unrolled(OWN, left), unrolled(OWN, both)


def _maker(config: Any) -> Callable:
    """``make(x, h, s, lane)``: by the first warp, the reflector of the first column of B, its vector and tau
    to `s`.
    """
    facts, WIDTH = config.dtype_facts, config.WIDTH
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    make_one, total, shuffle = reflector(facts), over_lanes(adder()), ptx.shuffle
    int32, select = ptx.types.int32, ptx.select

    @device_function
    def make(x, h, s, lane):
        re, im = x[0], x[REALS - 1]
        square = re * re + im * im if COMPLEX else re * re
        below = total(select(lane > 0, square, real(0)), lane, int32(WARP))
        make_one(h, shuffle(re, int32(0)), shuffle(im, int32(0)), below)
        is_top = lane == 0
        if lane < WIDTH:
            if COMPLEX:
                s[lane * 2] = select(is_top, real(1), h[FACTOR] * re - h[FACTOR + 1] * im)
                s[lane * 2 + 1] = select(is_top, real(0), h[FACTOR] * im + h[FACTOR + 1] * re)
            else:
                s[lane] = select(is_top, real(1), h[FACTOR] * re)
        if is_top:
            for part in range(REALS):
                s[WIDTH * REALS + part] = h[TAU + part]

    return make


def stepper(config: Any) -> Callable:
    """``step(x, y, acc, v, h, shared, band, vectors, tau, d, e, i, k, row, n, group, steps, is_wanted, t)``:
    step k of sweep i, on rows from `row` on. Shared memory keeps the reflector for the next step.
    """
    facts, OWN, WIDTH, LD, WARPS = config.dtype_facts, config.OWN, config.WIDTH, config.LD, config.WARPS
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    load, store_b, store_d, rows_of, right, dots = _columns(config)
    (left, both), make, total = _updater(config), _maker(config), over_lanes(adder())
    reduce, offset, int32, int64 = (
        several_over_warp(2 * OWN * REALS, adder()),
        ptx.offset,
        ptx.types.int32,
        ptx.types.int64,
    )
    quotient, VECTOR = ptx.quotient, (WIDTH + 1) * REALS

    @device_function
    def over_warps(acc, parts, warp, lane):
        """Sums of rows over all warps, after a barrier."""
        for part in range(REALS):
            parts[(warp * WARP + lane) * REALS + part] = acc[part]
        cuda.syncthreads()
        for part in range(REALS):
            acc[part] = parts[lane * REALS + part]
            for other in range(1, WARPS):
                acc[part] += parts[(other * WARP + lane) * REALS + part]

    @device_function
    def times(acc, tau):
        """acc times tau."""
        if COMPLEX:
            re = tau[0] * acc[0] - tau[1] * acc[1]
            acc[1] = tau[0] * acc[1] + tau[1] * acc[0]
            acc[0] = re
        else:
            acc[0] *= tau[0]

    @device_function
    def keep(vectors, tau, s, v, i, k, group, steps, rows, lane):
        """The vector and tau of a reflector, for products with all of them."""
        number = int32(quotient(i, group))
        col = int32(i - number * group)
        place = int64(number * steps + k) * group
        column = offset(vectors, ((place + col) * (WIDTH + group) + col) * REALS)
        if lane < rows:
            for part in range(REALS):
                column[lane * REALS + part] = v[part]
        if lane == 0:
            for part in range(REALS):
                tau[(place + col) * REALS + part] = s[WIDTH * REALS + part]

    @device_function
    def step(x, y, acc, v, h, shared, band, vectors, tau, d, e, i, k, row, n, group, steps, is_wanted, t):
        warp, lane, is_first = int32(t >> 5), int32(t & 31), k == 0
        rows = int32(min(int32(WIDTH), n - row))
        s, last = offset(shared, (k & 1) * VECTOR), offset(shared, (1 - (k & 1)) * VECTOR)
        sums = offset(shared, 2 * VECTOR)
        parts = offset(sums, WIDTH * REALS)
        b = int32((i if is_first else row - WIDTH) * (LD - 1) + row)
        at = int32(row * LD)
        load(0, x, band, b, at, rows, is_first, warp, lane)

        # (1) the last reflector, from the right
        if not is_first:
            for part in range(REALS):
                acc[part] = real(0)
            rows_of(0, x, int32(0), acc, last, warp)
            over_warps(acc, parts, warp, lane)
            times(acc, offset(last, WIDTH * REALS))
            right(0, x, acc, last, warp)

        # (2) the reflector of this step
        if warp == 0:
            make(x, h, s, lane)
        cuda.syncthreads()
        for part in range(REALS):
            v[part] = s[lane * REALS + part] if lane < WIDTH else real(0)
            acc[part] = real(0)

        # (3) from the left, and from both sides
        dots(0, x, y, v, warp, lane)
        reduce(y, lane)
        left(0, x, y, v, offset(s, WIDTH * REALS))
        if warp == 0:
            x[0], x[REALS - 1] = real(0), real(0)
            if lane == 0:
                x[0] = h[BETA]
        store_b(0, x, band, b, rows, is_first, warp, lane)
        if lane == 0:
            for c in range(OWN * REALS):
                sums[warp * OWN * REALS + c] = y[OWN * REALS + c]
        rows_of(0, x, int32(OWN), acc, s, warp)
        over_warps(acc, parts, warp, lane)
        for part in range(REALS):
            acc[part] += sums[lane * REALS + part] if lane < WIDTH else real(0)
        size = v[0] * acc[0] + v[1] * acc[1] if COMPLEX else v[0] * acc[0]
        size = total(size, lane, int32(WARP))
        factor = offset(s, WIDTH * REALS)
        shift = factor[0] * factor[0] + factor[1] * factor[1] if COMPLEX else factor[0] * factor[0]
        times(acc, factor)
        for part in range(REALS):
            acc[part] -= real(0.5) * shift * size * v[part]
        both(0, x, v, acc, s, warp, lane)
        store_d(0, x, band, at, rows, warp, lane)

        # (4) what is final, and what products need
        if is_first and t == 0:
            d[i], e[i] = band[i * LD * REALS], h[BETA]
            if i == n - 2:
                d[n - 1] = x[OWN * REALS]
        if is_wanted and warp == WARPS - 1:
            keep(vectors, tau, s, v, i, k, group, steps, rows, lane)

    return step
