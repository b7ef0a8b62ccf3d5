"""``potrf_panel``: the Cholesky factor of a block, and the rows below it solved by it, in one launch.

[A11]    A11 = L11 L11^H, as `potrf_leaf` does it
[A21]    A21 := A21 L11^-H, ROWS rows a block

Every block factors A11 itself, with its own rows of A21 below: it costs what the factor alone would, and no
block waits for the factor. The last block writes L11, once all others have set a flag after they have read
A11.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ...common.triangle_panel import block_copier
from ..triangles.leaf_config import TriangleInShared
from ..triangles.triangle_copy import rows_writer, triangle_loader, triangle_writer
from .cholesky_panel import GROUP, conjugator, panel_factor, trailing_update

__all__ = ["STEM", "PotrfPanel", "source"]

STEM = "potrf_panel"
PARAMETERS = parameters(
    "int32 pointer: info",
    "pointer: a, flags",
    "int32: n, m, before",
    "int64: a_rs, a_cs, stride_info, stride_a",
)


@dataclass(frozen=True)
class PotrfPanel(TriangleInShared):
    """Config of one `potrf_panel` kernel.

    Attributes
    ----------
    dtype, ORDER, DIM
        See `TriangleInShared`.
    BLK : int
        Columns of a panel, which a thread has in registers.
    ROWS : int
        Rows below the triangle that a block solves.
    SHARED : int
        Bytes of shared memory that a block takes at least. With most of a multiprocessor's it is alone there:
        another block would slow down its chain of pivots.
    """

    ORDER: int = 128
    DIM: int = 256
    BLK: int = 32
    ROWS: int = 64
    SHARED: int = 0

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.BLK > 0 and self.BLK % GROUP == 0 and self.ORDER % self.BLK == 0,
            "panels",
            f"BLK > 0 and BLK % {GROUP} == 0 and ORDER % BLK == 0",
            BLK=self.BLK,
            ORDER=self.ORDER,
        )
        require(
            self.ROWS > 0 and self.ROWS % 8 == 0 and self.ORDER + self.ROWS <= self.DIM,
            "rows",
            "ROWS > 0 and ROWS % 8 == 0 and ORDER + ROWS <= DIM",
            ROWS=self.ROWS,
            ORDER=self.ORDER,
            DIM=self.DIM,
        )

    @property
    def rows_below(self) -> int:
        return self.ROWS

    def _with_order(self, order: int) -> PotrfPanel:
        threads = -(-(order + self.ROWS) // 32) * 32
        return replace(self, ORDER=order, DIM=threads, BLK=min(self.BLK, order))

    @property
    def wide(self) -> Self:
        """The Config of twice the rows a block, where its threads and shared memory have room; or itself."""
        if self.ORDER + 2 * self.ROWS > self.DIM:
            return self
        config = replace(self, ROWS=2 * self.ROWS)
        return config if config.shared_bytes == self.shared_bytes else self

    @property
    def variants(self) -> tuple[Self, ...]:
        return tuple(dict.fromkeys((self, self.wide)))

    @property
    def padding(self) -> int:
        # fragments of float64 then meet all banks
        return 2 * self.vector if self.dtype == "d" else self.vector

    @property
    def shared_elements(self) -> int:
        """L, the rows below it, and the block of pivots."""
        return self.ORDER * self.ld + GROUP * GROUP

    @property
    def shared_bytes(self) -> int:
        return max(super().shared_bytes, self.SHARED)

    def fitting(self, shared_per_block: int) -> PotrfPanel:
        config = replace(self, SHARED=min(self.SHARED, shared_per_block))
        return super(PotrfPanel, config).fitting(shared_per_block)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return (self.BLK + 3 * GROUP * GROUP) * self.dtype_facts.itemsize // 4 + 32

    def grid(self, rows: int) -> int:
        """Blocks along x for `rows` rows below."""
        return -(-rows // self.ROWS)


def source(config: PotrfPanel) -> KernelSource:
    """The kernel of `config`, for a lower triangle of order n <= ORDER and m >= 1 rows below it.

    Kernel parameters
    -----------------
    info: int32 pointer, info
    a, flags: pointer, A, and the flags, one a block of any matrix
    n, m: int32, order, rows below
    before: int32, the rows of the whole matrix before A
    a_rs, a_cs: int64, row and column stride of A (elements)
    stride_info: int64, batch stride of info (words)
    stride_a: int64, batch stride (elements)

    Grid: x ``config.grid(m)``, z the batch.

    Notes
    -----
    info as `potrf_leaf` has it.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _flags(config: PotrfPanel):
    """``set_flag(flags, t)`` sets the flag of this block, ``wait(flags, t)`` waits for all others."""
    THREADS, int32 = config.threads, ptx.types.int32
    load_acquire, store_relaxed = ptx.load_acquire, ptx.store_relaxed

    @device_function
    def set_flag(flags, t):
        if t == 0:
            store_relaxed(flags, cuda.blockIdx.x, int32(1))

    @device_function
    def wait(flags, t):
        for other in range(t, cuda.gridDim.x - 1, THREADS):
            while load_acquire(flags, other) == 0:
                pass
            store_relaxed(flags, other, int32(0))
        cuda.syncthreads()

    return set_flag, wait


def _build(config: PotrfPanel):
    facts, ORDER, BLK, LD, ROWS = config.dtype_facts, config.ORDER, config.BLK, config.ld, config.ROWS
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, load_acquire = ptx.grid_dependency_wait, ptx.load_acquire
    store_relaxed = ptx.store_relaxed
    ROW, TILE, OTHER = BLK * REALS, (GROUP + 1) * GROUP * REALS, config.vector * GROUP * REALS
    ACC, SPAN, PIVOTS = GROUP * GROUP * REALS, GROUP * REALS, ORDER * LD * REALS

    load, write = triangle_loader(config), triangle_writer(config, real_diagonal=True)
    read = block_copier(config, ROWS, ORDER, 1, LD, unrolls=True)
    write_rows = rows_writer(config)
    load_row, conjugate = ptx.load_shared(REALS, BLK, LD * REALS), conjugator(config)
    factor, update = panel_factor(config), trailing_update(config)
    set_flag, wait = _flags(config)

    def potrf_panel(info, a, flags, n, m, before, a_rs, a_cs, stride_info, stride_a):
        # (1) the rows of this block, and the flags of its matrix
        t, first_row, batch = cuda.threadIdx.x, int64(cuda.blockIdx.x) * ROWS, int64(cuda.blockIdx.z)
        info, a = offset(info, batch * stride_info), offset(a, batch * stride_a * REALS)
        flags = offset(flags, batch * cuda.gridDim.x)
        mine, left = offset(a, (n + first_row) * a_rs * REALS), m - first_row
        l = shared_pointer(cuda.shared.array(0, real, alignment=16))
        rows_below, pivots = offset(l, ORDER * REALS), offset(l, PIVOTS)
        row, tile, other = (
            cuda.local.array(ROW, real),
            cuda.local.array(TILE, real),
            cuda.local.array(OTHER, real),
        )
        acc, x, y = cuda.local.array(ACC, real), cuda.local.array(SPAN, real), cuda.local.array(SPAN, real)
        bad = cuda.local.array(1, int32)
        bad[0] = int32(0)
        is_below = t >= ORDER and t < ORDER + ROWS
        is_last = cuda.blockIdx.x == cuda.gridDim.x - 1
        grid_dependency_wait()

        # (2) them and the triangle to shared memory, with ones on the diagonal beyond n; no more after a
        # bad pivot, which is looked for last, lest copies wait for it
        read(rows_below, mine, a_rs, a_cs, t, left, n, 0, 0)
        load(l, a, a_rs, a_cs, t, n, 0)
        if before > 0 and load_acquire(info, 0) != 0:
            return
        if n <= t and t < ORDER:
            l[t * (LD + 1) * REALS] = real(1)
        cuda.syncthreads()
        if not is_last:
            set_flag(flags, t)

        # (3) panel by panel, and what is right of each
        rows = (n + (BLK - 1)) // BLK * BLK
        for first in range(0, rows, BLK):
            i = t - first if t < rows or is_below else -1
            panel = offset(l, first * (LD + 1) * REALS)
            if i >= 0:
                load_row(row, 0, l, (t + first * LD) * REALS)
                conjugate(0, row)
            factor(row, tile, other, panel, pivots, i, bad, before + first, n - first)
            cuda.syncthreads()
            update(l, acc, x, y, t, first + BLK, rows - first - BLK)
            cuda.syncthreads()

        # (4) back to A; L by the last block, once all have read A11, and the first bad pivot
        write_rows(mine, rows_below, a_rs, a_cs, t, left, n)
        if is_last:
            wait(flags, t)
            write(a, l, a_rs, a_cs, t, n, 0)
            if t == rows - 1:  # which has met all pivots
                store_relaxed(info, 0, bad[0])

    return potrf_panel
