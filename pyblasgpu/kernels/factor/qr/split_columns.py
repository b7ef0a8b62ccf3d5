"""Columns of small matrices in registers, each of a thread or of several neighbours: parts of `geqrf_small`.

Threads of a column have 16 bytes of it by turns. `config` has ORDER, SPLIT (threads of a column), OWN (rows
of a thread), `vector` (rows of 16 bytes) and `ld`. All that indexes registers is constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx, unrolled
from ...common.coalesced_index import coalesced_index
from ..lane_sums import adder, larger, over_lanes
from .reflector import scaler, size_of

__all__ = ["column_scaler", "finisher", "matrix_writer", "row_of", "sum_over_parts", "vectors"]

BYTES = 16  # of a vector


def row_of(config: Any) -> Callable:
    """``row(k, part)``: the row of element k of a thread."""
    V, STEP, int32 = config.vector, config.vector * config.SPLIT, ptx.types.int32

    @device_function
    def row(k, part):
        return int32(k // V * STEP + k % V + part * V)

    return row


def vectors(config: Any, first: int) -> tuple[Callable, Callable]:
    """``load(x, s)`` and ``store(s, x)``: elements of a thread from `first` on; its column begins at `s`."""
    W, REALS = BYTES // config.dtype_facts.real_size, config.dtype_facts.reals_per_element
    COUNT, FIRST, STEP = (config.OWN - first) // config.vector, first * REALS, W * config.SPLIT
    BEGIN, put = first // config.vector * STEP, ptx.store_shared(W)
    load_all = ptx.load_shared(W, COUNT, STEP)

    @device_function
    def load(x, s):
        load_all(x, FIRST, s, BEGIN)

    @device_function
    def store_one(q, s, x):
        put(s, BEGIN + q * STEP, x, FIRST + q * W)

    store_all = unrolled(COUNT, store_one)

    @device_function
    def store(s, x):
        store_all(0, s, x)

    return load, store


def sum_over_parts(config: Any, count: int) -> Callable:
    """``add(x, lane)``: the first `count` numbers of `x` over the threads of a column."""
    SPLIT, int32, total = config.SPLIT, ptx.types.int32, over_lanes(adder())

    @device_function
    def one(k, x, lane):
        if SPLIT > 1:
            x[k] = total(x[k], lane, int32(SPLIT))

    every = unrolled(count, one)

    @device_function
    def add(x, lane):
        every(0, x, lane)

    return add


def column_scaler(config: Any) -> Callable:
    """``scale(x, w, lane)``: the column of a thread, by a power of two, to about one; ``w[1]`` is the
    reciprocal of that.
    """
    facts, SPLIT = config.dtype_facts, config.SPLIT
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    size, scales, largest = size_of(facts), scaler(facts), over_lanes(larger())

    @device_function
    def element(k, x, w):
        w[0] = max(w[0], size(x, k * REALS))

    @device_function
    def times(k, x, w):
        for side in range(REALS):
            x[k * REALS + side] *= w[0]

    elements, times_all = unrolled(config.OWN, element), unrolled(config.OWN, times)

    @device_function
    def scale(x, w, lane):
        w[0] = real(0)
        elements(0, x, w)
        if SPLIT > 1:
            w[0] = largest(w[0], lane, int32(SPLIT))
        scales(w, w[0])
        times_all(0, x, w)

    return scale


def finisher(config: Any) -> Callable:
    """``finish(0, x, f, back, col, part)``: rows of R times `back`, and v below them."""
    REALS, COMPLEX = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex
    row, select = row_of(config), ptx.select

    @device_function
    def element(k, x, f, back, col, part):
        at, is_below = k * REALS, row(k, part) > col
        if COMPLEX:
            re, im = x[at] * f[0] - x[at + 1] * f[1], x[at] * f[1] + x[at + 1] * f[0]
            x[at], x[at + 1] = select(is_below, re, x[at] * back), select(is_below, im, x[at + 1] * back)
        else:
            x[at] *= select(is_below, f[0], back)

    return unrolled(config.OWN, element)


def matrix_writer(config: Any, by_rows: bool) -> Callable:
    """``write(a, s, a_rs, a_cs, t, m, n)``: the matrix back; neighbouring threads have neighbours."""
    REALS, LD = config.dtype_facts.reals_per_element, config.ld
    over, store = coalesced_index(config.ORDER, config.ORDER, config.threads, by_rows), ptx.store_global
    COUNT, coords, has, following, first = over.count, over.coords, over.has, over.following, over.first
    opaque, int32 = ptx.opaque, ptx.types.int32

    @device_function
    def write(a, s, a_rs, a_cs, t, m, n):
        at = first(t, a_rs, a_cs)
        for k in range(opaque(int32(COUNT))):
            i, j = coords(t, k)
            if has(t, k):
                for side in range(REALS):
                    store(a, at * REALS + side, s[(i + j * LD) * REALS + side], (i < m) & (j < n))
            at = following(at, t, k, a_rs, a_cs)

    return write
