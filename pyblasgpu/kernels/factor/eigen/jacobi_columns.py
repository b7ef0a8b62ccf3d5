"""``jacobi_columns``: singular values and vectors, or eigenvalues, of small matrices of a batch.

One-sided Jacobi as in `jacobi_svd`, with columns in registers. A warp has some columns of a matrix, or all of
one or of several matrices. It rotates all pairs of them before it exchanges half of them for others, through
shared memory.

A Hermitian matrix becomes positive definite by a multiple of the identity. Its left singular vectors are
eigenvectors then, and V is not computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..qr.reflector import scaler
from .column_steps import STATES, STEPS, Held, beginner, column_mover, columns_of, state_mover, unscaler
from .definite import definite_loader, definite_maker
from .jacobi_svd import CONJ_A, CONJ_U, CONJ_V, WANTS_U
from .rotation import PARTIALS, barrier, pair_of, team_max
from .svd_columns import mover, starter
from .svd_vectors import completer, norms, sorter

__all__ = ["STEM", "SYMMETRIC", "JacobiColumns", "source"]

STEM = "jacobi_columns"
PARAMETERS = parameters(
    "pointer: a, sigma, u, v",
    "int32 pointer: info",
    "int32: m, n, options, count",
    "int64: a_rs, a_cs, sigma_step, u_rs, u_cs, v_rs, v_cs",
    "int64: stride_a, stride_sigma, stride_u, stride_v, stride_info",
)
#: A further bit of `options`: whether A is symmetric, of its lower triangle. `WANTS_V` is of the Config.
SYMMETRIC = 32

SWEEPS = 40  # at most; nine are many
OTHERS = 3  # reals of a column that are none of its elements, and one more element


#: Threads and pairs of columns, by the most columns of a matrix.
SHAPES = {16: (64, 8), 32: (64, 16), 64: (128, 8)}
#: Lanes, by the same and by dtype, without V and with it; 0 for no kernel.
LANES = {
    16: {"s": (8, 16), "d": (8, 16), "c": (8, 16), "z": (16, 16)},
    32: {"s": (16, 32), "d": (16, 32), "c": (16, 32), "z": (32, 0)},
    64: {"s": (32, 32), "d": (32, 32), "c": (0, 0), "z": (0, 0)},
}
#: Threads that a multiprocessor is to hold, as registers allow: by columns and dtype, without V and with it.
RESIDENT_THREADS = {
    16: {"s": (512, 512), "d": (384, 384), "c": (384, 384), "z": (384, 256)},
    32: {"s": (512, 512), "d": (256, 256), "c": (256, 256), "z": (256, 0)},
    64: {"s": (512, 384), "d": (384, 256), "c": (0, 0), "z": (0, 0)},
}


class Team(NamedTuple):
    """Threads of a matrix, and of a column where all columns are looked at, and the distance of columns."""

    lanes: int
    width: int
    ld: int


@dataclass(frozen=True)
class JacobiColumns(BlockConfig):
    """Config of one `jacobi_columns` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    COLS : int
        The most columns, and rows, of a matrix.
    LANES, PAIRS : int
        Neighbouring lanes that have a matrix, or columns of one, and the pairs of columns that they have.
    VECTORS : bool
        Whether V is computed.
    OCCUPANCY : int
        Threads that a multiprocessor is to hold.
    UNROLL : int
        Steps that are one after the other in the code.
    """

    DIM: int = 128
    COLS: int = 64
    LANES: int = 32
    PAIRS: int = 8
    VECTORS: bool = True
    OCCUPANCY: int = 256
    UNROLL: int = 2

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.COLS % self.LANES == 0 and WARP % self.LANES == 0,
            "lanes",
            f"COLS % LANES == 0 and {WARP} % LANES == 0",
            COLS=self.COLS,
            LANES=self.LANES,
        )
        require(
            self.LANES % self.PAIRS == 0 and self.PAIRS % 2 == 0,
            "pairs",
            "LANES % PAIRS == 0 and PAIRS % 2 == 0",
            LANES=self.LANES,
            PAIRS=self.PAIRS,
        )
        require(
            self.is_whole or self.COLS * WARP == 2 * self.PAIRS * self.DIM,
            "warps",
            f"COLS <= 2 * PAIRS or COLS * {WARP} == 2 * PAIRS * DIM",
            COLS=self.COLS,
            PAIRS=self.PAIRS,
            DIM=self.DIM,
        )

    @property
    def held(self) -> Held:
        """Elements that a lane has in registers."""
        rows = self.COLS // self.LANES
        return Held(self.PAIRS, self.LANES, rows, rows * self.VECTORS, self.dtype_facts.reals_per_element)

    @property
    def is_whole(self) -> bool:
        """Whether lanes of a warp have all columns of a matrix."""
        return 2 * self.PAIRS >= self.COLS

    @property
    def team(self) -> Team:
        """Threads of a matrix, and of a column where all columns are looked at, and their distance."""
        width, rows = min(8, self.LANES // 4), self.COLS * (1 + self.VECTORS)
        ld = -(-(rows - width) // (2 * width)) * 2 * width + width
        return Team(self.LANES if self.is_whole else self.DIM, width, ld)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 2 * self.held.pairs * self.held.each * self.dtype_facts.real_size // 4 + 64

    @property
    def min_blocks(self) -> int:
        return self.OCCUPANCY // self.DIM

    @property
    def plane(self) -> int:
        """Reals from a real part to an imaginary one."""
        return self.COLS * self.team.ld

    @property
    def reals(self) -> int:
        """Reals of shared memory of a matrix."""
        warps, each = self.team.lanes // self.LANES, self.dtype_facts.reals_per_element
        return self.plane * each + self.COLS * (OTHERS + each) + warps * STEPS * self.held.sums

    @property
    def shared_bytes(self) -> int:
        return (PARTIALS + self.DIM // self.team.lanes * self.reals) * self.dtype_facts.real_size

    @property
    def variants(self) -> tuple[Self, ...]:
        shaped = (self._shaped(cols, vectors) for cols in SHAPES for vectors in (False, True))
        return tuple(each for each in shaped if each)

    def specialize(self, rows: int, vectors: bool) -> Self | None:
        """The Config for matrices of this many rows, and no more columns; None: they have too many."""
        cols = next((cols for cols in SHAPES if rows <= cols), None)
        return None if cols is None else self._shaped(cols, vectors)

    def _shaped(self, cols: int, vectors: bool) -> Self | None:
        """The Config for this many columns at most, if registers suffice."""
        (dim, pairs), lanes = SHAPES[cols], LANES[cols][self.dtype][vectors]
        resident = RESIDENT_THREADS[cols][self.dtype][vectors]
        return type(self)(self.dtype, dim, cols, lanes, pairs, vectors, resident) if lanes else None

    def grid(self, count: int) -> int:
        """Blocks for `count` matrices."""
        return -(-count // (self.DIM // self.team.lanes))


def source(config: JacobiColumns) -> KernelSource:
    """The kernel of `config`, for n <= m <= COLS.

    Kernel parameters
    -----------------
    a, sigma, u, v: pointer, A, singular values, descending, or eigenvalues, ascending, U and V; they may be A
    info: int32 pointer, 0, or n where A is not finite or the sweeps did not suffice
    m, n, options, count: int32, rows and columns of A, bits as of `jacobi_svd` and `SYMMETRIC`, matrices
    a_rs, a_cs: int64, row and column stride of A (elements)
    sigma_step: int64, stride of values (reals)
    u_rs, u_cs, v_rs, v_cs: int64, row and column strides of U, m by n, and V, n by n (elements)
    stride_a, stride_sigma, stride_u, stride_v, stride_info: int64, batch strides (elements, reals, words)

    Grid: x ``config.grid(matrices)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _sweeper(config: JacobiColumns) -> Callable:
    """``sweep(seen, acc, x, y, kept, mine, theirs, s, steps, m, n, blocks, is_left, tolerance, t)``: a
    rotation of each two columns. ``seen[0]`` becomes 1 where one of the thread's is not `MILD`.
    """
    facts, held, LD, PAIRS = config.dtype_facts, config.held, config.team.ld, config.held.pairs
    IS_WHOLE, LANES, int32 = config.is_whole, config.LANES, ptx.types.int32
    (load, store), begin, unscale = (
        column_mover(facts, held, LD, config.plane),
        beginner(facts, held),
        unscaler(held),
    )
    (cross, inner, restore), sync, pair = (
        columns_of(facts, held, config.UNROLL),
        barrier(config.team.lanes),
        pair_of(),
    )
    (load_states, store_states), offset = state_mover(held), ptx.offset
    VALUES = config.plane * held.reals

    @device_function
    def sweep(seen, acc, x, y, kept, mine, theirs, s, steps, m, n, blocks, is_left, tolerance, t):
        lane, row, warp, k = int32(t & 31), int32(t & (LANES - 1)), int32(t >> 5), int32(0)
        p, q, states = int32(0), int32(PAIRS), offset(s, VALUES)
        while k < (1 if IS_WHOLE else blocks - 1):
            if IS_WHOLE or warp < (blocks >> 1):
                if not IS_WHOLE:
                    p, q = pair(warp, k, blocks)
                    p, q = int32(p * PAIRS), int32(q * PAIRS)
                    load(0, x, y, s, p, q, n, m, row)
                if k == 0:
                    begin(acc, x, y, mine, theirs, lane)
                else:
                    load_states(mine, theirs, states, p, q, lane)
                if not IS_WHOLE or n > PAIRS:
                    cross(seen, acc, x, y, kept, mine, theirs, steps, is_left, tolerance, lane)
                if k == 0:
                    order = n if IS_WHOLE else int32(4 * PAIRS)
                    inner(0, order, seen, acc, x, y, kept, mine, theirs, steps, is_left, tolerance, lane)
                if k == 0 or k == blocks - 2:
                    unscale(acc, x, y, mine, theirs, steps, lane)
                if k == 0:
                    restore(0, x, y)
                if not IS_WHOLE:
                    if k == 0:
                        begin(acc, x, y, mine, theirs, lane)
                    store(0, x, y, s, p, q, n, m, row)
                    store_states(mine, theirs, states, p, q, lane)
            if not IS_WHOLE:
                sync()
            k = int32(k + 1)

    return sweep


def _solver(config: JacobiColumns) -> Callable:
    """``solve(s, steps, partials, m, n, is_left, t)``: sweeps over the columns in shared memory until they
    are orthogonal, if `is_left`; whether they are not.
    """
    facts, held, LD, PAIRS = config.dtype_facts, config.held, config.team.ld, config.held.pairs
    IS_WHOLE, SUMS, HELD, THREADS, LANES = (
        config.is_whole,
        held.sums,
        PAIRS * held.each,
        config.team.lanes,
        config.LANES,
    )
    real, int32, root, quotient = ptx.REALS[facts.real], ptx.types.int32, ptx.square_root, ptx.quotient
    first_lane, UNIT, TEAM = ptx.first_lane, facts.unit_roundoff, max(config.team.lanes, WARP)
    (load, store), sweep = column_mover(facts, held, LD, config.plane), _sweeper(config)
    largest, sync = team_max(TEAM), barrier(TEAM)

    @device_function
    def solve(s, steps, partials, m, n, is_left, t):
        x, y = cuda.local.array(HELD, real), cuda.local.array(HELD, real)
        acc, seen = cuda.local.array(SUMS, real), cuda.local.array(1, real)
        kept = cuda.local.array(HELD, real)
        mine, theirs = cuda.local.array(STATES, real), cuda.local.array(STATES, real)
        row, number = int32(t & (LANES - 1)), int32(0)
        tolerance = real(UNIT) * (root(real(m)) + real(3))
        blocks = int32(quotient(int32(n + 2 * PAIRS - 1), int32(2 * PAIRS)) * 2)
        if IS_WHOLE:
            load(0, x, y, s, int32(0), int32(PAIRS), n, m, row)
        while number < SWEEPS and (first_lane(is_left) >= 0 if THREADS <= WARP else is_left):
            seen[0] = real(0)
            sweep(
                seen, acc, x, y, kept, mine, theirs, s, steps, m, n, blocks, is_left, tolerance * tolerance, t
            )
            is_left = largest(seen[0], partials, t, int32(THREADS)) > real(0)
            number = int32(number + 1)
        if IS_WHOLE:
            store(0, x, y, s, int32(0), int32(PAIRS), n, m, row)
            sync()
        return is_left

    return solve


def _finisher(config: JacobiColumns) -> Callable:
    """``finish(s, partials, sigma, sigma_step, u, u_rs, u_cs, v, v_rs, v_cs, m, n, options, shift, back,
    is_here, t, thread)``: values times `back` and vectors in their order; NaN where `back` is none.
    """
    facts, (THREADS, WIDTH, LD) = config.dtype_facts, config.team
    real, int32, offset = ptx.REALS[facts.real], ptx.types.int32, ptx.offset
    COLS, VECTORS, TEAM, PLANE = config.COLS, config.VECTORS, max(THREADS, WARP), config.plane
    VALUES = PLANE * facts.reals_per_element
    (_, store), normalize, sync = mover(facts), norms(facts, TEAM), barrier(TEAM)
    complete, sort = completer(facts, TEAM), sorter(facts, TEAM)

    @device_function
    def finish(
        s, partials, sigma, sigma_step, u, u_rs, u_cs, v, v_rs, v_cs, m, n, options, shift, back, is_here, t,
        thread,
    ):  # fmt: skip
        values, lanes, width = offset(s, VALUES), int32(THREADS), int32(WIDTH)
        order, filled, dots = offset(values, COLS), offset(values, 2 * COLS), offset(values, 3 * COLS)
        acc, x = cuda.local.array(4, real), cuda.local.array(8, real)
        normalize(values, filled, s, PLANE, LD, m, n, t, lanes, width)
        if options & WANTS_U:
            complete(acc, x, filled, dots, s, PLANE, LD, m, n, partials, t, lanes, width)
        if options & SYMMETRIC:  # eigenvalues with the other sign, as they are sorted in descending order
            i = int32(thread)
            while i < n:
                values[i] = shift - values[i]
                i = int32(i + THREADS)
            sync()
            back = -back
        is_bad = back != back
        sort(values, order, is_bad, n, thread, lanes)
        unit, i = back if is_bad else real(1), int32(thread)
        while i < n and is_here:
            sigma[i * sigma_step] = real(0) + values[int32(order[i])] * back
            i = int32(i + THREADS)
        if options & WANTS_U and is_here:
            sign = real(-1) if options & CONJ_U else real(1)
            store(u, u_rs, u_cs, m, n, sign, s, PLANE, LD, order, unit, thread, lanes)
        if VECTORS and is_here:
            sign = real(-1) if options & CONJ_V else real(1)
            store(v, v_rs, v_cs, n, n, sign, offset(s, m), PLANE, LD, order, unit, thread, lanes)

    return finish


def _build(config: JacobiColumns):
    facts, (THREADS, _, LD), LANES = config.dtype_facts, config.team, config.LANES
    real, TEAM, TEAMS, EACH = (
        ptx.REALS[facts.real],
        max(THREADS, WARP),
        config.DIM // THREADS,
        config.reals,
    )
    VECTORS, STAGED, WARPS = config.VECTORS, STEPS * config.held.sums, THREADS // LANES
    PLANE, REALS = config.plane, facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    grid_dependency_wait, quotient = ptx.grid_dependency_wait, ptx.quotient
    (load, _), start, scales = mover(facts), starter(facts), scaler(facts)
    load_definite = definite_loader(facts, THREADS, LD, PLANE)
    make_definite = definite_maker(facts, THREADS, LD, PLANE)
    largest, sync, solve, finish = team_max(TEAM), barrier(TEAM), _solver(config), _finisher(config)

    def jacobi_columns(
        a, sigma, u, v, info, m, n, options, count, a_rs, a_cs, sigma_step, u_rs, u_cs, v_rs, v_cs,
        stride_a, stride_sigma, stride_u, stride_v, stride_info,
    ):  # fmt: skip
        # (1) the matrix of this team
        t = int32(cuda.threadIdx.x & 1023)
        team, thread = int32(quotient(t, int32(THREADS))), int32(t & (THREADS - 1))
        matrix = int64(cuda.blockIdx.x) * TEAMS + team
        is_here, rows = matrix < count, int32(m + n) if VECTORS else m
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        steps = offset(partials, PARTIALS + team * EACH)
        s = offset(steps, STAGED * WARPS)
        acc = cuda.local.array(2, real)
        grid_dependency_wait()

        # (2) A of about one, or positive definite
        a, shift = offset(a, matrix * stride_a * REALS), real(0)
        sign = real(-1) if options & CONJ_A else real(1)
        if options & SYMMETRIC:
            most = load_definite(s, a, a_rs, a_cs, n if is_here else int32(0), sign, thread)
        else:
            most = load(acc, s, PLANE, LD, a, a_rs, a_cs, m if is_here else 0, n, sign, thread, THREADS)
        most = largest(most, partials, t, int32(THREADS))
        scales(acc, most)
        back = acc[1] if is_here and most < real(float("inf")) else real(float("nan"))
        start(s, PLANE, LD, acc[0], m, n, rows, thread, THREADS)
        sync()
        if options & SYMMETRIC:
            shift = make_definite(s, n, partials, t, thread)

        # (3) sweeps, until all columns are orthogonal
        steps = offset(steps, int32(quotient(thread, int32(LANES))) * STAGED)
        is_left = solve(s, steps, partials, m, n, back == back, t)

        # (4) the results
        sigma, u = offset(sigma, matrix * stride_sigma), offset(u, matrix * stride_u * REALS)
        v = offset(v, matrix * stride_v * REALS)
        finish(
            s, partials, sigma, sigma_step, u, u_rs, u_cs, v, v_rs, v_cs, m, n, options, shift, back, is_here,
            t, thread,
        )  # fmt: skip
        if thread == 0 and is_here:
            info[matrix * stride_info] = n if is_left or back != back else int32(0)

    return jacobi_columns
