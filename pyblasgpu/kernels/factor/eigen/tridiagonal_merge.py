"""``tridiagonal_merge``: eigenvalues of T from those of its halves, and what their vectors are multiplied by.

T is two blocks, torn apart, and a matrix of rank one: D + rho z zᵀ in the basis of the vectors of the blocks
(Cuppen). Elements of z that do not matter are left out, and of two equal elements of D one (deflation). The
other eigenvalues are zeros of a rational function, one between each two poles. Of them follows a z for which
they are exact, so vectors are orthogonal however near eigenvalues are (Gu and Eisenstat).

A pair of blocks has a block of threads, or those of a cluster, which share the zeros and the vectors. A large
pair has resident blocks of the whole device, with arrays in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from ....gpu.backend import cuda, device_function, ptx, unrolled
from ....gpu.build.compile import WHOLE_ROWS, KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..clusters import cluster_meeter, largest_cluster
from ..qr.meeting import WORDS, meeting
from ..quotient import quotients
from .deflation import WANTS_ENDS, deflater, halves_loader, ranker
from .secular import root_finder, team_reducer, weight_finder

if TYPE_CHECKING:
    from ....gpu.device import Device

__all__ = ["IS_LAST", "STATE", "STEM", "WANTS_ENDS", "WANTS_VECTORS", "TridiagonalMerge", "source"]

STEM = "tridiagonal_merge"
PARAMETERS = parameters(
    "pointer: q, d, e, s, values, w, scale, state",
    "int32 pointer: flags",
    "int32: n, size, options",
    "int64: q_ends, q_cs, w_step, stride_q, stride_s, stride_w, stride_state",
)
#: Further options: the matrix that vectors are multiplied by is wanted; the pair is a whole matrix.
WANTS_VECTORS, IS_LAST = 1, 4
SHARE = 64  # zeros of a block, at least, and at a time where a pair is not spread
SMALLER = 256, 1024  # orders of kernels with arrays in shared memory; of the first one there is more room
MANY, FEW = 256, 1024  # threads of a block: of many pairs, of few of the first order
MOST = 1 << 14  # the largest order
ARRAYS = 9  # of reals in shared memory or in memory, of the order of a pair
STATE = 9  # reals in memory for each eigenvalue of a pair


@dataclass(frozen=True)
class TridiagonalMerge(BlockConfig):
    """Config of one `tridiagonal_merge` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`; 's' or 'd'.
    ORDER : int
        The largest order of a pair of blocks.
    HAS_CLUSTERS : bool
        Whether a pair may have the blocks of a cluster, from compute capability 9.0 on.
    IS_SPREAD : bool
        Whether a pair has resident blocks of threads, and arrays in memory.
    TERMS : int
        Terms of a sum that a thread has under way.
    """

    DIM: int = 512
    ORDER: int = MOST
    HAS_CLUSTERS: bool = True
    IS_SPREAD: bool = True
    TERMS: int = 4

    STEM: ClassVar[str] = STEM
    RESIDENT: ClassVar[int] = 768

    @property
    def TEAM(self) -> int:
        """Threads of a zero or a vector."""
        return WARP if self.IS_SPREAD else self.DIM // SHARE

    @property
    def is_alone(self) -> bool:
        """Whether a block has a multiprocessor for itself."""
        return not self.IS_SPREAD and self.DIM == FEW

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64 if self.is_alone else 96

    @property
    def min_blocks(self) -> int:
        """Blocks that the compiler finds registers for: fewer before compute capability 9.0."""
        resident = self.RESIDENT if self.HAS_CLUSTERS else self.RESIDENT * 2 // 3
        return max(resident // self.threads, 1)

    @property
    def shared_bytes(self) -> int:
        """Bytes of arrays that are not in memory, of counts, and of four numbers that all threads read."""
        arrays = 0 if self.IS_SPREAD else ARRAYS * self.ORDER
        return -(-(arrays + self.DIM + 4) * self.dtype_facts.real_size // 16) * 16

    @property
    def variants(self) -> tuple[Self, ...]:
        many = (replace(self, ORDER=order, DIM=MANY, IS_SPREAD=False) for order in SMALLER)
        few = (replace(self, ORDER=SMALLER[0], DIM=FEW, IS_SPREAD=False),) if self.HAS_CLUSTERS else ()
        return (*(each for each in (*few, *many) if each.ORDER < self.ORDER), self)

    def on(self, device: Device) -> Self:
        """The Config for a device."""
        return replace(self, HAS_CLUSTERS=self.HAS_CLUSTERS and device.cc >= (9, 0))

    def specialize(self, size: int, pairs: int, device: Device) -> Self:
        """The Config for `pairs` of this order: large blocks where each has a multiprocessor."""
        are_few = pairs <= device.sm_count and size > SHARE
        return next(each for each in self.variants if size <= each.ORDER and each.is_alone <= are_few)

    def blocks(self, size: int, pairs: int, device: Device) -> int:
        """Blocks of threads for each of these pairs of one order."""
        if self.IS_SPREAD:
            return max(min(-(-size * WARP // self.DIM), device.sm_count // pairs), 1)
        most = device.sm_count // pairs if self.is_alone else size
        return min(-(-size // SHARE), most, largest_cluster(device)) if self.HAS_CLUSTERS else 1

    def state(self, size: int, blocks: int) -> int:
        """Reals in memory for a pair of this order."""
        return (STATE + self.IS_SPREAD * ARRAYS * blocks) * size


def source(config: TridiagonalMerge) -> KernelSource:
    """The kernel of `config`, for pairs of an even order `size` <= ORDER.

    Kernel parameters
    -----------------
    q: pointer, of each block the first and the last row of its vectors
    d: pointer, eigenvalues of each block in ascending order
    e: pointer, what couples neighbouring rows of T
    s: pointer, by rows, vectors of the pair in terms of those of its blocks, or their first and last row
    values: pointer, eigenvalues of the pair in ascending order
    w: pointer, the first n of them times `scale`, where the pair is a whole matrix
    scale: pointer, a real a matrix
    state: pointer, ``config.state(size, blocks)`` reals a pair
    flags: int32 pointer, where blocks are resident, 0 before and after
    n, size, options: int32, order of a matrix, of a pair, and what is wanted
    q_ends, q_cs: int64, from the first row of a block to its last one, and from column to column (reals)
    w_step: int64, stride of w (reals)
    stride_q, stride_s, stride_w, stride_state: int64, strides of blocks, pairs, matrices and pairs (reals)

    Grid: x the blocks of threads of a pair, z the pairs.
    """
    cluster = WHOLE_ROWS if config.HAS_CLUSTERS and not config.IS_SPREAD else 1
    return KernelSource.of(
        config, PARAMETERS, lambda: _build(config), cooperative=config.IS_SPREAD, cluster=cluster
    )


def vector_writer(config: TridiagonalMerge) -> Callable:
    """``write(s, poles, weights, taus, origins, index, compact, ends, turns, rank, count, unit, p, m,
    rows, size, options, lane, t)``: eigenvector p, in terms of those of the blocks, or its first and last
    element. Teams without one have no `rows`.
    """
    real, int32, offset = ptx.REALS[config.dtype_facts.real], ptx.types.int32, ptx.offset
    root, sync_warp, select = ptx.square_root, ptx.sync_warp, ptx.select
    divide, exactly = quotients(config.dtype_facts), ptx.divide
    TEAM, STRIDE, over_team = config.TEAM, config.TEAM * config.TERMS, team_reducer(config.TEAM, real)

    @device_function
    def measure(k, sums, poles, weights, pole, tau, m, first):
        i = int32(first + k * TEAM)
        at = int32(min(i, m - 1))
        x = divide(select(i < m, weights[at], real(0)), select(i < m, (poles[at] - pole) - tau, real(1)))
        sums[0] += x * x

    @device_function
    def take(
        k,
        sums,
        s,
        poles,
        weights,
        index,
        compact,
        ends,
        pole,
        tau,
        factor,
        is_zero,
        rank,
        unit,
        p,
        rows,
        size,
        options,
        first,
    ):
        r = int32(first + k * TEAM)
        of = int32(min(r, size - 1))
        i = int32(compact[of])
        is_there, at = is_zero & (i >= 0), int32(max(i, 0))
        x = divide(
            select(is_there, weights[at], real(0)), select(is_there, (poles[at] - pole) - tau, real(1))
        )
        x = select(is_there, x * factor, select(r == p, unit, unit - unit))
        if r < rows:
            if options & WANTS_VECTORS:
                s[int32(index[of]) * size + rank] = x
            else:
                sums[0] += x * ends[of]
                sums[1] += x * ends[size + of]

    measure_all, take_all = unrolled(config.TERMS, measure), unrolled(config.TERMS, take)

    @device_function
    def turn_back(s, index, turns, col, count, size):
        """The rotations of deflation, the last one first, applied to a column of s."""
        m = int32(count - 1)
        while m >= 0:
            turn = offset(turns, m * 4)
            first = int32(int32(index[int32(turn[0])]) * size + col)
            second = int32(int32(index[int32(turn[1])]) * size + col)
            x, y = s[first], s[second]
            s[first], s[second] = turn[2] * x - turn[3] * y, turn[3] * x + turn[2] * y
            m = int32(m - 1)

    @device_function
    def write(
        s, poles, weights, taus, origins, index, compact, ends, turns, rank, count, unit, p, m, rows, size,
        options, lane, t,
    ):  # fmt: skip
        j, sums = int32(compact[p]), cuda.local.array(2, real)
        is_zero = j >= 0
        sums[0], i, zeros = real(0), int32(lane), m if is_zero and rows > 0 else int32(0)
        tau, pole = real(0), real(0)
        if is_zero:
            tau, pole = taus[j], poles[int32(origins[j])]
        while i < zeros:
            measure_all(0, sums, poles, weights, pole, tau, m, i)
            i = int32(i + STRIDE)
        factor = exactly(unit, root(over_team(sums[0], t)))
        sums[0], sums[1], r = real(0), real(0), int32(lane)
        while r < rows:
            take_all(
                0, sums, s, poles, weights, index, compact, ends, pole, tau, factor, is_zero, rank, unit, p,
                rows, size, options, r,
            )  # fmt: skip
            r = int32(r + STRIDE)
        top, bottom = over_team(sums[0], t), over_team(sums[1], t)
        sync_warp()
        if lane == 0 and rows > 0:
            if options & WANTS_VECTORS:
                turn_back(s, index, turns, rank, count, size)
            else:
                s[rank], s[size + rank] = top, bottom

    return write


def _build(config: TridiagonalMerge):
    facts, DIM, ORDER_OF = config.dtype_facts, config.DIM, config.ORDER
    real, int32, int64 = ptx.REALS[facts.real], ptx.types.int32, ptx.types.int64
    offset, shared_pointer, grid_dependency_wait = ptx.offset, ptx.shared_pointer, ptx.grid_dependency_wait
    load, deflate, (evaluate, rank_one) = halves_loader(config), deflater(config), ranker(config, config.TEAM)
    find_root, find_weight = (
        root_finder(facts, config.TEAM, config.TERMS),
        weight_finder(facts, config.TEAM, config.TERMS),
    )
    write, SHIFT = vector_writer(config), config.TEAM.bit_length() - 1
    meet, (meet_all, part), TEAMS = cluster_meeter(config.HAS_CLUSTERS), meeting(), config.DIM // config.TEAM
    IS_SPREAD = config.IS_SPREAD

    @device_function
    def read(to, state, m, t):
        i = int32(t)
        while i < m:
            to[i] = state[i]
            i = int32(i + DIM)

    @device_function
    def find_roots(taus, origins, poles, weights, rho, m, block, blocks, lane, team, t):
        """Zeros of this block; teams of a warp stay together."""
        first = int32(0)
        while first < m:
            j = int32(first + team * blocks + block)
            tau, origin = find_root(poles, weights, rho, int32(min(j, m - 1)), m, lane, t)
            if lane == 0 and j < m:
                taus[j], origins[j] = tau, real(origin)
            first = int32(first + TEAMS * blocks)

    @device_function
    def find_weights(to, poles, weights, taus, origins, m, block, blocks, lane, team, t):
        first = int32(0)
        while first < m:
            i = int32(first + team * blocks + block)
            weight = find_weight(poles, taus, origins, int32(min(i, m - 1)), m, lane, t)
            if lane == 0 and i < m:
                to[i] = weight if weights[i] >= real(0) else -weight
            first = int32(first + TEAMS * blocks)

    @device_function
    def finish(
        values, w, w_step, n, back, found, s, poles, weights, taus, origins, index, compact, ends, turns,
        count, unit, m, size, options, block, blocks, lane, team, t,
    ):  # fmt: skip
        """Eigenvalues in ascending order, and vectors: those of the teams of this block."""
        first = int32(0)
        while first < size:
            p = int32(first + team * blocks + block)
            rows, p = size if p < size else int32(0), int32(min(p, size - 1))
            rank, x = rank_one(found, p, size, lane, t), found[p]
            if rows > 0 and lane == 0:
                values[rank] = x
                if options & IS_LAST and rank < n:
                    w[rank * w_step] = x * back
            if options & (WANTS_VECTORS | WANTS_ENDS):
                write(
                    s, poles, weights, taus, origins, index, compact, ends, turns, rank, count, unit, p, m,
                    rows, size, options, lane, t,
                )  # fmt: skip
            first = int32(first + TEAMS * blocks)

    @device_function
    def meet_blocks(flags, number, blocks, t):
        if IS_SPREAD:
            meet_all(flags, number, blocks, t)
        else:
            meet(blocks)

    def tridiagonal_merge(
        q, d, e, s, values, w, scale, state, flags, n, size, options, q_ends, q_cs, w_step,
        stride_q, stride_s, stride_w, stride_state,
    ):  # fmt: skip
        # (1) the pair of this block of threads
        t, pair = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        block, blocks = int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        lane, team = int32(t & ((1 << SHIFT) - 1)), int32(t >> SHIFT)
        numbers = shared_pointer(cuda.shared.array(0, real, alignment=16))
        counts = offset(numbers, 4)
        state, length = offset(state, pair * stride_state), size if IS_SPREAD else int32(ORDER_OF)
        if IS_SPREAD:
            sorted_d, flags = offset(state, (STATE + block * ARRAYS) * size), offset(flags, pair * WORDS)
        else:
            sorted_d = offset(counts, DIM)
        sorted_z, index = offset(sorted_d, length), offset(sorted_d, 2 * length)
        compact, places = offset(sorted_d, 3 * length), offset(sorted_d, 4 * length)
        poles, weights = offset(sorted_d, 5 * length), offset(sorted_d, 6 * length)
        taus, origins = offset(sorted_d, 7 * length), offset(sorted_d, 8 * length)
        q, d, values = offset(q, 2 * pair * stride_q), offset(d, pair * size), offset(values, pair * size)
        s = offset(s, pair * stride_s)
        ends, turns = offset(state, 3 * size), offset(state, 5 * size)
        grid_dependency_wait()
        coupling = e[pair * size + (size >> 1) - 1]
        rho = abs(coupling) + abs(coupling)

        # (2) eigenvalues of both blocks in order, and those that stay
        load(sorted_d, sorted_z, index, ends, q, d, coupling, size, q_ends, q_cs, stride_q, options, block, t)
        cuda.syncthreads()
        m, count = deflate(
            sorted_d, sorted_z, compact, places, poles, weights, taus, origins, counts, numbers, ends, turns,
            rho, size, block, t,
        )  # fmt: skip

        # (3) the zeros, and the z for which they are exact
        find_roots(state, offset(state, size), poles, weights, rho, m, block, blocks, lane, team, t)
        meet_blocks(flags, int32(1), blocks, t)
        read(taus, state, m, t)
        read(origins, offset(state, size), m, t)
        cuda.syncthreads()
        to = offset(state, 2 * size)
        find_weights(to, poles, weights, taus, origins, m, block, blocks, lane, team, t)
        meet_blocks(flags, int32(2), blocks, t)
        read(weights, to, m, t)
        evaluate(sorted_z, sorted_d, compact, poles, taus, origins, size, t)

        # (4) eigenvalues, and vectors
        back = scale[pair] if options & IS_LAST else real(1)
        unit = real(1) if back == back else back
        finish(
            values, offset(w, pair * stride_w), w_step, n, back, sorted_z, s, poles, weights, taus, origins,
            index, compact, ends, turns, count, unit, m, size, options, block, blocks, lane, team, t,
        )  # fmt: skip
        if IS_SPREAD:
            part(flags, blocks, t)

    return tridiagonal_merge
