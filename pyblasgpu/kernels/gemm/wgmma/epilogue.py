"""How ``gemm_wgmma`` writes a tile of C: without masks where all of a thread's elements are meant."""

from __future__ import annotations

from ....gpu.backend import device_function, ptx, unrolled
from ...common.options import TRIANGLE
from ...common.region import contains
from .config import GemmWgmma

__all__ = ["epilogue"]


def _place(e):
    """Row and column of a thread's element, from its first one."""
    return e % 4 // 2 * 8, e // 4 * 8 + e % 2


def _write_whole(config: GemmWgmma, reads_c: bool):
    """``write(0, c, total, ldc, alpha, beta)``: C := alpha total + beta C of a thread's elements, which are
    all meant, the first at `c`.
    """
    place = device_function(_place)

    @device_function
    def write(e, c, total, ldc, alpha, beta):
        row, col = place(e)
        at = col * ldc + row
        value = alpha * total[e]
        if reads_c:
            value += beta * c[at]
        c[at] = value

    return unrolled(config.sums, write)


def _write_masked(config: GemmWgmma):
    """``write(0, c, total, old, ldc, rows, cols, shift, options, alpha, beta)``: the same of elements that
    are `rows` and `cols` from the end and belong to the region, the first in row less column `shift`.
    """
    load, store, in_region = ptx.load_global(1, False), ptx.store_global, contains()
    place, real = device_function(_place), ptx.types.float32

    @device_function
    def write(e, c, total, old, ldc, rows, cols, shift, options, alpha, beta):
        row, col = place(e)
        at, ok = col * ldc + row, (row < rows) & (col < cols) & in_region(row, col, shift, options)
        load(old, 0, c, at, ok & (beta != real(0)))
        store(c, at, alpha * total[e] + beta * old[0], ok)

    return unrolled(config.sums, write)


def epilogue(config: GemmWgmma):
    """``write(c, total, old, ldc, rows, cols, shift, options, alpha, beta)``: C := alpha total + beta C, as
    `_write_masked` has it; without masks where all of a thread's elements are meant.
    """
    write, write_over = _write_whole(config, True), _write_whole(config, False)
    write_masked, real, LAST_COL = _write_masked(config), ptx.types.float32, config.BLK_N - 7

    @device_function
    def write_tile(c, total, old, ldc, rows, cols, shift, options, alpha, beta):
        if (rows <= 8) | (cols <= LAST_COL) | (options & TRIANGLE != 0):
            write_masked(0, c, total, old, ldc, rows, cols, shift, options, alpha, beta)
        elif beta != real(0):
            write(0, c, total, ldc, alpha, beta)
        else:
            write_over(0, c, total, ldc, alpha, beta)

    return write_tile
