"""What a thread of `gemv_n` and `gemv_t` does with the terms of its sums: which, how they come, products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...gpu.backend import device_function, ptx, unrolled
from .gemv_config import AFTER, ALL, Gemv

__all__ = ["stepper", "term_ranges"]


def _places(config: Gemv) -> Any:
    """``place(x)``: of load number x of a thread, by how many outputs and terms it is further than the first;
    and which vector of outputs, which step along the sum that is.
    """
    GROUPS = config.THR_O // config.VEC_O
    OUTPUTS, TERMS = config.DIM_O * config.VEC_O, config.DIM_R * config.VEC_R

    @device_function
    def place(x):
        g, u = x % GROUPS, x // GROUPS
        return g * OUTPUTS, u * TERMS

    return place, GROUPS


def _relation(unit_matters: bool) -> Any:
    """``distance(k, o, which)``: how far term k of output o lies within the triangle; below 0 it is none."""
    AFTER_ = AFTER

    @device_function
    def distance(k, o, which):
        return k - o if which == AFTER_ else o - k

    return distance


def _fetcher(config: Gemv, masked: bool) -> Any:
    """``fetch(a, x, ...)``: what a thread has of A and x in one step; zeros beyond them.

    If `masked`, a triangle is meant: it is loaded real by real, without what is beyond it, and without a unit
    diagonal, which becomes 1.
    """
    facts = config.dtype_facts
    PARTS, VEC, VEC_R, THR_R = facts.reals_per_element, config.VEC, config.VEC_R, config.THR_R
    WIDTH, BY_OUTPUT, TERMS = config.WIDTH, config.BY_OUTPUT, config.DIM_R * config.VEC_R
    real, load, load_real, select = (
        ptx.REALS[facts.real], ptx.load_global(WIDTH, False), ptx.load_global(1, False), ptx.select,
    )  # fmt: skip
    (place, GROUPS), distance = _places(config), _relation(masked)

    @device_function
    def fetch_vector(i, a, here, o_stride, r_stride, o, k, outputs, end, which, first):
        more_o, more_k = place(i)
        at = (more_o * o_stride + more_k * r_stride) * PARTS
        ok = (o + more_o < outputs) & (k + more_k < end)
        for part in range(0, VEC * PARTS, WIDTH):
            load(a, i * VEC * PARTS + part, here, at + part, ok)

    @device_function
    def fetch_element(i, a, here, o_stride, r_stride, o, k, outputs, end, which, first):
        more_o, more_k = place(i // VEC)
        more_o += i % VEC if BY_OUTPUT else 0
        more_k += 0 if BY_OUTPUT else i % VEC
        ok = (o + more_o < outputs) & (k + more_k < end)
        inside = distance(k + more_k, o + more_o, which)
        at = (more_o * o_stride + more_k * r_stride) * PARTS
        for part in range(PARTS):
            load_real(a, i * PARTS + part, here, at + part, ok & (inside >= first))
        a[i * PARTS] = select(ok & (inside == 0) & (first == 1), real(1), a[i * PARTS])

    @device_function
    def fetch_x(i, x, x_here, inc, k, end):
        more = i // VEC_R * TERMS + i % VEC_R
        for part in range(PARTS):
            load_real(x, i * PARTS + part, x_here, more * inc * PARTS + part, k + more < end)

    fetch_a = (
        unrolled(THR_R * GROUPS * VEC, fetch_element) if masked else unrolled(THR_R * GROUPS, fetch_vector)
    )
    return fetch_a, unrolled(THR_R * VEC_R, fetch_x)


def _multiplier(config: Gemv, masked: bool) -> Any:
    """``multiply(0, acc, a, x, ...)``: acc += a x, of terms that there are."""
    facts = config.dtype_facts
    PARTS, COMPLEX, VEC = facts.reals_per_element, facts.is_complex, config.VEC
    VEC_O, VEC_R, BY_OUTPUT = config.VEC_O, config.VEC_R, config.BY_OUTPUT
    (place, GROUPS), distance, select = _places(config), _relation(masked), ptx.select
    real = ptx.REALS[facts.real]

    @device_function
    def multiply(i, acc, a, x, o, k, which, sign_a, sign_x):
        vector, v = i // VEC, i % VEC
        more_o, more_k = place(vector)
        vo, vr = (v, 0) if BY_OUTPUT else (0, v)
        to, of = (vector % GROUPS * VEC_O + vo) * PARTS, (vector // GROUPS * VEC_R + vr) * PARTS
        x_re, x_im = x[of], x[of]
        if COMPLEX:
            x_im = sign_x * x[of + 1]
        if masked:
            has = distance(k + more_k + vr, o + more_o + vo, which) >= 0
            x_re, x_im = select(has, x_re, real(0)), select(has, x_im, real(0))
        if COMPLEX:
            re, im = a[i * PARTS], sign_a * a[i * PARTS + 1]
            acc[to] += re * x_re
            acc[to] -= im * x_im
            acc[to + 1] += re * x_im
            acc[to + 1] += im * x_re
        else:
            acc[to] += a[i] * x_re

    return unrolled(config.THR_R * GROUPS * VEC, multiply)


def stepper(config: Gemv, masked: bool) -> Any:
    """``run(acc, a, x, a_here, x_here, ...)``: acc += all terms from `first` to `end`, STEP at a time."""
    if masked and not config.BY_OUTPUT:
        config = replace(config, THR_R=1)  # the border is no longer than that
    PARTS, STEP, int32, offset = (
        config.dtype_facts.reals_per_element,
        config.STEP,
        ptx.types.int32,
        ptx.offset,
    )
    (fetch, fetch_x), multiply = _fetcher(config, masked), _multiplier(config, masked)
    int64, BY_OUTPUT, CONTIGUOUS = ptx.types.int64, config.BY_OUTPUT, config.is_contiguous

    @device_function
    def run(
        acc, a, x, a_here, x_here, o_stride, r_stride, inc, o, r, first, end, outputs, which, unit, sa, sx
    ):
        if CONTIGUOUS and BY_OUTPUT:  # a constant needs no registers
            o_stride = int64(1)
        if CONTIGUOUS and not BY_OUTPUT:
            r_stride = int64(1)
        a_here, x_here = offset(a_here, first * r_stride * PARTS), offset(x_here, first * inc * PARTS)
        while first < end:
            k = int32(first + r)
            fetch(0, a, a_here, o_stride, r_stride, o, k, outputs, end, which, unit)
            fetch_x(0, x, x_here, inc, k, end)
            multiply(0, acc, a, x, o, k, which, sa, sx)
            a_here, x_here = offset(a_here, STEP * r_stride * PARTS), offset(x_here, STEP * inc * PARTS)
            first = int32(first + STEP)

    return run


def term_ranges(config: Gemv) -> Any:
    """``ranges(o0, slice, outputs, terms, per_slice, which)``: first term and the one past the last of those
    that a slice has whole, and of those where the triangle's border runs.
    """
    BLK_O, AFTER_, ALL_, int32 = config.BLK_O, AFTER, ALL, ptx.types.int32

    @device_function
    def ranges(o0, slice_, terms, per_slice, which):
        begin, end = int32(0), terms
        border, stop = int32(0), int32(0)
        if which != ALL_:
            border, stop = min(o0, terms), min(int32(o0 + BLK_O), terms)
            if which == AFTER_:
                begin = stop
            else:
                end = border
        first = int32(begin + slice_ * per_slice)
        if slice_ > 0:
            border = stop
        return first, min(int32(first + per_slice), end), border, stop

    return ranges
