"""Reads of an operand by ``pack_halves``: float32 as it is, complex64 as a real matrix.

C := A B of complex numbers is a real product: C and B, whose real and imaginary parts alternate along m and
along k, are real matrices as stored, and of A each element is expanded to ``[[re, -im], [im, re]]``. So A has
twice the rows and twice the k, B twice the k.
"""

from __future__ import annotations

from ....gpu.backend import device_function, ptx, unrolled
from ...common.options import BY_ROWS, CONJUGATE, STRICT, TRIANGLE, UPPER

__all__ = ["CHUNK", "copier", "reader", "thread_coords", "unit_finder"]

CHUNK = 8  # k of a chunk: 16 bytes of halves


def thread_coords(config):
    """``coords(i, t, options)``: row and chunk of the i-th chunk of a thread; neighbours in memory go to
    neighbouring lanes.
    """
    int32, ROWS, THREADS, ACROSS = ptx.types.int32, config.rows, config.threads, config.BLK_K // CHUNK
    quotient = ptx.quotient

    @device_function
    def coords(i, t, options):
        if options & BY_ROWS:
            chunk = quotient(t, ROWS)
            return int32(t - chunk * ROWS), int32(chunk + i * (THREADS // ROWS))
        row = quotient(t, ACROSS)
        return int32(row + i * (THREADS // ACROSS)), int32(t - row * ACROSS)

    return coords


def reader(config):
    """``read(values, s, t, rows, depth, shift, row_step, k_step, options, expanded)``: all chunks of a
    thread, zeros beyond the `rows` and the `depth` that are left; by 16 bytes where k are neighbours and
    nothing is cut. Steps are those of elements; an `expanded` operand has two rows for one of S.

    Elements outside a real triangle are zeros; `shift` is the unit's first row less its first k.
    """
    coords, CHUNKS = thread_coords(config), config.chunks // config.threads
    load_four, offset, is_wide = ptx.load_global(4, False), ptx.offset, ptx.is_aligned(4)
    int32, REALS, BLK_K = ptx.types.int32, config.dtype_facts.reals_per_element, config.BLK_K
    read_chunk, orient = _chunk_reader(config), _orienter(config)

    @device_function
    def read_narrow(i, values, s, t, rows, depth, row_step, k_step, options, expanded):
        row, chunk = coords(i, t, options)
        left = int32(depth - chunk * CHUNK if row < rows else 0)
        step = k_step * REALS
        read_chunk(0, i, values, offset(s, (row >> expanded) * row_step * REALS), chunk, left, step)
        orient(i, values, row, options, expanded)

    @device_function
    def read_wide(i, values, s, t, rows, depth, row_step, k_step, options, expanded):
        row, chunk = coords(i, t, options)
        at = (row >> expanded) * row_step * REALS + chunk * CHUNK
        load_four(values, i * CHUNK, s, at, row < rows)
        load_four(values, i * CHUNK + 4, s, at + 4, row < rows)
        orient(i, values, row, options, expanded)

    narrow, wide = unrolled(CHUNKS, read_narrow), unrolled(CHUNKS, read_wide)
    read_masked, is_crossed, REAL = _masked_reader(config), _is_crossed(config), REALS == 1

    @device_function
    def read(values, s, t, rows, depth, shift, row_step, k_step, options, expanded):
        if REAL and is_crossed(shift, options):
            read_masked(0, values, s, t, rows, depth, shift, row_step, k_step, options)
        elif (k_step == 1) & (depth >= BLK_K) & is_wide(s) & is_wide(offset(s, row_step * REALS)):
            wide(0, values, s, t, rows, depth, row_step, k_step, options, expanded)
        else:
            narrow(0, values, s, t, rows, depth, row_step, k_step, options, expanded)

    return read


def _is_crossed(config):
    """``is_crossed(shift, options)``: whether anything of a unit is not in the triangle that is meant."""
    ROWS, BLK_K = config.rows, config.BLK_K

    @device_function
    def is_crossed(shift, options):
        strict = 1 if options & STRICT else 0
        outside = shift + (ROWS - 1) + strict > 0 if options & UPPER else shift - strict < BLK_K - 1
        return (options & TRIANGLE != 0) & outside

    return is_crossed


def _masked_reader(config):
    """``read(0, values, s, t, rows, depth, shift, row_step, k_step, options)``: all chunks of a thread, of a
    unit that the diagonal of a triangle crosses.
    """
    coords, CHUNKS, load_one = (
        thread_coords(config),
        config.chunks // config.threads,
        ptx.load_global(1, False),
    )
    int32, offset = ptx.types.int32, ptx.offset

    @device_function
    def read_one(e, i, values, s, first, last, kk, k_step):
        load_one(values, i * CHUNK + e, s, (kk + e) * k_step, (first <= kk + e) & (kk + e < last))

    read_chunk = unrolled(CHUNK, read_one)

    @device_function
    def read(i, values, s, t, rows, depth, shift, row_step, k_step, options):
        row, chunk = coords(i, t, options)
        strict, diagonal = int32(1 if options & STRICT else 0), int32(row + shift)
        first = int32(diagonal + strict if options & UPPER else 0)
        last = int32(depth if options & UPPER else min(depth, diagonal + 1 - strict))
        last = int32(last if row < rows else 0)
        read_chunk(0, i, values, offset(s, row * row_step), first, last, int32(chunk * CHUNK), k_step)

    return unrolled(CHUNKS, read)


def _chunk_reader(config):
    """``read_chunk(0, i, values, s, chunk, left, step)``: the i-th chunk, one real after the other, of the
    row at `s`, of which `left` reals are there from the chunk on, and elements are `step` reals apart.
    """
    load_one, REALS = ptx.load_global(1, False), config.dtype_facts.reals_per_element

    @device_function
    def read_one(e, i, values, s, chunk, left, step):
        kk = chunk * CHUNK + e
        load_one(values, i * CHUNK + e, s, kk // REALS * step + kk % REALS, e < left)

    return unrolled(CHUNK, read_one)


def _orienter(config):
    """``orient(i, values, row, options, expanded)``: of a complex row what the real one has of it.

    Of an expanded one the even row is (re, -im), the odd one (im, re); conjugated, im changes its sign.
    """
    real, COMPLEX = ptx.types.float32, config.dtype == "c"

    @device_function
    def turn(p, i, values, is_odd, of_even, of_odd):
        at = i * CHUNK + 2 * p
        first, second = values[at], values[at + 1]
        values[at] = (second if is_odd else first) * of_even
        values[at + 1] = (first if is_odd else second) * of_odd

    turn_all = unrolled(CHUNK // 2, turn)

    @device_function
    def orient(i, values, row, options, expanded):
        if COMPLEX:
            odd = row & expanded
            negated = (expanded - odd) ^ (1 if options & CONJUGATE else 0)
            sign = real(-1) if negated else real(1)
            turn_all(0, i, values, odd != 0, sign if odd else real(1), real(1) if odd else sign)

    return orient


def unit_finder(config):
    """``find(s, unit, extent, k, row_step, k_step, batch_step, expanded)``: of a unit of the batch S where it
    begins in memory, its first row and first k, and the rows and k that are left of it.
    """
    int32, int64, quotient, offset = ptx.types.int32, ptx.types.int64, ptx.quotient, ptx.offset
    BLK, BLK_K, ROWS, REALS = config.BLK, config.BLK_K, config.rows, config.dtype_facts.reals_per_element

    @device_function
    def find(s, unit, extent, k, row_step, k_step, batch_step, expanded):
        blocks, panels = quotient(int32(k + (BLK_K - 1)), BLK_K), quotient(int32(extent + (BLK - 1)), BLK)
        block = quotient(unit, BLK // ROWS)
        panel = quotient(block, blocks)
        matrix = quotient(panel, panels)
        row = int32((panel - matrix * panels) * BLK + (unit - block * (BLK // ROWS)) * ROWS)
        first = int32((block - panel * blocks) * BLK_K)
        at = int64(matrix) * batch_step + (row >> expanded) * row_step + quotient(first, REALS) * k_step
        return (
            offset(s, at * REALS),
            row,
            first,
            int32(min(extent - row, ROWS)),
            int32(min(k - first, BLK_K)),
        )

    return find


def copier(config, words: int):
    """``copy_all(0, d, image, vector, t)``: the `words` of a unit's image, from shared memory."""
    THREADS, PART, BETWEEN = config.threads, config.rows * 32, (config.BLK - config.rows) * 32
    load_four, store_four = ptx.load_shared(4), ptx.store_global_vector(4)
    int32, quotient = ptx.types.int32, ptx.quotient

    @device_function
    def copy_out(i, d, image, vector, t):
        at = int32((i * THREADS + t) * 4)
        load_four(vector, 0, image, at)
        store_four(d, at + quotient(at, PART) * BETWEEN, vector, 0, True)

    return unrolled(words // (4 * THREADS), copy_out)
