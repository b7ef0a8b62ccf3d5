"""``jacobi_eigh``: eigenvalues and vectors of small symmetric and Hermitian matrices, of a batch as a rule.

Cyclic Jacobi by two-sided rotations: half of the matrix and the vectors are in shared memory. A warp has one
matrix or several, a block has one. In a step each pair of columns has a rotation. All threads apply them to
the matrix; then the first ones compute the next rotations, while the others apply the present ones to the
vectors. So a step has two barriers.

The m - 1 columns that change their pairs are on a circle, and their elements are stored by diagonals of it:
half of them, as A is symmetric. Elements of neighbouring pairs are in one diagonal, or at odd distances, so
they are in different banks. The column that stays where it is has a place of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..qr.reflector import scaler
from .eigh_steps import ROWS, rotations, updater, vector_turner
from .ranking import ranker
from .rotation import PARTIALS, barrier, resident_blocks, team_max, team_sum
from .symmetric_store import loader, places, squares, symmetric_scaler

__all__ = ["STEM", "JacobiEigh", "source"]

STEM = "jacobi_eigh"
PARAMETERS = parameters(
    "pointer: a, w, v",
    "int32 pointer: info",
    "int32: n, vectors, conj, lanes, count",
    "int64: a_rs, a_cs, w_step, v_rs, v_cs, stride_a, stride_w, stride_v, stride_info",
)
SWEEPS = 100  # at most; ten are many, but two clusters of equal eigenvalues take fifty
#: Threads that a multiprocessor is to hold, by bytes of an element: what registers allow without spills, of
#: the kernel whose matrices are of a warp, and of others.
RESIDENT_THREADS = {4: (768, 1024), 8: (768, 768), 16: (512, 512)}
LANES = (4, 8, 16, 32)  # of a matrix in a warp
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
    """

    DIM: int = 64
    TEAM: int = 32
    ORDER: int = 32

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
        each = (1 + reals) * m + reals * (m // 2 + 1) * m + reals * m * self.ldv
        return -(-(PARTIALS + self.teams * each) * self.dtype_facts.real_size // 16) * 16

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
    info: int32 pointer, 0, or n where A is not finite or the sweeps did not suffice
    n, vectors, conj: int32, order, whether vectors are wanted, whether A is meant conjugated
    lanes, count: int32, threads of a matrix, ``config.lanes(n)``, and matrices
    a_rs, a_cs: int64, row and column stride of A (elements)
    w_step: int64, stride of w (reals)
    v_rs, v_cs: int64, row and column stride of V (elements)
    stride_a, stride_w, stride_v, stride_info: int64, batch strides (elements, reals, words)

    Grid: x ``config.grid(n, matrices)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _finisher(config: JacobiEigh) -> Callable:
    """``finish(turns, s, v, plane, back, w, w_step, out, v_rs, v_cs, vectors, n, rows, h, thread,
    lanes)``: eigenvalues times `back` in ascending order, and their vectors; NaN where `back` is none.
    """
    facts = config.dtype_facts
    place, *_ = places(facts)
    REALS, real, int32, int64 = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.types.int64,
    )
    offset, quotient, sync, LDV = ptx.offset, ptx.quotient, barrier(config.TEAM), config.ldv
    rank = ranker(descends=False)

    @device_function
    def sort(values, order, s, is_bad, n, h, thread, lanes):
        i = int32(thread)
        while i < n:
            values[i] = real(i) if is_bad else s[place(i, i, h)]
            i = int32(i + lanes)
        sync()
        i = int32(thread)
        while i < n:
            order[rank(values, i, n)] = real(i)
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
    rotate, update, turn_vectors = rotations(facts), updater(facts), vector_turner(facts, config.ldv)
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
        loader(facts, config.ldv),
        symmetric_scaler(facts),
        scaler(facts),
        _sweeper(config),
        squares(facts),
        _finisher(config),
    )
    total, largest = team_sum(TEAM), team_max(TEAM)
    IS_WARP, HELD, ORDER, LDV = TEAM <= WARP, 2 * ROWS, config.ORDER, config.ldv
    PLANE = (ORDER // 2 + 1) * ORDER

    def jacobi_eigh(
        a, w, v, info, n, vectors, conj, lanes, count, a_rs, a_cs, w_step, v_rs, v_cs, stride_a,
        stride_w, stride_v, stride_info,
    ):  # fmt: skip
        # (1) the matrix of this team, and the pairs of this thread
        t = int32(cuda.threadIdx.x & 1023)
        team, thread, matrix = int32(0), t, int64(cuda.blockIdx.x)
        if IS_WARP:
            team, thread = int32(quotient(t, lanes)), int32(t & (lanes - 1))
            matrix = matrix * quotient(int32(DIM), lanes) + team
        m = int32(n + (n & 1))
        h = int32(m >> 1)
        plane, plane_v = int32((h + 1) * m), int32(n * LDV)
        if not IS_WARP:  # constants, which take no arithmetic
            plane, plane_v = int32(PLANE), int32(ORDER * LDV)
        groups, group = int32(quotient(lanes, h)), int32(quotient(thread, h))
        i, rows = int32(thread - group * h), n if matrix < count else int32(0)
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        size = int32((1 + REALS) * m + REALS * (plane + plane_v))
        turns = offset(partials, PARTIALS + team * size)
        s = offset(turns, (1 + REALS) * m)
        own = offset(s, REALS * plane)
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
        enough = total(out[0], partials, t, lanes) * real(UNIT * UNIT) * real(n)  # rounding is as large

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
