"""``potrf_leaf``: the Cholesky factor of small Hermitian matrices in place, a block of threads each.

The matrix is in shared memory. Panels of BLK columns are factored one after the other, a thread a row, the
row's part of the panel in registers. Four columns at a time: all threads factor the four-by-four block of
pivots themselves, so that two barriers serve four columns. Then what is right of the panel is updated in
tiles of four by four.

On request it looks first whether the matrix is so near the identity that half of the difference from that,
with half of the diagonal, is as good as the factor is.

The chain of pivots is what the kernel takes. Nothing in it waits for another block, for a division or a
square root. A pivot that is not positive stops nothing: it is noted, and what follows it is worth nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.parameters import parameters
from ..triangles.leaf_config import TriangleInShared
from ..triangles.triangle_copy import triangle_loader, triangle_writer
from .cholesky_panel import GROUP, conjugator, diagonal_tile, panel_factor, trailing_update

__all__ = ["CLEAN", "NEAR", "STEM", "PotrfLeaf", "source"]

STEM = "potrf_leaf"
#: Bits of an option: the strict upper triangle becomes zero; the matrix is probably near the identity.
CLEAN, NEAR = 1, 2
#: The largest sum of squares of a row of U, for which I + U is a factor of I + U + U^H: the unit roundoff, as
#: U^H U is left out. By bytes of a real.
NEGLIGIBLE = {4: 2.0**-24, 8: 2.0**-53}
PARAMETERS = parameters(
    "int32 pointer: info",
    "pointer: source, a",
    "int32: n, before, how",
    "int64: source_rs, source_cs, a_rs, a_cs, stride_info, stride_source, stride_a",
)


@dataclass(frozen=True)
class PotrfLeaf(TriangleInShared):
    """Config of one `potrf_leaf` kernel.

    Attributes
    ----------
    dtype, ORDER, DIM
        See `TriangleInShared`.
    BLK : int
        Columns of a panel, which a thread has in registers.
    """

    ORDER: int = 128
    DIM: int = 256
    BLK: int = 32

    STEM: ClassVar[str] = STEM
    ORDERS: ClassVar[tuple[int, ...]] = (16, 32, 64, 128)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.BLK > 0 and self.BLK % GROUP == 0 and self.ORDER % self.BLK == 0,
            "panels",
            f"BLK > 0 and BLK % {GROUP} == 0 and ORDER % BLK == 0",
            BLK=self.BLK,
            ORDER=self.ORDER,
        )

    def _with_order(self, order: int) -> PotrfLeaf:
        # one panel has nothing to its right, for which there would be more threads than rows
        blk = min(self.BLK, order)
        threads = order if order == blk else self.DIM * order // self.ORDER
        return replace(self, ORDER=order, BLK=blk, DIM=-(-threads // 32) * 32)

    @property
    def padding(self) -> int:
        # fragments of float64 then meet all banks
        return 2 * self.vector if self.dtype == "d" else self.vector

    @property
    def shared_elements(self) -> int:
        """L, and the block of pivots."""
        return self.ORDER * self.ld + GROUP * GROUP

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return (self.BLK + 3 * GROUP * GROUP) * self.dtype_facts.itemsize // 4 + 32


def source(config: PotrfLeaf) -> KernelSource:
    """The kernel of `config`, for the lower triangles of matrices of order n <= ORDER.

    Kernel parameters
    -----------------
    info: int32 pointer, info
    source, a: pointer, A and its factor, which may replace it
    n: int32, order
    before: int32, the rows of the whole matrix before A
    how: int32, the sum of `CLEAN` and `NEAR`, or 0
    source_rs, source_cs, a_rs, a_cs: int64, row and column stride of A and of its factor (elements)
    stride_info: int64, batch stride of info (words)
    stride_source, stride_a: int64, batch strides (elements)

    Grid: x one block, z the batch.

    Notes
    -----
    info becomes 0, or the number of the first pivot, from 1 on in the whole matrix, that is not positive.
    Where rows precede A, an info that is not 0 stays, and A as well.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _upper_clearer(config: PotrfLeaf):
    """``clear(l, t)``: zeros right of the diagonal in row t, where tiles on it left what is not of L."""
    facts, ORDER, LD, TILE = config.dtype_facts, config.ORDER, config.ld, diagonal_tile(config)
    REALS, real = facts.reals_per_element, ptx.REALS[facts.real]

    @device_function
    def clear(l, t):
        if t < ORDER:
            for j in range(t + 1, t // TILE * TILE + TILE):
                for part in range(REALS):
                    l[(t + j * LD) * REALS + part] = real(0)

    return clear


def _difference(config: PotrfLeaf):
    """``halve(l, t, n)``: whether row t, less that of the identity and half of the diagonal, has a negligible
    sum of squares; the diagonal is halved in `l` then, and only if all rows are so.
    """
    facts, LD = config.dtype_facts, config.ld
    REALS, real, LIMIT = facts.reals_per_element, ptx.REALS[facts.real], NEGLIGIBLE[facts.real_size]
    HALF, int32 = 0.5, ptx.types.int32

    @device_function
    def halve(l, t, n):
        total, middle = real(0), real(1)
        if t < n:
            for at in range(t * REALS, (t + t * LD) * REALS, LD * REALS):
                for part in range(REALS):
                    total += l[at + part] * l[at + part]
            middle = real(HALF) + real(HALF) * l[t * (LD + 1) * REALS]
            total += (middle - real(1)) * (middle - real(1))
        is_near = cuda.syncthreads_and(int32(total <= real(LIMIT))) != 0
        if is_near and t < n:
            l[t * (LD + 1) * REALS] = middle
        return is_near

    return halve


def _build(config: PotrfLeaf):
    facts, ORDER, BLK, LD = config.dtype_facts, config.ORDER, config.BLK, config.ld
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, load_acquire, store_relaxed = (
        ptx.grid_dependency_wait,
        ptx.load_acquire,
        ptx.store_relaxed,
    )
    ROW, TILE, OTHER = BLK * REALS, (GROUP + 1) * GROUP * REALS, config.vector * GROUP * REALS
    ACC, SPAN, PIVOTS = GROUP * GROUP * REALS, GROUP * REALS, ORDER * LD * REALS
    load, write = triangle_loader(config), triangle_writer(config, real_diagonal=True)
    clear, halve = _upper_clearer(config), _difference(config)
    load_row, conjugate = ptx.load_shared(REALS, BLK, LD * REALS), conjugator(config)
    factor, update = panel_factor(config), trailing_update(config)

    def potrf_leaf(
        info, source, a, n, before, how, source_rs, source_cs, a_rs, a_cs, stride_info, stride_source,
        stride_a,
    ):  # fmt: skip
        # (1) the matrix of this block, unless an earlier pivot of it was bad
        t, batch = cuda.threadIdx.x, int64(cuda.blockIdx.z)
        source, a = offset(source, batch * stride_source * REALS), offset(a, batch * stride_a * REALS)
        info = offset(info, batch * stride_info)
        l = shared_pointer(cuda.shared.array(0, real, alignment=16))
        pivots = offset(l, PIVOTS)
        row, tile, other = (
            cuda.local.array(ROW, real),
            cuda.local.array(TILE, real),
            cuda.local.array(OTHER, real),
        )
        acc, x, y = cuda.local.array(ACC, real), cuda.local.array(SPAN, real), cuda.local.array(SPAN, real)
        bad = cuda.local.array(1, int32)
        bad[0] = int32(0)
        grid_dependency_wait()
        if before > 0 and load_acquire(info, 0) != 0:
            return

        # (2) its lower triangle to shared memory, with ones on the diagonal beyond n
        load(l, source, source_rs, source_cs, t, n, 0)
        if n <= t and t < ORDER:
            l[t * (LD + 1) * REALS] = real(1)
        cuda.syncthreads()

        # (3) panel by panel, and what is right of each
        rows = (n + (BLK - 1)) // BLK * BLK
        left = rows
        if how & NEAR != 0 and halve(l, t, n):
            left = 0
        for first in range(0, left, BLK):
            i = t - first if t < rows else -1
            panel = offset(l, first * (LD + 1) * REALS)
            if i >= 0:
                load_row(row, 0, l, (t + first * LD) * REALS)
                conjugate(0, row)
            factor(row, tile, other, panel, pivots, i, bad, before + first, n - first)
            cuda.syncthreads()
            update(l, acc, x, y, t, first + BLK, rows - first - BLK)
            cuda.syncthreads()

        # (4) L to where A was, zeros above it on request, and the first bad pivot
        if how & CLEAN != 0:
            clear(l, t)
            cuda.syncthreads()
        write(a, l, a_rs, a_cs, t, n, -ORDER if how & CLEAN != 0 else 0)
        if t == rows - 1:  # which has met all pivots
            store_relaxed(info, 0, bad[0])

    return potrf_leaf
