"""``trsm_mma``: T X = alpha * B in place, T lower triangular of small order, on the tensor cores.

Columns of B are independent. A warp owns a few and keeps all their rows in registers, as accumulators of
``mma.sync``; the warps of a block share only what comes of T. A tile of BLK rows after the other is solved
by substitution, a lane a column (see `substitution`), and goes into the rows below at once: rows below +=
-T X. T passes in *strips*, all that lies below a diagonal tile, through a ring in shared memory (see
`trsm_strips`).

A row of a diagonal tile is divided by its diagonal element beforehand, for all tiles at once, and so is what
is to be solved: substitution then is nothing but multiply-adds. This costs one more rounding of each element
than dividing last. Where a division is not safe, or the outcome not finite, the tile is solved again with
true divisions last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..errors import require
from ..gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ..gpu.compile import KernelSource
from ..types import DTYPES, Dtype
from .gemm_mma import SHAPES
from .substitution import (
    careful_solver,
    column_reader,
    column_writer,
    panel_writer,
    quotient,
    steps,
)
from .triangle import Variant, panel_source
from .trsm_strips import row_divider, strip_steps, tile_starters

__all__ = ["STEM", "TrsmMma", "source"]

STEM = "trsm_mma"
#: Rows that are updated without asking between whether there are so many: the loads of one tile hide behind
#: the products of another.
UNASKED = 32


@dataclass(frozen=True)
class TrsmMma:
    """Config of one `trsm_mma` kernel.

    Attributes
    ----------
    dtype : str
        'd' or 'z'.
    ORDER : int
        The largest order of T.
    BLK : int
        Rows of a tile.
    WARPS : int
        Warps of a block.
    WARP_N : int
        Columns of B a warp owns.
    MMA_M, MMA_K : int
        Shape of an instruction, one of `gemm_mma.SHAPES`; its N is 8.
    stages : int
        Strips of T in the shared-memory ring, at least 2.
    min_blocks : int
        Blocks a multiprocessor must be able to hold.
    """

    dtype: str
    ORDER: int
    BLK: int
    WARPS: int
    WARP_N: int = 8
    MMA_M: int = 16
    MMA_K: int = 16
    stages: int = 2
    min_blocks: int = 1

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        require(self.dtype in "dz", "double", "dtype in (d, z)", dtype=self.dtype)
        shape = self.MMA_M, self.MMA_K
        require(shape in SHAPES, "shape", f"(MMA_M, MMA_K) in {list(SHAPES)}", MMA_M=shape[0], MMA_K=shape[1])
        require(
            self.BLK % self.MMA_M == 0 and self.BLK % self.MMA_K == 0,
            "tile", "BLK % MMA_M == 0 and BLK % MMA_K == 0",
            BLK=self.BLK, MMA_M=self.MMA_M, MMA_K=self.MMA_K,
        )  # fmt: skip
        require(
            self.ORDER >= self.BLK > 0 and self.ORDER % self.BLK == 0,
            "order", "ORDER >= BLK > 0 and ORDER % BLK == 0", ORDER=self.ORDER, BLK=self.BLK,
        )  # fmt: skip
        require(self.WARP_N in (8, 16, 32), "lane_columns", "WARP_N in (8, 16, 32)", WARP_N=self.WARP_N)
        require(self.stages >= 2, "ring", "stages >= 2", stages=self.stages)
        require(1 <= self.threads <= 1024, "max_threads", "1 <= 32 * WARPS <= 1024", WARPS=self.WARPS)

    @cached_property
    def dtype_facts(self) -> Dtype:
        return DTYPES[self.dtype]

    @property
    def needs(self) -> tuple[int, int]:
        """The compute capability that the instruction needs."""
        return SHAPES[self.MMA_M, self.MMA_K]

    @property
    def threads(self) -> int:
        return 32 * self.WARPS

    @property
    def BLK_M(self) -> int:
        return self.BLK

    @property
    def BLK_N(self) -> int:
        return self.WARPS * self.WARP_N

    @property
    def THR_M(self) -> int:
        return self.ORDER // 8

    @property
    def THR_N(self) -> int:
        return self.WARP_N // 4

    @property
    def tiles(self) -> int:
        """Tiles along the diagonal."""
        return self.ORDER // self.BLK

    @property
    def pad(self) -> int:
        """Elements between lines in shared memory that keep the loads of fragments free of conflicts."""
        return 4 // self.dtype_facts.parts

    @property
    def row_of_panel(self) -> int:
        """Elements from one row of a warp's panel to the next in shared memory."""
        return self.WARP_N + self.pad

    @property
    def panel_elements(self) -> int:
        """A warp's panel: what is to be solved, and the same divided by the diagonal."""
        return 2 * self.BLK * self.row_of_panel

    @property
    def stage_elements(self) -> int:
        """A strip, by rows or by columns."""
        height = self.ORDER - self.BLK
        return max(height * (self.BLK + self.pad), self.BLK * (height + self.pad))

    @property
    def shared_elements(self) -> int:
        """The ring, the diagonal tiles, the inverses of the diagonal, the warps' panels."""
        diagonal = self.ORDER * (self.BLK + 1)
        return self.stages * self.stage_elements + diagonal + self.WARPS * self.panel_elements

    @property
    def shared_bytes(self) -> int:
        return self.shared_elements * self.dtype_facts.itemsize

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: its part of B, and either a column of a tile or fragments
        of T and of X.
        """
        fragments = self.BLK * (self.BLK + self.WARP_N) // 32
        elements = self.THR_M * self.THR_N + max(self.BLK, fragments)
        return elements * self.dtype_facts.itemsize // 4

    @property
    def reuse(self) -> float:
        """FMAs for each element loaded from shared memory."""
        return self.dtype_facts.reuse(self.BLK, self.WARP_N)

    def grid(self, columns: int) -> int:
        """Blocks along x for `columns` columns of B."""
        return -(-columns // self.BLK_N)


def source(config: TrsmMma, variant: Variant) -> KernelSource:
    """The kernel of `config` for n <= ORDER; parameters and grid as in `triangle.panel_source`."""
    return panel_source(STEM, config, variant, _build)


def _accumulators(config: TrsmMma):
    """``read(acc, b, row_stride, col_stride, g, q, rows, cols)``: a warp's columns of B, from lane (g, q),
    and ``scale(acc, alpha, alpha_i)``.

    Of each tile a lane has rows g, g + 8, ... and, of each eight columns, columns 2q and 2q + 1; they lie
    tile after tile, column by column.
    """
    facts, BLK, COLUMNS = config.dtype_facts, config.BLK, config.THR_N
    PARTS, GROUPS = facts.parts, BLK // 8
    load, COUNT = ptx.load_global(PARTS, False), config.THR_M * COLUMNS

    @device_function
    def read_element(e, acc, b, row_stride, col_stride, g, q, rows, cols):
        tile, col, group = e // (COLUMNS * GROUPS), e // GROUPS % COLUMNS, e % GROUPS
        i, j = tile * BLK + group * 8 + g, col // 2 * 8 + 2 * q + col % 2
        load(acc, e * PARTS, b, (i * row_stride + j * col_stride) * PARTS, (i < rows) & (j < cols))

    @device_function
    def scale_element(e, acc, alpha, alpha_i):
        x = e * PARTS
        if PARTS == 2:
            re, im = acc[x], acc[x + 1]
            acc[x], acc[x + 1] = alpha * re - alpha_i * im, alpha * im + alpha_i * re
        else:
            acc[x] = alpha * acc[x]

    return unrolled(COUNT, read_element), unrolled(COUNT, scale_element)


def _presenter(config: TrsmMma, variant: Variant):
    """``put(acc, line, panel, scaled, diagonal, inverse, g, q)``: the first tile's right-hand sides into the
    warp's panel, and divided by the diagonal into `scaled`.
    """
    facts, BLK, COLUMNS, ROW = config.dtype_facts, config.BLK, config.THR_N, config.row_of_panel
    real, PARTS, UNIT, GROUPS = ptx.REALS[facts.real], facts.parts, variant.unit, config.BLK // 8
    CONJ, divided = -1 if variant.conj else 1, quotient(facts, ptx.inlined, False)

    @device_function
    def load_divisor(group, line, diagonal, inverse, g):
        row, x = group * 8 + g, group * 2 * PARTS
        line[x], line[x + PARTS] = diagonal[row * (BLK + 1) * PARTS], inverse[row * PARTS]
        if PARTS == 2:
            line[x + 1] = real(CONJ) * diagonal[row * (BLK + 1) * PARTS + 1]
            line[x + 3] = real(CONJ) * inverse[row * PARTS + 1]

    @device_function
    def put_element(e, acc, line, panel, scaled, g, q):
        col, group = e // GROUPS, e % GROUPS
        at = ((group * 8 + g) * ROW + col // 2 * 8 + 2 * q + col % 2) * PARTS
        x, d = e * PARTS, group * 2 * PARTS
        if PARTS == 2:
            re, im = -acc[x], -acc[x + 1]
            panel[at], panel[at + 1] = re, im
            if not UNIT:
                scaled[at], scaled[at + 1] = divided(re, im, line[d], line[d + 1], line[d + 2], line[d + 3])
        else:
            panel[at] = -acc[x]
            if not UNIT:
                scaled[at] = divided(-acc[x], line[d], line[d + 1])

    load_divisors, put_elements = unrolled(GROUPS, load_divisor), unrolled(GROUPS * COLUMNS, put_element)

    @device_function
    def put(acc, line, panel, scaled, diagonal, inverse, g, q):
        if not UNIT:
            load_divisors(0, line, diagonal, inverse, g)
        put_elements(0, acc, line, panel, scaled, g, q)

    return put


def _solver(config: TrsmMma, variant: Variant):
    """``solve(column, panel, scaled, diagonal, tile, t_rs, t_cs, lane, rows, safe)``: the panel, a lane a
    column; `tile` is the diagonal tile in T itself.

    What is not finite in a column stays so down to its last row.
    """
    facts, BLK, WARP_N, UNIT = config.dtype_facts, config.BLK, config.WARP_N, variant.unit
    real, PARTS, ROW = ptx.REALS[facts.real], facts.parts, config.row_of_panel * facts.parts
    LAST, INFINITY, offset = (BLK - 1) * PARTS, float("inf"), ptx.offset
    read, write = column_reader(PARTS, BLK, ROW), column_writer(PARTS, BLK, ROW)
    substitute = steps(facts, BLK, variant.conj, False, 2)
    substitute_carefully = careful_solver(facts, ROW, variant.conj, True)

    @device_function
    def solve(column, panel, scaled, diagonal, tile, t_rs, t_cs, lane, rows, safe):
        if lane < WARP_N:
            mine = offset(panel, lane * PARTS)
            read(column, offset(scaled, lane * PARTS))
            substitute(column, diagonal, diagonal)
            size = max(abs(column[LAST]), abs(column[LAST + PARTS - 1]))
            if UNIT or (safe and size < real(INFINITY)):
                write(column, mine)
            else:
                substitute_carefully(mine, tile, t_rs, t_cs, rows)

    return solve


def _updater(config: TrsmMma, variant: Variant):
    """``update(acc, rt, rx, strip, panel, g, q, below)``: the rows below += T X, of so many tiles, with X in
    the panel; the tiles of `acc` move up by one.

    What a run of tiles finds beyond the last is of no meaning, and so is what it makes of it.
    """
    PARTS, BLK = config.dtype_facts.parts, config.BLK
    LAST, RUN = config.tiles - 2, max(UNASKED // BLK, 1)
    GROUPS, TILE = BLK // 8, BLK // 8 * config.THR_N * PARTS
    STEP_ROW, STEP_COL = (step * PARTS for step in strip_steps(config, variant.t_by_rows))
    instructions = BLK // config.MMA_M, config.WARP_N // 8, (config.MMA_M, config.MMA_K), PARTS, variant.conj
    load_tile = _fragment_loader(PARTS, GROUPS, 8 * STEP_ROW, BLK // 4, 4 * STEP_COL)
    load_panel = _fragment_loader(
        PARTS, config.WARP_N // 8, 8 * PARTS, BLK // 4, 4 * config.row_of_panel * PARTS
    )
    offset, ROW = ptx.offset, config.row_of_panel * PARTS

    def tile_update(i):
        multiply = ptx.warp_multiply(*instructions, False, BLK // config.MMA_K, i * TILE)

        @device_function
        def update_tile(acc, rt, rx, place, below):
            load_tile(0, rt, offset(place, i * BLK * STEP_ROW))
            for x in range(i * TILE, (i + 1) * TILE):
                acc[x] = acc[x + TILE]
            multiply(acc, rt, rx)

        return update_tile

    def update_from(first):
        update_tiles = in_order([tile_update(i) for i in range(first, min(first + RUN, LAST + 1))])
        go_on = update_from(first + RUN) if first + RUN <= LAST else _stop

        @device_function
        def update(acc, rt, rx, place, below):
            if below > first:
                update_tiles(acc, rt, rx, place, below)
                go_on(acc, rt, rx, place, below)

        return update

    update_all = update_from(0) if LAST >= 0 else _stop

    @device_function
    def update(acc, rt, rx, strip, panel, g, q, below):
        load_panel(0, rx, offset(panel, q * ROW + g * PARTS))
        update_all(acc, rt, rx, offset(strip, g * STEP_ROW + q * STEP_COL), below)

    return update


@device_function
def _stop(acc, rt, rx, place, below):
    """There are no more tiles."""


def _fragment_loader(parts: int, count: int, step: int, quarters: int, step_k: int):
    """``load(0, fragment, place)``: `count` elements, `step` reals apart, for each fourth k."""
    load = ptx.load_shared(parts, count, step)

    @device_function
    def load_quarter(s, fragment, place):
        load(fragment, s * (count * parts), place, s * step_k)

    return unrolled(quarters, load_quarter)


def _build(config: TrsmMma, variant: Variant):
    facts = config.dtype_facts
    real, PARTS = ptx.REALS[facts.real], facts.parts
    int64, offset, shared_pointer = ptx.types.int64, ptx.offset, ptx.shared_pointer
    BLK, WARPS, WARP_N, STAGES = config.BLK, config.WARPS, config.WARP_N, config.stages
    ACC, COLUMN = config.THR_M * config.THR_N * PARTS, BLK * PARTS
    FRAG_T, FRAG_X = BLK * BLK // 32 * PARTS, BLK * WARP_N // 32 * PARTS
    STAGE, TILE, PANEL = config.stage_elements * PARTS, BLK * BLK * PARTS, config.panel_elements * PARTS
    DIAGONALS = STAGES * STAGE
    INVERSE = DIAGONALS + config.ORDER * BLK * PARTS
    PANELS = INVERSE + config.ORDER * PARTS
    SCALED = 0 if variant.unit else PANEL // 2
    UNIT = variant.unit

    read, scale = _accumulators(config)
    start_diagonals, start_strip = tile_starters(config, variant)
    divide_rows, put = row_divider(config, variant), _presenter(config, variant)
    solve, update = _solver(config, variant), _updater(config, variant)
    write = panel_writer(PARTS, BLK, WARP_N, config.row_of_panel * PARTS, 32, variant.b_by_rows)
    wait_diagonals, wait = ptx.wait_async(STAGES - 1), ptx.wait_async(STAGES - 2)
    sync_warp = ptx.sync_warp

    def trsm_mma(tri, b, n, r, t_rs, t_cs, b_rs, b_cs, stride_t, stride_b, alpha, alpha_i):
        # (1) the columns of this warp, the place of this lane
        t = cuda.threadIdx.x & 1023  # the mask tells the compiler that it is not negative
        warp, lane, g, q = t // 32, t % 32, t % 32 // 4, t % 4
        col0, batch = (cuda.blockIdx.x * WARPS + warp) * WARP_N, int64(cuda.blockIdx.z)
        cols, tiles = r - col0, (n + BLK - 1) // BLK
        tri = offset(tri, batch * stride_t * PARTS)
        b = offset(b, (batch * stride_b + col0 * b_cs) * PARTS)
        ring = shared_pointer(cuda.shared.array(0, real, alignment=16))
        diagonals, inverse = offset(ring, DIAGONALS), offset(ring, INVERSE)
        panel = offset(ring, PANELS + warp * PANEL)
        scaled = offset(panel, SCALED)
        acc, column = cuda.local.array(ACC, real), cuda.local.array(COLUMN, real)
        rt, rx = cuda.local.array(FRAG_T, real), cuda.local.array(FRAG_X, real)

        # (2) B sets out, or rather what is to be solved negated; the diagonal tiles and the first strips
        read(0, acc, b, b_rs, b_cs, g, q, n, cols)
        start_diagonals(diagonals, tri, t_rs, t_cs, t, n, tiles)
        for j in range(STAGES - 1):
            start_strip(offset(ring, j * STAGE), tri, t_rs, t_cs, t, n, tiles, j)

        # (3) the rows of the diagonal tiles divided by the diagonal
        wait_diagonals()
        cuda.syncthreads()
        safe = True
        if not UNIT:
            safe = cuda.syncthreads_and(divide_rows(column, diagonals, inverse, t, n, tiles)) != 0
        scale(0, acc, -alpha, -alpha_i)

        for j in range(tiles):
            rows, diagonal = n - j * BLK, offset(diagonals, j * TILE)

            # (4) a tile of rows solved, in the panel
            put(acc, column, panel, scaled, diagonal, inverse, g, q)
            sync_warp()
            solve(column, panel, scaled, diagonal, tri, t_rs, t_cs, lane, min(rows, BLK), safe)
            sync_warp()

            # (5) the rows below are updated; meanwhile a strip that comes later sets out
            if rows > BLK:
                wait()
                cuda.syncthreads()
                later = offset(ring, (j + STAGES - 1) % STAGES * STAGE)
                start_strip(later, tri, t_rs, t_cs, t, rows, tiles - j, STAGES - 1)
                strip = offset(ring, j % STAGES * STAGE)
                update(acc, rt, rx, strip, panel, g, q, tiles - 1 - j)

            # (6) the tile goes back to B
            write(b, panel, b_rs, b_cs, lane, rows, cols)
            sync_warp()
            tri, b = offset(tri, BLK * (t_rs + t_cs) * PARTS), offset(b, BLK * b_rs * PARTS)
            inverse = offset(inverse, BLK * PARTS)

    return trsm_mma
