"""Columns of a matrix in registers: the rows are spread over lanes, the columns over the warps of a block.

Element ``c ROWS + k`` of a thread is in row ``32 k + lane`` and column ``warp + WARPS c`` of its block. All
that indexes registers is constant. `config` has ROWS, WARPS and OWN, the columns of a warp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....gpu.backend import device_function, ptx, unrolled
from ...common.kernel_config import WARP
from .reflector import product_adder, scaler, size_of

__all__ = ["column_scaler", "column_sizer", "dotter", "loader", "storer", "updater"]


def loader(config: Any) -> Callable:
    """``load(0, x, a, a_rs, a_cs, rows, n, warp, lane)``: the columns of a warp, zeros where A has none."""
    REALS, ROWS, WARPS = config.dtype_facts.reals_per_element, config.ROWS, config.WARPS
    read, offset, int64 = ptx.load_global(1, False), ptx.offset, ptx.types.int64

    @device_function
    def element(k, x, c, at, step, left):
        for part in range(REALS):
            read(x, (c * ROWS + k) * REALS + part, at, k * step + part, k * WARP < left)

    elements = unrolled(ROWS, element)

    @device_function
    def column(c, x, a, a_rs, a_cs, rows, n, warp, lane):
        col = warp + c * WARPS
        at = offset(a, (int64(lane) * a_rs + int64(col) * a_cs) * REALS)
        elements(0, x, c, at, int64(WARP * REALS) * a_rs, rows - lane if col < n else 0)

    return unrolled(config.OWN, column)


def storer(config: Any) -> Callable:
    """``store(0, x, a, a_rs, a_cs, back, factors, top, rows, n, warp, lane, is_v)``: R times the scales
    `back`, and v below it. `top` is the row of the first element; V alone, with its ones, if `is_v`.
    """
    facts, ROWS, WARPS = config.dtype_facts, config.ROWS, config.WARPS
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    offset, select, int64, store_global = ptx.offset, ptx.select, ptx.types.int64, ptx.store_global

    @device_function
    def element(k, x, c, at, step, i, left, col, scale, factors, is_v):
        of, ok, is_below = (c * ROWS + k) * REALS, k * WARP < left, i + k * WARP > col
        upper, upper_im = x[of] * scale, x[of + REALS - 1] * scale
        if is_v:
            upper, upper_im = select(i + k * WARP == col, real(1), real(0)), real(0)
        if COMPLEX:
            f, f_im = factors[col * 2], factors[col * 2 + 1]
            re, im = x[of] * f - x[of + 1] * f_im, x[of] * f_im + x[of + 1] * f
            store_global(at, k * step, select(is_below, re, upper), ok)
            store_global(at, k * step + 1, select(is_below, im, upper_im), ok)
        else:
            store_global(at, k * step, select(is_below, x[of] * factors[col], upper), ok)

    elements = unrolled(ROWS, element)

    @device_function
    def column(c, x, a, a_rs, a_cs, back, factors, top, rows, n, warp, lane, is_v):
        col = warp + c * WARPS
        at = offset(a, (int64(lane) * a_rs + int64(col) * a_cs) * REALS)
        left = rows - lane if col < n else 0
        elements(0, x, c, at, int64(WARP * REALS) * a_rs, top + lane, left, col, back[col], factors, is_v)

    return unrolled(config.OWN, column)


def column_sizer(config: Any) -> Callable:
    """``sizes(0, most, x)``: the largest part of the elements of each column that a thread has."""
    ROWS, real = config.ROWS, ptx.REALS[config.dtype_facts.real]
    size, REALS = size_of(config.dtype_facts), config.dtype_facts.reals_per_element

    @device_function
    def element(k, most, x, c):
        most[c] = max(most[c], size(x, (c * ROWS + k) * REALS))

    elements = unrolled(ROWS, element)

    @device_function
    def column(c, most, x):
        most[c] = real(0)
        elements(0, most, x, c)

    return unrolled(config.OWN, column)


def column_scaler(config: Any) -> Callable:
    """``scale(0, x, back, most, w, warp, lane)``: columns of about one by powers of two; `back` has their
    reciprocals.
    """
    facts, ROWS, WARPS = config.dtype_facts, config.ROWS, config.WARPS
    REALS, scales = facts.reals_per_element, scaler(facts)

    @device_function
    def element(k, x, c, w):
        for part in range(REALS):
            x[(c * ROWS + k) * REALS + part] *= w[0]

    elements = unrolled(ROWS, element)

    @device_function
    def column(c, x, back, most, w, warp, lane):
        scales(w, most[c])
        if lane == 0:
            back[warp + c * WARPS] = w[1]
        elements(0, x, c, w)

    return unrolled(config.OWN, column)


def dotter(config: Any) -> Callable:
    """``dot(sums, x, v, is_below)``: v^H x of each column of a warp over the rows of a thread; of the first
    one only if `is_below`, whatever x is.
    """
    facts, ROWS = config.dtype_facts, config.ROWS
    REALS, real, select, add = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.select,
        product_adder(facts),
    )

    @device_function
    def element(k, sums, x, v, c):
        at = (c * ROWS + k) * REALS
        add(sums, c, v, k, x[at], x[at + REALS - 1])

    elements = unrolled(ROWS - 1, element)

    @device_function
    def column(c, sums, x, v, is_below):
        at = c * ROWS * REALS
        for part in range(REALS):
            sums[c * REALS + part] = real(0)
        add(sums, c, v, 0, select(is_below, x[at], real(0)), select(is_below, x[at + REALS - 1], real(0)))
        elements(1, sums, x, v, c)

    columns = unrolled(config.OWN, column)

    @device_function
    def dot(sums, x, v, is_below):
        columns(0, sums, x, v, is_below)

    return dot


def updater(config: Any) -> Callable:
    """``update(x, v, w, c, is_below)``: column c of a warp less w v, in the rows of `dotter`."""
    facts, ROWS = config.dtype_facts, config.ROWS
    REALS, COMPLEX, real, select = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.select,
    )

    @device_function
    def element(k, x, v, w, c):
        at = (c * ROWS + k) * REALS
        if COMPLEX:
            x[at] += v[k * 2 + 1] * w[1] - v[k * 2] * w[0]
            x[at + 1] -= v[k * 2] * w[1] + v[k * 2 + 1] * w[0]
        else:
            x[at] -= v[k] * w[0]

    elements = unrolled(ROWS - 1, element)

    @device_function
    def update(x, v, w, c, is_below):
        at = c * ROWS * REALS
        if COMPLEX:
            re = v[0] * w[0] - v[1] * w[1]
            im = v[0] * w[1] + v[1] * w[0]
            x[at] -= select(is_below, re, real(0))
            x[at + 1] -= select(is_below, im, real(0))
        else:
            x[at] -= select(is_below, v[0] * w[0], real(0))
        elements(1, x, v, w, c)

    return update
