"""``gesv_small``: solutions of A X = B, or inverses, of up to 32 rows, of a batch as a rule, in one launch.

A lane owns a row, as in `getrf_small`: it factors it in registers, and U and L go to shared memory in the
order of the lanes. A pivot moves no row: it gets a label, its row in L, U and X. Of equal candidates the
uppermost row of A is the pivot. A and B stay as they are, and nothing but X and info is written.

A single right-hand side is solved by columns: the element that is done goes to the other lanes by a shuffle.
Of several a lane has a row of X in registers. The row that is done passes through shared memory, where all
lanes of the matrix divide it, an element each. The inverse begins with L^-1, whose rows end at the diagonal:
its columns are in the order of the pivots, and are put back on writing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP
from ...common.parameters import parameters
from ...common.substitution import divider
from .getrf_small import TURNS, GetrfSmall
from .panel_rows import eliminator, row_putter, sizer
from .small_matrices import GROUPS, column_step, first_max, matrix_loader, matrix_writer

__all__ = ["STEM", "GesvSmall", "source"]

STEM = "gesv_small"
PARAMETERS = parameters(
    "int32 pointer: info",
    "pointer: a, b, x",
    "int32: n, r, inverts, lanes, count",
    "int64: a_rs, a_cs, b_rs, b_cs, x_rs, x_cs, stride_info, stride_a, stride_b, stride_x",
)


@dataclass(frozen=True)
class GesvSmall(GetrfSmall):
    """Config of one `gesv_small` kernel; its attributes are those of `GetrfSmall`."""

    STEM: ClassVar[str] = STEM
    WIDTHS: ClassVar[tuple[int, ...]] = (16, 32)
    MOST_BLOCKS: ClassVar[dict[int, int]] = {16: 11, 32: 8, 64: 6, 128: 4}

    def shares(self, columns: int) -> int:
        """Groups of lanes that share the right-hand sides of a matrix, each with factors of its own."""
        return -(-columns // self.COLS)


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

    Grid: x ``config.grid(n, count)`` times ``config.shares(r)``.
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


def _column_solver(config: GesvSmall) -> Callable:
    """``solve(x, row, lane_of_row, label, n, first)``: both triangles for the right-hand side of which `x` is
    an element; the lanes of the matrix begin at `first`.
    """
    REALS, int32, step = config.dtype_facts.reals_per_element, ptx.types.int32, column_step(config, 1)

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


def _by_width(config: GesvSmall, body: Callable[[int], Callable]) -> Callable:
    """``run(x, other, slot, re, im, count)``: ``body(columns)`` of the least of `GROUPS` that is enough."""

    def step(fewer: int, columns: int) -> Callable:
        run_columns, IS_ALL = body(columns), columns == config.COLS

        @device_function
        def run(x, other, slot, re, im, count):
            if (count > fewer) & (IS_ALL | (count <= columns)):
                run_columns(0, x, other, slot, re, im)

        return run

    widths = (width for width in GROUPS if width <= config.COLS)
    return in_order([step(*each) for each in pairwise((0, *widths))])


def _row_steps(config: GesvSmall) -> tuple[Callable, Callable]:
    """``put(x, other, slot, re, im, count)``: `count` elements of a row of X to shared memory;
    ``take_off(...)``: (re, im) times a row there off this one.
    """
    facts = config.dtype_facts
    REALS, WIDTH, COMPLEX = facts.reals_per_element, 16 // facts.real_size, facts.is_complex
    EACH, store, load = WIDTH // REALS, ptx.store_shared(WIDTH), ptx.load_shared(WIDTH)

    @device_function
    def put_vector(v, x, other, slot, re, im):
        store(slot, v * WIDTH, x, v * WIDTH)

    @device_function
    def take_vector_off(v, x, other, slot, re, im):
        load(other, 0, slot, v * WIDTH)
        for e in range(EACH):
            k, u = v * WIDTH + e * REALS, e * REALS
            if COMPLEX:
                x[k] = x[k] - re * other[u] + im * other[u + 1]
                x[k + 1] = x[k + 1] - re * other[u + 1] - im * other[u]
            else:
                x[k] = x[k] - re * other[u]

    def of(one: Callable) -> Callable[[int], Callable]:
        return lambda columns: unrolled(columns // EACH, one)

    return _by_width(config, of(put_vector)), _by_width(config, of(take_vector_off))


def _row_divider(config: GesvSmall) -> Callable:
    """``finish(slot, done, lane_of_row, element, re, im, columns, inverts, lane, lanes)``: the row of X in
    `slot` divided by (re, im), an element a lane, and kept in `done`.
    """
    REALS, int32, divide = config.dtype_facts.reals_per_element, ptx.types.int32, divider(config.dtype_facts)

    @device_function
    def finish(slot, done, lane_of_row, element, re, im, columns, inverts, lane, lanes):
        k = int32(lane)
        while k < columns:
            to = int32(lane_of_row[k]) if inverts else k
            for part in range(REALS):
                element[part] = slot[k * REALS + part]
            divide(element, 0, re, im)
            for part in range(REALS):
                slot[k * REALS + part] = done[to * REALS + part] = element[part]
            k = int32(k + lanes)

    return finish


def _row_solver(config: GesvSmall) -> Callable:
    """``solve(...)``: both triangles for `columns` right-hand sides, of which the lane has a row in `x`; rows
    of X take the place of the factors.
    """
    REALS, LD, ROW = config.dtype_facts.reals_per_element, config.LD, config.row_reals
    (put, take_off), finish = _row_steps(config), _row_divider(config)
    int32, offset, sync_warp = ptx.types.int32, ptx.offset, ptx.sync_warp

    @device_function
    def solve(x, other, element, rows, row, slots, lane_of_row, label, n, columns, inverts, lane, lanes):
        j = int32(0)
        while j < n - 1:  # rows of L^-1 end at the diagonal
            slot, count = offset(slots, int32((j & 1) * ROW)), int32(j + 1) if inverts else columns
            re, im = row[j * REALS], row[j * REALS + REALS - 1]
            if label == j:
                put(x, other, slot, re, im, count)
            sync_warp()
            if label > j:
                take_off(x, other, slot, re, im, count)
            j = int32(j + 1)
        while j >= 0:
            slot, done = offset(slots, int32((j & 1) * ROW)), offset(rows, lane_of_row[j] * (LD * REALS))
            re, im = done[j * REALS], done[j * REALS + REALS - 1]
            if label == j:
                put(x, other, slot, re, im, columns)
            sync_warp()
            finish(slot, done, lane_of_row, element, re, im, columns, inverts, lane, lanes)
            sync_warp()
            if label < j:
                take_off(x, other, slot, row[j * REALS], row[j * REALS + REALS - 1], columns)
            j = int32(j - 1)

    return solve


def _row_reader(config: GesvSmall) -> Callable:
    """``read(0, x, b, b_cs, columns, inverts, label, ok)``: a row of B, or of the identity."""
    facts, select, load = config.dtype_facts, ptx.select, ptx.load_global(1, False)
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]

    @device_function
    def read(k, x, b, b_cs, columns, inverts, label, ok):
        for part in range(REALS):
            load(x, k * REALS + part, b, k * b_cs * REALS + part, ok & (not inverts) & (k < columns))
        if inverts:
            x[k * REALS] = select(k == label, real(1), real(0))

    return unrolled(config.COLS, read)


def _build(config: GesvSmall):
    facts, LD, DIM, COLS = config.dtype_facts, config.LD, config.DIM, config.COLS
    REALS, ROW, HELD = facts.reals_per_element, config.row_reals, config.row_reals + facts.reals_per_element
    AREA, WORDS = TURNS * config.groups * ROW, config.shared_reals * facts.real_size // 4
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, shared_pointer, quotient = ptx.offset, ptx.shared_pointer, ptx.quotient
    load, factor, find = matrix_loader(config), _factorizer(config), first_max(config)
    solve_column, solve_rows, read_row = _column_solver(config), _row_solver(config), _row_reader(config)
    load_one, store, write = ptx.load_global(1, False), ptx.store_global, matrix_writer(config)
    zero, VECTOR, NO_LABEL = ptx.fill(HELD), 16 // facts.real_size, ptx.NO_LABEL
    grid_dependency_wait = ptx.grid_dependency_wait

    def gesv_small(
        info, a, b, x, n, r, inverts, lanes, count,
        a_rs, a_cs, b_rs, b_cs, x_rs, x_cs, stride_info, stride_a, stride_b, stride_x
    ):  # fmt: skip
        # (1) the matrix of this group of lanes, and its factors
        t, shares = int32(cuda.threadIdx.x & 1023), int32(quotient(int32(r + (COLS - 1)), COLS))
        group, lane = int32(quotient(t, lanes)), int32(t & (lanes - 1))
        block, first = int32(cuda.blockIdx.x), int32(0)
        if shares > 1:
            first = int32(block % shares * COLS)
            block, r = int32(quotient(block, shares)), int32(r - first)
        matrix = int64(block) * quotient(int32(DIM), lanes) + group
        is_here = matrix < count
        pivot_rows = offset(shared_pointer(cuda.shared.array(0, real, alignment=16)), group * TURNS * ROW)
        rows = offset(pivot_rows, AREA + group * (lanes * LD * REALS - TURNS * ROW))
        words = shared_pointer(cuda.shared.array(0, int32, alignment=16))
        lane_of_row, row = offset(words, WORDS + group * lanes), offset(rows, lane * LD * REALS)
        values, element = cuda.local.array(HELD, real), cuda.local.array(REALS, real)
        other = cuda.local.array(VECTOR, real)
        zero(values, real(0))
        lane_of_row[lane] = lane
        grid_dependency_wait()
        a, b, x = (
            offset(a, matrix * stride_a * REALS),
            offset(b, (matrix * stride_b + lane * b_rs + first * b_cs) * REALS),
            offset(x, (matrix * stride_x + first * x_cs) * REALS),
        )
        load(rows, a, a_rs, a_cs, n if is_here else 0, n, lane, lanes, False)
        ok = is_here & (lane < n)
        label = factor(values, element, row, pivot_rows, lane_of_row, n, lane, lanes, ok)

        # (2) the first pivot that is zero
        diagonal = offset(row, label * REALS)
        is_zero = ok & (diagonal[0] == real(0)) & (diagonal[REALS - 1] == real(0))
        failed = find(real(1), label, is_zero, lanes)
        if is_here & (lane == 0) & (first == 0):
            info[matrix * stride_info] = int32(0) if failed == NO_LABEL else int32(failed + 1)

        # (3) both triangles: for one right-hand side
        if r == 1:
            for part in range(REALS):
                load_one(element, part, b, part, ok & (inverts == 0))
            if inverts != 0:
                element[0] = real(1)
            solve_column(element, row, lane_of_row, label, n, int32((t - lane) & (WARP - 1)))
            for part in range(REALS):
                store(x, label * x_rs * REALS + part, element[part], ok)
            return

        # (4) or for several, whose solutions take the place of the factors
        columns = int32(min(r, COLS))
        read_row(0, values, b, b_cs, columns, inverts != 0, label, ok)
        solve_rows(
            values, other, element, rows, row, pivot_rows, lane_of_row, label, n, columns, inverts != 0, lane,
            lanes
        )  # fmt: skip
        if is_here:
            write(x, rows, lane_of_row, x_rs, x_cs, n, columns, lane, lanes)

    return gesv_small
