"""Distribution of a matrix's elements over a block of threads: neighbours in memory to neighbouring threads.

In each *round* every thread has one element. Where whole rows (columns) go round at a time, which is so
wherever the threads are a multiple of their length, a thread stays in its column (row), and the way to its
next element is the same: computed anew each time, the way is several times the instructions of a copy.
"""

from __future__ import annotations

from types import SimpleNamespace

from ...gpu.backend import device_function, ptx

__all__ = ["coalesced_index"]


def coalesced_index(rows: int, cols: int, threads: int, by_rows: bool) -> SimpleNamespace:
    """Distribute a matrix of `rows` by `cols` among `threads` threads; rows are neighbours if `by_rows`.

    Attributes
    ----------
    count : int
    coords : device function
        ``coords(t, k)``: row and column of thread `t` in round `k`, int32.
    has : device function
        ``has(t, k)``: whether that is an element of the matrix at all.
    first : device function
        ``first(t, row_stride, col_stride)``: elements from the matrix's first one to its of round 0.
    following : device function
        ``following(at, t, k, row_stride, col_stride)``: the same of round k + 1; `at` is that of round `k`.
    """
    FAST, TOTAL, THREADS = (rows if by_rows else cols), rows * cols, threads
    STEP, STAYS = threads // FAST, threads % FAST == 0
    COUNT = -(-TOTAL // THREADS)
    int32, int64, uint32 = ptx.types.int32, ptx.types.int64, ptx.types.uint32

    @device_function
    def coords(t, k):
        if STAYS:
            fast, slow = int32(uint32(t) % uint32(FAST)), int32(uint32(t) // uint32(FAST) + k * STEP)
        else:
            number = uint32(t + k * THREADS)
            fast, slow = int32(number % uint32(FAST)), int32(number // uint32(FAST))
        return (fast, slow) if by_rows else (slow, fast)

    @device_function
    def has(t, k):
        return True if TOTAL % THREADS == 0 else t + k * THREADS < TOTAL

    @device_function
    def element_offset(t, k, row_stride, col_stride):
        i, j = coords(t, k)
        return int64(i) * row_stride + int64(j) * col_stride

    @device_function
    def first(t, row_stride, col_stride):
        return element_offset(t, 0, row_stride, col_stride)

    @device_function
    def following(at, t, k, row_stride, col_stride):
        if STAYS:
            return at + STEP * (col_stride if by_rows else row_stride)
        return element_offset(t, k + 1, row_stride, col_stride)

    return SimpleNamespace(count=COUNT, coords=coords, has=has, first=first, following=following)
