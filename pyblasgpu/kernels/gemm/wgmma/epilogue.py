"""Store of a tile of C by ``gemm_wgmma``: without masks where all of a thread's elements are meant."""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ...common.options import HERMITIAN, TRIANGLE
from ...common.region import contains, contains_tile
from .config import GemmWgmma
from .tiles import ROW_PAIRS, pairs_of

__all__ = ["epilogue"]

ROW_LANES = 4  # lanes from one row to the next


def _coords(e):
    """Row and column of a thread's element, from its first one."""
    return e % 4 // 2 * 8, e // 4 * 8 + e % 2


def _fetch_whole(config: GemmWgmma):
    """``fetch(0, old, c, ldc)``: a thread's elements of C, which are all meant, the first at `c`.

    All are read before any is written: else each would wait for the one before.
    """
    coords = device_function(_coords)

    @device_function
    def fetch(e, old, c, ldc):
        row, col = coords(e)
        old[e] = c[col * ldc + row]

    return unrolled(config.sums, fetch)


def _write_whole(config: GemmWgmma, reads_c: bool):
    """``write(0, c, total, old, ldc, alpha, beta)``: C := alpha total + beta old of a thread's elements,
    which are all meant, the first at `c`.
    """
    coords = device_function(_coords)

    @device_function
    def write(e, c, total, old, ldc, alpha, beta):
        row, col = coords(e)
        value = alpha * total[e]
        if reads_c:
            value += beta * old[e]
        c[col * ldc + row] = value

    return unrolled(config.sums, write)


def _judge():
    """``is_meant(row, col, rows, cols, shift, options)``: whether an element is within C and the region;
    ``is_zero(row, col, shift, options)``: whether it is the imaginary part of a Hermitian diagonal.
    """
    in_region, pairs, int32 = contains(), pairs_of(), ptx.types.int32

    @device_function
    def is_meant(row, col, rows, cols, shift, options):
        return (row < rows) & (col < cols) & in_region(row >> pairs(options), col, shift, options)

    @device_function
    def is_zero(row, col, shift, options):
        is_imaginary = int32(cuda.threadIdx.x) & ROW_LANES != 0
        of_both = options & (HERMITIAN | ROW_PAIRS) == HERMITIAN | ROW_PAIRS
        return of_both & is_imaginary & ((row >> 1) + shift == col)

    return is_meant, is_zero


def _fetch_masked(config: GemmWgmma):
    """``fetch(0, old, c, ldc, rows, cols, shift, options)``: of a thread's elements of C those that
    `_write_masked` writes, zeros for others.
    """
    load, (is_meant, is_zero), coords = ptx.load_global(1, False), _judge(), device_function(_coords)

    @device_function
    def fetch(e, old, c, ldc, rows, cols, shift, options):
        row, col = coords(e)
        ok = is_meant(row, col, rows, cols, shift, options) & (not is_zero(row, col, shift, options))
        load(old, e, c, col * ldc + row, ok)

    return unrolled(config.sums, fetch)


def _write_masked(config: GemmWgmma):
    """``write(0, c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)``: C := alpha
    total + beta old of elements that are `rows` and `cols` from the end and belong to the region, the first
    in row less column `shift`.

    Of a complex C even rows hold real parts and odd ones imaginary parts; the lane with the other part passes
    it. With a real `alpha` and `beta` C may as well be real.
    """
    store, (is_meant, is_zero) = ptx.store_global, _judge()
    coords, real, int32 = device_function(_coords), ptx.types.float32, ptx.types.int32
    shuffle = ptx.shuffle

    @device_function
    def write(e, c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i):
        row, col = coords(e)
        value = alpha * total[e] + beta * old[e]
        if (alpha_i != real(0)) | (beta_i != real(0)):
            lane = int32(cuda.threadIdx.x % 32)
            sign = real(1) if lane & ROW_LANES else real(-1)
            partner = int32(lane ^ ROW_LANES)
            value += sign * alpha_i * shuffle(total[e], partner)
            value += sign * beta_i * shuffle(old[e], partner)
        value = real(0) if is_zero(row, col, shift, options) else value
        store(c, col * ldc + row, value, is_meant(row, col, rows, cols, shift, options))

    return unrolled(config.sums, write)


def epilogue(config: GemmWgmma):
    """``write(c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)``: C := alpha
    total + beta C, as `_write_masked` has it; without masks where all of a thread's elements are meant.
    `old` has as many registers as `total`.
    """
    write, write_over = _write_whole(config, True), _write_whole(config, False)
    fetch, fetch_masked, zero = _fetch_whole(config), _fetch_masked(config), ptx.fill(config.sums)
    write_masked, real, LAST_COL = _write_masked(config), ptx.types.float32, config.BLK_N - 7
    is_within = contains_tile(9, config.BLK_N - 6, True)

    @device_function
    def write_tile(c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i):
        # the same for all lanes of a warp: they meet where C is complex
        is_complex = (alpha_i != real(0)) | (beta_i != real(0))
        crosses = (options & TRIANGLE != 0) & (not is_within(shift, options))
        if (rows <= 8) | (cols <= LAST_COL) | crosses | is_complex:
            if (beta != real(0)) | (beta_i != real(0)):
                fetch_masked(0, old, c, ldc, rows, cols, shift, options)
            else:
                zero(old, real(0))
            write_masked(0, c, total, old, ldc, rows, cols, shift, options, alpha, alpha_i, beta, beta_i)
        elif beta != real(0):
            fetch(0, old, c, ldc)
            write(0, c, total, old, ldc, alpha, beta)
        else:
            write_over(0, c, total, old, ldc, alpha, beta)

    return write_tile
