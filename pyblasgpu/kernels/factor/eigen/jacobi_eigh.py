"""``jacobi_eigh``: eigenvalues and vectors of small symmetric and Hermitian matrices, of a batch as a rule.

Cyclic Jacobi by two-sided rotations: half of the matrix and the vectors are in shared memory, the vectors of
large ones in global memory. A warp has one matrix or several, a block has one. In a step each pair of columns
has a rotation. All threads apply them to the matrix; then the first ones compute the next rotations, while
the others apply the present ones to the vectors. So a step has two barriers.

The m - 1 columns that change their pairs are on a circle, and their elements are stored by diagonals of it:
half of them, as A is symmetric. Elements of neighbouring pairs are in one diagonal, or at odd distances, so
they are in different banks. The column that stays where it is has a place of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..qr.reflector import scaler, size_of
from .rotation import PARTIALS, angle, barrier, pair_of, resident_blocks, team_max, team_sum, turner

__all__ = ["STEM", "JacobiEigh", "source"]

STEM = "jacobi_eigh"
PARAMETERS = parameters(
    "pointer: a, w, v, work",
    "int32 pointer: info",
    "int32: n, vectors, conj, lanes, count",
    "int64: a_rs, a_cs, w_step, v_rs, v_cs, stride_a, stride_w, stride_v, stride_work, stride_info",
)
SWEEPS = 40  # at most; ten are many
#: Threads of a block and of a matrix at most, by the place of the order in `ORDERS`.
THREADS = ((64, WARP), (256, 256), (512, 512), (1024, 1024))
#: Orders of the kernels, by bytes of an element. The last one has the vectors in global memory.
ORDERS = {4: (32, 64, 128, 256), 8: (32, 64, 128, 224), 16: (32, 64, 96, 160)}
#: Threads that a multiprocessor is to hold, by bytes of an element: what registers allow without spills, of
#: the kernel whose matrices are of a warp, and of others.
RESIDENT_THREADS = {4: (768, 1024), 8: (768, 768), 16: (512, 512)}
LANES = (4, 8, 16, 32)  # of a matrix in a warp
ROWS = 4  # rows of the vectors that a thread has under way, of complex ones half as many
APART = 4  # groups of threads, from which on the first one computes rotations alone


@dataclass(frozen=True)
class JacobiEigh(BlockConfig):
    """Config of one `jacobi_eigh` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    TEAM : int
        Threads of a matrix: `DIM`, or at most those of a warp.
    ORDER : int
        The largest order of a matrix, even.
    RESIDENT_VECTORS : bool
        Whether vectors are in shared memory, too.
    """

    DIM: int = 1024
    TEAM: int = 1024
    ORDER: int = 160
    RESIDENT_VECTORS: bool = False

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.TEAM in (WARP, self.DIM), "team", f"TEAM in ({WARP}, DIM)", TEAM=self.TEAM, DIM=self.DIM)
        require(
            0 < self.ORDER <= 2 * self.TEAM and self.ORDER % 2 == 0,
            "order",
            "0 < ORDER <= 2 * TEAM and ORDER % 2 == 0",
            ORDER=self.ORDER,
            TEAM=self.TEAM,
        )
        require(
            self.TEAM > WARP or self.ORDER <= WARP,
            "warp",
            f"TEAM > {WARP} or ORDER <= {WARP}",
            TEAM=self.TEAM,
            ORDER=self.ORDER,
        )

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64

    @property
    def min_blocks(self) -> int:
        return resident_blocks(self, RESIDENT_THREADS[self.dtype_facts.itemsize][self.TEAM > WARP])

    @property
    def teams(self) -> int:
        """Matrices of order `ORDER` in a block."""
        return self.DIM // self.TEAM

    @property
    def ldv(self) -> int:
        """Elements from one row of the vectors to the next: odd, against bank conflicts."""
        return self.ORDER + 1

    @property
    def shared_bytes(self) -> int:
        """Bytes for rotations, half of the matrix, the vectors, and partial sums."""
        m, reals = self.ORDER, self.dtype_facts.reals_per_element
        each = (1 + reals) * m + reals * (m // 2 + 1) * m + reals * m * self.ldv * self.RESIDENT_VECTORS
        return -(-(PARTIALS + self.teams * each) * self.dtype_facts.real_size // 16) * 16

    @property
    def variants(self) -> tuple[Self, ...]:
        orders = ORDERS[self.dtype_facts.itemsize]
        smaller = [order for order in orders[:-1] if order < self.ORDER]
        return (
            *(
                replace(self, DIM=dim, TEAM=team, ORDER=order, RESIDENT_VECTORS=True)
                for order, (dim, team) in zip(smaller, THREADS, strict=False)
            ),
            self,
        )

    def fitting(self, shared_per_block: int) -> Self:
        """The Config for a device whose blocks have `shared_per_block` bytes of shared memory."""
        return [each for each in self.variants if each.shared_bytes <= shared_per_block][-1]

    def specialize(self, order: int) -> Self:
        """The Config for matrices of this order: of small ones more are resident."""
        return next(each for each in self.variants if order <= each.ORDER)

    def lanes(self, order: int) -> int:
        """Threads of a matrix of this order."""
        return self.TEAM if self.TEAM > WARP else next(lanes for lanes in LANES if order <= lanes)

    def grid(self, order: int, count: int) -> int:
        """Blocks for `count` matrices."""
        return -(-count // (self.DIM // self.lanes(order)))


def source(config: JacobiEigh) -> KernelSource:
    """The kernel of `config`, for n <= ORDER.

    Kernel parameters
    -----------------
    a: pointer, A, whose lower triangle is read
    w, v: pointer, eigenvalues in ascending order, reals, and vectors as columns; V may be A
    work: pointer, n * ``config.ldv`` elements a matrix, used where vectors are not in shared memory
    info: int32 pointer, 0, or n where A is not finite or the sweeps did not suffice
    n, vectors, conj: int32, order, whether vectors are wanted, whether A is meant conjugated
    lanes, count: int32, threads of a matrix, ``config.lanes(n)``, and matrices
    a_rs, a_cs: int64, row and column stride of A (elements)
    w_step: int64, stride of w (reals)
    v_rs, v_cs: int64, row and column stride of V (elements)
    stride_a, stride_w, stride_v, stride_work, stride_info: int64, batch strides (elements, reals, words)

    Grid: x ``config.grid(n, matrices)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _places(facts) -> tuple[Callable, Callable, Callable, Callable]:
    """``place(i, j, h)``: where the element of A is that is (i, j) or the conjugate of (j, i); ``sign(i, j,
    h)``: what its imaginary part is multiplied by to be that of (i, j). ``get(x, i, s, at, plane, sign)`` and
    ``put(s, at, plane, x, i, sign)``: an element from shared memory and to it, `plane` reals from the real
    parts to the imaginary ones.
    """
    COMPLEX, real, int32, select = facts.is_complex, ptx.REALS[facts.real], ptx.types.int32, ptx.select

    @device_function
    def place(i, j, h):
        m, row, col = int32(h + h), int32(max(i, j)), int32(min(i, j))
        is_near = row - col < h
        at = select(is_near, int32((row - col) * m + col), int32((m - 1 - row + col) * m + row))
        return select(row == m - 1, int32(h * m + col), at)

    @device_function
    def sign(i, j, h):
        is_far = (abs(i - j) >= h) & (max(i, j) < h + h - 1)
        return real(1) if (i >= j) != is_far else real(-1)

    @device_function
    def get(x, i, s, at, plane, sign):
        x[i] = s[at]
        if COMPLEX:
            x[i + 1] = sign * s[at + plane]

    @device_function
    def put(s, at, plane, x, i, sign):
        s[at] = x[i]
        if COMPLEX:
            s[at + plane] = sign * x[i + 1]

    return place, sign, get, put


def _loader(config: JacobiEigh) -> Callable:
    """``load(x, s, plane, v, plane_v, vectors, a, a_rs, a_cs, n, rows, conj, h, thread, lanes)``: A to
    shared memory, zeros beyond `rows`, the identity for the vectors; the largest size of a part of the
    thread's elements.
    """
    facts, (place, sign, _, put) = config.dtype_facts, _places(config.dtype_facts)
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    int32, int64, quotient, size = ptx.types.int32, ptx.types.int64, ptx.quotient, size_of(facts)
    LDV = config.ldv

    @device_function
    def load(x, s, plane, v, plane_v, vectors, a, a_rs, a_cs, n, rows, conj, h, thread, lanes):
        by_columns, m = abs(a_rs) <= abs(a_cs), int32(h + h)
        most, number = real(0), int32(thread)
        while number < m * m:
            slow = int32(quotient(number, m))
            fast = int32(number - slow * m)
            i, j = (fast, slow) if by_columns else (slow, fast)
            if i >= j:
                x[0], x[REALS - 1] = real(0), real(0)
                if i < rows:
                    at = (int64(i) * a_rs + int64(j) * a_cs) * REALS
                    for part in range(REALS):
                        x[part] = a[at + part]
                    if COMPLEX:
                        x[1] = real(0) if i == j else (-x[1] if conj != 0 else x[1])
                    most = max(most, size(x, int32(0)))
                put(s, place(i, j, h), plane, x, int32(0), sign(i, j, h))
            if vectors != 0 and slow < n:
                at = int32(slow * LDV + fast)
                for part in range(REALS):
                    v[at + part * plane_v] = real(1) if part == 0 and slow == fast else real(0)
            number = int32(number + lanes)
        return most

    return load


def _scaler(config: JacobiEigh) -> Callable:
    """``scale(out, s, plane, factor, h, thread, lanes)``: A times a factor; ``out[0]`` the sum of squares
    of the thread's elements, ``out[1]`` of those below the diagonal.
    """
    facts, (place, *_) = config.dtype_facts, _places(config.dtype_facts)
    REALS, real, int32, quotient = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.quotient,
    )

    @device_function
    def scale(out, s, plane, factor, h, thread, lanes):
        out[0], out[1] = real(0), real(0)
        m, number = int32(h + h), int32(thread)
        while number < m * m:
            j = int32(quotient(number, m))
            i = int32(number - j * m)
            if i >= j:
                at, square = place(i, j, h), real(0)
                for part in range(REALS):
                    x = s[at + part * plane] * factor
                    s[at + part * plane] = x
                    square += x * x
                out[0] += square
                if i > j:
                    out[0] += square
                    out[1] += square
            number = int32(number + lanes)

    return scale


def _rotations(config: JacobiEigh) -> Callable:
    """``rotate(out, x, turns, s, plane, i, k, h)``: the rotation of pair `i` in step `k`, to `turns`, and
    its own four elements of A.
    """
    facts, (place, sign, get, _) = config.dtype_facts, _places(config.dtype_facts)
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    pair, make, int32 = pair_of(), angle(facts), ptx.types.int32

    @device_function
    def rotate(out, x, turns, s, plane, i, k, h):
        p, q = pair(i, k, int32(h + h))
        first, second, between = place(p, p, h), place(q, q, h), place(p, q, h)
        get(x, int32(0), s, between, plane, sign(p, q, h))
        gain = make(out, s[second] - s[first], x[0], x[REALS - 1])
        s[first] -= gain
        s[second] += gain
        s[between] = real(0)
        turns[i], turns[h + i] = out[0], out[1]
        if COMPLEX:
            s[between + plane] = real(0)
            turns[h + h + i] = out[2]

    return rotate


def _updater(config: JacobiEigh) -> Callable:
    """``update(x, turns, s, plane, i, k, h, d, step, meets_fixed)``: the rotations of step `k` applied to A,
    where the rows of pair `i` meet the columns of pair i + d, i + d + step, ...; pair 0, which has the column
    that is in no diagonal, meets pair `i` if `meets_fixed`.
    """
    facts, (*_, get, put) = config.dtype_facts, _places(config.dtype_facts)
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    pair, turn, select = pair_of(), turner(facts), ptx.select

    @device_function
    def turn_block(x, s, plane, pp, pq, qp, qq, first, crossed, second, c, re, im, c_j, re_j, im_j):
        get(x, 0, s, pp, plane, first)
        get(x, REALS, s, pq, plane, crossed)
        get(x, 2 * REALS, s, qp, plane, -crossed)
        get(x, 3 * REALS, s, qq, plane, second)
        turn(x, 0, REALS, c_j, re_j, im_j)
        turn(x, 2 * REALS, 3 * REALS, c_j, re_j, im_j)
        turn(x, 0, 2 * REALS, c, re, -im)
        turn(x, REALS, 3 * REALS, c, re, -im)
        put(s, pp, plane, x, 0, first)
        put(s, pq, plane, x, REALS, crossed)
        put(s, qp, plane, x, 2 * REALS, -crossed)
        put(s, qq, plane, x, 3 * REALS, second)

    @device_function
    def update(x, turns, s, plane, i, k, h, d, step, meets_fixed):
        m, others, c, re, im = int32(h + h), int32(h - 1), turns[i], turns[h + i], real(0)
        if COMPLEX:
            im = turns[h + h + i]
        p, q = pair(i, k, m)
        while d + d < others or (d + d == others and i <= d):
            # rows p and q, columns p_j and q_j: distances d or others - d, and i + j or m - 1 - i - j
            j = int32(i + d)
            is_back, distance = j >= h, d
            if is_back:
                j, distance = int32(j - others), int32(others - d)
            p_j, q_j = pair(j, k, m)
            is_near, across = i + j < h, int32(i + j)
            start = int32(distance * m)
            far = int32(select(is_near, across, int32(m - 1 - across)) * m)
            pp, qq = int32(start + select(is_back, p_j, p)), int32(start + select(is_back, q, q_j))
            pq, qp = int32(far + select(is_near, q_j, p)), int32(far + select(is_near, q, p_j))
            c_j, re_j, im_j = turns[j], turns[h + j], real(0)
            if COMPLEX:
                im_j = turns[h + h + j]
            first, crossed = real(1) if is_back else real(-1), real(1) if is_near else real(-1)
            turn_block(x, s, plane, pp, pq, qp, qq, first, crossed, -first, c, re, im, c_j, re_j, im_j)
            d = int32(d + step)
        if meets_fixed:
            # rows m - 1 and k
            c_0, re_0, im_0, last, start = turns[0], turns[h], real(0), int32(h * m), int32(i * m)
            if COMPLEX:
                im_0 = turns[h + h]
            pp, pq, qp, qq = int32(last + p), int32(last + q), int32(start + k), int32(start + q)
            one = real(1)
            turn_block(x, s, plane, pp, pq, qp, qq, one, one, one, c_0, re_0, im_0, c, re, im)

    return update


def _squares(facts) -> Callable:
    """``square(s, plane, h, thread, lanes)``: the sum of squares of a thread's elements of A, without the
    diagonal.
    """
    REALS, real, int32, quotient = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.quotient,
    )

    @device_function
    def square(s, plane, h, thread, lanes):
        m, total, number = int32(h + h), real(0), int32(thread)
        while number < h * (m - 1):
            distance = int32(quotient(number, int32(m - 1)))
            at = int32(number + m + distance)
            for part in range(REALS):
                x = s[at + part * plane]
                total += x * x
            number = int32(number + lanes)
        return total

    return square


def _vector_turner(config: JacobiEigh) -> Callable:
    """``turn_vectors(x, turns, v, plane, i, k, h, row, end)``: the rotation of pair `i` of step `k` applied
    to rows of V, several under way at a time.
    """
    facts, (*_, get, put) = config.dtype_facts, _places(config.dtype_facts)
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    pair, turn, COUNT = pair_of(), turner(facts), ROWS // facts.reals_per_element
    offset, LDV = ptx.offset, config.ldv

    @device_function
    def load(k, x, first, second, plane):
        get(x, 2 * k * REALS, first, k * LDV, plane, real(1))
        get(x, (2 * k + 1) * REALS, second, k * LDV, plane, real(1))

    @device_function
    def turn_one(k, x, c, re, im):
        turn(x, 2 * k * REALS, (2 * k + 1) * REALS, c, re, im)

    @device_function
    def store(k, x, first, second, plane):
        put(first, k * LDV, plane, x, 2 * k * REALS, real(1))
        put(second, k * LDV, plane, x, (2 * k + 1) * REALS, real(1))

    load_all, turn_all, store_all = unrolled(COUNT, load), unrolled(COUNT, turn_one), unrolled(COUNT, store)

    @device_function
    def turn_vectors(x, turns, v, plane, i, k, h, row, end):
        c, re, im = turns[i], turns[h + i], real(0)
        if COMPLEX:
            im = turns[h + h + i]
        p, q = pair(i, k, int32(h + h))
        first, second = offset(v, int32(p + row * LDV)), offset(v, int32(q + row * LDV))
        while row + COUNT <= end:
            load_all(0, x, first, second, plane)
            turn_all(0, x, c, re, im)
            store_all(0, x, first, second, plane)
            first, second = offset(first, COUNT * LDV), offset(second, COUNT * LDV)
            row = int32(row + COUNT)
        while row < end:
            load(0, x, first, second, plane)
            turn_one(0, x, c, re, im)
            store(0, x, first, second, plane)
            first, second, row = offset(first, LDV), offset(second, LDV), int32(row + 1)

    return turn_vectors


def _finisher(config: JacobiEigh) -> Callable:
    """``finish(turns, s, v, plane, back, w, w_step, out, v_rs, v_cs, vectors, n, rows, h, thread,
    lanes)``: eigenvalues times `back` in ascending order, and their vectors; NaN where `back` is none.
    """
    facts, (place, *_) = config.dtype_facts, _places(config.dtype_facts)
    REALS, real, int32, int64 = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.types.int64,
    )
    offset, quotient, sync, LDV = ptx.offset, ptx.quotient, barrier(config.TEAM), config.ldv

    @device_function
    def sort(values, order, s, is_bad, n, h, thread, lanes):
        i = int32(thread)
        while i < n:
            values[i] = real(i) if is_bad else s[place(i, i, h)]
            i = int32(i + lanes)
        sync()
        i = int32(thread)
        while i < n:
            x, rank = values[i], int32(0)
            for j in range(n):
                y = values[j]
                if y < x or (y == x and j < i):
                    rank = int32(rank + 1)
            order[rank] = real(i)
            i = int32(i + lanes)
        sync()

    @device_function
    def finish(turns, s, v, plane, back, w, w_step, out, v_rs, v_cs, vectors, n, rows, h, thread, lanes):
        m, is_bad = int32(h + h), back != back
        order, unit = offset(turns, m), back if is_bad else real(1)
        sort(turns, order, s, is_bad, n, h, thread, lanes)
        i = int32(thread)
        while i < rows:
            w[i * w_step] = turns[int32(order[i])] * back
            i = int32(i + lanes)
        by_columns, number = abs(v_rs) <= abs(v_cs), int32(thread)
        while number < rows * n and vectors != 0:
            slow = int32(quotient(number, n))
            fast = int32(number - slow * n)
            i, j = (fast, slow) if by_columns else (slow, fast)
            at, of = (int64(i) * v_rs + int64(j) * v_cs) * REALS, int32(i * LDV + int32(order[j]))
            for part in range(REALS):
                out[at + part] = v[of + part * plane] * unit
            number = int32(number + lanes)

    return finish


def _sweeper(config: JacobiEigh) -> Callable:
    """``sweep(out, x, turns, s, plane, v, plane_v, vectors, n, h, i, group, groups)``: a rotation of each
    two columns. Threads of a group have a pair each; those of a group from `groups` on do nothing.
    """
    facts, int32 = config.dtype_facts, ptx.types.int32
    rotate, update, turn_vectors = _rotations(config), _updater(config), _vector_turner(config)
    sync, offset, quotient, TURN = (
        barrier(config.TEAM),
        ptx.offset,
        ptx.quotient,
        1 + facts.reals_per_element,
    )

    @device_function
    def sweep(out, x, turns, s, plane, v, plane_v, vectors, n, h, i, group, groups):
        m, is_here = int32(h + h), group < groups
        d = int32(group + 1) if is_here and i > 0 else h
        # pair 0 is of the group that has the least to do
        least = int32((h - 1) >> 1)
        least = int32(least - quotient(least, groups) * groups)
        meets_fixed = is_here & (i > 0) & (group == least)
        # rows of V: the first group has none where there are enough others
        apart = int32(1) if groups > APART else int32(0)
        share = int32(quotient(int32(n + groups - apart - 1), int32(groups - apart)))
        row = int32((group - apart) * share)
        end = int32(min(row + share, n)) if is_here and group >= apart and vectors != 0 else row
        if group == 0 and is_here:
            rotate(out, x, turns, s, plane, i, int32(0), h)
        sync()
        k = int32(0)
        while k < m - 1:
            now = offset(turns, int32((k & 1) * TURN * h))
            update(x, now, s, plane, i, k, h, d, groups, meets_fixed)
            sync()
            if group == 0 and is_here and k < m - 2:
                following = offset(turns, int32((1 - (k & 1)) * TURN * h))
                rotate(out, x, following, s, plane, i, int32(k + 1), h)
            turn_vectors(x, now, v, plane_v, i, k, h, row, end)
            sync()
            k = int32(k + 1)

    return sweep


def _build(config: JacobiEigh):
    facts, TEAM, DIM = config.dtype_facts, config.TEAM, config.DIM
    REALS, real, UNIT = facts.reals_per_element, ptx.REALS[facts.real], facts.unit_roundoff
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    quotient, first_lane, grid_dependency_wait = ptx.quotient, ptx.first_lane, ptx.grid_dependency_wait
    load, scale, scales, sweep, square, finish = (
        _loader(config),
        _scaler(config),
        scaler(facts),
        _sweeper(config),
        _squares(facts),
        _finisher(config),
    )
    total, largest = team_sum(TEAM), team_max(TEAM)
    IS_WARP, RESIDENT, HELD, ORDER, LDV = (
        TEAM <= WARP,
        config.RESIDENT_VECTORS,
        2 * ROWS,
        config.ORDER,
        config.ldv,
    )
    IS_FIXED, PLANE = RESIDENT and not IS_WARP, (ORDER // 2 + 1) * ORDER

    def jacobi_eigh(
        a,
        w,
        v,
        work,
        info,
        n,
        vectors,
        conj,
        lanes,
        count,
        a_rs,
        a_cs,
        w_step,
        v_rs,
        v_cs,
        stride_a,
        stride_w,
        stride_v,
        stride_work,
        stride_info,
    ):
        # (1) the matrix of this team, and the pairs of this thread
        t = int32(cuda.threadIdx.x & 1023)
        team, thread, matrix = int32(0), t, int64(cuda.blockIdx.x)
        if IS_WARP:
            team, thread = int32(quotient(t, lanes)), int32(t & (lanes - 1))
            matrix = matrix * quotient(int32(DIM), lanes) + team
        m = int32(n + (n & 1))
        h = int32(m >> 1)
        plane, plane_v = int32((h + 1) * m), int32(n * LDV)
        if IS_FIXED:  # constants, which take no arithmetic
            plane, plane_v = int32(PLANE), int32(ORDER * LDV)
        groups, group = int32(quotient(lanes, h)), int32(quotient(thread, h))
        i, rows = int32(thread - group * h), n if matrix < count else int32(0)
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        size = int32((1 + REALS) * m + REALS * (plane + (plane_v if RESIDENT else 0)))
        turns = offset(partials, PARTIALS + team * size)
        s = offset(turns, (1 + REALS) * m)
        own = offset(s, REALS * plane) if RESIDENT else offset(work, matrix * stride_work * REALS)
        out, x = cuda.local.array(3, real), cuda.local.array(HELD, real)
        grid_dependency_wait()

        # (2) A of about one; its norm
        a = offset(a, matrix * stride_a * REALS)
        most = load(x, s, plane, own, plane_v, vectors, a, a_rs, a_cs, n, rows, conj, h, thread, lanes)
        most = largest(most, partials, t, lanes)
        scales(out, most)
        back = out[1] if most < real(float("inf")) else real(float("nan"))
        scale(out, s, plane, out[0], h, thread, lanes)
        off = total(out[1], partials, t, lanes)
        enough = total(out[0], partials, t, lanes) * real(UNIT * UNIT)

        # (3) sweeps, until what is left below the diagonal is rounding
        number = int32(0)
        is_left = off > enough
        while number < SWEEPS and (first_lane(is_left) >= 0 if IS_WARP else is_left):
            mine = group if is_left else groups
            sweep(out, x, turns, s, plane, own, plane_v, vectors, n, h, i, mine, groups)
            off = total(square(s, plane, h, thread, lanes), partials, t, lanes)
            is_left = is_left & (off > enough)
            number = int32(number + 1)

        # (4) the results
        w, v = offset(w, matrix * stride_w), offset(v, matrix * stride_v * REALS)
        finish(turns, s, own, plane_v, back, w, w_step, v, v_rs, v_cs, vectors, n, rows, h, thread, lanes)
        if thread == 0 and matrix < count:
            info[matrix * stride_info] = n if is_left or back != back else int32(0)

    return jacobi_eigh
