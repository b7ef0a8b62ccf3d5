"""``sytrd_resident``: A = Q T Qᴴ as of `sytrd`, of matrices that stay in registers from the first step on.

A matrix has a block, or the blocks of a cluster. All warps of a block have columns, but one that makes the
reflectors. In a step the others take the last reflector off, and multiply with the next column of A as it is,
while that one makes a reflector of it. Then it adds up what they have, makes w of it, and of the column after
that the next one to multiply with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, ptx
from ....gpu.build.compile import KernelSource
from ...common.kernel_config import MAX_THREADS, WARP, KernelConfig
from ...common.parameters import parameters
from ..clusters import cluster_meeter
from ..qr.reflector import scaler
from .rotation import PARTIALS, team_max
from .sytrd_columns import TRIPLE, column_loader, stepper
from .sytrd_leader import cluster_elements, gatherer, leader
from .sytrd_steps import leaf_writer, sizer

if TYPE_CHECKING:
    from ....gpu.device import Device

__all__ = ["STEM", "SytrdResident", "source"]

STEM = "sytrd_resident"
PARAMETERS = parameters(
    "pointer: a, work, tau, d, e, leaves, scale",
    "int32 pointer: info",
    "int32: n, ld, leaf, padded, conj",
    "int64: a_rs, a_cs, stride_a, stride_work, stride_tau, stride_d, stride_leaves, stride_info",
)
MOST_BLOCKS = 8  # blocks of a cluster that all devices with clusters run
MOST_REGISTERS, REGISTERS = 255, 1 << 16  # of a thread, of a multiprocessor
WAVES = 2  # of blocks of clusters, at most
LEAST = 2  # rows of a lane of the kernel for the smallest matrices


@dataclass(frozen=True)
class SytrdResident(KernelConfig):
    """Config of one `sytrd_resident` kernel.

    Attributes
    ----------
    dtype
        See `KernelConfig`.
    ROWS : int
        Rows of a lane: 32 times as many are the largest order.
    WARPS : int
        Warps of a block that have columns.
    BLOCKS : int
        Blocks of a matrix, which are a cluster.
    GROUP : int
        Rows of a lane of which v, w and products are in registers at a time.
    STORED : int
        Columns of a warp that are in shared memory.
    """

    ROWS: int = 8
    WARPS: int = 7
    BLOCKS: int = 4
    GROUP: int = 4
    STORED: int = 0

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        facts = {"ROWS": self.ROWS, "WARPS": self.WARPS, "BLOCKS": self.BLOCKS}
        least = min(*facts.values(), self.GROUP)
        require(least >= 1, "positive", "ROWS, WARPS, BLOCKS, GROUP >= 1", **facts, GROUP=self.GROUP)
        require(
            self.threads <= MAX_THREADS, "max_threads", f"32 * (WARPS + 1) <= {MAX_THREADS}", WARPS=self.WARPS
        )
        require(self.BLOCKS <= MOST_BLOCKS, "cluster", f"BLOCKS <= {MOST_BLOCKS}", BLOCKS=self.BLOCKS)
        require(self.SLOTS <= self.ORDER, "slots", "WARPS * BLOCKS <= 32 * ROWS", **facts)

    @property
    def ORDER(self) -> int:
        """The largest order of a matrix."""
        return WARP * self.ROWS

    @property
    def SLOTS(self) -> int:
        """Warps that have columns of a matrix."""
        return self.WARPS * self.BLOCKS

    @property
    def COLS(self) -> int:
        """Columns of a warp."""
        return -(-self.ORDER // self.SLOTS)

    @property
    def threads(self) -> int:
        return WARP * (self.WARPS + 1)

    @property
    def DIM(self) -> int:
        """Threads of a block."""
        return self.threads

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread: columns, v, w and products of rows, addresses."""
        facts = self.dtype_facts
        others = 3 * (self.GROUP + 1)
        return min(
            (self.ROWS * (self.COLS - self.STORED) + others) * facts.itemsize // 4 + 32, MOST_REGISTERS
        )

    @property
    def min_blocks(self) -> int:
        return max(REGISTERS // (self.threads * self.registers), 1)

    @property
    def shared_elements(self) -> int:
        """Sums of warps, triples of rows, products of warps, a column, and what blocks exchange."""
        own = TRIPLE * self.COLS * self.SLOTS + (self.WARPS + 1 + self.STORED * self.WARPS) * self.ORDER
        return PARTIALS + own + cluster_elements(self)

    @property
    def variants(self) -> tuple[Self, ...]:
        """Configs for smaller matrices, of half the order each, and this one."""
        return (*self._halved().variants, self) if self.ROWS > LEAST else (self,)

    def _halved(self) -> Self:
        """The Config for matrices of half the order, which have a quarter of the elements."""
        return replace(self, ROWS=self.ROWS // 2, BLOCKS=max(self.BLOCKS // 4, 1), STORED=0)

    def on(self, device: Device) -> Self:
        """The Config for a device: without clusters that of orders for which a block is enough."""
        is_large = (self.BLOCKS > 1 and device.cc < (9, 0)) or self.shared_bytes > device.shared_per_block
        return self._halved().on(device) if is_large else self

    def specialize(self, order: int, count: int, device: Device) -> Self | None:
        """The Config for `count` matrices of this order, if there is one: clusters are for few matrices."""
        for each in self.variants:
            if order <= each.ORDER and (each.BLOCKS == 1 or count * each.BLOCKS <= WAVES * device.sm_count):
                return each
        return None


def source(config: SytrdResident) -> KernelSource:
    """The kernel of `config`, for 1 <= n <= ORDER.

    Kernel parameters
    -----------------
    a: pointer, A, whose lower triangle is read
    work: pointer, ld by n elements, by columns; reflectors below its subdiagonal
    tau: pointer, n elements, the factors of the reflectors
    d, e: pointer, reals, diagonal and subdiagonal of T, the latter with zeros to `padded`
    leaves: pointer, reals, blocks of T, torn apart, continued to `padded` by what is beyond all eigenvalues
    scale: pointer, a real a matrix, by which eigenvalues are to be multiplied; NaN where A is not finite
    info: int32 pointer, 0, or n where A is not finite: T is zero then
    n, ld, leaf, padded, conj: int32, order, leading dimension, orders of leaves, conj of A
    a_rs, a_cs: int64, row and column stride of A (elements)
    stride_a, stride_work, stride_tau: int64, batch strides (elements)
    stride_d, stride_leaves, stride_info: int64, batch strides (reals, words); that of e is that of d

    Grid: x ``config.BLOCKS``, z the batch.
    """
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), cluster=config.BLOCKS)


def _build(config: SytrdResident):
    facts, ROWS, COLS, WARPS, ORDER = config.dtype_facts, config.ROWS, config.COLS, config.WARPS, config.ORDER
    DIM, REALS, real, VECTOR = (
        config.threads,
        facts.reals_per_element,
        ptx.REALS[facts.real],
        ORDER * facts.reals_per_element,
    )
    TILE, LANE, PAIRS = ROWS * (COLS - config.STORED) * REALS, ROWS * REALS, 2 * ROWS * REALS
    OWN = config.STORED * WARPS * VECTOR
    TRIPLES, PARTS = TRIPLE * COLS * config.SLOTS * REALS, WARPS * VECTOR
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    block_config: Any = config
    find_size, write_leaves = sizer(block_config), leaf_writer(block_config)
    load, run, lead = column_loader(config), stepper(config), leader(config)
    start, _ = gatherer(config)
    scales, largest = scaler(facts), team_max(DIM)
    meet, grid_dependency_wait = cluster_meeter(config.BLOCKS > 1), ptx.grid_dependency_wait

    def sytrd_resident(
        a, work, tau, d, e, leaves, scale, info, n, ld, leaf, padded, conj,
        a_rs, a_cs, stride_a, stride_work, stride_tau, stride_d, stride_leaves, stride_info,
    ):  # fmt: skip
        # (1) the matrix of this block; in shared memory sums of warps, triples of rows, products, a column
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        block, blocks = int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        warp, lane = int32(t >> 5), int32(t & 31)
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        triples = offset(partials, PARTIALS * REALS)
        parts, column = offset(triples, TRIPLES), offset(triples, TRIPLES + PARTS)
        stored, shared = offset(column, VECTOR), offset(column, VECTOR + OWN)
        a, work, tau = (
            offset(a, batch * stride_a * REALS),
            offset(work, batch * stride_work * REALS),
            offset(tau, batch * stride_tau * REALS),
        )
        d, e, leaves = (
            offset(d, batch * stride_d),
            offset(e, batch * stride_d),
            offset(leaves, batch * stride_leaves),
        )
        y, z, h = cuda.local.array(LANE, real), cuda.local.array(8, real), cuda.local.array(5, real)
        grid_dependency_wait()

        # (2) the factor that makes A about one; no reflector yet
        i, skip = int32(t), int32(ORDER - n)
        while i < TRIPLES + PARTS + VECTOR:
            triples[i] = real(0)
            i = int32(i + DIM)
        start(shared, t)
        most = largest(find_size(a, a_rs, a_cs, n, int32(0), int32(1), t), partials, t, int32(DIM))
        is_bad = not most < real(float("inf"))
        scales(h, most)
        factor, back = h[0], h[1]
        if t == 0 and block == 0:
            scale[batch] = real(float("nan")) if is_bad else back
            info[batch * stride_info] = n if is_bad else int32(0)
        meet(blocks)

        # (3) a column after the other
        if warp < WARPS:
            tile, rows = cuda.local.array(TILE, real), cuda.local.array(PAIRS, real)
            slot = int32(block * WARPS + warp)
            load(0, tile, offset(stored, t), a, a_rs, a_cs, factor, is_bad, conj, skip, slot, lane)
            run(tile, offset(stored, t), y, rows, z, triples, parts, column, skip, slot, warp, lane)
        else:
            v, w, x = (
                cuda.local.array(LANE, real),
                cuda.local.array(LANE, real),
                cuda.local.array(LANE, real),
            )
            acc = cuda.local.array(3, real)
            lead(
                v, w, x, y, z, h, acc, triples, parts, column, shared, work, tau, d, e, skip, ld, block, lane
            )
        meet(blocks)

        # (4) the leaves
        write_leaves(leaves, d, e, partials, n, leaf, padded, block, blocks, t)

    return sytrd_resident
