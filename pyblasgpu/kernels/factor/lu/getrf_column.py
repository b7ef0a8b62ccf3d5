"""``getrf_column``: a step of P L U of a panel of any number of rows, a launch a column.

It is for panels of more rows than a device has threads at a time (`getrf_panel`). The launch before has left
the candidates for the pivot, one a block, with their rows, and the row that the pivot's will replace. So all
blocks find the pivot by themselves. Each thread eliminates its rows, which stay in memory, and a block leaves
its candidate for the next column. What one launch reads of the others' is apart from what it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ...common.substitution import divider
from .panel_rows import sizer

__all__ = ["STEM", "GetrfColumn", "source"]

STEM = "getrf_column"
PARAMETERS = parameters(
    "pointer: a",
    "int32 pointer: piv, info",
    "pointer: state",
    "int32 pointer: labels",
    "int32: m, n, j, first",
    "int64: a_rs, a_cs, piv_step",
)


@dataclass(frozen=True)
class GetrfColumn(BlockConfig):
    """Config of one `getrf_column` kernel; its attributes are those of `BlockConfig`."""

    STEM: ClassVar[str] = STEM

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64

    @property
    def shared_bytes(self) -> int:
        """Sizes and labels of the warps' candidates."""
        return WARP * self.dtype_facts.real_size + WARP * 4

    def grid(self, rows: int) -> int:
        """Blocks for a panel of `rows` rows: no more than threads, each of which looks at a candidate."""
        return min(-(-rows // self.DIM), self.DIM)

    def state_reals(self, blocks: int, cols: int) -> int:
        """Reals of what the launches leave: twice a row and a size of each block, and a row."""
        return 2 * (blocks * (cols * self.dtype_facts.reals_per_element + 1) + self.row_reals(cols))

    def row_reals(self, cols: int) -> int:
        """Reals of a row."""
        return cols * self.dtype_facts.reals_per_element


def source(config: GetrfColumn) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a: pointer, A
    piv, info: int32 pointer, pivots and info
    state: pointer, ``config.state_reals(blocks, columns)`` reals
    labels: int32 pointer, two for each block
    m, n: int32, rows and columns of A
    j: int32, the column
    first: int32, the row of the whole matrix that is A's first
    a_rs, a_cs: int64, row and column stride of A (elements)
    piv_step: int64, words from pivot to pivot

    Grid: x ``config.grid(rows)``. It is launched for the columns -1, 0, 1 and so on, one after another: the
    first launch chooses alone.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _chooser(config: GetrfColumn):
    """``choose(size, label, ok, sizes, labels, t)``: the label of the largest of a block, in all threads.

    A barrier must separate two calls.
    """
    WARPS = config.DIM // WARP
    int32, NO_LABEL, warp_first_max = ptx.types.int32, ptx.NO_LABEL, ptx.warp_first_max

    @device_function
    def choose(size, label, ok, sizes, labels, t):
        warp, lane = int32(t // WARP), int32(t % WARP)
        largest = int32(warp_first_max(size, label, ok))
        if ok and label == largest:
            sizes[warp] = size
        if lane == 0:
            labels[warp] = largest
        cuda.syncthreads()
        other = min(lane, WARPS - 1)
        pivot_label = int32(labels[other])
        return int32(warp_first_max(sizes[other], pivot_label, pivot_label != NO_LABEL))

    return choose


def _eliminator(config: GetrfColumn):
    """``eliminate(a, source, pivot, j, n, a_cs, s_cs, value)``: a row of A from `source`, less its part of
    the pivot's row; ``value[:parts]`` is the element next to the diagonal after it.
    """
    facts = config.dtype_facts
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    divide = divider(facts)

    @device_function
    def eliminate(a, source, pivot, j, n, a_cs, s_cs, value):
        re, im = pivot[j * REALS], pivot[j * REALS + REALS - 1]
        for part in range(REALS):
            value[part] = source[j * s_cs * REALS + part]
        if re != real(0) or im != real(0):
            divide(value, 0, re, im)
        f, f_i = value[0], value[REALS - 1]
        for part in range(REALS):
            a[j * a_cs * REALS + part] = value[part]
        for back in range(n - 1 - j):
            k = n - 1 - back
            at, to, u = k * s_cs * REALS, k * a_cs * REALS, k * REALS
            if COMPLEX:
                value[0] = source[at] - f * pivot[u] + f_i * pivot[u + 1]
                value[1] = source[at + 1] - f * pivot[u + 1] - f_i * pivot[u]
                a[to + 1] = value[1]
            else:
                value[0] = source[at] - f * pivot[u]
            a[to] = value[0]

    return eliminate


def _leaver(config: GetrfColumn):
    """``copy_row(state, source, s_cs, n, t)``: a row into what a launch leaves, by all threads of a block."""
    REALS, DIM = config.dtype_facts.reals_per_element, config.DIM

    @device_function
    def copy_row(state, source, s_cs, n, t):
        for k in range(t, n, DIM):
            for part in range(REALS):
                state[k * REALS + part] = source[k * s_cs * REALS + part]

    return copy_row


def _row_step(config: GetrfColumn):
    """``step(row, a_cs, i, j, n, pivot, pivot_row, top, value)``: what column j does to row i of A; `value`
    is the element of column j + 1 after it.
    """
    REALS, eliminate = config.dtype_facts.reals_per_element, _eliminator(config)

    @device_function
    def put_row(row, a_cs, source, n):
        for k in range(n):
            for part in range(REALS):
                row[k * a_cs * REALS + part] = source[k * REALS + part]

    @device_function
    def step(row, a_cs, i, j, n, pivot, pivot_row, top, value):
        if j < 0:
            for part in range(REALS):
                value[part] = row[part]
        elif i == j:
            put_row(row, a_cs, pivot_row, n)
        elif i == pivot:
            put_row(row, a_cs, top, j)
            eliminate(row, top, pivot_row, j, n, a_cs, 1, value)
        else:
            eliminate(row, row, pivot_row, j, n, a_cs, a_cs, value)

    return step


def _build(config: GetrfColumn):
    facts, DIM = config.dtype_facts, config.DIM
    REALS, real, WORDS = facts.reals_per_element, ptx.REALS[facts.real], WARP * facts.real_size // 4
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    NO_LABEL, grid_dependency_wait, size_of = ptx.NO_LABEL, ptx.grid_dependency_wait, sizer(config)
    choose, step, copy_row = _chooser(config), _row_step(config), _leaver(config)

    def getrf_column(a, piv, info, state, labels, m, n, j, first, a_rs, a_cs, piv_step):
        # (1) what the launch before has left, and where this one leaves its own
        t, block, blocks = int32(cuda.threadIdx.x & 1023), int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        sizes = shared_pointer(cuda.shared.array(0, real, alignment=16))
        words = offset(shared_pointer(cuda.shared.array(0, int32, alignment=16)), WORDS)
        value, reals, which = cuda.local.array(2, real), int64(n) * REALS, int32((j + 1) % 2)
        half = blocks * (reals + 1) + reals
        left, leaves = offset(state, which * half), offset(state, (1 - which) * half)
        left_labels, leaves_labels = offset(labels, which * blocks), offset(labels, (1 - which) * blocks)
        grid_dependency_wait()

        # (2) the pivot, and the row that it replaces
        pivot, pivot_row, top = int32(NO_LABEL), left, offset(left, blocks * (reals + 1))
        if j >= 0:
            other = min(t, blocks - 1)
            label = int32(left_labels[other])
            is_one = t < blocks and label != NO_LABEL
            pivot = choose(left[blocks * reals + other], label, is_one, sizes, words, t)
            pivot_row = offset(left, int64(pivot // DIM % blocks) * reals)
            is_zero = pivot_row[j * REALS] == real(0) and pivot_row[j * REALS + REALS - 1] == real(0)
            if block == 0 and t == 0:
                piv[j * piv_step] = int32(first + pivot)
                if is_zero and info[0] == 0:
                    info[0] = int32(first + j + 1)
        elif block == 0 and t == 0 and first == 0:
            info[0] = int32(0)
        cuda.syncthreads()

        # (3) the rows of this thread, and the largest of the next column
        best, label, i = real(0), int32(NO_LABEL), int64(block) * DIM + t
        while i < m:
            if i >= j:
                step(offset(a, i * a_rs * REALS), a_cs, i, j, n, pivot, pivot_row, top, value)
                size = size_of(value)
                if i > j and (label == NO_LABEL or size > best or (size != size and best == best)):
                    best, label = size, int32(i)
            i += int64(blocks) * DIM

        # (4) the candidate of this block, and the row that the next pivot replaces
        if j + 1 < n:
            pivot_label = choose(best, label, label != NO_LABEL, sizes, words, t)
            if label == pivot_label and pivot_label != NO_LABEL:
                leaves[blocks * reals + block] = best
            if t == 0:
                leaves_labels[block] = pivot_label
            if pivot_label != NO_LABEL:
                copy_row(offset(leaves, block * reals), offset(a, pivot_label * a_rs * REALS), a_cs, n, t)
            if (j + 1) // DIM % blocks == block:
                copy_row(offset(leaves, blocks * (reals + 1)), offset(a, (j + 1) * a_rs * REALS), a_cs, n, t)

    return getrf_column
