"""Half of a symmetric or Hermitian matrix in shared memory, by diagonals of the circle of its columns.

Of m columns, m - 1 are on a circle, and its diagonal d has the elements of columns that are d apart. The last
column has a place of its own behind the diagonals.
"""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import device_function, ptx
from ....types import Dtype
from ..qr.reflector import size_of

__all__ = ["loader", "places", "symmetric_scaler", "squares"]


def places(facts: Dtype) -> tuple[Callable, Callable, Callable, Callable]:
    """``place(i, j, h)``: where the element of A is that is (i, j) or the conjugate of (j, i); ``sign(i, j,
    h)``: what its imaginary part is multiplied by to be that of (i, j). ``get(x, i, s, at, plane, sign)`` and
    ``put(s, at, plane, x, i, sign)``: an element from shared memory and to it, `plane` reals from the real
    parts to the imaginary ones.
    """
    COMPLEX, real, int32, select = facts.is_complex, ptx.REALS[facts.real], ptx.types.int32, ptx.select

    @device_function
    def place(i, j, h):
        m, row, col = int32(h + h), int32(max(i, j)), int32(min(i, j))
        is_near = row - col < h
        at = select(is_near, int32((row - col) * m + col), int32((m - 1 - row + col) * m + row))
        return select(row == m - 1, int32(h * m + col), at)

    @device_function
    def sign(i, j, h):
        is_far = (abs(i - j) >= h) & (max(i, j) < h + h - 1)
        return real(1) if (i >= j) != is_far else real(-1)

    @device_function
    def get(x, i, s, at, plane, sign):
        x[i] = s[at]
        if COMPLEX:
            x[i + 1] = sign * s[at + plane]

    @device_function
    def put(s, at, plane, x, i, sign):
        s[at] = x[i]
        if COMPLEX:
            s[at + plane] = sign * x[i + 1]

    return place, sign, get, put


def loader(facts: Dtype, ldv: int) -> Callable:
    """``load(x, s, plane, v, plane_v, vectors, a, a_rs, a_cs, n, rows, conj, h, thread, lanes)``: A to
    shared memory, zeros beyond `rows`, the identity for the vectors; the largest size of a part of the
    thread's elements.
    """
    place, sign, _, put = places(facts)
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, int64, quotient, size = ptx.types.int32, ptx.types.int64, ptx.quotient, size_of(facts)
    LDV = ldv

    @device_function
    def load(x, s, plane, v, plane_v, vectors, a, a_rs, a_cs, n, rows, conj, h, thread, lanes):
        by_columns, m = abs(a_rs) <= abs(a_cs), int32(h + h)
        most, number = real(0), int32(thread)
        while number < m * m:
            slow = int32(quotient(number, m))
            fast = int32(number - slow * m)
            i, j = (fast, slow) if by_columns else (slow, fast)
            if i >= j:
                x[0], x[REALS - 1] = real(0), real(0)
                if i < rows:
                    at = (int64(i) * a_rs + int64(j) * a_cs) * REALS
                    for part in range(REALS):
                        x[part] = a[at + part]
                    if COMPLEX:
                        x[1] = real(0) if i == j else (-x[1] if conj != 0 else x[1])
                    most = max(most, size(x, int32(0)))
                put(s, place(i, j, h), plane, x, int32(0), sign(i, j, h))
            if vectors != 0 and slow < n:
                at = int32(slow * LDV + fast)
                for part in range(REALS):
                    v[at + part * plane_v] = real(1) if part == 0 and slow == fast else real(0)
            number = int32(number + lanes)
        return most

    return load


def symmetric_scaler(facts: Dtype) -> Callable:
    """``scale(out, s, plane, factor, h, thread, lanes)``: A times a factor; ``out[0]`` the sum of squares
    of the thread's elements, ``out[1]`` of those below the diagonal.
    """
    place, *_ = places(facts)
    REALS, real, int32, quotient = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.quotient,
    )

    @device_function
    def scale(out, s, plane, factor, h, thread, lanes):
        out[0], out[1] = real(0), real(0)
        m, number = int32(h + h), int32(thread)
        while number < m * m:
            j = int32(quotient(number, m))
            i = int32(number - j * m)
            if i >= j:
                at, square = place(i, j, h), real(0)
                for part in range(REALS):
                    x = s[at + part * plane] * factor
                    s[at + part * plane] = x
                    square += x * x
                out[0] += square
                if i > j:
                    out[0] += square
                    out[1] += square
            number = int32(number + lanes)

    return scale


def squares(facts: Dtype) -> Callable:
    """``square(s, plane, h, thread, lanes)``: the sum of squares of a thread's elements of A, without the
    diagonal.
    """
    REALS, real, int32, quotient = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.quotient,
    )

    @device_function
    def square(s, plane, h, thread, lanes):
        m, total, number = int32(h + h), real(0), int32(thread)
        while number < h * (m - 1):
            distance = int32(quotient(number, int32(m - 1)))
            at = int32(number + m + distance)
            for part in range(REALS):
                x = s[at + part * plane]
                total += x * x
            number = int32(number + lanes)
        return total

    return square
