"""``trsm_small``: T X = alpha * B for small triangles, of a batch as a rule: a thread a column of B.

A triangle of a few dozen rows is too little for the tiles and stages of the other leaves. Here a block has
all of T in shared memory, and each thread one column of B in registers, from the first row to the last. B
passes through shared memory on its way, so that neighbours in memory are read and written together. X
may be B. It may hold sums that are added to alpha B first, such as products with what is solved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, Self

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import KernelConfig
from ..common.options import CONJUGATE, READS_Y, UNIT
from ..common.parameters import parameters
from ..common.substitution import (
    column_reader,
    column_writer,
    diagonal_inverter,
    exact_division_solver,
    panel_writer,
    steps,
)
from ..common.triangle_panel import block_copier

__all__ = ["STEM", "TrsmSmall", "source"]

STEM = "trsm_small"
PARAMETERS = parameters(
    "pointer: tri, b, x",
    "int32: n, r, options",
    "int64: t_rs, t_cs, b_rs, b_cs, x_rs, x_cs, stride_t, stride_b, stride_x",
    "real: alpha, alpha_i",
)
ORDERS = (8, 16, 32, 64)  # of T, to which smaller ones are filled up
COLUMN_REALS = (
    64  # of a column in registers: twice as many take four times the instructions, too many to be cached
)
#: Triangles of this number of rows or fewer have blocks of 32 columns, if such a block of B has
#: `NARROW_BYTES` or more. With less a multiprocessor has as many blocks as it may hold, and still too little
#: to do.
MAX_NARROW, NARROW_BYTES = 16, 2048
VECTOR = 16  # bytes of a load from shared memory


@dataclass(frozen=True)
class TrsmSmall(KernelConfig):
    """Config of one `trsm_small` kernel.

    Attributes
    ----------
    ORDER : int
        The largest order of T.
    BLK_N : int
        Columns of B a block owns, each a thread's.
    """

    ORDER: int = 32
    BLK_N: int = 32

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(self.ORDER in ORDERS, "order", f"ORDER in {ORDERS}", ORDER=self.ORDER)
        require(
            self.ORDER * self.dtype_facts.reals_per_element <= COLUMN_REALS,
            "column",
            f"ORDER * parts <= {COLUMN_REALS}",
            ORDER=self.ORDER,
            parts=self.dtype_facts.reals_per_element,
        )
        require(
            self.BLK_N % 32 == 0 and self.ORDER <= self.BLK_N <= 1024,
            "threads",
            "BLK_N % 32 == 0 and ORDER <= BLK_N <= 1024",
            BLK_N=self.BLK_N,
            ORDER=self.ORDER,
        )

    def specialize(self, order: int, columns: int) -> Self:
        """The Config for triangles of `order` rows, of which there are `max_rows` at most, and `columns`
        columns.
        """
        fitting = next(each for each in ORDERS if order <= each)
        is_narrow = fitting <= MAX_NARROW and 32 * fitting * self.dtype_facts.itemsize >= NARROW_BYTES
        wide = columns > 32 and not is_narrow
        return replace(self, ORDER=fitting, BLK_N=max(fitting, 64 if wide else 32))

    @property
    def max_rows(self) -> int:
        """Largest triangle that a Config of the dtype serves."""
        return COLUMN_REALS // self.dtype_facts.reals_per_element

    @property
    def threads(self) -> int:
        return self.BLK_N

    @property
    def vector(self) -> int:
        """Reals of T that a thread loads at once."""
        return VECTOR // self.dtype_facts.real_size

    @property
    def ld(self) -> int:
        """Elements from column to column of T in shared memory: a vector more than a column, against bank
        conflicts where T is loaded by rows.
        """
        return self.ORDER + VECTOR // self.dtype_facts.itemsize

    @property
    def row_of_panel(self) -> int:
        """Elements from row to row of the columns of B in shared memory (odd, against conflicts)."""
        return self.BLK_N + 1

    @property
    def shared_elements(self) -> int:
        """T, the inverse of its diagonal, and the columns of B."""
        return self.ORDER * (self.ld + 1 + self.row_of_panel)

    def grid(self, columns: int) -> int:
        """Blocks along x for `columns` columns of B."""
        return -(-columns // self.BLK_N)

    @property
    def variants(self) -> tuple[Self, ...]:
        orders = (order for order in ORDERS if order <= self.max_rows)
        return tuple(dict.fromkeys(self.specialize(*each) for each in product(orders, (32, 64))))


def source(config: TrsmSmall, conj: bool = False, t_by_rows: bool = False) -> KernelSource:
    """The one kernel of `config`, for n <= ORDER and any T.

    Kernel parameters
    -----------------
    tri, b, x: pointer, T, B and X
    n, r: int32, order of T, columns of B
    options: int32, conjugated T; a diagonal of ones, not read; X added to alpha B (`READS_Y`)
    t_rs, t_cs, b_rs, b_cs, x_rs, x_cs: int64, row and column stride of T, of B, of X (elements)
    stride_t, stride_b, stride_x: int64, batch strides (elements)
    alpha, alpha_i: real, parts of alpha

    Grid: x ``config.grid(r)``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), reads_before_wait=(0,))


def _solver(config: TrsmSmall):
    """``read_scaled(column, mine, sign, alpha, alpha_i)``: the thread's column, alpha B; ``add(column, mine,
    sign)``: the sums of X added; imaginary parts are multiplied by `sign`.

    ``solve(column, mine, tri, inverse, safe, unit)``: the column to X; where a reciprocal is not `safe`, in
    shared memory.
    """
    facts, ORDER, LD = config.dtype_facts, config.ORDER, config.ld
    REALS = facts.reals_per_element
    ROW, COMPLEX = config.row_of_panel * facts.reals_per_element, facts.is_complex
    read, write = column_reader(REALS, ORDER, ROW), column_writer(REALS, ORDER, ROW)
    substitute = steps(facts, ORDER, True, config.vector, LD)
    substitute_by_exact_division = exact_division_solver(facts, ROW)

    @device_function
    def read_scaled(column, mine, sign, alpha, alpha_i):
        read(column, mine)
        for i in range(ORDER):
            x = i * REALS
            re = column[x]
            column[x] = alpha * re
            if COMPLEX:
                im = column[x + 1]
                column[x] = alpha * re - alpha_i * im
                column[x + 1] = sign * (alpha * im + alpha_i * re)

    @device_function
    def add(column, mine, sign):
        for i in range(ORDER):
            x = i * REALS
            column[x] += mine[i * ROW]
            if COMPLEX:
                column[x + 1] += sign * mine[i * ROW + 1]

    @device_function
    def solve(column, mine, tri, inverse, safe, unit):
        if safe:
            substitute(column, tri, inverse)
        write(column, mine)
        if not safe:
            substitute_by_exact_division(mine, tri, 1, LD, ORDER, unit)

    return read_scaled, add, solve


def _build(config: TrsmSmall):
    facts, ORDER, BLK_N = config.dtype_facts, config.ORDER, config.BLK_N
    real, REALS, ROW = ptx.REALS[facts.real], facts.reals_per_element, config.row_of_panel
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    INVERSE = ORDER * config.ld * REALS
    PANEL = INVERSE + ORDER * REALS
    COLUMN_REALS = ORDER * REALS

    copy_t = block_copier(config, ORDER, ORDER, 1, config.ld, triangular=True)
    copy_b = block_copier(config, ORDER, BLK_N, ROW, 1)
    commit, wait_all = ptx.commit_async, ptx.wait_async(0)
    invert = diagonal_inverter(facts, ORDER, config.ld + 1)
    read_scaled, add, solve = _solver(config)
    write_x = panel_writer(REALS, ORDER, BLK_N, ROW * REALS, config.threads)

    def trsm_small(
        tri, b, x, n, r, options, t_rs, t_cs, b_rs, b_cs, x_rs, x_cs, stride_t, stride_b, stride_x, alpha,
        alpha_i,
    ):  # fmt: skip
        # (1) the triangle and the columns of this block
        t = cuda.threadIdx.x
        col0, batch = cuda.blockIdx.x * BLK_N, int64(cuda.blockIdx.z)
        cols = r - col0
        tri = offset(tri, batch * stride_t * REALS)
        b = offset(b, (batch * stride_b + col0 * b_cs) * REALS)
        x = offset(x, (batch * stride_x + col0 * x_cs) * REALS)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        inverse, panel = offset(shared, INVERSE), offset(shared, PANEL)
        column = cuda.local.array(COLUMN_REALS, real)
        unit = options & UNIT != 0
        # conj(T) X = alpha B is T conj(X) = conj(alpha B)
        sign = real(-1) if options & CONJUGATE else real(1)

        # (2) both to shared memory; what T lacks of ORDER rows is zeros, and what that spoils is not written
        copy_t(shared, tri, t_rs, t_cs, t, n, n, 0, 1 if unit else 0)
        grid_dependency_wait()  # T is not what the launch before writes
        copy_b(panel, b, b_rs, b_cs, t, n, cols, 0, 0)
        commit()
        wait_all()
        cuda.syncthreads()

        # (3) substitution, and back to memory
        safe = cuda.syncthreads_and(invert(shared, inverse, t, n, unit))
        mine = offset(panel, t * REALS)
        read_scaled(column, mine, sign, alpha, alpha_i)
        if options & READS_Y:
            cuda.syncthreads()
            copy_b(panel, x, x_rs, x_cs, t, n, cols, 0, 0)
            commit()
            wait_all()
            cuda.syncthreads()
            add(column, mine, sign)
        solve(column, mine, shared, inverse, safe, unit)
        cuda.syncthreads()
        write_x(x, panel, x_rs, x_cs, t, n, cols, sign)

    return trsm_small
