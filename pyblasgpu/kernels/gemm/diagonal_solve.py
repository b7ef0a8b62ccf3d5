"""Solve of a k-tile on the diagonal of T in shared memory, before `trsm_fused` multiplies it.

The k-tile of X then holds BLK_K rows of B (columns, where T is on the right) that this block has the sums
for. They become right-hand sides, alpha B minus the sums; these are solved by the triangle of the same rows
of T, by one thread a column or by several (`warp_substitution`); what is solved stays in the k-tile, as an
operand like any other, and goes to memory. Beyond the end of T there are zeros, and zeros they stay.

The rows of all triangles of a tile are divided by their diagonal elements beforehand, while the block would
wait, and so are the right-hand sides: substitution then is nothing but multiply-adds. Where a division is not
safe, or the outcome not finite, all is solved again with true divisions last.
"""

from __future__ import annotations

from types import SimpleNamespace

from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...types import Triangle
from ..common.substitution import exact_division_solver, inverter, panel_writer, quotient, steps
from .config import GemmConfig
from .fused import solve_layout
from .product import Product
from .warp_substitution import group_solver

__all__ = ["diagonal_solver"]

AT_ONCE = 128  # bytes of T, at most, that a thread loads before it divides any


def diagonal_solver(config: GemmConfig, product: Product, triangle: Triangle, conj: bool) -> SimpleNamespace:
    """The steps: ``prepare``, ``load_rhs``, ``solve``, ``solve_by_exact_division``, ``write`` and
    ``reload_rhs``; the reals of a thread that ``solve`` and ``prepare`` need, and elements from row to row of
    what is prepared.

    Substitution has its direction in constant addresses, so it is there twice: `down`, the first unknown
    first, and up.
    """
    layout, of_a = solve_layout(config, triangle), triangle.on_left
    down_solver, up_solver = (_solver(config, layout, down) for down in (True, False))
    exact_down, exact_up = (_exact_division_solver(config, layout, conj, down) for down in (True, False))
    solve_down, solve_up = down_solver.solve, up_solver.solve

    @device_function
    def solve(panel, triangle, column, t, down):
        if down:
            return solve_down(panel, triangle, column, t)
        return solve_up(panel, triangle, column, t)

    @device_function
    def solve_by_exact_division(panel, matrix, t, extent, unit, down):
        if down:
            exact_down(panel, matrix, t, extent, unit)
        else:
            exact_up(panel, matrix, t, extent, unit)

    return SimpleNamespace(
        ld=layout.ld,
        registers=down_solver.registers,
        values=(_at_once(config, layout) + 1) * config.dtype_facts.reals_per_element,
        prepare=_preparer(config, layout, conj),
        load_rhs=_rhs_loader(config, product, triangle, layout),
        solve=solve,
        solve_by_exact_division=solve_by_exact_division,
        write=_writer(config, layout, of_a),
        reload_rhs=_rhs_reloader(config, layout, of_a),
    )


def _at_once(config: GemmConfig, layout: SimpleNamespace) -> int:
    """Elements of a tile's triangles that a thread loads before it divides any."""
    return min(-(-layout.block * layout.count // config.threads), AT_ONCE // config.dtype_facts.itemsize)


def _preparer(config: GemmConfig, layout: SimpleNamespace, conj: bool):
    """``prepare(prepared, value, tri, ldt, t, extent, unit, down)``: the triangles of the tile whose diagonal
    begins at `tri`, each row divided by its diagonal element, in the order of their unknowns, by rows if
    threads share a right-hand side, else by columns; then the diagonal, then its inverses. Whether one of
    this thread's is not safe.

    The first elements are loaded before the diagonal is waited for: one way to memory instead of several.
    """
    facts, COUNT, BLOCK, THREADS = config.dtype_facts, layout.count, layout.block, config.threads
    REALS = facts.reals_per_element
    real, CONJ, BY_COLS = ptx.REALS[facts.real], -1 if conj else 1, layout.by_cols
    int32, int64, shift, read = ptx.types.int32, ptx.types.int64, ptx.quotient, ptx.load_global(REALS, False)
    invert_one, divided = inverter(facts), quotient(facts, ptx.inlined, False)
    DIAGONAL, INVERSE, TOTAL = layout.diagonal, layout.inverse, BLOCK * COUNT
    LD, BY_ROWS = layout.ld, layout.shares > 1
    MANY = _at_once(config, layout)
    GROUPS, ON_DIAGONAL = -(-TOTAL // (THREADS * MANY)), MANY * REALS

    @device_function
    def where(e, t, down):
        element = int32(e * THREADS + t)
        triangle = int32(shift(element, COUNT * COUNT))
        within = int32(element - triangle * (COUNT * COUNT))
        slow = int32(shift(within, COUNT))
        fast = int32(within - slow * COUNT)
        i, j = (slow, fast) if BY_COLS else (fast, slow)
        return triangle, i, j, (element < TOTAL) & ((i > j) == down) & (i != j)

    @device_function
    def fetch(e, group, value, tri, ldt, t, extent, down):
        triangle, i, j, is_there = where(group * MANY + e, t, down)
        row, col = triangle * COUNT + i, triangle * COUNT + j
        at = int64(row) * ldt + col if BY_COLS else int64(col) * ldt + row
        read(value, e * REALS, tri, at * REALS, is_there & (row < extent) & (col < extent))

    @device_function
    def divide(e, group, value, prepared, t, down):
        triangle, i, j, is_there = where(group * MANY + e, t, down)
        p, q = (i, j) if down else (COUNT - 1 - i, COUNT - 1 - j)
        slow, fast = (p, q) if BY_ROWS else (q, p)
        x, to = e * REALS, ((triangle * COUNT + slow) * LD + fast) * REALS
        at = (triangle * COUNT + i) * REALS
        if is_there:
            if REALS == 2:
                re, im, d, r = value[x], real(CONJ) * value[x + 1], DIAGONAL + at, INVERSE + at
                re, im = divided(re, im, prepared[d], prepared[d + 1], prepared[r], prepared[r + 1])
                prepared[to], prepared[to + 1] = re, im
            else:
                prepared[to] = divided(value[x], prepared[DIAGONAL + at], prepared[INVERSE + at])

    fetch_all, divide_all = unrolled(MANY, fetch), unrolled(MANY, divide)

    @device_function
    def prepare(prepared, value, tri, ldt, t, extent, unit, down):
        unsafe, row = int32(0), int32(t)
        fetch_all(0, 0, value, tri, ldt, t, extent, down)
        while row < BLOCK:
            d, r, is_there = DIAGONAL + row * REALS, INVERSE + row * REALS, row < extent
            read(value, ON_DIAGONAL, tri, int64(row) * (ldt + 1) * REALS, is_there & (not unit))
            prepared[d] = real(1) if unit else value[ON_DIAGONAL]
            if REALS == 2:
                prepared[d + 1] = real(CONJ) * value[ON_DIAGONAL + 1]
            if is_there:
                unsafe = int32(unsafe | (1 - invert_one(prepared, r, prepared, d)))
            else:
                for part in range(REALS):
                    prepared[r + part] = real(0)
            row = int32(row + THREADS)
        cuda.syncthreads()
        divide_all(0, 0, value, prepared, t, down)
        for group in range(1, GROUPS):
            fetch_all(0, group, value, tri, ldt, t, extent, down)
            divide_all(0, group, value, prepared, t, down)
        return unsafe

    return prepare


def _rhs_loader(config: GemmConfig, product: Product, triangle: Triangle, layout: SimpleNamespace):
    """``load_rhs(0, acc, panel, prepared, t, base, extent, alpha, alpha_i, divides)``: alpha B minus the sums
    of this thread, of the `extent` unknowns from `base` on, divided by the diagonal or not; zero beyond.
    """
    facts, OF_A, THR_M = config.dtype_facts, triangle.on_left, config.THR_M
    REALS = facts.reals_per_element
    real, COMPLEX, int32 = ptx.REALS[facts.real], facts.is_complex, ptx.types.int32
    k_of, side_of, OWN, OTHER = product.row, product.col, THR_M, config.THR_N
    if not OF_A:
        k_of, side_of, OWN, OTHER = side_of, k_of, OTHER, OWN
    UNKNOWN, SIDE, COUNT = layout.unknown, layout.side, layout.count
    # unknowns that follow one another are loaded at once: between two branches nothing is read ahead
    RUN = product.run if OF_A and COUNT % product.run == 0 else 1
    DIAGONAL, INVERSE, divided = layout.diagonal, layout.inverse, quotient(facts, ptx.inlined, False)

    @device_function
    def put_element(j, i, acc, panel, t, k, is_inside, alpha, alpha_i, divides, d_re, d_im, r_re, r_im):
        at = side_of(j, t) * SIDE + k * UNKNOWN
        x = (j * THR_M + i if OF_A else i * THR_M + j) * REALS
        if COMPLEX:
            b_re, b_im = panel[at], panel[at + 1]
            re = alpha * b_re - alpha_i * b_im - acc[x]
            im = alpha * b_im + alpha_i * b_re - acc[x + 1]
            if divides:
                re, im = divided(re, im, d_re, d_im, r_re, r_im)
            panel[at], panel[at + 1] = (re, im) if is_inside else (real(0), real(0))
        else:
            re = alpha * panel[at] - acc[x]
            if divides:
                re = divided(re, d_re, r_re)
            panel[at] = re if is_inside else real(0)

    put_line = unrolled(OTHER, put_element)

    @device_function
    def put_unknown(r, i, acc, panel, prepared, t, base, k, extent, alpha, alpha_i, divides):
        k, i = int32(k + r), i + r
        d, r = DIAGONAL + (base + k) * REALS, INVERSE + (base + k) * REALS
        put_line(
            0,
            i,
            acc,
            panel,
            t,
            k,
            k < extent,
            alpha,
            alpha_i,
            divides,
            prepared[d],
            prepared[d + REALS - 1],
            prepared[r],
            prepared[r + REALS - 1],
        )

    put_run = unrolled(RUN, put_unknown)

    @device_function
    def load_rhs(i, acc, panel, prepared, t, base, extent, alpha, alpha_i, divides):
        k = int32(k_of(i * RUN, t) - base)
        if k >= 0 and k < COUNT:
            put_run(0, i * RUN, acc, panel, prepared, t, base, k, extent, alpha, alpha_i, divides)

    return unrolled(OWN // RUN, load_rhs)


def _solver(config: GemmConfig, layout: SimpleNamespace, down: bool) -> SimpleNamespace:
    """Return the solver of a k-tile, with one thread or several for each right-hand side."""
    if layout.shares > 1:
        return group_solver(config.dtype_facts, config.threads, layout, down)
    return _single_solver(config, layout, down)


def _single_solver(config: GemmConfig, layout: SimpleNamespace, down: bool) -> SimpleNamespace:
    """Return a solver like `group_solver`, with a thread for each right-hand side.

    What is not finite stays so down to the last unknown, which shows it.
    """
    facts, SIDES, COUNT = config.dtype_facts, layout.sides, layout.count
    REALS, SIDE, UNKNOWN, SIGN = facts.reals_per_element, layout.side, layout.unknown, 1 if down else -1
    THREADS, int32, offset, FIRST = config.threads, ptx.types.int32, ptx.offset, 0 if down else COUNT - 1
    real, INFINITY, LAST = ptx.REALS[facts.real], float("inf"), (COUNT - 1) * REALS
    substitute = steps(facts, COUNT, False, 16 // facts.real_size)

    @device_function
    def fetch(p, column, mine):
        for part in range(REALS):
            column[p * REALS + part] = mine[(FIRST + SIGN * p) * UNKNOWN + part]

    @device_function
    def store_to_smem(p, column, mine):
        for part in range(REALS):
            mine[(FIRST + SIGN * p) * UNKNOWN + part] = column[p * REALS + part]

    fetch_all, store_all = unrolled(COUNT, fetch), unrolled(COUNT, store_to_smem)

    @device_function
    def solve(panel, triangle, column, t):
        side, non_finite = int32(t), int32(0)
        while side < SIDES:
            mine = offset(panel, side * SIDE)
            fetch_all(0, column, mine)
            substitute(column, triangle, triangle)
            store_all(0, column, mine)
            size = max(abs(column[LAST]), abs(column[LAST + REALS - 1]))
            non_finite = int32(non_finite if size < real(INFINITY) else 1)
            side = int32(side + THREADS)
        return non_finite

    return SimpleNamespace(registers=COUNT * REALS, solve=solve)


def _exact_division_solver(config: GemmConfig, layout: SimpleNamespace, conj: bool, down: bool):
    """``solve(panel, matrix, t, extent, unit)``: the same by true divisions, and the triangle as stored in
    T's k-tile at `matrix`; in shared memory.
    """
    facts, SIDES, THREADS, SIGN = config.dtype_facts, layout.sides, config.threads, 1 if down else -1
    REALS = facts.reals_per_element
    SIDE, UNKNOWN, DIAGONAL = layout.side, layout.unknown, layout.row + layout.col
    ROW, COL = SIGN * layout.row // REALS, SIGN * layout.col // REALS
    int32, offset = ptx.types.int32, ptx.offset
    substitute = exact_division_solver(facts, SIGN * UNKNOWN, conj)

    @device_function
    def solve(panel, matrix, t, extent, unit):
        first, side = int32(0 if down else extent - 1), int32(t)
        while side < SIDES:
            start = offset(panel, side * SIDE + first * UNKNOWN)
            substitute(start, offset(matrix, first * DIAGONAL), ROW, COL, extent, unit)
            side = int32(side + THREADS)

    return solve


def _writer(config: GemmConfig, layout: SimpleNamespace, of_a: bool):
    """``write(c, panel, ldc, t, extent, sides)``: what is solved, to memory, its k-tile beginning at `c`."""
    facts, int64, real = config.dtype_facts, ptx.types.int64, ptx.REALS[config.dtype_facts.real]
    extents = [(layout.count, layout.unknown), (layout.sides, layout.side)]
    (rows, row), (cols, col) = extents if of_a else extents[::-1]
    write = panel_writer(facts.reals_per_element, rows, cols, row, config.threads, col, by_rows=True)

    @device_function
    def write_tile(c, panel, ldc, t, extent, sides):
        rows, cols = (extent, sides) if of_a else (sides, extent)
        write(c, panel, int64(1), ldc, t, rows, cols, real(1))

    return write_tile


def _rhs_reloader(config: GemmConfig, layout: SimpleNamespace, of_a: bool):
    """``reload_rhs(c, panel, value, ldc, t, extent, sides)``: what is in memory, to the k-tile."""
    REALS = config.dtype_facts.reals_per_element
    COUNT, SIDES, THREADS = layout.count, layout.sides, config.threads
    UNKNOWN, SIDE, int32, int64 = layout.unknown, layout.side, ptx.types.int32, ptx.types.int64
    FAST, quotient = COUNT if of_a else SIDES, ptx.quotient
    read = ptx.load_global(REALS, False)

    @device_function
    def reload_rhs(c, panel, value, ldc, t, extent, sides):
        element = int32(t)
        while element < COUNT * SIDES:
            slow = quotient(element, FAST)
            fast = int32(element - slow * FAST)
            k, side = (fast, slow) if of_a else (slow, fast)
            is_there, at = (k < extent) & (side < sides), side * SIDE + k * UNKNOWN
            read(value, 0, c, (int64(slow) * ldc + fast) * REALS, is_there)
            for part in range(REALS):
                panel[at + part] = value[part]
            element = int32(element + THREADS)

    return reload_rhs
