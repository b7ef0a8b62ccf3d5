"""``trtri_leaf``: the inverses of small lower triangles in place, a block a triangle: a thread a column.

Of larger triangles the blocks on the diagonal are inverted, each by a block of threads.

A column of the inverse is the solution of a system with one in its place. It stays in registers; the triangle
is in shared memory. That is substitution, with the divisions of the other leaves; nothing is inverted but
scalars.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ...common.substitution import (
    column_reader,
    column_writer,
    diagonal_inverter,
    exact_division_solver,
    steps,
)
from .leaf_config import VECTOR, TriangleInShared
from .triangle_copy import triangle_loader, triangle_writer

__all__ = ["STEM", "TrtriLeaf", "source"]

STEM = "trtri_leaf"
PARAMETERS = parameters(
    "int32 pointer: info",
    "pointer: source, a",
    "int32: n, unit, writes_info, clean",
    "int64: source_rs, source_cs, a_rs, a_cs, stride_info, stride_source, stride_a",
)
COLUMN_REALS = 64  # of a column in registers: twice as many take four times the instructions


@dataclass(frozen=True)
class TrtriLeaf(TriangleInShared):
    """Config of one `trtri_leaf` kernel; the parameters are those of `TriangleInShared`."""

    ORDER: int = 64
    DIM: int = 64

    STEM: ClassVar[str] = STEM
    ORDERS: ClassVar[tuple[int, ...]] = (16, 32, 64)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.ORDER * self.dtype_facts.reals_per_element <= COLUMN_REALS,
            "column",
            f"ORDER * parts <= {COLUMN_REALS}",
            ORDER=self.ORDER,
            parts=self.dtype_facts.reals_per_element,
        )

    def _with_order(self, order: int) -> TrtriLeaf:
        return TrtriLeaf(self.dtype, order, max(order, 32))

    def grid(self, order: int) -> int:
        """Blocks on the diagonal of a triangle."""
        return -(-order // self.ORDER)

    @property
    def row_of_panel(self) -> int:
        """Elements from row to row of the inverse in shared memory (odd, against conflicts)."""
        return self.ORDER + 1

    @property
    def shared_elements(self) -> int:
        """T, the inverse of its diagonal, and that of all of it."""
        return self.ORDER * (self.ld + 1 + self.row_of_panel)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return self.ORDER * self.dtype_facts.itemsize // 4 + 40


def source(config: TrtriLeaf) -> KernelSource:
    """The kernel of `config`, for the blocks of ORDER rows on the diagonals of lower triangles.

    Kernel parameters
    -----------------
    info: int32 pointer, info
    source, a: pointer, T and its inverse, which may replace it
    n: int32, order
    unit: int32, whether the diagonal is one and not read
    writes_info: int32, whether info is written, of triangles of one block
    clean: int32, whether the strict upper triangle becomes zero, of triangles of one block
    source_rs, source_cs, a_rs, a_cs: int64, row and column stride of T and of its inverse (elements)
    stride_info: int64, batch stride of info (words)
    stride_source, stride_a: int64, batch strides (elements)

    Grid: x ``config.grid(n)``, z the batch.

    Notes
    -----
    If info is written, it becomes 0, or the number, from 1, of the first zero on the diagonal; of such a
    triangle nothing is written. If not, a triangle whose info is not 0 is left as it is.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _zero_finder(config: TrtriLeaf):
    """``find(shared, t, n)``: whether thread t has the first zero of the diagonal; whether there is any."""
    facts, STEP = config.dtype_facts, (config.ld + 1) * config.dtype_facts.reals_per_element
    real, int32, COMPLEX = ptx.REALS[facts.real], ptx.types.int32, facts.is_complex

    @device_function
    def is_zero(shared, t):
        zero = shared[t * STEP] == real(0)
        if COMPLEX:
            zero = zero & (shared[t * STEP + 1] == real(0))
        return zero

    @device_function
    def find(shared, t, n):
        mine = False
        if t < n:
            mine = is_zero(shared, t)
        is_singular = cuda.syncthreads_or(int32(mine)) != 0
        if mine:
            for earlier in range(t):
                mine = mine & (not is_zero(shared, earlier))
        return mine, is_singular

    return find


def _solver(config: TrtriLeaf):
    """``solve(column, mine, tri, inverse, safe, t)``: column t of the inverse, to `mine` in shared memory."""
    facts, ORDER, LD = config.dtype_facts, config.ORDER, config.ld
    REALS, real, select = facts.reals_per_element, ptx.REALS[facts.real], ptx.select
    ROW, WIDTH = config.row_of_panel * REALS, VECTOR // facts.real_size
    read, write = column_reader(REALS, ORDER, ROW), column_writer(REALS, ORDER, ROW)
    substitute = steps(facts, ORDER, True, WIDTH, LD)
    substitute_by_exact_division = exact_division_solver(facts, ROW)

    @device_function
    def solve(column, mine, tri, inverse, safe, t):
        for i in range(ORDER):
            for part in range(REALS):
                mine[i * ROW + part] = select((i == t) & (part == 0), real(1), real(0))
        if safe:
            read(column, mine)
            substitute(column, tri, inverse)
            write(column, mine)
        else:
            substitute_by_exact_division(mine, tri, 1, LD, ORDER, False)

    return solve


def _build(config: TrtriLeaf):
    facts, ORDER, STEP = config.dtype_facts, config.ORDER, config.ld + 1
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    load_acquire, store_relaxed = ptx.load_acquire, ptx.store_relaxed
    INVERSE = ORDER * config.ld * REALS
    PANEL, COLUMN = INVERSE + ORDER * REALS, ORDER * REALS

    load, write = triangle_loader(config), triangle_writer(config, steps=(config.row_of_panel, 1))
    find_zero, solve = _zero_finder(config), _solver(config)
    invert = diagonal_inverter(facts, ORDER, STEP)

    def trtri_leaf(
        info, source, a, n, unit, writes_info, clean, source_rs, source_cs, a_rs, a_cs, stride_info,
        stride_source, stride_a,
    ):  # fmt: skip
        # (1) the triangle of this block, unless the whole one is known to be singular
        t, first, batch = cuda.threadIdx.x, int32(cuda.blockIdx.x * ORDER), int64(cuda.blockIdx.z)
        source = offset(source, (batch * stride_source + first * (source_rs + source_cs)) * REALS)
        a = offset(a, (batch * stride_a + first * (a_rs + a_cs)) * REALS)
        info, n = offset(info, batch * stride_info), int32(min(n - first, ORDER))
        tri = shared_pointer(cuda.shared.array(0, real, alignment=16))
        inverse, panel = offset(tri, INVERSE), offset(tri, PANEL)
        column = cuda.local.array(COLUMN, real)
        grid_dependency_wait()
        if writes_info == 0 and load_acquire(info, 0) != 0:
            return

        # (2) to shared memory, with ones on a unit diagonal and beyond n
        load(tri, source, source_rs, source_cs, t, n, unit)
        if t < ORDER and (unit != 0 or t >= n):
            tri[t * STEP * REALS] = real(1)
        if writes_info != 0:
            is_first, is_singular = find_zero(tri, t, n)
            if is_first or (t == 0 and not is_singular):
                store_relaxed(info, 0, int32(t + 1) if is_first else int32(0))
            if is_singular:
                return

        # (3) columns of the inverse, and back
        safe = cuda.syncthreads_and(invert(tri, inverse, t, ORDER, False))
        if t < ORDER:
            solve(column, offset(panel, t * REALS), tri, inverse, safe, t)
        cuda.syncthreads()
        write(a, panel, a_rs, a_cs, t, n, -ORDER if clean != 0 else unit)

    return trtri_leaf
