"""Columns of `jacobi_svd` in shared memory: loads and stores, products of two columns, their rotation."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import device_function, ptx, unrolled
from ....types import Dtype
from ..qr.reflector import size_of
from .rotation import turner

__all__ = ["ROWS", "column_turner", "mover", "negligible", "products", "starter"]

ROWS = 4  # rows that a thread has under way, of complex ones half as many


def negligible(facts: Dtype) -> float:
    """The sum of squares up to which a column is no direction: that of an eighth of the roundoff, of a matrix
    whose largest element is about one. To make such columns orthogonal would take many sweeps.
    """
    return (facts.unit_roundoff / 8) ** 2


def access(facts: Dtype) -> tuple[Callable, Callable]:
    """``get(x, i, s, at, plane)`` and ``put(s, at, plane, x, i)``: an element from shared memory and to it,
    with imaginary parts `plane` reals behind the real ones.
    """
    COMPLEX = facts.is_complex

    @device_function
    def get(x, i, s, at, plane):
        x[i] = s[at]
        if COMPLEX:
            x[i + 1] = s[at + plane]

    @device_function
    def put(s, at, plane, x, i):
        s[at] = x[i]
        if COMPLEX:
            s[at + plane] = x[i + 1]

    return get, put


def mover(facts: Dtype) -> tuple[Callable, Callable]:
    """``load(x, s, plane, ld, a, a_rs, a_cs, m, n, sign, thread, lanes)``: A to shared memory, its imaginary
    parts times `sign`; the largest size of a part of the thread's elements. ``store(a, a_rs, a_cs, m, n,
    sign, s, plane, ld, order, unit, thread, lanes)``: columns in an order, times `unit`, to a result.
    """
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, int64, quotient = ptx.types.int32, ptx.types.int64, ptx.quotient
    (_, put), size = access(facts), size_of(facts)

    @device_function
    def coordinates(number, m, n, by_columns):
        slow = int32(quotient(number, m if by_columns else n))
        fast = int32(number - slow * (m if by_columns else n))
        return (fast, slow) if by_columns else (slow, fast)

    @device_function
    def load(x, s, plane, ld, a, a_rs, a_cs, m, n, sign, thread, lanes):
        by_columns, most, number = abs(a_rs) <= abs(a_cs), real(0), int32(thread)
        while number < m * n:
            i, j = coordinates(number, m, n, by_columns)
            at = (int64(i) * a_rs + int64(j) * a_cs) * REALS
            for part in range(REALS):
                x[part] = a[at + part]
            if COMPLEX:
                x[1] = sign * x[1]
            most = max(most, size(x, int32(0)))
            put(s, int32(j * ld + i), plane, x, int32(0))
            number = int32(number + lanes)
        return most

    @device_function
    def store(a, a_rs, a_cs, m, n, sign, s, plane, ld, order, unit, thread, lanes):
        by_columns, number = abs(a_rs) <= abs(a_cs), int32(thread)
        while number < m * n:
            i, j = coordinates(number, m, n, by_columns)
            at, of = (int64(i) * a_rs + int64(j) * a_cs) * REALS, int32(int32(order[j]) * ld + i)
            a[at] = s[of] * unit
            if COMPLEX:
                a[at + 1] = sign * s[of + plane] * unit
            number = int32(number + lanes)

    return load, store


def starter(facts: Dtype) -> Callable:
    """``start(s, plane, ld, factor, m, n, rows, thread, lanes)``: A times a factor; below it rows of the
    identity for V, where `rows` is more than `m`; a column of zeros where n is odd.
    """
    REALS, real, int32, quotient = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.quotient,
    )

    @device_function
    def start(s, plane, ld, factor, m, n, rows, thread, lanes):
        number = int32(thread)
        while number < rows * (n + (n & 1)):
            j = int32(quotient(number, rows))
            i = int32(number - j * rows)
            for part in range(REALS):
                at = int32(j * ld + i + part * plane)
                if i < m and j < n:
                    s[at] = s[at] * factor
                else:
                    s[at] = real(1) if i - m == j and part == 0 and j < n else real(0)
            number = int32(number + lanes)

    return start


def pair_loader(facts: Dtype) -> Callable:
    """``load(k, x, s, plane, p, q, width)``: an element of the column at `p` and one of that at `q`, `k`
    times `width` rows below, to elements 2 k and 2 k + 1 of a local array.
    """
    REALS, int32, (get, _) = facts.reals_per_element, ptx.types.int32, access(facts)

    @device_function
    def load(k, x, s, plane, p, q, width):
        get(x, 2 * k * REALS, s, int32(p + k * width), plane)
        get(x, (2 * k + 1) * REALS, s, int32(q + k * width), plane)

    return load


def products(facts: Dtype) -> Callable:
    """``multiply(acc, x, s, plane, p, q, m, lane, width)``: squared norms of the columns at `p` and `q`, and
    the product x^H y of them, to ``acc``: the part of a thread.
    """
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    COUNT, load = ROWS // REALS, pair_loader(facts)

    @device_function
    def add(k, acc, x):
        i, j = 2 * k * REALS, (2 * k + 1) * REALS
        acc[0] += x[i] * x[i]
        acc[1] += x[j] * x[j]
        acc[2] += x[i] * x[j]
        if COMPLEX:
            acc[0] += x[i + 1] * x[i + 1]
            acc[1] += x[j + 1] * x[j + 1]
            acc[2] += x[i + 1] * x[j + 1]
            acc[3] += x[i] * x[j + 1] - x[i + 1] * x[j]

    load_all, add_all = unrolled(COUNT, load), unrolled(COUNT, add)

    @device_function
    def multiply(acc, x, s, plane, p, q, m, lane, width):
        for k in range(4):
            acc[k] = real(0)
        i, step = int32(lane), int32(COUNT * width)
        while i + step - width < m:
            load_all(0, x, s, plane, int32(p + i), int32(q + i), width)
            add_all(0, acc, x)
            i = int32(i + step)
        while i < m:
            load(0, x, s, plane, int32(p + i), int32(q + i), width)
            add(0, acc, x)
            i = int32(i + width)

    return multiply


def column_turner(facts: Dtype) -> Callable:
    """``turn_columns(x, s, plane, p, q, out, rows, lane, width)``: the rotation in ``out`` applied to the
    columns at `p` and `q`, several rows of a thread under way at a time.
    """
    REALS, int32, turn = facts.reals_per_element, ptx.types.int32, turner(facts)
    COUNT, load, (_, put) = ROWS // REALS, pair_loader(facts), access(facts)

    @device_function
    def turn_one(k, x, out):
        turn(x, 2 * k * REALS, (2 * k + 1) * REALS, out[0], out[1], out[2])

    @device_function
    def store(k, x, s, plane, p, q, width):
        put(s, int32(p + k * width), plane, x, 2 * k * REALS)
        put(s, int32(q + k * width), plane, x, (2 * k + 1) * REALS)

    load_all, turn_all, store_all = unrolled(COUNT, load), unrolled(COUNT, turn_one), unrolled(COUNT, store)

    @device_function
    def turn_columns(x, s, plane, p, q, out, rows, lane, width):
        i, step = int32(lane), int32(COUNT * width)
        while i + step - width < rows:
            load_all(0, x, s, plane, int32(p + i), int32(q + i), width)
            turn_all(0, x, out)
            store_all(0, x, s, plane, int32(p + i), int32(q + i), width)
            i = int32(i + step)
        while i < rows:
            load(0, x, s, plane, int32(p + i), int32(q + i), width)
            turn_one(0, x, out)
            store(0, x, s, plane, int32(p + i), int32(q + i), width)
            i = int32(i + width)

    return turn_columns
