"""``cpu_triangle``: a small lower triangle solved or multiplied, the leaf of TRSM and TRMM on a processor.

Columns of B pass through a buffer, LANES at a time, side by side. So the innermost loop runs over columns,
and LLVM makes vectors of it. Real and imaginary parts stand in buffers of their own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...cpu.backend import cpu
from ...types import DTYPES

__all__ = ["ORDER", "STEM", "kernel"]

STEM = "cpu_triangle"
#: The largest order of a leaf.
ORDER = 48
LANES = 16  # columns that pass together


@lru_cache(maxsize=16)
def kernel(letter: str, solves: bool) -> Any:
    """The compiled kernel of a dtype, for TRSM or TRMM; it runs without the interpreter's lock.

    Its parameters are the order and the columns of B; address, row and column stride in elements of T and B;
    whether T is conjugated, and whether its diagonal is 1.
    """
    intp, boolean = cpu.types.intp, cpu.types.boolean
    signature = cpu.types.void(*[intp] * 8, boolean, boolean)
    return cpu.njit(signature, nogil=True, error_model="numpy")(build(letter, solves))


def build(letter: str, solves: bool) -> Any:
    """The kernel's function."""
    facts = DTYPES[letter]
    PARTS, number = facts.reals_per_element, cpu.REALS[facts.real]
    load, store = cpu.load(facts.real), cpu.store(facts.real)
    substitute, empty = (_solver if solves else _multiplier)(letter), cpu.empty

    def cpu_triangle(order, cols, t, rs_t, cs_t, b, rs_b, cs_b, conj, unit):
        x, x_i = empty((ORDER, LANES), number), empty((ORDER, LANES), number)
        sign = number(-1) if conj else number(1)
        for j in range(0, cols, LANES):
            lanes = min(LANES, cols - j)
            x[:] = 0
            x_i[:] = 0
            for i in range(order):
                for lane in range(lanes):
                    at = (i * rs_b + (j + lane) * cs_b) * PARTS
                    x[i, lane] = load(b, at)
                    if PARTS == 2:
                        x_i[i, lane] = load(b, at + 1)
            substitute(order, t, rs_t * PARTS, cs_t * PARTS, x, x_i, sign, unit)
            for i in range(order):
                for lane in range(lanes):
                    at = (i * rs_b + (j + lane) * cs_b) * PARTS
                    store(b, at, x[i, lane])
                    if PARTS == 2:
                        store(b, at + 1, x_i[i, lane])

    return cpu_triangle


def _axpy(letter: str) -> Any:
    """``axpy(x, x_i, i, j, re, im)``: row i += a number times row j."""
    COMPLEX = DTYPES[letter].is_complex

    @cpu.njit
    def axpy(x, x_i, i, j, re, im):
        for lane in range(LANES):
            x[i, lane] += re * x[j, lane]
        if COMPLEX:
            for lane in range(LANES):
                x[i, lane] -= im * x_i[j, lane]
            for lane in range(LANES):
                x_i[i, lane] += re * x_i[j, lane] + im * x[j, lane]

    return axpy


def _solver(letter: str) -> Any:
    """``solve(order, t, rs, cs, x, x_i, sign, unit)``: by substitution, with true divisions."""
    facts = DTYPES[letter]
    COMPLEX, load, number = facts.is_complex, cpu.load(facts.real), cpu.REALS[facts.real]
    axpy, divide = _axpy(letter), _divider(letter)

    @cpu.njit(error_model="numpy")
    def solve(order, t, rs, cs, x, x_i, sign, unit):
        for i in range(order):
            for j in range(i):
                at = i * rs + j * cs
                axpy(x, x_i, i, j, -load(t, at), -sign * load(t, at + 1) if COMPLEX else number(0))
            if not unit:
                at = i * (rs + cs)
                divide(x, x_i, i, load(t, at), sign * load(t, at + 1) if COMPLEX else number(0))

    return solve


def _divider(letter: str) -> Any:
    """``divide(x, x_i, i, re, im)``: row i by a number; a complex one by Smith's method."""
    facts = DTYPES[letter]
    COMPLEX, number = facts.is_complex, cpu.REALS[facts.real]

    @cpu.njit(error_model="numpy")
    def divide(x, x_i, i, re, im):
        if not COMPLEX or im == number(0):
            for lane in range(LANES):
                x[i, lane] /= re
            if COMPLEX:
                for lane in range(LANES):
                    x_i[i, lane] /= re
            return
        turns = abs(im) > abs(re)
        if turns:
            re, im = im, -re  # both sides times -i
        ratio = im / re
        divisor = re + im * ratio
        for lane in range(LANES):
            up, up_i = x[i, lane], x_i[i, lane]
            if turns:
                up, up_i = up_i, -up
            x[i, lane] = (up + up_i * ratio) / divisor
            x_i[i, lane] = (up_i - up * ratio) / divisor

    return divide


def _multiplier(letter: str) -> Any:
    """``multiply(order, t, rs, cs, x, x_i, sign, unit)``: the last row first."""
    facts = DTYPES[letter]
    COMPLEX, load, number = facts.is_complex, cpu.load(facts.real), cpu.REALS[facts.real]
    axpy = _axpy(letter)

    @cpu.njit
    def multiply(order, t, rs, cs, x, x_i, sign, unit):
        for up in range(order):
            i = order - 1 - up
            if not unit:
                at = i * (rs + cs)
                re, im = load(t, at), sign * load(t, at + 1) if COMPLEX else number(0)
                for lane in range(LANES):
                    old = x[i, lane]
                    x[i, lane] = re * old
                    if COMPLEX:
                        x[i, lane] -= im * x_i[i, lane]
                        x_i[i, lane] = re * x_i[i, lane] + im * old
            for j in range(i):
                at = i * rs + j * cs
                axpy(x, x_i, i, j, load(t, at), sign * load(t, at + 1) if COMPLEX else number(0))

    return multiply
