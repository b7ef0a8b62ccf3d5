"""Parts of `potrf_leaf` and `potrf_panel`: panels of BLK columns in shared memory, a thread a row.

Four columns are done between two barriers. All threads factor the four-by-four block of pivots themselves.
"""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from .cholesky_update_mma import tile_edge, trailing_update_mma
from .inverse_root import inverse_root

__all__ = ["GROUP", "conjugator", "diagonal_tile", "panel_factor", "trailing_update"]

GROUP = 4  # columns between barriers, and rows and columns of a tile


def _pivots(config, safe: bool):
    """``factor(tile, bad, unsafe, before)``: the tile's four rows of pivots and its own row, by rows.

    They are conjugated. ``bad[0]`` is the first bad pivot, counted from 1, after the `before` earlier ones.
    ``unsafe[0]`` says afterwards whether the roots of the pivots need to be `safe`.
    """
    facts, REALS = config.dtype_facts, config.dtype_facts.reals_per_element
    COMPLEX, (root, quick_root, is_unsafe) = facts.is_complex, inverse_root(facts)
    int32, select = ptx.types.int32, ptx.select
    real = ptx.REALS[facts.real]
    root = root if safe else quick_root

    def scaling(c):
        PIVOT = (c * GROUP + c) * REALS

        @device_function
        def step(tile, bad, unsafe, before):
            d = tile[PIVOT]
            is_bad = (bad[0] == 0) & (not d > real(0))
            bad[0] = select(is_bad, int32(before + (c + 1)), bad[0])
            r = root(d)
            unsafe[0] = select(is_unsafe(r), int32(1), unsafe[0])
            for i in range(c + 1, GROUP + 1):
                for part in range(REALS):
                    tile[(i * GROUP + c) * REALS + part] *= r

        return step

    def elimination(c, j, i):
        Y, X, Z = ((row * GROUP + col) * REALS for row, col in ((i, j), (i, c), (j, c)))

        @device_function
        def step(tile, bad, unsafe, before):
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


def conjugator(config):
    """``conjugate(0, row)``: the first BLK elements of a thread's row."""
    COMPLEX = config.dtype_facts.is_complex

    @device_function
    def conjugate(k, row):
        if COMPLEX:
            row[2 * k + 1] = -row[2 * k + 1]

    return unrolled(config.BLK, conjugate)


def _group_steps(config, g: int):
    """Return the steps for the four columns `g` of a panel: ``give`` and ``eliminate``, then ``update_next``
    and ``update_rest`` for the four columns after them and for all others. All take ``(row, tile, other,
    panel, pivots, i, bad, before)``, with row `i` of the panel.
    """
    REALS, LD, VEC = config.dtype_facts.reals_per_element, config.ld, config.vector
    FIRST, OWN = g * GROUP, GROUP * GROUP * REALS
    SPAN = GROUP * REALS
    COMPLEX = config.dtype_facts.is_complex
    load_pivots = ptx.load_shared(VEC * REALS, SPAN * GROUP // (VEC * REALS), VEC * REALS)
    factor, factor_carefully, int32 = _pivots(config, False), _pivots(config, True), ptx.types.int32
    load_rows = ptx.load_shared(VEC * REALS, GROUP, LD * REALS)
    real, INFINITY = ptx.REALS[config.dtype_facts.real], float("inf")

    @device_function
    def give(row, tile, other, panel, pivots, i, bad, before):
        if (i >= FIRST) & (i < FIRST + GROUP):
            for x in range(SPAN):
                pivots[(i - FIRST) * SPAN + x] = row[FIRST * REALS + x]

    @device_function
    def load_pivot_row(row, tile, pivots):
        load_pivots(tile, 0, pivots, 0)
        for x in range(SPAN):
            tile[OWN + x] = row[FIRST * REALS + x]

    @device_function
    def keep_infinity(c, tile, i):
        # the root of inf is inf, which a multiplication by its inverse, 0, makes NaN
        if (i == FIRST + c) & (tile[(c * GROUP + c) * REALS] == real(INFINITY)):
            tile[OWN + c * REALS] = real(INFINITY)

    keep_infinities = unrolled(GROUP, keep_infinity)

    @device_function
    def eliminate(row, tile, other, panel, pivots, i, bad, before):
        unsafe, earlier = cuda.local.array(1, int32), bad[0]
        unsafe[0] = int32(0)
        load_pivot_row(row, tile, pivots)
        factor(tile, bad, unsafe, before + FIRST)
        if unsafe[0] != 0:  # once more: a branch at each root would keep the compiler from other work
            bad[0] = earlier
            load_pivot_row(row, tile, pivots)
            factor_carefully(tile, bad, unsafe, before + FIRST)
            keep_infinities(0, tile, i)
        if i >= FIRST:
            for c in range(GROUP):
                at = (i + (FIRST + c) * LD) * REALS
                panel[at] = tile[OWN + c * REALS]
                if COMPLEX:
                    panel[at + 1] = -tile[OWN + c * REALS + 1]
        for x in range(SPAN):  # what is subtracted
            tile[x] = -tile[OWN + x]

    def column_update(k):
        slots = tuple((k + v) * REALS for v in range(VEC))
        add = ptx.shifted_update(1, VEC, GROUP, REALS, False, slots, slots)

        @device_function
        def step(row, tile, other, panel, pivots, i, bad, before):
            # row[k] -= l[i] conj(l[k]), all of it conjugated but l[k]
            load_rows(other, 0, panel, (k + FIRST * LD) * REALS)
            add(row, tile, other)

        return step

    @device_function
    def nothing(row, tile, other, panel, pivots, i, bad, before):
        pass

    def update(first, end):
        return in_order([column_update(k) for k in range(first, min(end, config.BLK), VEC)] or [nothing])

    middle = FIRST + 2 * GROUP
    return give, eliminate, update(FIRST + GROUP, middle), update(middle, config.BLK)


def panel_factor(config):
    """``factor(row, tile, other, panel, pivots, i, bad, before, left)``: a panel, of which `left` columns are
    of the matrix, by threads of row `i` of it; rows above it have i < 0, threads without one as well.

    The next four columns are updated first. The others are when the pivots of these have been given, so that
    warps have something to do while others wait for roots.
    """
    steps = [_group_steps(config, g) for g in range(config.BLK // GROUP)]

    @device_function
    def nothing(row, tile, other, panel, pivots, i, bad, before):
        pass

    def group(g):
        give, eliminate, update_next, _ = steps[g]
        update_rest = steps[g - 1][3] if g else nothing

        @device_function
        def step(row, tile, other, panel, pivots, i, bad, before, left):
            if left > g * GROUP:
                give(row, tile, other, panel, pivots, i, bad, before)
                cuda.syncthreads()
                if i >= 0:
                    update_rest(row, tile, other, panel, pivots, i, bad, before)
                    eliminate(row, tile, other, panel, pivots, i, bad, before)
                cuda.syncthreads()
                if i >= 0:
                    update_next(row, tile, other, panel, pivots, i, bad, before)

        return step

    return in_order([group(g) for g in range(config.BLK // GROUP)])


def diagonal_tile(config) -> int:
    """Rows of the tiles on the diagonal, whose other triangle is written too."""
    return tile_edge(config) if config.dtype_facts.real_size == 8 else GROUP


def trailing_update(config):
    """``update(l, acc, x, y, t, first, rows)``: rows and columns from `first` on, `rows` of them, minus the
    product of the BLK columns before them with their conjugate transpose; lower triangle, a tile a thread.
    The rows below the triangle, if the Config has them, lose their product as well.
    """
    if config.dtype_facts.real_size == 8:
        return trailing_update_mma(config)
    facts, REALS, LD, VEC = (
        config.dtype_facts,
        config.dtype_facts.reals_per_element,
        config.ld,
        config.vector,
    )
    BLK, THREADS, SPAN, offset = config.BLK, config.threads, GROUP * REALS, ptx.offset
    TILE, ORDER, TILES_BELOW = GROUP * SPAN, config.ORDER, config.rows_below // GROUP
    load = ptx.load_shared(VEC * REALS, GROUP // VEC, VEC * REALS)
    rank1, zero, real = (
        ptx.rank1_update(GROUP, GROUP, REALS, False, True),
        ptx.fill(TILE),
        ptx.REALS[facts.real],
    )
    VECTORS, WIDTH, store = GROUP // VEC, VEC * REALS, ptx.store_shared(VEC * REALS)
    row_of = _row_of_tile()

    @device_function
    def product_step(kk, acc, x, y, left, right):
        load(x, 0, left, kk * LD * REALS)
        load(y, 0, right, kk * LD * REALS)
        rank1(acc, x, y)

    steps = unrolled(GROUP, product_step)

    @device_function
    def subtract(j, target, acc, column):
        load(column, 0, target, j * LD * REALS)
        for i in range(SPAN):
            column[i] -= acc[j * SPAN + i]
        for v in range(VECTORS):
            store(target, j * LD * REALS + v * WIDTH, column, v * WIDTH)

    subtract_all = unrolled(GROUP, subtract)

    @device_function
    def coords(number, triangle, first):
        if TILES_BELOW > 0 and number >= triangle:
            number -= triangle
            return ORDER + number % TILES_BELOW * GROUP, first + number // TILES_BELOW * GROUP
        i = row_of(number)
        return first + i * GROUP, first + (number - i * (i + 1) // 2) * GROUP

    @device_function
    def update(l, acc, x, y, t, first, rows):
        tiles = rows // GROUP
        triangle = tiles * (tiles + 1) // 2
        for number in range(t, triangle + tiles * TILES_BELOW, THREADS):
            row, col = coords(number, triangle, first)
            columns = (first - BLK) * LD
            left, right = offset(l, (row + columns) * REALS), offset(l, (col + columns) * REALS)
            zero(acc, real(0))
            for k in range(0, BLK, GROUP):
                steps(k, acc, x, y, left, right)
            subtract_all(0, offset(l, (row + col * LD) * REALS), acc, x)

    return update


def _row_of_tile():
    """``row(number)``: that of a tile of a triangle that is numbered by rows: the largest i for which
    i (i + 1) / 2 is no more.
    """
    int32, real, square_root = ptx.types.int32, ptx.REALS["float32"], ptx.square_root

    @device_function
    def row(number):
        # exact: where a row begins it is the root of a square
        return int32((square_root(real(8 * int32(number) + 1)) - real(1)) * real(0.5))

    return row
