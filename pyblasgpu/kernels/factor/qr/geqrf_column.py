"""``geqrf_column``: a step of Q R of a panel of any number of rows, a launch a column.

It is for panels that do not fit into the shared memory of a block (`geqrf_panel`). The launch before has left
each block's products of column j with the columns right of it, and row j. They give reflector j, and what it
takes off each column, without another sum. Each thread updates its rows, and a block leaves its products of
column j + 1. What one launch reads of the others' is apart from what it leaves.

Two launches come first: sizes of columns, and scales by powers of two that bring them to about one.
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
from .reflector import BETA, FACTOR, TAU, reflector, scaler, size_of, warp_max, warp_sum

__all__ = ["FIRST", "STEM", "GeqrfColumn", "source"]

STEM = "geqrf_column"
PARAMETERS = parameters(
    "pointer: tau, state, a",
    "int32: m, n, j",
    "int64: tau_step, a_rs, a_cs, stride_tau, stride_state, stride_a",
)
FIRST = -2  # the number of the first launch
MOST_BLOCKS = 256


@dataclass(frozen=True)
class GeqrfColumn(BlockConfig):
    """Config of one `geqrf_column` kernel.

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

    def grid(self, rows: int) -> int:
        """Blocks for a panel of `rows` rows."""
        return min(-(-rows // self.DIM), MOST_BLOCKS)

    def state(self, rows: int) -> int:
        """Elements of what the launches leave: twice a row of each block and one more, and scales."""
        return (2 * (self.grid(rows) + 1) + 1) * self.COLS


def source(config: GeqrfColumn) -> KernelSource:
    """The kernel of `config`, for m >= n.

    Kernel parameters
    -----------------
    tau: pointer, tau
    state: pointer, ``config.state(rows)`` elements
    a: pointer, A
    m, n: int32, rows and columns of A
    j: int32, the column
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)
    stride_tau, stride_state, stride_a: int64, batch strides (elements)

    Grid: x ``config.grid(rows)``, z the batch. It is launched for the columns -2, -1, 0 and so on, one after
    another.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _gatherer(config: GeqrfColumn) -> Callable:
    """``gather(sums, left, blocks, is_size, warp, lane)``: what all blocks left, summed, or the largest."""
    WARPS, SPAN, real = config.DIM // WARP, config.row_reals, ptx.REALS[config.dtype_facts.real]
    total, largest, int32 = warp_sum(), warp_max(), ptx.types.int32

    @device_function
    def gather(sums, left, blocks, is_size, warp, lane):
        k = warp
        while k < SPAN:
            x, block = real(0), lane
            while block < blocks:
                other = left[k * blocks + block]
                x = max(x, other) if is_size else x + other
                block = int32(block + 32)
            x = largest(x, lane) if is_size else total(x, lane)
            if lane == 0:
                sums[k] = x
            k = int32(k + WARPS)

    return gather


def _leaver(config: GeqrfColumn) -> Callable:
    """``leave(leaves, acc, parts, is_size, block, blocks, t)``: the sums, or the largest, of the threads of a
    block, to what it leaves.
    """
    WARPS, SPAN, real = config.DIM // WARP, config.row_reals, ptx.REALS[config.dtype_facts.real]
    total, largest = warp_sum(), warp_max()

    @device_function
    def over_warp(k, acc, parts, is_size, warp, lane):
        x = largest(acc[k], lane) if is_size else total(acc[k], lane)
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


def _row_step(config: GeqrfColumn) -> Callable:
    """``step(row, a_cs, v, multiples, scales, first, n, acc, head, is_head)``: columns from `first` on of a
    row of A, scaled, less their multiples of v; their products with column `first` are added to `acc`, or
    they are `head`.
    """
    facts = config.dtype_facts
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex

    @device_function
    def element(k, row, a_cs, v, multiples, scales):
        at, x = k * a_cs * REALS, scales[k]
        re = row[at] * x - multiples[k * REALS] * v[0]
        im = re
        if COMPLEX:
            w_re, w_im = multiples[k * REALS], multiples[k * REALS + 1]
            re = row[at] * x - w_re * v[0] + w_im * v[1]
            im = row[at + 1] * x - w_re * v[1] - w_im * v[0]
        return re, im

    @device_function
    def column(k, row, a_cs, v, multiples, scales, first, n, acc, head, is_head, f, f_i):
        if (k >= first) & (k < n):
            re, im = element(k, row, a_cs, v, multiples, scales)
            row[k * a_cs * REALS] = re
            if COMPLEX:
                row[k * a_cs * REALS + 1] = im
            if is_head:
                head[k * REALS] = re
                if COMPLEX:
                    head[k * REALS + 1] = im
            elif COMPLEX:
                acc[k * REALS] += f * re + f_i * im
                acc[k * REALS + 1] += f * im - f_i * re
            else:
                acc[k * REALS] += f * re

    columns = unrolled(config.COLS, column)

    @device_function
    def step(row, a_cs, v, multiples, scales, first, n, acc, head, is_head):
        if first < n:
            f, f_i = element(first, row, a_cs, v, multiples, scales)
            columns(0, row, a_cs, v, multiples, scales, first, n, acc, head, is_head, f, f_i)

    return step


def _sizer(config: GeqrfColumn) -> Callable:
    """``sizes(0, row, a_cs, n, acc)``: the largest of each column so far, with an element of each."""
    REALS, size = config.dtype_facts.reals_per_element, size_of(config.dtype_facts)

    @device_function
    def column(k, row, a_cs, n, acc):
        if k < n:
            acc[k * REALS] = max(acc[k * REALS], size(row, k * a_cs * REALS))

    return unrolled(config.COLS, column)


def _multiplier(config: GeqrfColumn) -> Callable:
    """``multiply(w, sums, head, h, k)``: what reflector `h` takes off column k, as a multiple of v; nothing
    where it is the identity.
    """
    facts = config.dtype_facts
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]

    @device_function
    def multiply(w, sums, head, h, k):
        at = k * REALS
        if h[TAU] == real(0) and h[TAU + 1] == real(0):
            return
        if COMPLEX:
            re = head[at] + h[FACTOR] * sums[at] + h[FACTOR + 1] * sums[at + 1]
            im = head[at + 1] + h[FACTOR] * sums[at + 1] - h[FACTOR + 1] * sums[at]
            w[at] = h[TAU] * re + h[TAU + 1] * im
            w[at + 1] = h[TAU] * im - h[TAU + 1] * re
        else:
            w[at] = h[TAU] * (head[at] + h[FACTOR] * sums[at])

    return multiply


def _build(config: GeqrfColumn):
    facts, DIM, SPAN, COLS = config.dtype_facts, config.DIM, config.row_reals, config.COLS
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    zero, grid_dependency_wait = ptx.fill(SPAN), ptx.grid_dependency_wait
    gather, leave, step, sizes = _gatherer(config), _leaver(config), _row_step(config), _sizer(config)
    make, scale_of, multiply = reflector(facts), scaler(facts), _multiplier(config)

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

    def geqrf_column(tau, state, a, m, n, j, tau_step, a_rs, a_cs, stride_tau, stride_state, stride_a):
        # (1) what the launch before has left, and where this one leaves its own
        t, block, batch = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int64(cuda.blockIdx.z)
        blocks, which = int32(cuda.gridDim.x), int32(j & 1)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))
        w, scales, parts = offset(sums, SPAN), offset(sums, 2 * SPAN), offset(sums, 3 * SPAN)
        acc, v, h = cuda.local.array(SPAN, real), cuda.local.array(2, real), cuda.local.array(5, real)
        half = int32((blocks + 1) * SPAN)
        grid_dependency_wait()
        a, tau = offset(a, batch * stride_a * REALS), offset(tau, batch * stride_tau * REALS)
        state = offset(state, batch * stride_state * REALS)
        left, leaves, back = (
            offset(state, which * half),
            offset(state, (1 - which) * half),
            offset(state, 2 * half),
        )
        head = offset(left, blocks * SPAN)
        zero(acc, real(0))
        if j > FIRST:
            gather(sums, left, blocks, j == FIRST + 1, int32(t >> 5), int32(t & 31))
        cuda.syncthreads()

        # (2) scales of the columns; or the reflector, and what it takes off each of them
        h[FACTOR] = h[FACTOR + 1] = v[0] = v[1] = real(0)
        if j >= 0:
            make(h, head[j * REALS], head[j * REALS + REALS - 1], sums[j * REALS])
        if t < COLS:
            scales[t] = real(1)
            for part in range(REALS):
                w[t * REALS + part] = real(0)
            if j == FIRST + 1:
                scale_of(v, sums[t * REALS])
                scales[t] = v[0]
                if block == 0:
                    back[t] = v[1]
            elif j < t < n and j >= 0:
                multiply(w, sums, head, h, t)
            if block == 0 and j >= 0:
                write_row(
                    offset(a, j * a_rs * REALS),
                    a_cs,
                    offset(tau, j * tau_step * REALS),
                    head,
                    w,
                    h,
                    back,
                    j,
                    n,
                    t,
                )
        cuda.syncthreads()

        # (3) the rows of this thread, and their products of the next column
        v[0] = v[1] = real(0)
        first, i = int32(j + 1), int32(block * DIM + t)
        head = offset(leaves, blocks * SPAN)
        while i < m:
            row = offset(a, i * a_rs * REALS)
            if j == FIRST:
                sizes(0, row, a_cs, n, acc)
            elif i > j:
                if j >= 0:
                    at = j * a_cs * REALS
                    re, im = row[at], row[at + REALS - 1]
                    v[0] = re * h[FACTOR]
                    if COMPLEX:
                        v[0], v[1] = re * h[FACTOR] - im * h[FACTOR + 1], re * h[FACTOR + 1] + im * h[FACTOR]
                        row[at + 1] = v[1]
                    row[at] = v[0]
                step(row, a_cs, v, w, scales, first, n, acc, head, i == first)
            i = int32(i + blocks * DIM)

        # (4) the sums of this block
        if first < n:
            leave(leaves, acc, parts, j == FIRST, block, blocks, t)

    return geqrf_column
