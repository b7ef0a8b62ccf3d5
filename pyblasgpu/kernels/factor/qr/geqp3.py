"""``geqp3``: Q R = A P with the column of the largest norm before all others, in a single launch.

Without pivots, P = I, it factors matrices for which Cholesky factors do not serve (`orhr_leaf`).

A step finds that column, makes its reflector, and applies it to all columns that are left, each by a team: a
warp, or where a matrix has several blocks, a block. What it writes gives the norm of the rest of the column,
so norms are never updated, which would lose digits. Columns stay where they are in a copy of A, and go to A
when their turn comes: only their numbers are interchanged. Blocks of a matrix are resident, and meet once a
step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..lane_sums import adder, larger
from .meeting import WORDS, meeting
from .pivot_column import CANDIDATE, chooser, team_reducer
from .reflector import BETA, FACTOR, TAU, multiplier, projector, reflector, scaler, size_of

__all__ = ["STEM", "Geqp3", "source"]

STEM = "geqp3"
PARAMETERS = parameters(
    "pointer: tau, a, w, state",
    "int32 pointer: jpvt, order, info, flags",
    "int32: m, n, pivots",
    "int64: tau_step, jpvt_step, a_rs, a_cs, w_cs",
    "int64: stride_tau, stride_jpvt, stride_a, stride_w, stride_state, stride_order, stride_info",
)
UNROLL = 4  # rows of a thread that are loaded at a time
STATE = 4  # reals of a column: its scale, the sum of squares below its head, its norm before and after a step
MOST_ALONE = 1 << 14  # elements of a matrix of one block


@dataclass(frozen=True)
class Geqp3(BlockConfig):
    """Config of one `geqp3` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    IS_SPREAD : bool
        Whether matrices have several blocks, each of which is a team; else a warp is one.
    """

    DIM: int = 256
    IS_SPREAD: bool = True

    STEM: ClassVar[str] = STEM

    @property
    def WARPS(self) -> int:
        """Warps of a block."""
        return self.DIM // WARP

    @property
    def TEAM(self) -> int:
        """Threads of a team."""
        return self.DIM if self.IS_SPREAD else WARP

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64 + 2 * UNROLL * self.dtype_facts.itemsize // 4

    @property
    def shared_bytes(self) -> int:
        """Candidates and sums of each warp."""
        return (
            -(
                -(CANDIDATE + 2 * self.dtype_facts.reals_per_element)
                * self.WARPS
                * self.dtype_facts.real_size
                // 16
            )
            * 16
        )

    @property
    def variants(self) -> tuple[Self, ...]:
        """For matrices of one block, and of several."""
        return replace(self, IS_SPREAD=False), self

    def specialize(self, rows: int, cols: int, batch: int, multiprocessors: int) -> tuple[Self, int]:
        """Return the Config for matrices of this size, and their blocks, which are all resident."""
        alone, spread = self.variants
        blocks = min(cols, multiprocessors // batch)
        return (spread, blocks) if rows * cols > MOST_ALONE and blocks > 1 else (alone, 1)


def source(config: Geqp3) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    tau, a: pointer, tau and A, which are only written
    w: pointer, a copy of A by columns, which is worth nothing after
    state: pointer, 4 reals a column
    jpvt: int32 pointer, becomes the numbers of the columns, from 1
    order: int32 pointer, 2 n for each block
    info: int32 pointer, read without pivots: matrices whose info is 0 stay as they are
    flags: int32 pointer, of several blocks, 0 before and after
    m, n: int32, rows and columns
    pivots: int32, whether columns are interchanged; else jpvt is not written
    tau_step: int64, stride of tau (elements)
    jpvt_step: int64, stride of jpvt (int32)
    a_rs, a_cs, w_cs: int64, strides of A, and from column to column of its copy (elements)
    stride_tau, stride_jpvt, stride_a, stride_w, stride_state: int64, batch strides (as steps)
    stride_order, stride_info: int64, batch strides (int32)

    Grid: x one block, or several that are all resident, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), cooperative=config.IS_SPREAD)


def _rows_loader(config: Geqp3) -> Callable:
    """``load(0, x, column, i, m, ok)``: rows of a thread from i on, zeros after the last, or without `ok`."""
    REALS, TEAM, read = config.dtype_facts.reals_per_element, config.TEAM, ptx.load_global(1, False)

    @device_function
    def load(k, x, column, i, m, ok):
        for part in range(REALS):
            at = (i + k * TEAM) * REALS + part
            read(x, k * REALS + part, column, at, ok & (i + k * TEAM < m))

    return unrolled(UNROLL, load)


def _dotter(config: Geqp3) -> Callable:
    """``dot(acc, x, v, column, pivot, i, m)``: v^H x over the rows of a thread from i on."""
    REALS, COMPLEX = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex
    real, int32 = ptx.REALS[config.dtype_facts.real], ptx.types.int32
    SPAN, load = UNROLL * config.TEAM, _rows_loader(config)

    @device_function
    def add(k, acc, x, v):
        if COMPLEX:
            acc[0] += v[k * 2] * x[k * 2] + v[k * 2 + 1] * x[k * 2 + 1]
            acc[1] += v[k * 2] * x[k * 2 + 1] - v[k * 2 + 1] * x[k * 2]
        else:
            acc[0] += v[k * REALS] * x[k * REALS]

    adds = unrolled(UNROLL, add)

    @device_function
    def dot(acc, x, v, column, pivot, i, m):
        acc[0] = acc[1] = real(0)
        while i < m:
            load(0, x, column, i, m, True)
            load(0, v, pivot, i, m, True)
            adds(0, acc, x, v)
            i = int32(i + SPAN)

    return dot


def _updater(config: Geqp3) -> Callable:
    """``update(acc, x, v, w, scale, column, pivot, i, m, top, has_pivot)``: rows of a thread from i on, times
    `scale`, less w v; ``acc``, the sums of squares of the new rows below `top`, and of that one.
    """
    REALS, COMPLEX, TEAM = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex, config.TEAM
    real, SPAN, load = ptx.REALS[config.dtype_facts.real], UNROLL * TEAM, _rows_loader(config)
    int32, select, store_global = ptx.types.int32, ptx.select, ptx.store_global

    @device_function
    def element(k, acc, x, v, w, scale, column, i, m, top):
        row, ok = i + k * TEAM, i + k * TEAM < m
        if COMPLEX:
            re = x[k * 2] * scale - (w[0] * v[k * 2] - w[1] * v[k * 2 + 1])
            im = x[k * 2 + 1] * scale - (w[0] * v[k * 2 + 1] + w[1] * v[k * 2])
            store_global(column, row * REALS + 1, im, ok)
            square = re * re + im * im
        else:
            re = x[k * REALS] * scale - w[0] * v[k * REALS]
            square = re * re
        store_global(column, row * REALS, re, ok)
        acc[0] += select(ok & (row != top), square, real(0))
        acc[1] += select(ok & (row == top), square, real(0))

    elements = unrolled(UNROLL, element)

    @device_function
    def update(acc, x, v, w, scale, column, pivot, i, m, top, has_pivot):
        acc[0] = acc[1] = real(0)
        while i < m:
            load(0, x, column, i, m, True)
            load(0, v, pivot, i, m, has_pivot)
            elements(0, acc, x, v, w, scale, column, i, m, top)
            i = int32(i + SPAN)

    return update


def _scale_step(config: Geqp3) -> Callable:
    """``begin(acc, x, v, w, column, state, parts, c, n, r, m, t)``: column c of about one, and its state, by
    a team whose threads are numbered by r.
    """
    facts, TEAM = config.dtype_facts, config.TEAM
    REALS, real, int32, root = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.square_root,
    )
    size, scales, update = size_of(facts), scaler(facts), _updater(config)
    largest, total = team_reducer(config, larger()), team_reducer(config, adder())

    @device_function
    def begin(acc, x, v, w, column, state, parts, c, n, r, m, t):
        acc[0] = acc[1] = real(0)
        i = int32(r)
        while i < m:
            acc[0] = max(acc[0], size(column, i * REALS))
            i = int32(i + TEAM)
        largest(acc, parts, t)
        scales(w, acc[0])
        scale, back = w[0], w[1]
        w[0] = w[1] = real(0)
        update(acc, x, v, w, scale, column, column, int32(r), m, int32(0), False)
        total(acc, parts, t)
        if r == 0:
            state[c], state[n + c], state[2 * n + c] = back, acc[0], root(acc[0] + acc[1])

    return begin


def _column_step(config: Geqp3) -> Callable:
    """``step(acc, x, v, y, w, h, column, pivot, below, norms, parts, c, j, r, m, t)``: reflector `h`, of the
    column at `pivot`, off column c, and what it leaves of the state of that, by a team.
    """
    facts, real = config.dtype_facts, ptx.REALS[config.dtype_facts.real]
    REALS, COMPLEX, root = facts.reals_per_element, facts.is_complex, ptx.square_root
    project, multiply, int32 = projector(facts), multiplier(facts), ptx.types.int32
    dot, update, total = _dotter(config), _updater(config), team_reducer(config, adder())

    @device_function
    def step(acc, x, v, y, w, h, column, pivot, below, norms, parts, c, j, r, m, t):
        first = int32(j + 1 + r)
        dot(acc, x, v, column, pivot, first, m)
        for part in range(REALS):
            acc[REALS + part] = column[j * REALS + part] if r == 0 else real(0)
        total(acc, parts, t)
        project(y, acc, REALS, acc, 0, h)
        multiply(w, 2, y, h)
        if r == 0:
            for part in range(REALS):
                column[j * REALS + part] = acc[REALS + part] - w[2 + part]
        w[0] = h[FACTOR] * w[2]
        if COMPLEX:
            w[0], w[1] = h[FACTOR] * w[2] - h[FACTOR + 1] * w[3], h[FACTOR] * w[3] + h[FACTOR + 1] * w[2]
        update(acc, x, v, w, real(1), column, pivot, first, m, int32(j + 1), True)
        total(acc, parts, t)
        if r == 0:
            below[c], norms[c] = acc[0], root(acc[0] + acc[1])

    return step


def _finisher(config: Geqp3) -> Callable:
    """``finish(a, a_rs, column, h, back, j, i, step, m)``: rows of a column that is over, from i on: R times
    its scale, beta in row j, and v below.
    """
    facts, real, int32 = config.dtype_facts, ptx.REALS[config.dtype_facts.real], ptx.types.int32
    REALS, COMPLEX, int64 = facts.reals_per_element, facts.is_complex, ptx.types.int64

    @device_function
    def finish(a, a_rs, column, h, back, j, i, step, m):
        while i < m:
            re, im, to = column[i * REALS], column[i * REALS + REALS - 1], int64(i) * a_rs * REALS
            if i > j:
                a[to] = re * h[FACTOR] - im * h[FACTOR + 1] if COMPLEX else re * h[FACTOR]
                if COMPLEX:
                    a[to + 1] = re * h[FACTOR + 1] + im * h[FACTOR]
            else:
                a[to] = (h[BETA] if i == j else re) * back
                if COMPLEX:
                    a[to + 1] = real(0) if i == j else im * back
            i = int32(i + step)

    return finish


def _build(config: Geqp3):
    facts, DIM, WARPS, IS_SPREAD = config.dtype_facts, config.DIM, config.WARPS, config.IS_SPREAD
    REALS, real, ROWS = facts.reals_per_element, ptx.REALS[facts.real], UNROLL * facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    begin, step, finish = _scale_step(config), _column_step(config), _finisher(config)
    make, choose, (meet, part) = reflector(facts), chooser(config), meeting()
    TEAM, grid_dependency_wait, load_acquire = config.TEAM, ptx.grid_dependency_wait, ptx.load_acquire

    @device_function
    def everybody(flags, number, blocks, t):
        if IS_SPREAD:
            meet(flags, number, blocks, t)
        else:
            cuda.syncthreads()

    @device_function
    def start_order(order, is_over, n, t):
        i = int32(t)
        while i < n:
            order[i], is_over[i] = i, int32(0)
            i = int32(i + DIM)

    @device_function
    def write_order(jpvt, jpvt_step, order, n, t):
        i = int32(t)
        while i < n:
            jpvt[i * jpvt_step] = int32(order[i] + 1)
            i = int32(i + DIM)

    @device_function
    def begin_all(vectors, w, w_cs, state, parts, team, teams, n, r, m, t):
        acc, x, v, _, u, _ = vectors
        c = int32(team)
        while c < n:
            begin(acc, x, v, u, offset(w, c * w_cs * REALS), state, parts, c, n, r, m, t)
            c = int32(c + teams)

    @device_function
    def step_all(vectors, is_over, w, w_cs, pivot, below, after, parts, team, teams, j, n, r, m, t):
        acc, x, v, y, u, h = vectors
        c = int32(team)
        while c < n:
            if is_over[c] == 0:
                column = offset(w, c * w_cs * REALS)
                step(acc, x, v, y, u, h, column, pivot, below, after, parts, c, j, r, m, t)
            c = int32(c + teams)

    @device_function
    def finish_rest(a, a_rs, a_cs, w, w_cs, h, backs, order, first, teams, n, r, m):
        i = int32(first)
        while i < n:
            c = int32(order[i])
            column, to = offset(w, c * w_cs * REALS), offset(a, i * a_cs * REALS)
            finish(to, a_rs, column, h, backs[c], m, r, TEAM, m)
            i = int32(i + teams)

    def geqp3(
        tau, a, w, state, jpvt, order, info, flags, m, n, pivots, tau_step, jpvt_step, a_rs, a_cs, w_cs,
        stride_tau, stride_jpvt, stride_a, stride_w, stride_state, stride_order, stride_info,
    ):  # fmt: skip
        # (1) the matrix and the order of this block, and the columns of its teams
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        block, blocks = int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        candidates = shared_pointer(cuda.shared.array(0, real, alignment=16))
        parts = offset(candidates, CANDIDATE * WARPS)
        x, v = cuda.local.array(ROWS, real), cuda.local.array(ROWS, real)
        acc, y, u = cuda.local.array(4, real), cuda.local.array(2, real), cuda.local.array(4, real)
        h, best = cuda.local.array(5, real), cuda.local.array(CANDIDATE, real)
        team, teams, r, least = block, blocks, t, min(m, n)
        if not IS_SPREAD:
            team, teams, r = int32(t >> 5), int32(WARPS), int32(t & 31)
        tau, a = offset(tau, batch * stride_tau * REALS), offset(a, batch * stride_a * REALS)
        w, state = offset(w, batch * stride_w * REALS), offset(state, batch * stride_state * REALS)
        backs, below = state, offset(state, n)
        jpvt, flags = offset(jpvt, batch * stride_jpvt), offset(flags, batch * WORDS)
        order = offset(order, batch * stride_order + int64(block) * (2 * n))
        is_over = offset(order, n)
        grid_dependency_wait()
        if pivots == 0 and load_acquire(info, batch * stride_info) == 0:
            return

        # (2) columns of about one, and their norms
        start_order(order, is_over, n, t)
        vectors = acc, x, v, y, u, h
        begin_all(vectors, w, w_cs, state, parts, team, teams, n, r, m, t)
        everybody(flags, int32(1), blocks, t)

        # (3) a column after the other
        j = int32(0)
        while j < least:
            norms, after = offset(state, (2 + (j & 1)) * n), offset(state, (3 - (j & 1)) * n)
            q = choose(best, u, norms, backs, order, j, n, candidates, t) if pivots != 0 else j
            p, first = int32(order[q]), int32(order[j])
            cuda.syncthreads()
            if t == 0:
                order[q], order[j], is_over[p] = first, p, int32(1)
            cuda.syncthreads()
            pivot = offset(w, p * w_cs * REALS)
            make(h, pivot[j * REALS], pivot[j * REALS + REALS - 1], below[p])
            step_all(vectors, is_over, w, w_cs, pivot, below, after, parts, team, teams, j, n, r, m, t)

            # (4) the column in its place
            back, to = backs[p], offset(a, j * a_cs * REALS)
            finish(to, a_rs, pivot, h, back, j, int32(block * DIM + t), int32(blocks * DIM), m)
            if block == 0 and t == 0:
                for k in range(REALS):
                    tau[j * tau_step * REALS + k] = h[TAU + k]
            everybody(flags, int32(j + 2), blocks, t)
            j = int32(j + 1)

        # (5) the columns right of the square
        finish_rest(a, a_rs, a_cs, w, w_cs, h, backs, order, int32(least + team), teams, n, r, m)
        write_order(jpvt, jpvt_step, order, n if block == 0 and pivots != 0 else int32(0), t)
        if IS_SPREAD:
            part(flags, blocks, t)

    return geqp3
