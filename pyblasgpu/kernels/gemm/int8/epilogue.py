"""Epilogue of ``gemm_int8``: residues of a tile's sums, a byte each, or flags."""

from __future__ import annotations

from ....gpu.backend import device_function, ptx, unrolled
from .config import VECTOR, GemmInt8
from .image import SIZE, UNIT
from .moduli import TABLE, TABLE_SIZE

__all__ = ["residue_writer", "tile_checker"]

SHIFT = 38  # with it the quotient of a sum below 2^30 is right, and a factor fits int32


def _modulus(config: GemmInt8):
    """``modulus(image)``: that of an image, and the factor by which quotients are found."""
    int32, int64, real, divide = ptx.types.int32, ptx.types.int64, ptx.types.float64, ptx.divide
    (FIRST, SECOND), MODULI, PARTS = TABLE, config.moduli, config.images // config.moduli

    @device_function
    def modulus(image):
        number = int32(image % MODULI if PARTS > 1 else image)
        table = int64(FIRST if number < TABLE_SIZE else SECOND)
        which = number if number < TABLE_SIZE else number - TABLE_SIZE
        p = int32(256 - ((table >> (6 * which)) & 63))
        return p, int32(int64(divide(real(2.0**SHIFT), real(p))) + 1)

    return modulus


def residue_writer(config: GemmInt8):
    """``write(d, tile, acc, words, image, t)``: the residues of a tile to its slot among all tiles, 16 bytes
    of each thread after the other: so each is found by the thread of the same number.
    """
    int32, offset, modulus = ptx.types.int32, ptx.offset, _modulus(config)
    multiply_high, low_bytes = ptx.multiply_high, ptx.low_bytes
    store, WORDS, WORKERS = ptx.store_global_vector(4), config.words_of_tile, 128 * config.warpgroups

    @device_function
    def residue(x, p, factor):
        """Return the residue, from 0 to p: p fits a byte, or is 0 in it."""
        return int32(x - (multiply_high(x, factor) >> (SHIFT - 32)) * p)

    @device_function
    def four(j, v, acc, words, p, factor):
        i = v * VECTOR + 4 * j
        words[j] = low_bytes(
            residue(acc[i], p, factor),
            residue(acc[i + 1], p, factor),
            residue(acc[i + 2], p, factor),
            residue(acc[i + 3], p, factor),
        )

    all_fours = unrolled(VECTOR // 4, four)

    @device_function
    def vector(v, d, acc, words, p, factor, t):
        all_fours(0, v, acc, words, p, factor)
        store(d, (v * WORKERS + t) * 4, words, 0, True)

    vectors = unrolled(config.vectors, vector)

    @device_function
    def write(d, tile, acc, words, image, t):
        p, factor = modulus(image)
        vectors(0, offset(d, tile * WORDS), acc, words, p, factor, t)

    return write


def tile_checker(config: GemmInt8):
    """``check(flags, tile, acc, bad, of_a, of_b, row0, col0, m, n, k, rows_a, rows_b, t)``: each warp's
    flag of a tile: whether in any element of it integers may be off by more than the bound leaves, ``(k - 2)
    u |A| |B|``; in each part of a complex one, twice that, which is their share of ``sqrt(8)`` times that.
    Arrays of facts have `rows_a` and `rows_b` rows.

    `acc` times the units of row and column is at most ``|A| |B|`` of the integers.
    """
    real, int32, int64, first_lane = ptx.types.float64, ptx.types.int32, ptx.types.int64, ptx.first_lane
    WARPS, offset = config.flags_of_tile, ptx.offset
    U = 2.0**-53 * config.dtype_facts.reals_per_element

    @device_function
    def check_element(total, bad, size, unit, size_of_col, unit_of_col, ok, allowed):
        loss = size * unit_of_col + unit * size_of_col
        bad[0] |= 0 if (loss <= allowed * real(total)) | (not ok) else 1

    @device_function
    def check_column(c, acc, bad, of_b, rows, left, size, unit, size_8, unit_8, col, n, allowed):
        """Two elements of a column, eight rows apart, of which there are rows `left` from the first on."""
        e = c // 2 * 4 + c % 2
        at = int32(col + c // 2 * 8 + c % 2)
        of_col = offset(of_b, int32(min(at, n - 1)))
        size_of_col, unit_of_col = of_col[SIZE * rows], of_col[UNIT * rows]
        ok = (at < n) & (left > 0)
        check_element(acc[e], bad, size, unit, size_of_col, unit_of_col, ok, allowed)
        ok = (at < n) & (left > 8)
        check_element(acc[e + 2], bad, size_8, unit_8, size_of_col, unit_of_col, ok, allowed)

    check_columns = unrolled(config.sums // 2, check_column)

    @device_function
    def check(flags, tile, acc, bad, of_a, of_b, row0, col0, m, n, k, rows_a, rows_b, t):
        row, col = int32(row0 + t // 32 * 16 + t % 32 // 4), int32(col0 + t % 4 * 2)
        rows_a, rows_b = int64(rows_a), int64(rows_b)
        of_row, of_row_8 = offset(of_a, int64(min(row, m - 1))), offset(of_a, int64(min(row + 8, m - 1)))
        size, unit = of_row[SIZE * rows_a], of_row[UNIT * rows_a]
        size_8, unit_8 = of_row_8[SIZE * rows_a], of_row_8[UNIT * rows_a]
        allowed, left, bad[0] = real(k - 2) * real(U), int32(m - row), 0
        check_columns(0, acc, bad, of_b, rows_b, left, size, unit, size_8, unit_8, col, n, allowed)
        any_bad = first_lane(bad[0] != 0) >= 0
        if t % 32 == 0:
            flags[tile * WARPS + t // 32] = int32(1 if any_bad else 0)

    return check
