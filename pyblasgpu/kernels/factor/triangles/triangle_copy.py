"""The lower triangle of a matrix into shared memory and back, in any order of the matrix."""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ...common.coalesced_index import coalesced_index
from ...common.triangle_panel import block_copier
from .leaf_config import TriangleInShared

__all__ = ["rows_writer", "triangle_loader", "triangle_writer"]


def triangle_loader(config: TriangleInShared):
    """``load(shared, a, row_stride, col_stride, t, n, first)``: the elements with ``i - j >= first``, zeros
    elsewhere; all threads have it after. Nothing else is read.
    """
    ORDER, LD = config.ORDER, config.ld
    copy = block_copier(config, ORDER, ORDER, 1, LD, triangular=True, unrolls=True)
    commit, wait = ptx.commit_async, ptx.wait_async(0)

    @device_function
    def load(shared, a, row_stride, col_stride, t, n, first):
        copy(shared, a, row_stride, col_stride, t, n, n, 0, first)
        commit()
        wait()
        cuda.syncthreads()

    return load


def _writer_in_order(
    config: TriangleInShared, by_rows: bool, real_diagonal: bool, steps: tuple[int, int], rows: int
):
    """The writer of `triangle_writer` for one order in memory."""
    facts, ORDER, (ROW, COL) = config.dtype_facts, config.ORDER, steps
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    over, store, select = coalesced_index(rows, ORDER, config.threads, by_rows), ptx.store_global, ptx.select
    COUNT, coords, has, following, at_first = over.count, over.coords, over.has, over.following, over.first
    int32, int64, opaque = ptx.types.int32, ptx.types.int64, ptx.opaque
    REAL_DIAGONAL = real_diagonal and facts.is_complex
    # as many rounds in a row as have their loads under way at the same time
    UNROLL = next(count for count in (8, 4, 2, 1) if COUNT % count == 0)

    @device_function
    def element(x, k, at, a, shared, row_stride, col_stride, t, m, n, first):
        i, j = coords(t, k + x)
        if has(t, k + x):
            ok = (i < m) & (j < n) & (i - j >= first)
            for part in range(REALS):
                value = shared[(i * ROW + j * COL) * REALS + part]
                if REAL_DIAGONAL and part == 1:
                    value = select(i == j, real(0), value)
                store(a, at[0] * REALS + part, value, ok)
        at[0] = following(at[0], t, k + x, row_stride, col_stride)

    elements = unrolled(UNROLL, element)

    @device_function
    def write(a, shared, row_stride, col_stride, t, m, n, first):
        at = cuda.local.array(1, int64)
        at[0] = at_first(t, row_stride, col_stride)
        for k in range(0, opaque(int32(COUNT)), UNROLL):
            elements(0, k, at, a, shared, row_stride, col_stride, t, m, n, first)

    return write


def triangle_writer(
    config: TriangleInShared, real_diagonal: bool = False, steps: tuple[int, int] | None = None
):
    """``write(a, shared, row_stride, col_stride, t, n, first)``: the elements with ``i - j >= first`` back.

    With `real_diagonal` imaginary parts of the diagonal become zero. `steps` are elements from row to row and
    from column to column in shared memory, by default those of `triangle_loader`.
    """
    write_all = _writer(config, real_diagonal, steps or (1, config.ld), config.ORDER)

    @device_function
    def write(a, shared, row_stride, col_stride, t, n, first):
        write_all(a, shared, row_stride, col_stride, t, n, n, first)

    return write


def rows_writer(config: TriangleInShared):
    """``write(a, shared, row_stride, col_stride, t, m, n)``: the rows below, m of n columns, back."""
    write_all, EVERY_ELEMENT = _writer(config, False, (1, config.ld), config.rows_below), -(2**30)

    @device_function
    def write(a, shared, row_stride, col_stride, t, m, n):
        write_all(a, shared, row_stride, col_stride, t, m, n, EVERY_ELEMENT)

    return write


def _writer(config: TriangleInShared, real_diagonal: bool, steps: tuple[int, int], rows: int):
    """``write(a, shared, row_stride, col_stride, t, m, n, first)`` for any order in memory."""
    by_rows, by_columns = (
        _writer_in_order(config, rows_are_neighbours, real_diagonal, steps, rows)
        for rows_are_neighbours in (True, False)
    )

    @device_function
    def write(a, shared, row_stride, col_stride, t, m, n, first):
        if abs(row_stride) <= abs(col_stride):
            by_rows(a, shared, row_stride, col_stride, t, m, n, first)
        else:
            by_columns(a, shared, row_stride, col_stride, t, m, n, first)

    return write
