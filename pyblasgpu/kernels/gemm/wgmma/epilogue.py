"""How ``gemm_wgmma`` writes a tile of C: without masks where all of a thread's elements are meant."""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, ptx, unrolled
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
    """``write(0, c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)``: the same of
    elements that are `rows` and `cols` from the end and belong to the region, the first in row less column
    `shift`.

    Of a complex C even rows hold real parts and odd ones imaginary parts; the lane with the other part brings
    it. With a real `alpha` and `beta` C may as well be real.
    """
    load, store, in_region = ptx.load_global(1, False), ptx.store_global, contains()
    place, real, int32 = device_function(_place), ptx.types.float32, ptx.types.int32
    shuffle, ROW_LANES = ptx.shuffle, 4

    @device_function
    def write(e, c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i):
        row, col = place(e)
        at, ok = col * ldc + row, (row < rows) & (col < cols) & in_region(row, col, shift, options)
        load(old, 0, c, at, ok & ((beta != real(0)) | (beta_i != real(0))))
        value = alpha * total[e] + beta * old[0]
        if (alpha_i != real(0)) | (beta_i != real(0)):
            lane = int32(cuda.threadIdx.x % 32)
            sign = real(1) if lane & ROW_LANES else real(-1)
            partner = int32(lane ^ ROW_LANES)
            value += sign * alpha_i * shuffle(total[e], partner)
            value += sign * beta_i * shuffle(old[0], partner)
        store(c, at, value, ok)

    return unrolled(config.sums, write)


def epilogue(config: GemmWgmma):
    """``write(c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)``: C := alpha
    total + beta C, as `_write_masked` has it; without masks where all of a thread's elements are meant.
    """
    write, write_over = _write_whole(config, True), _write_whole(config, False)
    write_masked, real, LAST_COL = _write_masked(config), ptx.types.float32, config.BLK_N - 7

    @device_function
    def write_tile(c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i):
        # the same for all lanes of a warp: they meet where C is complex
        is_complex = (alpha_i != real(0)) | (beta_i != real(0))
        if (rows <= 8) | (cols <= LAST_COL) | (options & TRIANGLE != 0) | is_complex:
            write_masked(
                0, c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i
            )  # fmt: skip
        elif beta != real(0):
            write(0, c, total, ldc, alpha, beta)
        else:
            write_over(0, c, total, ldc, alpha, beta)

    return write_tile
