"""``gesv_small``: solutions of A X = B, or inverses, of up to 32 rows, of a batch as a rule, in one launch.

A lane owns a row, as in `getrf_small`: it factors it in registers, and U and L go to shared memory in the
order of the lanes. A pivot moves no row: it gets a label, its row in L, U and X. Of equal candidates the
uppermost row of A is the pivot. Then the lane has elements of right-hand sides in registers, and both
triangles are solved by columns: the element that is done goes to the other lanes by a shuffle. A and B stay
as they are, and nothing but X and info is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP
from ...common.parameters import parameters
from .getrf_small import TURNS, GetrfSmall
from .panel_rows import eliminator, row_putter, sizer
from .small_matrices import GROUPS, column_step, first_max, matrix_loader

__all__ = ["COLUMNS", "STEM", "GesvSmall", "source"]

STEM = "gesv_small"
PARAMETERS = parameters(
    "int32 pointer: info",
    "pointer: a, b, x",
    "int32: n, r, inverts, lanes, count",
    "int64: a_rs, a_cs, b_rs, b_cs, x_rs, x_cs, stride_info, stride_a, stride_b, stride_x",
)
COLUMNS = 4  # right-hand sides that a lane has at a time


@dataclass(frozen=True)
class GesvSmall(GetrfSmall):
    """Config of one `gesv_small` kernel; its attributes are those of `GetrfSmall`."""

    STEM: ClassVar[str] = STEM


def source(config: GesvSmall) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    info: int32 pointer, info: 0, or the number, from 1, of the first pivot that is zero
    a, b, x: pointer, A, B and X; B is not read where A is inverted
    n, r: int32, rows, right-hand sides
    inverts: int32, whether B is the identity
    lanes: int32, lanes of a matrix, ``config.lanes(n)``
    count: int32, matrices
    a_rs, a_cs, b_rs, b_cs, x_rs, x_cs: int64, row and column strides (elements)
    stride_info: int64, batch stride of info (words)
    stride_a, stride_b, stride_x: int64, batch strides (elements)

    Grid: x ``config.grid(n, count)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _factorizer(config: GesvSmall) -> Callable:
    """``factor(values, element, row, pivot_rows, lane_of_row, n, lane, lanes, ok)``: the factors of the
    matrix whose rows are in shared memory, in place; returns the label of this lane's row.
    """
    REALS, ROW, int32 = config.dtype_facts.reals_per_element, config.row_reals, ptx.types.int32
    widths = tuple(width for width in GROUPS if width <= config.COLS)
    put, eliminate, size_of = row_putter(config, widths), eliminator(config, widths), sizer(config)
    find, offset, sync_warp = first_max(config), ptx.offset, ptx.sync_warp

    @device_function
    def read(k, values, row):  # also what is beyond the matrix, which nothing uses
        for part in range(REALS):
            values[k * REALS + part] = row[k * REALS + part]

    @device_function
    def write(k, values, row, done, n):
        if done + k < n:
            for part in range(REALS):
                row[(done + k) * REALS + part] = values[k * REALS + part]

    read_all, write_all = unrolled(config.COLS, read), unrolled(config.COLS, write)

    @device_function
    def factor(values, element, row, pivot_rows, lane_of_row, n, lane, lanes, ok):
        if ok:
            read_all(0, values, row)
        label, is_left, j, left = int32(lane), ok, int32(0), n
        while j < n:
            pivot_row = offset(pivot_rows, int32((j & 1) * ROW))
            pivot = find(size_of(values), label, is_left, lanes)
            is_pivot = is_left & (label == pivot)
            if is_pivot:
                put(pivot_row, values, left)
            sync_warp()
            if is_pivot:
                label, is_left = j, False
                write_all(0, values, row, j, n)
            elif is_left:
                eliminate(values, element, pivot_row, row, int32(j * REALS), left)
            j, left = int32(j + 1), int32(left - 1)
        if ok:
            lane_of_row[label] = lane
        sync_warp()
        return label

    return factor


def _solver(config: GesvSmall) -> Callable:
    """``solve(x, row, lane_of_row, label, n, first)``: both triangles for the right-hand sides of `x`; the
    lanes of the matrix begin at `first`.
    """
    REALS, int32, step = config.dtype_facts.reals_per_element, ptx.types.int32, column_step(config, COLUMNS)

    @device_function
    def solve(x, row, lane_of_row, label, n, first):
        j = int32(0)
        while j < n:
            re, im = row[j * REALS], row[j * REALS + REALS - 1]
            step(x, re, im, int32(first + lane_of_row[j]), False, label > j)
            j = int32(j + 1)
        while j > 0:
            j = int32(j - 1)
            re, im = row[j * REALS], row[j * REALS + REALS - 1]
            step(x, re, im, int32(first + lane_of_row[j]), label == j, label < j)

    return solve


def _right_hand_sides(config: GesvSmall) -> tuple[Callable, Callable]:
    """``read(x, b, row, b_cs, c, r, inverts, lane, ok)`` and ``write(x, out, x_cs, c, r, ok)``: those from
    column `c` on.
    """
    REALS, real, load = (
        config.dtype_facts.reals_per_element,
        ptx.REALS[config.dtype_facts.real],
        ptx.load_global,
    )
    load_one, store, select = load(1, False), ptx.store_global, ptx.select

    @device_function
    def read_one(q, x, b, b_cs, c, r, inverts, lane, ok):
        for part in range(REALS):
            load_one(x, q * REALS + part, b, (c + q) * b_cs * REALS + part, ok & (inverts == 0) & (c + q < r))
        if inverts != 0:
            x[q * REALS] = select(c + q == lane, real(1), real(0))

    @device_function
    def write_one(q, x, out, x_cs, c, r, ok):
        for part in range(REALS):
            store(out, (c + q) * x_cs * REALS + part, x[q * REALS + part], ok & (c + q < r))

    return unrolled(COLUMNS, read_one), unrolled(COLUMNS, write_one)


def _build(config: GesvSmall):
    facts, LD, DIM = config.dtype_facts, config.LD, config.DIM
    REALS, ROW, HELD = facts.reals_per_element, config.row_reals, config.row_reals + facts.reals_per_element
    SIDES = COLUMNS * REALS
    AREA, WORDS = TURNS * config.groups * ROW, config.shared_reals * facts.real_size // 4
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, shared_pointer, quotient = ptx.offset, ptx.shared_pointer, ptx.quotient
    load, factor, solve, find = matrix_loader(config), _factorizer(config), _solver(config), first_max(config)
    (read, write), zero, NO_LABEL = _right_hand_sides(config), ptx.fill(HELD), ptx.NO_LABEL
    grid_dependency_wait = ptx.grid_dependency_wait

    def gesv_small(
        info, a, b, x, n, r, inverts, lanes, count,
        a_rs, a_cs, b_rs, b_cs, x_rs, x_cs, stride_info, stride_a, stride_b, stride_x
    ):  # fmt: skip
        # (1) the matrix of this group of lanes, and its factors
        t = int32(cuda.threadIdx.x & 1023)
        group, lane = int32(quotient(t, lanes)), int32(t & (lanes - 1))
        matrix = int64(cuda.blockIdx.x) * quotient(int32(DIM), lanes) + group
        is_here = matrix < count
        pivot_rows = offset(shared_pointer(cuda.shared.array(0, real, alignment=16)), group * TURNS * ROW)
        rows = offset(pivot_rows, AREA + group * (lanes * LD * REALS - TURNS * ROW))
        words = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        lane_of_row, row = offset(words, WORDS + group * lanes), offset(rows, lane * LD * REALS)
        values, element = cuda.local.array(HELD, real), cuda.local.array(REALS, real)
        sides = cuda.local.array(SIDES, real)
        zero(values, real(0))
        lane_of_row[lane] = lane
        grid_dependency_wait()
        a, b, x = (
            offset(a, matrix * stride_a * REALS),
            offset(b, matrix * stride_b * REALS),
            offset(x, matrix * stride_x * REALS),
        )
        load(rows, a, a_rs, a_cs, n if is_here else 0, n, lane, lanes, False)
        ok = is_here & (lane < n)
        label = factor(values, element, row, pivot_rows, lane_of_row, n, lane, lanes, ok)

        # (2) the first pivot that is zero
        diagonal = offset(row, label * REALS)
        is_zero = ok & (diagonal[0] == real(0)) & (diagonal[REALS - 1] == real(0))
        failed = find(real(1), label, is_zero, lanes)
        if is_here & (lane == 0):
            info[matrix * stride_info] = int32(0) if failed == NO_LABEL else int32(failed + 1)

        # (3) both triangles, for some right-hand sides at a time
        b, x, first = (
            offset(b, lane * b_rs * REALS),
            offset(x, label * x_rs * REALS),
            int32((t - lane) & (WARP - 1)),
        )
        for c in range(0, r, COLUMNS):
            read(0, sides, b, b_cs, c, r, inverts, lane, ok)
            solve(sides, row, lane_of_row, label, n, first)
            write(0, sides, x, x_cs, c, r, ok)

    return gesv_small
