"""``jacobi_svd``: singular values and vectors of small matrices, of a batch as a rule.

One-sided Jacobi (Hestenes): columns of A are rotated until they are orthogonal, and those of V with them,
below A in shared memory. Norms of the columns are the singular values then. A warp has one matrix
or several, a block has one. In a step each pair of columns has a group of neighbouring threads, which
computes three products, and rotates the pair if it must. So a step has one barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..lane_sums import adder, over_lanes
from ..qr.reflector import scaler
from .rotation import PARTIALS, angle, barrier, pair_of, resident_blocks, team_max
from .svd_columns import ROWS, column_turner, mover, negligible, products, starter
from .svd_vectors import completer, norms, sorter

__all__ = [
    "CONJ_A",
    "CONJ_U",
    "CONJ_V",
    "STEM",
    "WANTS_U",
    "WANTS_V",
    "JacobiSvd",
    "Team",
    "options_of",
    "source",
]

STEM = "jacobi_svd"
PARAMETERS = parameters(
    "pointer: a, sigma, u, v",
    "int32 pointer: info",
    "int32: m, n, options, lanes, width, count",
    "int64: a_rs, a_cs, sigma_step, u_rs, u_cs, v_rs, v_cs",
    "int64: stride_a, stride_sigma, stride_u, stride_v, stride_info",
)
#: Bits of `options`: which results are wanted, and what is meant or written conjugated.
WANTS_U, WANTS_V, CONJ_A, CONJ_U, CONJ_V = 1, 2, 4, 8, 16

SWEEPS = 40  # at most; ten are many
#: Threads of a block and of a matrix at most, kilobytes of shared memory, and columns, of smaller kernels.
SMALLER = ((64, WARP, 24, 16), (128, 128, 40, 32), (256, 256, 72, 64), (512, 512, 108, 128))
#: Threads that a multiprocessor is to hold, by bytes of an element: what registers allow without spills.
RESIDENT_THREADS = {4: 1024, 8: 1024, 16: 640}
LANES = (4, 8, 16, 32)  # of a matrix in a warp
NARROW = 4  # threads of a pair at least


def options_of(vectors: bool, conj_a: bool, conj_u: bool, conj_v: bool) -> int:
    """The bits of `options` for both kinds of vectors, or none."""
    wanted = WANTS_U | WANTS_V if vectors else 0
    return wanted | CONJ_A * conj_a | CONJ_U * conj_u | CONJ_V * conj_v


@dataclass(frozen=True)
class Team:
    """Threads of a matrix, threads of a pair of columns, and the distance of columns in shared memory."""

    lanes: int
    width: int
    ld: int


@dataclass(frozen=True)
class JacobiSvd(BlockConfig):
    """Config of one `jacobi_svd` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    TEAM : int
        Threads of a matrix: `DIM`, or at most those of a warp.
    KILOBYTES : int
        Shared memory of the matrices.
    COLS : int
        The most columns of a matrix.
    """

    DIM: int = 512
    TEAM: int = 512
    KILOBYTES: int = 216
    COLS: int = 256

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.TEAM in (WARP, self.DIM), "team", f"TEAM in ({WARP}, DIM)", TEAM=self.TEAM, DIM=self.DIM)
        require(self.KILOBYTES > 0, "matrices", "KILOBYTES > 0", KILOBYTES=self.KILOBYTES)
        require(self.COLS > 0, "columns", "COLS > 0", COLS=self.COLS)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64

    @property
    def min_blocks(self) -> int:
        return resident_blocks(self, RESIDENT_THREADS[self.dtype_facts.itemsize])

    @property
    def shared_bytes(self) -> int:
        return self.KILOBYTES * 1024 + PARTIALS * self.dtype_facts.real_size

    @property
    def variants(self) -> tuple[Self, ...]:
        smaller = [
            replace(self, DIM=dim, TEAM=team, KILOBYTES=size, COLS=cols)
            for dim, team, size, cols in SMALLER
            if size < self.KILOBYTES and cols < self.COLS
        ]
        return (*smaller, self)

    def fitting(self, shared_per_block: int) -> Self:
        """The Config for a device whose blocks have `shared_per_block` bytes of shared memory."""
        return [each for each in self.variants if each.shared_bytes <= shared_per_block][-1]

    def team(self, rows: int, cols: int) -> Team:
        """The threads for a matrix of `rows` rows, with those of V, and `cols` columns."""
        pairs, lanes = -(-cols // 2), self.TEAM
        if lanes <= WARP:
            lanes = next(each for each in LANES if pairs * NARROW <= each or each == WARP)
        width = next((each for each in (32, 16, 8) if each * pairs <= lanes), NARROW)
        return Team(lanes, width, -(-(rows - width) // (2 * width)) * 2 * width + width)

    def holds(self, rows: int, cols: int) -> bool:
        """Whether matrices of this size fit, `rows` with those of V."""
        team, reals = self.team(rows, cols), self.dtype_facts.reals_per_element
        each = (cols + cols % 2) * (team.ld * reals + 3 + reals)
        size = self.DIM // team.lanes * each * self.dtype_facts.real_size
        return cols <= self.COLS and size <= self.KILOBYTES * 1024

    def specialize(self, rows: int, cols: int) -> Self | None:
        """The Config for matrices of this size: of small ones more are resident. None: they do not fit."""
        return next((each for each in self.variants if each.holds(rows, cols)), None)

    def grid(self, team: Team, count: int) -> int:
        """Blocks for `count` matrices."""
        return -(-count // (self.DIM // team.lanes))


def source(config: JacobiSvd) -> KernelSource:
    """The kernel of `config`, for m >= n.

    Kernel parameters
    -----------------
    a, sigma, u, v: pointer, A, singular values in descending order, reals, U and V; U or V may be A
    info: int32 pointer, 0, or n where A is not finite or the sweeps did not suffice
    m, n, options: int32, rows and columns of A, and the bits `WANTS_U` to `CONJ_V`
    lanes, width, count: int32, threads of a matrix and of a pair, ``config.team``, and matrices
    a_rs, a_cs: int64, row and column stride of A (elements)
    sigma_step: int64, stride of singular values (reals)
    u_rs, u_cs, v_rs, v_cs: int64, row and column strides of U, m by n, and V, n by n (elements)
    stride_a, stride_sigma, stride_u, stride_v, stride_info: int64, batch strides (elements, reals, words)

    Grid: x ``config.grid(team, matrices)``.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _sweeper(config: JacobiSvd) -> Callable:
    """``sweep(acc, x, s, plane, ld, m, n, rows, is_left, t, lanes, width)``: each two columns are made
    orthogonal, if `is_left`; 1 where the thread rotated any that were not, else 0.
    """
    facts = config.dtype_facts
    COMPLEX, real, int32, quotient = facts.is_complex, ptx.REALS[facts.real], ptx.types.int32, ptx.quotient
    TINY, UNIT, root = negligible(facts), facts.unit_roundoff, ptx.square_root
    pair, make, total, sync = pair_of(), angle(facts), over_lanes(adder()), barrier(config.TEAM)
    multiply, turn_columns = products(facts), column_turner(facts)

    @device_function
    def sweep(acc, x, s, plane, ld, m, n, rows, is_left, t, lanes, width):
        cols = int32(n + (n & 1))
        pairs, groups = int32(cols >> 1), int32(quotient(lanes, width))
        group, lane = int32(quotient(int32(t & (lanes - 1)), width)), int32(t & (width - 1))
        rotated, tolerance, k = real(0), real(UNIT) * (root(real(m)) + real(3)), int32(0)
        while k < cols - 1:
            first = int32(0)
            while first < pairs:
                i = int32(first + group)
                is_mine = is_left & (i < pairs)
                p, q = pair(i if is_mine else int32(0), k, cols)
                p, q = int32(p * ld), int32(q * ld)
                multiply(acc, x, s, plane, p, q, m if is_mine else int32(0), lane, width)
                for part in range(4 if COMPLEX else 3):
                    acc[part] = total(acc[part], int32(t & 31), width)
                size = abs(acc[2])
                if COMPLEX:
                    size = max(size, abs(acc[3]))
                most = tolerance * (root(acc[0]) * root(acc[1]))
                if min(acc[0], acc[1]) > real(TINY) and size > most:
                    rotated = real(1)
                    make(acc, acc[1] - acc[0], acc[2], acc[3])
                    turn_columns(x, s, plane, p, q, acc, rows, lane, width)
                first = int32(first + groups)
            sync()
            k = int32(k + 1)
        return rotated

    return sweep


def _build(config: JacobiSvd):
    facts, TEAM, DIM = config.dtype_facts, config.TEAM, config.DIM
    REALS, real, HELD = facts.reals_per_element, ptx.REALS[facts.real], 2 * ROWS
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    quotient, first_lane, grid_dependency_wait = ptx.quotient, ptx.first_lane, ptx.grid_dependency_wait
    (load, store), start, scales = mover(facts), starter(facts), scaler(facts)
    sweep, normalize = _sweeper(config), norms(facts, TEAM)
    complete, sort = completer(facts, TEAM), sorter(facts, TEAM)
    largest, sync, IS_WARP = team_max(TEAM), barrier(TEAM), TEAM <= WARP

    def jacobi_svd(
        a, sigma, u, v, info, m, n, options, lanes, width, count, a_rs, a_cs, sigma_step, u_rs, u_cs,
        v_rs, v_cs, stride_a, stride_sigma, stride_u, stride_v, stride_info,
    ):  # fmt: skip
        # (1) the matrix of this team
        t = int32(cuda.threadIdx.x & 1023)
        team, thread, matrix = int32(0), t, int64(cuda.blockIdx.x)
        if IS_WARP:
            team, thread = int32(quotient(t, lanes)), int32(t & (lanes - 1))
            matrix = matrix * quotient(int32(DIM), lanes) + team
        is_here, cols = matrix < count, int32(n + (n & 1))
        rows = int32(m + n) if options & WANTS_V else m
        steps = int32(quotient(int32(rows + width - 1), int32(width + width)))
        ld = int32(steps * (width + width) + width)
        plane = int32(ld * cols)
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        s = offset(partials, PARTIALS + team * (REALS * plane + (3 + REALS) * cols))
        values = offset(s, REALS * plane)
        order, filled, dots = offset(values, cols), offset(values, 2 * cols), offset(values, 3 * cols)
        acc, x = cuda.local.array(4, real), cuda.local.array(HELD, real)
        grid_dependency_wait()

        # (2) A of about one
        a, sign = offset(a, matrix * stride_a * REALS), real(-1) if options & CONJ_A else real(1)
        most = load(x, s, plane, ld, a, a_rs, a_cs, m if is_here else 0, n, sign, thread, lanes)
        most = largest(most, partials, t, lanes)
        scales(acc, most)
        back = acc[1] if is_here and most < real(float("inf")) else real(float("nan"))
        start(s, plane, ld, acc[0], m, n, rows, thread, lanes)
        sync()

        # (3) sweeps, until all columns are orthogonal
        number, is_left = int32(0), back == back
        while number < SWEEPS and (first_lane(is_left) >= 0 if IS_WARP else is_left):
            rotated = sweep(acc, x, s, plane, ld, m, n, rows, is_left, t, lanes, width)
            is_left = largest(rotated, partials, t, lanes) > real(0)
            number = int32(number + 1)

        # (4) norms, unit vectors, and the results
        normalize(values, filled, s, plane, ld, m, n, t, lanes, width)
        if options & WANTS_U:
            complete(acc, x, filled, dots, s, plane, ld, m, n, partials, t, lanes, width)
        sort(values, order, back != back, n, thread, lanes)
        sigma, unit = offset(sigma, matrix * stride_sigma), back if back != back else real(1)
        i = int32(thread)
        while i < n and is_here:
            sigma[i * sigma_step] = values[int32(order[i])] * back
            i = int32(i + lanes)
        if options & WANTS_U and is_here:
            u, sign = offset(u, matrix * stride_u * REALS), real(-1) if options & CONJ_U else real(1)
            store(u, u_rs, u_cs, m, n, sign, s, plane, ld, order, unit, thread, lanes)
        if options & WANTS_V and is_here:
            v, sign = offset(v, matrix * stride_v * REALS), real(-1) if options & CONJ_V else real(1)
            store(v, v_rs, v_cs, n, n, sign, offset(s, m), plane, ld, order, unit, thread, lanes)
        if thread == 0 and is_here:
            info[matrix * stride_info] = n if is_left or back != back else int32(0)

    return jacobi_svd
