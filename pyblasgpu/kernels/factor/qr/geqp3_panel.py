"""``geqp3_panel``: some steps of Q R = A P in a single launch, as LAPACK's laqps takes them.

Column j of the matrix is a_j = b_j - V g_j, with b_j as the panel found it. A step needs a product of each
b_j with the new vector, which reads the matrix once, and writes one row of it. Once the panel is over, a
product of V and G applies it to all rows below.

Norms of what is left of columns are updated, and made anew where too many digits cancel (Drmac and Bujanovic,
2008). LAPACK ends a panel there; here a warp makes the norm from V and G, so that panels have known lengths.

A step has two meetings of the blocks of a matrix, which are all resident:

1. Threads have rows. They interchange the columns, and apply the steps before to the one that was found.
   Warps add up its products with the vectors before it.
2. Warps have columns. They make the multiplier of the new vector, the element of R and the next norm of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from .laqps_columns import column_step, dotter, first_norms
from .laqps_rows import exchanger, settler
from .meeting import WORDS, meeting
from .pivot_column import CANDIDATE, candidates, clearer
from .reflector import TAU, projector, reflector

__all__ = ["STEM", "Geqp3Panel", "source"]

STEM = "geqp3_panel"
PARAMETERS = parameters(
    "pointer: tau, a, g, state",
    "int32 pointer: jpvt, flags",
    "int32: m, n, first, count",
    "int64: tau_step, jpvt_step, lda, stride_tau, stride_jpvt, stride_a, stride_g, stride_state",
)
LOADED = 64  # bytes of a column that a thread has under way
OF_COLUMNS = 3  # reals of the state of a column: its scale, its norm, and the norm that was made last


@dataclass(frozen=True)
class Geqp3Panel(BlockConfig):
    """Config of one `geqp3_panel` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    STEPS : int
        Steps of a launch, at most.
    """

    DIM: int = 512
    STEPS: int = 32

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.STEPS <= WARP, "step_a_lane", f"0 < STEPS <= {WARP}", STEPS=self.STEPS)

    @property
    def WARPS(self) -> int:
        """Warps of a block."""
        return self.DIM // WARP

    @property
    def UNROLL(self) -> int:
        """Rows of a thread that are loaded at a time."""
        return LOADED // self.dtype_facts.itemsize

    @property
    def SUMS(self) -> int:
        """Reals of the products with all vectors."""
        return (self.STEPS + 1) * self.dtype_facts.reals_per_element

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64 + 2 * LOADED // 4

    @property
    def shared_bytes(self) -> int:
        """Products with all vectors, and a candidate of each warp."""
        return -(-(self.SUMS + CANDIDATE * self.WARPS) * self.dtype_facts.real_size // 16) * 16

    def blocks(self, cols: int, batch: int, multiprocessors: int) -> int:
        """Blocks of each matrix of a batch that are resident together: no more than there are columns for."""
        return max(min(multiprocessors // batch, -(-cols // self.WARPS)), 1)

    def state(self, cols: int, blocks: int) -> int:
        """Reals of the state of a matrix."""
        return OF_COLUMNS * cols + blocks * (self.SUMS + CANDIDATE)


def source(config: Geqp3Panel) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    tau, a: pointer, tau, and A by columns
    g: pointer, 2 STEPS elements for each column; become G^T, then elements of R of these steps
    state: pointer, ``config.state`` reals, which the launches of a matrix pass on
    jpvt: int32 pointer, becomes the numbers of the columns, from 1
    flags: int32 pointer, 0 before and after
    m, n: int32, rows and columns
    first, count: int32, first step, from 0, and steps
    tau_step: int64, stride of tau (elements)
    jpvt_step: int64, stride of jpvt (int32)
    lda: int64, column stride of A (elements)
    stride_tau, stride_jpvt, stride_a, stride_g: int64, batch strides (as steps)
    stride_state: int64, batch stride of state (reals)

    Grid: x blocks that are all resident, z the batch. With no steps, columns are scaled to about one before
    the first one, and R is scaled back after the last one.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), cooperative=True)


def _adder_of_products(config: Geqp3Panel) -> Callable:
    """``products(acc, x, v, a, lda, sums, first, j, block, blocks, warp, lane, m)``: products of column j
    with the vectors before it, and with itself, below row j, over the rows of this block.
    """
    facts, DIM, WARPS = config.dtype_facts, config.DIM, config.WARPS
    REALS, real, int32, offset = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32, ptx.offset
    dot, total = dotter(config)

    @device_function
    def products(acc, x, v, a, lda, sums, first, j, block, blocks, warp, lane, m):
        pivot, c = offset(a, j * lda * REALS), int32(first + warp)
        while c <= j:
            column = offset(a, c * lda * REALS)
            acc[0] = acc[1] = real(0)
            begin = int32(block * DIM)
            while begin < m:
                end = min(int32(begin + DIM), m)
                if end > j + 1:
                    dot(acc, x, v, column, pivot, int32(max(begin, j + 1) + lane), end)
                begin = int32(begin + blocks * DIM)
            total(acc, lane)
            if lane == 0:
                for part in range(REALS):
                    sums[(c - first) * REALS + part] = acc[part]
            c = int32(c + WARPS)

    return products


def _builder_of_reflector(config: Geqp3Panel) -> Callable:
    """``build(h, shared, a, lda, sums, j, k, active, t)``: the sums of all blocks in shared memory, and the
    reflector of column j.
    """
    facts, DIM, SUMS = config.dtype_facts, config.DIM, config.SUMS
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    make, int64 = reflector(facts), ptx.types.int64

    @device_function
    def build(h, shared, a, lda, sums, j, k, active, t):
        i = int32(t)
        while i < (k + 1) * REALS:
            added = real(0)
            for block in range(active):
                added += sums[block * SUMS + i]
            shared[i] = added
            i = int32(i + DIM)
        cuda.syncthreads()
        head = (j + int64(j) * lda) * REALS
        make(h, a[head], a[head + REALS - 1], shared[k * REALS])

    return build


def _last_scaler(config: Geqp3Panel) -> Callable:
    """``rescale(a, lda, backs, team, teams, steps, n, lane)``: R times the scales of its columns."""
    REALS, int32, offset = config.dtype_facts.reals_per_element, ptx.types.int32, ptx.offset

    @device_function
    def rescale(a, lda, backs, team, teams, steps, n, lane):
        c = int32(team)
        while c < n:
            column, back, i = offset(a, c * lda * REALS), backs[c], int32(lane)
            while i < min(steps, c + 1):
                for part in range(REALS):
                    column[i * REALS + part] *= back
                i = int32(i + WARP)
            c = int32(c + teams)

    return rescale


def _build(config: Geqp3Panel):
    facts, DIM, WARPS, SUMS = config.dtype_facts, config.DIM, config.WARPS, config.SUMS
    REALS, real, ROWS = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        config.UNROLL * facts.reals_per_element,
    )
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, quotient, (meet, part) = ptx.grid_dependency_wait, ptx.quotient, meeting()
    (start, norms_of), (publish, choose), clear = first_norms(config), candidates(config), clearer(facts)
    exchange, settle, products = exchanger(config), settler(config), _adder_of_products(config)
    build, step, rescale, project = (
        _builder_of_reflector(config),
        column_step(config),
        _last_scaler(config),
        projector(facts),
    )

    @device_function
    def has_column(c, team, teams):
        return c - int32(quotient(c, teams)) * teams == team

    @device_function
    def everybody(flags, number, blocks, t):
        if blocks > 1:
            meet(flags, number, blocks, t)
        else:
            cuda.syncthreads()

    @device_function
    def interchange(vectors, moved, numbers, columns, a, lda, g, first, j, p, row, rows, n, m):
        state, jpvt, jpvt_step = columns
        for kind in range(OF_COLUMNS):
            moved[kind] = state[kind * n + j]
        moved[OF_COLUMNS] = state[p]
        numbers[0], numbers[1] = jpvt[j * jpvt_step], jpvt[p * jpvt_step]
        i = int32(row)
        while i < m:
            if j > first:
                settle(a, lda, vectors[3], int32(j - 1), i)
            exchange(vectors[0], vectors[1], vectors[2], a, lda, g, first, j, p, i)
            i = int32(i + rows)

    @device_function
    def settle_all(a, lda, h, j, row, rows, m):
        i = int32(row)
        while i < m:
            settle(a, lda, h, j, i)
            i = int32(i + rows)

    @device_function
    def place(tau, tau_step, h, columns, team, teams, moved, numbers, j, p, n):
        state, jpvt, jpvt_step = columns
        if team == 0:
            for part_of in range(REALS):
                tau[j * tau_step * REALS + part_of] = h[TAU + part_of]
        if has_column(j, team, teams):
            state[j], jpvt[j * jpvt_step] = moved[OF_COLUMNS], numbers[1]
        if p != j and has_column(p, team, teams):
            for kind in range(OF_COLUMNS):
                state[kind * n + p] = moved[kind]
            jpvt[p * jpvt_step] = numbers[0]

    @device_function
    def step_all(vectors, u, q, at, a, lda, g, state, team, teams, first, j, p, n, lane, m):
        c, k = int32(team), int32(j - first)
        q[0] = q[1] = q[2] = q[3] = real(0)
        if lane < k:
            row = offset(a, (j + int64(first + lane) * lda) * REALS)
            project(q, row, 0, at, lane * REALS, vectors[3])
            for each in range(REALS):
                q[2 + each] = row[each]
        while c < n:
            if c > j:
                step(vectors, u, q, a, lda, g, state, c, first, j, p, n, lane, m)
            c = int32(c + teams)

    def geqp3_panel(
        tau, a, g, state, jpvt, flags, m, n, first, count, tau_step, jpvt_step, lda,
        stride_tau, stride_jpvt, stride_a, stride_g, stride_state,
    ):  # fmt: skip
        # (1) the matrix, and what this thread has of it
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        block, blocks = int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        lane, warp, row, rows = int32(t & 31), int32(t >> 5), int32(block * DIM + t), int32(blocks * DIM)
        team, teams = int32(block + warp * blocks), int32(blocks * WARPS)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        at_warps = offset(shared, SUMS)
        x, v, acc = cuda.local.array(ROWS, real), cuda.local.array(ROWS, real), cuda.local.array(8, real)
        h, q, best = cuda.local.array(5, real), cuda.local.array(4, real), cuda.local.array(CANDIDATE, real)
        key, u = cuda.local.array(2, real), cuda.local.array(4, real)
        moved, numbers = cuda.local.array(4, real), cuda.local.array(2, int32)
        vectors = acc, x, v, h, best, key
        tau, a = offset(tau, batch * stride_tau * REALS), offset(a, batch * stride_a * REALS)
        g, state = offset(g, batch * stride_g * REALS), offset(state, batch * stride_state)
        jpvt, flags = offset(jpvt, batch * stride_jpvt), offset(flags, batch * WORDS)
        columns = state, jpvt, jpvt_step
        sums = offset(state, OF_COLUMNS * n)
        found, own = offset(sums, blocks * SUMS), offset(sums, block * SUMS)
        active = min(blocks, int32(quotient(int32(m + (DIM - 1)), int32(DIM))))
        grid_dependency_wait()

        # (2) without steps columns of about one, or R; else the largest norm of each block
        if count == 0:
            if first == 0:
                start(acc, a, lda, state, jpvt, jpvt_step, team, teams, n, lane, m)
            else:
                rescale(a, lda, state, team, teams, first, n, lane)
            return
        norms_of(best, key, state, team, teams, first, n, lane)
        publish(best, found, at_warps, block, t)
        met = int32(1)
        everybody(flags, met, blocks, t)

        # (3) a column after the other
        j, last = int32(first), int32(first + count)
        while j < last:
            k = int32(j - first)
            p = choose(best, found, at_warps, blocks, t)
            interchange(vectors, moved, numbers, columns, a, lda, g, first, j, p, row, rows, n, m)
            cuda.syncthreads()
            products(acc, x, v, a, lda, own, first, j, block, blocks, warp, lane, m)
            everybody(flags, int32(met + 1), blocks, t)
            build(h, shared, a, lda, sums, j, k, active, t)
            clear(best, int32(j + 1))
            if lane == 0:
                place(tau, tau_step, h, columns, team, teams, moved, numbers, j, p, n)
            step_all(vectors, u, q, shared, a, lda, g, state, team, teams, first, j, p, n, lane, m)
            publish(best, found, at_warps, block, t)
            met = int32(met + 2)
            everybody(flags, met, blocks, t)
            j = int32(j + 1)

        # (4) the last vector
        settle_all(a, lda, h, int32(last - 1), row, rows, m)
        if blocks > 1:
            part(flags, blocks, t)

    return geqp3_panel
