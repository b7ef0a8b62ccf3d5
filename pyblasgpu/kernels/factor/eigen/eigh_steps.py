"""Steps of `jacobi_eigh`: the rotation of each pair of columns, and its application to A and to V."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import device_function, ptx, unrolled
from ....types import Dtype
from .rotation import angle, pair_of, turner
from .symmetric_store import places

__all__ = ["ROWS", "rotations", "updater", "vector_turner"]

ROWS = 4  # rows of the vectors that a thread has under way, of complex ones half as many


def rotations(facts: Dtype) -> Callable:
    """``rotate(out, x, turns, s, plane, i, k, h)``: the rotation of pair `i` in step `k`, to `turns`, and
    its own four elements of A.
    """
    place, sign, get, _ = places(facts)
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    pair, make, int32 = pair_of(), angle(facts), ptx.types.int32

    @device_function
    def rotate(out, x, turns, s, plane, i, k, h):
        p, q = pair(i, k, int32(h + h))
        first, second, between = place(p, p, h), place(q, q, h), place(p, q, h)
        get(x, int32(0), s, between, plane, sign(p, q, h))
        gain = make(out, s[second] - s[first], x[0], x[REALS - 1])
        s[first] -= gain
        s[second] += gain
        s[between] = real(0)
        turns[i], turns[h + i] = out[0], out[1]
        if COMPLEX:
            s[between + plane] = real(0)
            turns[h + h + i] = out[2]

    return rotate


def updater(facts: Dtype) -> Callable:
    """``update(x, turns, s, plane, i, k, h, d, step, meets_fixed)``: the rotations of step `k` applied to A,
    where the rows of pair `i` meet the columns of pair i + d, i + d + step, ...; pair 0, which has the column
    that is in no diagonal, meets pair `i` if `meets_fixed`.
    """
    *_, get, put = places(facts)
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    pair, turn, select = pair_of(), turner(facts), ptx.select

    @device_function
    def turn_block(x, s, plane, pp, pq, qp, qq, first, crossed, second, c, re, im, c_j, re_j, im_j):
        get(x, 0, s, pp, plane, first)
        get(x, REALS, s, pq, plane, crossed)
        get(x, 2 * REALS, s, qp, plane, -crossed)
        get(x, 3 * REALS, s, qq, plane, second)
        turn(x, 0, REALS, c_j, re_j, im_j)
        turn(x, 2 * REALS, 3 * REALS, c_j, re_j, im_j)
        turn(x, 0, 2 * REALS, c, re, -im)
        turn(x, REALS, 3 * REALS, c, re, -im)
        put(s, pp, plane, x, 0, first)
        put(s, pq, plane, x, REALS, crossed)
        put(s, qp, plane, x, 2 * REALS, -crossed)
        put(s, qq, plane, x, 3 * REALS, second)

    @device_function
    def update(x, turns, s, plane, i, k, h, d, step, meets_fixed):
        m, others, c, re, im = int32(h + h), int32(h - 1), turns[i], turns[h + i], real(0)
        if COMPLEX:
            im = turns[h + h + i]
        p, q = pair(i, k, m)
        while d + d < others or (d + d == others and i <= d):
            # rows p and q, columns p_j and q_j: distances d or others - d, and i + j or m - 1 - i - j
            j = int32(i + d)
            is_back, distance = j >= h, d
            if is_back:
                j, distance = int32(j - others), int32(others - d)
            p_j, q_j = pair(j, k, m)
            is_near, across = i + j < h, int32(i + j)
            start = int32(distance * m)
            far = int32(select(is_near, across, int32(m - 1 - across)) * m)
            pp, qq = int32(start + select(is_back, p_j, p)), int32(start + select(is_back, q, q_j))
            pq, qp = int32(far + select(is_near, q_j, p)), int32(far + select(is_near, q, p_j))
            c_j, re_j, im_j = turns[j], turns[h + j], real(0)
            if COMPLEX:
                im_j = turns[h + h + j]
            first, crossed = real(1) if is_back else real(-1), real(1) if is_near else real(-1)
            turn_block(x, s, plane, pp, pq, qp, qq, first, crossed, -first, c, re, im, c_j, re_j, im_j)
            d = int32(d + step)
        if meets_fixed:
            # rows m - 1 and k
            c_0, re_0, im_0, last, start = turns[0], turns[h], real(0), int32(h * m), int32(i * m)
            if COMPLEX:
                im_0 = turns[h + h]
            pp, pq, qp, qq = int32(last + p), int32(last + q), int32(start + k), int32(start + q)
            one = real(1)
            turn_block(x, s, plane, pp, pq, qp, qq, one, one, one, c_0, re_0, im_0, c, re, im)

    return update


def vector_turner(facts: Dtype, ldv: int) -> Callable:
    """``turn_vectors(x, turns, v, plane, i, k, h, row, end)``: the rotation of pair `i` of step `k` applied
    to rows of V, several under way at a time.
    """
    *_, get, put = places(facts)
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    pair, turn, COUNT = pair_of(), turner(facts), ROWS // facts.reals_per_element
    offset, LDV = ptx.offset, ldv

    @device_function
    def load(k, x, first, second, plane):
        get(x, 2 * k * REALS, first, k * LDV, plane, real(1))
        get(x, (2 * k + 1) * REALS, second, k * LDV, plane, real(1))

    @device_function
    def turn_one(k, x, c, re, im):
        turn(x, 2 * k * REALS, (2 * k + 1) * REALS, c, re, im)

    @device_function
    def store(k, x, first, second, plane):
        put(first, k * LDV, plane, x, 2 * k * REALS, real(1))
        put(second, k * LDV, plane, x, (2 * k + 1) * REALS, real(1))

    load_all, turn_all, store_all = unrolled(COUNT, load), unrolled(COUNT, turn_one), unrolled(COUNT, store)

    @device_function
    def turn_vectors(x, turns, v, plane, i, k, h, row, end):
        c, re, im = turns[i], turns[h + i], real(0)
        if COMPLEX:
            im = turns[h + h + i]
        p, q = pair(i, k, int32(h + h))
        first, second = offset(v, int32(p + row * LDV)), offset(v, int32(q + row * LDV))
        while row + COUNT <= end:
            load_all(0, x, first, second, plane)
            turn_all(0, x, c, re, im)
            store_all(0, x, first, second, plane)
            first, second = offset(first, COUNT * LDV), offset(second, COUNT * LDV)
            row = int32(row + COUNT)
        while row < end:
            load(0, x, first, second, plane)
            turn_one(0, x, c, re, im)
            store(0, x, first, second, plane)
            first, second, row = offset(first, LDV), offset(second, LDV), int32(row + 1)

    return turn_vectors
