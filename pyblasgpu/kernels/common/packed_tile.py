"""How stripes of packed operands (`copy.packing`) are found and brought: nothing is masked, zeros are there.

A stripe of 'cbl' and of 'rbl' is a small row-major matrix, rows of the stripe's `lead`; 'row' has rows of
the whole operand. A kernel is told one stride, `Packing.stride`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ...gpu.backend import device_function, ptx
from ..copy.packing import CBL, ROW

__all__ = ["RUN", "packed_copier", "packed_iterator", "within_tile"]

RUN = 16  # bytes of one copy of a packed stripe


def packed_iterator(stripe: Any) -> SimpleNamespace:
    """``begin(first, along, lead)``, ``step(lead)`` of `smem_tile.tile_iterator`."""
    int64, quotient = ptx.types.int64, ptx.quotient
    BLK, DEPTH, LEAD = stripe.blk, stripe.depth, stripe.lead
    BY_ROWS, BY_TILES = stripe.packing == ROW, stripe.packing == CBL

    @device_function
    def begin(first, along, lead):
        if BY_ROWS:
            return first + along * lead
        if BY_TILES:
            return quotient(first, BLK) * lead + along * LEAD
        return int64(quotient(first, BLK)) * (DEPTH * LEAD) + along // DEPTH * lead

    @device_function
    def step(lead):
        if BY_ROWS:
            return DEPTH * lead
        return int64(DEPTH * LEAD) if BY_TILES else lead

    return SimpleNamespace(begin=begin, step=step)


def packed_copier(stripe: Any) -> Callable[..., None]:
    """Asynchronous copies of a packed stripe, as it lies; of one of 'row' row by row."""
    int32, offset = ptx.types.int32, ptx.offset
    copy = ptx.copy_async(RUN, stripe.cache_policy)
    THREADS, REALS = stripe.dim_x * stripe.dim_y, RUN // stripe.dtype.real_size
    PARTS = stripe.dtype.reals_per_element
    RUNS = stripe.lead * stripe.depth * stripe.dtype.itemsize // RUN

    @device_function
    def start(shared, staged, source, lead, t, extent, depth):
        line, place = offset(source, t * REALS), t * REALS
        for first in range(0, RUNS, THREADS):
            if first + THREADS <= RUNS or t + first < RUNS:
                copy(shared, place + first * REALS, line, first * REALS, int32(RUN))

    ACROSS = stripe.blk * stripe.dtype.itemsize // RUN  # runs of a row
    LEAD, ALL = stripe.lead * PARTS, ACROSS * stripe.depth

    @device_function
    def start_rows(shared, staged, source, lead, t, extent, depth):
        for first in range(0, ALL, THREADS):
            run = t + first
            row = run // ACROSS
            along = (run - row * ACROSS) * REALS
            if first + THREADS <= ALL or run < ALL:
                copy(shared, row * LEAD + along, offset(source, row * lead * PARTS), along, int32(RUN))

    return start_rows if stripe.packing == ROW else start


def within_tile(stripe: Any, start: Callable[..., None]) -> Callable[..., None]:
    """`start` of a packed stripe that is brought as any row-major matrix is: with the lead that it has."""
    LEAD, BY_ROWS, int64 = stripe.lead, stripe.packing == ROW, ptx.types.int64

    @device_function
    def start_within(shared, staged, source, lead, t, extent, depth):
        start(shared, staged, source, lead if BY_ROWS else int64(LEAD), t, extent, depth)

    return start_within
