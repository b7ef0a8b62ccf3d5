"""``potrf_leaf``: the Cholesky factor of small Hermitian matrices in place, a block of threads each.

The matrix is in shared memory. Panels of BLK columns are factored one after the other, a thread a row, the
row's part of the panel in registers. Four columns at a time: all threads factor the four-by-four block of
pivots themselves, so that two barriers serve four columns. Then what is right of the panel is updated in
tiles of four by four.

The chain of pivots is what the kernel takes. Nothing in it waits for another block, for a division or a
square root. A pivot that is not positive stops nothing: it is noted, and what follows it is worth nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ...errors import require
from ...gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ...gpu.compile import KernelSource
from .inverse_root import inverse_root
from .leaf_config import TriangleInShared
from .triangle_copy import triangle_loader, triangle_writer

__all__ = ["STEM", "PotrfLeaf", "plain_sources", "source"]

STEM = "potrf_leaf"
PARAMETERS = "pp ii qq qq".replace(" ", "")
GROUP = 4  # columns between barriers, and rows and columns of a tile


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
        smaller = super()._with_order(order)
        return replace(smaller, DIM=order) if order == self.BLK else smaller

    @property
    def shared_elements(self) -> int:
        """L, and the block of pivots."""
        return self.ORDER * self.lead + GROUP * GROUP

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return (self.BLK + 3 * GROUP * GROUP) * self.dtype_facts.itemsize // 4 + 32


def source(config: PotrfLeaf) -> KernelSource:
    """The kernel of `config`, for the lower triangles of matrices of order n <= ORDER.

    Returns
    -------
    KernelSource
        Its parameters are pointers to info and A; int32 n, and the rows of the whole matrix that come before
        A; int64 row and column stride of A, batch strides of info and A (elements). Grid: x one block, z the
        batch. An info is an int32 in the first bytes of its element.

    Notes
    -----
    info becomes 0, or the number of the first pivot, from 1 on in the whole matrix, that is not positive.
    Where rows come before A, an info that is not 0 stays, and A as well.
    """
    return KernelSource(
        name=STEM,
        config=config,
        flags=(),
        real=config.dtype_facts.real,
        parameters=PARAMETERS,
        threads=config.threads,
        min_blocks=1,
        shared_bytes=config.shared_bytes,
        build=lambda: _build(config),
    )


def plain_sources(config: PotrfLeaf) -> Iterator[KernelSource]:
    """The kernels of all orders."""
    orders = {config.serving(order) for order in config.ORDERS if order <= config.ORDER}
    return (source(each) for each in sorted(orders | {config}, key=lambda each: each.ORDER))


def _pivots(config: PotrfLeaf):
    """``factor(tile, bad, before)``: the tile's four rows of pivots and the thread's own row, by rows.

    They are conjugated. ``bad[0]`` is the first bad pivot, counted from 1, of which `before` come earlier.
    """
    facts, PARTS = config.dtype_facts, config.dtype_facts.reals_per_element
    COMPLEX, root = facts.is_complex, inverse_root(facts)
    int32, select = ptx.types.int32, ptx.select
    real = ptx.REALS[facts.real]

    def scaling(c):
        PIVOT = (c * GROUP + c) * PARTS

        @device_function
        def step(tile, bad, before):
            d = tile[PIVOT]
            is_bad = (bad[0] == 0) & (not d > real(0))
            bad[0] = select(is_bad, int32(before + (c + 1)), bad[0])
            r = root(d)
            for i in range(c + 1, GROUP + 1):
                for part in range(PARTS):
                    tile[(i * GROUP + c) * PARTS + part] *= r

        return step

    def elimination(c, j, i):
        Y, X, Z = ((row * GROUP + col) * PARTS for row, col in ((i, j), (i, c), (j, c)))

        @device_function
        def step(tile, bad, before):
            # tile[y] -= tile[x] conj(tile[z])
            if COMPLEX:
                re = tile[Y] - tile[X] * tile[Z] - tile[X + 1] * tile[Z + 1]
                tile[Y + 1] = tile[Y + 1] - tile[X + 1] * tile[Z] + tile[X] * tile[Z + 1]
                tile[Y] = re
            else:
                tile[Y] = tile[Y] - tile[X] * tile[Z]

        return step

    steps = []
    for c in range(GROUP):
        steps.append(scaling(c))
        steps += [elimination(c, j, i) for j in range(c + 1, GROUP) for i in range(j, GROUP + 1)]
    return in_order(steps)


def _conjugator(config: PotrfLeaf):
    """``conjugate(0, row)``: the first BLK elements of a thread's row."""
    COMPLEX = config.dtype_facts.is_complex

    @device_function
    def conjugate(k, row):
        if COMPLEX:
            row[2 * k + 1] = -row[2 * k + 1]

    return unrolled(config.BLK, conjugate)


def _group_steps(config: PotrfLeaf, g: int):
    """What is done to the four columns `g` of a panel: ``give``, ``eliminate`` and ``update``, all of
    ``(row, tile, other, panel, pivots, i, bad, before)``, with row `i` of the panel.
    """
    PARTS, LEAD, VEC = config.dtype_facts.reals_per_element, config.lead, config.vector
    FIRST, OWN = g * GROUP, GROUP * GROUP * PARTS
    SPAN = GROUP * PARTS
    COMPLEX = config.dtype_facts.is_complex
    load_pivots, factor = (
        ptx.load_shared(VEC * PARTS, SPAN * GROUP // (VEC * PARTS), VEC * PARTS),
        _pivots(config),
    )
    load_rows = ptx.load_shared(VEC * PARTS, GROUP, LEAD * PARTS)

    @device_function
    def give(row, tile, other, panel, pivots, i, bad, before):
        if (i >= FIRST) & (i < FIRST + GROUP):
            for x in range(SPAN):
                pivots[(i - FIRST) * SPAN + x] = row[FIRST * PARTS + x]

    @device_function
    def eliminate(row, tile, other, panel, pivots, i, bad, before):
        load_pivots(tile, 0, pivots, 0)
        for x in range(SPAN):
            tile[OWN + x] = row[FIRST * PARTS + x]
        factor(tile, bad, before + FIRST)
        if i >= FIRST:
            for c in range(GROUP):
                at = (i + (FIRST + c) * LEAD) * PARTS
                panel[at] = tile[OWN + c * PARTS]
                if COMPLEX:
                    panel[at + 1] = -tile[OWN + c * PARTS + 1]
        for x in range(SPAN):  # what is subtracted
            tile[x] = -tile[OWN + x]

    def column_update(k):
        places = tuple((k + v) * PARTS for v in range(VEC))
        add = ptx.shifted_update(1, VEC, GROUP, PARTS, False, places, places)

        @device_function
        def step(row, tile, other, panel, pivots, i, bad, before):
            # row[k] -= l[i] conj(l[k]), all of it conjugated but l[k]
            load_rows(other, 0, panel, (k + FIRST * LEAD) * PARTS)
            add(row, tile, other)

        return step

    @device_function
    def nothing(row, tile, other, panel, pivots, i, bad, before):
        pass

    columns = range(FIRST + GROUP, config.BLK, VEC)
    return give, eliminate, in_order([column_update(k) for k in columns] or [nothing])


def _panel_factor(config: PotrfLeaf):
    """``factor(row, tile, other, panel, pivots, i, bad, before)``: a panel, by threads of row `i` of it; rows
    above it have i < 0, threads without one as well.
    """

    def group(g):
        give, eliminate, update = _group_steps(config, g)

        @device_function
        def step(row, tile, other, panel, pivots, i, bad, before):
            give(row, tile, other, panel, pivots, i, bad, before)
            cuda.syncthreads()
            if i >= 0:
                eliminate(row, tile, other, panel, pivots, i, bad, before)
            cuda.syncthreads()
            if i >= 0:
                update(row, tile, other, panel, pivots, i, bad, before)

        return step

    return in_order([group(g) for g in range(config.BLK // GROUP)])


def _trailing_update(config: PotrfLeaf):
    """``update(l, acc, x, y, t, first, rows)``: rows and columns from `first` on, `rows` of them, minus the
    product of the BLK columns before them with their conjugate transpose; lower triangle, a tile a thread.
    """
    facts, PARTS, LEAD, VEC = (
        config.dtype_facts,
        config.dtype_facts.reals_per_element,
        config.lead,
        config.vector,
    )
    BLK, THREADS, SPAN, offset = config.BLK, config.threads, GROUP * PARTS, ptx.offset
    TILE = GROUP * SPAN
    load = ptx.load_shared(VEC * PARTS, GROUP // VEC, VEC * PARTS)
    rank1, zero, real = (
        ptx.rank1_update(GROUP, GROUP, PARTS, False, True),
        ptx.fill(TILE),
        ptx.REALS[facts.real],
    )

    @device_function
    def product_step(kk, acc, x, y, left, right):
        load(x, 0, left, kk * LEAD * PARTS)
        load(y, 0, right, kk * LEAD * PARTS)
        rank1(acc, x, y)

    steps = unrolled(GROUP, product_step)

    @device_function
    def subtract(j, target, acc):
        for i in range(SPAN):
            target[j * LEAD * PARTS + i] -= acc[j * SPAN + i]

    subtract_all = unrolled(GROUP, subtract)

    @device_function
    def update(l, acc, x, y, t, first, rows):
        tiles = rows // GROUP
        for number in range(t, tiles * (tiles + 1) // 2, THREADS):
            i, j = 0, number
            while j > i:
                i += 1
                j -= i
            row, col = first + i * GROUP, first + j * GROUP
            columns = (first - BLK) * LEAD
            left, right = offset(l, (row + columns) * PARTS), offset(l, (col + columns) * PARTS)
            zero(acc, real(0))
            for k in range(0, BLK, GROUP):
                steps(k, acc, x, y, left, right)
            subtract_all(0, offset(l, (row + col * LEAD) * PARTS), acc)

    return update


def _build(config: PotrfLeaf):
    facts, ORDER, BLK, LEAD = config.dtype_facts, config.ORDER, config.BLK, config.lead
    real, PARTS = ptx.REALS[facts.real], facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, load_acquire, store_relaxed = (
        ptx.grid_dependency_wait,
        ptx.load_acquire,
        ptx.store_relaxed,
    )
    ROW, TILE, OTHER = BLK * PARTS, (GROUP + 1) * GROUP * PARTS, config.vector * GROUP * PARTS
    ACC, SPAN, PIVOTS = GROUP * GROUP * PARTS, GROUP * PARTS, ORDER * LEAD * PARTS
    load, write = triangle_loader(config), triangle_writer(config, real_diagonal=True)
    load_row, conjugate = ptx.load_shared(PARTS, BLK, LEAD * PARTS), _conjugator(config)
    factor, update = _panel_factor(config), _trailing_update(config)

    def potrf_leaf(info, a, n, before, a_rs, a_cs, stride_info, stride_a):
        # (1) the matrix of this block, unless an earlier pivot of it was bad
        t, batch = cuda.threadIdx.x, int64(cuda.blockIdx.z)
        a, info = offset(a, batch * stride_a * PARTS), offset(info, batch * stride_info * PARTS)
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
        load(l, a, a_rs, a_cs, t, n, 0)
        if n <= t and t < ORDER:
            l[t * (LEAD + 1) * PARTS] = real(1)
        cuda.syncthreads()

        # (3) panel by panel, and what is right of each
        rows = (n + (BLK - 1)) // BLK * BLK
        for first in range(0, rows, BLK):
            i = t - first if t < rows else -1
            panel = offset(l, first * (LEAD + 1) * PARTS)
            if i >= 0:
                load_row(row, 0, l, (t + first * LEAD) * PARTS)
                conjugate(0, row)
            factor(row, tile, other, panel, pivots, i, bad, before + first)
            cuda.syncthreads()
            update(l, acc, x, y, t, first + BLK, rows - first - BLK)
            cuda.syncthreads()

        # (4) L to where A was, and the first bad pivot
        write(a, l, a_rs, a_cs, t, n, 0)
        if t == rows - 1:  # which has met all pivots
            store_relaxed(info, 0, bad[0])

    return potrf_leaf
