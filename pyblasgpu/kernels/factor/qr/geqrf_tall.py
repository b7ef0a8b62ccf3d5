"""``geqrf_tall``: Q R of a panel of any number of rows, in a single launch of several blocks.

It is for panels that do not fit into the shared memory of a block (`geqrf_panel`). A step ends with what each
block leaves for all: its products of column j + 1 with the columns right of it, and row j + 1. They give the
next reflector, and what it takes off each column, without another sum. Each thread updates its own rows, some
columns at a time. All blocks are resident, and wait for one another once a step. What a step reads of the
others' is apart from what it leaves.

Two steps come first: sizes of columns, and scales by powers of two that bring them to about one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..lane_sums import adder, larger, over_lanes
from .meeting import meeting
from .reflector import (
    BETA,
    FACTOR,
    TAU,
    multiplier,
    projector,
    reflector,
    scaler,
    size_of,
)

__all__ = ["STEM", "GeqrfTall", "source"]

STEM = "geqrf_tall"
PARAMETERS = parameters(
    "pointer: tau, state, a",
    "int32 pointer: info, flags",
    "int32: m, n, always",
    "int64: tau_step, a_rs, a_cs",
)
FIRST = -2  # the number of the first step
MOST = 128  # columns


@dataclass(frozen=True)
class GeqrfTall(BlockConfig):
    """Config of one `geqrf_tall` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    COLS : int
        Columns of a row that a thread has at a time.
    """

    COLS: int = 16

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.COLS <= self.DIM, "columns", "0 < COLS <= DIM", COLS=self.COLS, DIM=self.DIM)

    @property
    def MOST(self) -> int:
        """The most columns of a panel."""
        return min(MOST, self.DIM)

    @property
    def part_reals(self) -> int:
        """Reals of the columns that a thread has at a time."""
        return self.COLS * self.dtype_facts.reals_per_element

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.part_reals * self.dtype_facts.real_size // 4 + 64

    @property
    def shared_elements(self) -> int:
        """A row of sums, one of multiples, one of scales, and a part of one for each warp."""
        return 3 * self.MOST + self.DIM // WARP * self.COLS

    def grid(self, rows: int, multiprocessors: int) -> int:
        """Blocks for a panel of `rows` rows: all of them are resident."""
        return min(-(-rows // self.DIM), multiprocessors)

    def state(self, blocks: int) -> int:
        """Elements of what the steps leave: twice a row of each block and one more, and scales."""
        return (2 * (blocks + 1) + 1) * self.MOST


def source(config: GeqrfTall) -> KernelSource:
    """The kernel of `config`, for m >= n and n <= MOST.

    Kernel parameters
    -----------------
    tau: pointer, tau
    state: pointer, ``config.state(blocks)`` elements
    a: pointer, A
    info: int32 pointer, an info: where it is 0, nothing is done but `always`
    flags: int32 pointer, 0 before and after
    m, n: int32, rows and columns of A
    always: int32, whether A is factored whatever info is
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)

    Grid: x ``config.grid(rows, multiprocessors)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), cooperative=True)


def _gatherer(config: GeqrfTall) -> Callable:
    """``gather(sums, left, blocks, n, is_size, warp, lane)``: sums, or the largest, of what blocks left."""
    WARPS, REALS = config.DIM // WARP, config.dtype_facts.reals_per_element
    real = ptx.REALS[config.dtype_facts.real]
    total, largest, int32 = over_lanes(adder()), over_lanes(larger()), ptx.types.int32

    @device_function
    def gather(sums, left, blocks, n, is_size, warp, lane):
        k = warp
        while k < n * REALS:
            x, block = real(0), lane
            while block < blocks:
                other = left[k * blocks + block]
                x = max(x, other) if is_size else x + other
                block = int32(block + 32)
            x = largest(x, lane, int32(WARP)) if is_size else total(x, lane, int32(WARP))
            if lane == 0:
                sums[k] = x
            k = int32(k + WARPS)

    return gather


def _leaver(config: GeqrfTall) -> Callable:
    """``leave(leaves, acc, parts, is_size, block, blocks, t)``: the sums, or the largest, of the threads of a
    block, to what it leaves.
    """
    WARPS, SPAN, real = config.DIM // WARP, config.part_reals, ptx.REALS[config.dtype_facts.real]
    total, largest, int32 = over_lanes(adder()), over_lanes(larger()), ptx.types.int32

    @device_function
    def over_warp(k, acc, parts, is_size, warp, lane):
        x = largest(acc[k], lane, int32(WARP)) if is_size else total(acc[k], lane, int32(WARP))
        if lane == 0:
            parts[warp * SPAN + k] = x

    over_warps = unrolled(SPAN, over_warp)

    @device_function
    def leave(leaves, acc, parts, is_size, block, blocks, t):
        over_warps(0, acc, parts, is_size, t >> 5, t & 31)
        cuda.syncthreads()
        if t < SPAN:
            x = real(0)
            for warp in range(WARPS):
                other = parts[warp * SPAN + t]
                x = max(x, other) if is_size else x + other
            leaves[t * blocks + block] = x
        cuda.syncthreads()

    return leave


def _row_step(config: GeqrfTall) -> Callable:
    """``step(x, row, a_cs, v, multiples, scales, begin, first, n, acc, head, is_head)``: columns of a row
    of A from `begin` on and from `first` on, scaled, less their multiples of v. Their products with column
    `first` are added to `acc`, or they are `head`. Column `first` is done where it is before `begin`. Loads
    into `x` precede all else, so that they do not wait for one another.
    """
    facts = config.dtype_facts
    REALS, COMPLEX, MOST = facts.reals_per_element, facts.is_complex, config.MOST
    read, store_global = ptx.load_global(1, False), ptx.store_global
    real, select = ptx.REALS[facts.real], ptx.select

    @device_function
    def load(k, x, row, a_cs, begin, first, n):
        c = begin + k
        for part in range(REALS):
            read(x, k * REALS + part, row, c * a_cs * REALS + part, (c >= first) & (c < n))

    @device_function
    def element(c, re, im, v, multiples, scale):
        w, w_im = multiples[c * REALS], multiples[c * REALS + REALS - 1]
        if COMPLEX:
            return re * scale - w * v[0] + w_im * v[1], im * scale - w * v[1] - w_im * v[0]
        return re * scale - w * v[0], im

    @device_function
    def column(k, x, row, a_cs, v, multiples, scales, begin, first, n, acc, head, is_head, f, f_im):
        c, at = begin + k, k * REALS
        ok = (c >= first) & (c < n)
        c = min(c, MOST - 1)  # multiples are of that many
        re, im = element(c, x[at], x[at + REALS - 1], v, multiples, scales[c])
        store_global(row, c * a_cs * REALS, re, ok)
        store_global(head, c * REALS, re, ok & is_head)
        if COMPLEX:
            store_global(row, c * a_cs * REALS + 1, im, ok)
            store_global(head, c * REALS + 1, im, ok & is_head)
            acc[at] += select(ok & (not is_head), f * re + f_im * im, real(0))
            acc[at + 1] += select(ok & (not is_head), f * im - f_im * re, real(0))
        else:
            acc[at] += select(ok & (not is_head), f * re, real(0))

    loads, columns = unrolled(config.COLS, load), unrolled(config.COLS, column)

    @device_function
    def step(x, row, a_cs, v, multiples, scales, begin, first, n, acc, head, is_head):
        if first < n:
            at = first * a_cs * REALS
            f, f_im = row[at], row[at + REALS - 1]
            loads(0, x, row, a_cs, begin, first, n)
            if begin <= first:
                f, f_im = element(first, f, f_im, v, multiples, scales[first])
            columns(0, x, row, a_cs, v, multiples, scales, begin, first, n, acc, head, is_head, f, f_im)

    return step


def _sizer(config: GeqrfTall) -> Callable:
    """``sizes(0, row, a_cs, begin, n, acc)``: the largest of columns from `begin` on so far, with a row's."""
    REALS, size = config.dtype_facts.reals_per_element, size_of(config.dtype_facts)

    @device_function
    def column(k, row, a_cs, begin, n, acc):
        if begin + k < n:
            acc[k * REALS] = max(acc[k * REALS], size(row, (begin + k) * a_cs * REALS))

    return unrolled(config.COLS, column)


def _build(config: GeqrfTall):
    facts, DIM, PART, COLS = config.dtype_facts, config.DIM, config.part_reals, config.COLS
    SPAN, MOST = config.MOST * config.dtype_facts.reals_per_element, config.MOST
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, offset, shared_pointer = ptx.types.int32, ptx.offset, ptx.shared_pointer
    zero, grid_dependency_wait, load_acquire = ptx.fill(PART), ptx.grid_dependency_wait, ptx.load_acquire
    gather, leave, step, sizes = _gatherer(config), _leaver(config), _row_step(config), _sizer(config)
    make, scale_of, (meet, part) = reflector(facts), scaler(facts), meeting()
    project, multiply = projector(facts), multiplier(facts)

    @device_function
    def scale_element(row, at, h, v):
        """An element below the diagonal times the factor of its reflector; v keeps it."""
        re, im = row[at], row[at + REALS - 1]
        v[0] = re * h[FACTOR]
        if COMPLEX:
            v[0], v[1] = re * h[FACTOR] - im * h[FACTOR + 1], re * h[FACTOR + 1] + im * h[FACTOR]
            row[at + 1] = v[1]
        row[at] = v[0]

    @device_function
    def write_row(a, a_cs, tau, head, w, h, back, j, n, k):
        """Row j of R, and tau, by a thread a column."""
        if k == j:
            a[k * a_cs * REALS] = h[BETA] * back[k]
            if COMPLEX:
                a[k * a_cs * REALS + 1] = real(0)
            for part in range(REALS):
                tau[part] = h[TAU + part]
        elif j < k < n:
            for part in range(REALS):
                at = k * REALS + part
                a[k * a_cs * REALS + part] = (head[at] - w[at]) * back[k]

    @device_function
    def step_rows(x, acc, v, h, a, w, scales, leaves, parts, m, n, a_rs, a_cs, j, begin, block, blocks, t):
        """Columns from `begin` on: the rows of a thread, and their products with column j + 1."""
        zero(acc, real(0))
        v[0] = v[1] = real(0)
        first, i, head = int32(j + 1), int32(block * DIM + t), offset(leaves, blocks * SPAN)
        is_first = begin <= first
        while i < m:
            row = offset(a, i * a_rs * REALS)
            if j == FIRST:
                sizes(0, row, a_cs, begin, n, acc)
            elif i > j:
                if j >= 0 and is_first:
                    scale_element(row, j * a_cs * REALS, h, v)
                elif j >= 0:
                    v[0], v[1] = row[j * a_cs * REALS], row[j * a_cs * REALS + REALS - 1]
                step(x, row, a_cs, v, w, scales, begin, first, n, acc, head, i == first)
            i = int32(i + blocks * DIM)
        if first < n:
            leave(offset(leaves, begin * REALS * blocks), acc, parts, j == FIRST, block, blocks, t)

    def geqrf_tall(tau, state, a, info, flags, m, n, always, tau_step, a_rs, a_cs):
        # (1) the rows of this block, and a step after the other
        t, block, blocks = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))
        w, scales, parts = offset(sums, SPAN), offset(sums, 2 * SPAN), offset(sums, 3 * SPAN)
        acc, v, h = cuda.local.array(PART, real), cuda.local.array(2, real), cuda.local.array(5, real)
        x = cuda.local.array(PART, real)
        half = int32((blocks + 1) * SPAN)
        back, j = offset(state, 2 * half), int32(FIRST)
        grid_dependency_wait()
        if always == 0 and load_acquire(info, 0) == 0:
            return
        while j < n:
            # (2) what the step before has left, and where this one leaves its own
            left, leaves = offset(state, (j & 1) * half), offset(state, (1 - (j & 1)) * half)
            head = offset(left, blocks * SPAN)
            if j > FIRST:
                gather(sums, left, blocks, n, j == FIRST + 1, int32(t >> 5), int32(t & 31))
            cuda.syncthreads()

            # (3) scales of the columns; or the reflector, and what it takes off each of them
            h[FACTOR] = h[FACTOR + 1] = v[0] = v[1] = real(0)
            if j >= 0:
                make(h, head[j * REALS], head[j * REALS + REALS - 1], sums[j * REALS])
            if t < MOST:
                scales[t] = real(1)
                for side in range(REALS):
                    w[t * REALS + side] = real(0)
                if j == FIRST + 1 and t < n:
                    scale_of(v, sums[t * REALS])
                    scales[t] = v[0]
                    if block == 0:
                        back[t] = v[1]
                elif j < t < n and j >= 0:
                    project(v, head, t * REALS, sums, t * REALS, h)
                    multiply(w, t * REALS, v, h)
                if block == 0 and j >= 0:
                    row, to = offset(a, j * a_rs * REALS), offset(tau, j * tau_step * REALS)
                    write_row(row, a_cs, to, head, w, h, back, j, n, t)
            cuda.syncthreads()

            # (4) the rows of this thread, some columns at a time, and all the others
            begin = int32(min(max(j + 1, 0), n - 1) // COLS * COLS)
            while begin < n:
                step_rows(
                    x, acc, v, h, a, w, scales, leaves, parts, m, n, a_rs, a_cs, j, begin, block, blocks, t
                )
                begin = int32(begin + COLS)
            if j + 1 < n:
                meet(flags, int32(j - FIRST + 1), blocks, t)
            j = int32(j + 1)
        part(flags, blocks, t)

    return geqrf_tall
