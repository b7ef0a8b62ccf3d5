"""Parts of `sytrd`: sizes, the matrix at work, column k, the pass over the rest of A, and the leaves of T."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ...common.kernel_config import WARP, BlockConfig
from ..qr.reflector import FACTOR, size_of
from .rotation import team_max

__all__ = ["UNROLL", "column_taker", "leaf_writer", "matrix_loader", "passer", "sizer", "unit_maker"]

UNROLL = 8  # columns of a thread that are loaded at a time, of complex matrices half as many
BEYOND = 1.25  # what continues T, over a bound of its norm


def sizer(config: BlockConfig) -> Callable:
    """``size(a, a_rs, a_cs, n, block, blocks, t)``: the largest part of the elements of the lower triangle in
    columns of the thread's warp, of which blocks have every one in turn.
    """
    facts, WARPS = config.dtype_facts, config.DIM // WARP
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, int64, size_of_element = ptx.types.int32, ptx.types.int64, size_of(facts)

    @device_function
    def size(a, a_rs, a_cs, n, block, blocks, t):
        most, slow = real(0), int32(block * WARPS + (t >> 5))
        by_columns, lane = abs(a_rs) <= abs(a_cs), int32(t & 31)
        while slow < n:
            fast = int32(slow + lane) if by_columns else lane
            end = n if by_columns else int32(slow + 1)
            while fast < end:
                i, j = (fast, slow) if by_columns else (slow, fast)
                at = (int64(i) * a_rs + int64(j) * a_cs) * REALS
                if COMPLEX and i == j:
                    x = abs(a[at])
                    most = max(most, x if x == x else real(float("inf")))
                else:
                    most = max(most, size_of_element(a, at))
                fast = int32(fast + WARP)
            slow = int32(slow + blocks * WARPS)
        return most

    return size


def matrix_loader(config: BlockConfig) -> Callable:
    """``fill(work, a, a_rs, a_cs, factor, is_bad, conj, n, ld, block, blocks, t)``: the rows of a block,
    times `factor`, both triangles; zeros where A `is_bad`, and beyond it.
    """
    facts, WARPS = config.dtype_facts, config.DIM // WARP
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, int64 = ptx.types.int32, ptx.types.int64

    @device_function
    def fill(work, a, a_rs, a_cs, factor, is_bad, conj, n, ld, block, blocks, t):
        j, lane, columns = int32(t >> 5), int32(t & 31), int32(n + UNROLL)
        while j < columns:
            i = int32(block * WARP + lane)
            while i < ld:
                row, col = int32(max(i, j)), int32(min(i, j))
                is_there = (row < n) & (not is_bad)
                at = (int64(row) * a_rs + int64(col) * a_cs) * REALS if is_there else int64(0)
                re = a[at] * factor if is_there else real(0)
                work[(j * ld + i) * REALS] = re
                if COMPLEX:
                    im = a[at + 1] * factor if is_there and i != j else real(0)
                    work[(j * ld + i) * REALS + 1] = -im if (conj != 0) != (i < j) else im
                i = int32(i + blocks * WARP)
            j = int32(j + WARPS)

    return fill


def column_taker(config: BlockConfig) -> Callable:
    """``take(head, x, v, w, work, k, n, ld, t)``: column k, less what the last reflector takes off, to x, and
    its element below the diagonal to `head`; the sum of squares of the thread's elements below that.
    """
    facts, DIM = config.dtype_facts, config.DIM
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )

    @device_function
    def take(head, x, v, w, work, k, n, ld, t):
        v_k, w_k, square = v[k * REALS], w[k * REALS], real(0)
        i = int32(k + t)
        while i < n:
            at, of = int32((k * ld + i) * REALS), int32(i * REALS)
            re = work[at] - v[of] * w_k - w[of] * v_k
            here = re * re
            if COMPLEX:
                v_im, w_im = v[k * 2 + 1], w[k * 2 + 1]
                re -= v[of + 1] * w_im + w[of + 1] * v_im
                im = work[at + 1] - v[of + 1] * w_k + v[of] * w_im - w[of + 1] * v_k + w[of] * v_im
                here = re * re + im * im
                x[of + 1] = im
                if i == k + 1:
                    head[1] = im
            x[of] = re
            if i == k + 1:
                head[0] = re
            if i > k + 1:
                square += here
            i = int32(i + DIM)
        return square

    return take


def unit_maker(config: BlockConfig) -> Callable:
    """``make(x, h, k, n, t)``: the vector of reflector `h` in place of column k: one below the diagonal."""
    facts, DIM = config.dtype_facts, config.DIM
    COMPLEX, real, int32 = facts.is_complex, ptx.REALS[facts.real], ptx.types.int32

    @device_function
    def make(x, h, k, n, t):
        i = int32(k + t)
        while i < n:
            if COMPLEX:
                re, im = x[i * 2], x[i * 2 + 1]
                x[i * 2] = h[FACTOR] * re - h[FACTOR + 1] * im if i > k + 1 else real(i == k + 1)
                x[i * 2 + 1] = h[FACTOR] * im + h[FACTOR + 1] * re if i > k + 1 else real(0)
            elif i > k + 1:
                x[i] *= h[FACTOR]
            elif i == k + 1:
                x[i] = real(1)
            i = int32(i + DIM)

    return make


def _tile(config: BlockConfig) -> tuple[Callable, Callable, int]:
    """``load(0, y, column, ld)``: elements of the lane's row in columns; ``update(0, y, row, column, ld, x,
    v, w, j)``: they less what the last reflector takes off, and their products with x added to the last
    element of ``row``, which has v and w of the row before it. The number of columns.
    """
    facts, COUNT = config.dtype_facts, UNROLL // config.dtype_facts.reals_per_element
    REALS, COMPLEX = facts.reals_per_element, facts.is_complex

    @device_function
    def load(c, y, column, ld):
        for part in range(REALS):
            y[c * REALS + part] = column[c * ld * REALS + part]

    @device_function
    def update(c, y, row, column, ld, x, v, w, j):
        of = (j + c) * REALS
        if COMPLEX:
            re = y[c * 2] - row[0] * w[of] - row[1] * w[of + 1] - row[2] * v[of] - row[3] * v[of + 1]
            im = y[c * 2 + 1] - row[1] * w[of] + row[0] * w[of + 1] - row[3] * v[of] + row[2] * v[of + 1]
            column[c * ld * 2], column[c * ld * 2 + 1] = re, im
            row[4] += re * x[of] - im * x[of + 1]
            row[5] += re * x[of + 1] + im * x[of]
        else:
            re = y[c] - row[0] * w[of] - row[1] * v[of]
            column[c * ld] = re
            row[2] += re * x[of]

    return unrolled(COUNT, load), unrolled(COUNT, update), COUNT


def passer(config: BlockConfig) -> Callable:
    """``run(y, row, product, parts, x, v, w, work, k, n, ld, block, blocks, t)``: the last reflector off the
    rest of A, and the product of that with x, in the rows of a block. A warp has a group of rows, and all
    columns or some of them: `parts` has what it sums.
    """
    facts, DIM, WARPS = config.dtype_facts, config.DIM, config.DIM // WARP
    REALS, real, int32 = facts.reals_per_element, ptx.REALS[facts.real], ptx.types.int32
    (load, update, COUNT), quotient, offset = _tile(config), ptx.quotient, ptx.offset
    SUM = 2 * REALS  # place of the sum in what a lane has of its row

    @device_function
    def run_warp(row, y, x, v, w, work, i, first, end, ld):
        for part in range(REALS):
            row[part], row[REALS + part] = v[i * REALS + part], w[i * REALS + part]
            row[SUM + part] = real(0)
        j = int32(first)
        while j < end:
            column = offset(work, (j * ld + i) * REALS)
            load(0, y, column, ld)
            update(0, y, row, column, ld, x, v, w, j)
            j = int32(j + COUNT)

    @device_function
    def run(y, row, product, parts, x, v, w, work, k, n, ld, block, blocks, t):
        warp, lane, start = int32(t >> 5), int32(t & 31), int32((k + 1) >> 5)
        groups = int32(ld >> 5)
        # blocks are a power of two: the first group of this one that has rows left, and the number of them
        start = int32(start + ((block - start) & (blocks - 1)))
        mine = int32(quotient(int32(groups - start + blocks - 1), blocks)) if start < groups else int32(0)
        shares = int32(max(quotient(int32(WARPS), mine), 1)) if mine > 0 else int32(1)
        tiles = int32(quotient(int32(n - k - 1 + COUNT - 1), int32(COUNT)))
        span = int32(quotient(int32(tiles + shares - 1), shares) * COUNT)
        item = warp
        while item < mine * shares:
            share = int32(quotient(item, mine))
            group = int32(start + (item - share * mine) * blocks)
            first = int32(k + 1 + share * span)
            end = int32(min(first + span, n))
            run_warp(row, y, x, v, w, work, int32(group * WARP + lane), first, end, ld)
            for part in range(REALS):
                parts[(item * WARP + lane) * REALS + part] = row[SUM + part]
            item = int32(item + WARPS)
        cuda.syncthreads()
        number = int32(t)
        while number < mine * WARP:
            i = int32((start + (number >> 5) * blocks) * WARP + (number & 31))
            for part in range(REALS):
                total = parts[number * REALS + part]
                for share in range(1, shares):
                    total += parts[(share * mine * WARP + number) * REALS + part]
                product[i * REALS + part] = total
            number = int32(number + DIM)

    return run


def leaf_writer(config: BlockConfig) -> Callable:
    """``write(leaves, d, e, partials, n, leaf, padded, block, blocks, t)``: the blocks of T on its diagonal.
    What couples two of them is taken off their diagonals, too.
    """
    DIM, real = config.DIM, ptx.REALS[config.dtype_facts.real]
    int32, quotient, largest = ptx.types.int32, ptx.quotient, team_max(config.DIM)

    @device_function
    def write(leaves, d, e, partials, n, leaf, padded, block, blocks, t):
        bound, i = real(0), int32(t)
        while i < n:
            near = abs(d[i])
            if i > 0:
                near += abs(e[i - 1])
            if i < n - 1:
                near += abs(e[i])
            bound = max(bound, near)
            i = int32(i + DIM)
        bound = largest(bound, partials, t, int32(DIM))
        beyond = bound * real(BEYOND) if bound > real(0) else real(1)
        if block == 0:
            i = int32(n - 1 + t)
            while i < padded:
                e[i] = real(0)
                i = int32(i + DIM)
        size, number = int32(leaf * leaf), int32(block * DIM + t)
        while number < padded * leaf:
            which = int32(quotient(number, size))
            inside = int32(number - which * size)
            col = int32(quotient(inside, leaf))
            row = int32(inside - col * leaf)
            i = int32(which * leaf + row)
            x = real(0)
            if row == col:
                x = d[i] if i < n else beyond
                if row == 0 and 0 < i < n:
                    x -= abs(e[i - 1])
                if row == leaf - 1 and i < n - 1:
                    x -= abs(e[i])
            elif abs(row - col) == 1:
                low = int32(which * leaf + min(row, col))
                if low < n - 1:
                    x = e[low]
            leaves[number] = x
            number = int32(number + blocks * DIM)

    return write
