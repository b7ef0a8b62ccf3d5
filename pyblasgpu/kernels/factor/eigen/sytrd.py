"""``sytrd``: A = Q T Qᴴ with T real and tridiagonal, of symmetric and Hermitian matrices of a batch.

A matrix has a block, or the blocks of a cluster. Each has rows of A, by groups of 32, and all of the vectors.
Step k makes the reflector of column k. Then one pass over the rest of A takes the last reflector off, and
multiplies with this one (Householder's rank-two update, one step late). So a step moves A once, and the
blocks meet once. Both triangles are kept, so a lane has a row, and no sum is over lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from ....errors import require
from ....gpu.backend import cuda, device_function, ptx
from ....gpu.build.compile import WHOLE_ROWS, KernelSource
from ...common.kernel_config import WARP, BlockConfig
from ...common.parameters import parameters
from ..clusters import cluster_meeter, largest_cluster
from ..qr.reflector import BETA, TAU, reflector, scaler
from .rotation import PARTIALS, team_max, team_sum
from .sytrd_steps import UNROLL, column_taker, leaf_writer, matrix_loader, passer, sizer, unit_maker

if TYPE_CHECKING:
    from ....gpu.device import Device

__all__ = ["ORDER", "STEM", "Sytrd", "source"]

STEM = "sytrd"
PARAMETERS = parameters(
    "pointer: a, work, tau, sums, d, e, leaves, scale",
    "int32 pointer: info",
    "int32: n, ld, leaf, padded, conj",
    "int64: a_rs, a_cs, stride_a, stride_work, stride_tau, stride_sums, stride_d, stride_leaves, stride_info",
)
ORDER = 2048  # the largest order, of complex128 half of it
GROUPS = 2 * WARP  # rows of a block at least


@dataclass(frozen=True)
class Sytrd(BlockConfig):
    """Config of one `sytrd` kernel.

    Attributes
    ----------
    dtype, DIM
        See `BlockConfig`.
    ORDER : int
        The largest order of a matrix.
    HAS_CLUSTERS : bool
        Whether a matrix may have several blocks, from compute capability 9.0 on.
    """

    DIM: int = 512
    ORDER: int = ORDER
    HAS_CLUSTERS: bool = True

    STEM: ClassVar[str] = STEM

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.ORDER % WARP == 0, "groups", "ORDER % 32 == 0", ORDER=self.ORDER)

    @property
    def registers(self) -> int:
        """Estimated 32-bit registers of a thread."""
        return 64

    @property
    def min_blocks(self) -> int:
        return 2

    @property
    def vector(self) -> int:
        """Reals of a vector in shared memory: rows that a pass may read beyond the last one are zero."""
        return (self.ORDER + UNROLL) * self.dtype_facts.reals_per_element

    @property
    def shared_bytes(self) -> int:
        """Bytes of four vectors, the sums of warps, the head of a column, and partial sums."""
        reals = self.dtype_facts.reals_per_element
        sums = max(self.DIM, self.ORDER) * reals
        return -(-(PARTIALS + 4 + 4 * self.vector + sums) * self.dtype_facts.real_size // 16) * 16

    def on(self, device: Device) -> Self:
        """The Config for a device."""
        return replace(self, HAS_CLUSTERS=self.HAS_CLUSTERS and device.cc >= (9, 0))

    def leading_dimension(self, order: int) -> int:
        """Elements from column to column of the matrix at work: whole groups of rows."""
        return -(-order // WARP) * WARP

    def columns(self, order: int) -> int:
        """Columns of the matrix at work, with those that a pass may read beyond the last one."""
        return order + UNROLL

    def blocks(self, order: int, count: int, device: Device) -> int:
        """Blocks of each of `count` matrices: as many as fill the device, each with `GROUPS` rows or more."""
        if not self.HAS_CLUSTERS:
            return 1
        wanted = min(largest_cluster(device), 2 * device.sm_count // count, -(-order // GROUPS))
        return 1 << max(wanted.bit_length() - 1, 0)


def source(config: Sytrd) -> KernelSource:
    """The kernel of `config`, for 1 <= n <= ORDER.

    Kernel parameters
    -----------------
    a: pointer, A, whose lower triangle is read
    work: pointer, ld by ``config.columns(n)`` elements, by columns; reflectors below its subdiagonal
    tau: pointer, n elements, the factors of the reflectors
    sums: pointer, 2 ld elements
    d, e: pointer, reals, diagonal and subdiagonal of T, the latter with zeros to `padded`
    leaves: pointer, reals, blocks of T, torn apart, continued to `padded` by what is beyond all eigenvalues
    scale: pointer, a real a matrix, by which eigenvalues are to be multiplied; NaN where A is not finite
    info: int32 pointer, 0, or n where A is not finite: T is zero then
    n, ld, leaf, padded, conj: int32, order, ``config.leading_dimension(n)``, orders of leaves, conj of A
    a_rs, a_cs: int64, row and column stride of A (elements)
    stride_a, stride_work, stride_tau, stride_sums: int64, batch strides (elements)
    stride_d, stride_leaves, stride_info: int64, batch strides (reals, words); that of e is that of d

    Grid: x the blocks of a matrix, z the batch.
    """
    cluster = WHOLE_ROWS if config.HAS_CLUSTERS else 1
    return KernelSource.of(config, PARAMETERS, lambda: _build(config), cluster=cluster)


def _stepper(config: Sytrd) -> Callable:
    """``step(h, y, row, partials, x, v, w, other, work, tau, sums, d, e, k, n, ld, block, blocks, t)``: step
    k, which takes off what v and w are: x and `other` become those that the next one takes off.
    """
    facts, DIM, VECTOR = config.dtype_facts, config.DIM, config.vector
    REALS, COMPLEX, real, int32 = (
        facts.reals_per_element,
        facts.is_complex,
        ptx.REALS[facts.real],
        ptx.types.int32,
    )
    take, make_unit, run_pass = column_taker(config), unit_maker(config), passer(config)
    make, total, meet, offset = (
        reflector(facts),
        team_sum(DIM),
        cluster_meeter(config.HAS_CLUSTERS),
        ptx.offset,
    )

    @device_function
    def finish(partials, x, w, h, work, product, k, n, ld, block, blocks, t):
        """w from the product of A with v, which goes below the subdiagonal in the rows of this block."""
        acc, i = real(0), int32(k + 1 + t)
        while i < n:
            for part in range(REALS):
                value = product[i * REALS + part]
                w[i * REALS + part] = value
                acc += x[i * REALS + part] * value
            i = int32(i + DIM)
        acc = total(acc, partials, t, int32(DIM))
        re, im = h[TAU], h[TAU + 1]
        shift = real(-0.5) * (re * re + im * im) * acc
        i = int32(k + 1 + t)
        while i < n:
            if COMPLEX:
                first, second = w[i * 2], w[i * 2 + 1]
                w[i * 2] = re * first - im * second + shift * x[i * 2]
                w[i * 2 + 1] = re * second + im * first + shift * x[i * 2 + 1]
            else:
                w[i] = re * w[i] + shift * x[i]
            i = int32(i + DIM)
        i = int32(k + 2 + t)
        while i < n:
            if ((i >> 5) & (blocks - 1)) == block:
                for part in range(REALS):
                    work[(k * ld + i) * REALS + part] = x[i * REALS + part]
            i = int32(i + DIM)
        cuda.syncthreads()

    @device_function
    def step(h, y, row, partials, x, v, w, other, work, tau, sums, d, e, k, n, ld, block, blocks, t):
        head, parts = offset(partials, PARTIALS), offset(partials, PARTIALS + 4 + 4 * VECTOR)
        below = total(take(head, x, v, w, work, k, n, ld, t), partials, t, int32(DIM))
        if t == 0 and block == 0:
            d[k] = x[k * REALS]
        if k < n - 1:
            make(h, head[0], head[REALS - 1], below)
            make_unit(x, h, k, n, t)
            if t == 0 and block == 0:
                e[k] = h[BETA]
                for part in range(REALS):
                    tau[k * REALS + part] = h[TAU + part]
            cuda.syncthreads()
            # the next w is apart from this one, which a pass reads
            product = offset(sums, (k & 1) * ld * REALS) if blocks > 1 else other
            run_pass(y, row, product, parts, x, v, w, work, k, n, ld, block, blocks, t)
            meet(blocks)
            finish(partials, x, other, h, work, product, k, n, ld, block, blocks, t)

    return step


def _build(config: Sytrd):
    facts, DIM, VECTOR = config.dtype_facts, config.DIM, config.vector
    REALS, real, ROW = facts.reals_per_element, ptx.REALS[facts.real], 3 * facts.reals_per_element
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    find_size, fill, scales, step, write_leaves = (
        sizer(config),
        matrix_loader(config),
        scaler(facts),
        _stepper(config),
        leaf_writer(config),
    )
    largest, meet, grid_dependency_wait = (
        team_max(DIM),
        cluster_meeter(config.HAS_CLUSTERS),
        ptx.grid_dependency_wait,
    )

    def sytrd(
        a, work, tau, sums, d, e, leaves, scale, info, n, ld, leaf, padded, conj,
        a_rs, a_cs, stride_a, stride_work, stride_tau, stride_sums, stride_d, stride_leaves, stride_info,
    ):  # fmt: skip
        # (1) the matrix of this block; three vectors and a place for the next one, then sums of warps
        t, batch = int32(cuda.threadIdx.x & 1023), int64(cuda.blockIdx.z)
        block, blocks = int32(cuda.blockIdx.x), int32(cuda.gridDim.x)
        partials = shared_pointer(cuda.shared.array(0, real, alignment=16))
        vectors = offset(partials, PARTIALS + 4)
        h, y, row = cuda.local.array(5, real), cuda.local.array(UNROLL, real), cuda.local.array(ROW, real)
        a, work = offset(a, batch * stride_a * REALS), offset(work, batch * stride_work * REALS)
        tau, sums = offset(tau, batch * stride_tau * REALS), offset(sums, batch * stride_sums * REALS)
        d, e, leaves = (
            offset(d, batch * stride_d),
            offset(e, batch * stride_d),
            offset(leaves, batch * stride_leaves),
        )
        grid_dependency_wait()

        # (2) A of about one, with both triangles
        i = int32(t)
        while i < 4 * VECTOR:
            vectors[i] = real(0)
            i = int32(i + DIM)
        most = largest(find_size(a, a_rs, a_cs, n, int32(0), int32(1), t), partials, t, int32(DIM))
        is_bad = not most < real(float("inf"))
        scales(h, most)
        factor, back = h[0], h[1]
        fill(work, a, a_rs, a_cs, factor, is_bad, conj, n, ld, block, blocks, t)
        if t == 0 and block == 0:
            scale[batch] = real(float("nan")) if is_bad else back
            info[batch * stride_info] = n if is_bad else int32(0)
        meet(blocks)

        # (3) a column after the other; v and w of one are those that the next one takes off
        k = int32(0)
        while k < n:
            now = int32(k & 1)
            x, v = offset(vectors, now * VECTOR), offset(vectors, (1 - now) * VECTOR)
            w, other = offset(vectors, (2 + now) * VECTOR), offset(vectors, (3 - now) * VECTOR)
            step(h, y, row, partials, x, v, w, other, work, tau, sums, d, e, k, n, ld, block, blocks, t)
            k = int32(k + 1)
        meet(blocks)

        # (4) the leaves
        write_leaves(leaves, d, e, partials, n, leaf, padded, block, blocks, t)

    return sytrd
