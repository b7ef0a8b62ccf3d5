"""Tile of C by ``gemm_guarded`` where a factor is a triangle: what is off the diagonal as all products, and
then, one element after the other, what the diagonal block adds.

It may be slow: few tiles of ordinary data get here, and of these a small part.
"""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, ptx
from ...common.options import FROM_DIAGONAL, OF_COLUMNS, STRICT, TO_DIAGONAL
from .image import GRAIN

__all__ = ["diagonal_adder", "flags_of_triangle", "k_of_triangle"]


def flags_of_triangle():
    """``flags_of(row, col, options, count, per_grain)``: the first of a panel's `count` flags that matter to
    a tile, and how many; the same as for `gemm_wgmma`, which multiplies by whole squares of `GRAIN`.
    """
    int32, quotient = ptx.types.int32, ptx.quotient

    @device_function
    def flags_of(row, col, options, count, per_grain):
        grain = quotient(int32(col if options & OF_COLUMNS else row), GRAIN)
        first = int32(grain * per_grain if options & FROM_DIAGONAL else 0)
        last = int32(min((grain + 1) * per_grain, count) if options & TO_DIAGONAL else count)
        return first, int32(last - first)

    return flags_of


def k_of_triangle(config):
    """``k_of(row, col, k, options)``: the first k of a tile off the diagonal block, and how many; the first k
    of that block, and its end: none without a triangle.
    """
    int32, BLK_M, BLK_N = ptx.types.int32, config.BLK_M, config.BLK_N

    @device_function
    def k_of(row, col, k, options):
        diagonal = int32(col if options & OF_COLUMNS else row)
        last = int32(min(diagonal + (BLK_N if options & OF_COLUMNS else BLK_M), k))
        if options & TO_DIAGONAL:
            return int32(0), diagonal, diagonal, last
        if options & FROM_DIAGONAL:
            return last, int32(k - last), diagonal, last
        return int32(0), int32(k), int32(0), int32(0)

    return k_of


def diagonal_adder(config):
    """``add(a, b, c, m, n, row0, col0, first, last, options, lda, ldb, ldc, alpha)``: to the elements of a
    tile of C alpha times the products of the k from `first` to `last` that are in the triangle.
    """
    real, int32, int64, offset = ptx.types.float32, ptx.types.int32, ptx.types.int64, ptx.offset
    BLK_M, SIZE, THREADS, opaque = config.BLK_M, config.BLK_M * config.BLK_N, config.threads, ptx.opaque
    TRANS_A, TRANS_B = config.trans_a, config.trans_b

    @device_function
    def sum_of(a, b, first, last, step_a, step_b):
        total, k = real(0), int32(first)
        while k < last:
            total += a[k * step_a] * b[k * step_b]
            k = opaque(int32(k + 1))  # not unrolled: it is hardly ever run
        return total

    @device_function
    def add(a, b, c, m, n, row0, col0, first, last, options, lda, ldb, ldc, alpha):
        step_a, step_b = (int64(1) if TRANS_A else lda), (ldb if TRANS_B else int64(1))
        strict, e = int32(1 if options & STRICT else 0), int32(cuda.threadIdx.x)
        while e < SIZE:
            row, col = int32(row0 + e % BLK_M), int32(col0 + e // BLK_M)
            e = opaque(int32(e + THREADS))
            if row < m and col < n:
                diagonal = int32(col if options & OF_COLUMNS else row)
                begin = int32(first if options & TO_DIAGONAL else diagonal + strict)
                end = int32(diagonal + 1 - strict if options & TO_DIAGONAL else last)
                of_a = offset(a, int64(row) * (lda if TRANS_A else int64(1)))
                of_b = offset(b, int64(col) * (int64(1) if TRANS_B else ldb))
                at = int64(col) * ldc + row
                c[at] = c[at] + alpha * sum_of(of_a, of_b, begin, end, step_a, step_b)

    return add
