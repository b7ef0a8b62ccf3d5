"""The body of TRSM's leaves whose warps own columns of B, except the update.

    T X = alpha * B, T lower triangular of small order; X may be B

Columns of B are independent. A warp owns a few and keeps all their rows in registers, as accumulators; the
warps of a block share only the loads of T. A tile of BLK rows after the other is solved by substitution, a
lane a column (see `substitution`), and goes into the rows below at once: rows below += -T X. T passes in
*strips*, all that is below a diagonal tile, through a circular buffer in shared memory (`load_triangle`);
producer warps may load it, so that those that compute need not. A family supplies an `Updater`: how a warp
multiplies a strip with what is solved into its accumulators.

A row of a diagonal tile is divided by its diagonal element beforehand, for all tiles at once, and so is what
is to be solved: substitution then is nothing but multiply-adds. This costs one more rounding of each element
than dividing last. Where a division is not safe, or the outcome not finite, the tile is solved again with
true divisions last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ..common.options import CONJUGATE, UNIT
from ..common.parameters import parameters
from ..common.substitution import (
    column_reader,
    column_writer,
    exact_division_solver,
    panel_writer,
    quotient,
    steps,
)
from .config import TrsmConfig
from .load_triangle import row_divider, tile_starters

__all__ = ["UNPREDICATED_ROWS", "Updater", "source_with"]

PARAMETERS = parameters(
    "pointer: tri, b, x",
    "int32: n, r, options",
    "int64: t_rs, t_cs, b_rs, b_cs, x_rs, x_cs, stride_t, stride_b, stride_x",
    "real: alpha, alpha_i",
)
#: Rows that are updated without a check in between: the loads of one tile hide behind the products of
#: another.
UNPREDICATED_ROWS = 32


@dataclass(frozen=True)
class Updater:
    """A family's update, for the body: the rows below += T X, with X in a panel.

    Attributes
    ----------
    load : device function
        ``load(rx, panel, g, q)``: a lane's part of X.
    ptr_t : device function
        ``ptr_t(strip, tile, g, q)``: where a lane's part of a tile of a strip of T begins.
    steps : callable
        ``steps(first, stop, behind)``: device functions of ``(acc, rt, rx, ptr_t)`` that, one after
        the other, update a warp's tiles from `first` to `stop`; these move up by `behind` in `acc`.
    fragment_t, fragment_x : int
        Reals of the register arrays `rt` and `rx`.
    """

    load: Callable
    ptr_t: Callable
    steps: Callable[[int, int, int], list]
    fragment_t: int
    fragment_x: int


def _updates_left(config: TrsmConfig, updater: Updater, first: int, stop: int, behind: int) -> Callable:
    """``update(acc, rt, rx, ptr_t, tiles_left)``: tiles from `first` to `stop`, as far as `tiles_left` goes.

    They are checked in runs of `UNPREDICATED_ROWS` rows. Values that a run finds, and makes, beyond the last
    tile have no meaning.
    """
    if first >= stop:
        return device_function(_stop)
    end = min(first + max(UNPREDICATED_ROWS // config.BLK, 1), stop)
    update_run = in_order(updater.steps(first, end, behind))
    go_on = _updates_left(config, updater, end, stop, behind)

    @device_function
    def update(acc, rt, rx, ptr_t, tiles_left):
        if tiles_left > first:
            update_run(acc, rt, rx, ptr_t)
            go_on(acc, rt, rx, ptr_t, tiles_left)

    return update


def _stop(acc, rt, rx, ptr_t, tiles_left):
    """There are no more tiles."""


def _accumulators(config: TrsmConfig):
    """``read(acc, b, row_stride, col_stride, g, q, rows, cols)``: a warp's tiles of B, from lane (g, q), the
    first one at `b`, and ``scale(acc, alpha, alpha_i, sign)``: times alpha, imaginary parts times `sign`.

    Of each tile a lane has rows g, g + 8, ... and, of each eight columns, columns 2q and 2q + 1; they are
    tile after tile, column by column.
    """
    facts, BLK, COLUMNS = config.dtype_facts, config.BLK, config.THR_N
    REALS, GROUPS, STEP = facts.reals_per_element, BLK // 8, config.WARPS_PER_COLUMN_GROUP * BLK
    load, COUNT = ptx.load_global(REALS, False), config.THR_M * COLUMNS

    @device_function
    def read_element(e, acc, b, row_stride, col_stride, g, q, rows, cols):
        tile, col, group = e // (COLUMNS * GROUPS), e // GROUPS % COLUMNS, e % GROUPS
        i, j = tile * STEP + group * 8 + g, col // 2 * 8 + 2 * q + col % 2
        load(acc, e * REALS, b, (i * row_stride + j * col_stride) * REALS, (i < rows) & (j < cols))

    @device_function
    def scale_element(e, acc, alpha, alpha_i, sign):
        x = e * REALS
        if REALS == 2:
            re, im = acc[x], acc[x + 1]
            acc[x], acc[x + 1] = alpha * re - alpha_i * im, sign * (alpha * im + alpha_i * re)
        else:
            acc[x] = alpha * acc[x]

    return unrolled(COUNT, read_element), unrolled(COUNT, scale_element)


def _rhs_loader(config: TrsmConfig):
    """``load_rhs(acc, line, panel, scaled, diagonal, inverse, g, q, unit)``: the first tile's right-hand
    sides into the warp's panel, and divided by the diagonal into `scaled`.
    """
    facts, BLK, COLUMNS, ROW = config.dtype_facts, config.BLK, config.THR_N, config.row_of_panel
    real, REALS, GROUPS = ptx.REALS[facts.real], facts.reals_per_element, config.BLK // 8
    divided = quotient(facts, ptx.inlined, False)

    @device_function
    def load_divisor(group, line, diagonal, inverse, g):
        row, x = group * 8 + g, group * 2 * REALS
        line[x], line[x + REALS] = diagonal[row * (BLK + 1) * REALS], inverse[row * REALS]
        if REALS == 2:
            line[x + 1] = diagonal[row * (BLK + 1) * REALS + 1]
            line[x + 3] = inverse[row * REALS + 1]

    @device_function
    def load_one(group, line):
        x = group * 2 * REALS
        for part in range(REALS):
            line[x + part] = line[x + REALS + part] = real(0)
        line[x] = line[x + REALS] = real(1)

    @device_function
    def put_element(e, acc, line, panel, scaled, g, q):
        col, group = e // GROUPS, e % GROUPS
        at = ((group * 8 + g) * ROW + col // 2 * 8 + 2 * q + col % 2) * REALS
        x, d = e * REALS, group * 2 * REALS
        if REALS == 2:
            re, im = -acc[x], -acc[x + 1]
            panel[at], panel[at + 1] = re, im
            scaled[at], scaled[at + 1] = divided(re, im, line[d], line[d + 1], line[d + 2], line[d + 3])
        else:
            panel[at] = -acc[x]
            scaled[at] = divided(-acc[x], line[d], line[d + 1])

    load_divisors, load_ones = unrolled(GROUPS, load_divisor), unrolled(GROUPS, load_one)
    put_elements = unrolled(GROUPS * COLUMNS, put_element)

    @device_function
    def load_rhs(acc, line, panel, scaled, diagonal, inverse, g, q, unit):
        if unit:
            load_ones(0, line)
        else:
            load_divisors(0, line, diagonal, inverse, g)
        put_elements(0, acc, line, panel, scaled, g, q)

    return load_rhs


def _solver(config: TrsmConfig, exact_division: bool):
    """``solve(column, panel, scaled, diagonal, tile, t_rs, t_cs, lane, rows, safe, unit)``: the panel, a lane
    a column, and whether it was left as it was, since it came out not finite; `tile` is the diagonal tile in
    T itself.

    With `exact_division` such a column is solved by true divisions: what is not finite then stays so down to
    its last row. The other lanes wait: what they loaded too would take the time of shared memory.
    """
    facts, BLK, WARP_N = config.dtype_facts, config.BLK, config.WARP_N
    real, ROW = ptx.REALS[facts.real], config.row_of_panel * facts.reals_per_element
    REALS = facts.reals_per_element
    LAST, INFINITY, int32, offset = (BLK - 1) * REALS, float("inf"), ptx.types.int32, ptx.offset
    read, write = column_reader(REALS, BLK, ROW), column_writer(REALS, BLK, ROW)
    substitute = steps(facts, BLK, False, 16 // facts.real_size)
    substitute_by_exact_division = exact_division_solver(facts, ROW)

    @device_function
    def solve(column, panel, scaled, diagonal, tile, t_rs, t_cs, lane, rows, safe, unit):
        left = int32(0)
        if lane < WARP_N:
            mine = offset(panel, lane * REALS)
            read(column, offset(scaled, lane * REALS))
            substitute(column, diagonal, diagonal)
            size = max(abs(column[LAST]), abs(column[LAST + REALS - 1]))
            if safe and size < real(INFINITY):
                write(column, mine)
            elif exact_division:
                substitute_by_exact_division(mine, tile, t_rs, t_cs, rows, unit)
            else:
                left = int32(1)
        return left

    return solve


def source_with(updater: Callable[..., Updater], config: TrsmConfig, flags: dict[str, bool]) -> KernelSource:
    """The kernel of `config` with ``updater(config, **flags)``.

    A flag is `t_by_rows`, where an updater has to know T's layout.

    Kernel parameters
    -----------------
    tri, b, x: pointer, T, B and X
    n, r: int32, order of T, columns of B
    options: int32, whether T is conjugated, whether its diagonal is one and not read (`options`)
    t_rs, t_cs, b_rs, b_cs, x_rs, x_cs: int64, row and column stride of T, of B, of X (elements)
    stride_t, stride_b, stride_x: int64, batch strides (elements)
    alpha, alpha_i: real, parts of alpha

    Grid: x ``config.grid(r)``, z the batch.
    """
    return KernelSource.of(
        config,
        PARAMETERS,
        lambda: _build(config, flags.get("t_by_rows", False), updater(config, **flags)),
        flags=tuple(sorted(flags.items())),
        reads_before_wait=(0,),
    )


def _sweeper(config: TrsmConfig, t_by_rows: bool, updater: Updater, exact_division: bool):
    """``sweep(j, free, at, ...)``: solve tile after tile from the j-th on.

    Returns where it ends, `free` and `at` for there, and whether this lane's column of the tile before is
    left to be solved. With `exact_division` none is, else it ends before the tile after such a one. The last
    tile stays in its panel.
    """
    REALS, int32 = config.dtype_facts.reals_per_element, ptx.types.int32
    offset, quotient = ptx.offset, ptx.quotient
    WARPS_PER_COLUMN_GROUP = config.WARPS_PER_COLUMN_GROUP
    BLK, STAGES, TILES = config.BLK, config.stages, config.tiles // WARPS_PER_COLUMN_GROUP
    STAGE, TILE, PANEL = config.stage_elements * REALS, BLK * BLK * REALS, config.panel_elements * REALS

    _, start_strip = tile_starters(config, t_by_rows)
    load_rhs, solve = _rhs_loader(config), _solver(config, exact_division)
    load_x, ptr_t_of = updater.load, updater.ptr_t
    # a warp alone updates all its tiles, of which the first has just left, and solves the next; of two that
    # take turns one updates the next tile, solves it, and updates its others, of which none has left
    LEFT, NEXT = (1, TILES - 1) if WARPS_PER_COLUMN_GROUP == 1 else (0, 1)
    update_next = _updates_left(config, updater, 0, NEXT, LEFT)
    update_others = _updates_left(config, updater, NEXT, TILES - LEFT, LEFT)
    update_all = _updates_left(config, updater, 0, TILES - 1, 1)
    write = panel_writer(REALS, BLK, config.WARP_N, config.row_of_panel * REALS, 32)
    wait, sync_warp = ptx.wait_async(STAGES - 2), ptx.sync_warp

    @device_function
    def sweep(j, free, at, registers, memory, shape, lines, thread, safe, unit, sign):
        tri, x, inverse = at
        acc, column, rt, rx = registers
        stages, diagonals, panels = memory
        n, cols, tiles = shape
        t_rs, t_cs, x_rs, x_cs = lines
        t, lane, g, q, part, owns = thread
        scaled, ptr_t, unsolved = offset(panels, 2 * PANEL), stages, int32(0)
        while j < tiles:
            rows, odd, diagonal = int32(n - j * BLK), j & 1, offset(diagonals, int32(j * TILE))
            panel, before = offset(panels, int32(odd * PANEL)), offset(panels, int32((1 - odd) * PANEL))
            mine = owns and (WARPS_PER_COLUMN_GROUP == 1 or odd == part)

            # (4) the tile before is solved and its strip is there; start to load a later strip
            if j > 0:
                wait()
                if exact_division:
                    cuda.syncthreads()
                elif cuda.syncthreads_or(unsolved):
                    break
                later = offset(stages, int32(free * STAGE))
                start_strip(later, tri, t_rs, t_cs, t, rows, int32(tiles - j), STAGES - 2)
                free = int32(free + 1 if free < STAGES - 1 else 0)  # the next one, after this step
                if owns:
                    load_x(rx, before, g, q)
                    strip = offset(stages, int32(free * STAGE))
                    ptr_t = ptr_t_of(strip, 0 if WARPS_PER_COLUMN_GROUP == 1 or mine else 1, g, q)

            # (5) this tile is updated and solved, in a panel
            if mine:
                left = int32(quotient(tiles - j + (WARPS_PER_COLUMN_GROUP - 1), WARPS_PER_COLUMN_GROUP))
                if j > 0:
                    update_next(acc, rt, rx, ptr_t, left)
                load_rhs(acc, column, panel, scaled, diagonal, inverse, g, q, unit)
                sync_warp()
                if WARPS_PER_COLUMN_GROUP == 1 and j > 0:
                    write(offset(x, -BLK * x_rs * REALS), before, x_rs, x_cs, lane, BLK, cols, sign)
                here = int32(min(rows, BLK))
                unsolved = solve(column, panel, scaled, diagonal, tri, t_rs, t_cs, lane, here, safe, unit)
                sync_warp()  # what updates are instructions of the whole warp
                if j > 0:
                    update_others(acc, rt, rx, ptr_t, left)

            # (6) the other warp of the columns writes its tile, which is the one before, and updates its own
            if WARPS_PER_COLUMN_GROUP > 1 and owns and not mine and j > 0:
                write(offset(x, -BLK * x_rs * REALS), before, x_rs, x_cs, lane, BLK, cols, sign)
                update_all(acc, rt, rx, ptr_t, int32(quotient(tiles - j, WARPS_PER_COLUMN_GROUP)))

            tri, x = offset(tri, BLK * (t_rs + t_cs) * REALS), offset(x, BLK * x_rs * REALS)
            inverse = offset(inverse, BLK * REALS)
            j = int32(j + 1)
        return j, free, (tri, x, inverse), unsolved

    return sweep


def _exact_resolver(config: TrsmConfig):
    """``exact_resolve(unsolved, j, tri, panels, ...)``: this lane's column of tile j, if `unsolved`."""
    facts, BLK, REALS = config.dtype_facts, config.BLK, config.dtype_facts.reals_per_element
    PANEL, int32, offset = config.panel_elements * REALS, ptx.types.int32, ptx.offset
    substitute_by_exact_division = exact_division_solver(facts, config.row_of_panel * REALS)

    @device_function
    def exact_resolve(unsolved, j, tri, panels, n, t_rs, t_cs, lane, unit):
        if unsolved:
            mine = offset(panels, int32((j & 1) * PANEL + lane * REALS))
            substitute_by_exact_division(mine, tri, t_rs, t_cs, int32(min(n - j * BLK, BLK)), unit)

    return exact_resolve


def _build(config: TrsmConfig, t_by_rows: bool, updater: Updater):
    facts = config.dtype_facts
    real, REALS = ptx.REALS[facts.real], facts.reals_per_element
    int32, int64, quotient = ptx.types.int32, ptx.types.int64, ptx.quotient
    offset, shared_pointer = ptx.offset, ptx.shared_pointer
    BLK, WARPS, WARP_N, STAGES = config.BLK, config.WARPS, config.WARP_N, config.stages
    ACC, COLUMN = config.THR_M * config.THR_N * REALS, BLK * REALS
    FRAG_T, FRAG_X = updater.fragment_t, updater.fragment_x
    STAGE, PANEL = config.stage_elements * REALS, config.panel_elements * REALS
    DIAGONALS, PANELS = STAGES * STAGE, config.panels * PANEL
    INVERSE = DIAGONALS + config.ORDER * BLK * REALS
    FIRST_PANEL = INVERSE + config.ORDER * REALS
    ALL_OWN, OWNERS, SEPARATE_FINITE_LOOP = (
        config.PRODUCER_WARPS == 0,
        config.owners,
        config.SEPARATE_FINITE_LOOP,
    )
    WARPS_PER_COLUMN_GROUP = config.WARPS_PER_COLUMN_GROUP

    read, scale = _accumulators(config)
    start_diagonals, start_strip = tile_starters(config, t_by_rows)
    divide_rows = row_divider(config)
    sweep: Any = _sweeper(config, t_by_rows, updater, exact_division=False) if SEPARATE_FINITE_LOOP else None
    sweep_by_exact_division = _sweeper(config, t_by_rows, updater, exact_division=True)
    exact_resolve = _exact_resolver(config)
    write = panel_writer(REALS, BLK, WARP_N, config.row_of_panel * REALS, 32)
    wait_diagonals, sync_warp = ptx.wait_async(STAGES - 1), ptx.sync_warp
    grid_dependency_wait = ptx.grid_dependency_wait

    def trsm(
        tri, b, x, n, r, options, t_rs, t_cs, b_rs, b_cs, x_rs, x_cs, stride_t, stride_b, stride_x, alpha,
        alpha_i,
    ):  # fmt: skip
        # (1) the columns of this warp, its first tile, the lane
        t = int32(cuda.threadIdx.x & 1023)  # the mask shows the compiler that it is not negative
        warp, lane, g, q = t // 32, t % 32, t % 32 // 4, t % 4
        part, group = (warp // WARPS, warp % WARPS) if WARPS_PER_COLUMN_GROUP > 1 else (0, warp)
        owns = ALL_OWN or warp < OWNERS
        col0, batch = (cuda.blockIdx.x * WARPS + group) * WARP_N, int64(cuda.blockIdx.z)
        cols, tiles = int32(r - col0 if owns else 0), quotient(n + (BLK - 1), BLK)
        tri = offset(tri, batch * stride_t * REALS)
        b = offset(b, (batch * stride_b + col0 * b_cs) * REALS)
        x = offset(x, (batch * stride_x + col0 * x_cs) * REALS)
        stages = shared_pointer(cuda.shared.array(0, real, alignment=16))
        diagonals, inverse = offset(stages, DIAGONALS), offset(stages, INVERSE)
        panels = offset(stages, FIRST_PANEL + group * PANELS)
        acc, column = cuda.local.array(ACC, real), cuda.local.array(COLUMN, real)
        rt, rx = cuda.local.array(FRAG_T, real), cuda.local.array(FRAG_X, real)
        unit = options & UNIT != 0
        # conj(T) X = alpha B is T conj(X) = conj(alpha B)
        sign = real(-1) if options & CONJUGATE else real(1)

        # (2) the diagonal tiles and the first strips set out; B, or rather what is to be solved negated
        start_diagonals(diagonals, tri, t_rs, t_cs, t, n, tiles, unit)
        for j in range(STAGES - 1):
            start_strip(offset(stages, j * STAGE), tri, t_rs, t_cs, t, n, tiles, j)
        grid_dependency_wait()  # T is not what the launch before writes
        read(0, acc, offset(b, part * BLK * b_rs * REALS), b_rs, b_cs, g, q, n - part * BLK, cols)

        # (3) the rows of the diagonal tiles divided by the diagonal
        wait_diagonals()
        cuda.syncthreads()
        safe = True
        if not unit:
            safe = cuda.syncthreads_and(divide_rows(column, diagonals, inverse, t, n, tiles)) != 0
        scale(0, acc, -alpha, -alpha_i, sign)

        # (4) to (6) tile after tile
        registers, memory, shape = (acc, column, rt, rx), (stages, diagonals, panels), (n, cols, tiles)
        lines, thread = (t_rs, t_cs, x_rs, x_cs), (t, lane, g, q, part, owns)
        step_t, step_x = BLK * (t_rs + t_cs) * REALS, BLK * x_rs * REALS
        j, free, at, unsolved = int32(0), int32(STAGES - 1), (tri, x, inverse), int32(0)
        if SEPARATE_FINITE_LOOP and safe:
            j, free, at, unsolved = sweep(
                j, free, at, registers, memory, shape, lines, thread, safe, unit, sign
            )
        if j < tiles:
            exact_resolve(unsolved, j - 1, offset(at[0], -step_t), panels, n, t_rs, t_cs, lane, unit)
            j, free, at, unsolved = sweep_by_exact_division(
                j, free, at, registers, memory, shape, lines, thread, safe, unit, sign
            )

        # (7) the last tile
        last = int32(tiles - 1)
        if owns and (WARPS_PER_COLUMN_GROUP == 1 or (last & 1) == part):
            exact_resolve(unsolved, last, offset(at[0], -step_t), panels, n, t_rs, t_cs, lane, unit)
            sync_warp()
            panel = offset(panels, int32((last & 1) * PANEL))
            write(offset(at[1], -step_x), panel, x_rs, x_cs, lane, int32(n - last * BLK), cols, sign)

    return trsm
