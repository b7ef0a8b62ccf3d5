"""The kernel ``copy_scaled``: a block reads a tile in the order of S, and writes it in the order of D."""

from __future__ import annotations

from types import SimpleNamespace

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ..common.options import CONJUGATE, HERMITIAN, MIRRORED, ZERO
from ..common.region import contains, intersects

__all__ = ["build"]


def _element_index(config, by_rows: bool):
    """Return the index of a thread's elements: neighbours in memory, rows or columns, have neighbouring
    threads.

    Returns ``first(t, row_stride, col_stride)``: row, column and offset of the first one of thread `t`, and
    by how much the next one is further; and by how many rows, and columns.
    """
    FAST, REALS = (config.BLK_M if by_rows else config.BLK_N), config.dtype_facts.reals_per_element
    STEP = config.threads // FAST
    ROWS, COLS = (0, STEP) if by_rows else (STEP, 0)

    @device_function
    def first(t, row_stride, col_stride):
        i, j = (t % FAST, t // FAST) if by_rows else (t // FAST, t % FAST)
        step = STEP * (col_stride if by_rows else row_stride)
        return i, j, (i * row_stride + j * col_stride) * REALS, step * REALS

    return first, ROWS, COLS


def _reader(config, by_rows: bool, wanted, width: int):
    """``read(s, values, t, ...)``: a thread's elements of S, `width` reals at a time, zeros for others.

    All of them are loaded before any is used.
    """
    REALS, load = config.dtype_facts.reals_per_element, ptx.load_global(width, False)
    first, ROWS, COLS = _element_index(config, by_rows)

    @device_function
    def read_one(x, values, s, at, step, i, j, rows, cols, shift, options):
        ok = wanted(i + x * ROWS, j + x * COLS, rows, cols, shift, options)
        for part in range(0, REALS, width):
            load(values, x * REALS + part, s, at + x * step + part, ok)

    read_all = unrolled(config.per_thread, read_one)

    @device_function
    def read(s, values, t, row_stride, col_stride, rows, cols, shift, options):
        i, j, at, step = first(t, row_stride, col_stride)
        read_all(0, values, s, at, step, i, j, rows, cols, shift, options)

    return read


def _scaler(config, by_rows: bool):
    """``scale(tile, values, t, shift, options, alpha, alpha_i)``: what was read, times alpha, to the tile."""
    facts = config.dtype_facts
    REALS, ROW = facts.reals_per_element, (config.BLK_N + 1) * facts.reals_per_element
    real, COMPLEX = ptx.REALS[facts.real], facts.is_complex
    first, ROWS, COLS = _element_index(config, by_rows)

    @device_function
    def scale_one(x, tile, values, i, j, shift, options, sign, alpha, alpha_i):
        to, re = (i + x * ROWS) * ROW + (j + x * COLS) * REALS, values[x * REALS]
        if not COMPLEX:
            tile[to] = alpha * re
        elif (options & HERMITIAN != 0) & (i + x * ROWS + shift == j + x * COLS):
            tile[to], tile[to + 1] = alpha * re, real(0)
        else:
            im = sign * values[x * REALS + 1]
            scaled, scaled_i = alpha * re, alpha * im
            if alpha_i != real(0):  # else NaN and Inf stay in their parts
                scaled, scaled_i = scaled - alpha_i * im, scaled_i + alpha_i * re
            tile[to], tile[to + 1] = scaled, scaled_i

    scale_all = unrolled(config.per_thread, scale_one)

    @device_function
    def scale(tile, values, t, shift, options, alpha, alpha_i):
        i, j, _, _ = first(t, ROW, 1)
        sign = real(-1) if options & CONJUGATE else real(1)
        scale_all(0, tile, values, i, j, shift, options, sign, alpha, alpha_i)

    return scale


def _writer(config, by_rows: bool, wanted, width: int, mirrored: bool = False):
    """``write(d, tile, values, t, ...)``: a thread's elements of D, `width` reals at a time, or zeros.

    `mirrored` ones are across the diagonal, conjugated if they are Hermitian.
    """
    facts = config.dtype_facts
    REALS, ROW = facts.reals_per_element, (config.BLK_N + 1) * facts.reals_per_element
    real, COMPLEX, store = ptx.REALS[facts.real], facts.is_complex, ptx.store_global_vector(width)
    first, ROWS, COLS = _element_index(config, by_rows != mirrored)

    @device_function
    def write_one(x, d, tile, values, at, step, i, j, rows, cols, shift, options):
        row, col = i + x * ROWS, j + x * COLS
        ok = wanted(row, col, rows, cols, shift, options)
        if mirrored:
            ok = ok & (row + shift > col)
        for part in range(REALS):
            values[part] = real(0) if options & ZERO else tile[row * ROW + col * REALS + part]
        if COMPLEX and mirrored and options & HERMITIAN:
            values[1] = -values[1]
        for part in range(0, REALS, width):
            store(d, at + x * step + part, values, part, ok)

    write_all = unrolled(config.per_thread, write_one)

    @device_function
    def write(d, tile, values, t, row_stride, col_stride, rows, cols, shift, options):
        if mirrored:
            row_stride, col_stride = col_stride, row_stride
        i, j, at, step = first(t, row_stride, col_stride)
        write_all(0, d, tile, values, at, step, i, j, rows, cols, shift, options)

    return write


def _wanted():
    """``wanted(i, j, rows, cols, shift, options)``: whether an element of a tile is to be copied."""
    in_region = contains()

    @device_function
    def wanted(i, j, rows, cols, shift, options):
        return (i < rows) & (j < cols) & in_region(i, j, shift, options)

    return wanted


def _steps(config, by_rows: bool) -> SimpleNamespace:
    """``fetch(tile, values, s, ...)``: a tile of S, times alpha; ``put(d, across, tile, values, ...)``: to D,
    of matrices `by_rows` or by columns.
    """
    # complex numbers at once, or real by real where aligned so
    REALS, wanted = config.dtype_facts.reals_per_element, _wanted()
    read, read_parts = (_reader(config, by_rows, wanted, width) for width in (REALS, 1))
    write, write_parts = (_writer(config, by_rows, wanted, width) for width in (REALS, 1))
    mirror, scale = _writer(config, by_rows, wanted, 1, mirrored=True), _scaler(config, by_rows)
    is_whole = ptx.is_aligned(REALS)

    @device_function
    def fetch(tile, values, s, t, row_stride, col_stride, rows, cols, shift, options, alpha, alpha_i):
        if is_whole(s):
            read(s, values, t, row_stride, col_stride, rows, cols, shift, options)
        else:
            read_parts(s, values, t, row_stride, col_stride, rows, cols, shift, options)
        scale(tile, values, t, shift, options, alpha, alpha_i)

    @device_function
    def put(d, across, tile, values, t, row_stride, col_stride, rows, cols, shift, options):
        if is_whole(d):
            write(d, tile, values, t, row_stride, col_stride, rows, cols, shift, options)
        else:
            write_parts(d, tile, values, t, row_stride, col_stride, rows, cols, shift, options)
        if options & MIRRORED:
            mirror(across, tile, values, t, row_stride, col_stride, rows, cols, shift, options)

    return SimpleNamespace(fetch=fetch, put=put)


def build(config):
    facts = config.dtype_facts
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    BLK_M, BLK_N, VALUES = config.BLK_M, config.BLK_N, config.per_thread * REALS
    is_met, by_rows, by_cols = intersects(BLK_M, BLK_N), _steps(config, True), _steps(config, False)
    fetch_by_rows, fetch_by_cols, put_by_rows, put_by_cols = (
        by_rows.fetch,
        by_cols.fetch,
        by_rows.put,
        by_cols.put,
    )

    def copy_scaled(s, d, m, n, options, s_rs, s_cs, d_rs, d_cs, stride_s, stride_d, alpha, alpha_i):
        # (1) the tile of this block
        t = cuda.threadIdx.x
        tiles_m = (m + BLK_M - 1) // BLK_M
        row0, col0 = int64(cuda.blockIdx.x % tiles_m) * BLK_M, int64(cuda.blockIdx.x // tiles_m) * BLK_N
        batch, rows, cols, shift = int64(cuda.blockIdx.z), m - row0, n - col0, row0 - col0
        grid_dependency_wait()  # also without work: the next launch relies on all before this one being over
        if not is_met(shift, options):
            return
        d = offset(d, batch * stride_d * REALS)
        tile = shared_pointer(cuda.shared.array(0, real, alignment=16))
        values = cuda.local.array(VALUES, real)

        # (2) read it in the order of S, (3) write it in the order of D
        if options & ZERO == 0:
            s = offset(s, (batch * stride_s + row0 * s_rs + col0 * s_cs) * REALS)
            if abs(s_rs) <= abs(s_cs):
                fetch_by_rows(tile, values, s, t, s_rs, s_cs, rows, cols, shift, options, alpha, alpha_i)
            else:
                fetch_by_cols(tile, values, s, t, s_rs, s_cs, rows, cols, shift, options, alpha, alpha_i)
            cuda.syncthreads()
        there = offset(d, (row0 * d_rs + col0 * d_cs) * REALS)
        across = offset(d, (col0 * d_rs + row0 * d_cs) * REALS)
        if abs(d_rs) <= abs(d_cs):
            put_by_rows(there, across, tile, values, t, d_rs, d_cs, rows, cols, shift, options)
        else:
            put_by_cols(there, across, tile, values, t, d_rs, d_cs, rows, cols, shift, options)

    return copy_scaled
