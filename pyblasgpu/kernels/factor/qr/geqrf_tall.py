"""``geqrf_tall``: Q R of a panel of any number of rows, in a single launch of several blocks.

It is for panels that do not fit into the shared memory of a block (`geqrf_panel`). A step ends with what each
block leaves for all: its products of column j + 1 with the columns right of it, and row j + 1. They give the
next reflector, and what it takes off each column, without another sum. Each thread updates its own rows. All
blocks are resident, and wait for one another once a step. What a step reads of the others' is apart from what
it leaves.

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
    "int32 pointer: flags",
    "int32: m, n",
    "int64: tau_step, a_rs, a_cs",
)
FIRST = -2  # the number of the first step


@dataclass(frozen=True)
class GeqrfTall(BlockConfig):
    """Config of one `geqrf_tall` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    COLS : int
        The most columns of a panel.
    """

    COLS: int = 16

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.COLS <= self.DIM, "columns", "0 < COLS <= DIM", COLS=self.COLS, DIM=self.DIM)

    @property
    def row_reals(self) -> int:
        """Reals of a row."""
        return self.COLS * self.dtype_facts.reals_per_element

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.row_reals * self.dtype_facts.real_size // 4 + 64

    @property
    def shared_elements(self) -> int:
        """A row of sums, one of multiples, one of scales, and one for each warp."""
        return (3 + self.DIM // WARP) * self.COLS

    def grid(self, rows: int, multiprocessors: int) -> int:
        """Blocks for a panel of `rows` rows: all of them are resident."""
        return min(-(-rows // self.DIM), multiprocessors)

    def state(self, blocks: int) -> int:
        """Elements of what the steps leave: twice a row of each block and one more, and scales."""
        return (2 * (blocks + 1) + 1) * self.COLS


def source(config: GeqrfTall) -> KernelSource:
    """The kernel of `config`, for m >= n.

    Kernel parameters
    -----------------
    tau: pointer, tau
    state: pointer, ``config.state(blocks)`` elements
    a: pointer, A
    flags: int32 pointer, 0 before and after
    m, n: int32, rows and columns of A
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)

    Grid: x ``config.grid(rows, multiprocessors)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), cooperative=True)


def _gatherer(config: GeqrfTall) -> Callable:
    """``gather(sums, left, blocks, is_size, warp, lane)``: what all blocks left, summed, or the largest."""
    WARPS, SPAN, real = config.DIM // WARP, config.row_reals, ptx.REALS[config.dtype_facts.real]
    total, largest, int32 = over_lanes(adder()), over_lanes(larger()), ptx.types.int32

    @device_function
    def gather(sums, left, blocks, is_size, warp, lane):
        k = warp
        while k < SPAN:
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
    WARPS, SPAN, real = config.DIM // WARP, config.row_reals, ptx.REALS[config.dtype_facts.real]
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

    return leave


def _row_step(config: GeqrfTall) -> Callable:
    """``step(x, row, a_cs, v, multiples, scales, first, n, acc, head, is_head)``: columns from `first` on of
    a row of A, scaled, less their multiples of v; their products with column `first` are added to `acc`, or
    they are `head`. All are loaded into `x` before, so that loads do not wait for one another.
    """
    facts = config.dtype_facts
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex
    read, store_global = ptx.load_global(1, False), ptx.store_global
    real, select = ptx.REALS[facts.real], ptx.select

    @device_function
    def load(k, x, row, a_cs, first, n):
        for part in range(REALS):
            read(x, k * REALS + part, row, k * a_cs * REALS + part, (k >= first) & (k < n))

    @device_function
    def element(k, re, im, v, multiples, scale):
        w, w_im = multiples[k * REALS], multiples[k * REALS + REALS - 1]
        if COMPLEX:
            return re * scale - w * v[0] + w_im * v[1], im * scale - w * v[1] - w_im * v[0]
        return re * scale - w * v[0], im

    @device_function
    def column(k, x, row, a_cs, v, multiples, scales, first, n, acc, head, is_head, f, f_im):
        ok, at = (k >= first) & (k < n), k * REALS
        re, im = element(k, x[at], x[at + REALS - 1], v, multiples, scales[k])
        store_global(row, k * a_cs * REALS, re, ok)
        store_global(head, at, re, ok & is_head)
        if COMPLEX:
            store_global(row, k * a_cs * REALS + 1, im, ok)
            store_global(head, at + 1, im, ok & is_head)
            acc[at] += select(ok & (not is_head), f * re + f_im * im, real(0))
            acc[at + 1] += select(ok & (not is_head), f * im - f_im * re, real(0))
        else:
            acc[at] += select(ok & (not is_head), f * re, real(0))

    loads, columns = unrolled(config.COLS, load), unrolled(config.COLS, column)

    @device_function
    def step(x, row, a_cs, v, multiples, scales, first, n, acc, head, is_head):
        if first < n:
            at = first * a_cs * REALS
            re, im = row[at], row[at + REALS - 1]
            loads(0, x, row, a_cs, first, n)
            f, f_im = element(first, re, im, v, multiples, scales[first])
            columns(0, x, row, a_cs, v, multiples, scales, first, n, acc, head, is_head, f, f_im)

    return step


def _sizer(config: GeqrfTall) -> Callable:
    """``sizes(0, row, a_cs, n, acc)``: the largest of each column so far, with an element of each."""
    REALS, size = config.dtype_facts.reals_per_element, size_of(config.dtype_facts)

    @device_function
    def column(k, row, a_cs, n, acc):
        if k < n:
            acc[k * REALS] = max(acc[k * REALS], size(row, k * a_cs * REALS))

    return unrolled(config.COLS, column)


def _build(config: GeqrfTall):
    facts, DIM, SPAN, COLS = config.dtype_facts, config.DIM, config.row_reals, config.COLS
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, offset, shared_pointer = ptx.types.int32, ptx.offset, ptx.shared_pointer
    zero, grid_dependency_wait = ptx.fill(SPAN), ptx.grid_dependency_wait
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

    def geqrf_tall(tau, state, a, flags, m, n, tau_step, a_rs, a_cs):
        # (1) the rows of this block, and a step after the other
        t, block, blocks = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))
        w, scales, parts = offset(sums, SPAN), offset(sums, 2 * SPAN), offset(sums, 3 * SPAN)
        acc, v, h = cuda.local.array(SPAN, real), cuda.local.array(2, real), cuda.local.array(5, real)
        x = cuda.local.array(SPAN, real)
        half = int32((blocks + 1) * SPAN)
        back, j = offset(state, 2 * half), int32(FIRST)
        grid_dependency_wait()
        while j < n:
            # (2) what the step before has left, and where this one leaves its own
            left, leaves = offset(state, (j & 1) * half), offset(state, (1 - (j & 1)) * half)
            head = offset(left, blocks * SPAN)
            if j > FIRST:
                gather(sums, left, blocks, j == FIRST + 1, int32(t >> 5), int32(t & 31))
            cuda.syncthreads()

            # (3) scales of the columns; or the reflector, and what it takes off each of them
            h[FACTOR] = h[FACTOR + 1] = v[0] = v[1] = real(0)
            if j >= 0:
                make(h, head[j * REALS], head[j * REALS + REALS - 1], sums[j * REALS])
            if t < COLS:
                scales[t] = real(1)
                for side in range(REALS):
                    w[t * REALS + side] = real(0)
                if j == FIRST + 1:
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

            # (4) the rows of this thread, and their products of the next column
            zero(acc, real(0))
            v[0] = v[1] = real(0)
            first, i, head = int32(j + 1), int32(block * DIM + t), offset(leaves, blocks * SPAN)
            while i < m:
                row = offset(a, i * a_rs * REALS)
                if j == FIRST:
                    sizes(0, row, a_cs, n, acc)
                elif i > j:
                    if j >= 0:
                        scale_element(row, j * a_cs * REALS, h, v)
                    step(x, row, a_cs, v, w, scales, first, n, acc, head, i == first)
                i = int32(i + blocks * DIM)

            # (5) the sums of this block, and all of them
            if first < n:
                leave(leaves, acc, parts, j == FIRST, block, blocks, t)
                meet(flags, int32(j - FIRST + 1), blocks, t)
            j = int32(j + 1)
        part(flags, blocks, t)

    return geqrf_tall
