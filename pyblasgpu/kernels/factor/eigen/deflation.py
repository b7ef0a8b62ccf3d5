"""Parts of `tridiagonal_merge`: eigenvalues of both halves in order, those that stay, and the new order."""

from __future__ import annotations

from collections.abc import Callable

from ....gpu.backend import cuda, device_function, ptx
from ...common.kernel_config import WARP, BlockConfig
from .secular import team_reducer

__all__ = ["WANTS_ENDS", "deflater", "halves_loader", "ranker"]

#: Option: the first and the last row of the vectors are wanted.
WANTS_ENDS = 2
#: Multiple of the unit roundoff times the norm up to which a number does not matter. Matrices are of about
#: one, so the norm counts as one at least.
TOLERANCE = 8
#: Places of numbers that all threads read: how many eigenvalues stay, and rotations.
LEFT, TURNS = 0, 1


def halves_loader(config: BlockConfig) -> Callable:
    """``load(sorted_d, sorted_z, index, ends, q, d, coupling, size, q_ends, q_cs, stride_q, options, block,
    t)``: eigenvalues of both halves in ascending order, their elements of z and numbers; for `options` the
    first and last rows of their vectors too.
    """
    DIM, real, int32, offset = config.DIM, ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.offset
    HALF_ROOT = 0.5**0.5

    @device_function
    def before(d, half, x, is_second):
        """Eigenvalues of the other half that are before x."""
        low, high = int32(0), int32(half)
        while low < high:
            middle = int32((low + high) >> 1)
            y = d[middle]
            if y < x or (is_second and y == x):
                low = int32(middle + 1)
            else:
                high = middle
        return low

    @device_function
    def load(
        sorted_d, sorted_z, index, ends, q, d, coupling, size, q_ends, q_cs, stride_q, options, block, t
    ):
        half, i = int32(size >> 1), int32(t)
        second = offset(q, stride_q)
        while i < size:
            is_second, x = i >= half, d[i]
            own = int32(i - half) if is_second else i
            rank = int32(own + before(d if is_second else offset(d, half), half, x, is_second))
            z = second[own * q_cs] if is_second else q[q_ends + own * q_cs]
            sorted_d[rank], index[rank] = x, real(i)
            sorted_z[rank] = (-z if is_second and coupling < real(0) else z) * real(HALF_ROOT)
            if options & WANTS_ENDS and block == 0:
                ends[rank] = real(0) if is_second else q[own * q_cs]
                ends[size + rank] = second[q_ends + own * q_cs] if is_second else real(0)
            i = int32(i + DIM)

    return load


def _comparer() -> Callable:
    """``are_close(sorted_d, sorted_z, places, tolerance, i)``: whether the eigenvalue at place i is equal to
    the one before.
    """
    int32 = ptx.types.int32

    @device_function
    def are_close(sorted_d, sorted_z, places, tolerance, i):
        p, q = int32(places[i - 1]), int32(places[i])
        s, c, distance = sorted_z[p], sorted_z[q], sorted_d[q] - sorted_d[p]
        return abs(distance * c * s) <= tolerance * (c * c + s * s)

    return are_close


def _turner(config: BlockConfig) -> tuple[Callable, Callable]:
    """``turn(sorted_d, sorted_z, compact, places, firsts, seconds, cosines, sines, tolerance, m)``: of each
    two equal eigenvalues one without an element of z, by one thread; the number of rotations, which are kept.
    ``write(ends, turns, firsts, seconds, cosines, sines, count, size)``: the rotations, and `ends` by them.

    No branch of `turn` is of one block: the compiler would make a copy of the loop for it and round otherwise
    there, and blocks would find other eigenvalues.
    """
    real, int32, divide, root = (
        ptx.REALS[config.dtype_facts.real],
        ptx.types.int32,
        ptx.divide,
        ptx.square_root,
    )
    are_close, first_lane, sync_warp = _comparer(), ptx.first_lane, ptx.sync_warp

    @device_function
    def turn(sorted_d, sorted_z, compact, places, firsts, seconds, cosines, sines, tolerance, m, lane):
        count, i = int32(0), int32(1)
        while i < m:
            at = int32(min(i + lane, m - 1))
            found = first_lane((i + lane < m) & are_close(sorted_d, sorted_z, places, tolerance, at))
            if found < 0:
                i = int32(i + WARP)
            else:
                i = int32(i + found)
                p, q = int32(places[i - 1]), int32(places[i])
                s, c, first, second = sorted_z[p], sorted_z[q], sorted_d[p], sorted_d[q]
                length = root(c * c + s * s)
                c, s = divide(c, length), divide(-s, length)
                sync_warp()
                if lane == 0:
                    sorted_z[q], sorted_z[p], compact[p] = length, real(0), real(-1)
                    sorted_d[p] = first * (c * c) + second * (s * s)
                    sorted_d[q] = first * (s * s) + second * (c * c)
                    firsts[count], seconds[count], cosines[count], sines[count] = real(p), real(q), c, s
                sync_warp()
                count, i = int32(count + 1), int32(i + 1)
        return count

    @device_function
    def write(ends, turns, firsts, seconds, cosines, sines, count, size):
        for i in range(count):
            p, q, c, s = int32(firsts[i]), int32(seconds[i]), cosines[i], sines[i]
            at = i * 4
            turns[at], turns[at + 1], turns[at + 2], turns[at + 3] = real(p), real(q), c, s
            for row in range(2):
                x, y = ends[row * size + p], ends[row * size + q]
                ends[row * size + p], ends[row * size + q] = c * x + s * y, c * y - s * x

    return turn, write


def deflater(config: BlockConfig) -> Callable:
    """``deflate(sorted_d, sorted_z, compact, places, poles, weights, taus, origins, counts, numbers, ends,
    turns, rho, size, block, t)``: the number of eigenvalues that stay, which are `poles` with the `weights`
    z, and of rotations. ``compact`` becomes the number of each among them, or -1. `taus` and `origins` are
    overwritten.
    """
    DIM, real, int32 = config.DIM, ptx.REALS[config.dtype_facts.real], ptx.types.int32
    UNIT, (turn, write), quotient = config.dtype_facts.unit_roundoff, _turner(config), ptx.quotient
    are_close, shuffle = _comparer(), ptx.shuffle

    @device_function
    def find_places(compact, places, counts, numbers, size, t):
        """Places of those that stay, in ascending order; a thread has neighbours."""
        share, before = int32(quotient(int32(size + DIM - 1), int32(DIM))), int32(0)
        first = int32(min(t * share, size))
        end = int32(min(first + share, size))
        for i in range(first, end):
            if compact[i] >= real(0):
                before = int32(before + 1)
        lane, warp, total, distance = int32(t & 31), int32(t >> 5), before, int32(1)
        while distance < WARP:
            other = shuffle(total, int32(max(lane - distance, 0)))
            total = int32(total + other) if lane >= distance else total
            distance = int32(distance << 1)
        if lane == WARP - 1:
            counts[warp] = real(total)
        cuda.syncthreads()
        before = int32(total - before)
        for k in range(warp):
            before = int32(before + int32(counts[k]))
        for i in range(first, end):
            if compact[i] >= real(0):
                places[before] = real(i)
                before = int32(before + 1)
        if t == DIM - 1:
            numbers[LEFT] = real(before)
        cuda.syncthreads()

    @device_function
    def has_close(sorted_d, sorted_z, places, tolerance, m, t):
        """Whether two neighbours are equal."""
        found, i = int32(0), int32(t + 1)
        while i < m:
            if are_close(sorted_d, sorted_z, places, tolerance, i):
                found = int32(1)
            i = int32(i + DIM)
        return cuda.syncthreads_or(found) != 0

    @device_function
    def deflate(
        sorted_d, sorted_z, compact, places, poles, weights, taus, origins, counts, numbers, ends, turns, rho,
        size, block, t,
    ):  # fmt: skip
        most = max(max(abs(sorted_d[0]), abs(sorted_d[size - 1])), real(1))
        tolerance = real(TOLERANCE * UNIT) * most
        i = int32(t)
        while i < size:
            compact[i] = real(0) if rho * abs(sorted_z[i]) > tolerance else real(-1)
            i = int32(i + DIM)
        if t == 0:
            numbers[TURNS] = real(0)
        cuda.syncthreads()
        find_places(compact, places, counts, numbers, size, t)
        left = int32(numbers[LEFT])
        if has_close(sorted_d, sorted_z, places, tolerance, left, t):
            if t < WARP:
                count = turn(
                    sorted_d, sorted_z, compact, places, poles, weights, taus, origins, tolerance, left, t
                )
                if t == 0 and block == 0:
                    write(ends, turns, poles, weights, taus, origins, count, size)
                if t == 0:
                    numbers[TURNS] = real(count)
            cuda.syncthreads()
            find_places(compact, places, counts, numbers, size, t)
        m, i = int32(numbers[LEFT]), int32(t)
        while i < m:
            p = int32(places[i])
            poles[i], weights[i], compact[p] = sorted_d[p], sorted_z[p], real(i)
            i = int32(i + DIM)
        cuda.syncthreads()
        return m, int32(numbers[TURNS])

    return deflate


def ranker(config: BlockConfig, team: int) -> tuple[Callable, Callable]:
    """``evaluate(values, sorted_d, compact, poles, taus, origins, size, t)``: eigenvalues of the pair.
    ``rank(values, p, size, lane, t)``: the place of one in ascending order, by a team.
    """
    DIM, int32 = config.DIM, ptx.types.int32
    total = team_reducer(team, int32)

    @device_function
    def evaluate(values, sorted_d, compact, poles, taus, origins, size, t):
        i = int32(t)
        while i < size:
            j = int32(compact[i])
            values[i] = sorted_d[i]
            if j >= 0:
                values[i] = poles[int32(origins[j])] + taus[j]
            i = int32(i + DIM)
        cuda.syncthreads()

    @device_function
    def rank(values, p, size, lane, t):
        x, before, k = values[p], int32(0), int32(lane)
        while k < size:
            y = values[k]
            if y < x or (y == x and k < p):
                before = int32(before + 1)
            k = int32(k + team)
        return total(before, t)

    return evaluate, rank
