"""Parts of `geqp3_panel` whose warps have columns: norms, multipliers of a vector, a row of R."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx, unrolled
from ...common.kernel_config import WARP
from ..lane_sums import adder, larger, over_lanes, several_over_warp
from .pivot_column import clearer, measurer, taker
from .reflector import FACTOR, multiplier, projector, scaler, size_of

__all__ = ["column_step", "dotter", "first_norms"]

#: The least share of a squared norm that may be left before that is made anew; by bytes of a real (LAPACK's
#: tol3z).
CANCELLED = {4: 2.0**-12, 8: 2.0**-26.5}


def dotter(config: Any) -> tuple[Callable, Callable]:
    """``dot(acc, x, v, column, pivot, i, end)`` adds to ``acc[:2]`` the conjugate of a column times another
    one, over the rows of a lane from i on. ``total(acc, lane)``: sums of these over a warp.
    """
    facts, UNROLL = config.dtype_facts, config.UNROLL
    REALS, COMPLEX, int32 = facts.reals_per_element, facts.is_complex, ptx.types.int32
    read = ptx.load_global(1, False)

    @device_function
    def load(k, x, v, column, pivot, i, end):
        row = i + k * WARP
        for part in range(REALS):
            read(x, k * REALS + part, column, row * REALS + part, row < end)
            read(v, k * REALS + part, pivot, row * REALS + part, row < end)

    @device_function
    def add(k, acc, x, v):
        if COMPLEX:
            acc[0] += v[k * 2] * x[k * 2] + v[k * 2 + 1] * x[k * 2 + 1]
            acc[1] += v[k * 2] * x[k * 2 + 1] - v[k * 2 + 1] * x[k * 2]
        else:
            acc[0] += v[k * REALS] * x[k * REALS]

    loads, adds = unrolled(UNROLL, load), unrolled(UNROLL, add)

    @device_function
    def dot(acc, x, v, column, pivot, i, end):
        while i < end:
            loads(0, x, v, column, pivot, i, end)
            adds(0, acc, x, v)
            i = int32(i + UNROLL * WARP)

    return dot, several_over_warp(REALS, adder())


def first_norms(config: Any) -> tuple[Callable, Callable]:
    """``start(acc, a, lda, state, jpvt, jpvt_step, team, teams, n, lane, m)``: columns of about one, their
    state and numbers. ``norms_of(best, key, state, team, teams, first, n, lane)``: the largest norm of a
    lane's columns, after a barrier.
    """
    facts = config.dtype_facts
    REALS, real, int32, root = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.square_root,
    )
    size, scales, largest, total = size_of(facts), scaler(facts), over_lanes(larger()), over_lanes(adder())
    measure, take, offset, clear = measurer(facts), taker(facts), ptx.offset, clearer(facts)

    @device_function
    def start(acc, a, lda, state, jpvt, jpvt_step, team, teams, n, lane, m):
        c = int32(team)
        while c < n:
            column, most, squares, i = offset(a, c * lda * REALS), real(0), real(0), int32(lane)
            while i < m:
                most = max(most, size(column, i * REALS))
                i = int32(i + WARP)
            scales(acc, largest(most, lane, int32(WARP)))
            i = int32(lane)
            while i < m:
                for part in range(REALS):
                    scaled = column[i * REALS + part] * acc[0]
                    column[i * REALS + part] = scaled
                    squares += scaled * scaled
                i = int32(i + WARP)
            norm = root(total(squares, lane, int32(WARP)))
            if lane == 0:
                state[c], state[n + c], state[2 * n + c] = acc[1], norm, norm
                jpvt[c * jpvt_step] = int32(c + 1)
            c = int32(c + teams)

    @device_function
    def norms_of(best, key, state, team, teams, first, n, lane):
        clear(best, first)
        c = int32(team + lane * teams)
        while c < n:
            if c >= first:
                measure(key, state[n + c], state[c])
                take(best, key[0], key[1], real(c))
            c = int32(c + teams * WARP)

    return start, norms_of


def _remaker(config: Any) -> Callable:
    """``remake(acc, u, a, lda, h, c, first, j, lane, m)``: the sum of squares of what is left of column c
    below row j, with the multipliers of the steps before in ``u[:2]`` of lanes, and this step's in ``u[2:]``.
    """
    facts = config.dtype_facts
    REALS, COMPLEX, int32, int64 = facts.reals_per_element, facts.is_complex, ptx.types.int32, ptx.types.int64
    real, shuffle, total = ptx.REALS[facts.real], ptx.shuffle, over_lanes(adder())

    @device_function
    def subtract(acc, re, im, by_re, by_im):
        acc[0] -= re * by_re
        if COMPLEX:
            acc[0] += im * by_im
            acc[1] -= re * by_im + im * by_re

    @device_function
    def remake(acc, u, a, lda, h, c, first, j, lane, m):
        squares, begin = real(0), int32(j + 1)
        while begin < m:
            i = min(int32(begin + lane), int32(m - 1))
            at, pivot = (i + c * lda) * REALS, (i + int64(j) * lda) * REALS
            acc[0], acc[1] = a[at], a[at + REALS - 1]
            for step in range(j - first):
                re, im = shuffle(u[0], int32(step)), shuffle(u[1], int32(step))
                v = (i + int64(first + step) * lda) * REALS
                subtract(acc, a[v], a[v + REALS - 1], re, im)
            re, im = a[pivot], a[pivot + REALS - 1]
            if COMPLEX:
                re, im = re * h[FACTOR] - im * h[FACTOR + 1], re * h[FACTOR + 1] + im * h[FACTOR]
            else:
                re = re * h[FACTOR]
            subtract(acc, re, im, u[2], u[3])
            if begin + lane < m:
                squares += acc[0] * acc[0]
                if COMPLEX:
                    squares += acc[1] * acc[1]
            begin = int32(begin + WARP)
        return total(squares, lane, int32(WARP))

    return remake


def _multiplier_step(config: Any) -> Callable:
    """``multipliers(vectors, u, q, a, lda, g, c, source, first, j, lane, m)``: the multipliers of column c,
    where `source` has those of the steps before, and elements of R, the modulus of the last one is returned.
    ``u[:2]`` becomes the multiplier of the lane's step, ``u[2:]`` that of this one.
    """
    facts, STEPS = config.dtype_facts, config.STEPS
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    (dot, _), total, offset = dotter(config), several_over_warp(4 * REALS, adder()), ptx.offset
    project, multiply, root, int64 = projector(facts), multiplier(facts), ptx.square_root, ptx.types.int64

    @device_function
    def multipliers(vectors, u, q, a, lda, g, c, source, first, j, lane, m):
        acc, x, v, h, _, key = vectors
        column, pivot, k = offset(a, c * lda * REALS), offset(a, int64(j) * lda * REALS), int32(j - first)
        acc[0] = acc[1] = u[0] = u[1] = real(0)
        dot(acc, x, v, column, pivot, int32(j + 1 + lane), m)
        if lane < k:
            for part in range(REALS):
                for kind in range(2):
                    at = lane + kind * STEPS
                    moved = g[(int64(source) * (2 * STEPS) + at) * REALS + part]
                    u[part] = u[part] if kind == 1 else moved
                    g[(c * (2 * STEPS) + at) * REALS + part] = moved
        if COMPLEX:
            acc[2], acc[3] = q[0] * u[0] - q[1] * u[1], q[0] * u[1] + q[1] * u[0]
            acc[4], acc[5] = q[2] * u[0] - q[3] * u[1], q[2] * u[1] + q[3] * u[0]
        else:
            acc[1], acc[2] = q[0] * u[0], q[2] * u[0]
        for part in range(REALS):
            acc[3 * REALS + part] = column[j * REALS + part] if lane == 0 else real(0)
        total(acc, lane)
        project(key, acc, 3 * REALS, acc, 0, h)
        for part in range(REALS):
            key[part] -= acc[REALS + part]
        multiply(u, 2, key, h)
        squares = real(0)
        for part in range(REALS):
            element = acc[3 * REALS + part] - acc[2 * REALS + part] - u[2 + part]
            squares += element * element
            if lane == 0:
                g[(c * (2 * STEPS) + k) * REALS + part] = u[2 + part]
                g[(c * (2 * STEPS) + STEPS + k) * REALS + part] = element
        return root(squares)

    return multipliers


def column_step(config: Any) -> Callable:
    """``step(vectors, u, q, a, lda, g, state, c, first, j, p, n, lane, m)``: step j of
    column c, which was column j before where c is p; ``best`` of lane 0 becomes it where more is left of it.
    """
    facts, CANCEL = config.dtype_facts, CANCELLED[config.dtype_facts.real_size]
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    multipliers, remake, measure, take = (
        _multiplier_step(config),
        _remaker(config),
        measurer(facts),
        taker(facts),
    )
    shuffle, divide, root = ptx.shuffle, ptx.divide, ptx.square_root

    @device_function
    def step(vectors, u, q, a, lda, g, state, c, first, j, p, n, lane, m):
        acc, _, _, h, best, key = vectors
        element = multipliers(vectors, u, q, a, lda, g, int64(c), j if c == p else c, first, j, lane, m)
        norm, made, left = real(0), real(1), real(1)
        if lane == 0:
            norm, made = state[n + c], state[2 * n + c]
            if norm != real(0):
                share = divide(element, norm)
                left = max(real(0), (real(1) + share) * (real(1) - share))
        is_lost = int32(0)
        if lane == 0 and norm != real(0) and left * (divide(norm, made) * divide(norm, made)) <= real(CANCEL):
            is_lost = int32(1)
        norm = norm * root(left)
        if shuffle(is_lost, int32(0)) != 0:
            norm = made = root(remake(acc, u, a, lda, h, int64(c), first, j, lane, m))
        if lane == 0:
            state[n + c], state[2 * n + c] = norm, made
            measure(key, norm, state[c])
            take(best, key[0], key[1], real(c))

    return step
