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

__all__ = [
    "column_writer",
    "mover",
    "number_of",
    "pair_inverter",
    "publisher",
    "row_exchanger",
    "row_publisher",
]
__all__ += ["row_receiver", "shifter"]


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
    REALS, WIDTH, offset, publish_one = _reals(config), config.width, ptx.offset, row_publisher(config)

    @device_function
    def publish(n, rows, v, w, ld, step, k, largest, low, high, block, t):
        rows, one = offset(rows, block * (6 * WIDTH * REALS)), 2 * WIDTH * REALS
        publish_one(n, rows, v, w, ld, step, k, k, low, high, t)
        publish_one(n, offset(rows, one), v, w, ld, step, k, k + 1, low, high, t)
        publish_one(n, offset(rows, 2 * one), v, w, ld, step, k, largest, low, high, t)

    return publish


def _reals(config: Any) -> int:
    """Reals of an element."""
    return int(config.dtype_facts.reals_per_element)


def row_publisher(config: Any) -> Callable:
    """``publish_one(n, rows, v, w, ld, step, k, row, low, high, t)``: a row of V and W, for other blocks."""
    REALS, WIDTH, DIM = _reals(config), config.width, config.threads
    int32 = ptx.types.int32

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

    return publish_one


def row_receiver(config: Any) -> Callable:
    """``receive(n, rows, number, v, w, ld, step, k, row, t)``: a published row, to row `row` of V and W."""
    REALS, WIDTH, DIM = _reals(config), config.width, config.threads
    int32, offset = ptx.types.int32, ptx.offset

    @device_function
    def receive(n, rows, number, v, w, ld, step, k, row, t):
        rows, j = offset(rows, number * (2 * WIDTH * REALS)), int32(n[FIRST] + t)
        while j < k:
            at = (row * step + j * ld) * REALS
            for part in range(REALS):
                v[at + part] = rows[j * REALS + part]
                w[at + part] = rows[(WIDTH + j) * REALS + part]
            j = int32(j + DIM)

    return receive


def row_exchanger(config: Any) -> Callable:
    """``exchange(n, v, w, ld, step, k, one, other, t)``: rows of V and W, in the columns before `k`."""
    REALS, DIM, int32 = _reals(config), config.threads, ptx.types.int32

    @device_function
    def exchange_elements(p, i, j):
        for part in range(REALS):
            p[i + part], p[j + part] = p[j + part], p[i + part]

    @device_function
    def exchange(n, v, w, ld, step, k, one, other, t):
        j = int32(n[FIRST] + t)
        while j < k:
            p, q = (one * step + j * ld) * REALS, (other * step + j * ld) * REALS
            exchange_elements(v, p, q)
            exchange_elements(w, p, q)
            j = int32(j + DIM)

    return exchange


def shifter(config: Any) -> Callable:
    """``shift(x, a, rs, cs, kk, kp, low, high, sign, t)``: row and column `kk` of the rest to those of `kp`,
    by blocks that have these.
    """
    facts, DIM, ROWS, REALS = config.dtype_facts, config.threads, config.threads // LANES, _reals(config)
    int32, read = ptx.types.int32, entry_reader(facts)

    @device_function
    def put(x, a, at):
        for part in range(REALS):
            a[at + part] = x[part]

    @device_function
    def shift(x, a, rs, cs, kk, kp, low, high, sign, t):
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

    return shift


def mover(config: Any, spreads: bool) -> Callable:
    """``move(x, n, a, rs, cs, v, w, ld, step, rows, k, kk, kp, low, high, share, sign, t)``: row and column
    `kk` of the rest to those of `kp`, and rows `kk` and `kp` of V and W interchanged in columns before `k`.

    A block writes its rows alone. Where there are several, it finds the others as `publish` left them.
    """
    int32, quotient = ptx.types.int32, ptx.quotient
    receive, exchange, shift = row_receiver(config), row_exchanger(config), shifter(config)

    @device_function
    def interchange(n, v, w, ld, step, rows, k, kk, kp, low, high, share, t):
        if spreads:
            if low <= kk and kk < high:
                receive(n, rows, 3 * int32(quotient(kp, share)) + 2, v, w, ld, step, k, kk, t)
            if low <= kp and kp < high:
                receive(n, rows, 3 * int32(quotient(kk, share)) + kk - k, v, w, ld, step, k, kp, t)
        else:
            exchange(n, v, w, ld, step, k, kk, kp, t)

    @device_function
    def move(x, n, a, rs, cs, v, w, ld, step, rows, k, kk, kp, low, high, share, sign, t):
        interchange(n, v, w, ld, step, rows, k, kk, kp, low, high, share, t)
        shift(x, a, rs, cs, kk, kp, low, high, sign, t)

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
    column, from column `from_` of W. ``write_two(..., k, first, kp, from_, other, sign, low, high, t)``: of
    two, the rows `first` and `kp`, from two columns; `first` is `k` but for rook pivots.
    """
    facts, ROWS, ROOK = config.dtype_facts, config.threads // LANES, config.ROOK
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
    def row_before(i, k, kk, first, kp):
        if i == kp and kp != kk:
            return int32(k if first == kk else kk)
        return int32(first if i == k else (kp if i == kk else (k if i == first else i)))

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
    def write_two(
        p, x, o, o_rs, o_cs, v, w, ld, step, k, first, kp, source, other, sign, low, high, t
    ):  # fmt: skip
        kk = int32(k + 1)
        take(p, 0, w, first, source, ld, step)
        take(p, 2, w, kp, source, ld, step)
        take(p, 4, w, kp, source, ld, step)
        take(p, 6, w, kp, other, ld, step)
        if COMPLEX:
            p[5] = sign * p[5]
        invert(p)
        i = int32(low + (t >> LANE_BITS))
        while i < high:
            if i >= k and t & (LANES - 1) == 0:
                if ROOK:
                    row = row_before(i, k, kk, first, kp)
                else:
                    row = int32(kp if i == kk else (kk if i == kp else i))
                take(x, 0, w, row, source, ld, step)
                take(x, 2, w, row, other, ld, step)
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
