"""``geqrf_small``: Q R of small matrices in registers, a block a matrix.

A column is in registers of one thread, or of several neighbouring ones, which have vectors of its rows by
turns. Step j: the warp that has column j makes its reflector, and leaves both in shared memory. After one
barrier each thread multiplies that with its own column, and takes its part off. A thread has the sum over its
rows at once. So a step has no sum over the lanes of a warp, and one barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ...common.triangle_panel import block_copier
from .reflector import BETA, FACTOR, TAU, multiplier, projector, reflector
from .split_columns import column_scaler, finisher, matrix_writer, row_of, sum_over_parts, vectors

__all__ = ["STEM", "GeqrfSmall", "source"]

STEM = "geqrf_small"
PARAMETERS = parameters(
    "pointer: tau, a",
    "int32: m, n",
    "int64: tau_step, a_rs, a_cs, stride_tau, stride_a",
)
VECTOR = 16  # bytes of a column that a thread has in a row
GROUP = 8  # rows of a thread whose steps have code of their own
HEAD = 8  # elements for a reflector
#: Rows and columns, and threads of a column, by words of an element: 64 registers hold what a thread has of
#: one. With 128 rows of two words there are too many threads for the registers that they need.
SHAPES = {1: ((32, 1), (64, 2), (128, 2)), 2: ((32, 1), (64, 2), (96, 4)), 4: ((32, 2), (64, 4))}
SUMS = 4  # partial sums: a multiply-add waits for the one before


@dataclass(frozen=True)
class GeqrfSmall(BlockConfig):
    """Config of one `geqrf_small` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    ORDER : int
        The most rows and columns. DIM / ORDER threads have a column.
    """

    DIM: int = 32
    ORDER: int = 32

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.DIM % self.ORDER == 0 and WARP % self.SPLIT == 0,
            "threads",
            "DIM / ORDER divides 32",
            DIM=self.DIM,
            ORDER=self.ORDER,
        )
        require(
            self.OWN > 0 and self.OWN % self.vector == 0 and self.OWN % self.GROUP == 0,
            "rows",
            "ORDER^2 / DIM is made of vectors and of groups of 8, or a group",
            DIM=self.DIM,
            ORDER=self.ORDER,
        )

    @property
    def SPLIT(self) -> int:
        """Threads of a column."""
        return max(self.DIM // self.ORDER, 1)

    @property
    def OWN(self) -> int:
        """Rows of a thread."""
        return self.ORDER // self.SPLIT

    @property
    def GROUP(self) -> int:
        """Rows of a thread whose steps have code of their own."""
        return min(GROUP, max(self.OWN, 1))

    @property
    def vector(self) -> int:
        """Elements of a vector."""
        return VECTOR // self.dtype_facts.itemsize

    @property
    def ld(self) -> int:
        """Elements from column to column in shared memory: a vector more, against bank conflicts."""
        return self.ORDER + self.vector

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.OWN * self.dtype_facts.itemsize // 4 + 56

    @property
    def shared_elements(self) -> int:
        """The matrix; two columns and their reflectors."""
        return self.ORDER * (self.ld + 2) + 2 * HEAD

    @property
    def variants(self) -> tuple[Self, ...]:
        shapes = SHAPES[self.dtype_facts.itemsize // 4]
        if self.ORDER < WARP:
            return (self,)
        return tuple(replace(self, ORDER=order, DIM=order * split) for order, split in shapes)

    def specialize(self, rows: int) -> Self | None:
        """The Config for matrices of up to `rows` rows, if there is one."""
        return next((each for each in self.variants if rows <= each.ORDER), None)


def source(config: GeqrfSmall) -> KernelSource:
    """The kernel of `config`, for ORDER >= m >= n.

    Kernel parameters
    -----------------
    tau, a: pointer, tau and A
    m, n: int32, rows and columns of a matrix
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)
    stride_tau, stride_a: int64, batch strides (elements)

    Grid: x one block, z the batch. R replaces the upper triangle of A, the reflectors the rest.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _publisher(config: GeqrfSmall, slot: int) -> Callable:
    """``publish(x, f, h, w, column, head, tau, tau_step, j, col, part, lane)``: column j, whose reflector is
    made, to shared memory; `f` keeps the factor of v in the threads of that column.
    """
    facts, FIRST, GROUP_ROWS = config.dtype_facts, slot * config.GROUP, config.GROUP
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    row, make, select, PARTS = row_of(config), reflector(facts), ptx.select, SUMS + facts.reals_per_element
    (_, store), add = vectors(config, FIRST), sum_over_parts(config, 1 + REALS)

    @device_function
    def near(k, x, w, j, part):
        """A row of the diagonal's group."""
        at, i = k * REALS, row(k, part)
        for side in range(REALS):
            below = select(i > j, x[at + side], real(0))
            w[REALS + 1 + k % SUMS] += below * below
            w[1 + side] += select(i == j, x[at + side], real(0))

    @device_function
    def far(k, x, w):
        for side in range(REALS):
            w[REALS + 1 + k % SUMS] += x[k * REALS + side] * x[k * REALS + side]

    @device_function
    def set_beta(k, x, h, j, part):
        is_head = row(k, part) == j
        x[k * REALS] = select(is_head, h[BETA], x[k * REALS])
        if COMPLEX:
            x[k * 2 + 1] = select(is_head, real(0), x[k * 2 + 1])

    nears, betas = unrolled(GROUP_ROWS, near), unrolled(GROUP_ROWS, set_beta)
    fars = unrolled(config.OWN - FIRST - GROUP_ROWS, far)

    @device_function
    def publish(x, f, h, w, column, head, tau, tau_step, j, col, part, lane):
        for k in range(1 + PARTS):
            w[k] = real(0)
        nears(FIRST, x, w, j, part)
        fars(FIRST + GROUP_ROWS, x, w)
        for k in range(SUMS):
            w[0] += w[REALS + 1 + k]
        add(w, lane)
        if col == j:
            make(h, w[1], w[REALS], w[0])
            store(column, x)
            betas(FIRST, x, h, j, part)
            for side in range(REALS):
                f[side] = h[FACTOR + side]
            if part == 0:
                for k in range(5):
                    head[k] = h[k]
                for side in range(REALS):
                    tau[j * tau_step * REALS + side] = h[TAU + side]

    return publish


def _stepper(config: GeqrfSmall, slot: int) -> Callable:
    """``step(x, v, w, h, y, column, head, j, col, part, lane)``: column j, in shared memory, and its
    reflector, off the column of a thread that is right of it.
    """
    facts, FIRST, GROUP_ROWS = config.dtype_facts, slot * config.GROUP, config.GROUP
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    row, select, (load, _) = row_of(config), ptx.select, vectors(config, FIRST)
    project, multiply, add = projector(facts), multiplier(facts), sum_over_parts(config, REALS)
    PARTS = SUMS // REALS

    @device_function
    def add_product(w, k, v, re, im):
        at = 2 + k % PARTS * REALS
        if COMPLEX:
            w[at] += v[k * 2] * re + v[k * 2 + 1] * im
            w[at + 1] += v[k * 2] * im - v[k * 2 + 1] * re
        else:
            w[at] += v[k] * re

    @device_function
    def near(k, x, v, w, j, part):
        """A row of the diagonal's group: what is not below the diagonal may be no number."""
        at, i = k * REALS, row(k, part)
        for side in range(REALS):
            v[at + side] = select(i > j, v[at + side], real(0))
            w[side] += select(i == j, x[at + side], real(0))
        re, im = select(i > j, x[at], real(0)), select(i > j, x[at + REALS - 1], real(0))
        add_product(w, k, v, re, im)

    @device_function
    def far(k, x, v, w):
        add_product(w, k, v, x[k * REALS], x[k * REALS + REALS - 1])

    @device_function
    def less(k, x, v, y):
        at = k * REALS
        if COMPLEX:
            x[at] += v[at + 1] * y[1] - v[at] * y[0]
            x[at + 1] -= v[at] * y[1] + v[at + 1] * y[0]
        else:
            x[at] -= v[at] * y[0]

    @device_function
    def less_near(k, x, v, y, j, part):
        at, i = k * REALS, row(k, part)
        re = v[at] * y[0]
        if COMPLEX:
            re, im = v[at] * y[0] - v[at + 1] * y[1], v[at] * y[1] + v[at + 1] * y[0]
            x[at + 1] -= select(i > j, im, select(i == j, y[3], real(0)))
        x[at] -= select(i > j, re, select(i == j, y[2], real(0)))

    nears, less_nears = unrolled(GROUP_ROWS, near), unrolled(GROUP_ROWS, less_near)
    fars, less_fars = (unrolled(config.OWN - FIRST - GROUP_ROWS, each) for each in (far, less))

    @device_function
    def step(x, v, w, h, y, column, head, j, col, part, lane):
        for k in range(5):
            h[k] = head[k]
        for k in range(2 + SUMS):
            w[k] = real(0)
        load(v, column)
        nears(FIRST, x, v, w, j, part)
        fars(FIRST + GROUP_ROWS, x, v, w)
        for k in range(1, PARTS):
            for side in range(REALS):
                w[2 + side] += w[2 + k * REALS + side]
        project(y, w, 0, w, 2, h)
        add(y, lane)
        if col > j:
            multiply(y, 2, y, h)
            y[0], y[1] = h[FACTOR] * y[2], real(0)
            if COMPLEX:
                y[0] = h[FACTOR] * y[2] - h[FACTOR + 1] * y[3]
                y[1] = h[FACTOR] * y[3] + h[FACTOR + 1] * y[2]
            less_nears(FIRST, x, v, y, j, part)
            less_fars(FIRST + GROUP_ROWS, x, v, y)

    return step


def _steps_of(config: GeqrfSmall, slot: int) -> Callable:
    """``run(x, v, f, w, h, y, columns, heads, tau, tau_step, n, col, part, t)``: the steps of a group of
    rows on the diagonal.
    """
    REALS, GROUP_COLUMNS = config.dtype_facts.reals_per_element, config.GROUP * config.SPLIT
    FIRST, LAST, SPLIT = slot * GROUP_COLUMNS, (slot + 1) * GROUP_COLUMNS, config.SPLIT
    SPAN, PART, HEADS = config.ORDER * REALS, config.vector * REALS, HEAD * REALS
    publish, step, int32, offset = (
        _publisher(config, slot),
        _stepper(config, slot),
        ptx.types.int32,
        ptx.offset,
    )
    MORE = WARP // SPLIT - 1  # columns of a warp after its first

    @device_function
    def run(x, v, f, w, h, y, columns, heads, tau, tau_step, n, col, part, t):
        j, lane, warp = int32(FIRST), int32(t & 31), int32(t >> 5)
        while j < LAST and j < n:
            column = offset(columns, (j & 1) * SPAN + part * PART)
            head = offset(heads, (j & 1) * HEADS)
            if j * SPLIT >> 5 == warp:
                publish(x, f, h, w, column, head, tau, tau_step, j, col, part, lane)
            cuda.syncthreads()
            if warp * (WARP // SPLIT) + MORE > j:  # the warp has columns that are right of it
                step(x, v, w, h, y, column, head, j, col, part, lane)
            j = int32(j + 1)

    return run


def _build(config: GeqrfSmall):
    facts, ORDER, LD, SPLIT = config.dtype_facts, config.ORDER, config.ld, config.SPLIT
    REALS, real, offset = facts.reals_per_element, ptx.REALS[facts.real], ptx.offset
    int32, int64, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.shared_pointer
    TILE, SPAN, PART, OWN = ORDER * LD * REALS, ORDER * REALS, config.vector * REALS, config.OWN * REALS
    copy, commit, wait = block_copier(config, ORDER, ORDER, 1, LD), ptx.commit_async, ptx.wait_async(0)
    (load, store), scale, finish = vectors(config, 0), column_scaler(config), finisher(config)
    slots = range(config.OWN // config.GROUP)
    steps = in_order([_steps_of(config, slot) for slot in slots])
    by_rows, by_columns, grid_dependency_wait = (
        matrix_writer(config, True),
        matrix_writer(config, False),
        ptx.grid_dependency_wait,
    )
    SCRATCH = 2 + SUMS + REALS

    def geqrf_small(tau, a, m, n, tau_step, a_rs, a_cs, stride_tau, stride_a):
        # (1) the matrix, and the column of this thread
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        col, part, lane = int32(t // SPLIT), int32(t % SPLIT), int32(t & 31)
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        columns, heads = offset(s, TILE), offset(s, TILE + 2 * SPAN)
        x, v = cuda.local.array(OWN, real), cuda.local.array(OWN, real)
        f, h, y = cuda.local.array(2, real), cuda.local.array(5, real), cuda.local.array(4, real)
        w = cuda.local.array(SCRATCH, real)
        grid_dependency_wait()
        tau, a = offset(tau, batch * stride_tau * REALS), offset(a, batch * stride_a * REALS)
        copy(s, a, a_rs, a_cs, t, m, n, 0, 0)
        commit()
        wait()
        cuda.syncthreads()
        own = offset(s, (col * LD) * REALS + part * PART)
        load(x, own)

        # (2) columns of about one, and a reflector after the other
        scale(x, w, lane)
        back, f[0], f[1] = w[1], real(0), real(0)
        steps(x, v, f, w, h, y, columns, heads, tau, tau_step, n, col, part, t)

        # (3) the results
        finish(0, x, f, back, col, part)
        store(own, x)
        cuda.syncthreads()
        if abs(a_rs) <= abs(a_cs):
            by_rows(a, s, a_rs, a_cs, t, m, n)
        else:
            by_columns(a, s, a_rs, a_cs, t, m, n)

    return geqrf_small
