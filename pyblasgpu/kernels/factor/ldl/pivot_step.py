"""Steps of Bunch and Kaufman's factorization: a pivot of one or two columns, interchanges, columns of L.

A step has the candidates in two columns of memory besides W, of its own: column k, and that of the largest
element below its diagonal. The step after it reads W there, since W is written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx
from ....types import Dtype
from ...common.substitution import divider
from .pivot_search import FIRST, LANE_BITS, LANES, entry_reader

__all__ = ["column_writer", "mover", "number_of", "pair_inverter", "publisher"]


def number_of() -> Callable:
    """``number(n, upper, row)``: the caller's number of a row, from 1; `row` counts from the first one
    that is factored.
    """
    int32 = ptx.types.int32

    @device_function
    def number(n, upper, row):
        return int32(n - row) if upper else int32(row + 1)

    return number


def publisher(config: Any) -> Callable:
    """``publish(n, rows, v, w, ld, step, k, largest, low, high, block, t)``: rows `k`, `k` + 1 and `largest`
    of V and W for other blocks, by those that have them: each has memory of its own for three of them.
    """
    REALS, WIDTH, DIM = config.dtype_facts.reals_per_element, config.width, config.threads
    int32, offset = ptx.types.int32, ptx.offset

    @device_function
    def publish_one(n, rows, v, w, ld, step, k, row, low, high, t):
        if low <= row and row < high:
            j = int32(n[FIRST] + t)
            while j < k:
                at = (row * step + j * ld) * REALS
                for part in range(REALS):
                    rows[j * REALS + part] = v[at + part]
                    rows[(WIDTH + j) * REALS + part] = w[at + part]
                j = int32(j + DIM)

    @device_function
    def publish(n, rows, v, w, ld, step, k, largest, low, high, block, t):
        rows, one = offset(rows, block * (6 * WIDTH * REALS)), 2 * WIDTH * REALS
        publish_one(n, rows, v, w, ld, step, k, k, low, high, t)
        publish_one(n, offset(rows, one), v, w, ld, step, k, k + 1, low, high, t)
        publish_one(n, offset(rows, 2 * one), v, w, ld, step, k, largest, low, high, t)

    return publish


def mover(config: Any, spreads: bool) -> Callable:
    """``move(x, n, a, rs, cs, v, w, ld, step, rows, k, kk, kp, low, high, share, sign, t)``: row and column
    `kk` of the rest to those of `kp`, and rows `kk` and `kp` of V and W interchanged in columns before `k`.

    A block writes its rows alone. Where there are several, it finds the others as `publish` left them.
    """
    facts, DIM, ROWS, WIDTH = config.dtype_facts, config.threads, config.threads // LANES, config.width
    REALS, int32, offset, quotient = facts.reals_per_element, ptx.types.int32, ptx.offset, ptx.quotient
    read = entry_reader(facts)

    @device_function
    def exchange(p, i, j):
        for part in range(REALS):
            p[i + part], p[j + part] = p[j + part], p[i + part]

    @device_function
    def receive(n, rows, number, v, w, ld, step, k, row, t):
        rows, j = offset(rows, number * (2 * WIDTH * REALS)), int32(n[FIRST] + t)
        while j < k:
            at = (row * step + j * ld) * REALS
            for part in range(REALS):
                v[at + part] = rows[j * REALS + part]
                w[at + part] = rows[(WIDTH + j) * REALS + part]
            j = int32(j + DIM)

    @device_function
    def interchange(n, v, w, ld, step, rows, k, kk, kp, low, high, share, t):
        if spreads:
            if low <= kk and kk < high:
                receive(n, rows, 3 * int32(quotient(kp, share)) + 2, v, w, ld, step, k, kk, t)
            if low <= kp and kp < high:
                receive(n, rows, 3 * int32(quotient(kk, share)) + kk - k, v, w, ld, step, k, kp, t)
        else:
            j = int32(n[FIRST] + t)
            while j < k:
                one, other = (kk * step + j * ld) * REALS, (kp * step + j * ld) * REALS
                exchange(v, one, other)
                exchange(w, one, other)
                j = int32(j + DIM)

    @device_function
    def put(x, a, at):
        for part in range(REALS):
            a[at + part] = x[part]

    @device_function
    def move(x, n, a, rs, cs, v, w, ld, step, rows, k, kk, kp, low, high, share, sign, t):
        interchange(n, v, w, ld, step, rows, k, kk, kp, low, high, share, t)
        i = int32(max(low, kp) + (t >> LANE_BITS))
        while i < high:
            if t & (LANES - 1) == 0:
                read(x, a, rs, cs, int32(kk if i == kp else i), kk, sign)
                put(x, a, (i * rs + kp * cs) * REALS)
            i = int32(i + ROWS)
        i = int32(kk + 1 + t)
        while i < kp and low <= kp and kp < high:
            read(x, a, rs, cs, kk, i, sign)
            put(x, a, (kp * rs + i * cs) * REALS)
            i = int32(i + DIM)

    return move


def pair_inverter(facts: Dtype) -> Callable:
    """``invert(p, y)``: for a pivot of two columns [a . b d] in `p`, whose element above the diagonal is
    there too: d/b, a/c, and T/c and T/b with T = 1 / (ad/bc - 1); `y` is changed.
    """
    COMPLEX, REALS, real = facts.is_complex, facts.reals_per_element, ptx.REALS[facts.real]
    divide, A, B, C, D, T = divider(facts), 0, 2, 4, 6, 8

    @device_function
    def over(p, at, by):
        divide(p, at, p[by], p[by + REALS - 1])

    @device_function
    def invert(p):
        over(p, D, B)
        over(p, A, C)
        re, im = p[D] * p[A] - real(1), real(0)
        if COMPLEX:
            re, im = re - p[D + 1] * p[A + 1], p[D] * p[A + 1] + p[D + 1] * p[A]
        p[T], p[T + 1] = real(1), real(0)
        divide(p, T, re, im)
        re, im = p[T], p[T + 1]
        over(p, T, C)
        p[C], p[C + 1] = re, im
        over(p, C, B)

    return invert


def column_writer(config: Any) -> tuple[Callable, Callable]:
    """Columns of L of a step, for the rows of a block. They go to V, to the result `o`, and times D to W.

    ``write_one(p, x, o, o_rs, o_cs, v, w, ld, step, k, kp, from_, is_zero, low, high, t)``: a pivot of one
    column, from column `from_` of W. ``write_two(...)``: of two.
    """
    facts, ROWS = config.dtype_facts, config.threads // LANES
    COMPLEX, REALS, int32 = facts.is_complex, facts.reals_per_element, ptx.types.int32
    real, divide, invert = ptx.REALS[facts.real], divider(facts), pair_inverter(facts)

    @device_function
    def take(p, at, w, i, column, ld, step):
        for part in range(REALS):
            p[at + part] = w[(i * step + column * ld) * REALS + part]

    @device_function
    def put(o, at, p, x):
        for part in range(REALS):
            o[at + part] = p[x + part]

    @device_function
    def write_one(p, x, o, o_rs, o_cs, v, w, ld, step, k, kp, source, is_zero, low, high, t):
        take(p, 0, w, kp, source, ld, step)
        i = int32(low + (t >> LANE_BITS))
        while i < high:
            if i >= k and t & (LANES - 1) == 0:
                row = int32(kp if i == k else (k if i == kp else i))
                take(x, 0, w, row, source, ld, step)
                at, to = (i * step + k * ld) * REALS, (i * o_rs + k * o_cs) * REALS
                if is_zero:
                    put(o, to, x, 0)
                    x[0] = x[REALS - 1] = real(0)
                    put(w, at, x, 0)
                    put(v, at, x, 0)
                else:
                    put(w, at, x, 0)
                    if i > k:
                        divide(x, 0, p[0], p[REALS - 1])
                    put(v, at, x, 0)
                    put(o, to, x, 0)
            i = int32(i + ROWS)

    @device_function
    def combine(y, q, p, factor, one, x, i, j):
        # (one x[i] - x[j]) factor
        if COMPLEX:
            re = p[one] * x[i] - p[one + 1] * x[i + 1] - x[j]
            im = p[one] * x[i + 1] + p[one + 1] * x[i] - x[j + 1]
            y[q] = p[factor] * re - p[factor + 1] * im
            y[q + 1] = p[factor] * im + p[factor + 1] * re
        else:
            y[q] = p[factor] * (p[one] * x[i] - x[j])

    @device_function
    def write_two(p, x, o, o_rs, o_cs, v, w, ld, step, k, kp, source, sign, low, high, t):
        kk = int32(k + 1)
        take(p, 0, w, k, source, ld, step)
        take(p, 2, w, kp, source, ld, step)
        take(p, 4, w, kp, source, ld, step)
        take(p, 6, w, kp, source + 1, ld, step)
        if COMPLEX:
            p[5] = sign * p[5]
        invert(p)
        i = int32(low + (t >> LANE_BITS))
        while i < high:
            if i >= k and t & (LANES - 1) == 0:
                row = int32(kp if i == kk else (kk if i == kp else i))
                take(x, 0, w, row, source, ld, step)
                take(x, 2, w, row, source + 1, ld, step)
                at, to = (i * step + k * ld) * REALS, (i * o_rs + k * o_cs) * REALS
                put(w, at, x, 0)
                put(w, at + ld * REALS, x, 2)
                if i > kk:
                    combine(x, 4, p, 8, 6, x, 0, 2)
                    combine(x, 6, p, 4, 0, x, 2, 0)
                    put(v, at, x, 4)
                    put(v, at + ld * REALS, x, 6)
                    put(o, to, x, 4)
                    put(o, to + o_cs * REALS, x, 6)
                else:
                    put(o, to, x, 0)
                    if i == kk:
                        put(o, to + o_cs * REALS, x, 2)
            i = int32(i + ROWS)

    return write_one, write_two
