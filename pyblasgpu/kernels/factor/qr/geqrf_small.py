"""``geqrf_small``: Q R of small matrices in registers, a block a matrix.

Some columns are in registers of several neighbouring threads, which have vectors of their rows by turns. In
step j the warp that has column j makes its reflector, H = I - g u u^H with u = x - beta e_j, and leaves u and
g in shared memory. After one barrier each thread reads its rows of u once, multiplies them with all its
columns, and takes their parts off. So each element that is read serves several columns.
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
from .small_steps import HEAD, SUMS, places, product_scaler, scalar_maker, steps_of
from .split_columns import column_scaler, finisher, matrix_writer, vectors

__all__ = ["STEM", "GeqrfSmall", "source"]

STEM = "geqrf_small"
PARAMETERS = parameters(
    "pointer: tau, a, v, t",
    "int32: m, n, above",
    "int64: tau_step, a_rs, a_cs, v_cs, t_cs, stride_tau, stride_a, stride_v, stride_t",
)
VECTOR = 16  # bytes of a column that a thread has in a row
GROUP = 2  # rows of a thread, or those of a vector, whose steps have code of their own
RESIDENT, FEW_REGISTERS = 512, 128  # threads of a multiprocessor, at least, that have no more each
#: Rows, which are columns too, columns of a thread, and threads that share them, by words of an element.
SQUARES = {
    1: ((32, 2, 2), (64, 4, 4), (128, 4, 8)),
    2: ((32, 2, 2), (64, 4, 8), (128, 4, 8)),
    4: ((32, 2, 4), (64, 4, 8)),
}
#: Rows, columns, columns of a thread, and threads that share them, of panels.
PANELS = {
    1: ((256, 64, 4, 16), (512, 64, 8, 32), (1024, 32, 4, 32)),
    2: ((256, 64, 4, 16), (512, 32, 4, 32), (896, 16, 2, 32)),
    4: ((256, 32, 4, 32), (512, 8, 1, 32)),
}


@dataclass(frozen=True)
class GeqrfSmall(BlockConfig):
    """Config of one `geqrf_small` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    ROWS, COLS : int
        The most rows and columns.
    WIDE : int
        Columns of a thread; DIM WIDE / COLS threads share them.
    IS_PANEL : bool
        Whether V is left as well, and perhaps T.
    MOST_SHARED : int
        Bytes of shared memory that `variants` have at most; 0 for any.
    """

    DIM: int = 32
    ROWS: int = 32
    COLS: int = 32
    WIDE: int = 4
    IS_PANEL: bool = False
    MOST_SHARED: int = 0

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        split, facts = self.SPLIT, {"DIM": self.DIM, "ROWS": self.ROWS, "COLS": self.COLS, "WIDE": self.WIDE}
        require(
            0 < self.COLS <= self.ROWS and split * self.COLS == self.DIM * self.WIDE and WARP % split == 0,
            "threads",
            "COLS <= ROWS and DIM WIDE / COLS divides 32",
            **facts,
        )
        require(
            self.OWN > 0 and self.OWN % self.GROUP == 0,
            "rows",
            "ROWS COLS / (DIM WIDE) is made of vectors and of groups of 2",
            **facts,
        )

    @property
    def SPLIT(self) -> int:
        """Threads of a column."""
        return max(self.DIM * self.WIDE // max(self.COLS, 1), 1)

    @property
    def GROUPS(self) -> int:
        """Groups of threads of a warp that have columns of their own."""
        return WARP // self.SPLIT

    @property
    def OWN(self) -> int:
        """Rows of a thread."""
        return self.ROWS // self.SPLIT

    @property
    def GROUP(self) -> int:
        """Rows of a thread whose steps have code of their own."""
        return max(GROUP, self.vector)

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
        return (self.WIDE + 1) * self.OWN * self.dtype_facts.itemsize // 4 + 48

    @property
    def min_blocks(self) -> int:
        """Two of 256 threads, or as many threads in smaller ones, where registers suffice."""
        is_small = self.registers <= FEW_REGISTERS and self.threads > WARP
        return max(RESIDENT // self.threads, 1) if is_small else 1

    @property
    def shared_elements(self) -> int:
        """The shared memory that `places` describes."""
        triangle = self.COLS * self.ld_t if self.IS_PANEL else 0
        return self.COLS * (self.ld + 4) + 2 * (self.ROWS + HEAD) + triangle

    @property
    def variants(self) -> tuple[Self, ...]:
        words = self.dtype_facts.itemsize // 4
        if self.COLS < WARP:
            return (replace(self, MOST_SHARED=0),)
        squares = [(False, rows, rows, wide, split) for rows, wide, split in SQUARES[words]]
        shapes = squares + [(True, *shape) for shape in PANELS[words]]
        every = (
            replace(
                self,
                IS_PANEL=is_panel,
                ROWS=rows,
                COLS=cols,
                WIDE=wide,
                DIM=cols * split // wide,
                MOST_SHARED=0,
            )
            for is_panel, rows, cols, wide, split in shapes
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
    tau, a: pointer, tau and A
    v, t: pointer, V and T of a panel; v of others: the matrix that is read, A or another one of its strides
    m, n: int32, rows and columns of a matrix
    above: int32, rows of V above the panel, which become zero
    tau_step: int64, stride of tau (elements)
    a_rs, a_cs: int64, row and column stride of A (elements)
    v_cs, t_cs: int64, column strides of V and T, whose row strides are 1 (elements); 0 for no T
    stride_tau, stride_a, stride_v, stride_t: int64, batch strides (elements)

    Grid: x one block, z the batch. R replaces the upper triangle of A, the reflectors the rest.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


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
    PART, WIDE, GROUPS, WIDTH = config.vector * REALS, config.WIDE, config.GROUPS, config.GROUPS * config.WIDE
    TILE, COLUMN, OF_TILE = WIDE * config.OWN * REALS, config.OWN * REALS, WIDE * REALS
    SCRATCH, STEP = max(1 + REALS + SUMS, OF_TILE), GROUPS * LD * REALS
    _, _, TAUS, FACTORS, BETAS, BACK, TRIANGLE = places(config)
    copy = block_copier(config, config.ROWS, config.COLS, 1, LD, unrolls=not IS_PANEL)
    commit, wait, grid_dependency_wait = ptx.commit_async, ptx.wait_async(0), ptx.grid_dependency_wait
    loads, stores = (unrolled(WIDE, each) for each in vectors(config, 0))
    scale, finish = column_scaler(config), finisher(config)
    make_scalars, scale_products = scalar_maker(config), product_scaler(config)
    slots = range(-(-config.COLS // (config.GROUP * SPLIT)))
    steps = in_order([steps_of(config, slot) for slot in slots])
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
        part, lane = int32(thread % SPLIT), int32(thread & 31)
        col = int32((thread >> 5) * WIDTH + lane // SPLIT)
        s = shared_pointer(cuda.shared.array(0, real, alignment=16))
        x, v_own = cuda.local.array(TILE, real), cuda.local.array(COLUMN, real)
        h, w = cuda.local.array(4, real), cuda.local.array(SCRATCH, real)
        y = cuda.local.array(SCRATCH, real)
        grid_dependency_wait()
        a, source = offset(a, batch * stride_a * REALS), offset(v, batch * stride_v * REALS)
        if IS_PANEL:
            copy(s, a, a_rs, a_cs, thread, m, n, 0, 0)
        else:
            copy(s, source, a_rs, a_cs, thread, m, n, 0, 0)
        commit()
        wait()
        cuda.syncthreads()
        own = offset(s, (col * LD) * REALS + part * PART)
        loads(0, x, own, STEP)

        # (2) columns of about one, and a reflector after the other
        scale(0, x, w, offset(s, BACK), col, part, lane)
        steps(x, v_own, w, y, s, n, t_cs != 0, col, part, thread)

        # (3) the matrix, and tau
        if thread < n:
            make_scalars(s, h, thread)
        cuda.syncthreads()
        finish(0, x, offset(s, FACTORS), offset(s, BETAS), offset(s, BACK), col, part)
        stores(0, own, x, STEP)
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
                scale_products(s, n, thread)
                cuda.syncthreads()
                t = offset(t, batch * stride_t * REALS)
                write_triangle(t, t_cs, offset(s, TRIANGLE), offset(s, TAUS), n, thread)

    return geqrf_small
