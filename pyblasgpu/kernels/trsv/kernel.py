"""``trsv``: solves T X = alpha * B for few columns of B, T lower triangular, in a single launch; X may be B.

A block of threads owns ROWS rows of T and X. It takes its number by a ticket, so that blocks are numbered in
the order in which they start, and walks along its rows of T, a square tile after the other: a tile is on its
way to the registers while the block waits until the rows of X that it meets are solved. What is left is the
diagonal block, which was loaded into shared memory long before. The word `PROGRESS` counts how many block
rows are solved; each block sets it in its turn.

Half of T is read, once; but the blocks' substitutions form a chain. So the columns of the diagonal block are
divided by the diagonal beforehand, T'_ij = T_ij / t_jj, and what is carried is y_j = t_jj x_j: a row then
costs the chain one multiply-add. GROUP rows at a time are solved by all warps alike, in registers, without a
word to each other; then each thread updates its own row. Where a diagonal element is not safe to divide by,
or a result is not finite, the block starts again, with true divisions of X.

Both strides of T and B are free and may be negative, as in `triangle`.
"""

from __future__ import annotations

from ...gpu.backend import cuda, device_function, ptx
from ...gpu.build.compile import KernelSource
from ..common.options import CONJUGATE, UNIT
from ..common.parameters import parameters
from ..common.triangle_panel import block_copier
from .config import STEM, Trsv
from .diagonal import by_exact_division, by_groups, last_divider, own_row, preparer
from .sums import adder, right_sides, tiles

__all__ = ["STEM", "Trsv", "source"]

PARAMETERS = parameters(
    "pointer: tri, flags, b, x",
    "int32: n, r, options",
    "int64: t_rs, t_cs, b_rs, b_cs, x_rs, x_cs",
    "real: alpha, alpha_i",
)
TICKET, PROGRESS = 0, 32  # flags: blocks that have started, block rows that are solved


def source(config: Trsv) -> KernelSource:
    """The one kernel of `config`.

    Kernel parameters
    -----------------
    tri: pointer, T
    flags: pointer, 0 before and after
    b, x: pointer, B and X
    n, r: int32, order of T, columns of B, at most COLS
    options: int32, whether T is conjugated, whether its diagonal is one and not read
    t_rs, t_cs, b_rs, b_cs, x_rs, x_cs: int64, row and column stride of T, of B, of X (elements)
    alpha, alpha_i: real, parts of alpha

    Grid: x ``config.grid(n)``; there are no batches.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _diagonal_solver(config: Trsv):
    """``solve(registers, memory, ...)``: the diagonal block, by multiplications where that `is_safe`; where
    the outcome is not finite, or that is not safe, by true divisions of what `coming` holds.
    """
    ROWS, LD = config.ROWS, config.ld
    int32, commit, wait = ptx.types.int32, ptx.commit_async, ptx.wait_async(0)
    copy_diagonal = block_copier(config, ROWS, ROWS, 1, LD, triangular=True, unrolls=False)
    (_, write, _), (_, take) = right_sides(config), own_row(config)
    substitute, (divide, is_finite) = by_groups(config), last_divider(config)
    substitute_by_exact_division = by_exact_division(config)

    @device_function
    def solve(registers, memory, t_there, mine, strides, t, rows, r, sign, unit, first, is_safe):
        y, x, group, corner, line = registers
        diagonal, coming, pending, solution, inverse = memory
        t_rs, t_cs, x_rs, x_cs = strides
        finite = True
        if is_safe:
            substitute(y, group, corner, line, diagonal, pending, solution, t)
            if t < rows:
                divide(0, x, solution, diagonal, inverse, t)
                write(0, x, mine, x_rs, x_cs, t, t < rows, r, sign)
                finite = is_finite(x)
        if cuda.syncthreads_and(int32(1 if is_safe and finite else 0)) == 0:
            copy_diagonal(diagonal, t_there, t_rs, t_cs, t, rows, rows, 0, first)
            commit()
            wait()
            cuda.syncthreads()
            if t < ROWS:
                take(0, y, coming, t)
            substitute_by_exact_division(y, diagonal, solution, t, rows, unit)
            write(0, y, mine, x_rs, x_cs, t, t < rows, r, sign)
            cuda.syncthreads()

    return solve


def _off_diagonal_multiplier(config: Trsv):
    """``multiply_solved(acc, tile, ...)``: acc += T[i, :i] X[:i], a tile as soon as its X is solved.

    `tile` holds the first one; the next one is loaded meanwhile.
    """
    ROWS, REALS = config.ROWS, config.dtype_facts.reals_per_element
    SIZE = config.COLS * REALS
    int32, int64, offset, load_acquire = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.load_acquire
    (fetch, multiply), (_, _, load_panel) = tiles(config), right_sides(config)

    @device_function
    def multiply_solved(acc, tile, got, flags, coming, here, x, strides, block, t, k, left, r, sign):
        t_rs, t_cs, x_rs, x_cs = strides
        j, solved = int32(0), int32(0)
        while j < block:
            if t == 0:
                while solved <= j:
                    solved = load_acquire(flags, PROGRESS)
            cuda.syncthreads()
            load_panel(coming, got, offset(x, int64(j) * ROWS * x_rs * REALS), x_rs, x_cs, t, r, sign)
            cuda.syncthreads()
            multiply(acc, tile, got, offset(coming, k * SIZE))
            j, here = int32(j + 1), offset(here, ROWS * t_cs * REALS)
            if j < block:
                fetch(0, tile, here, t_rs, t_cs, left)

    return multiply_solved


def _build(config: Trsv):
    facts, ROWS, COLS, LD = config.dtype_facts, config.ROWS, config.COLS, config.ld
    REALS = facts.reals_per_element
    real, GROUP, PANEL = ptx.REALS[facts.real], config.GROUP, config.panel * facts.reals_per_element
    DIM_M, DIM_K = config.DIM_M, config.DIM_K
    SIZE, ACC, TILE = COLS * REALS, config.THR_M * COLS * REALS, config.THR_M * config.THR_K * REALS
    CORNER, LINE, HELD = GROUP * GROUP * REALS, GROUP * REALS, GROUP * SIZE
    GOT, COMING = max(SIZE, DIM_K), ROWS * LD * REALS
    PENDING = COMING + PANEL
    SOLUTION = PENDING + PANEL
    INVERSE = SOLUTION + PANEL
    SUMS = INVERSE + ROWS * REALS
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait = ptx.grid_dependency_wait
    store_release, zero = ptx.store_release, ptx.fill(ACC)
    commit, wait = ptx.commit_async, ptx.wait_async(0)

    copy_diagonal = block_copier(config, ROWS, ROWS, 1, LD, triangular=True, unrolls=False)
    (fetch, _), (leave, subtract), multiply_solved = (
        tiles(config),
        adder(config),
        _off_diagonal_multiplier(config),
    )
    (read, _, _), prepare, (put, _) = right_sides(config), preparer(config), own_row(config)
    solve, atomic_add = _diagonal_solver(config), ptx.atomic_add

    def trsv(tri, flags, b, x, n, r, options, t_rs, t_cs, b_rs, b_cs, x_rs, x_cs, alpha, alpha_i):
        # (1) the number of this block, among those that have started, and its rows; the coordinates of this
        # thread
        t = int32(cuda.threadIdx.x & 1023)  # the mask shows the compiler that it is not negative
        m, k = (t % DIM_M, t // DIM_M) if abs(t_rs) <= abs(t_cs) else (t // DIM_K, t % DIM_K)
        unit = options & UNIT != 0
        first = 1 if unit else 0
        # conj(T) X = alpha B is T conj(X) = conj(alpha B)
        sign = real(-1) if options & CONJUGATE else real(1)
        diagonal = shared_pointer(cuda.shared.array(0, real, alignment=16))
        coming, pending = offset(diagonal, COMING), offset(diagonal, PENDING)
        solution, inverse = offset(diagonal, SOLUTION), offset(diagonal, INVERSE)
        sums = offset(diagonal, SUMS)
        grid_dependency_wait()  # the launch before may use the same flags
        if t == 0:
            pending[0] = real(atomic_add(flags, TICKET, int32(1)))  # exact: below 2^24
        cuda.syncthreads()
        block = int32(pending[0])
        row0 = int64(block) * ROWS
        rows = int32(min(n - row0, ROWS))
        t_row, mine = offset(tri, row0 * t_rs * REALS), offset(x, row0 * x_rs * REALS)

        # (2) the diagonal block sets out for shared memory, the first tile and alpha B for registers
        corner, line = cuda.local.array(CORNER, real), cuda.local.array(LINE, real)
        group, got = cuda.local.array(HELD, real), cuda.local.array(GOT, real)
        y, solved = cuda.local.array(SIZE, real), cuda.local.array(SIZE, real)
        acc, tile = cuda.local.array(ACC, real), cuda.local.array(TILE, real)
        copy_diagonal(diagonal, offset(t_row, row0 * t_cs * REALS), t_rs, t_cs, t, rows, rows, 0, first)
        commit()
        here, left = offset(t_row, (m * t_rs + k * t_cs) * REALS), int32(rows - m if block > 0 else 0)
        fetch(0, tile, here, t_rs, t_cs, left)
        read(0, y, offset(b, row0 * b_rs * REALS), b_rs, b_cs, t, t < rows, r, sign, alpha, alpha_i)
        wait()
        cuda.syncthreads()
        is_safe = prepare(diagonal, inverse, t, rows, unit)

        # (3) acc := T[i, :i] X[:i], a tile as soon as what it meets is solved; the next one sets out
        zero(acc, real(0))
        strides = t_rs, t_cs, x_rs, x_cs
        multiply_solved(acc, tile, got, flags, coming, here, x, strides, block, t, k, left, r, sign)

        # (4) y := alpha B - acc, kept in shared memory too: registers are few
        leave(0, sums, acc, m, k)
        cuda.syncthreads()
        if t < ROWS:
            subtract(0, y, got, sums, t)
            put(0, coming, y, t)

        # (5) the diagonal block solved
        registers, memory = (y, solved, group, corner, line), (diagonal, coming, pending, solution, inverse)
        t_there = offset(t_row, row0 * t_cs * REALS)
        solve(registers, memory, t_there, mine, strides, t, rows, r, sign, unit, first, is_safe)

        # (6) publish the progress. The last block has seen the progress that all before it made, so all have
        # taken their tickets and have nothing more to wait for: the flags are 0 again
        if t == 0:
            is_last = row0 + ROWS >= n
            if is_last:
                store_release(flags, TICKET, int32(0))
            store_release(flags, PROGRESS, int32(0 if is_last else block + 1))

    return trsv
