"""The lower triangle of a matrix into shared memory and back, whatever the order in which it lies."""

from __future__ import annotations

from ...gpu.backend import cuda, device_function, ptx
from ..common.coalesced_index import coalesced_index
from ..common.triangle_panel import block_copier
from .leaf_config import TriangleInShared

__all__ = ["triangle_loader", "triangle_writer"]


def triangle_loader(config: TriangleInShared):
    """``load(shared, a, row_stride, col_stride, t, n, first)``: the elements with ``i - j >= first``, zeros
    elsewhere; all threads have it after. Nothing else is read.
    """
    ORDER, LEAD = config.ORDER, config.lead
    copy = block_copier(config, ORDER, ORDER, 1, LEAD, triangular=True, unrolls=False)
    commit, wait = ptx.commit_async, ptx.wait_async(0)

    @device_function
    def load(shared, a, row_stride, col_stride, t, n, first):
        copy(shared, a, row_stride, col_stride, t, n, n, 0, first)
        commit()
        wait()
        cuda.syncthreads()

    return load


def _writer_in_order(config: TriangleInShared, by_rows: bool, real_diagonal: bool, steps: tuple[int, int]):
    """The writer of `triangle_writer` for one order in memory."""
    facts, ORDER, (ROW, COL) = config.dtype_facts, config.ORDER, steps
    real, PARTS = ptx.REALS[facts.real], facts.reals_per_element
    over, store, select = coalesced_index(ORDER, ORDER, config.threads, by_rows), ptx.store_global, ptx.select
    ROUNDS, place, has, following, at_first = over.count, over.place, over.has, over.following, over.first
    int32, opaque = ptx.types.int32, ptx.opaque
    REAL_DIAGONAL = real_diagonal and facts.is_complex

    @device_function
    def write(a, shared, row_stride, col_stride, t, n, first):
        at = at_first(t, row_stride, col_stride)
        for k in range(opaque(int32(ROUNDS))):
            i, j = place(t, k)
            if has(t, k):
                ok = (i < n) & (i - j >= first)
                for part in range(PARTS):
                    value = shared[(i * ROW + j * COL) * PARTS + part]
                    if REAL_DIAGONAL and part == 1:
                        value = select(i == j, real(0), value)
                    store(a, at * PARTS + part, value, ok)
            at = following(at, t, k, row_stride, col_stride)

    return write


def triangle_writer(
    config: TriangleInShared, real_diagonal: bool = False, steps: tuple[int, int] | None = None
):
    """``write(a, shared, row_stride, col_stride, t, n, first)``: the elements with ``i - j >= first`` back.

    With `real_diagonal` imaginary parts of the diagonal become zero. `steps` are elements from row to row and
    from column to column in shared memory, by default those of `triangle_loader`.
    """
    steps = steps or (1, config.lead)
    by_rows, by_columns = (
        _writer_in_order(config, rows_are_neighbours, real_diagonal, steps)
        for rows_are_neighbours in (True, False)
    )

    @device_function
    def write(a, shared, row_stride, col_stride, t, n, first):
        if abs(row_stride) <= abs(col_stride):
            by_rows(a, shared, row_stride, col_stride, t, n, first)
        else:
            by_columns(a, shared, row_stride, col_stride, t, n, first)

    return write
