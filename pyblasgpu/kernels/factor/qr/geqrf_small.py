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
from .larft_leaf import triangle_maker
from .reflector import BETA, FACTOR, TAU, multiplier, projector, reflector
from .split_columns import (
    column_scaler,
    dotter,
    finisher,
    matrix_writer,
    row_of,
    sum_over_parts,
    updater,
    vectors,
)

__all__ = ["STEM", "GeqrfSmall", "source"]

STEM = "geqrf_small"
PARAMETERS = parameters(
    "pointer: tau, a, v, t",
    "int32: m, n, above",
    "int64: tau_step, a_rs, a_cs, v_cs, t_cs, stride_tau, stride_a, stride_v, stride_t",
)
VECTOR = 16  # bytes of a column that a thread has in a row
GROUP = 8  # rows of a thread whose steps have code of their own
HEAD = 8  # elements for a reflector
#: Rows, which are columns too, and threads of a column, by words of an element: 64 registers hold what a
#: thread has of one. With 128 rows of two words there are too many threads for the registers that they need.
SQUARES = {1: ((32, 1), (64, 2), (128, 2)), 2: ((32, 1), (64, 2), (96, 4)), 4: ((32, 2), (64, 4))}
#: Rows, columns and threads of a column of panels.
PANELS = {
    1: ((256, 64, 8), (512, 64, 8), (1024, 32, 16)),
    2: ((256, 64, 8), (512, 32, 16), (1024, 16, 32)),
    4: ((256, 32, 16), (512, 16, 32)),
}
#: Partial sums, by bytes of a real: a multiply-add waits for the one before.
MOST_SUMS = {4: 4, 8: 2}


@dataclass(frozen=True)
class GeqrfSmall(BlockConfig):
    """Config of one `geqrf_small` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    ROWS, COLS : int
        The most rows and columns. DIM / COLS threads have a column.
    IS_PANEL : bool
        Whether V is left as well, and perhaps T.
    MOST_SHARED : int
        Bytes of shared memory that `variants` have at most; 0 for any.
    """

    DIM: int = 32
    ROWS: int = 32
    COLS: int = 32
    IS_PANEL: bool = False
    MOST_SHARED: int = 0

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            0 < self.COLS <= self.ROWS and self.DIM % self.COLS == 0 and WARP % self.SPLIT == 0,
            "threads",
            "COLS <= ROWS and DIM / COLS divides 32",
            DIM=self.DIM,
            ROWS=self.ROWS,
            COLS=self.COLS,
        )
        require(
            self.OWN > 0 and self.OWN % self.vector == 0 and self.OWN % self.GROUP == 0,
            "rows",
            "ROWS COLS / DIM is made of vectors and of groups of 8, or a group",
            DIM=self.DIM,
            ROWS=self.ROWS,
            COLS=self.COLS,
        )

    @property
    def SPLIT(self) -> int:
        """Threads of a column."""
        return max(self.DIM // max(self.COLS, 1), 1)

    @property
    def OWN(self) -> int:
        """Rows of a thread."""
        return self.ROWS // self.SPLIT

    @property
    def GROUP(self) -> int:
        """Rows of a thread whose steps have code of their own."""
        return min(GROUP, max(self.OWN, 1))

    @property
    def SUMS(self) -> int:
        """Partial sums of a thread."""
        return MOST_SUMS[self.dtype_facts.real_size]

    @property
    def vector(self) -> int:
        """Elements of a vector."""
        return VECTOR // self.dtype_facts.itemsize

    @property
    def ld(self) -> int:
        """Elements from column to column in shared memory: a vector more, against bank conflicts."""
        return self.ROWS + self.vector

    @property
    def ld_t(self) -> int:
        """Elements from column to column of V^H V."""
        return self.COLS + self.vector

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.OWN * self.dtype_facts.itemsize // 4 + 56

    @property
    def shared_elements(self) -> int:
        """The shared memory that `_places` describes."""
        triangle = self.COLS * self.ld_t if self.IS_PANEL else 0
        return self.COLS * (self.ld + 3) + 2 * (self.ROWS + HEAD) + triangle

    @property
    def variants(self) -> tuple[Self, ...]:
        words = self.dtype_facts.itemsize // 4
        if self.COLS < WARP:
            return (replace(self, MOST_SHARED=0),)
        squares = [(False, rows, rows, split) for rows, split in SQUARES[words]]
        shapes = squares + [(True, *shape) for shape in PANELS[words]]
        every = (
            replace(self, IS_PANEL=is_panel, ROWS=rows, COLS=cols, DIM=cols * split, MOST_SHARED=0)
            for is_panel, rows, cols, split in shapes
        )
        return tuple(each for each in every if not 0 < self.MOST_SHARED < each.shared_bytes)

    def fitting(self, shared_per_block: int) -> Self:
        """The Config for a device whose blocks have `shared_per_block` bytes of shared memory."""
        return replace(self, MOST_SHARED=shared_per_block)

    def whole(self, rows: int) -> Self | None:
        """The Config for matrices of up to `rows` rows, if there is one."""
        return next((each for each in self.variants if not each.IS_PANEL and rows <= each.ROWS), None)

    def panel(self, rows: int) -> Self | None:
        """The Config for panels of up to `rows` rows, if there is one."""
        return next((each for each in self.variants if each.IS_PANEL and rows <= each.ROWS), None)


def source(config: GeqrfSmall) -> KernelSource:
    """The kernel of `config`, for ROWS >= m >= n and COLS >= n.

    Kernel parameters
    -----------------
    tau, a, v, t: pointer, tau, A, and of a panel V and T
    m, n: int32, rows and columns of a matrix
    above: int32, rows of V above the panel, which become zero
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)
    v_cs, t_cs: int64, column strides of V and T, whose row strides are 1 (elements); 0 for no T
    stride_tau, stride_a, stride_v, stride_t: int64, batch strides (elements)

    Grid: x one block, z the batch. R replaces the upper triangle of A, the reflectors the rest.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _places(config: GeqrfSmall) -> tuple[int, ...]:
    """Return where shared memory has two columns, their reflectors, tau, factors of v, reciprocals of scales,
    and V^H V; the matrix is before them.
    """
    columns, span, cols = config.COLS * config.ld, 2 * config.ROWS, config.COLS
    heads = columns + span
    taus = heads + 2 * HEAD
    parts = columns, heads, taus, taus + cols, taus + 2 * cols, taus + 3 * cols
    return tuple(each * config.dtype_facts.reals_per_element for each in parts)


def _publisher(config: GeqrfSmall, slot: int) -> Callable:
    """``publish(x, h, w, column, head, s, j, col, part, lane)``: column j, whose reflector is made, tau and
    the factor of v to shared memory, `s`.
    """
    facts, FIRST, GROUP_ROWS = config.dtype_facts, slot * config.GROUP, config.GROUP
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    row, make, select, SUMS = row_of(config), reflector(facts), ptx.select, config.SUMS
    PARTS = SUMS + REALS
    (_, store), add = vectors(config, FIRST), sum_over_parts(config, 1 + REALS)
    _, _, TAUS, FACTORS, *_ = _places(config)

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
    def publish(x, h, w, column, head, s, j, col, part, lane):
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
            if part == 0:
                for k in range(5):
                    head[k] = h[k]
                for side in range(REALS):
                    s[TAUS + j * REALS + side] = h[TAU + side]
                    s[FACTORS + j * REALS + side] = h[FACTOR + side]

    return publish


def _stepper(config: GeqrfSmall, slot: int) -> Callable:
    """``step(x, v, w, h, y, column, head, s, j, col, part, lane)``: column j, in shared memory, and its
    reflector, off the column of a thread that is right of it. Of a panel the product with a column of V left
    of it is kept.

    The column is read twice: registers that keep it would be twice as many.
    """
    facts, REALS, COMPLEX = (
        config.dtype_facts,
        config.dtype_facts.reals_per_element,
        config.dtype_facts.is_complex,
    )
    real, offset, opaque, int32 = ptx.REALS[facts.real], ptx.offset, ptx.opaque, ptx.types.int32
    project, multiply, add = projector(facts), multiplier(facts), sum_over_parts(config, REALS)
    dot, less, SUMS = dotter(config, slot), updater(config, slot), config.SUMS
    PARTS = SUMS // REALS
    IS_PANEL, LD, (*_, FACTORS, _, TRIANGLE) = config.IS_PANEL, config.ld_t, _places(config)

    @device_function
    def step(x, v, w, h, y, column, head, s, j, col, part, lane):
        for k in range(2 + SUMS):
            w[k] = real(0)
        dot(column, x, v, w, j, part)
        for k in range(1, PARTS):
            for side in range(REALS):
                w[2 + side] += w[2 + k * REALS + side]
        for k in range(5):
            h[k] = head[k]
        project(y, w, 0, w, 2, h)
        add(y, lane)
        if col > j:
            multiply(y, 2, y, h)
            y[0] = h[FACTOR] * y[2]
            if COMPLEX:
                y[0] = h[FACTOR] * y[2] - h[FACTOR + 1] * y[3]
                y[1] = h[FACTOR] * y[3] + h[FACTOR + 1] * y[2]
            less(offset(column, opaque(int32(0))), x, v, y, j, part)
        elif IS_PANEL and part == 0:
            at, f = TRIANGLE + (col * LD + j) * REALS, s[FACTORS + col * REALS]
            s[at] = f * y[0]
            if COMPLEX:
                f_im = s[FACTORS + col * 2 + 1]
                s[at], s[at + 1] = f * y[0] - f_im * y[1], f * y[1] + f_im * y[0]

    return step


def _steps_of(config: GeqrfSmall, slot: int) -> Callable:
    """``run(x, v, w, h, y, s, n, triangular, col, part, t)``: the steps of a group of diagonal rows. With
    `triangular` products with columns on the left are needed.
    """
    REALS, GROUP_COLUMNS = config.dtype_facts.reals_per_element, config.GROUP * config.SPLIT
    FIRST, LAST, SPLIT = slot * GROUP_COLUMNS, (slot + 1) * GROUP_COLUMNS, config.SPLIT
    SPAN, PART, HEADS, IS_PANEL = config.ROWS * REALS, config.vector * REALS, HEAD * REALS, config.IS_PANEL
    COLUMNS, REFLECTORS, *_ = _places(config)
    publish, step, int32, offset = (
        _publisher(config, slot),
        _stepper(config, slot),
        ptx.types.int32,
        ptx.offset,
    )
    MORE = WARP // SPLIT - 1  # columns of a warp after its first

    @device_function
    def run(x, v, w, h, y, s, n, triangular, col, part, t):
        j, lane, warp = int32(FIRST), int32(t & 31), int32(t >> 5)
        while j < LAST and j < n:
            column = offset(s, COLUMNS + (j & 1) * SPAN + part * PART)
            head = offset(s, REFLECTORS + (j & 1) * HEADS)
            if j * SPLIT >> 5 == warp:
                publish(x, h, w, column, head, s, j, col, part, lane)
            cuda.syncthreads()
            if (IS_PANEL and triangular) or warp * (WARP // SPLIT) + MORE > j:
                step(x, v, w, h, y, column, head, s, j, col, part, lane)
            j = int32(j + 1)

    return run


def _triangle_writer(config: GeqrfSmall) -> Callable:
    """``write(t, t_cs, s, taus, n, row)``: a row of T from V^H V, with zeros below its diagonal."""
    facts, LD, make = config.dtype_facts, config.ld_t, triangle_maker(config.dtype_facts)
    REALS, real, int64 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int64

    @device_function
    def write(t, t_cs, s, taus, n, row):
        if row < n:
            make(s, LD, taus, 1, n, row)
            for c in range(n):
                for side in range(REALS):
                    x = s[(c * LD + row) * REALS + side] if row <= c else real(0)
                    t[(int64(c) * t_cs + row) * REALS + side] = x

    return write


def _build(config: GeqrfSmall):
    facts, LD, SPLIT, DIM = config.dtype_facts, config.ld, config.SPLIT, config.DIM
    REALS, real, offset = facts.reals_per_element, ptx.REALS[facts.real], ptx.offset
    int32, int64, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.shared_pointer
    IS_PANEL = config.IS_PANEL
    PART, OWN, SCRATCH = config.vector * REALS, config.OWN * REALS, 2 + config.SUMS + REALS
    _, _, TAUS, FACTORS, BACK, TRIANGLE = _places(config)
    copy = block_copier(config, config.ROWS, config.COLS, 1, LD, unrolls=not IS_PANEL)
    commit, wait, grid_dependency_wait = ptx.commit_async, ptx.wait_async(0), ptx.grid_dependency_wait
    (load, store), scale, finish = vectors(config, 0), column_scaler(config), finisher(config)
    slots = range(-(-config.COLS // (config.GROUP * SPLIT)))
    steps = in_order([_steps_of(config, slot) for slot in slots])
    by_rows, by_columns = matrix_writer(config, True, False), matrix_writer(config, False, False)
    write_v, write_triangle, quotient = (
        matrix_writer(config, True, True),
        _triangle_writer(config),
        ptx.quotient,
    )

    def geqrf_small(
        tau, a, v, t, m, n, above, tau_step, a_rs, a_cs, v_cs, t_cs,
        stride_tau, stride_a, stride_v, stride_t,
    ):  # fmt: skip
        # (1) the matrix, and the column of this thread
        thread, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        col, part, lane = int32(thread // SPLIT), int32(thread % SPLIT), int32(thread & 31)
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        x, column = cuda.local.array(OWN, real), cuda.local.array(PART, real)
        h, y, w = cuda.local.array(5, real), cuda.local.array(4, real), cuda.local.array(SCRATCH, real)
        grid_dependency_wait()
        a = offset(a, batch * stride_a * REALS)
        copy(s, a, a_rs, a_cs, thread, m, n, 0, 0)
        commit()
        wait()
        cuda.syncthreads()
        own = offset(s, (col * LD) * REALS + part * PART)
        load(x, own)

        # (2) columns of about one, and a reflector after the other
        scale(x, w, lane)
        if part == 0:
            s[BACK + col] = w[1]
        steps(x, column, w, h, y, s, n, t_cs != 0, col, part, thread)

        # (3) the matrix, and tau
        finish(0, x, offset(s, FACTORS + col * REALS), s[BACK + col], col, part)
        store(own, x)
        cuda.syncthreads()
        if abs(a_rs) <= abs(a_cs):
            by_rows(a, s, a_rs, a_cs, thread, m, n)
        else:
            by_columns(a, s, a_rs, a_cs, thread, m, n)
        if thread < n:
            tau = offset(tau, (batch * stride_tau + int64(thread) * tau_step) * REALS)
            for k in range(REALS):
                tau[k] = s[TAUS + thread * REALS + k]

        # (4) V, and T
        if IS_PANEL:
            v = offset(v, batch * stride_v * REALS)
            write_v(v, s, int64(1), v_cs, thread, m, n)
            i = thread
            while i < above * n:
                j = int32(quotient(i, above))
                for k in range(REALS):
                    v[(j * v_cs + (i - j * above - above)) * REALS + k] = real(0)
                i = int32(i + DIM)
            if t_cs != 0:
                t = offset(t, batch * stride_t * REALS)
                write_triangle(t, t_cs, offset(s, TRIANGLE), offset(s, TAUS), n, thread)

    return geqrf_small
