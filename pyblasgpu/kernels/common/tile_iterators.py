"""Addresses of a tile's k-tiles, one after the other, and their prefetch into L2."""

from __future__ import annotations

from types import SimpleNamespace

from ...gpu.backend import device_function, ptx
from .packed_tile import packed_iterator
from .smem_tile import SmemTile

__all__ = ["l2_prefetcher", "tile_iterator"]

LINE = 128  # bytes of memory that one prefetch into L2 covers


def tile_iterator(smem_tile: SmemTile) -> SimpleNamespace:
    """``begin(first, k0, ld)``: elements from a matrix's beginning to the k-tile of its tile that begins
    at `first` along m or n and at `k0` along k; ``step(ld)``: elements from a k-tile to the next.

    `ld` is int64: the matrix's leading dimension, of a packed one `Packing.stride`.
    """
    if smem_tile.packed:
        return packed_iterator(smem_tile)
    int64, DEPTH, K_MAJOR = ptx.types.int64, smem_tile.depth, smem_tile.k_major

    @device_function
    def begin(first, k0, ld):
        return first * ld + k0 if K_MAJOR else first + k0 * ld

    @device_function
    def step(ld):
        return int64(DEPTH) if K_MAJOR else DEPTH * ld

    return SimpleNamespace(begin=begin, step=step)


def l2_prefetcher(smem_tile: SmemTile, threads: int):
    """``prefetch(source, ld, t, extent, depth)``: prefetch a k-tile, which will be loaded soon, into L2."""
    K_MAJOR, REALS, ELEMENTS = (
        smem_tile.k_major,
        smem_tile.dtype.reals_per_element,
        LINE // smem_tile.dtype.itemsize,
    )
    ACROSS, quotient, prefetch_line = -(-smem_tile.major // ELEMENTS), ptx.quotient, ptx.prefetch
    LINES, int32, int64 = ACROSS * smem_tile.minor, ptx.types.int32, ptx.types.int64

    @device_function
    def prefetch(source, ld, t, extent, depth):
        majors, minors = (depth, extent) if K_MAJOR else (extent, depth)
        line = int32(t)
        while line < LINES:
            minor = quotient(line, ACROSS)
            major = int32((line - minor * ACROSS) * ELEMENTS)
            is_there = (major < majors) & (minor < minors)
            prefetch_line(source, (int64(minor) * ld + major) * REALS, is_there)
            line = int32(line + threads)

    return prefetch
