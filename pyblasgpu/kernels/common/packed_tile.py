"""Addresses and loads of k-tiles of packed operands (`copy.packing`): nothing is masked, zeros are there.

A k-tile of 'cbl' and of 'rbl' is a small row-major matrix, rows of the k-tile's `ld`; 'row' has rows of the
whole operand. A kernel receives one stride, `Packing.stride`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ...gpu.backend import device_function, ptx
from ..copy.packing import CBL, ROW
from .smem_tile import RUN

__all__ = ["packed_copier", "packed_iterator", "within_tile"]


def packed_iterator(smem_tile: Any) -> SimpleNamespace:
    """``begin(first, k0, ld)``, ``step(ld)`` of `tile_iterators.tile_iterator`."""
    int64, quotient = ptx.types.int64, ptx.quotient
    BLK, DEPTH, LD = smem_tile.blk, smem_tile.depth, smem_tile.ld
    BY_ROWS, BY_TILES = smem_tile.packing == ROW, smem_tile.packing == CBL

    @device_function
    def begin(first, k0, ld):
        if BY_ROWS:
            return first + k0 * ld
        if BY_TILES:
            return quotient(first, BLK) * ld + k0 * LD
        return int64(quotient(first, BLK)) * (DEPTH * LD) + k0 // DEPTH * ld

    @device_function
    def step(ld):
        if BY_ROWS:
            return DEPTH * ld
        return int64(DEPTH * LD) if BY_TILES else ld

    return SimpleNamespace(begin=begin, step=step)


def packed_copier(smem_tile: Any) -> Callable[..., None]:
    """Asynchronous copies of a packed k-tile, as stored; of one of 'row' row by row."""
    int32, offset = ptx.types.int32, ptx.offset
    copy = ptx.copy_async(RUN, smem_tile.cache_policy)
    THREADS, RUN_REALS = smem_tile.dim_x * smem_tile.dim_y, RUN // smem_tile.dtype.real_size
    REALS = smem_tile.dtype.reals_per_element
    RUNS = smem_tile.ld * smem_tile.depth * smem_tile.dtype.itemsize // RUN

    @device_function
    def start(shared, staged, source, ld, t, extent, depth):
        line, target = offset(source, t * RUN_REALS), t * RUN_REALS
        for first in range(0, RUNS, THREADS):
            if first + THREADS <= RUNS or t + first < RUNS:
                copy(shared, target + first * RUN_REALS, line, first * RUN_REALS, int32(RUN))

    ACROSS = smem_tile.blk * smem_tile.dtype.itemsize // RUN  # runs of a row
    LD, ALL = smem_tile.ld * REALS, ACROSS * smem_tile.depth

    @device_function
    def start_rows(shared, staged, source, ld, t, extent, depth):
        for first in range(0, ALL, THREADS):
            run = t + first
            row = run // ACROSS
            column = (run - row * ACROSS) * RUN_REALS
            if first + THREADS <= ALL or run < ALL:
                copy(shared, row * LD + column, offset(source, row * ld * REALS), column, int32(RUN))

    return start_rows if smem_tile.packing == ROW else start


def within_tile(smem_tile: Any, start: Callable[..., None]) -> Callable[..., None]:
    """`start` of a packed k-tile that is loaded as any row-major matrix is: with the leading dimension that
    it has.
    """
    LD, BY_ROWS, int64 = smem_tile.ld, smem_tile.packing == ROW, ptx.types.int64

    @device_function
    def start_within(shared, staged, source, ld, t, extent, depth):
        start(shared, staged, source, ld if BY_ROWS else int64(LD), t, extent, depth)

    return start_within
