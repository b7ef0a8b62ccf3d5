"""Parts of `band_chase`: the band in memory, one step of a sweep.

A lane has a row, a warp columns: of B, the block below the diagonal whose first column the step clears, and
of D, the block on the diagonal. Of D only the lower triangle is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ...common.kernel_config import WARP
from ..lane_sums import adder, over_lanes
from ..qr.reflector import BETA, FACTOR, TAU, reflector
from .halves import halver

__all__ = ["band_loader", "keeper", "stepper"]


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
    """Functions of column c of a warp, of B in ``x[:OWN]`` and of D behind it; `z` has v of these columns.

    ``load(0, x, band, b, d, rows, is_first, warp, lane)``, of `band` from the two places on; ``store_b`` and
    ``store_d`` of one; ``rows(0, x, first, acc, z)``: products of rows with v added to ``acc``; ``right(0, x,
    w, z)``: B less w vᴴ; ``dots(0, x, y, v, warp, lane)``: products of columns with the lane's `v` but that
    of the first row, of D below its diagonal; ``share(0, z, v, warp)``: v of the columns from that of lanes.
    """
    facts, OWN, STEP = config.dtype_facts, config.OWN, config.LD - 1
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    read, store_global, select = ptx.load_global(1, False), ptx.store_global, ptx.select
    shuffle, int32 = ptx.shuffle, ptx.types.int32

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
    def row(c, x, first, acc, z):
        at, of = (first + c) * REALS, c * REALS
        if COMPLEX:
            acc[0] += x[at] * z[of] - x[at + 1] * z[of + 1]
            acc[1] += x[at] * z[of + 1] + x[at + 1] * z[of]
        else:
            acc[0] += x[at] * z[of]

    @device_function
    def right(c, x, w, z):
        at = c * REALS
        if COMPLEX:
            x[at] -= w[0] * z[at] + w[1] * z[at + 1]
            x[at + 1] -= w[1] * z[at] - w[0] * z[at + 1]
        else:
            x[at] -= w[0] * z[at]

    @device_function
    def dot(c, x, y, v, warp, lane):
        b, d, more = c * REALS, (OWN + c) * REALS, OWN * REALS
        is_rest, is_below = lane > 0, lane > warp * OWN + c
        if COMPLEX:
            y[b] = select(is_rest, v[0] * x[b] + v[1] * x[b + 1], real(0))
            y[b + 1] = select(is_rest, v[0] * x[b + 1] - v[1] * x[b], real(0))
            y[b + more] = select(is_below, x[d] * v[0] + x[d + 1] * v[1], real(0))
            y[b + more + 1] = select(is_below, x[d] * v[1] - x[d + 1] * v[0], real(0))
        else:
            y[b] = select(is_rest, v[0] * x[b], real(0))
            y[b + more] = select(is_below, x[d] * v[0], real(0))

    @device_function
    def share(c, z, v, warp):
        for part in range(REALS):
            z[c * REALS + part] = shuffle(v[part], int32(warp * OWN + c))

    return tuple(unrolled(OWN, each) for each in (load, store_b, store_d, row, right, dot, share))


def _updater(config: Any) -> tuple[Callable, Callable]:
    """``left(0, x, y, v, h)``: B less conj(tau) v times its products with v, of which ``y[0]`` has those with
    the rest of v before its factor, each in other lanes; ``both(0, x, v, w, z, warp, lane)``: D less
    w vᴴ + v wᴴ.
    """
    facts, OWN = config.dtype_facts, config.OWN
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    shuffle, int32, select, SPAN = ptx.shuffle, ptx.types.int32, ptx.select, WARP // (2 * OWN * REALS)

    @device_function
    def left(c, x, y, v, h):
        b = c * REALS
        re, rest = shuffle(x[b], int32(0)), shuffle(y[0], int32(b * SPAN))
        if COMPLEX:
            im, rest_im = shuffle(x[b + 1], int32(0)), shuffle(y[0], int32((b + 1) * SPAN))
            re += h[FACTOR] * rest + h[FACTOR + 1] * rest_im
            im += h[FACTOR] * rest_im - h[FACTOR + 1] * rest
            times, times_im = h[TAU] * re + h[TAU + 1] * im, h[TAU] * im - h[TAU + 1] * re
            x[b] -= v[0] * times - v[1] * times_im
            x[b + 1] -= v[0] * times_im + v[1] * times
        else:
            x[b] -= v[0] * (h[TAU] * (re + h[FACTOR] * rest))

    @device_function
    def both(c, x, v, w, z, warp, lane):
        j = int32(warp * OWN + c)
        d, of = (OWN + c) * REALS, c * REALS
        re = shuffle(w[0], j)
        if COMPLEX:
            im = shuffle(w[1], j)
            x[d] -= w[0] * z[of] + w[1] * z[of + 1] + v[0] * re + v[1] * im
            change = w[1] * z[of] - w[0] * z[of + 1] + v[1] * re - v[0] * im
            x[d + 1] = select(lane == j, real(0), x[d + 1] - change)
        else:
            x[d] -= w[0] * z[of] + v[0] * re

    return unrolled(OWN, left), unrolled(OWN, both)


def _spreader(count: int) -> Callable:
    """``sums(0, y, lane)``: ``y[0]`` becomes the sum over the warp of element ``lane // (32 / count)`` of y,
    of which there are `count`, a power of two.
    """
    shuffle, int32 = ptx.shuffle, ptx.types.int32

    @device_function
    def one_more(k, y, lane):
        y[0] += shuffle(y[0], int32(lane ^ (1 << k)))

    halves, distance = [], WARP // 2
    while count > 1:
        count //= 2
        halves.append(halver(count, distance))
        distance //= 2
    rest = unrolled(distance.bit_length(), one_more)
    return in_order([*halves, rest])


def keeper(config: Any) -> Callable:
    """``keep(vectors, tau, h, v, i, k, group, steps, rows, lane)``: the vector and tau of the reflector of
    step k of sweep i, for products with all of them.
    """
    WIDTH, REALS = config.WIDTH, config.dtype_facts.reals_per_element
    offset, quotient, int32, int64 = ptx.offset, ptx.quotient, ptx.types.int32, ptx.types.int64

    @device_function
    def keep(vectors, tau, h, v, i, k, group, steps, rows, lane):
        number = int32(quotient(i, group))
        col = int32(i - number * group)
        place = int64(number * steps + k) * group
        column = offset(vectors, ((place + col) * (WIDTH + group) + col) * REALS)
        if lane < rows:
            for part in range(REALS):
                column[lane * REALS + part] = v[part]
        if lane == 0:
            for part in range(REALS):
                tau[(place + col) * REALS + part] = h[TAU + part]

    return keep


def stepper(config: Any) -> Callable:
    """``step(x, y, z, acc, v, h, shared, band, d, e, i, k, row, n, t)``: step k of sweep i, on rows from
    `row` on. A thread keeps the reflector in `z` and `h` for the next step.
    """
    facts, OWN, WIDTH, LD, WARPS = config.dtype_facts, config.OWN, config.WIDTH, config.LD, config.WARPS
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    load, store_b, store_d, rows_of, right, dots, share = _columns(config)
    (left, both), total, make = _updater(config), over_lanes(adder()), reflector(facts)
    COUNT, offset, int32 = 2 * OWN * REALS, ptx.offset, ptx.types.int32
    read, shuffle = ptx.load_global(1, False), ptx.shuffle
    sums_of, quotient, select, SPAN = _spreader(COUNT), ptx.quotient, ptx.select, WARP // COUNT

    @device_function
    def over_warps(acc, parts, warp, lane):
        """Sums of rows over all warps, after a barrier."""
        for part in range(REALS):
            parts[(warp * WARP + lane) * REALS + part] = acc[part]
        cuda.syncthreads()
        for part in range(REALS):
            acc[part], odd = parts[lane * REALS + part], real(0)
            for other in range(1, WARPS):
                x = parts[(other * WARP + lane) * REALS + part]
                if other % 2 == 1:  # two chains of sums, which wait less for one another
                    odd += x
                else:
                    acc[part] += x
            acc[part] += odd

    @device_function
    def times(acc, h):
        """acc times tau."""
        if COMPLEX:
            re = h[TAU] * acc[0] - h[TAU + 1] * acc[1]
            acc[1] = h[TAU] * acc[1] + h[TAU + 1] * acc[0]
            acc[0] = re
        else:
            acc[0] *= h[TAU]

    @device_function
    def finish(v, h, lane):
        """v from the column that it clears."""
        re = h[FACTOR] * v[0]
        if COMPLEX:
            im = h[FACTOR] * v[1] + h[FACTOR + 1] * v[0]
            re -= h[FACTOR + 1] * v[1]
            v[1] = select(lane == 0, real(0), im)
        v[0] = select(lane == 0, real(1), re)

    @device_function
    def from_both_sides(x, z, acc, v, h, sums, parts, warp, lane):
        """Hᴴ D H, with products of columns of D before their factor in `sums`."""
        rows_of(0, x, int32(OWN), acc, z)
        over_warps(acc, parts, warp, lane)
        if lane < WIDTH:
            re, im = sums[lane * REALS], sums[lane * REALS + REALS - 1]
            if COMPLEX:
                acc[0] += h[FACTOR] * re - h[FACTOR + 1] * im
                acc[1] += h[FACTOR] * im + h[FACTOR + 1] * re
            else:
                acc[0] += h[FACTOR] * re
        size = v[0] * acc[0] + v[1] * acc[1] if COMPLEX else v[0] * acc[0]
        size = total(size, lane, int32(WARP))
        shift = h[TAU] * h[TAU] + h[TAU + 1] * h[TAU + 1] if COMPLEX else h[TAU] * h[TAU]
        times(acc, h)
        for part in range(REALS):
            acc[part] -= real(0.5) * shift * size * v[part]
        both(0, x, v, acc, z, warp, lane)

    @device_function
    def step(x, y, z, acc, v, h, shared, band, d, e, i, k, row, n, t):
        warp, lane, is_first = int32(t >> 5), int32(t & 31), k == 0
        rows, sums = int32(min(int32(WIDTH), n - row)), shared
        parts, others = offset(sums, WIDTH * REALS), offset(sums, (WIDTH + WARPS * WARP) * REALS)
        b = int32((i if is_first else row - WIDTH) * (LD - 1) + row)
        at = int32(row * LD)
        for part in range(REALS):
            read(v, part, band, (b + lane) * REALS + part, lane < rows)
        load(0, x, band, b, at, rows, is_first, warp, lane)

        # (1) the last reflector, from the right; each warp has the first column for itself
        if not is_first:
            for part in range(REALS):
                acc[part] = real(0)
            rows_of(0, x, int32(0), acc, z)
            over_warps(acc, parts, warp, lane)
            times(acc, h)
            right(0, x, acc, z)
            for part in range(REALS):
                v[part] -= acc[part]
        else:  # all warps have read the column that the first one writes
            cuda.syncthreads()

        # (2) the reflector of this step, while products with what is below its first element are summed
        for part in range(REALS):
            acc[part] = real(0)
        dots(0, x, y, v, warp, lane)
        square = v[0] * v[0] + v[1] * v[1] if COMPLEX else v[0] * v[0]
        below = total(select(lane > 0, square, real(0)), lane, int32(WARP))
        make(h, shuffle(v[0], int32(0)), shuffle(v[REALS - 1], int32(0)), below)
        sums_of(0, y, lane)
        finish(v, h, lane)
        share(0, z, v, warp)

        # (3) from the left, and from both sides
        left(0, x, y, v, h)
        if warp == 0:
            x[0], x[REALS - 1] = real(0), real(0)
            if lane == 0:
                x[0] = h[BETA]
        store_b(0, x, band, b, rows, is_first, warp, lane)
        if lane % SPAN == 0 and lane >= WARP // 2:
            sums[warp * OWN * REALS + quotient(int32(lane - WARP // 2), int32(SPAN))] = y[0]
        from_both_sides(x, z, acc, v, h, sums, others, warp, lane)
        store_d(0, x, band, at, rows, warp, lane)

        # (4) what is final
        if is_first and t == 0:
            d[i], e[i] = band[i * LD * REALS], h[BETA]
            if i == n - 2:
                d[n - 1] = x[OWN * REALS]

    return step
