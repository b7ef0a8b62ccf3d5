"""Terms of a `gemv` thread's sums: their order, their loads, and products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...gpu.backend import device_function, ptx, unrolled
from .gemv_config import AFTER, ALL, Gemv

__all__ = ["stepper", "term_ranges"]


def _relation() -> Any:
    """``distance(k, o, which)``: how far term k of output o is within the triangle; below 0 it is none."""
    AFTER_ = AFTER

    @device_function
    def distance(k, o, which):
        return k - o if which == AFTER_ else o - k

    return distance


def _fetcher(config: Gemv, masked: bool) -> Any:
    """``fetch(0, a, ...)``: what a thread has of A in one step; zeros beyond it.

    `next_o` and `next_r` are from a vector of a thread to its next, along outputs and terms; `o_step` and
    `r_step` are the distances of the vectors in memory. If `masked`, a triangle is meant: it is loaded real
    by real, without what is beyond it, and without a unit diagonal, which becomes 1.
    """
    facts, GROUPS = config.dtype_facts, config.THR_O // config.VEC_O
    REALS, VEC, THR_R = facts.reals_per_element, config.VEC, config.THR_R
    WIDTH, TRANSPOSED, distance = config.WIDTH, config.transposed, _relation()
    real, load, load_real, select = (
        ptx.REALS[facts.real],
        ptx.load_global(WIDTH, False),
        ptx.load_global(1, False),
        ptx.select,
    )

    @device_function
    def fetch_vector(i, a, here, o_stride, r_stride, next_o, next_r, o, k, outputs, end, which, first):
        g, u = i % GROUPS, i // GROUPS
        at = (g * next_o * o_stride + u * next_r * r_stride) * REALS
        ok = (o + g * next_o < outputs) & (k + u * next_r < end)
        for part in range(0, VEC * REALS, WIDTH):
            load(a, i * VEC * REALS + part, here, at + part, ok)

    @device_function
    def fetch_element(i, a, here, o_stride, r_stride, next_o, next_r, o, k, outputs, end, which, first):
        g, u, v = i // VEC % GROUPS, i // VEC // GROUPS, i % VEC
        more_o = g * next_o + (0 if TRANSPOSED else v)
        more_k = u * next_r + (v if TRANSPOSED else 0)
        ok = (o + more_o < outputs) & (k + more_k < end)
        inside = distance(k + more_k, o + more_o, which)
        at = (more_o * o_stride + more_k * r_stride) * REALS
        for part in range(REALS):
            load_real(a, i * REALS + part, here, at + part, ok & (inside >= first))
        a[i * REALS] = select(ok & (inside == 0) & (first == 1), real(1), a[i * REALS])

    if masked:
        return unrolled(THR_R * GROUPS * VEC, fetch_element)
    return unrolled(THR_R * GROUPS, fetch_vector)


def _x_fetcher(config: Gemv) -> tuple[Any, Any]:
    """``fetch(0, x, ...)``: what a thread has of x in one step, zeros beyond it: real by real; and by
    vectors, where a thread has neighbouring terms.
    """
    REALS, VEC_R, WIDTH = config.dtype_facts.reals_per_element, config.VEC_R, config.WIDTH
    load, load_real = ptx.load_global(WIDTH, False), ptx.load_global(1, False)

    @device_function
    def fetch_element(i, x, x_here, inc, next_r, k, end):
        more = i // VEC_R * next_r + i % VEC_R
        for part in range(REALS):
            load_real(x, i * REALS + part, x_here, more * inc * REALS + part, k + more < end)

    @device_function
    def fetch_vector(u, x, x_here, next_r, k, end):
        for part in range(0, VEC_R * REALS, WIDTH):
            load(x, u * VEC_R * REALS + part, x_here, u * next_r * REALS + part, k + u * next_r < end)

    elements = unrolled(config.THR_R * VEC_R, fetch_element)
    return elements, unrolled(config.THR_R if VEC_R * REALS >= WIDTH else 0, fetch_vector)


def _multiplier(config: Gemv, masked: bool) -> Any:
    """``multiply(0, acc, a, x, ...)``: acc += a x, of terms that there are."""
    facts, GROUPS = config.dtype_facts, config.THR_O // config.VEC_O
    REALS, COMPLEX, VEC = facts.reals_per_element, facts.is_complex, config.VEC
    VEC_O, VEC_R, TRANSPOSED = config.VEC_O, config.VEC_R, config.transposed
    real, distance, select = ptx.REALS[facts.real], _relation(), ptx.select

    @device_function
    def multiply(i, acc, a, x, next_o, next_r, o, k, which, sign_a, sign_x):
        g, u, v = i // VEC % GROUPS, i // VEC // GROUPS, i % VEC
        vo, vr = (0, v) if TRANSPOSED else (v, 0)
        to, of = (g * VEC_O + vo) * REALS, (u * VEC_R + vr) * REALS
        x_re, x_im = x[of], x[of]
        if COMPLEX:
            x_im = sign_x * x[of + 1]
        if masked:
            has = distance(k + u * next_r + vr, o + g * next_o + vo, which) >= 0
            x_re, x_im = select(has, x_re, real(0)), select(has, x_im, real(0))
        if COMPLEX:
            re, im = a[i * REALS], sign_a * a[i * REALS + 1]
            acc[to] += re * x_re
            acc[to] -= im * x_im
            acc[to + 1] += re * x_im
            acc[to + 1] += im * x_re
        else:
            acc[to] += a[i] * x_re

    return unrolled(config.THR_R * GROUPS * VEC, multiply)


def stepper(config: Gemv, masked: bool) -> Any:
    """``run(acc, a, x, a_here, x_here, ...)``: acc += all terms from `first` to `end`, a step at a time."""
    if masked and config.transposed:
        config = replace(config, THR_R=1)  # the border is no longer than that
    REALS, LOADS, int32, int64, offset = (
        config.dtype_facts.reals_per_element,
        config.THR_R,
        ptx.types.int32,
        ptx.types.int64,
        ptx.offset,
    )
    fetch, multiply, (fetch_x, fetch_x_vectors) = (
        _fetcher(config, masked),
        _multiplier(config, masked),
        _x_fetcher(config),
    )
    TRANSPOSED, CONTIGUOUS = config.transposed, config.is_contiguous
    BY_VECTORS = config.VEC_R > 1 and not masked

    @device_function
    def run(
        acc, a, x, a_here, x_here, o_stride, r_stride, inc, next_o, next_r, o, r, first, end, outputs, which,
        unit, vectors, sa, sx,
    ):  # fmt: skip
        if CONTIGUOUS and not TRANSPOSED:  # a constant needs no registers
            o_stride = int64(1)
        if CONTIGUOUS and TRANSPOSED:
            r_stride = int64(1)
        step = int32(next_r * LOADS)
        a_here, x_here = offset(a_here, first * r_stride * REALS), offset(x_here, first * inc * REALS)
        left = int32(end - first)  # terms; first + step may exceed an int32
        while left > 0:
            k = end - left + r
            fetch(0, a, a_here, o_stride, r_stride, next_o, next_r, o, k, outputs, end, which, unit)
            if BY_VECTORS:
                if vectors:
                    fetch_x_vectors(0, x, x_here, next_r, k, end)
                else:
                    fetch_x(0, x, x_here, inc, next_r, k, end)
            else:
                fetch_x(0, x, x_here, inc, next_r, k, end)
            multiply(0, acc, a, x, next_o, next_r, o, k, which, sa, sx)
            a_here, x_here = offset(a_here, step * r_stride * REALS), offset(x_here, step * inc * REALS)
            left = int32(left - step)

    return run


def term_ranges(config: Gemv) -> Any:
    """``ranges(o0, block, slice, terms, per_slice, which)``: first term and the one past the last of those
    that a slice of `block` outputs from o0 on has whole, and of those where the triangle's border runs.
    """
    AFTER_, ALL_, VEC_R, int32 = AFTER, ALL, config.VEC_R, ptx.types.int32

    @device_function
    def ranges(o0, block, slice_, terms, per_slice, which):
        begin, end = int32(0), terms
        border, stop = int32(0), int32(0)
        if which != ALL_:  # whole vectors are before the border, and behind it
            border = int32(min(o0 // VEC_R * VEC_R, terms))
            stop = int32(min((o0 + block + VEC_R - 1) // VEC_R * VEC_R, terms))
            if which == AFTER_:
                begin = stop
            else:
                end = border
        first = int32(min(begin + slice_ * per_slice, end))
        if slice_ > 0:
            border = stop
        return first, int32(min(first + per_slice, end)), border, stop

    return ranges
