"""Parts of `geqp3` and `geqp3_panel`: the column of the largest norm, and sums over a team of warps.

A norm is a number times a power of two, the scale of its column, so that none overflows or vanishes. Two are
compared by their exponents, then by what is left, in [1, 2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import cuda, device_function, ptx
from ....types import Dtype
from ...common.kernel_config import WARP
from ..lane_sums import several_over_warp

__all__ = ["CANDIDATE", "candidates", "chooser", "clearer", "measurer", "taker", "team_reducer"]

CANDIDATE = 3  # reals of a candidate: exponent, what is left, and position, which a real holds exactly
NOTHING = -100_000  # the exponent of zero


def team_reducer(config: Any, combine: Callable) -> Callable:
    """``reduce(x, parts, t)``: two elements of all threads of a team, combined, in all of them."""
    WARPS, IS_BLOCK, int32 = config.WARPS, config.IS_SPREAD, ptx.types.int32
    COUNT = 2 * config.dtype_facts.reals_per_element
    over_warp = several_over_warp(COUNT, combine)

    @device_function
    def reduce(x, parts, t):
        over_warp(x, int32(t & 31))
        if IS_BLOCK:
            for k in range(COUNT):
                if t & 31 == 0:
                    parts[(t >> 5) * COUNT + k] = x[k]
            cuda.syncthreads()
            for k in range(COUNT):
                x[k] = parts[k]
            for warp in range(1, WARPS):
                for k in range(COUNT):
                    x[k] = combine(x[k], parts[warp * COUNT + k])
            cuda.syncthreads()

    return reduce


def taker(facts: Dtype) -> Callable:
    """``take(best, e, f, q)``: the larger one of two candidates, of equal ones that before the other."""

    @device_function
    def take(best, e, f, q):
        is_equal = (e == best[0]) & ((f > best[1]) | ((f == best[1]) & (q < best[2])))
        if (e > best[0]) | is_equal:
            best[0], best[1], best[2] = e, f, q

    return take


def measurer(facts: Dtype) -> Callable:
    """``measure(key, norm, scale)``: exponent of norm times scale, and what is left of it."""
    real, is_single = ptx.REALS[facts.real], facts.real_size == 4
    LEAST, MOST = (-126, 127) if is_single else (-1022, 1023)
    exponent = ptx.exponent if is_single else ptx.double_exponent
    power = ptx.power_of_two if is_single else ptx.double_power_of_two
    int32 = ptx.types.int32

    @device_function
    def measure(key, norm, scale):
        e = int32(exponent(norm))
        key[0], key[1] = real(e + exponent(scale)), real(1)
        if e < LEAST:
            key[0], key[1] = real(NOTHING), real(0)
        elif e <= MOST:
            key[1] = norm * power(int32(min(-e, MOST)))

    return measure


def clearer(facts: Dtype) -> Callable:
    """``clear(best, q)``: no candidate yet; column q where there are none."""
    real = ptx.REALS[facts.real]

    @device_function
    def clear(best, q):
        best[0], best[1], best[2] = real(2 * NOTHING), real(0), real(q)

    return clear


def _block_reducer(config: Any) -> Callable:
    """``reduce(best, shared, t)``: the best candidate of all threads of a block, in all of them. A barrier
    must separate two calls.
    """
    WARPS, int32, shuffle = config.WARPS, ptx.types.int32, ptx.shuffle
    take = taker(config.dtype_facts)

    @device_function
    def reduce(best, shared, t):
        distance = int32(WARP // 2)
        while distance > 0:
            other = int32((t & 31) ^ distance)
            e, f, q = shuffle(best[0], other), shuffle(best[1], other), shuffle(best[2], other)
            take(best, e, f, q)
            distance = int32(distance >> 1)
        if t & 31 == 0:
            for k in range(CANDIDATE):
                shared[(t >> 5) * CANDIDATE + k] = best[k]
        cuda.syncthreads()
        for warp in range(WARPS):
            at = warp * CANDIDATE
            take(best, shared[at], shared[at + 1], shared[at + 2])

    return reduce


def candidates(config: Any) -> tuple[Callable, Callable]:
    """``publish(best, found, shared, block, t)``: the best candidate of a block, for the others.
    ``choose(best, found, shared, blocks, t)``: the position of the best one of all. Barriers must separate
    calls.
    """
    DIM, int32 = config.DIM, ptx.types.int32
    reduce, take, clear = _block_reducer(config), taker(config.dtype_facts), clearer(config.dtype_facts)

    @device_function
    def publish(best, found, shared, block, t):
        reduce(best, shared, t)
        if t == 0:
            for k in range(CANDIDATE):
                found[block * CANDIDATE + k] = best[k]

    @device_function
    def choose(best, found, shared, blocks, t):
        clear(best, int32(0))
        i = int32(t)
        while i < blocks:
            at = i * CANDIDATE
            take(best, found[at], found[at + 1], found[at + 2])
            i = int32(i + DIM)
        reduce(best, shared, t)
        return int32(best[2])

    return publish, choose


def chooser(config: Any) -> Callable:
    """``choose(best, key, norms, scales, order, j, n, shared, t)``: the position from j on of the column with
    the largest norm, the first of equal ones; by all threads of a block. A barrier must separate two calls.
    """
    DIM, real, int32 = config.DIM, ptx.REALS[config.dtype_facts.real], ptx.types.int32
    measure, take = measurer(config.dtype_facts), taker(config.dtype_facts)
    reduce, clear = _block_reducer(config), clearer(config.dtype_facts)

    @device_function
    def choose(best, key, norms, scales, order, j, n, shared, t):
        clear(best, j)
        q = int32(j + t)
        while q < n:
            c = order[q]
            measure(key, norms[c], scales[c])
            take(best, key[0], key[1], real(q))
            q = int32(q + DIM)
        reduce(best, shared, t)
        return int32(best[2])

    return choose
