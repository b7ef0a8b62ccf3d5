"""Operations of `level1_reduce`: its partial results, the update by an element, and the sum of two.

NRM2 has three sums of squares, of numbers that are large, of middle size and small; the outer ones are scaled
by powers of 2, so that no square overflows or loses digits (Blue, *A portable Fortran program to find the
Euclidean norm of a vector*, ACM TOMS 4, 1978; Anderson, *Algorithm 978*, ACM TOMS 44, 2017). The bounds are
narrower than theirs, so that sums of 2^38 squares stay finite.

The largest of I?AMAX is the first one, by |Re| + |Im|; NaN is larger than any number. Its index is the two
reals high * 2^20 + low; where there are no elements, -1.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...types import Dtype

__all__ = ["OPERATIONS", "SCALES", "Scales", "operation_of", "reals_of"]

OPERATIONS = ("dot", "nrm2", "asum", "iamax")
LOW_BITS = 20  # of an index, in the last real of a partial result


class Scales(NamedTuple):
    """Powers of 2: numbers above `large`, and below `small`, are scaled before they are squared."""

    large: float
    scale_large: float
    small: float
    scale_small: float


SCALES = {
    "float32": Scales(2.0**45, 2.0**-76, 2.0**-50, 2.0**88),
    "float64": Scales(2.0**480, 2.0**-538, 2.0**-480, 2.0**600),
}


def reals_of(facts: Dtype, operation: str) -> int:
    """Reals of a partial result."""
    return {"dot": facts.reals_per_element, "nrm2": 3, "asum": 1, "iamax": 3}[operation]


def operation_of(facts: Dtype, operation: str) -> SimpleNamespace:
    """The device functions of an operation.

    Attributes
    ----------
    reals : int
        Reals of a partial result `acc`.
    start : device function
        ``start(acc, where)``: the partial result of nothing.
    accumulate : device function
        ``accumulate(e, acc, where, xs, ys, index, conj)``: element `e` of what is in registers added,
        which is number `index` of the vector. A thread's indices ascend; beyond the end elements are 0.
    settle : device function
        ``settle(acc, where)``: `acc` made whole, after the last element.
    merge : device function
        ``merge(acc, p, at, step)``: another partial result added, whose reals are `step` apart from p[at] on.
    finish : device function
        ``finish(out, at, acc)``: the result written as element `at`.
    accumulate_all : callable
        ``accumulate_all(count, take_all)``: what adds all `count` elements of a thread, as `take_all` does by
        ``take_all(0, acc, where, xs, ys, first, t, left, conj)``, without the 0.
    """
    REALS = reals_of(facts, operation)
    makers = {"dot": _dot, "nrm2": _nrm2, "asum": _asum, "iamax": _iamax}

    @device_function
    def add(r, acc, p, at, step):
        acc[r] += p[at + r * step]

    @device_function
    def settle(acc, where):
        pass

    shared = {
        "reals": REALS,
        "start": _zeros(facts, REALS),
        "settle": settle,
        "merge": _merger(REALS, add),
        "accumulate_all": _one_by_one,
    }
    return SimpleNamespace(**(shared | makers[operation](facts)))


def _one_by_one(count: int, take_all):
    """Return the function that accumulates a tile, one element after the other."""

    @device_function
    def accumulate_tile(acc, where, xs, ys, first, t, left, conj):
        take_all(0, acc, where, xs, ys, first, t, left, conj)

    return accumulate_tile


def _merger(count: int, body):
    """``merge(acc, p, at, step)`` of a body that has the number of the real before them."""
    all_of_them = unrolled(count, body)

    @device_function
    def merge(acc, p, at, step):
        all_of_them(0, acc, p, at, step)

    return merge


def _zeros(facts: Dtype, REALS: int):
    real, fill = ptx.REALS[facts.real], ptx.fill(REALS)

    @device_function
    def start(acc, where):
        fill(acc, real(0))

    return start


def _dot(facts: Dtype) -> dict:
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex

    @device_function
    def accumulate(e, acc, where, xs, ys, index, conj):
        if COMPLEX:
            re, im = xs[2 * e], xs[2 * e + 1]
            if conj != 0:
                im = -im
            acc[0] += re * ys[2 * e] - im * ys[2 * e + 1]
            acc[1] += re * ys[2 * e + 1] + im * ys[2 * e]
        else:
            acc[0] += xs[e] * ys[e]

    @device_function
    def finish(out, at, acc):
        for r in range(REALS):
            out[at * REALS + r] = acc[r]

    return {"accumulate": accumulate, "finish": finish}


def _asum(facts: Dtype) -> dict:
    REALS = facts.reals_per_element

    @device_function
    def accumulate(e, acc, where, xs, ys, index, conj):
        for r in range(e * REALS, e * REALS + REALS):
            acc[0] += abs(xs[r])

    @device_function
    def finish(out, at, acc):
        out[at] = acc[0]

    return {"accumulate": accumulate, "finish": finish}


def _nrm2(facts: Dtype) -> dict:
    real, REALS, scales = ptx.REALS[facts.real], facts.reals_per_element, SCALES[facts.real]
    LARGE, SCALE_LARGE, SMALL, SCALE_SMALL = map(real, scales)
    INVERSE_LARGE, INVERSE_SMALL = real(1 / scales.scale_large), real(1 / scales.scale_small)
    SMALLEST, LARGEST = real(scales.small**2), real(scales.large**2)
    select, square_root = ptx.select, ptx.square_root

    @device_function
    def accumulate(e, acc, where, xs, ys, index, conj):
        for r in range(e * REALS, e * REALS + REALS):
            size = abs(xs[r])
            large, small = size > LARGE, size < SMALL
            size *= select(large, SCALE_LARGE, select(small, SCALE_SMALL, real(1)))
            square = size * size
            acc[0] += select(large, square, real(0))
            acc[1] += select(large | small, real(0), square)
            acc[2] += select(small, square, real(0))

    @device_function
    def add_square(e, total, xs):
        for r in range(e * REALS, e * REALS + REALS):
            total[0] += xs[r] * xs[r]

    @device_function
    def finish(out, at, acc):
        large, middle, small = acc[0], acc[1], acc[2]
        if large > real(0):
            out[at] = square_root(large + middle * SCALE_LARGE * SCALE_LARGE) * INVERSE_LARGE
        elif middle == real(0):
            out[at] = square_root(small) * INVERSE_SMALL
        else:
            out[at] = square_root(middle + small * INVERSE_SMALL * INVERSE_SMALL)

    def accumulate_all(count: int, take_all):
        add_all = unrolled(count, add_square)

        @device_function
        def accumulate_tile(acc, where, xs, ys, first, t, left, conj):
            total = cuda.local.array(1, real)
            total[0] = real(0)
            add_all(0, total, xs)
            # then none was large, and digits that small ones have lost do not count
            if (total[0] >= SMALLEST) & (total[0] <= LARGEST):
                acc[1] += total[0]
            else:
                take_all(0, acc, where, xs, ys, first, t, left, conj)

        return accumulate_tile

    return {"accumulate": accumulate, "finish": finish, "accumulate_all": accumulate_all}


def _iamax(facts: Dtype) -> dict:
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int32, int64, select, store_int64 = ptx.types.int32, ptx.types.int64, ptx.select, ptx.store_int64
    REALS_PER_INDEX, LOW = 8 // facts.real_size, (1 << LOW_BITS) - 1

    @device_function
    def start(acc, where):
        acc[0], acc[1], acc[2], where[0] = real(-1), real(0), real(0), int64(0)

    @device_function
    def size_of(e, xs):
        size = abs(xs[e * REALS])
        if REALS == 2:
            size += abs(xs[2 * e + 1])
        return size

    @device_function
    def accumulate(e, acc, where, xs, ys, index, conj):
        size = size_of(e, xs)
        takes = (size > acc[0]) | ((size != size) & (acc[0] == acc[0]))
        acc[0] = select(takes, size, acc[0])
        where[0] = select(takes, int64(index), where[0])

    @device_function
    def compare(e, acc, xs, larger):
        larger[0] |= select(size_of(e, xs) <= acc[0], int32(0), int32(1))  # or NaN

    def accumulate_all(count: int, take_all):
        compare_all = unrolled(count, compare)

        @device_function
        def accumulate_tile(acc, where, xs, ys, first, t, left, conj):
            larger = cuda.local.array(1, int32)
            larger[0] = 0
            compare_all(0, acc, xs, larger)
            if larger[0] != 0:  # which is seldom, but at the beginning
                take_all(0, acc, where, xs, ys, first, t, left, conj)

        return accumulate_tile

    @device_function
    def settle(acc, where):
        acc[1], acc[2] = real(where[0] >> LOW_BITS), real(where[0] & LOW)

    @device_function
    def merge(acc, p, at, step):
        size, high, low = p[at], p[at + step], p[at + 2 * step]
        is_nan, was_nan = size != size, acc[0] != acc[0]
        is_equal = (size == acc[0]) | (is_nan & was_nan)
        is_larger = (size > acc[0]) | (is_nan & (not was_nan))
        is_before = (high < acc[1]) | ((high == acc[1]) & (low < acc[2]))
        takes = is_larger | (is_equal & is_before)
        acc[0], acc[1] = select(takes, size, acc[0]), select(takes, high, acc[1])
        acc[2] = select(takes, low, acc[2])

    @device_function
    def finish(out, at, acc):
        index = (int64(acc[1]) << LOW_BITS) | int64(acc[2])
        store_int64(out, at * REALS_PER_INDEX, select(acc[0] < real(0), int64(-1), index))

    return {
        "start": start,
        "accumulate": accumulate,
        "accumulate_all": accumulate_all,
        "settle": settle,
        "merge": merge,
        "finish": finish,
    }
