"""``split_k_reduce``: C := alpha * (P[0] + P[1] + ...) + beta * C, the end of a product whose k was split.

A product with a long k and few tiles of C leaves most multiprocessors idle. So its k is cut into slices; one
launch computes the product of each slice as one matrix of a batch, and this kernel adds them up, always in
the same order: a group of a block's threads sums neighbouring partials, then the groups' sums are added. Of a
triangle what is beyond it is not read, but for what shares 16 bytes with it. How many groups there are
(`SLICES`) is a run-time option: one kernel serves any number of partials.

The partials are dense, column-major, their columns at multiples of 16 bytes, so that a block reads neighbours
in memory by 16 bytes a thread whatever the shape; C is written element by element, at any leading dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ...errors import require
from ...gpu.backend import cuda, device_function, ptx, unrolled
from ...gpu.build.compile import KernelSource
from ...types import Dtype, Region
from ..common.kernel_config import BlockConfig
from ..common.options import HERMITIAN, SLICES_BIT, options_of
from ..common.parameters import parameters
from ..common.region import contains, intersects
from .slices import LOAD

__all__ = ["STEM", "SplitKReduce", "source"]

STEM = "split_k_reduce"
PARAMETERS = parameters(
    "pointer: p, c",
    "int32: m, n, partials, options",
    "int64: ldp, ldc, stride_p",
    "real: alpha, alpha_i, beta, beta_i",
)


@dataclass(frozen=True, kw_only=True)
class SplitKReduce(BlockConfig):
    """Config of one `split_k_reduce` kernel.

    Attributes
    ----------
    SLICES : int
        Groups of threads that share the partials of the same elements: of a launch, not of its kernel.
    UNROLL : int
        Partials that a thread reads at a time.
    """

    SLICES: int = 16
    UNROLL: int = 8

    STEM: ClassVar[str] = STEM

    def __post_init__(self):
        super().__post_init__()
        require(self.UNROLL >= 1, "unroll", "UNROLL >= 1", UNROLL=self.UNROLL)
        require(
            self.SLICES >= 1 and self.DIM % self.SLICES == 0,
            "slices",
            "DIM % SLICES == 0",
            DIM=self.DIM,
            SLICES=self.SLICES,
        )

    @property
    def VEC(self) -> int:
        """Elements of one load."""
        return LOAD // self.dtype_facts.itemsize

    @property
    def TILE(self) -> int:
        """Elements of a partial that a block sums."""
        return self.DIM // self.SLICES * self.VEC

    @property
    def shared_bytes(self) -> int:
        """The slices' sums."""
        return self.DIM * LOAD

    def specialize(self, partials: int) -> Self:
        """Return the Config with no more slices than `partials` keep busy."""
        slices = self.SLICES
        while slices % 2 == 0 and slices // 2 * self.UNROLL >= partials:
            slices //= 2
        return replace(self, SLICES=slices)

    def options(self, region: Region) -> int:
        """Return the kernel's run-time options: the region of C, and the slices."""
        return options_of(region) | self.SLICES << SLICES_BIT

    def grid(self, ldp: int, cols: int) -> int:
        """Blocks for partials of `cols` columns that are `ldp` elements apart."""
        return -(-ldp * cols // self.TILE)


def source(config: SplitKReduce) -> KernelSource:
    """The kernel of `config`.

    Kernel parameters
    -----------------
    p, c: pointer, partials and C
    m, n: int32, rows and columns of C
    partials: int32, their number
    options: int32, ``config.options(region)``
    ldp, ldc: int64, leading dimension of P (a multiple of 16 bytes), of C (elements)
    stride_p: int64, from one partial to the next (elements)
    alpha, alpha_i, beta, beta_i: real, parts of alpha and beta

    Grid: x ``config.grid(ldp, n)``.
    """
    config = replace(config, SLICES=1)
    return KernelSource.of(config, PARAMETERS, lambda: _build(config))


def _adder(facts: Dtype, UNROLL: int):
    """``add_up(acc, prefetched, p, stride, count, inside)``: acc += p[0] + ... + p[count - 1], in this order.

    The partials are `stride` elements apart; `acc` holds 16 bytes of one, `prefetched` as much of each of
    UNROLL.
    """
    REALS, WIDTH = facts.reals_per_element, LOAD // facts.real_size
    read, offset = ptx.load_global(WIDTH, False), ptx.offset

    @device_function
    def fetch(u, prefetched, p, stride, count, inside):
        read(prefetched, u * WIDTH, p, u * stride * REALS, inside & (u < count))

    @device_function
    def add(x, acc, prefetched):
        acc[x % WIDTH] += prefetched[x]

    fetch_all, add_all = unrolled(UNROLL, fetch), unrolled(UNROLL * WIDTH, add)

    @device_function
    def add_up(acc, prefetched, p, stride, count, inside):
        for first in range(0, count, UNROLL):
            # the whole group is under way before the first is needed; beyond the last are zeros
            fetch_all(0, prefetched, p, stride, count - first, inside)
            add_all(0, acc, prefetched)
            p = offset(p, UNROLL * stride * REALS)

    return add_up


def _writer(facts: Dtype):
    """``write(c, at, re, im, old, ok, diagonal, reads_c, ...)``: C[at] := alpha (re + im i) + beta C[at], if
    `ok`; on a Hermitian `diagonal` it is real.
    """
    REALS, COMPLEX, real = facts.reals_per_element, facts.is_complex, ptx.REALS[facts.real]
    read, write_real = ptx.load_global(REALS, False), ptx.store_global

    @device_function
    def write(c, at, re, im, old, ok, diagonal, reads_c, alpha, alpha_i, beta, beta_i):
        read(old, 0, c, at, ok & reads_c)
        if COMPLEX:
            if diagonal:
                old[1] = real(0)
            write_real(c, at, alpha * re - alpha_i * im + (beta * old[0] - beta_i * old[1]), ok)
            im = alpha * im + alpha_i * re + (beta * old[1] + beta_i * old[0])
            write_real(c, at + 1, real(0) if diagonal else im, ok)
        else:
            write_real(c, at, alpha * re + beta * old[0], ok)

    return write


def _build(config: SplitKReduce):
    facts = config.dtype_facts
    real, REALS, COMPLEX = ptx.REALS[facts.real], facts.reals_per_element, facts.is_complex
    int32, int64, offset, shared_pointer = ptx.types.int32, ptx.types.int64, ptx.offset, ptx.shared_pointer
    DIM, VEC, UNROLL = config.DIM, config.VEC, config.UNROLL
    WIDTH, PREFETCHED = VEC * REALS, UNROLL * VEC * REALS
    grid_dependency_wait, quotient = ptx.grid_dependency_wait, ptx.quotient
    zero, add_up, keep = ptx.fill(WIDTH), _adder(facts, UNROLL), ptx.store_shared(WIDTH)
    in_region, needed, write = contains(), intersects(VEC, 1), _writer(facts)

    @device_function
    def beyond(row0, col0, distance, ldp):
        """Return the row and column of the element `distance` elements on."""
        columns = (row0 + distance) // int32(ldp)
        return row0 + distance - columns * int32(ldp), col0 + columns

    def split_k_reduce(p, c, m, n, partials, options, ldp, ldc, stride_p, alpha, alpha_i, beta, beta_i):
        # (1) the elements of this block, neighbours in a partial, and the partials of this slice
        t, slices = int32(cuda.threadIdx.x), int32(options >> SLICES_BIT)
        lanes = quotient(DIM, slices)
        slice_, tile = quotient(t, lanes), int32(lanes * VEC)
        lane = int32(t - slice_ * lanes)
        first = int64(cuda.blockIdx.x) * tile
        here = first + lane * VEC
        col0 = first // ldp
        row0 = int32(first - col0 * ldp)
        row, col = beyond(row0, col0, lane * VEC, ldp)
        wanted = (here < ldp * n) & needed(row - col, options)
        per_slice = quotient(partials + slices - 1, slices)
        begin = slice_ * per_slice
        count = min(partials - begin, per_slice)
        sums = shared_pointer(cuda.shared.array(0, real, alignment=16))

        # (2) their sum
        grid_dependency_wait()
        acc, prefetched = cuda.local.array(WIDTH, real), cuda.local.array(PREFETCHED, real)
        zero(acc, real(0))
        add_up(acc, prefetched, offset(p, (begin * stride_p + here) * REALS), stride_p, count, wanted)
        keep(sums, (slice_ * tile + lane * VEC) * REALS, acc, 0)
        cuda.syncthreads()

        # (3) the sum of the slices' sums; C := alpha times it + beta C
        old = cuda.local.array(REALS, real)
        reads_c = (beta != real(0)) | (beta_i != real(0))
        for e in range(t, tile, DIM):
            re, im = real(0), real(0)
            for s in range(slices):
                re += sums[(s * tile + e) * REALS]
                if COMPLEX:
                    im += sums[(s * tile + e) * REALS + 1]
            row, col = beyond(row0, col0, e, ldp)
            ok = (row < m) & (col < n) & in_region(row, col, 0, options)
            at, diagonal = (col * ldc + row) * REALS, (options & HERMITIAN != 0) & (row == col)
            write(c, at, re, im, old, ok, diagonal, reads_c, alpha, alpha_i, beta, beta_i)

    return split_k_reduce
