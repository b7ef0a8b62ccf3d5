"""Interchanges and a solve in the columns outside a panel of `getrf_panel`, once the panel is factored.

    left of the panel       interchanges
    right of it             interchanges, and the rows of U: x := L11^-1 x

A warp takes two columns at a time, a lane a row of those on top. The blocks of a cluster, or the only block,
have written L11 and the moves before.
"""

from __future__ import annotations

from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from .pivot_exchange import WARP

__all__ = ["AT_ONCE", "outside_updater"]

AT_ONCE = 2  # columns of a warp


def _column_mover(config):
    """``fetch(0, x, going, a, ...)``: the elements that move to the top of a warp's columns, and those that
    were there. ``put(0, x, going, a, ...)``: both to where they go. Further arguments give the column, the
    step to the next one, where they end and the panel begins, its columns, the strides, the row of the lane.
    """
    REALS, int32, int64 = config.dtype_facts.reals_per_element, ptx.types.int32, ptx.types.int64
    load, store = ptx.load_global(1, False), ptx.store_global

    @device_function
    def column_offset(u, c, step, left, n, a_cs):
        column = int32(c + u * step)
        return int64(column - left if column < left else column - left + n) * a_cs

    @device_function
    def fetch(u, x, going, a, c, step, end, left, n, a_rs, a_cs, lane, origin, target):
        at, ok = column_offset(u, c, step, left, n, a_cs), (c + u * step < end) & (lane < n)
        for part in range(REALS):
            load(x, u * REALS + part, a, (origin * a_rs + at) * REALS + part, ok)
            load(going, u * REALS + part, a, (lane * a_rs + at) * REALS + part, ok)

    @device_function
    def put(u, x, going, a, c, step, end, left, n, a_rs, a_cs, lane, origin, target):
        at, ok = column_offset(u, c, step, left, n, a_cs), (c + u * step < end) & (lane < n)
        for part in range(REALS):
            store(a, (lane * a_rs + at) * REALS + part, x[u * REALS + part], ok)
            store(a, (target * a_rs + at) * REALS + part, going[u * REALS + part], ok & (target >= n))

    return unrolled(AT_ONCE, fetch), unrolled(AT_ONCE, put)


def _solver(config):
    """``solve(0, x, values, lane, ...)``: x := L^-1 x by the rows of L in `values`, for columns right of the
    panel.
    """
    REALS, COMPLEX, COLS = config.dtype_facts.reals_per_element, config.dtype_facts.is_complex, config.COLS
    int32, shuffle, select = ptx.types.int32, ptx.shuffle, ptx.select

    def step(k: int):
        RE, IM = k * REALS, k * REALS + REALS - 1

        @device_function
        def eliminate(u, x, values, lane, c, step, left):
            to = u * REALS
            is_below = (lane > k) & (c + u * step >= left)
            y = shuffle(x[to], int32(k))
            if COMPLEX:
                y_im = shuffle(x[to + 1], int32(k))
                re = x[to] - values[RE] * y + values[IM] * y_im
                im = x[to + 1] - values[RE] * y_im - values[IM] * y
                x[to + 1] = select(is_below, im, x[to + 1])
                x[to] = select(is_below, re, x[to])
            else:
                x[to] = select(is_below, x[to] - values[RE] * y, x[to])

        return unrolled(AT_ONCE, eliminate)

    return in_order([step(k) for k in range(COLS - 1)])


def outside_updater(config):
    """``update(a, moves, values, x, going, n, left, right, a_rs, a_cs, t, block, blocks)``: `left` columns
    left of the panel at `a`, and `right` ones right of it; `values` is for a row of L.
    """
    REALS, COLS, WARPS = config.dtype_facts.reals_per_element, config.COLS, config.threads // WARP
    int32, int64, offset, load = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.load_global(1, False)
    sync_warp, cluster_sync, IS_CLUSTER = ptx.sync_warp, ptx.cluster_sync, config.CLUSTER > 1
    (fetch, put), solve = _column_mover(config), _solver(config)

    @device_function
    def read_element(k, values, row, a_cs, lane, n):
        for part in range(REALS):
            load(values, k * REALS + part, row, k * a_cs * REALS + part, (k < lane) & (lane < n))

    read_row = unrolled(COLS, read_element)

    @device_function
    def update(a, moves, values, x, going, n, left, right, a_rs, a_cs, t, block, blocks):
        if left + right == 0:
            return
        cuda.syncthreads()
        if IS_CLUSTER and blocks > 1:
            cluster_sync()
        lane, end = int32(t % WARP), int32(left + right)
        known, step = min(lane, int32(n - 1)), int32(blocks * WARPS)
        origin, target = int64(moves[known]), int64(moves[COLS + known])
        read_row(0, values, offset(a, lane * a_rs * REALS), a_cs, lane, n)
        c = int32(t // WARP * blocks + block)
        while c < end:
            fetch(0, x, going, a, c, step, end, left, n, a_rs, a_cs, lane, origin, target)
            sync_warp()
            solve(0, x, values, lane, c, step, left)
            put(0, x, going, a, c, step, end, left, n, a_rs, a_cs, lane, origin, target)
            c = int32(c + AT_ONCE * step)

    return update
