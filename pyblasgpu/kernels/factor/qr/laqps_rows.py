"""Parts of `geqp3_panel` whose threads have rows: columns interchanged and updated, vectors finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx, unrolled
from .reflector import BETA, FACTOR

__all__ = ["exchanger", "settler"]

TERMS = 4  # steps before that are loaded at a time


def exchanger(config: Any) -> Callable:
    """``exchange(acc, x, v, a, lda, g, first, j, p, i)``: row i of column j becomes that of column p, less
    what the steps before take off it, and that of column p becomes that of column j. Rows of these steps are
    elements of R, which are with the multipliers.
    """
    facts, STEPS = config.dtype_facts, config.STEPS
    REALS, COMPLEX, int32, int64 = facts.reals_per_element, facts.is_complex, ptx.types.int32, ptx.types.int64
    read, offset = ptx.load_global(1, False), ptx.offset

    @device_function
    def load(k, x, v, row, lda, multipliers, c, l, count):
        ok = l + k < count
        for part in range(REALS):
            read(x, k * REALS + part, row, (c + k) * lda * REALS + part, ok)
            read(v, k * REALS + part, multipliers, (l + k) * REALS + part, ok)

    @device_function
    def subtract(k, acc, x, v):
        if COMPLEX:
            acc[0] -= x[k * 2] * v[k * 2] - x[k * 2 + 1] * v[k * 2 + 1]
            acc[1] -= x[k * 2] * v[k * 2 + 1] + x[k * 2 + 1] * v[k * 2]
        else:
            acc[0] -= x[k * REALS] * v[k * REALS]

    loads, subtracts = unrolled(TERMS, load), unrolled(TERMS, subtract)

    @device_function
    def exchange(acc, x, v, a, lda, g, first, j, p, i):
        row, multipliers = offset(a, int64(i) * REALS), offset(g, int64(p) * (2 * STEPS * REALS))
        is_element = (i >= first) & (i < j)
        for part in range(REALS):
            acc[part] = row[p * lda * REALS + part]
            if is_element:
                acc[part] = multipliers[(STEPS + i - first) * REALS + part]
        if i >= j:
            count, l = int32(j - first), int32(0)
            while l < count:
                loads(0, x, v, row, lda, multipliers, int64(first + l), l, count)
                subtracts(0, acc, x, v)
                l = int32(l + TERMS)
        for part in range(REALS):
            if p != j and not is_element:
                row[p * lda * REALS + part] = row[j * lda * REALS + part]
            row[j * lda * REALS + part] = acc[part]

    return exchange


def settler(config: Any) -> Callable:
    """``settle(a, lda, h, j, i)``: row i of the vector of reflector `h` in column j, and beta on top."""
    facts = config.dtype_facts
    REALS, COMPLEX, int64, real = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.types.int64,
        ptx.REALS[facts.real],
    )

    @device_function
    def settle(a, lda, h, j, i):
        at = (int64(i) + j * lda) * REALS
        if i == j:
            a[at] = h[BETA]
            if COMPLEX:
                a[at + 1] = real(0)
        elif i > j:
            re, im = a[at], a[at + REALS - 1]
            if COMPLEX:
                a[at] = re * h[FACTOR] - im * h[FACTOR + 1]
                a[at + 1] = re * h[FACTOR + 1] + im * h[FACTOR]
            else:
                a[at] = re * h[FACTOR]

    return settle
