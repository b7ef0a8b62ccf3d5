"""``symv``: the products of a symmetric or Hermitian A with x, from one triangle that is read once.

A block has some tiles of one row of tiles. Each element of A it uses twice: for its row, in registers, and
for its column, as its mirror image. The sums go to *slots*, vectors as long as y, which `symv_sum` adds up.
Tiles are counted from the corner of the triangle where its rows are short. Row p of tiles leaves the sums of
its columns in slot p + 1, and those of its own rows, of each block, in slots from 0 on: element tile q of
slot s is there for s <= q // TILES and for s > q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ..common.kernel_config import require_warps
from ..common.options import CONJUGATE, HERMITIAN, UPPER
from ..common.parameters import parameters
from .config import WARP, VectorLoads
from .sums import tree_adder

__all__ = ["Symv", "source"]

PARAMETERS = parameters(
    "pointer: a, x, w",
    "int32: n, tiles, bits",
    "int64: rs, cs, inc, ldw, stride_a, stride_x, stride_w",
)


@dataclass(frozen=True)
class Symv(VectorLoads):
    """Config of one `symv` kernel.

    Attributes
    ----------
    WARPS : int
        Warps of a block, each with columns of its own.
    THR_M : int
        Rows of a thread; those of a warp are the rows of a tile.
    THR_N : int
        Columns of which a warp loads elements at a time.
    """

    WARPS: int = 8
    THR_M: int = 4
    THR_N: int = 4

    STEM: ClassVar[str] = "symv"
    RESIDENT: ClassVar[int] = 512

    def __post_init__(self):
        super().__post_init__()
        require_warps(WARP=WARP, WARPS=self.WARPS)
        require(self.WARPS & (self.WARPS - 1) == 0, "tree", "WARPS is a power of two", WARPS=self.WARPS)
        require(self.THR_M % self.VEC == 0, "vectors", "THR_M % VEC == 0", THR_M=self.THR_M, VEC=self.VEC)
        require(
            self.THR_N in (1, 2, 4, 8, 16) and self.BLK % (self.WARPS * self.THR_N) == 0,
            "columns",
            "THR_N in (1, 2, 4, 8, 16) and 32 * THR_M % (WARPS * THR_N) == 0",
            WARPS=self.WARPS,
            THR_M=self.THR_M,
            THR_N=self.THR_N,
        )

    @property
    def threads(self) -> int:
        return WARP * self.WARPS

    @property
    def BLK(self) -> int:
        """Rows and columns of a tile."""
        return WARP * self.THR_M

    @property
    def shared_bytes(self) -> int:
        """Bytes of the lanes' sums of columns, by warp; then of all warps' sums of rows."""
        columns, rows = self.WARPS * self.THR_N * (WARP + 1), self.WARPS * (self.BLK | 1)
        return max(columns, rows) * self.dtype_facts.itemsize

    def strips(self, n: int) -> int:
        """Rows of tiles."""
        return -(-n // self.BLK)

    def tiles(self, n: int, batch: int, blocks: int) -> int:
        """Tiles of a block, so that there are about `blocks` blocks, but no more than 8."""
        strips = self.strips(n)
        return max(min(strips * (strips + 1) // 2 * batch // blocks, 8), 1)

    def grid(self, n: int, tiles: int) -> int:
        """Blocks; those beyond the end of a row of tiles have nothing to do."""
        return self.strips(n) * -(-self.strips(n) // tiles)

    @property
    def variants(self) -> tuple[Self, ...]:
        return tuple(dict.fromkeys((self, self.with_alignment(1))))


def source(config: Symv) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    a, x: pointer, A and x
    w: pointer, the slots, ``config.strips(n) + 1``
    n, tiles: int32, order, tiles of a block
    bits: int32, `CONJUGATE`, `HERMITIAN`, `UPPER`
    rs, cs: int64, row and column stride of A (elements)
    inc, ldw: int64, stride of x, from slot to slot (elements)
    stride_a, stride_x, stride_w: int64, batch strides (elements)

    Grid: x ``config.grid(n, tiles)``, z the batch. For loads of 16 bytes A has row stride 1, and vectors fit.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _row_of(config: Symv) -> Any:
    """``row(i, lane)``: which row of a tile the lane's row number `i` is."""
    VEC, STEP = config.VEC, WARP * config.VEC

    @device_function
    def row(i, lane):
        return lane * VEC + i // VEC * STEP + i % VEC

    return row


def _fetcher(config: Symv, masked: bool) -> Any:
    """``fetch(0, a, here, ...)``: a thread's elements of THR_N columns, zeros beyond A; if `masked`, beyond
    the triangle too, real by real. ``fetch_x(0, x, ...)``: THR_N elements of x.
    """
    facts, row_of = config.dtype_facts, _row_of(config)
    REALS, VEC, WIDTH, THR_M = facts.reals_per_element, config.VEC, config.WIDTH, config.THR_M
    GROUPS, STEP, load, load_real = (
        THR_M // VEC,
        WARP * VEC,
        ptx.load_global(WIDTH, False),
        ptx.load_global(1, False),
    )

    @device_function
    def fetch_vector(e, a, here, rs, cs, lane, rows, cols, inside, upper):
        g, u = e % GROUPS, e // GROUPS
        ok = (lane * VEC + g * STEP < rows) & (u < cols)
        for part in range(0, VEC * REALS, WIDTH):
            load(a, e * VEC * REALS + part, here, (g * STEP * rs + u * cs) * REALS + part, ok)

    @device_function
    def fetch_element(e, a, here, rs, cs, lane, rows, cols, inside, upper):
        i, u = e % THR_M, e // THR_M
        row = row_of(i, lane)
        distance = row - (inside + u)  # how far below the diagonal
        ok = (row < rows) & (u < cols) & (distance <= 0 if upper else distance >= 0)
        for part in range(REALS):
            load_real(a, e * REALS + part, here, ((row - lane * VEC) * rs + u * cs) * REALS + part, ok)

    @device_function
    def fetch_x(u, x, there, inc, cols):
        for part in range(REALS):
            load_real(x, u * REALS + part, there, u * inc * REALS + part, u < cols)

    count = config.THR_N * (THR_M if masked else GROUPS)
    return unrolled(count, fetch_element if masked else fetch_vector), unrolled(config.THR_N, fetch_x)


def _multiplier(config: Symv, masked: bool) -> Any:
    """``multiply(0, acc, columns, a, x, mine, ...)``: acc += a x, and columns += a' mine, mirror images."""
    facts, row_of, select = config.dtype_facts, _row_of(config), ptx.select
    REALS, COMPLEX, THR_M, real = (
        facts.reals_per_element,
        facts.is_complex,
        config.THR_M,
        ptx.REALS[facts.real],
    )

    @device_function
    def multiply(e, acc, columns, a, x, mine, lane, inside, upper, hermitian, sign, mirror):
        i, u = e % THR_M, e // THR_M
        to, of = i * REALS, u * REALS
        x_re, x_im, m_re, m_im = x[of], x[of], mine[to], mine[to]
        if COMPLEX:
            x_im, m_im = x[of + 1], mine[to + 1]
        re, im = a[e * REALS], a[e * REALS]
        if COMPLEX:
            im = a[e * REALS + 1]
        if masked:
            distance = row_of(i, lane) - (inside + u)
            here, across = (
                (distance <= 0 if upper else distance >= 0),
                (distance < 0 if upper else distance > 0),
            )
            x_re, x_im = select(here, x_re, real(0)), select(here, x_im, real(0))
            m_re, m_im = select(across, m_re, real(0)), select(across, m_im, real(0))
            im = select((distance == 0) & hermitian, real(0), im)
        if COMPLEX:
            own, other = sign * im, mirror * im
            acc[to] += re * x_re
            acc[to] -= own * x_im
            acc[to + 1] += re * x_im
            acc[to + 1] += own * x_re
            columns[of] += re * m_re
            columns[of] -= other * m_im
            columns[of + 1] += re * m_im
            columns[of + 1] += other * m_re
        else:
            acc[to] += re * x_re
            columns[of] += re * m_re

    return unrolled(config.THR_N * THR_M, multiply)


def _column_adder(config: Symv) -> Any:
    """``add(w, shared, columns, lane, cols)``: a warp's sums of columns, of all lanes, go to a slot."""
    REALS, THR_N, real = (
        config.dtype_facts.reals_per_element,
        config.THR_N,
        ptx.REALS[config.dtype_facts.real],
    )
    LD, LINES, sync_warp, store = WARP + 1, WARP // THR_N, ptx.sync_warp, ptx.store_global

    @device_function
    def keep(u, shared, columns, lane):
        for part in range(REALS):
            shared[(u * LD + lane) * REALS + part] = columns[u * REALS + part]

    keep_all = unrolled(THR_N, keep)

    @device_function
    def add(w, shared, columns, lane, cols):
        keep_all(0, shared, columns, lane)
        sync_warp()
        u, line = lane % THR_N, lane // THR_N
        for part in range(REALS):
            total = real(0)
            for i in range(THR_N):
                total += shared[(u * LD + i * LINES + line) * REALS + part]
            shared[(u * LD + line) * REALS + part] = total
        sync_warp()
        for part in range(REALS):
            total = real(0)
            for i in range(LINES):
                total += shared[(u * LD + i) * REALS + part]
            store(w, u * REALS + part, total, (line == 0) & (u < cols))
        sync_warp()

    return add


def _stepper(config: Symv, masked: bool) -> Any:
    """``run(acc, ...)``: the columns of this warp from `first` to `end`, THR_N at a time."""
    REALS, STEP, SIZE = (
        config.dtype_facts.reals_per_element,
        config.WARPS * config.THR_N,
        config.THR_N * config.dtype_facts.reals_per_element,
    )
    int32, int64, offset, zero, real = (
        ptx.types.int32,
        ptx.types.int64,
        ptx.offset,
        ptx.fill(SIZE),
        ptx.REALS[config.dtype_facts.real],
    )
    (fetch, fetch_x), multiply, add = (
        _fetcher(config, masked),
        _multiplier(config, masked),
        _column_adder(config),
    )

    @device_function
    def run(
        acc, columns, held, x_held, mine, a_here, x, w, shared, rs, cs, inc, lane, row0, rows, first, end,
        upper, hermitian, sign, mirror,
    ):  # fmt: skip
        while first < end:
            left, inside, at = int32(end - first), int32(first - row0), int64(first)
            fetch(0, held, offset(a_here, at * cs * REALS), rs, cs, lane, rows, left, inside, upper)
            fetch_x(0, x_held, offset(x, at * inc * REALS), inc, left)
            zero(columns, real(0))
            multiply(0, acc, columns, held, x_held, mine, lane, inside, upper, hermitian, sign, mirror)
            add(offset(w, at * REALS), shared, columns, lane, left)
            first = int32(first + STEP)

    return run


def _ranges(config: Symv) -> Any:
    """``ranges(p, column_slice, n, tiles, upper)``: first row of the tiles; first column and the one past the
    last of those that a block has whole; whether it has the tile on the diagonal.
    """
    BLK, int32 = config.BLK, ptx.types.int32

    @device_function
    def ranges(p, column_slice, n, tiles, upper):
        strips = int32((n + BLK - 1) // BLK)
        begin, stop = int32(column_slice * tiles), min(int32((column_slice + 1) * tiles), p)
        row0, first, end = int32(p * BLK), int32(begin * BLK), int32(stop * BLK)
        if upper:
            row0 = int32((strips - 1 - p) * BLK)
            first, end = int32((strips - stop) * BLK), int32(min(int32((strips - begin) * BLK), n))
        return row0, first, end, begin <= p and p < begin + tiles

    return ranges


def _keeper(config: Symv) -> Any:
    """``keep(0, shared, acc, lane, warp)``: a thread's sums of rows go to shared memory; ``take(0, mine, x,
    ...)``: its elements of x."""
    REALS, LD, row_of = config.dtype_facts.reals_per_element, config.BLK | 1, _row_of(config)
    load = ptx.load_global(1, False)

    @device_function
    def keep(i, shared, acc, lane, warp):
        for part in range(REALS):
            shared[(warp * LD + row_of(i, lane)) * REALS + part] = acc[i * REALS + part]

    @device_function
    def take(i, mine, x, inc, lane, rows):
        row = row_of(i, lane)
        for part in range(REALS):
            load(mine, i * REALS + part, x, row * inc * REALS + part, row < rows)

    return unrolled(config.THR_M, keep), unrolled(config.THR_M, take)


def _build(config: Symv):
    facts, BLK, THR_N, THREADS = config.dtype_facts, config.BLK, config.THR_N, config.threads
    REALS, real, VEC = facts.reals_per_element, ptx.REALS[facts.real], config.VEC
    A, ROWS, COLS, AREA = (
        THR_N * config.THR_M * REALS,
        config.THR_M * REALS,
        THR_N * REALS,
        THR_N * (WARP + 1) * REALS,
    )
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, quotient, zero, store = (
        ptx.grid_dependency_wait,
        ptx.quotient,
        ptx.fill(ROWS),
        ptx.store_global,
    )
    run, run_diagonal, ranges = _stepper(config, False), _stepper(config, True), _ranges(config)
    (keep, take), add_warps = _keeper(config), tree_adder(facts, config.WARPS, BLK, THREADS)
    CONJ_A_, HERMITIAN_, UPPER_ = CONJUGATE, HERMITIAN, UPPER

    def symv(a, x, w, n, tiles, bits, rs, cs, inc, ldw, stride_a, stride_x, stride_w):
        # (1) the tiles of this block, the rows of this thread
        t = int32(cuda.threadIdx.x & 1023)
        lane, warp = t % 32, t // 32
        upper, hermitian = bits & UPPER_ != 0, bits & HERMITIAN_ != 0
        strips = int32((n + BLK - 1) // BLK)
        column_slice = quotient(int32(cuda.blockIdx.x), strips)
        p, batch = int32(cuda.blockIdx.x - column_slice * strips), int64(cuda.blockIdx.z)
        row0, first, end, has_diagonal = ranges(p, column_slice, n, tiles, upper)
        rows = int32(n - row0)
        a_here = offset(a, (batch * stride_a + (row0 + lane * VEC) * int64(rs)) * REALS)
        x, w = offset(x, batch * stride_x * REALS), offset(w, batch * stride_w * REALS)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        mine, area = cuda.local.array(ROWS, real), offset(shared, warp * AREA)
        acc, columns = cuda.local.array(ROWS, real), cuda.local.array(COLS, real)
        held, x_held = cuda.local.array(A, real), cuda.local.array(COLS, real)
        sign = real(-1 if bits & CONJ_A_ else 1)
        mirror = -sign if hermitian else sign
        zero(acc, real(0))

        # (2) the elements of the triangle, each for its row and its column
        grid_dependency_wait()
        if column_slice * tiles > p:
            return
        take(0, mine, offset(x, row0 * int64(inc) * REALS), inc, lane, rows)
        slot, mine_first = offset(w, int64(p + 1) * ldw * REALS), int32(warp * THR_N)
        run(
            acc, columns, held, x_held, mine, a_here, x, slot, area, rs, cs, inc, lane, row0, rows,
            int32(first + mine_first), end, upper, hermitian, sign, mirror,
        )  # fmt: skip
        if has_diagonal:
            run_diagonal(
                acc, columns, held, x_held, mine, a_here, x, slot, area, rs, cs, inc, lane, row0, rows,
                int32(row0 + mine_first), min(int32(row0 + BLK), n), upper, hermitian, sign, mirror,
            )  # fmt: skip

        # (3) the sums of the rows
        cuda.syncthreads()
        keep(0, shared, acc, lane, warp)
        add_warps(shared, t)
        there = offset(w, (column_slice * int64(ldw) + row0) * REALS)
        for e in range(t, min(rows, BLK) * REALS, THREADS):
            store(there, e, shared[e], True)

    return symv
