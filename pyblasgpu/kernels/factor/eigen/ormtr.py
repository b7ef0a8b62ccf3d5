"""``ormtr``: V := Q V with the Q of `sytrd`, in place, of matrices whose columns registers hold.

A team of lanes has columns of V, whose rows are spread over the lanes in bands: a lane has a vector of one.
The reflectors are applied one after the other, the last one first. Those of which the vector begins in a band
are a phase: they are loaded into shared memory together, and change this band and those below. A matrix of a
smaller order is at the end of one of the largest order, whose first `skip` rows are not there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, in_order, ptx, unrolled
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters

__all__ = ["STEM", "Ormtr", "source"]

STEM = "ormtr"
PARAMETERS = parameters(
    "pointer: work, tau, v",
    "int32: n, cols, ld",
    "int64: v_rs, v_cs, stride_work, stride_tau, stride_v",
)
VECTOR_BYTES = 16
LEAST = 64  # order of the kernel for the smallest matrices


@dataclass(frozen=True)
class Ormtr(BlockConfig):
    """Config of one `ormtr` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    ORDER : int
        The largest order of Q.
    TEAM : int
        Lanes of a column.
    COLS : int
        Columns of a lane.
    """

    DIM: int = 256
    ORDER: int = 256
    TEAM: int = 16
    COLS: int = 2

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.TEAM <= WARP and WARP % self.TEAM == 0, "team", "32 % TEAM == 0", TEAM=self.TEAM)
        require(self.COLS >= 1, "columns", "COLS >= 1", COLS=self.COLS)
        facts = {"ORDER": self.ORDER, "TEAM": self.TEAM}
        require(self.ORDER % self.BAND == 0, "bands", f"ORDER % (TEAM * {self.VECTOR}) == 0", **facts)

    @property
    def VECTOR(self) -> int:
        """Elements of a lane in a band."""
        return VECTOR_BYTES // self.dtype_facts.itemsize

    @property
    def BAND(self) -> int:
        """Rows of a band, and reflectors of a phase."""
        return self.VECTOR * self.TEAM

    @property
    def block_cols(self) -> int:
        """Columns of a block."""
        return self.DIM // self.TEAM * self.COLS

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: its elements of columns and of a reflector."""
        return (self.COLS + 1) * self.ORDER // self.TEAM * self.dtype_facts.itemsize // 4 + 32

    @property
    def shared_elements(self) -> int:
        """The reflectors of a phase, and their factors."""
        return self.BAND * (self.ORDER + 1)

    @property
    def variants(self) -> tuple[Self, ...]:
        """Configs for matrices of half the order each, and this one."""
        if self.ORDER <= LEAST:
            return (self,)
        return *replace(self, ORDER=self.ORDER // 2, TEAM=self.TEAM // 2).variants, self

    def specialize(self, order: int, shared: int) -> Self | None:
        """The Config for matrices of this order in blocks of `shared` bytes, if there is one."""
        fitting = (each for each in self.variants if order <= each.ORDER and each.shared_bytes <= shared)
        return next(fitting, None)


def source(config: Ormtr) -> KernelSource:
    """The kernel of `config`, for 1 <= n <= ORDER.

    Kernel parameters
    -----------------
    work: pointer, ld by n elements, by columns; reflector k is 1 in row k + 1, and what is below in column k
    tau: pointer, n elements, the factors of n - 1 reflectors
    v: pointer, n by cols
    n, cols, ld: int32, order of Q, columns of V, leading dimension of `work`
    v_rs, v_cs: int64, row and column stride of V (elements)
    stride_work, stride_tau, stride_v: int64, batch strides (elements)

    Grid: x columns in groups of ``config.block_cols``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _mover(config: Ormtr) -> tuple[Callable, Callable]:
    """``load(0, x, v, v_rs, v_cs, skip, col, cols, p)``: columns of V from `col` on, a number of teams apart;
    ``store``: the same to V.
    """
    facts, ORDER, TEAMS = config.dtype_facts, config.ORDER, config.DIM // config.TEAM
    REALS, VECTOR, OWN, BAND = facts.reals_per_element, config.VECTOR, ORDER // config.TEAM, config.BAND
    read, store_global, int64 = ptx.load_global(1, False), ptx.store_global, ptx.types.int64

    @device_function
    def load(r, x, v, v_rs, v_cs, skip, col, cols, p, c):
        i = r // VECTOR * BAND + p * VECTOR + r % VECTOR - skip
        of = (int64(i) * v_rs + int64(col) * v_cs) * REALS
        for part in range(REALS):
            read(x, (c * OWN + r) * REALS + part, v, of + part, (i >= 0) & (col < cols))

    @device_function
    def store(r, x, v, v_rs, v_cs, skip, col, cols, p, c):
        i = r // VECTOR * BAND + p * VECTOR + r % VECTOR - skip
        of = (int64(i) * v_rs + int64(col) * v_cs) * REALS
        for part in range(REALS):
            store_global(v, of + part, x[(c * OWN + r) * REALS + part], (i >= 0) & (col < cols))

    loads, stores = unrolled(OWN, load), unrolled(OWN, store)

    @device_function
    def load_column(c, x, v, v_rs, v_cs, skip, col, cols, p):
        loads(0, x, v, v_rs, v_cs, skip, col + c * TEAMS, cols, p, c)

    @device_function
    def store_column(c, x, v, v_rs, v_cs, skip, col, cols, p):
        stores(0, x, v, v_rs, v_cs, skip, col + c * TEAMS, cols, p, c)

    return unrolled(config.COLS, load_column), unrolled(config.COLS, store_column)


def _filler(config: Ormtr, first: int) -> Callable:
    """``fill(shared, work, tau, skip, ld, t)``: reflectors of the phase of which the first one begins in row
    `first`, in the rows from there on, and behind them their factors.
    """
    facts, ORDER, DIM, BAND = config.dtype_facts, config.ORDER, config.DIM, config.BAND
    REALS, real, int32, quotient = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ptx.types.int32,
        ptx.quotient,
    )
    ROWS, select = ORDER - first, ptx.select

    @device_function
    def fill(shared, work, tau, skip, ld, t):
        number = int32(t)
        while number < BAND * ROWS:
            j = int32(quotient(number, int32(ROWS)))
            i, k = int32(number - j * ROWS + first - skip), int32(first + j - 1 - skip)
            is_there = (k >= 0) & (i > k + 1)
            for part in range(REALS):
                x = work[int32(k * ld + i) * REALS + part] if is_there else real(0)
                is_one = (k >= 0) & (i == k + 1) & (part == 0)
                shared[(j * ORDER + i + skip) * REALS + part] = select(is_one, real(1), x)
            number = int32(number + DIM)
        j = int32(t)
        while j < BAND:
            k = int32(first + j - 1 - skip)
            for part in range(REALS):
                x = tau[k * REALS + part] if k >= 0 else real(0)
                shared[(BAND * ORDER + j) * REALS + part] = x
            j = int32(j + DIM)

    return fill


def _phase(config: Ormtr, number: int) -> Callable:
    """The reflectors of which the vectors begin in band `number`."""
    facts, ORDER, BAND, COLS, VECTOR = (
        config.dtype_facts,
        config.ORDER,
        config.BAND,
        config.COLS,
        config.VECTOR,
    )
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    OWN, FIRST, WIDTH, BANDS = ORDER // config.TEAM, number * BAND, VECTOR * REALS, ORDER // BAND
    fill, take, shuffle = _filler(config, FIRST), ptx.load_shared(WIDTH), ptx.shuffle
    LAST = config.TEAM // 2

    @device_function
    def load(band, u, shared, at):
        take(u, band * WIDTH, shared, int32(at + band * (BAND * REALS)))

    @device_function
    def dot(r, x, u, acc, c):
        at, of = (c * OWN + r) * REALS, r * REALS
        if COMPLEX:
            acc[c * 2] += u[of] * x[at] + u[of + 1] * x[at + 1]
            acc[c * 2 + 1] += u[of] * x[at + 1] - u[of + 1] * x[at]
        else:
            acc[c] += u[of] * x[at]

    @device_function
    def update(r, x, u, w, c):
        at, of = (c * OWN + r) * REALS, r * REALS
        if COMPLEX:
            x[at] -= u[of] * w[c * 2] - u[of + 1] * w[c * 2 + 1]
            x[at + 1] -= u[of] * w[c * 2 + 1] + u[of + 1] * w[c * 2]
        else:
            x[at] -= u[of] * w[c]

    loads = unrolled(BANDS - number, load)
    dots, updates = unrolled((BANDS - number) * VECTOR, dot), unrolled((BANDS - number) * VECTOR, update)

    @device_function
    def dot_column(c, x, u, acc):
        for part in range(REALS):
            acc[c * REALS + part] = real(0)
        dots(number * VECTOR, x, u, acc, c)

    @device_function
    def add(part, acc, lane, distance):
        acc[part] += shuffle(acc[part], int32(lane ^ distance))

    @device_function
    def update_column(c, x, u, acc, w, re, im):
        if COMPLEX:
            w[c * 2] = re * acc[c * 2] - im * acc[c * 2 + 1]
            w[c * 2 + 1] = re * acc[c * 2 + 1] + im * acc[c * 2]
        else:
            w[c] = re * acc[c]
        updates(number * VECTOR, x, u, w, c)

    dot_columns, update_columns = unrolled(COLS, dot_column), unrolled(COLS, update_column)
    adds = unrolled(COLS * REALS, add)

    @device_function
    def phase(x, u, acc, w, shared, work, tau, skip, ld, p, lane, t):
        if skip < FIRST + BAND:
            cuda.syncthreads()
            fill(shared, work, tau, skip, ld, t)
            cuda.syncthreads()
            j = int32(BAND - 1)
            while j >= 0:
                loads(number, u, shared, int32((j * ORDER + p * VECTOR) * REALS))
                at = int32((BAND * ORDER + j) * REALS)
                re, im = shared[at], shared[at + REALS - 1]
                dot_columns(0, x, u, acc)
                distance = int32(LAST)
                while distance > 0:
                    adds(0, acc, lane, distance)
                    distance = int32(distance >> 1)
                update_columns(0, x, u, acc, w, re, im)
                j = int32(j - 1)

    return phase


def _build(config: Ormtr):
    facts, ORDER, TEAM, COLS = config.dtype_facts, config.ORDER, config.TEAM, config.COLS
    REALS, real, OWN = (
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ORDER // TEAM * facts.reals_per_element,
    )
    TILE, SUMS, BLOCK_COLS, SHIFT = COLS * OWN, COLS * REALS, config.block_cols, TEAM.bit_length() - 1
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    (load, store), grid_dependency_wait = _mover(config), ptx.grid_dependency_wait
    run = in_order([_phase(config, number) for number in reversed(range(ORDER // config.BAND))])

    def ormtr(work, tau, v, n, cols, ld, v_rs, v_cs, stride_work, stride_tau, stride_v):
        # (1) the columns of this block
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        lane, p, team = int32(t & 31), int32(t & (TEAM - 1)), int32(t >> SHIFT)
        shared = shared_pointer(cuda.shared.array(0, real, alignment=16))
        x, u = cuda.local.array(TILE, real), cuda.local.array(OWN, real)
        acc, w = cuda.local.array(SUMS, real), cuda.local.array(SUMS, real)
        work, tau = offset(work, batch * stride_work * REALS), offset(tau, batch * stride_tau * REALS)
        v = offset(v, batch * stride_v * REALS)
        skip, col = int32(ORDER - n), int32(cuda.blockIdx.x * BLOCK_COLS + team)
        grid_dependency_wait()
        load(0, x, v, v_rs, v_cs, skip, col, cols, p)

        # (2) the reflectors, the last one first
        run(x, u, acc, w, shared, work, tau, skip, ld, p, lane, t)
        store(0, x, v, v_rs, v_cs, skip, col, cols, p)

    return ormtr
