"""Base of kernels with several small matrices in a warp: a group of lanes each, a row a lane.

A group has as many lanes as the rows need, 4, 8, 16 or 32. Its matrix passes through shared memory, so that
neighbours in memory are read and written by neighbouring lanes, in any order of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import device_function, ptx, unrolled
from ...common.kernel_config import BlockConfig
from ...common.substitution import divider

__all__ = ["GROUPS", "ORDER", "SmallMatrices", "column_step", "first_max", "matrix_loader", "matrix_writer"]

ORDER = 32  # rows and columns at most: a lane a row
GROUPS = (4, 8, 16, 32)  # lanes of a matrix


@dataclass(frozen=True)
class SmallMatrices(BlockConfig):
    """Config of a kernel of small matrices; its attributes are those of `BlockConfig`."""

    DIM: int = 64

    #: Elements from row to row in shared memory: odd, against bank conflicts.
    LD: ClassVar[int] = ORDER + 1

    @staticmethod
    def lanes(rows: int) -> int:
        """Lanes of a matrix of `rows` rows."""
        return next(lanes for lanes in GROUPS if rows <= lanes)

    def grid(self, rows: int, count: int) -> int:
        """Blocks for `count` matrices of `rows` rows."""
        return -(-count // (self.DIM // self.lanes(rows)))


def matrix_loader(config: SmallMatrices):
    """``load(shared, a, row_stride, col_stride, m, n, lane, lanes, lower)``: a matrix to shared memory, by
    rows, or its lower triangle alone, by its group of lanes; with m = 0 nothing. All lanes of the warp have
    it after.
    """
    facts, LD = config.dtype_facts, config.LD
    REALS, SIZE, int32 = facts.reals_per_element, facts.real_size, ptx.types.int32
    copy, commit, wait, offset = ptx.copy_async(SIZE), ptx.commit_async, ptx.wait_async(0), ptx.offset
    sync_warp = ptx.sync_warp

    @device_function
    def load(shared, a, row_stride, col_stride, m, n, lane, lanes, lower):
        by_columns = abs(row_stride) <= abs(col_stride)
        slow_end, fast_end = int32(m), int32(n)
        slow_stride, fast_stride, slow_step, fast_step = row_stride, col_stride, int32(LD), int32(1)
        if by_columns:
            slow_end, fast_end = int32(n), int32(m)
            slow_stride, fast_stride, slow_step, fast_step = col_stride, row_stride, int32(1), int32(LD)
        slow = int32(0)
        while slow < slow_end:
            fast = int32(lane)
            while fast < fast_end:
                if not lower or (slow <= fast if by_columns else fast <= slow):
                    at = int32((slow * slow_step + fast * fast_step) * REALS)
                    for part in range(REALS):
                        copy(shared, int32(at + part), a, fast * fast_stride * REALS + part, int32(SIZE))
                fast = int32(fast + lanes)
            a, slow = offset(a, slow_stride * REALS), int32(slow + 1)
        commit()
        wait()
        sync_warp()

    return load


def matrix_writer(config: SmallMatrices):
    """``write(a, shared, lane_of_row, row_stride, col_stride, m, n, lane, lanes)``: back; row i of the
    matrix, of which there are no more than lanes, is in row ``lane_of_row[i]`` of shared memory.
    """
    REALS, LD, store = config.dtype_facts.reals_per_element, config.LD, ptx.store_global
    int32, offset = ptx.types.int32, ptx.offset

    @device_function
    def write_columns(a, shared, lane_of_row, row_stride, col_stride, m, n, lane):
        k = int32(0)
        if lane < m:
            shared, a = offset(shared, lane_of_row[lane] * (LD * REALS)), offset(a, lane * row_stride * REALS)
            while k < n:
                for part in range(REALS):
                    store(a, part, shared[k * REALS + part], True)
                a, k = offset(a, col_stride * REALS), int32(k + 1)

    @device_function
    def write_rows(a, shared, lane_of_row, row_stride, col_stride, m, n, lane, lanes):
        i = int32(0)
        while i < m:
            row, k = offset(shared, lane_of_row[i] * (LD * REALS)), int32(lane)
            while k < n:
                for part in range(REALS):
                    store(a, k * col_stride * REALS + part, row[k * REALS + part], True)
                k = int32(k + lanes)
            a, i = offset(a, row_stride * REALS), int32(i + 1)

    @device_function
    def write(a, shared, lane_of_row, row_stride, col_stride, m, n, lane, lanes):
        if abs(row_stride) <= abs(col_stride):
            write_columns(a, shared, lane_of_row, row_stride, col_stride, m, n, lane)
        else:
            write_rows(a, shared, lane_of_row, row_stride, col_stride, m, n, lane, lanes)

    return write


def first_max(config: SmallMatrices):
    """``find(size, label, ok, lanes)``: the lowest label of the largest size in each group of lanes.

    As `ptx.warp_first_max`, which it is for a whole warp: NaN is larger than any number.
    """
    int32, warp_first_max, group_first_max = ptx.types.int32, ptx.warp_first_max, ptx.group_first_max

    @device_function
    def find(size, label, ok, lanes):
        if lanes == 32:
            return int32(warp_first_max(size, label, ok))
        return int32(group_first_max(size, label, ok, lanes))

    return find


def column_step(config: SmallMatrices, columns: int):
    """``step(x, re, im, source, is_pivot, is_after)``: an element of each of `columns` solutions, which its
    lane `source` divides where it `is_pivot`, taken off the rows after it, which have (re, im) of the column.
    """
    REALS, COMPLEX = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex
    shuffle, divide = ptx.shuffle, divider(config.dtype_facts)

    @device_function
    def divide_element(q, x, re, im):
        divide(x, q * REALS, re, im)

    @device_function
    def take_off(q, x, re, im, source, is_after):
        y = shuffle(x[q * REALS], source)
        if COMPLEX:
            y_im = shuffle(x[q * REALS + 1], source)
            if is_after:
                x[q * REALS] = x[q * REALS] - re * y + im * y_im
                x[q * REALS + 1] = x[q * REALS + 1] - re * y_im - im * y
        elif is_after:
            x[q * REALS] = x[q * REALS] - re * y

    divide_all, take_all_off = unrolled(columns, divide_element), unrolled(columns, take_off)

    @device_function
    def step(x, re, im, source, is_pivot, is_after):
        if is_pivot:
            divide_all(0, x, re, im)
        take_all_off(0, x, re, im, source, is_after)

    return step
